"""Band keys to buckets: tasks send entries of key and rank to parts by key, and each part sorts its own.

A part holds a range of keys of all bands: a key identifies its band. It is sorted, capped and stored by the kernel
functions of the local engine, so buckets are the same, and only those of two or more members leave the task. One
million passages have 26 million entries and 2.9 million members of buckets.

All entries of a bucket are in one part. A hot bucket, which millions of documents share, is therefore not sorted with
the others: its members are collected and sorted in a file, and leave the task in pieces.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise._internal.sorted_arrays import distinct
from minwise.search.bands import NO_DOCUMENT, BucketCounts
from minwise.search.clustering import FIRST_MEMBERS
from minwise.search.value_groups import GROUPS, grouped_keys
from minwise.settings import SearchSettings
from minwise.spark.blocks import BLOCK_BYTES, BLOCKS, Batches, bounded, exchange, received, rows_of_blocks
from minwise.spark.read_tasks import task_frame, task_numbers
from minwise.spark.stage_store import FILES, StageFile, StageFolder, attempt_name, rows_of_files, task_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BucketGroups",
    "Ranks",
    "bounded_groups",
    "buckets_of_pairs",
    "count_pairs",
    "entry_blocks",
    "group_entries",
    "part_count",
    "write_buckets",
]

# Bytes of a member of a bucket in a block, at most: its rank of eight bytes, and half of the 16 bytes of a bucket.
MEMBER_BYTES = 16
# Bytes of an entry in a block, at most: its key, and a rank of 64 bits.
ENTRY_BYTES = 16
# Entries that a task sorts: 50 MB of them, and twice that while they are sorted.
PART_ENTRIES = 1 << 22
# Entries that a task holds before it looks for hot buckets. Keys are hashes, so a part without one hardly ever has
# twice as many entries as others.
HELD_ENTRIES = 2 * PART_ENTRIES
# A bucket above the cap of more members is hot.
HOT_MEMBERS = 1 << 20

# Ranks of 32 bits, or of 64 bits in a DataFrame of more documents.
Ranks = NDArray[Any]


class BucketGroups(NamedTuple):
    """Buckets of one or several parts.

    Attributes:
        buckets: Rows of size, number of first members that are paired with later ones, and index of the first member
            that they are paired with, as :meth:`minwise._kernel.Buckets.groups` returns them.
        members: Ranks of the members of all buckets, one bucket after the other, each ascending.
    """

    buckets: NDArray[np.uint32]
    members: Ranks

    @property
    def first_members(self) -> Ranks:
        """The first member of each bucket."""
        sizes = self.buckets[:, 0].astype(np.int64)
        firsts: Ranks = self.members[np.cumsum(sizes) - sizes]
        return firsts


def buckets_of_pairs(low: Ranks, high: Ranks) -> BucketGroups:
    """Return a bucket of two for each pair, of which ``low`` is the smaller rank."""
    buckets = np.tile(np.array([[2, 1, 1]], dtype=np.uint32), (len(low), 1))
    return BucketGroups(buckets, np.stack([low, high], axis=1).ravel())


def bounded_groups(groups: BucketGroups) -> Iterator[BucketGroups]:
    """Yield buckets so that each piece fits a block; a bucket above the cap that is larger is divided.

    Of such a bucket, each piece has the first members, which are paired with all others, and some of the others. If
    there are no buckets, the only piece has none.
    """
    if not len(groups.buckets):
        yield groups
    sizes = groups.buckets[:, 0].astype(np.int64)
    ends = np.cumsum(sizes)
    for first, stop in bounded(MEMBER_BYTES * sizes):
        start = int(ends[first] - sizes[first])
        piece = BucketGroups(groups.buckets[first:stop], groups.members[start : int(ends[stop - 1])])
        if len(piece.members) * MEMBER_BYTES > BLOCK_BYTES:
            yield from _divided_bucket(piece)
        else:
            yield piece


def _divided_bucket(bucket: BucketGroups) -> Iterator[BucketGroups]:
    """Yield the pairs of one bucket in pieces: those among its first members, then those with some of the others."""
    size, heads, partner = bucket.buckets[0].tolist()
    step = max(1, BLOCK_BYTES // MEMBER_BYTES - heads)
    if partner < heads:
        yield BucketGroups(np.array([[heads, heads - 1, partner]], dtype=np.uint32), bucket.members[:heads])
    for start in range(max(heads, partner), size, step):
        members = np.concatenate([bucket.members[:heads], bucket.members[start : start + step]])
        yield BucketGroups(np.array([[len(members), heads, heads]], dtype=np.uint32), members)


def part_count(entries: int) -> int:
    """Return the number of parts for a number of entries."""
    return max(1, -(-entries // PART_ENTRIES))


def entry_blocks(keys: NDArray[np.uint64], ranks: Ranks, parts: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the entries of documents for each part, in blocks of bounded size.

    Args:
        keys: A row of keys per document.
        ranks: The rank of each document; those of ``NO_DOCUMENT`` are left out.
        parts: Number of parts, which are equal ranges of keys.
    """
    if ranks.dtype == np.uint32 and NO_DOCUMENT in ranks:
        keys, ranks = keys[ranks != NO_DOCUMENT], ranks[ranks != NO_DOCUMENT]
    divided, documents, starts = _kernel.divide_keys(np.ascontiguousarray(keys), parts)
    step = max(1, BLOCK_BYTES // ENTRY_BYTES)
    for part, (start, end) in enumerate(pairwise(starts.tolist())):
        for first in range(start, end, step):
            stop = min(first + step, end)
            yield part, _entry_batch(divided[first:stop], ranks[documents[first:stop]])


def _entry_batch(keys: NDArray[np.uint64], ranks: Ranks) -> pa.RecordBatch:
    """Return entries as a record batch, with small steps between ranks instead of ranks if they ascend.

    In document order a step is one byte, so an entry takes 9 bytes instead of 12.
    """
    steps = np.diff(ranks, prepend=ranks[:1])  # a descending step becomes a large number
    width = next((kind for kind in (np.uint8, np.uint16) if steps.max() <= np.iinfo(kind).max), None)
    if width is None:
        return pa.record_batch({"key": from_numpy(keys), "rank": from_numpy(ranks)})
    batch = pa.record_batch({"key": from_numpy(keys), "step": from_numpy(steps.astype(width))})
    return batch.replace_schema_metadata({"first": str(ranks[0]), "type": ranks.dtype.name})


def _entries_of(batch: pa.RecordBatch) -> tuple[NDArray[np.uint64], Ranks]:
    """Return keys and ranks of a batch that :func:`_entry_batch` made."""
    keys = to_numpy(batch.column("key"))
    if "rank" in batch.schema.names:
        return keys, to_numpy(batch.column("rank"))
    first, kind = (batch.schema.metadata[name].decode() for name in (b"first", b"type"))
    steps = to_numpy(batch.column("step")).astype(kind)
    return keys, np.cumsum(steps, dtype=kind) + np.dtype(kind).type(int(first))


class _PartEntries:
    """Entries of one part: those of hot buckets in files, a file per key, and all others in memory.

    Attributes:
        held: Keys and ranks of the entries in memory.
        hot: Keys of hot buckets, ascending.
    """

    def __init__(self, folder: Path, max_bucket: int) -> None:
        self.held = list[tuple[NDArray[np.uint64], Ranks]]()
        self.hot = np.empty(0, dtype=np.uint64)
        self._folder, self._least_hot, self._limit = folder, max(HOT_MEMBERS, max_bucket), HELD_ENTRIES
        self._ranks = np.dtype(np.uint32)

    def add(self, keys: NDArray[np.uint64], ranks: Ranks) -> None:
        """Add the entries of a block."""
        self._ranks = ranks.dtype
        self.held.append(self._without_hot(keys, ranks))
        if self._size() > self._limit:
            self._find_hot()

    def _size(self) -> int:
        return sum(len(keys) for keys, _ in self.held)

    def _find_hot(self) -> None:
        """Move the entries of buckets that have become hot to files."""
        keys, counts = np.unique(np.concatenate([keys for keys, _ in self.held]), return_counts=True)
        self.hot = distinct(np.concatenate([self.hot, keys[counts > self._least_hot]]))
        self.held = [self._without_hot(*entries) for entries in self.held]
        self._limit = max(HELD_ENTRIES, 2 * self._size())  # looking again costs a constant amount per entry

    def _without_hot(self, keys: NDArray[np.uint64], ranks: Ranks) -> tuple[NDArray[np.uint64], Ranks]:
        """Return the entries of other buckets; append the ranks of hot ones to their files."""
        if not len(self.hot):
            return keys, ranks
        is_hot = np.isin(keys, self.hot)
        for key in self.hot[np.isin(self.hot, keys[is_hot])]:
            with self._file(key).open("ab") as file:
                ranks[keys == key].tofile(file)
        return keys[~is_hot], ranks[~is_hot]

    def _file(self, key: np.uint64) -> Path:
        return self._folder / f"{key:016x}"

    def hot_members(self) -> Iterator[Ranks]:
        """Yield the ranks of each hot bucket, ascending, as a view of its file, in which they are sorted."""
        for key in self.hot:
            members = np.memmap(self._file(key), self._ranks)
            members.sort()
            yield members


def group_entries(
    batches: Batches, max_bucket: int, protected: int
) -> Iterator[tuple[int, BucketGroups, BucketCounts]]:
    """Yield the number of a part and its buckets, from its blocks: first all but hot ones, then those in pieces.

    The counts of the cap are all with the first; a part without blocks yields nothing.
    """
    with task_directory() as folder:
        part, entries = -1, _PartEntries(Path(folder), max_bucket)
        for part, batch in received(batches):  # noqa: B007 - all are of one part
            entries.add(*_entries_of(batch))
        if part < 0:
            return
        groups, counts = _sorted_groups(entries.held, max_bucket, protected)
        hot = list(entries.hot_members())
        yield part, groups, _counts_with(counts, [len(members) for members in hot])
        for members in hot:
            row = [len(members), FIRST_MEMBERS, np.searchsorted(members, members.dtype.type(protected))]
            for piece in _divided_bucket(BucketGroups(np.array([row], dtype=np.uint32), members)):
                yield part, piece, BucketCounts()


def _sorted_groups(
    found: list[tuple[NDArray[np.uint64], Ranks]], max_bucket: int, protected: int
) -> tuple[BucketGroups, BucketCounts]:
    """Return the buckets of entries and the counts of the cap; the list is emptied.

    Ranks of 64 bits are replaced by numbers that ascend as they do while entries are sorted.
    """
    wide = any(ranks.dtype == np.uint64 for _, ranks in found)
    numbers = distinct(np.concatenate([ranks for _, ranks in found])) if wide else None
    buckets = _kernel.Buckets()
    while found:
        keys, ranks = found.pop()
        narrow = ranks if numbers is None else np.searchsorted(numbers, ranks)
        buckets.push(keys, narrow.astype(np.uint32, copy=False), 0, 1)
    free = protected if numbers is None else int(np.searchsorted(numbers, protected))
    rows, members = buckets.groups(max_bucket, free, 1)
    groups = BucketGroups(rows, members if numbers is None else numbers[members])
    return groups, BucketCounts(*buckets.counts())


def _counts_with(counts: BucketCounts, sizes: list[int]) -> BucketCounts:
    """Return the counts of the cap with hot buckets of the given sizes."""
    return BucketCounts(
        counts.capped + len(sizes),
        counts.capped_members + sum(sizes),
        counts.left_out + sum(comb(size - FIRST_MEMBERS, 2) for size in sizes),
        max(counts.largest, *sizes) if sizes else counts.largest,
    )


def count_pairs(buckets: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of pairs of each bucket.

    >>> count_pairs(np.array([[3, 2, 0], [20, 16, 0], [4, 3, 2]], dtype=np.uint32)).tolist()
    [3, 184, 5]
    """
    sizes, heads, first = buckets.astype(np.int64).T
    before = np.minimum(heads, first)  # these are paired with all members from the first partner on
    rest = (heads - before) * sizes - (heads * (heads + 1) - before * (before + 1)) // 2
    pairs: NDArray[np.int64] = before * (sizes - first) + rest
    return pairs


def write_buckets(
    session: "SparkSession",
    location: str,
    names: list[str],
    settings: SearchSettings,
    parts: int,
    protected: int,
    stage: str = "signatures",
) -> "DataFrame":
    """Return the tasks that read files of keys and ranks and write files of buckets.

    With ``within``, the files of ranks have the groups of the documents, too.

    Args:
        session: Session that runs them.
        location: Directory of the stages.
        names: Files of keys; files of the same names in the stage ``ranks`` have the ranks.
        settings: Settings of the search.
        parts: Number of parts. The buckets do not depend on it.
        protected: Two documents whose ranks are both below this are no pair.
        stage: The stage of the keys.
    """
    max_bucket = settings.max_bucket

    def send(numbers: Batches) -> Batches:
        folder = StageFolder(location)
        for number in task_numbers(numbers):
            name = names[number]
            with folder.reading(stage, name) as work:
                keys = work.open(name).read("keys")
            with folder.reading("ranks", name) as work:
                ranks = work.open(name).read("ranks")
                keys = keys if settings.within is None else grouped_keys(keys, work.open(name).read(GROUPS))
            yield from rows_of_blocks(entry_blocks(keys, ranks, parts), folder.exchange("buckets", number))

    def receive(batches: Batches) -> Batches:
        return rows_of_files(_bucket_files(StageFolder(location), batches, max_bucket, protected))

    blocks = task_frame(session, len(names)).mapInArrow(send, BLOCKS)
    return exchange(blocks, parts, receive, FILES)


def _bucket_files(folder: StageFolder, batches: Batches, max_bucket: int, protected: int) -> Iterator[StageFile]:
    for number, (part, groups, counts) in enumerate(group_entries(batches, max_bucket, protected)):
        name = attempt_name(part, number)
        with folder.writing("buckets") as work:
            work.write(name, groups._asdict())
            size = (work.folder / name).stat().st_size
        yield StageFile(name, size, {"counts": counts, "pairs": int(count_pairs(groups.buckets).sum())})
