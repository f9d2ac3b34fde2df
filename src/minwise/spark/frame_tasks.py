"""Tasks of a search over DataFrames: entries to buckets, buckets and sets to cells, cells to pairs or removals.

They send the blocks of the file engine, with ranks of 64 bits where 32 do not suffice. A rank is called ``place`` in
columns: the position of a document in the keep order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.search.bands import NO_DOCUMENT, BucketCounts
from minwise.search.candidates import VERIFIED
from minwise.search.clustering import CopyGroups, cluster_by_components, cluster_by_star
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import Int64s, byte_values, ddl, key_matrix
from minwise.spark.band_tasks import (
    BucketGroups,
    bounded_groups,
    buckets_of_pairs,
    count_pairs,
    entry_blocks,
    group_entries,
)
from minwise.spark.blocks import (
    BLOCK_BYTES,
    BLOCKS,
    ROWS,
    Batches,
    bounded,
    by_part,
    exchange,
    pack,
    rows_of_blocks,
    take_lists,
    unpack,
)
from minwise.spark.cell_search import CellSearch, CellTask, bucket_batch, groups_of, packed_batch, set_batch, set_pieces
from minwise.spark.cells import plan_cells
from minwise.spark.stage_store import task_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "CAP_COLUMNS",
    "Cells",
    "bucket_edges",
    "bucket_pairs",
    "compare_cells",
    "element_blocks",
    "frame_buckets",
    "frame_task",
    "hashed_buckets",
    "pair_blocks",
    "planned_cells",
    "set_blocks_of",
]

# Effects of the bucket cap, as columns: the fields of BucketCounts.
CAP_COLUMNS = ("capped", "capped_members", "left_out", "largest")
BUCKETS = pa.schema([*((name, pa.int64()) for name in (*CAP_COLUMNS, "pairs", "members")), ("block", pa.binary())])
# Pairs or removals of cells, and in one more row of each cell, where ``left`` is null, its counts: candidates (null if
# unknown), how many were compared, and how many are similar.
FOUND = pa.schema(
    [
        ("left", pa.int64()),
        ("right", pa.int64()),
        ("similarity", pa.float64()),
        ("candidates", pa.int64()),
        ("compared", pa.int64()),
        ("similar", pa.int64()),
    ]
)
PAIRS = pa.schema([("low", pa.int64()), ("high", pa.int64())])
# Rows per record batch.
BATCH_ROWS = 1 << 16
# Pairs of a part that are enumerated at once.
CHUNK_PAIRS = 1 << 20
NO_COPIES = CopyGroups(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.uint64))


def frame_buckets(
    entries: "DataFrame", settings: SearchSettings, *, parts: int, protected: int = 0, wide: bool = False
) -> "DataFrame":
    """Return the buckets of documents in blocks, with the counts of the cap, and of pairs and members of the blocks.

    Args:
        entries: ``place`` and ``keys``, as :func:`minwise.spark.arrow_columns.signature_columns` returns them.
        settings: Settings of the search.
        parts: Number of ranges of keys. The buckets do not depend on it.
        protected: Two documents whose places are both below this are no pair.
        wide: Whether places need 64 bits.
    """
    max_bucket, kind = settings.max_bucket, np.uint64 if wide else np.uint32

    def send(batches: Batches) -> Batches:
        for rows in _collected(batches):
            filled = rows.filter(rows.column("keys").is_valid())
            ranks = to_numpy(filled.column("place")).astype(kind)
            yield from rows_of_blocks(entry_blocks(key_matrix(filled.column("keys")), ranks, parts))

    def receive(batches: Batches) -> Batches:
        for _, groups, counts in group_entries(batches, max_bucket, protected):
            for piece in bounded_groups(groups):
                numbers = (*counts, int(count_pairs(piece.buckets).sum()), len(piece.members))
                columns = [pa.array([number], pa.int64()) for number in numbers]
                yield pa.RecordBatch.from_arrays([*columns, pack(bucket_batch(piece))], schema=BUCKETS)
                counts = BucketCounts()  # once for the groups

    sent = entries.select("place", "keys").mapInArrow(send, BLOCKS)
    return exchange(sent, parts, receive, ddl(BUCKETS))


def _collected(batches: Batches) -> Batches:
    """Yield several batches at once, so that blocks are not small."""
    held, size = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= BLOCK_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, size = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _groups(batches: Batches) -> Iterator[BucketGroups]:
    """Yield the buckets of rows of :func:`frame_buckets`."""
    for batch in batches:
        for block in batch.column("block"):
            yield groups_of(unpack(block))


class Cells(NamedTuple):
    """Cells of a search over DataFrames.

    Attributes:
        number: Number of cells.
        places: ``place`` and ``cell`` of every document that is in a bucket.
        buckets: Blocks of the buckets of each cell.
    """

    number: int
    places: "DataFrame"
    buckets: "DataFrame"


def planned_cells(buckets: "DataFrame", *, set_bytes: float, pair_seconds: float, most_bytes: int | None) -> Cells:
    """Plan cells on the driver, which holds the members of all buckets.

    Args:
        buckets: Rows of :func:`frame_buckets`.
        set_bytes: Approximate bytes of a set.
        pair_seconds: As in :func:`minwise.spark.cells.plan_cells`.
        most_bytes: As there.
    """
    session = buckets.sparkSession
    found = list(_groups(iter(buckets.select("block").toArrow().to_batches())))
    places = np.unique(np.concatenate([np.empty(0, dtype=np.uint32), *(groups.members for groups in found)]))
    dense = [
        BucketGroups(groups.buckets, np.searchsorted(places, groups.members).astype(np.uint32)) for groups in found
    ]
    sizes = np.full(len(places), set_bytes)
    plan = plan_cells(lambda: iter(dense), sizes, pair_seconds=pair_seconds, most_bytes=most_bytes)
    blocks = (
        (cell, bucket_batch(BucketGroups(piece.buckets, places[piece.members])))
        for groups in dense
        for cell, own in plan.divided(groups, plan.cell_of[groups.first_members])
        for piece in bounded_groups(own)
    )
    rows = pa.Table.from_batches(rows_of_blocks(blocks), ROWS)
    indices, cells = plan.cells_of(np.arange(len(places), dtype=np.uint32))
    of_places = {"place": from_numpy(places[indices].astype(np.int64)), "cell": from_numpy(cells.astype(np.int32))}
    return Cells(plan.cells, session.createDataFrame(pa.table(of_places)), session.createDataFrame(rows))


def bucket_edges(buckets: "DataFrame") -> "DataFrame":
    """Return ``low`` and ``high``: edges that connect the members of each bucket, fewer than there are members."""

    def connect(batches: Batches) -> Batches:
        for groups in _groups(batches):
            places, numbers = np.unique(groups.members, return_inverse=True)
            parents = np.arange(len(places), dtype=np.uint32)
            firsts = np.searchsorted(places, np.repeat(groups.first_members, groups.buckets[:, 0])).astype(np.uint32)
            later = firsts != numbers
            _kernel.join_pairs(firsts[later], numbers[later].astype(np.uint32), parents)
            _kernel.flatten_components(parents)
            others = parents != np.arange(len(places))
            edges = (places[parents[others]], places[others])
            yield from _rows(PAIRS, *(side.astype(np.int64) for side in edges))

    return buckets.select("block").mapInArrow(connect, ddl(PAIRS))


def hashed_buckets(buckets: "DataFrame", places: "DataFrame") -> "DataFrame":
    """Return blocks of the buckets of each cell, by a join: for buckets that the driver cannot hold.

    Args:
        buckets: Rows of :func:`frame_buckets`.
        places: ``place`` and ``cell`` of every member.
    """

    def separate(batches: Batches) -> Batches:
        for groups in _groups(batches):
            sizes = groups.buckets[:, 0].astype(np.int64)
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            members = pa.LargeListArray.from_arrays(from_numpy(offsets), from_numpy(groups.members.astype(np.int64)))
            rows = pa.table(
                {
                    "place": from_numpy(groups.first_members.astype(np.int64)),
                    "heads": from_numpy(groups.buckets[:, 1].astype(np.int64)),
                    "partner": from_numpy(groups.buckets[:, 2].astype(np.int64)),
                    "members": members.cast(pa.list_(pa.int64())),
                }
            )
            yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    def gather(batches: Batches) -> Batches:
        for rows in _collected(batches):
            lists = rows.column("members")
            sizes = np.diff(to_numpy(lists.offsets)).astype(np.int64)
            heads, partners = (to_numpy(rows.column(name)) for name in ("heads", "partner"))
            every = np.stack([sizes, heads, partners], axis=1).astype(np.uint32)
            members = to_numpy(lists.flatten()).astype(np.uint64)
            cells = to_numpy(rows.column("cell"))
            for cell in np.unique(cells).tolist():
                chosen = np.flatnonzero(cells == cell)
                own = BucketGroups(every[chosen], take_lists(sizes, members, chosen))
                yield from rows_of_blocks([(cell, bucket_batch(own))])

    separated = "place long, heads long, partner long, members array<long>"
    joined = buckets.select("block").mapInArrow(separate, separated).join(places, "place")
    return joined.select("cell", "heads", "partner", "members").mapInArrow(gather, BLOCKS)


def set_blocks_of(
    places: Int64s, cells: NDArray[Any], offsets: Int64s, elements: NDArray[np.uint64]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the sets of documents for each cell, in blocks of bounded size."""
    ranks, sizes = places.astype(np.uint64), np.diff(offsets)
    for first, stop in bounded(8 * sizes):
        own = elements[offsets[first] : offsets[stop]]
        if len(own) > BLOCK_BYTES // 8:
            yield from ((int(cells[first]), piece) for piece in set_pieces(ranks[first:stop], own))
            continue
        for cell, chosen in by_part(cells[first:stop], int(cells.max(initial=0)) + 1):
            lists = take_lists(sizes[first:stop], own, chosen)
            yield cell, set_batch(ranks[first:stop][chosen], sizes[first:stop][chosen], lists)


def packed_blocks_of(
    places: Int64s, cells: NDArray[Any], packed: NDArray[np.uint8]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the packed signatures of documents for each cell."""
    for cell, chosen in by_part(cells, int(cells.max(initial=0)) + 1):
        yield cell, packed_batch(places[chosen].astype(np.uint64), packed[chosen])


def element_blocks(sets: "DataFrame", verify: str) -> "DataFrame":
    """Return the blocks of sets in rows of ``place``, ``cell`` and ``elements``: bytes of shingles or packed slots."""

    def send(batches: Batches) -> Batches:
        for rows in _collected(batches):
            places, cells, elements = (rows.column(name) for name in ("place", "cell", "elements"))
            of_cells, flat = to_numpy(cells), byte_values(elements)
            if verify == "signature":
                slots = flat.reshape(len(rows), -1)
                yield from rows_of_blocks(packed_blocks_of(to_numpy(places), of_cells, slots))
            else:
                sizes = to_numpy(pc.binary_length(elements)).astype(np.int64)
                offsets = np.concatenate([[0], np.cumsum(sizes)]) // 8
                yield from rows_of_blocks(set_blocks_of(to_numpy(places), of_cells, offsets, flat.view(np.uint64)))

    return sets.select("place", "cell", "elements").mapInArrow(send, BLOCKS)


def pair_blocks(pairs: "DataFrame") -> "DataFrame":
    """Return blocks of pairs in rows of ``cell``, ``low`` and ``high``."""

    def send(batches: Batches) -> Batches:
        for rows in _collected(batches):
            cells, low, high = (to_numpy(rows.column(name)) for name in ("cell", "low", "high"))
            for cell, chosen in by_part(cells, int(cells.max(initial=0)) + 1):
                own = buckets_of_pairs(low[chosen].astype(np.uint64), high[chosen].astype(np.uint64))
                yield from rows_of_blocks([(cell, bucket_batch(own))])

    return pairs.select("cell", "low", "high").mapInArrow(send, BLOCKS)


def bucket_pairs(buckets: "DataFrame") -> "DataFrame":
    """Return ``low`` and ``high`` of the pairs of buckets; a pair of several parts is there several times."""

    def enumerate_pairs(batches: Batches) -> Batches:
        for groups in _groups(batches):
            places, members = np.unique(groups.members, return_inverse=True)
            ranges = _kernel.pair_ranges(groups.buckets, members.astype(np.uint32)).astype(np.int64)
            counts = ranges[:, 2] - ranges[:, 1]
            for first, stop in bounded(counts, CHUNK_PAIRS):
                low = np.repeat(ranges[first:stop, 0], counts[first:stop])
                before = np.cumsum(counts[first:stop]) - counts[first:stop]
                high = members[np.arange(len(low)) + np.repeat(ranges[first:stop, 1] - before, counts[first:stop])]
                pairs = np.unique(low << 32 | high)
                yield from _rows(PAIRS, *(places[side].astype(np.int64) for side in (pairs >> 32, pairs & NO_DOCUMENT)))

    return buckets.select("block").mapInArrow(enumerate_pairs, ddl(PAIRS))


def compare_cells(blocks: "DataFrame", cells: int, task: CellTask, *, result: str) -> "DataFrame":
    """Return what is found in each cell, as rows of ``FOUND``.

    Args:
        blocks: Blocks of buckets and of sets.
        cells: Number of cells.
        task: What is to be compared; pairs are by the number of a document in the cell.
        result: ``pairs``: ``left`` and ``right`` are the pairs that reach the threshold, the smaller place left.
            ``star`` or ``components``: ``right`` is removed in favour of ``left``; then each connected component of
            buckets must be in one cell.
    """
    find = {"pairs": _similar_pairs, "star": _star_removals, "components": _component_removals}[result]

    def receive(batches: Batches) -> Batches:
        with task_directory() as folder:
            search = CellSearch(task, batches, Path(folder))
            if search.cell < 0:
                return
            search.run()
            for low, high, similarity in find(search):
                yield from _rows(FOUND, *(_places(search, side) for side in (low, high)), similarity)
            counts = search.work.read_json(task.stage)
            counts["similar"] = sum(map(len, search.pairs())) + search.sampled_pairs()
            yield pa.RecordBatch.from_pylist([counts], FOUND)

    return exchange(blocks, max(1, cells), receive, ddl(FOUND))


def frame_task(settings: SearchSettings, stage: str = VERIFIED, classes: int = 0) -> CellTask:
    """Return what is to be compared in cells of DataFrames."""
    threshold = settings.plan.threshold
    return CellTask(settings, threshold, threshold, stage, classes, by_rank=False)


def _places(search: CellSearch, numbers: NDArray[np.uint32]) -> Int64s:
    return search.ranks[numbers].astype(np.int64)


Columns = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]


def _similar_pairs(search: CellSearch) -> Iterator[Columns]:
    return ((block.low, block.high, block.similarity) for block in search.pairs())


def _star_removals(search: CellSearch) -> Iterator[Columns]:
    found = cluster_by_star(search.pairs, NO_COPIES, len(search.ranks))
    removed = np.flatnonzero(found.removed).astype(np.uint32)
    yield found.witness[removed], removed, found.similarity[removed]


def _component_removals(search: CellSearch) -> Iterator[Columns]:
    """Yield every document that is not the first of its component. The two may not have been compared yet."""
    first = cluster_by_components(search.pairs, NO_COPIES, len(search.ranks))
    others = np.flatnonzero(first != np.arange(len(first))).astype(np.uint32)
    if search.settings.verify == "exact":
        yield first[others], others, search.similarities(first[others], others)
    else:
        yield first[others], others, np.full(len(others), np.nan)


def _rows(schema: pa.Schema, *columns: NDArray[Any]) -> Batches:
    """Yield columns as record batches of bounded size; columns that are not given are null."""
    for start in range(0, len(columns[0]), BATCH_ROWS):
        given = [from_numpy(column[start : start + BATCH_ROWS]) for column in columns]
        rest = [pa.nulls(len(given[0]), field.type) for field in list(schema)[len(given) :]]
        yield pa.RecordBatch.from_arrays([*given, *rest], schema=schema)
