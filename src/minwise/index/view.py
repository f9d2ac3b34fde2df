"""View: what is in memory of an index: open segments, recent postings, removals. It follows the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import FormatError
from minwise.index.database import DATABASE, REMEDY
from minwise.index.records import content_of, read_keys
from minwise.index.store import State, Store

__all__ = ["ATTEMPTS", "FINGERPRINT_ROW", "REMOVED_NUMBERS", "SETTINGS_ROW", "STATE_ROW", "View", "naming_damage"]

# Rows of the manifest.
SETTINGS_ROW, STATE_ROW, FINGERPRINT_ROW = 0, 1, 2
# Numbers that one row of ``removed`` covers, a bit each.
REMOVED_NUMBERS = 1 << 15
# Bits that are set in each byte.
SET_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.uint8)
# How often a reader looks again when a segment was merged away under it.
ATTEMPTS = 20


class View:
    """The index as of the last look.

    Attributes:
        state: The state that was seen.
        postings: Buckets and ids of all documents.
        recent: The keys of documents that are not in segments yet, block by block, with the number of each first.
        removed: A bit per number, the lowest first; numbers beyond it are there.
        bands: Keys of each document.
    """

    def __init__(self, store: Store, bands: int, cache_bytes: int) -> None:
        self._store = store
        self._folder = store.folder
        self.bands = bands
        self.state = State()
        self.postings = _kernel.Postings(bands, cache_bytes)
        self.recent: list[tuple[int, NDArray[np.uint64]]] = []
        self.removed = np.zeros(0, dtype=np.uint8)
        self._seen = b""

    @contextmanager
    def current(self) -> Iterator[None]:
        """One state of the index, in memory and in the database, with everything committed before."""
        self._store.refuse_elsewhere()
        for attempt in range(ATTEMPTS):
            with self._store.snapshot():
                try:
                    self.follow()
                except FileNotFoundError as error:  # merged away since: the next look sees what took its place
                    if attempt + 1 < ATTEMPTS:
                        continue
                    raise FormatError(f"{error.filename}: the segment is missing; {REMEDY}") from None
                with naming_damage():
                    yield
                return

    def follow(self) -> None:
        """Takes in what has been committed since the last look."""
        content = self._store.content("manifest", STATE_ROW)
        if content == self._seen:
            return
        try:
            self._follow(content)
        except BaseException:  # half of it may be in memory
            self.forget()
            raise

    def _follow(self, content: bytes) -> None:
        try:
            state = State.decode(content)
        except FormatError as error:
            raise FormatError(f"{self._folder / DATABASE}: {error}") from None
        self._store.refuse_lost_commits(state.commit)
        if state.segments != self.state.segments or not self._seen:
            self._open_segments(state)
        self._follow_recent(state)
        if state.next - state.documents != self.state.next - self.state.documents or not self._seen:
            self._load_removed(state)
        self.state, self._seen = state, content

    def _open_segments(self, state: State) -> None:
        paths = [self._folder / segment.name for segment in state.segments]
        with naming_damage():
            self.postings.set_segments([str(path) for path in paths])
        for path, segment, found in zip(paths, state.segments, self.postings.segments(), strict=True):
            expected = (segment.low, segment.high, segment.postings)
            if found[:3] != expected:
                rule = "documents from, to below, and postings must be"
                raise FormatError(f"{path}: {rule} {expected}, got {found[:3]}: it is another segment; {REMEDY}")

    def forget(self) -> None:
        """Takes nothing in memory for granted: the next look is a first one."""
        self._seen, self.state, self.recent = b"", State(), []

    @property
    def seen(self) -> bytes:
        """The state that was seen, as it stands in the database."""
        return self._seen

    def saw(self, state: State, content: bytes) -> None:
        """Notes a state that its writer has just committed, and brings about itself."""
        self.state, self._seen = state, content

    def _follow_recent(self, state: State) -> None:
        first = self.state.next
        if state.flushed != self.state.flushed or not self._seen:
            self.postings.forget_recent()
            self.recent, first = [], state.flushed
        for number, record in self._store.checked_rows("recent", first):
            keys = read_keys(content_of(record))
            if number != first or keys.shape[1] != 1 + self.bands:
                break
            self.take_recent(number, keys)
            first += len(keys)
        if first != state.next:
            path = self._folder / DATABASE
            raise FormatError(f"{path}: recent: the keys of document {first} are missing; {REMEDY}")

    def take_recent(self, first: int, keys: NDArray[np.uint64], *, pushed: bool = False) -> None:
        """Adds the postings of documents that are not in a segment, unless they have been pushed one by one."""
        if not pushed:
            self.postings.push(first, keys)
        self.recent.append((first, keys))

    def are_removed(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of some documents in a row are removed."""
        numbers = np.arange(first, first + count)
        bits = np.zeros(count, dtype=np.uint8)
        known = numbers // 8 < len(self.removed)
        bits[known] = self.removed[numbers[known] // 8] >> (numbers[known] % 8) & 1
        return bits.view(np.bool_)

    def _load_removed(self, state: State) -> None:
        bits = np.zeros(-(-state.next // REMOVED_NUMBERS) * REMOVED_NUMBERS // 8, dtype=np.uint8)
        for number, record in self._store.checked_rows("removed"):
            marked = np.frombuffer(content_of(record), dtype=np.uint8)
            bits[number // 8 : number // 8 + len(marked)] = marked
        removed, expected = int(SET_BITS[bits].sum(dtype=np.int64)), state.next - state.documents
        if removed != expected:
            path = self._folder / DATABASE
            raise FormatError(f"{path}: removed: {expected} documents are removed, {removed} are marked; {REMEDY}")
        self.removed = bits
        self.postings.set_removed(bits)

    def mark_removed(self, numbers: NDArray[np.uint32]) -> None:
        """Takes in that documents are removed."""
        if not len(numbers):
            return
        places, bits = numbers // 8, np.left_shift(1, numbers % 8).astype(np.uint8)
        room = int(places.max()) + 1
        if room > len(self.removed):
            self.removed = np.concatenate([self.removed, np.zeros(room - len(self.removed), dtype=np.uint8)])
        np.bitwise_or.at(self.removed, places, bits)
        self.postings.remove(numbers)

    def segment_paths(self) -> list[Path]:
        """The files of postings."""
        return [self._folder / segment.name for segment in self.state.segments]


@contextmanager
def naming_damage() -> Iterator[None]:
    """Turns what the kernel finds damaged into our error."""
    try:
        yield
    except _kernel.DamagedError as error:
        path, what = error.args
        raise FormatError(f"{path}: {what}; {REMEDY}") from None
