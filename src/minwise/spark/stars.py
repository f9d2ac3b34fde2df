"""Stars: similar pairs and the components of their places in; who is removed, and for whom, out.

A star never reaches out of its component, so components are decided apart from each other, by the kernel of the local
engine.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.search.bands import NOBODY

__all__ = ["stars"]

Batches = Iterator[pa.RecordBatch]
Numbers = NDArray[np.int64]
Similarities = NDArray[np.float64]

REMOVED = pa.schema([("place", pa.int64()), ("witness", pa.int64()), ("similarity", pa.float64())])
# Rows that are given back at once.
BLOCK_ROWS = 1 << 16


def stars(pairs: DataFrame, components: DataFrame, *, protected: int = 0, partitions: int | None = None) -> DataFrame:
    """Whoever is removed: looking at places in ascending order, one with a pair with a kept place before it.

    Its witness is its most similar kept partner, the smallest among equals: what
    :func:`minwise.search.clustering.group_by_star` decides.

    The pairs of a component go through one task in ascending order; Spark sorts them on disk if they are many. The task
    does not hold them: only 21 bytes for each member of the open component, 24 bytes for each pair whose smaller side
    is removed while its larger side is undecided, and as many rows that came last. What bounds it are the members of
    the largest component.

    Args:
        pairs: ``low``, ``high`` and ``similarity``; the smaller place first.
        components: ``place`` and ``component`` of every place in a pair, as
            :func:`minwise.spark.components.components` gives them.
        protected: Places below it are never removed, and pairs among them do not count.
        partitions: Into how many parts the components are cut; Spark's own choice by default. The result does not
            depend on it.

    Returns:
        ``place``, ``witness`` and ``similarity`` of the removed ones.
    """
    low, high = (f.col(side).cast("long").alias(side) for side in ("low", "high"))
    counting = pairs.where(f.col("high") >= protected).select(low, high, "similarity")
    named = components.select(f.col("place").alias("low"), "component")
    unknown = f.raise_error(f.concat(f.lit("components must have every place of a pair, but not "), f.col("low")))
    grouped = counting.join(named, "low", "left").withColumn("component", f.coalesce("component", unknown))
    parts = grouped.repartition("component") if partitions is None else grouped.repartition(partitions, "component")
    ordered = parts.sortWithinPartitions("component", "low", "high")
    return ordered.mapInArrow(_removals, "place long, witness long, similarity double")


def _removals(batches: Batches) -> Batches:
    """Who is removed, from pairs in the order of component, smaller and larger place."""
    members, component = _Members(), None
    for table in _chunks(batches, members):
        numbers = table.column("component").to_numpy()
        if numbers[-1] != component:
            ended = int(np.searchsorted(numbers, numbers[-1]))
            members.meet(table.slice(0, ended))
            yield from members.leave()
            table, component = table.slice(ended), numbers[-1]
        members.meet(table)
    yield from members.leave()


def _chunks(batches: Batches, members: "_Members") -> Iterator[pa.Table]:
    """The batches, as many at once as there are rows held, so that growing costs a constant share of each row."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows > len(members):
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


class _Members:
    """What is known of the members of components that are not at their end.

    When a place is met as the smaller one of a pair, everything before it has been decided, and so has it. So a pair
    whose smaller side is kept can be used at once, one whose sides are both removed never, and only the others wait.
    """

    def __init__(self) -> None:
        self._forget()

    def __len__(self) -> int:
        return len(self.places) + len(self.waiting[0])

    def _forget(self) -> None:
        self.places = np.empty(0, dtype=np.int64)
        self.removed = np.empty(0, dtype=bool)
        self.witness = np.empty(0, dtype=np.uint32)
        self.best = np.empty(0, dtype=np.float64)
        # Arrays of its own: the kernel does not take one as what it reads and what it writes.
        self.waiting: tuple[Numbers, Numbers, Similarities] = (self.places, self.places, self.best.copy())

    def meet(self, table: pa.Table) -> None:
        """Takes the next pairs."""
        low, high, similarity = (table.column(name).to_numpy() for name in ("low", "high", "similarity"))
        self._grow(np.union1d(low, high))
        smaller, larger = self._numbers(low), self._numbers(high)
        _kernel.remove_neighbours(smaller, larger, self.removed)
        kept = ~self.removed[smaller]
        self._choose(smaller[kept], larger[kept], similarity[kept])
        self._wait(low[~kept], high[~kept], similarity[~kept])

    def leave(self) -> Batches:
        """The removed ones, of whom everything is known now. Nothing is held any more."""
        low, high, similarity = self.waiting
        self._choose(self._numbers(low), self._numbers(high), similarity)
        gone = np.flatnonzero(self.removed)
        found = (self.places[gone], self.places[self.witness[gone]], self.best[gone])
        self._forget()
        for start in range(0, len(gone), BLOCK_ROWS):
            columns = [from_numpy(values[start : start + BLOCK_ROWS]) for values in found]
            yield pa.RecordBatch.from_arrays(columns, schema=REMOVED)

    def _numbers(self, places: Numbers) -> NDArray[np.uint32]:
        return np.searchsorted(self.places, places).astype(np.uint32)

    def _choose(self, low: NDArray[np.uint32], high: NDArray[np.uint32], similarity: Similarities) -> None:
        _kernel.choose_witnesses(low, high, similarity, self.removed, self.witness, self.best)

    def _wait(self, low: Numbers, high: Numbers, similarity: Similarities) -> None:
        """Adds pairs whose smaller side is removed; drops those whose larger side is removed too by now."""
        columns = zip(self.waiting, (low, high, similarity), strict=True)
        low, high, similarity = (np.concatenate(both) for both in columns)
        undecided = ~self.removed[self._numbers(high)]
        self.waiting = (low[undecided], high[undecided], similarity[undecided])

    def _grow(self, places: Numbers) -> None:
        """Makes room for places, some of which may be known."""
        places = np.union1d(self.places, places)
        moved = np.searchsorted(places, self.places)
        removed, best = np.zeros(len(places), dtype=bool), np.full(len(places), np.nan)
        witness = np.full(len(places), NOBODY, dtype=np.uint32)
        removed[moved], best[moved] = self.removed, self.best
        witness[moved[self.removed]] = moved[self.witness[self.removed]]
        self.places, self.removed, self.witness, self.best = places, removed, witness, best
