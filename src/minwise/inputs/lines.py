"""Lines: chunks of bytes in, lines out, none of them longer than a record may be.

What is too long is read past, never held: a line of a gigabyte costs no more memory than one of 128 MiB.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_RECORD_BYTES", "TooLong", "lines_by_chunk", "read_quoted_lines", "too_long_reason"]

# A document is held whole, and several at a time; nothing that people write is nearly as long as this.
MAX_RECORD_BYTES = 1 << 27


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was longer than a record may be.

    Attributes:
        quotes: How many quotation marks it had: whether a quoted field of CSV goes on after it.
    """

    quotes: int


def too_long_reason() -> str:
    """What is wrong with a record that is too long."""
    return f"is longer than {MAX_RECORD_BYTES} bytes"


def lines_by_chunk(chunks: Iterable[bytes]) -> Iterator[list[bytes | TooLong]]:
    """Yields every line with the line feed that ends it; the last may have none.

    Those that end in a chunk come together, if only as an empty list, before the next chunk is asked for: whoever reads
    from a pipe knows what has come, and can deal with it before waiting. What follows the last line feed is not yielded
    if the chunks end in an error: nobody knows how it would go on.
    """
    begun = _Begun()
    for chunk in chunks:
        lines = io.BytesIO(chunk).readlines()
        tail = b"" if chunk.endswith(b"\n") else lines.pop()
        yield [begun.finish(line) for line in lines]
        begun.add(tail)
    if begun.length:
        yield [begun.finish(b"")]


def read_quoted_lines(chunks: Iterable[bytes]) -> Iterator[bytes | TooLong]:
    """Yields the same bytes, lines within quotation marks together: mostly a record of CSV each.

    Whether a line feed is within quotation marks is guessed from how many there are before it. Nothing may depend on
    the guess; it makes reading several times as fast where texts have many lines.
    """
    begun = _Begun()
    odd = 0
    for chunk in chunks:
        whole = chunk.rfind(b"\n") + 1
        start = chunk.find(b"\n") + 1 if begun.length else 0
        if whole and begun.length:
            yield begun.finish(chunk[:start])
        quotes, ends = _ends_outside_quotes(chunk[:whole], odd)
        for begin, end in pairwise([start, *ends[ends > start].tolist()]):
            yield chunk[begin:end]
        begun.add(chunk[whole:])
        odd = (quotes + chunk.count(b'"', whole)) % 2
    if begun.length:
        yield begun.finish(b"")


def _ends_outside_quotes(data: bytes, quotes_before: int) -> tuple[int, NDArray[np.int64]]:
    """How many quotation marks there are so far, and where lines end after an even number of them, or the data ends."""
    values = np.frombuffer(data, dtype=np.uint8)
    feeds = np.flatnonzero(values == ord("\n"))
    marks = np.flatnonzero(values == ord('"'))
    even = (np.searchsorted(marks, feeds) + quotes_before) % 2 == 0
    if len(feeds):
        even[-1] = True
    return quotes_before + len(marks), feeds[even] + 1


class _Begun:
    """The part of a line that earlier chunks held."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.length = 0
        self.quotes = 0

    def add(self, part: bytes) -> None:
        """Holds the part, or only counts it if the line is too long already."""
        if not part:
            return
        self.length += len(part)
        if self.length > MAX_RECORD_BYTES:
            self.quotes += sum(held.count(b'"') for held in self.parts) + part.count(b'"')
            self.parts.clear()
        else:
            self.parts.append(part)

    def finish(self, part: bytes) -> bytes | TooLong:
        """The whole line; what comes next begins another."""
        if not self.length and len(part) <= MAX_RECORD_BYTES:
            return part
        self.add(part.removesuffix(b"\n"))
        whole: bytes | TooLong = b"".join([*self.parts, part[-1:] if part.endswith(b"\n") else b""])
        if self.length > MAX_RECORD_BYTES:
            whole = TooLong(self.quotes)
        self.parts, self.length, self.quotes = [], 0, 0
        return whole
