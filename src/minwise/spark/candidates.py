"""Candidates: documents with the keys of their bands in, pairs that share a bucket out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, to_numpy
from minwise.search.clustering import FIRST, earlier_members
from minwise.settings import FindSettings
from minwise.spark.signatures import key_matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["CAP_COLUMNS", "candidate_pairs"]

Batches = Iterator[pa.RecordBatch]
Numbers = NDArray[np.int64]

# What the cap met, as columns: the fields of BucketCounts.
CAP_COLUMNS = ("capped", "capped_members", "left_out", "largest")
# Pairs that are given back at once.
BLOCK_PAIRS = 1 << 18
PAIR_SCHEMA = pa.schema([(name, pa.int64()) for name in ("low", "high", *CAP_COLUMNS)])


def candidate_pairs(
    entries: "DataFrame", settings: FindSettings, *, partitions: int, protected: int = 0
) -> "DataFrame":
    """Every pair of documents that share a bucket, once, with the smaller place first.

    A bucket of more than ``max_bucket`` members pairs each of them with its first 16, and is never held in memory. What
    that left out is in one more row, in which ``low`` and ``high`` are null.

    Args:
        entries: ``place`` and ``keys``, as :func:`minwise.spark.signatures.signature_columns` gives them.
        settings: What decides the result.
        partitions: Into how many parts the keys are cut. The result does not depend on it.
        protected: Two documents of which both places are smaller are no pair.

    Returns:
        ``low``, ``high`` and, in one row, the columns of ``CAP_COLUMNS``.
    """
    from pyspark.sql import functions

    most = settings.max_bucket

    def pair(batches: Batches) -> Batches:
        return _Pairing(most, protected).run(batches)

    keyed = entries.select("place", "keys").mapInArrow(_spread, "key long, place long")
    sorted_keys = keyed.repartition(partitions, "key").sortWithinPartitions("key", "place")
    schema = ", ".join(f"{name} long" for name in PAIR_SCHEMA.names)
    paired = sorted_keys.mapInArrow(pair, schema)
    totals = [functions.max(name) if name == "largest" else functions.sum(name) for name in CAP_COLUMNS]
    named = [total.alias(name) for total, name in zip(totals, CAP_COLUMNS, strict=True)]
    return paired.groupBy("low", "high").agg(*named)


def _spread(batches: Batches) -> Batches:
    """A row per band of each document. Which band a key is of is in the key."""
    for batch in batches:
        filled = batch.filter(batch.column("keys").is_valid())
        keys = key_matrix(filled.column("keys"))
        places = np.repeat(to_numpy(filled.column("place")), keys.shape[1])
        yield pa.record_batch({"key": from_numpy(keys.view(np.int64).ravel()), "place": from_numpy(places)})


class _Pairing:
    """Goes through sorted entries; of the bucket that is open, at most ``max_bucket`` members are held."""

    def __init__(self, max_bucket: int, protected: int) -> None:
        self.max_bucket, self.protected = max_bucket, protected
        self.counts = dict.fromkeys(CAP_COLUMNS, 0)
        self.keys = self.places = np.empty(0, dtype=np.int64)  # of the open bucket
        self.crowd = 0  # members of the open bucket if they are more than the cap: then only its first are held

    def run(self, batches: Batches) -> Batches:
        for batch in batches:
            keys, places = (to_numpy(batch.column(name)) for name in ("key", "place"))
            yield from self._take(keys, places)
        yield from self._close()
        if self.counts["largest"]:
            row = {name: [self.counts.get(name)] for name in PAIR_SCHEMA.names}
            yield pa.RecordBatch.from_pydict(row, PAIR_SCHEMA)

    def _take(self, keys: Numbers, places: Numbers) -> Batches:
        if self.crowd and len(keys):
            more = int(np.searchsorted(keys, self.keys[0], side="right"))
            yield from self._with_first(places[:more])
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
            rest, self.places = self.places[FIRST:], self.places[:FIRST]
            self.keys, self.crowd = self.keys[:FIRST], FIRST
            yield from self._pairs(self.places, np.arange(FIRST), np.arange(FIRST))
            yield from self._with_first(rest)

    def _with_first(self, places: Numbers) -> Batches:
        """The first members of a crowd with further ones."""
        self.crowd += len(places)
        for start in range(0, len(places), BLOCK_PAIRS // FIRST):
            further = places[start : start + BLOCK_PAIRS // FIRST]
            yield from self._kept(np.tile(self.places, len(further)), np.repeat(further, FIRST))

    def _close(self) -> Batches:
        """Nothing more comes into the open bucket."""
        if self.crowd:
            self._count(np.array([self.crowd]))
        else:
            yield from self._buckets(self.keys, self.places)
        self.keys = self.places = np.empty(0, dtype=np.int64)
        self.crowd = 0

    def _buckets(self, keys: Numbers, places: Numbers) -> Batches:
        """The pairs of whole buckets. Most have one member, and most others two."""
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, int)
        sizes = np.diff(np.append(starts, len(keys)))
        shared = sizes > 1
        if not shared.any():
            return
        self._count(sizes[shared])
        members = np.repeat(shared, sizes)
        place = (np.arange(len(keys)) - np.repeat(starts, sizes))[members]
        limit = np.repeat(np.where(sizes > self.max_bucket, FIRST, sizes), sizes)[members]
        yield from self._pairs(places[members], place, np.minimum(place, limit))

    def _pairs(self, places: Numbers, place: Numbers, partners: Numbers) -> Batches:
        for earlier, later in earlier_members(place, partners, BLOCK_PAIRS):
            yield from self._kept(places[earlier], places[later])

    def _count(self, sizes: Numbers) -> None:
        """Notes what the cap met in buckets of two or more."""
        large = sizes[sizes > self.max_bucket]
        given = FIRST * (FIRST - 1) // 2 + (large - FIRST) * FIRST
        self.counts["capped"] += len(large)
        self.counts["capped_members"] += int(large.sum())
        self.counts["left_out"] += int((large * (large - 1) // 2 - given).sum())
        self.counts["largest"] = max(self.counts["largest"], int(sizes.max()))

    def _kept(self, low: Numbers, high: Numbers) -> Batches:
        """The pairs of which not both are protected."""
        wanted = high >= self.protected
        nothing = pa.nulls(int(np.count_nonzero(wanted)), pa.int64())
        if len(nothing):
            columns = [from_numpy(low[wanted]), from_numpy(high[wanted]), *[nothing] * len(CAP_COLUMNS)]
            yield pa.RecordBatch.from_arrays(columns, schema=PAIR_SCHEMA)
