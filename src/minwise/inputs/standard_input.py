"""Standard input in any format, copied to a temporary file, since a source is read more than once."""

import errno
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.temporary import TemporaryFolder
from minwise.errors import InputError
from minwise.inputs.content import BROKEN_OBJECT
from minwise.inputs.files import File
from minwise.inputs.find_files import detect_json
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import Batch, Columns, RowMask, Source

__all__ = ["STANDARD_INPUT_NAME", "StandardInput"]

STANDARD_INPUT_NAME = "-"
# Suffixes of copies whose format has another name.
COPY_SUFFIXES = {"text": "txt", "lines": "txt", "baskets": "txt", "named-baskets": "txt"}


class SpooledFile(File):
    """Copy of standard input, named ``-`` in messages and ids."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name that a user gave."""
        return STANDARD_INPUT_NAME


class StandardInput(Source):
    """Standard input, copied to a temporary file that is deleted on garbage collection.

    Args:
        format: The format; None for JSON, as lines or as an array.
        open_file: Returns the source of a file in a format.

    Attributes:
        opened: The source of the copy.
    """

    def __init__(self, format: str | None, open_file: Callable[[File, str], Source]) -> None:  # noqa: A002
        if sys.stdin is None:
            raise OSError(errno.EBADF, "is closed", "standard input")
        self.name = STANDARD_INPUT_NAME
        self._folder = TemporaryFolder()
        spooled = self._folder.path / "stdin"
        with spooled.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        format_ = format or _json_format(SpooledFile(str(spooled)))
        path = spooled.rename(spooled.with_suffix(f".{COPY_SUFFIXES.get(format_, format_)}"))
        self.opened = open_file(SpooledFile(str(path)), format_)

    @property
    def text_settings(self) -> tuple[str, ...]:  # type: ignore[override] # those of the format
        """Settings of text files that the format has."""
        return self.opened.text_settings

    def decide(self, name: str, value: str) -> None:
        """Use the value of one of ``text_settings`` instead of detecting it."""
        self.opened.decide(name, value)

    def limit_memory(self, memory: int) -> None:
        """Limit the memory of reading the copy."""
        self.opened.limit_memory(memory)

    def fingerprint(self) -> dict[str, object]:
        """Return name, bytes and modification time of the copy."""
        return self.opened.fingerprint()

    def size_bytes(self) -> int:
        """Return the bytes of the copy."""
        return self.opened.size_bytes()

    def known_rows(self) -> int | None:
        """Return the number of rows, if the format has it."""
        return self.opened.known_rows()

    def count_rows(self) -> int | None:
        """Return the number of rows, even if they must be read."""
        return self.opened.count_rows()

    def _select(self, columns: Columns) -> object:
        return self.opened._select(columns)

    def reading(self) -> str | None:
        """Return how the copy is read."""
        return self.opened.reading()

    def stored_files(self) -> Sequence[File]:
        """Return the copy."""
        return self.opened.stored_files()

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return ``-`` and the row for each of ``rows``."""
        return self.opened.locate(rows)

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the ids of rows that have none, as the format defines them."""
        return self.opened.default_ids(rows)

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        return self.opened._read(columns, wanted, batch_bytes)

    def note_damage(self) -> bool:
        """Treat rows of the copy that cannot be copied as unreadable."""
        return self.opened.note_damage()

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of the copy."""
        return self.opened.column_names()

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows to ``stdin`` with the suffix of the format."""
        return self.opened.copy_kept(keep, folder, str(self._folder.path), edits)


def _json_format(file: File) -> str:
    """Return the format of JSON: an array or lines.

    Raises:
        InputError: If the first line shows that it is neither. A line that begins as an object may only be damaged.
    """
    kind = detect_json(file)
    if kind not in ("json", "jsonl", BROKEN_OBJECT):
        rule = "must be JSON lines or a JSON array"
        raise InputError(f"- (standard input) {rule}, got {kind}; set format='csv', format='lines' or another")
    return "json" if kind == "json" else "jsonl"
