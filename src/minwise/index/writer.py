"""Writer: changes in; durable rows, segments and a new state out. Nobody but the one writer comes here."""

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import FormatError, InputError
from minwise.index.database import sync
from minwise.index.records import DocumentColumns, encode_keys, seal
from minwise.index.store import SegmentFile, State, Store
from minwise.index.view import REMOVED_NUMBERS, STATE_ROW, View, naming_damage
from minwise.search.bands import NO_KEY

__all__ = ["FANOUT", "FLUSH_DOCUMENTS", "MAX_DOCUMENTS", "Change", "Gone", "Writer"]

# Recent documents from which on their postings go into a segment: 3.5 MB of keys that an opening reads, with 26 bands.
FLUSH_DOCUMENTS = 1 << 14
# Adjacent segments of about the same size that are merged into one: a posting is written about log₄ times.
FANOUT = 4
# Documents are numbered in 32 bits, and the last number stands for nobody.
MAX_DOCUMENTS = 2**32 - 2
SEGMENT = "segment-{:08}.post"


@dataclass(frozen=True, slots=True)
class Gone:
    """A document that is taken away: its number, and the checksums of its rows."""

    number: int
    checksums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What one call does to an index.

    Attributes:
        documents: New documents, in order.
        texts: Their texts, as many or none.
        keys: For each new document the hash of its id and the keys of its bands.
        gone: Documents that are taken away, perhaps some of the new ones.
    """

    documents: DocumentColumns
    texts: list[bytes]
    keys: NDArray[np.uint64]
    gone: list[Gone]

    @classmethod
    def removal(cls, gone: list[Gone]) -> "Change":
        """Nothing but documents that are taken away."""
        return cls(DocumentColumns([], [], [], []), [], np.empty((0, 0), dtype=np.uint64), gone)

    def __bool__(self) -> bool:
        return bool(len(self.keys) or self.gone)


class Writer:
    """Makes changes durable, and keeps the segments few."""

    def __init__(self, store: Store, view: View) -> None:
        self._store = store
        self._view = view
        self._folder = store.folder
        self._not_merged: tuple[SegmentFile, ...] | None = None
        self._forget_leftovers()

    def _forget_leftovers(self) -> None:
        """Deletes what a writer that was cut short left: segments that no state names."""
        named = set(self._view.segment_paths())
        for path in self._folder.glob("segment-*.post"):
            if path not in named and re.fullmatch(r"segment-\d{8,}\.post", path.name):
                path.unlink()

    def commit(self, change: Change, *, pushed: bool = False) -> None:
        """Makes a change durable, all of it or nothing; then merges what is due.

        Args:
            change: What is to be written.
            pushed: Whether the postings of new documents are in memory already.
        """
        if not change:
            return
        state, view = self._view.state, self._view
        first, count = state.next, len(change.keys)
        if first + count > MAX_DOCUMENTS:
            raise InputError(f"an index takes at most {MAX_DOCUMENTS} documents, got {first + count}")
        rows, digest = change.documents.seal(first)
        texts, text_digest = seal(first, change.texts)
        gone = np.array([one.number for one in change.gone], dtype=np.uint32)
        taken = sum((one.number << 32) + checksum for one in change.gone for checksum in one.checksums)
        new = replace(
            state,
            next=first + count,
            documents=state.documents + count - len(gone),
            digest=(state.digest + digest + text_digest - taken) % 2**64,
        )

        def write() -> None:
            self._store.insert("documents", first, rows)
            self._store.insert("texts", first, texts)
            if len(gone):
                self._mark_gone(gone)

        blocks = [*view.recent, *([(first, change.keys)] if count else [])]
        if new.next - state.flushed >= FLUSH_DOCUMENTS:
            self._flush(new, blocks, write)
        else:
            self._append(new, change.keys, write, pushed=pushed)
        view.mark_removed(gone)
        self._merge_what_is_due()

    def _mark_gone(self, numbers: NDArray[np.uint32]) -> None:
        """Deletes the rows of documents, and notes that they are removed."""
        for table in ("documents", "texts"):
            self._store.delete(table, numbers.tolist())
        for number, bits in _marked(self._view.removed, numbers):
            self._store.put("removed", number, bits)

    def _append(self, new: State, keys: NDArray[np.uint64], write: Callable[[], None], *, pushed: bool) -> None:
        """Commits with the new keys as a row of ``recent``."""
        first = new.next - len(keys)

        def write_keys() -> None:
            write()
            if len(keys):
                self._store.put("recent", first, encode_keys(keys))

        self._save(new, write_keys)
        if len(keys):
            self._view.take_recent(first, keys, pushed=pushed)

    def flush(self) -> None:
        """Moves recent postings into a segment."""
        if self._view.recent:
            self._flush(self._view.state, self._view.recent, lambda: None)
            self._merge_what_is_due()

    def _flush(self, new: State, blocks: Sequence[tuple[int, NDArray[np.uint64]]], write: Callable[[], None]) -> None:
        """Commits with all recent keys, and new ones, in a segment."""
        low, high = new.flushed, new.next
        alive = [(first, self._without_removed(first, keys)) for first, keys in blocks]
        name, postings = self._new_segment(lambda path: _kernel.write_segment(path, alive, low, high))
        segments = (*new.segments, SegmentFile(name, low, high, postings))

        def write_all() -> None:
            write()
            self._store.clear("recent")

        self._save(replace(new, flushed=high, segments=segments, next_segment=new.next_segment + 1), write_all)
        self._view.postings.forget_recent()
        self._view.recent = []
        self._open_segments()

    def _without_removed(self, first: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The keys of documents, none for those that are removed."""
        removed = self._view.are_removed(first, len(keys))
        return np.where(removed[:, None], np.uint64(NO_KEY), keys) if removed.any() else keys

    def compact(self) -> None:
        """Leaves one segment without postings of removed documents, and no free room in the database."""
        self.flush()
        self._view.follow()
        segments = self._view.state.segments
        if len(segments) > 1 or (segments and self._view.removed.any()):
            self._merge(0, len(segments))
        self._store.shrink()

    def _merge_what_is_due(self) -> None:
        """Merges the newest segments while there are four of about a size.

        What was to be durable is, so a merge that fails is no failure: it is tried again with the next segment.
        """
        while (first := due(self._view.state.segments)) is not None:
            segments = self._view.state.segments
            if segments == self._not_merged:
                return
            try:
                self._merge(first, len(segments))
            except (OSError, FormatError):
                self._not_merged = segments
                return

    def _merge(self, first: int, last: int) -> None:
        """Commits with some adjacent segments as one; then deletes their files."""
        state = self._view.state
        merged = state.segments[first:last]
        inputs = [str(self._folder / segment.name) for segment in merged]
        name, postings = self._new_segment(lambda path: _kernel.merge_segments(inputs, path, self._view.removed))
        segment = SegmentFile(name, merged[0].low, merged[-1].high, postings)
        segments = (*state.segments[:first], segment, *state.segments[last:])
        self._save(replace(state, segments=segments, next_segment=state.next_segment + 1), lambda: None)
        self._open_segments()
        for path in inputs:
            with suppress(OSError):  # the next writer deletes what stays
                Path(path).unlink()

    def _new_segment(self, write: Callable[[str], int]) -> tuple[str, int]:
        """Writes the next segment, on disk when it returns: its name, and how many postings it has.

        A file that does not become part of the index is left to the next segment of the same name, or to the next
        writer: only they can tell that no commit names it.
        """
        self._store.refuse_if_stopped()
        path = self._folder / SEGMENT.format(self._view.state.next_segment)
        path.unlink(missing_ok=True)
        try:
            with naming_damage():
                postings = write(str(path))
            sync(path)
            sync(self._folder)
        except BaseException as error:
            self._store.stop_after(error)
            path.unlink(missing_ok=True)
            raise
        return path.name, postings

    def _save(self, new: State, write: Callable[[], None]) -> None:
        """Commits rows and the state that belongs to them."""
        new = replace(new, commit=new.commit + 1)
        content = new.encode()
        with self._store.transaction(new.commit):
            if self._store.content("manifest", STATE_ROW) != self._view.seen:  # where a lock is no lock
                raise OSError(
                    errno.EBUSY, "another process has written; one process writes at a time", str(self._folder)
                )
            write()
            self._store.put("manifest", STATE_ROW, content)
        self._view.saw(new, content)

    def _open_segments(self) -> None:
        """Opens what a commit has made part of the index; if that fails the next look tries again, and tells."""
        try:
            with naming_damage():
                self._view.postings.set_segments([str(path) for path in self._view.segment_paths()])
        except (OSError, FormatError):
            self._view.forget()


def due(segments: Sequence[SegmentFile]) -> int | None:
    """Where the newest segments begin that are to be merged: four of one level, and smaller ones among and behind them.

    A segment of level l has at least 4ˡ/2 postings and less than 2·4ˡ, so that four of them make one of a higher level.
    """
    levels = [segment.postings.bit_length() // 2 for segment in segments]
    for level in sorted(set(levels)):
        first = next((place for place in range(len(levels), 0, -1) if levels[place - 1] > level), 0)
        if levels[first:].count(level) >= FANOUT:
            return first
    return None


def _marked(removed: NDArray[np.uint8], numbers: NDArray[np.uint32]) -> Iterator[tuple[int, bytes]]:
    """The rows of ``removed`` that change when these numbers are marked too."""
    for first in sorted(set((numbers // REMOVED_NUMBERS * REMOVED_NUMBERS).tolist())):
        known = removed[first // 8 : (first + REMOVED_NUMBERS) // 8]
        bits = np.zeros(REMOVED_NUMBERS // 8, dtype=np.uint8)
        bits[: len(known)] = known
        places = numbers[numbers // REMOVED_NUMBERS * REMOVED_NUMBERS == first] - first
        np.bitwise_or.at(bits, places // 8, np.left_shift(1, places % 8).astype(np.uint8))
        yield first, bits.tobytes()
