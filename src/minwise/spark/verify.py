"""Verify: candidate pairs and the sets of their documents in, similar pairs out.

A join on the document would send the set of a hot document once for every pair it is in. So pairs are cells of a grid:
documents fall into groups, a cell is two groups, and a set goes once to each cell that needs it.
"""

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.settings import FindSettings
from minwise.sketches.similarity import estimate_packed_similarities
from minwise.spark.signatures import byte_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["verified_pairs"]

Batches = Iterator[pa.RecordBatch]
Numbers = NDArray[np.int64]

# Bytes of sets that a cell may hold, and that are compared at once.
CELL_BYTES = 1 << 25
VERIFIED_SCHEMA = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("similarity", pa.float64())])


def verified_pairs(
    pairs: "DataFrame",
    sets: "DataFrame",
    settings: FindSettings,
    *,
    floor: float,
    set_bytes: int,
    partitions: int,
) -> "DataFrame":
    """The pairs whose similarity is at least ``floor``.

    Args:
        pairs: ``low`` and ``high``.
        sets: ``place`` and ``elements`` of every document that is in a pair: its shingles, or its packed slots under
            ``verify="signature"``, as :mod:`minwise.spark.signatures` gives them.
        settings: What decides the result. Under ``verify="none"`` every pair is given back, with an unknown similarity.
        floor: The least similarity.
        set_bytes: The bytes of all sets, from which follows how many groups there are.
        partitions: Into how many parts the cells are cut. The result does not depend on it.

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
    nobody, nothing = functions.lit(None).cast("long"), functions.lit(None).cast("binary")
    given = places.join(sets, "place").select("cell", "place", nobody, "elements")
    asked = cells.select("cell", "low", "high", nothing.alias("elements"))
    together = asked.union(given).repartition(partitions, "cell").sortWithinPartitions("cell")

    def compare(batches: Batches) -> Batches:
        return _Comparing(settings, floor).run(batches)

    return together.mapInArrow(compare, "low long, high long, similarity double")


class _Comparing:
    """Goes through cells, which are sets and pairs of them in any order, and compares those of several at once."""

    def __init__(self, settings: FindSettings, floor: float) -> None:
        self.settings, self.floor = settings, floor
        self.batches: list[pa.RecordBatch] = []
        self.bytes = 0

    def run(self, batches: Batches) -> Batches:
        for batch in batches:
            start = 0
            cells = to_numpy(batch.column("cell"))
            if self.bytes >= CELL_BYTES:
                # What is held ends with a cell that may go on here.
                held = to_numpy(self.batches[-1].column("cell"))[-1]
                start = int(np.searchsorted(cells, held, side="right"))
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
        """Compares what is held, which are whole cells."""
        if not self.batches:
            return
        table = pa.Table.from_batches(self.batches)
        self.batches, self.bytes = [], 0
        is_pair = table.column("high").is_valid()
        sets, pairs = table.filter(pc.invert(is_pair)), table.filter(is_pair)
        if not len(pairs):
            return
        places = _numbers(sets, "low")  # the same set may be there for several cells, and any will do
        order = np.argsort(places)
        low, high = (_numbers(pairs, name) for name in ("low", "high"))
        numbers = np.stack([order[np.searchsorted(places, side, sorter=order)] for side in (low, high)], axis=1)
        similarity = self._similarities(pa.concat_arrays(sets.column("elements").chunks), numbers)
        similar = similarity >= self.floor
        columns = [from_numpy(values[similar]) for values in (low, high, similarity)]
        yield pa.RecordBatch.from_arrays(columns, schema=VERIFIED_SCHEMA)

    def _similarities(self, elements: pa.Array, pairs: Numbers) -> NDArray[np.float64]:
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


def _numbers(table: pa.Table, name: str) -> Numbers:
    column = table.column(name)
    return np.concatenate([np.empty(0, dtype=np.int64), *map(to_numpy, column.chunks)])
