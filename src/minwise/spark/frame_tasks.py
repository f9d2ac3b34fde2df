"""Tasks of a search over DataFrames: entries to buckets, buckets and sets to cells, cells to pairs or removals.

They send the blocks of the file engine, with ranks of 64 bits where 32 do not suffice. A rank is called ``place`` in
columns: the position of a document in the keep order.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, to_numpy
from minwise._internal.sorted_arrays import distinct
from minwise.search.bands import BucketCounts
from minwise.search.candidates import VERIFIED
from minwise.search.clustering import cluster_by_components
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
    BLOCKS,
    ROWS,
    Batches,
    collected,
    exchange,
    pack,
    record_batches,
    rows_of_blocks,
    unpack,
)
from minwise.spark.cell_search import CellSearch, CellTask, bucket_batch, groups_of
from minwise.spark.cells import NO_CELLS, CellPlan, plan_cells
from minwise.spark.clustering import EDGES, NO_COPIES, joined_edges, star_removals
from minwise.spark.stage_store import task_directory
from minwise.spark.verify_tasks import bucket_blocks, packed_blocks, set_blocks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "CAP_COLUMNS",
    "Cells",
    "bucket_edges",
    "bucket_pairs",
    "compare_cells",
    "compared_pairs",
    "element_blocks",
    "frame_buckets",
    "frame_task",
    "hashed_buckets",
    "pair_blocks",
    "planned_cells",
    "set_blocks_of",
    "similar_pairs",
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
# Buckets as rows, by their first member, and how many of them are sent at once.
SEPARATED = pa.schema(
    [("members", pa.list_(pa.int64())), *((name, pa.int64()) for name in ("heads", "partner", "place"))]
)
SEPARATED_ROWS = 1 << 16


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
        for rows in _joined(batches):
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


def _joined(batches: Batches) -> Batches:
    """Yield several batches at once, so that blocks are not small."""
    for held in collected(batches, lambda batch: batch.nbytes):
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
    places = distinct(np.concatenate([np.empty(0, dtype=np.uint32), *(groups.members for groups in found)]))
    dense = [
        BucketGroups(groups.buckets, np.searchsorted(places, groups.members).astype(np.uint32)) for groups in found
    ]
    sizes = np.full(len(places), set_bytes)
    plan = plan_cells(lambda: iter(dense), sizes, pair_seconds=pair_seconds, most_bytes=most_bytes)
    blocks = chain.from_iterable(
        bucket_blocks(plan, groups, plan.cell_of[groups.first_members], places) for groups in dense
    )
    rows = pa.Table.from_batches(rows_of_blocks(blocks), ROWS)
    indices, cells = plan.cells_of(np.arange(len(places), dtype=np.uint32))
    of_places = {"place": from_numpy(places[indices].astype(np.int64)), "cell": from_numpy(cells.astype(np.int32))}
    return Cells(plan.cells, session.createDataFrame(pa.table(of_places)), session.createDataFrame(rows))


def bucket_edges(buckets: "DataFrame") -> "DataFrame":
    """Return ``low`` and ``high``: edges that connect the members of each bucket, fewer than there are members."""

    def connect(batches: Batches) -> Batches:
        for groups in _groups(batches):
            firsts = np.repeat(groups.first_members, groups.buckets[:, 0])
            later = firsts != groups.members
            yield from record_batches(EDGES, *joined_edges(firsts[later], groups.members[later]))

    return buckets.select("block").mapInArrow(connect, ddl(EDGES))


def hashed_buckets(buckets: "DataFrame", places: "DataFrame") -> "DataFrame":
    """Return blocks of the buckets of each cell, by a join: for buckets that the driver cannot hold.

    Args:
        buckets: Rows of :func:`frame_buckets`.
        places: ``place`` and ``cell`` of every member.
    """

    def separate(batches: Batches) -> Batches:
        for groups in _groups(batches):
            rows = bucket_batch(groups).append_column("place", from_numpy(groups.first_members))
            yield from pa.Table.from_batches([rows]).cast(SEPARATED).to_batches(max_chunksize=SEPARATED_ROWS)

    def gather(batches: Batches) -> Batches:
        for rows in _joined(batches):
            groups = groups_of(rows)
            own = groups._replace(members=groups.members.view(np.uint64))
            yield from rows_of_blocks(_in_cells(own, rows.column("cell")))

    separated = "members array<long>, heads long, partner long, place long"
    joined = buckets.select("block").mapInArrow(separate, separated).join(places, "place")
    return joined.select("cell", "members", "heads", "partner").mapInArrow(gather, BLOCKS)


def _in_cells(groups: BucketGroups, cells: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the blocks of buckets whose cells are given."""
    of_buckets = to_numpy(cells)
    return bucket_blocks(CellPlan(_cell_count(of_buckets), NO_CELLS), groups, of_buckets)


def _cell_count(cells: NDArray[Any]) -> int:
    """Return the number of cells up to the last of some."""
    return int(cells.max(initial=-1)) + 1


def set_blocks_of(
    places: Int64s, cells: NDArray[Any], sizes: Int64s, elements: NDArray[np.uint64]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the sets of documents for each cell, in blocks of bounded size."""
    every, offsets = np.arange(len(places)), np.concatenate([[0], np.cumsum(sizes)])
    found = [(slice(0, len(places)), offsets, elements)]
    return set_blocks(found, every, places.view(np.uint64), cells, _cell_count(cells))


def element_blocks(sets: "DataFrame", verify: str) -> "DataFrame":
    """Return the blocks of sets in rows of ``place``, ``cell`` and ``elements``: bytes of shingles or packed slots."""

    def send(batches: Batches) -> Batches:
        for rows in _joined(batches):
            places, cells = (to_numpy(rows.column(name)) for name in ("place", "cell"))
            elements = rows.column("elements")
            flat = byte_values(elements)
            if verify == "signature":
                of_rows = (np.arange(len(rows)), places.view(np.uint64), cells, _cell_count(cells))
                yield from rows_of_blocks(packed_blocks(flat.reshape(len(rows), -1), *of_rows))
            else:
                sizes = to_numpy(pc.binary_length(elements)).astype(np.int64) // 8
                yield from rows_of_blocks(set_blocks_of(places, cells, sizes, flat.view(np.uint64)))

    return sets.select("place", "cell", "elements").mapInArrow(send, BLOCKS)


def pair_blocks(pairs: "DataFrame") -> "DataFrame":
    """Return blocks of pairs in rows of ``cell``, ``low`` and ``high``."""

    def send(batches: Batches) -> Batches:
        for rows in _joined(batches):
            low, high = (to_numpy(rows.column(name)).view(np.uint64) for name in ("low", "high"))
            yield from rows_of_blocks(_in_cells(buckets_of_pairs(low, high), rows.column("cell")))

    return pairs.select("cell", "low", "high").mapInArrow(send, BLOCKS)


def bucket_pairs(buckets: "DataFrame", settings: SearchSettings, parts: int) -> "DataFrame":
    """Return ``low`` and ``high`` of the pairs of buckets; a pair of several parts is there several times.

    Args:
        buckets: Rows of :func:`frame_buckets`.
        settings: Settings of the search.
        parts: Number of parts of the buckets, each of which is a cell that compares nothing.
    """
    of_file = ("string(null) as file", *(f"bigint(null) as {name}" for name in ("start", "size", "crc")))
    blocks = buckets.selectExpr("spark_partition_id() as part", "block", *of_file)
    return similar_pairs(blocks, parts, replace(settings, verify="none")).drop("similarity")


def similar_pairs(blocks: "DataFrame", cells: int, settings: SearchSettings) -> "DataFrame":
    """Return ``low``, ``high`` and ``similarity`` of the pairs of cells that are similar enough."""
    return compared_pairs(compare_cells(blocks, cells, frame_task(settings), result="pairs"))


def compared_pairs(found: "DataFrame") -> "DataFrame":
    """Return the pairs or removals in rows of :func:`compare_cells`: ``low``, ``high`` and ``similarity``."""
    return found.filter("left is not null").selectExpr("left as low", "right as high", "similarity")


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
                yield from record_batches(FOUND, search.ranks[low], search.ranks[high], similarity)
            counts = search.work.read_json(task.stage)
            counts["similar"] = sum(map(len, search.pairs())) + search.sampled_pairs()
            yield pa.RecordBatch.from_pylist([counts], FOUND)

    return exchange(blocks, max(1, cells), receive, ddl(FOUND))


def frame_task(settings: SearchSettings, stage: str = VERIFIED, classes: int = 0) -> CellTask:
    """Return what is to be compared in cells of DataFrames."""
    threshold = settings.plan.threshold
    return CellTask(settings, threshold, threshold, stage, classes, by_rank=False)


Columns = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]


def _similar_pairs(search: CellSearch) -> Iterator[Columns]:
    return ((block.low, block.high, block.similarity) for block in search.pairs())


def _star_removals(search: CellSearch) -> Iterator[Columns]:
    yield star_removals(search.pairs, len(search.ranks))


def _component_removals(search: CellSearch) -> Iterator[Columns]:
    """Yield every document that is not the first of its component. The two may not have been compared yet."""
    first = cluster_by_components(search.pairs, NO_COPIES, len(search.ranks))
    others = np.flatnonzero(first != np.arange(len(first))).astype(np.uint32)
    if search.settings.verify == "exact":
        yield first[others], others, search.similarities(first[others], others)
    else:
        yield first[others], others, np.full(len(others), np.nan)
