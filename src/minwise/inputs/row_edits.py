"""Edits of kept rows: pieces that are cut out of their texts, and columns that are added to them.

A source applies them while it copies its kept rows; all other bytes of a row, or all other values of a table, stay as
they are. Offsets count code points of the text as the search read it. Several text columns are joined by a line break
there, as are the strings of a list; the break itself is never removed.

The texts of consecutive rows lie on one line of code points, each part of a text after a break. A cut is a range of the
line; what it removes of each part follows from where the part begins. Bytes are found by the kernel, without decoding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import join_bytes
from minwise._internal.sorted_arrays import distinct
from minwise.errors import ConfigError, InputError
from minwise.inputs.source import Columns, RowMask, Source, UnreadableError

__all__ = [
    "GROUP_ROWS",
    "Cuts",
    "EditedRows",
    "Offsets",
    "RowEditor",
    "RowEdits",
    "Spans",
    "TextParts",
    "check_added",
    "check_cuts_possible",
    "cut_text",
    "kept_bytes",
    "kept_numbered",
    "line_begins",
    "remove_spans",
    "row_spans",
]

# Rows, and bytes of them, that are edited at a time: enough to make the calls cheap, little to hold.
GROUP_ROWS, GROUP_BYTES = 4096, 1 << 22

Offsets = NDArray[np.int64]
# Start and end of each range of bytes: two columns.
Spans = NDArray[np.int64]
Row = TypeVar("Row")


class EditedRows(NamedTuple):
    """Edits of some rows.

    Attributes:
        cut_rows: Number of the row in the source, of each cut; ascending, rows may repeat.
        cut_starts: First code point of each cut in the text as the search read it.
        cut_ends: One past the last; the cuts of a row are ascending and disjoint.
        values: For each added column, the value for each requested row.
    """

    cut_rows: NDArray[np.int64]
    cut_starts: NDArray[np.int64]
    cut_ends: NDArray[np.int64]
    values: list[pa.Array]


class RowEdits(Protocol):
    """Edits of the kept rows of one source. Plain data that can be pickled: tasks of Spark apply it."""

    @property
    def text(self) -> tuple[str, ...]:
        """The text columns."""

    @property
    def added(self) -> pa.Schema:
        """The added columns, at the end of each row; empty if there are none."""

    def of_rows(self, rows: NDArray[np.int64]) -> EditedRows:
        """Return the edits of kept rows, given by ascending numbers; later calls have later rows."""


def check_cuts_possible(columns: Columns, setting: str) -> None:
    """Raise :class:`~minwise.errors.ConfigError` if nothing can be cut out of the texts that are read.

    Args:
        columns: The columns that a search reads.
        setting: What asks for the cuts, as the caller gave it, such as ``action='cut'``.
    """
    if columns.html:
        raise ConfigError(f"{setting} needs texts, got html=True, which reads only the visible text of pages")
    if columns.elements is not None:
        raise ConfigError(f"{setting} needs texts, got sets or records, which have none to cut")
    if len(set(columns.text)) < len(columns.text):
        raise ConfigError(f"{setting} needs different text columns, got {', '.join(columns.text)}")


def check_added(source: Source, added: pa.Schema) -> None:
    """Raise :class:`~minwise.errors.ConfigError` if columns cannot be added to the rows of a source.

    The columns of JSON are those of its first objects; an object that has one later ends the copy.
    """
    try:
        names = source.column_names()
    except UnreadableError:  # reading the rows reports it
        return
    where = f"{source.name}: " if source.name else ""
    if names is None and added.names:
        rule = f"{where}cannot get a column {added.names[0]!r}: its rows are texts or sets without columns"
        raise ConfigError(f"{rule}; leave it out, or give them as a table")
    for name in added.names:
        if name in (names or ()):
            raise ConfigError(f"{where}has a column {name!r} already; rename it, since the output has one of that name")


class Cuts(NamedTuple):
    """Ranges of code points that are cut out of texts.

    Attributes:
        texts: Number of the text of each cut; ascending.
        starts: First code point of each cut in its text.
        ends: One past the last.
    """

    texts: NDArray[np.int64]
    starts: Offsets
    ends: Offsets

    @classmethod
    def of_rows(cls, edited: EditedRows, rows: NDArray[np.int64]) -> "Cuts":
        """Return the cuts of requested rows, of which the texts have the numbers from 0."""
        return cls(np.searchsorted(rows, edited.cut_rows), edited.cut_starts, edited.cut_ends)

    def of_text(self, text: int) -> "Cuts | None":
        """Return the cuts of one text, which then has the number 0; None if it has none."""
        first, stop = np.searchsorted(self.texts, [text, text + 1]).tolist()
        return (
            None
            if first == stop
            else Cuts(self.texts[first:stop] - text, self.starts[first:stop], self.ends[first:stop])
        )

    def on_line(self, begins: Offsets, ends: Offsets) -> "Cuts":
        """Return the cuts on the line, given where each text begins and ends; the numbers of texts are kept.

        Raises:
            InputError: If a cut ends after its text.
        """
        starts, stops = begins[self.texts] + self.starts, begins[self.texts] + self.ends
        if (stops > ends[self.texts]).any():
            raise InputError("a text is shorter than the cuts in it: did the input change?")
        return Cuts(self.texts, starts, stops)

    def of_parts(self, begins: Offsets, lengths: Offsets) -> "Cuts":
        """Return cuts on the line as cuts of its parts, given where each part begins and how long it is."""
        ends = begins + lengths
        first = np.searchsorted(ends, self.starts, side="right")
        counts = np.maximum(np.searchsorted(begins, self.ends, side="left") - first, 0)
        cuts = np.repeat(np.arange(len(counts)), counts)
        parts = first[cuts] + np.arange(len(cuts)) - (np.cumsum(counts) - counts)[cuts]
        starts = np.maximum(self.starts[cuts], begins[parts]) - begins[parts]
        stops = np.minimum(self.ends[cuts], ends[parts]) - begins[parts]
        some = stops > starts
        return Cuts(parts[some], starts[some], stops[some])


class TextParts(NamedTuple):
    """Parts of texts in one buffer.

    Attributes:
        data: The bytes.
        starts: Offset in the bytes at which each part starts.
        ends: Offset at which it ends.
        texts: Number of the text of each part, ascending: every text from 0 on has at least one.
        escaped: Whether the parts are strings of JSON, without their quotation marks.
    """

    data: NDArray[np.uint8]
    starts: Offsets
    ends: Offsets
    texts: NDArray[np.int64]
    escaped: bool

    def lengths(self) -> Offsets:
        """Return the code points of each part."""
        return _kernel.text_lengths(self.data, self.starts, self.ends, self.escaped)

    def spans(self, cuts: Cuts) -> Spans:
        """Return the bytes of the cuts of parts."""
        numbers, points = np.repeat(cuts.texts, 2), np.stack([cuts.starts, cuts.ends], axis=1).reshape(-1)
        found = _kernel.text_offsets(self.data, self.starts, self.ends, numbers, points, self.escaped)
        return found.reshape(-1, 2)


def line_begins(lengths: Offsets) -> Offsets:
    """Return where each part begins on a line on which a break follows each."""
    ends: Offsets = np.cumsum(lengths + 1)
    return ends - (lengths + 1)


def _removed_spans(parts: TextParts, cuts: Cuts) -> Spans:
    """Return the bytes to remove for cuts in texts, in ascending order."""
    lengths = parts.lengths()
    begins = line_begins(lengths)
    first = np.flatnonzero(np.diff(parts.texts, prepend=-1))
    last = np.append(first[1:], len(begins)) - 1
    line = cuts.on_line(begins[first], begins[last] + lengths[last])
    spans = parts.spans(line.of_parts(begins, lengths))
    return spans[np.argsort(spans[:, 0], kind="stable")]


def row_spans(
    rows: Sequence[bytes], cuts: Cuts, parts_of: Callable[[int], list[tuple[int, int]]], *, escaped: bool = False
) -> dict[int, Spans]:
    """Return the bytes to remove of each row that has cuts.

    Args:
        rows: The rows.
        cuts: The cuts, by index of the row.
        parts_of: Returns where the parts of the text of a row are, in the order of the text.
        escaped: Whether the parts are strings of JSON.
    """
    changed = distinct(cuts.texts)
    indices: list[int] = changed.tolist()
    if not indices:
        return {}
    offsets, data = join_bytes([rows[index] for index in indices])
    found = [parts_of(index) for index in indices]
    owners = np.repeat(np.arange(len(found)), [len(parts) for parts in found])
    places = np.array(list(chain.from_iterable(found)), dtype=np.int64) + offsets[owners][:, np.newaxis]
    starts, ends = np.ascontiguousarray(places.T)
    parts = TextParts(np.frombuffer(data, dtype=np.uint8), starts, ends, owners, escaped)
    spans = _removed_spans(parts, cuts._replace(texts=np.searchsorted(changed, cuts.texts)))
    bounds = np.searchsorted(spans[:, 0], offsets).tolist()
    divided = [spans[start:stop] - offset for (start, stop), offset in zip(pairwise(bounds), offsets, strict=False)]
    return dict(zip(indices, divided, strict=True))


def remove_spans(data: bytes | memoryview, spans: Spans, start: int = 0, end: int | None = None) -> bytes:
    """Return the bytes from ``start`` to ``end`` without ascending spans, which are offsets in all bytes."""
    edges = [start, *spans.reshape(-1).tolist(), len(data) if end is None else end]
    return b"".join([data[begin:stop] for begin, stop in zip(edges[::2], edges[1::2], strict=True)])


def cut_text(text: bytes, cuts: Cuts) -> bytes:
    """Return one text without its cuts."""
    return remove_spans(text, row_spans([text], cuts, lambda _: [(0, len(text))])[0])


class RowEditor(ABC, Generic[Row]):
    """Applies edits to the rows of a format without a schema, several at a time."""

    def __init__(self, edits: RowEdits) -> None:
        self.edits = edits

    @abstractmethod
    def size_of(self, row: Row) -> int:
        """Return the bytes of a row in the file."""

    @abstractmethod
    def edited(self, rows: list[Row], edits: EditedRows, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the bytes of rows, of which the numbers are given, with their edits."""

    def edit(self, rows: Iterable[tuple[int, Row]]) -> Iterator[bytes]:
        """Yield the bytes of numbered rows with their edits.

        A row of more than ``GROUP_BYTES`` ends a group, so that it is not held while the next one is read.
        """
        held: list[Row] = []
        numbers: list[int] = []
        room = GROUP_BYTES
        for number, row in rows:
            held.append(row)
            numbers.append(number)
            room -= self.size_of(row)
            del row
            if room <= 0 or len(held) == GROUP_ROWS:
                yield from self._edit_group(held, numbers)
                held, numbers, room = [], [], GROUP_BYTES
        yield from self._edit_group(held, numbers)

    def _edit_group(self, rows: list[Row], numbers: list[int]) -> Iterator[bytes]:
        if not rows:
            return iter(())
        wanted = np.array(numbers, dtype=np.int64)
        return self.edited(rows, self.edits.of_rows(wanted), wanted)


def kept_bytes(rows: Iterable[object], keep: RowMask, editor: RowEditor[bytes] | None) -> Iterator[bytes]:
    """Yield the kept ones of all rows, with their edits; what is not bytes is a row that cannot be used.

    ``map`` holds no row while the next one is read, unlike a generator.
    """
    kept = kept_numbered(map(_usable, rows), keep)
    return map(itemgetter(1), kept) if editor is None else editor.edit(kept)


def _usable(row: object) -> bytes | None:
    return row if isinstance(row, bytes) else None


def kept_numbered(rows: Iterable[Row | None], keep: RowMask) -> Iterator[tuple[int, Row]]:
    """Yield the kept ones of all rows with their numbers; None is a row that cannot be used."""
    following = iter(rows)
    for number, kept in enumerate(keep.tolist()):  # zip would hold a row while the next one is read
        row = next(following, None)
        if kept and row is not None:
            yield number, row
        del row  # before the next one is read, as both may be large
