"""Baskets: one set per line, perhaps compressed, its items separated by white space or by the separator.

In ``named-baskets`` the first item of a line is the id of the set. A blank line is an empty set. A row has a fault if
its line is not valid UTF-8, too long, or has no name where it needs one. Kept lines are copied byte for byte.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from minwise._internal.arrays import from_bytes
from minwise.errors import ConfigError, InputError
from minwise.inputs.elements import decode_utf8
from minwise.inputs.files import File, TextFileSource, strip_bom
from minwise.inputs.items import ItemLists, ItemSets, split_items
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.row_reader import (
    Line,
    OversizedLine,
    RowReader,
    lines_by_chunk,
    oversized_reason,
    values_and_faults,
)
from minwise.inputs.source import Batch, ColumnError, Columns, Fault, RowMask

__all__ = ["BasketFile"]


class BasketFile(TextFileSource):
    """One file with a set on each line, perhaps compressed.

    Attributes:
        named: Whether the first item of a line is the name of the set.
    """

    def __init__(self, file: File, *, named: bool) -> None:
        super().__init__(file)
        self.named = named

    def _lines(self) -> Iterator[Line]:
        return chain.from_iterable(lines_by_chunk(self.chunks()))

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        elements = self._select(columns)
        return BasketReader(self.name, elements, named=self.named).read(self._lines(), wanted, batch_bytes)

    def _select(self, columns: Columns) -> ItemSets | ItemLists:
        named = (columns.id, *(column.name for column in columns.values), *columns.metadata)
        other = next((name for name in named if name is not None), None)
        if other is not None:
            raise ColumnError(f"has no column {other!r}: each of its lines is one set and nothing else")
        if not isinstance(columns.elements, (ItemSets, ItemLists)):
            name = columns.text[0]
            raise ColumnError(f"has no column {name!r}: each of its lines is one set, which needs shingle set")
        return columns.elements

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept lines unchanged; the last one gets a line feed if it has none."""
        self._refuse_edits(edits)
        return self._copy_lines(self._lines(), keep, folder, root)

    def _refuse_edits(self, edits: RowEdits | None) -> None:
        """Raise ConfigError if there are edits."""
        if edits is not None:
            raise ConfigError(f"{self.name}: its lines are sets, which have neither texts nor columns to edit")

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield each kept line as the text of an object."""
        self._refuse_edits(edits)
        with self._copying(keep):
            for kept, line in zip(keep.tolist(), self._lines(), strict=False):
                if kept and isinstance(line, bytes):
                    yield {"text": strip_bom(line).decode("utf-8", "replace").rstrip("\r\n")}


class BasketReader(RowReader[Line]):
    """Converts lines to batches."""

    knows_columns = True

    def __init__(self, source: str, elements: ItemSets | ItemLists, *, named: bool) -> None:
        self.source, self.elements, self.named = source, elements, named

    def size_of(self, row: Line) -> int:
        """Return the bytes of the line; 0 if it is too long to be held."""
        return len(row) if isinstance(row, bytes) else 0

    def batch(self, first: int, rows: list[Line]) -> Batch:
        """Return the batch of consecutive lines."""
        values: list[list[Any] | None] = []
        names: list[bytes | None] = []
        faults: list[Fault] = []
        for row, line in enumerate(rows, first):
            name, items = None, None
            try:
                name, items = self._parse_line(line, row)
            except InputError as error:
                faults.append(Fault(self.source, row, str(error)))
            names.append(name)
            values.append(None if items is None else [items])
        column, faults = values_and_faults(self.elements, values, self.source, first, faults)
        ids = from_bytes(names, pa.large_string()) if self.named else None
        return Batch(first, column, ids, {}, tuple(faults))

    def _parse_line(self, line: Line, row: int) -> tuple[bytes | None, list[str]]:
        """Return the name of a set, if it has one, and its items."""
        if isinstance(line, OversizedLine):
            raise InputError(oversized_reason())
        text = decode_utf8(strip_bom(line) if row == 0 else line, f"line {row + 1}")
        items = split_items(text, self.elements.separator)
        if not self.named:
            return None, items
        if not items:
            raise InputError(f"line {row + 1} has no name: its first item is missing")
        return items[0].encode(), items[1:]
