"""Delimited: CSV and TSV in, batches of the columns asked for out; kept records are copied byte for byte.

Lines are read as Latin-1, in which every byte is one character, so that the fields can become the bytes again that they
were, and whether these are UTF-8 is for the kernel to say.
"""

import csv
import io
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, invalid_at
from minwise.inputs import lines as limits
from minwise.inputs.columns import Selection, select
from minwise.inputs.files import BOM, File, FileSource, output_path, started, strip_bom, writing
from minwise.inputs.lines import TooLong, read_quoted_lines, too_long_reason
from minwise.inputs.schemaless import RankColumn, RowReader, made_of
from minwise.inputs.source import Batch, Columns, Fault, Unreadable

__all__ = ["DelimitedFile"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Record:
    """One record: its bytes, and its fields or the reason why it has none."""

    raw: bytes
    fields: list[str]
    reason: str | None = None


class DelimitedFile(FileSource):
    """One file of CSV or TSV with a header, perhaps compressed. Blank lines are no rows."""

    def __init__(self, file: File, delimiter: str) -> None:
        super().__init__(file)
        self.delimiter = delimiter

    def _records(self) -> Iterator[_Record]:
        """The header, then the rows."""
        return _checked(_parsed(_Lines(read_quoted_lines(self.file.chunks())), self.delimiter))

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        records = self._records()
        names = _names(records)
        yield from _Reader(self.name, select(columns, names), names).read(records, wanted, batch_bytes)

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Writes the header and the kept records as they are."""
        written = 0
        with self._copying(keep):
            records = started(self._records())
            with writing(output_path(self.file.path, folder, root), self.file.compression) as copy:
                for header in islice(records, 1):
                    copy.write(header.raw)
                for kept, record in zip(keep.tolist(), records, strict=False):
                    if kept and record.reason is None:
                        copy.write(record.raw)
                        written += 1
        return written


class _LongRecord(Exception):  # noqa: N818 - a signal through the csv module
    """A record goes on beyond what is held."""


class _Lines:
    """Feeds lines to the csv module, several at once where they seem to be one record, and remembers what it took.

    Attributes:
        number: Lines that were fed.
        ended: Whether there are no more.
    """

    def __init__(self, pieces: Iterator[bytes | TooLong]) -> None:
        self.pieces = pieces
        self.single: deque[bytes] = deque()
        self.number = 0
        self.taken: list[bytes] = []
        self.size = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._next_piece()
        if piece is None:
            self.ended = True
            raise StopIteration
        if isinstance(piece, bytes) and self.size + len(piece) > limits.MAX_RECORD_BYTES and _is_several(piece):
            piece = self._split(piece)
        if isinstance(piece, TooLong) or self.size + len(piece.removesuffix(b"\n")) > limits.MAX_RECORD_BYTES:
            self._skip_record(piece)
            raise _LongRecord
        text = (piece if self.number else strip_bom(piece)).decode("latin-1")
        self.number += _count(piece)
        self.taken.append(piece)
        self.size += len(piece)
        return text

    def record(self) -> bytes:
        """What was taken since the last call."""
        taken = b"".join(self.taken)
        self.taken, self.size = [], 0
        return taken

    def retry(self) -> bool:
        """Takes back what was taken, to feed it line by line; False if that is how it was fed."""
        if not any(_is_several(piece) for piece in self.taken):
            return False
        self.number -= sum(map(_count, self.taken))
        self.single.extendleft(reversed(io.BytesIO(self.record()).readlines()))
        return True

    def _next_piece(self) -> bytes | TooLong | None:
        return self.single.popleft() if self.single else next(self.pieces, None)

    def _split(self, piece: bytes) -> bytes:
        """The first line of several; the others come next."""
        first, *others = io.BytesIO(piece).readlines()
        self.single.extendleft(reversed(others))
        return first

    def _skip_record(self, piece: bytes | TooLong) -> None:
        """Reads past the rest of the record: a line ends it if the quotation marks before are even in number."""
        quotes = self.record().count(b'"') + _quotes(piece)
        self.number += _count(piece)
        while quotes % 2:
            rest = self._next_piece()
            if rest is None:
                return
            if isinstance(rest, bytes):
                rest = self._split(rest)
            self.number += _count(rest)
            quotes += _quotes(rest)


def _quotes(line: bytes | TooLong) -> int:
    return line.quotes if isinstance(line, TooLong) else line.count(b'"')


def _count(piece: bytes | TooLong) -> int:
    """How many lines there are, the last of a file with or without its end."""
    return 1 if isinstance(piece, TooLong) else piece.count(b"\n") + (not piece.endswith(b"\n"))


def _is_several(piece: bytes) -> bool:
    return 0 <= piece.find(b"\n") < len(piece) - 1


def _parsed(lines: _Lines, delimiter: str) -> Iterator[_Record]:
    """The records of all lines that are not blank."""
    csv.field_size_limit(max(csv.field_size_limit(), limits.MAX_RECORD_BYTES + len(BOM)))
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        begin = lines.number + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except _LongRecord:
            yield _Record(b"", [], too_long_reason())
            continue
        except csv.Error as error:
            if lines.retry():
                continue
            yield _Record(lines.record(), [], f"line {begin} can not be read: {error}")
            continue
        raw = lines.record()
        if lines.ended:  # the csv module asks for another line only within quotation marks
            yield _Record(raw, [], f"line {begin} opens a quotation mark that is never closed")
        elif fields:
            yield _Record(raw, fields)


def _checked(records: Iterator[_Record]) -> Iterator[_Record]:
    """The records, with a reason where one has not as many fields as the header."""
    width = 0
    for number, record in enumerate(records):
        width = len(record.fields) if number == 0 else width
        if record.reason is None and len(record.fields) != width:
            yield _Record(record.raw, [], f"has {len(record.fields)} fields where the header has {width}")
        else:
            yield record


def _names(records: Iterator[_Record]) -> list[str]:
    """The names of the columns."""
    header = next(records, None)
    if header is None:
        raise Unreadable("has no header: it is empty")
    if header.reason is not None:
        raise Unreadable(f"has no header: {header.reason}")
    return [name.encode("latin-1").decode("utf-8", "replace") for name in header.fields]


class _Reader(RowReader[_Record]):
    """Records in, batches out."""

    def __init__(self, source: str, selection: Selection, names: list[str]) -> None:
        self.source = source
        self.elements = selection.columns.elements
        self.texts = [names.index(name) for name in selection.columns.text]
        self.id = None if selection.id is None else names.index(selection.id)
        self.rank = None if selection.columns.rank is None else names.index(selection.columns.rank)
        self.ranks = RankColumn(digits_are_numbers=True)
        self.metadata = {name: names.index(name) for name in selection.columns.metadata}
        self.checked = {**({} if selection.id is None else {selection.id: names.index(selection.id)}), **self.metadata}

    @property
    def knows_columns(self) -> bool:
        """Whether the kind of ranks is known."""
        return self.rank is None or self.ranks.kind is not None

    def size_of(self, row: _Record) -> int:
        """Bytes of the record."""
        return len(row.raw)

    def batch(self, first: int, rows: list[_Record]) -> Batch:
        """The batch of some records that follow each other."""
        ids = [_field(record, self.id) for record in rows]
        reasons = [record.reason or self._complaint(record) for record in rows]
        faults = [Fault(self.source, row, reason) for row, reason in enumerate(reasons, first) if reason]
        texts, faults = self._texts(rows, reasons, first, faults)
        ids = [None if reason else value for value, reason in zip(ids, reasons, strict=True)]
        ranks = [(_field(record, self.rank) or b"").decode("utf-8", "replace") for record in rows]
        return Batch(
            first,
            texts,
            None if self.id is None else from_bytes(ids, pa.large_string()),
            None if self.rank is None else self.ranks.array(ranks),
            tuple(faults),
            [self._object(record) for record in rows] if self.metadata else None,
        )

    def _texts(
        self, rows: list[_Record], reasons: list[str | None], first: int, faults: list[Fault]
    ) -> tuple[pa.Array, list[Fault]]:
        """The texts as a column, or what is made of the fields, with all faults in order."""
        usable = [None if reason else record for record, reason in zip(rows, reasons, strict=True)]
        if self.elements is None:
            texts = [None if record is None else self._text(record) for record in usable]
            return from_bytes(texts, pa.large_binary()), faults
        values = [
            None if record is None else [record.fields[place].encode("latin-1") for place in self.texts]
            for record in usable
        ]
        return made_of(self.elements, values, self.source, first, faults)

    def _text(self, record: _Record) -> bytes:
        return "\n".join([record.fields[position] for position in self.texts]).encode("latin-1")

    def _object(self, record: _Record) -> dict[str, Any]:
        """The metadata: strings, for CSV has no other types, and None where a field is empty."""
        fields = {name: _field(record, position) for name, position in self.metadata.items()}
        return {name: None if value is None else value.decode("utf-8", "replace") for name, value in fields.items()}

    def _complaint(self, record: _Record) -> str | None:
        """What is wrong with an id or with metadata."""
        for name, position in self.checked.items():
            invalid = invalid_at(_field(record, position) or b"")
            if invalid is not None:
                return f"{name} is not valid UTF-8 at byte {invalid}"
        return None


def _field(record: _Record, position: int | None) -> bytes | None:
    """The bytes of a field; None if it is empty or not there."""
    return record.fields[position].encode("latin-1") or None if position is not None and record.fields else None
