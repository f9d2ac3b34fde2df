"""Edits of JSON objects: only the bytes of cuts are removed, and added members are inserted before the last brace.

The kernel numbers the strings of an object, so that a parser tells which of them are its texts, without a copy of any.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import InputError
from minwise.inputs.column_paths import find_value
from minwise.inputs.columns import to_json
from minwise.inputs.row_edits import Cuts, EditedRows, RowEditor, RowEdits, remove_spans, row_spans

__all__ = ["JsonEditor"]

# JSON allows no other white space.
BLANKS = b" \t\n\r"


class JsonEditor(RowEditor[bytes]):
    """Applies edits to objects, or to strings that are documents by themselves."""

    def __init__(self, edits: RowEdits, where: str) -> None:
        """Create an editor.

        Args:
            edits: The edits.
            where: The source, for errors.
        """
        super().__init__(edits)
        self._where = where
        self._names = [orjson.dumps(name) for name in edits.added.names]

    def size_of(self, row: bytes) -> int:
        """Return the bytes of the object."""
        return len(row)

    def edited(self, rows: list[bytes], edits: EditedRows, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the objects with their edits."""
        cuts = Cuts.of_rows(edits, numbers)
        spans = row_spans(rows, cuts, lambda index: _text_spans(rows[index], self.edits.text), escaped=True)
        members = self._members(edits)
        for index, (row, number) in enumerate(zip(rows, numbers.tolist(), strict=True)):
            cut = remove_spans(row, spans[index]) if index in spans else row
            yield cut if members is None else self._with_members(cut, members[index], number)

    def _members(self, edits: EditedRows) -> list[bytes] | None:
        """Return the added members of each row; None if there are none."""
        if not self._names:
            return None
        columns = [column.cast(field.type) for column, field in zip(edits.values, self.edits.added, strict=True)]
        objects = to_json(pa.RecordBatch.from_arrays(columns, schema=self.edits.added))
        return [orjson.dumps(members)[1:-1] for members in objects]

    def _with_members(self, row: bytes, members: bytes, number: int) -> bytes:
        """Return an object with more members; a string becomes an object that has it as its text."""
        whole = row.rstrip(BLANKS)
        if not whole.endswith(b"}"):
            text = orjson.dumps(self.edits.text[0]) if self.edits.text else b'"text"'
            return b"".join([b"{", text, b":", whole.lstrip(BLANKS), b",", members, b"}", row[len(whole) :]])
        self._refuse_clash(row, number)
        inner = whole[:-1].rstrip(BLANKS)
        comma = b"" if inner.endswith(b"{") else b","
        return b"".join([inner, comma, members, row[len(inner) :]])

    def _refuse_clash(self, row: bytes, number: int) -> None:
        """Raise InputError if an object has a member of the name of an added one."""
        if not any(name in row for name in self._names) and b"\\u" not in row:
            return
        record = orjson.loads(_kernel.json_numbered(row)[0])
        for name in self.edits.added.names:
            if name in record:
                raise InputError(
                    f"{self._where}: row {number}: has a column {name!r} already; "
                    "rename it, since the output has one of that name"
                )


def _text_spans(row: bytes, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return start and end of each part of the text of a row, in the order of the text.

    A list without strings is an empty part, which lies nowhere.
    """
    numbered, spans = _kernel.json_numbered(row)
    record = orjson.loads(numbered)
    values = [record] if isinstance(record, int) else [find_value(record, name) for name in names]
    found = [number for value in values for number in _parts(value)]
    return [(0, 0) if number < 0 else (int(spans[2 * number]), int(spans[2 * number + 1])) for number in found]


def _parts(value: Any) -> list[int]:  # noqa: ANN401 - any JSON value
    """Return the numbers of the strings of a text or of a list of texts; -1 stands for that of an empty list."""
    if not isinstance(value, list):
        return [int(value)]
    return [number for item in value for number in _parts(item)] or [-1]
