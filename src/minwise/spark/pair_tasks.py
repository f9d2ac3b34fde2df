"""Pairs of documents, found and compared inside Spark tasks: candidates from band keys, then their similarities.

A document is known by its ``place``, its position in the keep order.

Verification does not join pairs and sets on the document: that would send the set of a frequent document once for
every pair it is in. Pairs are cells of a grid instead: documents fall into groups, a cell is two groups, and a set is
sent once to each cell that needs it.
"""

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.search.clustering import FIRST_MEMBERS, earlier_members
from minwise.settings import SearchSettings
from minwise.sketches.similarity import estimate_packed_similarities
from minwise.spark.arrow_columns import Batches, Int64s, byte_values, ddl, key_matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CAP_COLUMNS", "CELL_BYTES", "COUNT_COLUMNS", "candidate_pairs", "needed_counts", "verified_pairs"]

# Effects of the bucket cap, as columns: the fields of BucketCounts.
CAP_COLUMNS = ("capped", "capped_members", "left_out", "largest")
# These, and the number of proposals: a pair that several bands propose counts once per band.
COUNT_COLUMNS = (*CAP_COLUMNS, "proposals")
PAIR_SCHEMA = pa.schema([(name, pa.int64()) for name in ("low", "high", *COUNT_COLUMNS)])
VERIFIED_SCHEMA = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("similarity", pa.float64())])
# Pairs per record batch.
BLOCK_PAIRS = 1 << 18
# Bytes of sets in one cell, and bytes that are compared at once.
CELL_BYTES = 1 << 25


def candidate_pairs(
    entries: "DataFrame", settings: SearchSettings, *, partitions: int, protected: int = 0
) -> "DataFrame":
    """Return every pair of documents that share a bucket, once, with the smaller place first.

    A bucket of more than ``max_bucket`` members pairs each of them with its first 16, and is never held in memory. One
    more row, in which ``low`` and ``high`` are null, counts the pairs that this leaves out.

    Args:
        entries: ``place`` and ``keys``, as :func:`minwise.spark.arrow_columns.signature_columns` returns them.
        settings: Settings of the search.
        partitions: Number of partitions of the keys. The result does not depend on it.
        protected: Two documents whose places are both below this are no pair.

    Returns:
        ``low``, ``high`` and, in one row, the columns of ``COUNT_COLUMNS``.
    """
    from pyspark.sql import functions

    max_bucket = settings.max_bucket

    def pair(batches: Batches) -> Batches:
        return _BucketPairer(max_bucket, protected).run(batches)

    keyed = entries.select("place", "keys").mapInArrow(_rows_per_band, "key long, place long")
    sorted_keys = keyed.repartition(partitions, "key").sortWithinPartitions("key", "place")
    paired = sorted_keys.mapInArrow(pair, ddl(PAIR_SCHEMA))
    totals = [functions.max(name) if name == "largest" else functions.sum(name) for name in COUNT_COLUMNS]
    named = [total.alias(name) for total, name in zip(totals, COUNT_COLUMNS, strict=True)]
    return paired.groupBy("low", "high").agg(*named)


def _rows_per_band(batches: Batches) -> Batches:
    """Yield one row per band of each document. The key itself identifies the band."""
    for batch in batches:
        filled = batch.filter(batch.column("keys").is_valid())
        keys = key_matrix(filled.column("keys"))
        places = np.repeat(to_numpy(filled.column("place")), keys.shape[1])
        yield pa.record_batch({"key": from_numpy(keys.view(np.int64).ravel()), "place": from_numpy(places)})


class _BucketPairer:
    """Reader of entries sorted by key that yields the pairs of each bucket.

    Of the bucket that may continue in the next batch, at most ``max_bucket`` members are held.
    """

    def __init__(self, max_bucket: int, protected: int) -> None:
        self.max_bucket, self.protected = max_bucket, protected
        self.counts = dict.fromkeys(COUNT_COLUMNS, 0)
        self.keys = self.places = np.empty(0, dtype=np.int64)  # of the open bucket
        self.capped_size = 0  # members of the open bucket if they exceed the cap: then only its first are held

    def run(self, batches: Batches) -> Batches:
        for batch in batches:
            keys, places = (to_numpy(batch.column(name)) for name in ("key", "place"))
            yield from self._take(keys, places)
        yield from self._close()
        if self.counts["largest"]:
            row = {name: [self.counts.get(name)] for name in PAIR_SCHEMA.names}
            yield pa.RecordBatch.from_pydict(row, PAIR_SCHEMA)

    def _take(self, keys: Int64s, places: Int64s) -> Batches:
        if self.capped_size and len(keys):
            more = int(np.searchsorted(keys, self.keys[0], side="right"))
            yield from self._pair_with_first(places[:more])
            keys, places = keys[more:], places[more:]
            if len(keys):
                yield from self._close()
        if not len(keys):
            return
        keys, places = np.concatenate([self.keys, keys]), np.concatenate([self.places, places])
        last = int(np.searchsorted(keys, keys[-1]))
        yield from self._buckets(keys[:last], places[:last])
        self.keys, self.places = keys[last:], places[last:]
        if len(self.keys) > self.max_bucket:
            rest, self.places = self.places[FIRST_MEMBERS:], self.places[:FIRST_MEMBERS]
            self.keys, self.capped_size = self.keys[:FIRST_MEMBERS], FIRST_MEMBERS
            yield from self._pairs(self.places, np.arange(FIRST_MEMBERS), np.arange(FIRST_MEMBERS))
            yield from self._pair_with_first(rest)

    def _pair_with_first(self, places: Int64s) -> Batches:
        """Pair the first members of a capped bucket with further ones."""
        self.capped_size += len(places)
        for start in range(0, len(places), BLOCK_PAIRS // FIRST_MEMBERS):
            further = places[start : start + BLOCK_PAIRS // FIRST_MEMBERS]
            yield from self._unprotected(np.tile(self.places, len(further)), np.repeat(further, FIRST_MEMBERS))

    def _close(self) -> Batches:
        """Finish the open bucket."""
        if self.capped_size:
            self._count(np.array([self.capped_size]))
        else:
            yield from self._buckets(self.keys, self.places)
        self.keys = self.places = np.empty(0, dtype=np.int64)
        self.capped_size = 0

    def _buckets(self, keys: Int64s, places: Int64s) -> Batches:
        """Yield the pairs of complete buckets. Most have one member, and most others two."""
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, int)
        sizes = np.diff(np.append(starts, len(keys)))
        shared = sizes > 1
        if not shared.any():
            return
        self._count(sizes[shared])
        members = np.repeat(shared, sizes)
        positions = (np.arange(len(keys)) - np.repeat(starts, sizes))[members]  # of each member in its bucket
        limit = np.repeat(np.where(sizes > self.max_bucket, FIRST_MEMBERS, sizes), sizes)[members]
        yield from self._pairs(places[members], positions, np.minimum(positions, limit))

    def _pairs(self, places: Int64s, positions: Int64s, partners: Int64s) -> Batches:
        for earlier, later in earlier_members(positions, partners, BLOCK_PAIRS):
            yield from self._unprotected(places[earlier], places[later])

    def _count(self, sizes: Int64s) -> None:
        """Count the effects of the cap on buckets of two or more members."""
        large = sizes[sizes > self.max_bucket]
        paired = FIRST_MEMBERS * (FIRST_MEMBERS - 1) // 2 + (large - FIRST_MEMBERS) * FIRST_MEMBERS
        self.counts["capped"] += len(large)
        self.counts["capped_members"] += int(large.sum())
        self.counts["left_out"] += int((large * (large - 1) // 2 - paired).sum())
        self.counts["largest"] = max(self.counts["largest"], int(sizes.max()))

    def _unprotected(self, low: Int64s, high: Int64s) -> Batches:
        """Yield the pairs of which at least one document is not protected."""
        chosen = high >= self.protected
        no_counts = pa.nulls(int(np.count_nonzero(chosen)), pa.int64())
        self.counts["proposals"] += len(no_counts)
        if len(no_counts):
            columns = [from_numpy(low[chosen]), from_numpy(high[chosen]), *[no_counts] * len(COUNT_COLUMNS)]
            yield pa.RecordBatch.from_arrays(columns, schema=PAIR_SCHEMA)


def verified_pairs(
    pairs: "DataFrame",
    sets: "DataFrame",
    settings: SearchSettings,
    *,
    floor: float,
    set_bytes: int,
    partitions: int,
) -> "DataFrame":
    """Return the pairs whose similarity is at least ``floor``.

    Args:
        pairs: ``low`` and ``high``.
        sets: ``place`` and ``elements`` of every document that is in a pair: its shingles, or its packed slots under
            ``verify="signature"``, as :mod:`minwise.spark.arrow_columns` returns them.
        settings: Settings of the search. Under ``verify="none"`` every pair is returned, with similarity NaN.
        floor: Minimum similarity.
        set_bytes: Bytes of all sets, which determine the number of groups.
        partitions: Number of partitions of the cells. The result does not depend on it.

    Returns:
        ``low``, ``high`` and ``similarity``.
    """
    from pyspark.sql import functions

    if settings.verify == "none":
        return pairs.select("low", "high", functions.lit(float("nan")).alias("similarity"))
    groups = max(ceil(2 * set_bytes / CELL_BYTES), ceil((2 * partitions) ** 0.5))
    low, high = (functions.pmod(functions.xxhash64(side), functions.lit(groups)) for side in ("low", "high"))
    cells = pairs.select((low * groups + high).alias("cell"), "low", "high")
    places = cells.select("cell", functions.col("low").alias("place")).union(cells.select("cell", "high")).distinct()
    no_place, no_elements = functions.lit(None).cast("long"), functions.lit(None).cast("binary")
    set_rows = places.join(sets, "place").select("cell", "place", no_place, "elements")
    pair_rows = cells.select("cell", "low", "high", no_elements.alias("elements"))
    rows = pair_rows.union(set_rows).repartition(partitions, "cell").sortWithinPartitions("cell")

    def compare(batches: Batches) -> Batches:
        return _CellComparer(settings, floor).run(batches)

    return rows.mapInArrow(compare, ddl(VERIFIED_SCHEMA))


def needed_counts(pairs: "DataFrame", removed: NDArray[np.bool_], classes: int) -> tuple[int, int]:
    """Return how many candidates have a kept document, and how many of the others belong to the sample of a report."""
    from pyspark.sql import functions

    flags = np.packbits(removed, bitorder="little")  # a bit per document, since every task gets all of them

    def is_removed(places: Int64s) -> NDArray[np.bool_]:
        bits: NDArray[np.uint8] = flags[places >> 3] >> (places & 7).astype(np.uint8) & 1
        return bits.astype(bool)

    def count(batches: Batches) -> Batches:
        for batch in batches:
            low, high = (to_numpy(batch.column(name)) for name in ("low", "high"))
            rest = is_removed(low) & is_removed(high)
            sampled = _kernel.sampled_pairs(low[rest].astype(np.uint32), high[rest].astype(np.uint32), classes)
            yield pa.record_batch({"needed": [len(rest) - len(sampled)], "sampled": [int(sampled.sum())]})

    counts = pairs.mapInArrow(count, "needed long, sampled long")
    row = counts.agg(*(functions.sum(name) for name in counts.columns)).collect()[0]
    return row[0] or 0, row[1] or 0


class _CellComparer:
    """Reader of rows sorted by cell, sets and pairs in any order, that compares several cells at once."""

    def __init__(self, settings: SearchSettings, floor: float) -> None:
        self.settings, self.floor = settings, floor
        self.batches: list[pa.RecordBatch] = []
        self.bytes = 0

    def run(self, batches: Batches) -> Batches:
        for batch in batches:
            start = 0
            cells = to_numpy(batch.column("cell"))
            if self.bytes >= CELL_BYTES:
                # The last cell that is held may continue in this batch.
                last = to_numpy(self.batches[-1].column("cell"))[-1]
                start = int(np.searchsorted(cells, last, side="right"))
                self._hold(batch.slice(0, start))
                if start < len(batch):
                    yield from self._compare()
            self._hold(batch.slice(start))
        yield from self._compare()

    def _hold(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self.batches.append(batch)
            self.bytes += len(byte_values(batch.column("elements")))

    def _compare(self) -> Batches:
        """Compare the pairs of the cells that are held, which are complete."""
        if not self.batches:
            return
        table = pa.Table.from_batches(self.batches)
        self.batches, self.bytes = [], 0
        is_pair = table.column("high").is_valid()
        sets, pairs = table.filter(pc.invert(is_pair)), table.filter(is_pair)
        if not len(pairs):
            return
        places = _integers(sets, "low")  # a set may be there for several cells; any copy will do
        order = np.argsort(places)
        low, high = (_integers(pairs, name) for name in ("low", "high"))
        rows = np.stack([order[np.searchsorted(places, side, sorter=order)] for side in (low, high)], axis=1)
        similarity = self._similarities(pa.concat_arrays(sets.column("elements").chunks), rows)
        similar = similarity >= self.floor
        columns = [from_numpy(values[similar]) for values in (low, high, similarity)]
        yield pa.RecordBatch.from_arrays(columns, schema=VERIFIED_SCHEMA)

    def _similarities(self, elements: pa.Array, pairs: Int64s) -> NDArray[np.float64]:
        if self.settings.verify == "signature":
            packed = byte_values(elements).reshape(len(elements), -1)
            return estimate_packed_similarities(packed, pairs, self.settings.plan.slots)
        width = np.int64 if pa.types.is_large_binary(elements.type) else np.int32
        ends = np.frombuffer(elements.buffers()[1], dtype=width)[elements.offset : elements.offset + len(elements) + 1]
        offsets = (ends.astype(np.int64) - int(ends[0])) // 8
        flat = byte_values(elements).view(np.uint64)
        shared = _kernel.intersection_sizes(offsets, flat, pairs).astype(np.float64)
        sizes = np.diff(offsets).astype(np.float64)
        return shared / (sizes[pairs[:, 0]] + sizes[pairs[:, 1]] - shared)


def _integers(table: pa.Table, name: str) -> Int64s:
    """Return a column of a table as one array."""
    column = table.column(name)
    return np.concatenate([np.empty(0, dtype=np.int64), *map(to_numpy, column.chunks)])
