"""Writer: commits batches of changes durably, and merges segments."""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import FormatError, InputError
from minwise.index.database import file_mode, sync
from minwise.index.records import DocumentColumns, encode_keys, seal
from minwise.index.store import MAX_DOCUMENTS, SEGMENT, SEGMENT_NAME, SegmentFile, State, Store
from minwise.index.view import REMOVED_NUMBERS, SETTINGS_ROW, STATE_ROW, View, translate_damage
from minwise.search.bands import NO_KEY

__all__ = ["FANOUT", "FLUSH_DOCUMENTS", "MAX_DOCUMENTS", "RemovedDocument", "WriteBatch", "Writer"]

# Number of recent documents at which their postings move into a segment: 3.5 MB of keys that opening reads, with 26
# bands.
FLUSH_DOCUMENTS = 1 << 14
# Number of adjacent segments of similar size that are merged into one: a posting is written about log₄ times.
FANOUT = 4


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    """A document to remove.

    Attributes:
        number: The number of the document.
        checksums: The checksums of its rows, which the digest of the index no longer covers.
    """

    number: int
    checksums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """The changes of one commit.

    Attributes:
        documents: New documents, in order.
        texts: Their texts; empty if texts are not stored.
        keys: For each new document the hash of its id and its band keys.
        removed: Documents to remove, which may include new ones.
        clusters: Number and content of the rows of the manifest that assign documents to clusters.
    """

    documents: DocumentColumns
    texts: list[bytes]
    keys: NDArray[np.uint64]
    removed: list[RemovedDocument]
    clusters: Sequence[tuple[int, bytes]] = ()

    @classmethod
    def removal(cls, removed: list[RemovedDocument]) -> "WriteBatch":
        """Return a batch that only removes documents."""
        return cls(DocumentColumns([], [], [], []), [], np.empty((0, 0), dtype=np.uint64), removed)

    def __bool__(self) -> bool:
        return bool(len(self.keys) or self.removed)


class Writer:
    """Commits changes durably, and limits the number of segments by merging them.

    Args:
        store: The database, open for writing.
        view: The view of the newest state.
        upgrade: The settings row that the first commit stores, if the index is of an older format version.
    """

    def __init__(self, store: Store, view: View, upgrade: bytes | None = None) -> None:
        self._upgrade = upgrade
        self._store = store
        self._view = view
        self._folder = store.folder
        self._failed_merge: tuple[SegmentFile, ...] | None = None
        self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Delete segment files that no state names, which an interrupted writer leaves."""
        used = set(self._view.segment_paths())
        for path in self._folder.glob("segment-*.post"):
            if path not in used and SEGMENT_NAME.fullmatch(path.name) and (path.is_symlink() or path.is_file()):
                path.unlink()

    def commit(self, batch: WriteBatch, *, pushed: bool = False) -> None:
        """Make a batch durable, completely or not at all, and merge segments if enough of them have a similar size.

        Args:
            batch: The changes.
            pushed: Whether the view already has the postings of the new documents.

        Raises:
            InputError: If the index would exceed the maximum number of documents.
        """
        if not batch:
            return
        state, view = self._view.state, self._view
        first, count = state.next, len(batch.keys)
        if first + count > MAX_DOCUMENTS:
            raise InputError(f"an index takes at most {MAX_DOCUMENTS} documents, got {first + count}")
        rows, digest = batch.documents.seal(first)
        texts, text_digest = seal(first, batch.texts)
        removed = np.array([document.number for document in batch.removed], dtype=np.uint32)
        removed_digest = sum(
            (document.number << 32) + checksum for document in batch.removed for checksum in document.checksums
        )
        new = replace(
            state,
            next=first + count,
            documents=state.documents + count - len(removed),
            digest=(state.digest + digest + text_digest - removed_digest) % 2**64,
        )

        def write() -> None:
            self._store.insert("documents", first, rows)
            self._store.insert("texts", first, texts)
            if len(removed):
                self._remove_rows(removed)
            for row, content in batch.clusters:
                self._store.put("manifest", row, content)

        blocks = [*view.recent, *([(first, batch.keys)] if count else [])]
        if new.next - state.flushed >= FLUSH_DOCUMENTS:
            self._flush(new, blocks, write)
        else:
            self._append(new, batch.keys, write, pushed=pushed)
        view.mark_removed(removed)
        self._merge_similar_segments()

    def _remove_rows(self, numbers: NDArray[np.uint32]) -> None:
        """Delete the rows of documents, and set their bits in ``removed``."""
        for table in ("documents", "texts"):
            self._store.delete(table, numbers.tolist())
        for number, bits in _removed_rows(self._view.removed, numbers):
            self._store.put("removed", number, bits)

    def _append(self, new: State, keys: NDArray[np.uint64], write: Callable[[], None], *, pushed: bool) -> None:
        """Commit with the new keys as one row of ``recent``."""
        first = new.next - len(keys)

        def write_keys() -> None:
            write()
            if len(keys):
                self._store.put("recent", first, encode_keys(keys))

        self._save(new, write_keys)
        if len(keys):
            self._view.add_recent(first, keys, pushed=pushed)

    def flush(self) -> None:
        """Move recent postings into a segment."""
        if self._view.recent:
            self._flush(self._view.state, self._view.recent, lambda: None)
            self._merge_similar_segments()

    def _flush(self, new: State, blocks: Sequence[tuple[int, NDArray[np.uint64]]], write: Callable[[], None]) -> None:
        """Commit with all recent and new keys in a segment."""
        low, high = new.flushed, new.next
        live = [(first, self._without_removed(first, keys)) for first, keys in blocks]
        segment = self._new_segment(low, high, lambda path: _kernel.write_segment(path, live, low, high))
        segments = (*new.segments, segment)

        def write_all() -> None:
            write()
            self._store.clear("recent")

        self._save(replace(new, flushed=high, segments=segments, next_segment=new.next_segment + 1), write_all)
        self._view.clear_recent()
        self._view.reopen_segments()

    def _without_removed(self, first: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the keys of documents, with ``NO_KEY`` for removed ones."""
        removed = self._view.removed_mask(first, len(keys))
        return np.where(removed[:, None], np.uint64(NO_KEY), keys) if removed.any() else keys

    def compact(self) -> None:
        """Merge all segments into one without removed documents, and release free space of the database."""
        self.flush()
        self._view.refresh()
        self.drop_removed_segments()
        segments = self._view.state.segments
        if len(segments) > 1 or (segments and self._view.removed.any()):
            self._merge(0, len(segments))
        self._store.shrink()

    def _merge_similar_segments(self) -> None:
        """Merge the newest segments while four of them have a similar size.

        The commit is already durable, so a failed merge does not raise: it is retried after the next new segment.
        """
        while (first := first_to_merge(self._view.state.segments)) is not None:
            segments = self._view.state.segments
            if segments == self._failed_merge:
                return
            try:
                self._merge(first, len(segments))
            except (OSError, FormatError):
                self._failed_merge = segments
                return

    def drop_removed_segments(self) -> None:
        """Replace segments without remaining documents by empty ones, and delete their files; none of them is read.

        Document numbers must be covered without a gap, so a segment without postings stays for each run of adjacent
        ones. As in a merge, an error is not raised: the removals are durable, and the next call tries again.
        """
        with suppress(OSError, FormatError):
            for first, last in reversed(list(self._removed_runs())):
                low, high = self._view.state.segments[first].low, self._view.state.segments[last - 1].high
                self._replace_segments(first, last, partial(_kernel.write_segment, blocks=[], low=low, high=high))

    def _removed_runs(self) -> Iterator[tuple[int, int]]:
        """Yield the positions of adjacent segments without remaining documents, unless one empty segment is all."""
        segments, last = self._view.state.segments, 0
        for is_removed, run in groupby(segments, lambda segment: self._view.are_removed(segment.low, segment.high)):
            postings = [segment.postings for segment in run]
            first, last = last, last + len(postings)
            if is_removed and (len(postings) > 1 or any(postings)):
                yield first, last

    def _merge(self, first: int, last: int) -> None:
        """Commit adjacent segments as one."""
        self._replace_segments(first, last, lambda path: self._view.merge_segments(first, last, path))

    def _replace_segments(self, first: int, last: int, write: Callable[[str], tuple[int, int, int, int]]) -> None:
        """Commit one segment in place of adjacent ones, and delete their files."""
        state = self._view.state
        replaced = state.segments[first:last]
        segment = self._new_segment(replaced[0].low, replaced[-1].high, write)
        segments = (*state.segments[:first], segment, *state.segments[last:])
        self._save(replace(state, segments=segments, next_segment=state.next_segment + 1), lambda: None)
        self._view.reopen_segments()
        for old in replaced:
            with suppress(OSError):  # the next writer deletes the files that remain
                (self._folder / old.name).unlink()

    def _new_segment(self, low: int, high: int, write: Callable[[str], tuple[int, int, int, int]]) -> SegmentFile:
        """Write the next segment durably, of documents from ``low`` to below ``high``.

        A file that does not become part of the index is overwritten by the next segment of the same name, or deleted
        by the next writer: only they know that no commit names it.
        """
        self._store.check_sync_failure()
        path = self._folder / SEGMENT.format(self._view.state.next_segment)
        path.unlink(missing_ok=True)
        try:
            with translate_damage():
                written = write(str(path))
            path.chmod(file_mode(self._folder))
            sync(path)
            sync(self._folder)
        except BaseException as error:
            self._store.note_sync_failure(error)
            path.unlink(missing_ok=True)
            raise
        return SegmentFile(path.name, low, high, *written)

    def _save(self, new: State, write: Callable[[], None]) -> None:
        """Commit rows together with the state that describes them."""
        new = replace(new, commit=new.commit + 1)
        content = new.encode()
        with self._store.transaction(new.commit):
            if self._store.content("manifest", STATE_ROW) != self._view.state_content:  # the file system ignores locks
                raise OSError(
                    errno.EBUSY, "another process has written; one process writes at a time", str(self._folder)
                )
            write()
            if self._upgrade is not None:
                self._store.put("manifest", SETTINGS_ROW, self._upgrade)
            self._store.put("manifest", STATE_ROW, content)
        self._upgrade = None
        self._view.set_state(new, content)


def first_to_merge(segments: Sequence[SegmentFile]) -> int | None:
    """Return the position of the first of the newest segments to merge, or None.

    These are at least four of one level, and smaller ones among and after them. A segment of level l has at least 4ˡ/2
    and less than 2·4ˡ postings, so that four of them make one of a higher level.
    """
    levels = [segment.postings.bit_length() // 2 for segment in segments]
    for level in sorted(set(levels)):
        first = next((position for position in range(len(levels), 0, -1) if levels[position - 1] > level), 0)
        if levels[first:].count(level) >= FANOUT:
            return first
    return None


def _removed_rows(removed: NDArray[np.uint8], numbers: NDArray[np.uint32]) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of ``removed`` that change when the bits of these numbers are set."""
    for first in sorted(set((numbers // REMOVED_NUMBERS * REMOVED_NUMBERS).tolist())):
        known = removed[first // 8 : (first + REMOVED_NUMBERS) // 8]
        bits = np.zeros(REMOVED_NUMBERS // 8, dtype=np.uint8)
        bits[: len(known)] = known
        offsets = numbers[numbers // REMOVED_NUMBERS * REMOVED_NUMBERS == first] - first
        np.bitwise_or.at(bits, offsets // 8, np.left_shift(1, offsets % 8).astype(np.uint8))
        yield first, bits.tobytes()
