"""In-memory view of an index: open segments, recent postings and removals, refreshed from the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import FormatError
from minwise.index.database import DATABASE, REMEDY, check_regular
from minwise.index.records import content_of, decode_keys
from minwise.index.store import SegmentFile, State, Store

__all__ = [
    "ATTEMPTS",
    "FINGERPRINT_ROW",
    "REMOVED_NUMBERS",
    "SETTINGS_ROW",
    "STATE_ROW",
    "Candidates",
    "View",
    "translate_damage",
]

# Rows of the manifest.
SETTINGS_ROW, STATE_ROW, FINGERPRINT_ROW = 0, 1, 2
# Document numbers that one row of ``removed`` covers, one bit each.
REMOVED_NUMBERS = 1 << 15
# Number of set bits in each byte value.
SET_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.uint8)
# How often a reader retries when the writer merged a segment before the reader opened it.
ATTEMPTS = 20


class Candidates(NamedTuple):
    """The documents that share a bucket with a query: those that share the most first, then in order of addition.

    Attributes:
        numbers: The document numbers.
        shared: The number of buckets that each shares with the query.
        capped: The number of buckets that were not read to their end.
        left_out: The number of candidates beyond the requested number.
    """

    numbers: NDArray[np.uint32]
    shared: NDArray[np.uint16]
    capped: int
    left_out: int

    def without(self, number: int) -> "Candidates":
        """Return the candidates without one document."""
        others = self.numbers != number
        return self._replace(numbers=self.numbers[others], shared=self.shared[others])


class View:
    """The index as of the last refresh.

    Attributes:
        state: The state that the view shows.
        recent: The keys of documents that are not in segments yet: blocks with the number of their first document.
        removed: One bit per document number, the lowest first; numbers beyond its end are not removed.
        bands: The number of band keys of each document.
    """

    def __init__(self, store: Store, bands: int, cache_bytes: int) -> None:
        self._store = store
        self._folder = store.folder
        self.bands = bands
        self.state = State()
        self._postings = _kernel.Postings(bands, cache_bytes)
        self.recent: list[tuple[int, NDArray[np.uint64]]] = []
        self.removed = np.zeros(0, dtype=np.uint8)
        self._state_content = b""

    # Refreshing

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show one state, with all earlier commits, for the duration of the block, in memory and in the database."""
        self._store.check_usable()
        for attempt in range(ATTEMPTS):
            with self._store.snapshot():
                try:
                    self.refresh()
                except FileNotFoundError as error:  # merged in the meantime: the next state names its replacement
                    if attempt + 1 < ATTEMPTS:
                        continue
                    raise FormatError(f"{error.filename}: the segment is missing; {REMEDY}") from None
                with translate_damage():
                    yield
                return

    def refresh(self) -> None:
        """Load the commits since the last refresh."""
        content = self._store.content("manifest", STATE_ROW)
        if content == self._state_content:
            return
        try:
            self._load(content)
        except BaseException:  # a part of it may be in memory
            self.invalidate()
            raise

    def _load(self, content: bytes) -> None:
        try:
            state = State.decode(content)
        except FormatError as error:
            raise FormatError(f"{self._folder / DATABASE}: {error}") from None
        self._store.check_commits(state.commit)
        if state.segments != self.state.segments or not self._state_content:
            state = self._load_segments(state)
        self._load_recent(state)
        if state.next - state.documents != self.state.next - self.state.documents or not self._state_content:
            self._load_removed(state)
        self.state, self._state_content = state, content

    def _load_segments(self, state: State) -> State:
        """Open the segments of a state, and return it with the sizes and checksums that a state of version 1 lacks."""
        self._open_segments(state)
        opened = zip(state.segments, self._postings.segments(), strict=True)
        return replace(state, segments=tuple(self._check_identity(segment, actual) for segment, actual in opened))

    def _open_segments(self, state: State) -> None:
        paths = [self._folder / segment.name for segment in state.segments]
        for path in paths:
            check_regular(path)
        with translate_damage():
            self._postings.set_segments([str(path) for path in paths])

    def _check_identity(self, segment: SegmentFile, actual: tuple[int, int, int, int, int]) -> SegmentFile:
        """Check that the open file is the one that the state describes."""
        *_, size, trailer = actual
        known = replace(segment, bytes=size, trailer=trailer) if segment.trailer is None else segment
        expected = (known.low, known.high, known.postings, known.bytes, known.trailer)
        if actual != expected:
            rule = "documents from, to below, postings, bytes and checksum must be"
            path = self._folder / segment.name
            raise FormatError(f"{path}: {rule} {expected}, got {actual}: it is another segment; {REMEDY}")
        return known

    def _load_recent(self, state: State) -> None:
        first = self.state.next
        if state.flushed != self.state.flushed or not self._state_content:
            self.clear_recent()
            first = state.flushed
        for number, record in self._store.checked_rows("recent", first):
            with self._store.decoding("recent", number):
                keys = decode_keys(content_of(record))
            if number != first or keys.shape[1] != 1 + self.bands:
                break
            self.add_recent(number, keys)
            first += len(keys)
        if first != state.next:
            path = self._folder / DATABASE
            raise FormatError(f"{path}: recent: the keys of document {first} are missing; {REMEDY}")

    def _load_removed(self, state: State) -> None:
        bits = np.zeros(-(-state.next // REMOVED_NUMBERS) * REMOVED_NUMBERS // 8, dtype=np.uint8)
        for number, record in self._store.checked_rows("removed"):
            row = np.frombuffer(content_of(record), dtype=np.uint8)
            with self._store.decoding("removed", number):
                _check_bitmap(number, len(row), len(bits))
            bits[number // 8 : number // 8 + len(row)] = row
        removed, expected = int(SET_BITS[bits].sum(dtype=np.int64)), state.next - state.documents
        if removed != expected:
            path = self._folder / DATABASE
            raise FormatError(f"{path}: removed: {expected} documents are removed, {removed} are marked; {REMEDY}")
        self.removed = bits
        self._postings.set_removed(bits)

    def invalidate(self) -> None:
        """Discard the state, so that the next refresh loads everything."""
        self._state_content, self.state, self.recent = b"", State(), []

    # Reading

    def candidates(self, keys: NDArray[np.uint64], max_bucket: int, most: int, threads: int) -> Iterator[Candidates]:
        """Yield the candidates of each query.

        Args:
            keys: The band keys, one row per query.
            max_bucket: The number of members that count in a bucket, the first in order of addition.
            most: The maximum number of candidates per query.
            threads: The number of threads; 0 for all cores.
        """
        offsets, numbers, shared, capped, left_out = self._postings.candidates(keys, max_bucket, most, threads)
        for row, (start, end) in enumerate(pairwise(offsets.tolist())):
            yield Candidates(numbers[start:end], shared[start:end], int(capped[row]), int(left_out[row]))

    def find_ids(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the documents with these id hashes: the offset of each hash, and the document numbers."""
        return self._postings.holders(hashes)

    def removed_mask(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return which of ``count`` documents from ``first`` are removed."""
        numbers = np.arange(first, first + count)
        bits = np.zeros(count, dtype=np.uint8)
        known = numbers // 8 < len(self.removed)
        bits[known] = self.removed[numbers[known] // 8] >> (numbers[known] % 8) & 1
        return bits.view(np.bool_)

    def are_removed(self, low: int, high: int) -> bool:
        """Return whether all documents from ``low`` to below ``high`` are removed."""
        starts = range(low, high, REMOVED_NUMBERS)
        return all(self.removed_mask(start, min(REMOVED_NUMBERS, high - start)).all() for start in starts)

    def segment_paths(self) -> list[Path]:
        """Return the files of postings."""
        return [self._folder / segment.name for segment in self.state.segments]

    def segment_bytes(self) -> list[int]:
        """Return the size of each segment file."""
        return [size for *_, size, _ in self._postings.segments()]

    def check_segment(self, position: int) -> str | None:
        """Read a whole segment and return a description of its damage, or None."""
        return self._postings.check_segment(position, self.state.segments[position].blocks)

    def merge_segments(self, first: int, last: int, path: str) -> tuple[int, int, int, int]:
        """Write one segment of some open ones without removed documents; return its postings, size and checksums."""
        return self._postings.merge_segments(first, last, path, self.removed)

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory held by postings."""
        return self._postings.resident_bytes

    # Following the commits of the writer

    @property
    def state_content(self) -> bytes:
        """The state row as the database holds it."""
        return self._state_content

    def set_state(self, state: State, content: bytes) -> None:
        """Set the state that the writer of this process has committed; the writer updates postings itself."""
        self.state, self._state_content = state, content

    def reopen_segments(self) -> None:
        """Open the segments of the current state; on failure the next refresh tries again, and raises."""
        try:
            self._open_segments(self.state)
        except (OSError, FormatError):
            self.invalidate()

    def push(self, first: int, keys: NDArray[np.uint64]) -> None:
        """Add the postings of documents that are not committed yet."""
        self._postings.push(first, keys)

    def add_recent(self, first: int, keys: NDArray[np.uint64], *, pushed: bool = False) -> None:
        """Add committed documents that are not in a segment; ``pushed`` if :meth:`push` has added their postings."""
        if not pushed:
            self.push(first, keys)
        self.recent.append((first, keys))

    def clear_recent(self) -> None:
        """Drop the postings of documents that are not in a segment."""
        self._postings.forget_recent()
        self.recent = []

    def hide(self, number: int) -> None:
        """Exclude a document from searches before its removal is committed."""
        self._postings.remove(np.array([number], dtype=np.uint32))

    def mark_removed(self, numbers: NDArray[np.uint32]) -> None:
        """Mark documents as removed."""
        if not len(numbers):
            return
        offsets, bits = numbers // 8, np.left_shift(1, numbers % 8).astype(np.uint8)
        size = int(offsets.max()) + 1
        if size > len(self.removed):
            self.removed = np.concatenate([self.removed, np.zeros(size - len(self.removed), dtype=np.uint8)])
        np.bitwise_or.at(self.removed, offsets, bits)
        self._postings.remove(numbers)


def _check_bitmap(number: int, size: int, known: int) -> None:
    """Check number and size of a row of ``removed``; ``known`` is the size of all bitmaps together."""
    if number % REMOVED_NUMBERS or size != REMOVED_NUMBERS // 8 or number // 8 >= known:
        rule = f"a bitmap must have {REMOVED_NUMBERS // 8} bytes and a number that is a multiple of {REMOVED_NUMBERS}"
        raise ValueError(f"{rule} below {8 * known}, got {size} bytes and number {number}")


@contextmanager
def translate_damage() -> Iterator[None]:
    """Translate the kernel's damage errors into ``FormatError``."""
    try:
        yield
    except _kernel.DamagedError as error:
        path, description = error.args
        raise FormatError(f"{path}: {description}; {REMEDY}") from None
