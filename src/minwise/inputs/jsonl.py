"""JSON lines: one object per line in, batches of the fields asked for out; kept lines are copied byte for byte."""

import errno
import io
import select
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, invalid_at
from minwise.inputs.files import File, FileSource, output_path, started, strip_bom, writing
from minwise.inputs.lines import TooLong, lines_by_chunk, too_long_reason
from minwise.inputs.schemaless import RankColumn, RowReader, ids_of, made_of
from minwise.inputs.source import Batch, Columns, Fault, Unreadable

__all__ = [
    "JsonLinesFile",
    "JsonLinesReader",
    "Line",
    "StandardInput",
    "arriving_lines",
    "looks_like_json_lines",
    "numbered_by_chunk",
]

Flags = NDArray[np.bool_]
# The number of a line, counted from 1, and the line.
Line = tuple[int, bytes | TooLong]


class JsonLinesFile(FileSource):
    """One file of JSON lines, perhaps compressed. Blank lines are no rows."""

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        return JsonLinesReader(self.name, columns).read(_lines(self.file), wanted, batch_bytes)

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Writes the kept lines as they are; the last one gets a line feed if it has none."""
        written = 0
        with self._copying(keep):
            lines = started(_lines(self.file))
            with writing(output_path(self.file.path, folder, root), self.file.compression) as copy:
                for kept, (_, line) in zip(keep.tolist(), lines, strict=False):
                    if kept and isinstance(line, bytes):
                        copy.write(line if line.endswith(b"\n") else line + b"\n")
                        written += 1
        return written


def looks_like_json_lines(file: File) -> bool:
    """Whether the first line that is not blank is a JSON object of its own."""
    try:
        _, line = next(_lines(file), (0, b""))
        return isinstance(line, bytes) and isinstance(orjson.loads(line), dict)
    except (Unreadable, orjson.JSONDecodeError):
        return False


def _lines(file: File) -> Iterator[Line]:
    return chain.from_iterable(numbered_by_chunk(file.chunks()))


def numbered_by_chunk(chunks: Iterable[bytes]) -> Iterator[list[Line]]:
    """The lines that are rows, with their numbers; those that end in a chunk together, before the next is asked for."""
    done = 0
    for lines in lines_by_chunk(chunks):
        numbered = enumerate(lines, done + 1)
        done += len(lines)
        yield [(number, row) for number, line in numbered if (row := _row(number, line))]


def _row(number: int, line: bytes | TooLong) -> bytes | TooLong | None:
    """The line without a mark at the start of the file; None if it is blank."""
    if isinstance(line, TooLong):
        return line
    text = strip_bom(line) if number == 1 else line
    return None if text.isspace() else text


class _Unusable(Exception):  # noqa: N818 - the reason of a fault
    """A line, text or id can not be used."""


class JsonLinesReader(RowReader[Line]):
    """Lines in, batches out; the first object says whether there are ids."""

    def __init__(self, source: str, columns: Columns) -> None:
        self.source = source
        self.columns = columns
        self.id = columns.id or "id"
        self.has_ids = True if columns.id else None  # else the first object decides
        self.rank = None if columns.rank is None else RankColumn(digits_are_numbers=False)
        self.unseen = set(columns.metadata)

    @property
    def knows_columns(self) -> bool:
        """Whether ids and the kind of ranks are known."""
        return not self.unseen and self.has_ids is not None and (self.rank is None or self.rank.kind is not None)

    def size_of(self, row: Line) -> int:
        """Bytes of the line; none if it is too long to be held."""
        return len(row[1]) if isinstance(row[1], bytes) else 0

    def batch(self, first: int, rows: list[Line]) -> Batch:
        """The batch of some lines that follow each other."""
        texts: list[Any] = []
        ids: list[int | str | None] = []
        ranks: list[object] = []
        metadata: list[dict[str, Any]] = []
        faults: list[Fault] = []
        last: dict[str, Any] = {}
        for row, (number, line) in enumerate(rows, first):
            record: dict[str, Any] = {}
            try:
                record = _parse(number, line)
                ids.append(self._id(record))
                texts.append(self._text(record) if self.columns.elements is None else self._values(record))
            except _Unusable as unusable:
                faults.append(Fault(self.source, row, str(unusable)))
                texts.append(None)
                ids.extend([None] * (len(texts) - len(ids)))
            ranks.append(record.get(self.columns.rank) if self.columns.rank else None)
            metadata.append({name: record.get(name) for name in self.columns.metadata})
            self.unseen.difference_update(record)
            last = record or last
        self._refuse_unseen(last)
        column, faults = self._column(texts, first, faults)
        return Batch(
            first,
            column,
            ids_of(ids) if self.has_ids else None,
            None if self.rank is None else self.rank.array(ranks),
            tuple(faults),
            metadata if self.columns.metadata else None,
        )

    def _refuse_unseen(self, columns: dict[str, Any]) -> None:
        """Raises if none of the first objects has a column of metadata; what a later one lacks is null there."""
        if columns and self.unseen:
            name = next(name for name in self.columns.metadata if name in self.unseen)
            raise Unreadable(f"has no column {name!r}; its columns are: {', '.join(columns)}")

    def _id(self, record: dict[str, Any]) -> int | str | None:
        if self.has_ids is None:
            self.has_ids = self.id in record
        if not self.has_ids:
            return None
        if self.columns.id and self.id not in record:
            raise _Unusable(f"has no column {self.id!r}")
        value = record.get(self.id)
        if value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)):
            return value
        raise _Unusable(f"{self.id} must be a string or a whole number, got {type(value).__name__}")

    def _column(self, texts: list[Any], first: int, faults: list[Fault]) -> tuple[pa.Array, list[Fault]]:
        """The texts as a column, or what is made of values, with all faults in order."""
        if self.columns.elements is None:
            return from_bytes(texts, pa.large_string()), faults
        return made_of(self.columns.elements, texts, self.source, first, faults)

    def _values(self, record: dict[str, Any]) -> list[Any]:
        for name in self.columns.text:
            if name not in record:
                raise _Unusable(f"has no column {name!r}")
        return [record[name] for name in self.columns.text]

    def _text(self, record: dict[str, Any]) -> bytes:
        parts = [_text_field(record, name) for name in self.columns.text]
        return (parts[0] if len(parts) == 1 else "\n".join(parts)).encode()


def _text_field(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    if isinstance(value, str):
        return value
    if name not in record:
        raise _Unusable(f"has no column {name!r}")
    raise _Unusable(f"{name} is null" if value is None else f"{name} must be a string, got {type(value).__name__}")


def _parse(number: int, line: bytes | TooLong) -> dict[str, Any]:
    if isinstance(line, TooLong):
        raise _Unusable(too_long_reason())
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _Unusable(_complaint(number, line, error)) from None
    if not isinstance(record, dict):
        raise _Unusable(f"line {number} must be a JSON object, got {type(record).__name__}")
    return record


def _complaint(number: int, line: bytes, error: orjson.JSONDecodeError) -> str:
    invalid = invalid_at(line)
    if invalid is not None:
        return f"line {number} is not valid UTF-8 at byte {invalid}"
    column = min(error.pos, len(line.decode().rstrip())) + 1
    return f"line {number} is not JSON: {error.msg} at column {column}"


class StandardInput(JsonLinesFile):
    """All that standard input gives; the copy is gone when this is."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "is closed", "standard input")
        self._folder = tempfile.TemporaryDirectory(prefix=".minwise-")
        place = Path(self._folder.name) / "stdin.jsonl"
        with place.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        super().__init__(File(str(place)))
        self.name = "-"

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Writes the kept lines to ``stdin.jsonl``."""
        return super().copy_kept(keep, folder, self._folder.name)


READ_BYTES = 1 << 20
# Lines that are handed on together when they come faster than that.
MOST_LINES = 8192


def arriving_lines(source: BinaryIO, most_bytes: int) -> Iterator[list[Line]]:
    """Yields what has come, at the latest before waiting for more, and in groups of about ``most_bytes`` at most.

    Args:
        source: A pipe, a terminal, a file: whatever can be read.
        most_bytes: Bytes of lines after which a group is full.
    """
    waiting: list[Line] = []
    size = 0
    for lines in numbered_by_chunk(_chunks(source)):
        for line in lines:
            waiting.append(line)
            size += len(line[1]) if isinstance(line[1], bytes) else 0
            if len(waiting) == MOST_LINES or size >= most_bytes:
                yield waiting
                waiting, size = [], 0
        if waiting and not _has_more(source):
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    read = getattr(source, "read1", source.read)
    while chunk := read(READ_BYTES):
        yield chunk


def _has_more(source: BinaryIO) -> bool:
    """Whether reading would give something, or an end, without waiting."""
    try:
        return bool(select.select([source], [], [], 0)[0])
    except (AttributeError, OSError, TypeError, ValueError, io.UnsupportedOperation):  # not a pipe, terminal or socket
        return True
