"""Parts shared by the formats without a schema (JSON lines, CSV, baskets): lines of limited length, rows to batches.

A line longer than ``MAX_RECORD_BYTES`` is skipped without being held: a line of a gigabyte costs no more memory than
one of 128 MiB.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.inputs.elements import Elements
from minwise.inputs.source import BATCH_ROWS, Batch, Fault, RowMask, UnreadableError

__all__ = [
    "MAX_RECORD_BYTES",
    "Line",
    "OversizedLine",
    "PartialRecord",
    "RowReader",
    "drain",
    "lines_by_chunk",
    "oversized_reason",
    "quoted_lines",
    "values_and_faults",
]

# A document is held in memory as a whole, and several at a time; human-written texts are far shorter than this.
MAX_RECORD_BYTES = 1 << 27

Row = TypeVar("Row")
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """Placeholder of a line longer than ``MAX_RECORD_BYTES``.

    Attributes:
        quotes: Its number of quotation marks, which tells whether a quoted CSV field continues after it.
    """

    quotes: int


Line = bytes | OversizedLine


def oversized_reason() -> str:
    """Return the reason why a record that is too long cannot be used."""
    return f"is longer than {MAX_RECORD_BYTES} bytes"


def lines_by_chunk(chunks: Iterable[bytes]) -> Iterator[list[Line]]:
    """Yield the lines that end in each chunk, with their line feeds; the last line may have none.

    The list of a chunk, perhaps empty, is yielded before the next chunk is read, so a reader of a pipe can process the
    lines before it blocks. If the chunks end in an error, the bytes after the last line feed are not yielded: the line
    is incomplete.
    """
    partial = PartialRecord()
    for chunk in chunks:
        lines = io.BytesIO(chunk).readlines()
        tail = b"" if chunk.endswith(b"\n") else lines.pop()
        yield [partial.finish(line) for line in lines]
        partial.add(tail)
    if partial.length:
        yield [partial.finish(b"")]


def drain(lists: Iterable[list[Entry]]) -> Iterator[Entry]:
    """Yield the entries of lists; no list holds an entry that was yielded, as a long line may be large."""
    for entries in lists:
        entries.reverse()
        while entries:
            yield entries.pop()


def quoted_lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Yield the same bytes, with lines within quotation marks together: mostly one CSV record each.

    Whether a line feed is within quotation marks is guessed from the number of marks before it. No result may depend on
    the guess; it makes reading several times as fast where texts have many lines.
    """
    partial = PartialRecord()
    odd = 0
    for chunk in chunks:
        whole = chunk.rfind(b"\n") + 1
        start = chunk.find(b"\n") + 1 if partial.length else 0
        if whole and partial.length:
            yield partial.finish(chunk[:start])
        quotes, ends = _ends_outside_quotes(chunk[:whole], odd)
        for begin, end in pairwise([start, *ends[ends > start].tolist()]):
            yield chunk[begin:end]
        partial.add(chunk[whole:])
        odd = (quotes + chunk.count(b'"', whole)) % 2
    if partial.length:
        yield partial.finish(b"")


def _ends_outside_quotes(data: bytes, quotes_before: int) -> tuple[int, NDArray[np.int64]]:
    """Return the number of quotation marks so far, and the ends of lines after an even number of them.

    The end of the data is always one of these ends.
    """
    values = np.frombuffer(data, dtype=np.uint8)
    feeds = np.flatnonzero(values == ord("\n"))
    marks = np.flatnonzero(values == ord('"'))
    even = (np.searchsorted(marks, feeds) + quotes_before) % 2 == 0
    if len(feeds):
        even[-1] = True
    return quotes_before + len(marks), feeds[even] + 1


class PartialRecord:
    """The part of a line, or of another record, that earlier chunks held."""

    def __init__(self) -> None:
        self.held = io.BytesIO()  # its value is taken without a copy, unlike joined parts
        self.length = 0
        self.quotes = 0

    def add(self, part: bytes) -> None:
        """Hold the part, or only count it if the line is already too long."""
        if not part:
            return
        self.length += len(part)
        if self.length > MAX_RECORD_BYTES:
            self.quotes += self.held.getvalue().count(b'"') + part.count(b'"')
            self.held = io.BytesIO()
        else:
            self.held.write(part)

    def finish(self, part: bytes) -> Line:
        """Return the whole line and start another."""
        if not self.length and len(part) <= MAX_RECORD_BYTES:
            return part
        self.add(part.removesuffix(b"\n"))
        if part.endswith(b"\n"):
            self.held.write(b"\n")
        whole: Line = OversizedLine(self.quotes) if self.length > MAX_RECORD_BYTES else self.held.getvalue()
        self.held, self.length, self.quotes = io.BytesIO(), 0, 0
        return whole


class RowReader(ABC, Generic[Row]):
    """Converts rows to batches, and keeps the column types found so far."""

    def read(self, rows: Iterator[Row], wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        """Yield the batches that have a wanted row."""
        for first, group in self._group(rows, batch_bytes):
            if wanted is None or wanted[first : first + len(group)].any():
                batch = [self.batch(first, group)]
                group.clear()  # before the batch is processed
                yield batch.pop()
            elif not wanted[first:].any():
                return
            elif not self.knows_columns:
                self.batch(first, group)

    def _group(self, rows: Iterator[Row], max_bytes: int) -> Iterator[tuple[int, list[Row]]]:
        """Yield groups of about ``max_bytes`` with the number of their first row, up to the row of a failure."""
        first = size = 0
        held: list[Row] = []
        failure: UnreadableError | None = None
        try:
            for row in rows:
                more = self.size_of(row)
                if held and size + more > max_bytes:  # so that a large row is alone
                    number = len(held)
                    yield first, held
                    first, size, held = first + number, 0, []
                held.append(row)
                del row
                size += more
                if size >= max_bytes or len(held) == BATCH_ROWS:
                    number = len(held)
                    yield first, held
                    first, size, held = first + number, 0, []
        except UnreadableError as error:
            failure = error
        if held:
            yield first, held
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # whose traceback has this frame: the cycle would keep the file open

    @property
    @abstractmethod
    def knows_columns(self) -> bool:
        """Whether no unread row can change how later rows are read."""

    @abstractmethod
    def size_of(self, row: Row) -> int:
        """Return the bytes of the row in the file."""

    @abstractmethod
    def batch(self, first: int, rows: list[Row]) -> Batch:
        """Return the batch of consecutive rows."""


def values_and_faults(
    elements: Elements, rows: Sequence[Sequence[Any] | None], source: str, first: int, faults: Sequence[Fault]
) -> tuple[pa.Array, list[Fault]]:
    """Return the values of rows, and all faults in order; a row that has a fault already is None."""
    column, reasons = elements.from_values(rows)
    by_row = {fault.row: fault for fault in faults}
    for row, reason in reasons.items():
        by_row.setdefault(first + row, Fault(source, first + row, reason))
    return column, [fault for _, fault in sorted(by_row.items(), key=lambda entry: entry[0] or 0)]
