"""Groups of similar documents: connected components of pairs, and the stars inside each component.

A document is known by its ``place``, its position in the keep order.

Few edges are joined on the driver. Many are joined by large-star and small-star (Kiveris et al. 2014, "Connected
Components in MapReduce and Beyond", section 3): each place links its larger neighbours to its smallest one, round after
round, until every place is linked to the smallest place of its component and to no other.

A star lies within one component, so components are decided independently, by the kernel of the local engine.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.search.bands import NO_DOCUMENT
from minwise.spark.arrow_columns import Int64s, ddl
from minwise.spark.blocks import Batches
from minwise.spark.stage_store import StageFolder, checkpoint

__all__ = ["DRIVER_EDGES", "connected_components", "star_groups", "star_rounds"]

Similarities = NDArray[np.float64]

EDGES = "low long, high long"
# Pairs that the driver joins by itself: 320 MB of numbers, and five times as much during the join. Spark's own limit
# of what is sent to the driver, spark.driver.maxResultSize, is 1 GB by default.
DRIVER_EDGES = 20_000_000
# Edges that a task joins by itself before it sends any: about 80 MB during the join.
TASK_EDGES = 1 << 20
REMOVED = pa.schema([("place", pa.int64()), ("witness", pa.int64()), ("similarity", pa.float64())])
# Rows per record batch.
BLOCK_ROWS = 1 << 16


def connected_components(edges: DataFrame, *, driver_edges: int = DRIVER_EDGES, work: str | None = None) -> DataFrame:
    """Return the connected component of every place that has an edge to another place.

    The direction of edges, repeated edges and edges from a place to itself do not matter.

    Args:
        edges: ``low`` and ``high``. It is evaluated more than once, so it should be a finished stage.
        driver_edges: Maximum number of edges that are joined on the driver, in about 100 bytes each; more are joined by
            :func:`star_rounds`. The result does not depend on it.
        work: Directory for the rounds, as a path or URL. The last round stays there, and the result is read from it.
            Without it the executors hold the rounds, each partition on two of them: a run survives the loss of one
            executor, not of more.

    Returns:
        ``place`` and ``component``, the smallest place of its component.
    """
    edges = _normalised_edges(edges)
    if edges.count() <= driver_edges:
        return _components_on_driver(edges)
    for last in star_rounds(edges, work=work):
        forest = last
    first = forest.select("low").distinct().select(f.col("low").alias("place"), f.col("low").alias("component"))
    return first.union(forest.select("high", "low"))


def star_rounds(edges: DataFrame, *, work: str | None = None, task_edges: int = TASK_EDGES) -> Iterator[DataFrame]:
    """Yield the edges after each round of large-star and small-star, until a round changes nothing.

    In the last round every component is a star: each of its places but the smallest is ``high`` once, with the smallest
    as ``low``. A round that changes anything leaves fewer edges, or as many with a smaller sum of all places; so
    comparing these two numbers shows exactly whether it has.

    The number of rounds is O(log n) for n places: up to 18 were measured on a path of 100,000, and 2 or 3 where
    components are small. A round sends each edge three times (48 bytes) and holds ``task_edges`` edges in a task; the
    edges of one place pass through one task, which sorts them on disk if they are many.

    Args:
        edges: ``low`` and ``high``.
        work: Directory for the rounds; each is deleted after the next is finished. Without it the executors hold them
            until they are no longer referenced.
        task_edges: Number of sorted edges that a task joins at once before it sends any, which leaves a tree of each
            connected group of them. 0: it joins none.

    Yields:
        ``low`` and ``high``, evaluated.
    """
    edges, rounds, before = _normalised_edges(edges), _RoundStore(edges.sparkSession, work), None
    while True:
        edges = rounds.finish(_small_star(_large_star(_contract(edges, task_edges))))
        total = f.sum(f.col("low").cast("decimal(38, 0)") + f.col("high"))
        after = edges.agg(f.count("low"), total).first()
        yield edges
        if after == before:
            return
        before = after


def _normalised_edges(edges: DataFrame) -> DataFrame:
    """Return the edges as two integers, the smaller first, without those from a place to itself."""
    left, right = f.col("low").cast("long"), f.col("high").cast("long")
    return edges.where(left != right).select(f.least(left, right).alias("low"), f.greatest(left, right).alias("high"))


def _components_on_driver(edges: DataFrame) -> DataFrame:
    table = edges.toArrow()
    places, first = _join(*(table.column(name).to_numpy() for name in ("low", "high")))
    joined = pa.table({"place": from_numpy(places), "component": from_numpy(first)})
    return edges.sparkSession.createDataFrame(joined)


def _join(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """Return every place, ascending, and the smallest place of its component."""
    places, numbers = np.unique(np.concatenate([low, high]), return_inverse=True)
    dense = numbers.astype(np.uint32)
    parents = np.arange(len(places), dtype=np.uint32)
    _kernel.join_pairs(dense[: len(low)], dense[len(low) :], parents)
    _kernel.flatten_components(parents)
    return places, places[parents]


def _contract(edges: DataFrame, task_edges: int) -> DataFrame:
    """Join the edges of each partition inside its task.

    They are sorted, so that a task that runs again after a loss yields the same edges and not only equivalent ones:
    some of the next tasks may have read the first ones.
    """
    if not task_edges:
        return edges

    def contract(batches: Batches) -> Batches:
        return _contracted(batches, task_edges)

    return edges.sortWithinPartitions("low", "high").mapInArrow(contract, EDGES)


def _contracted(batches: Batches, task_edges: int) -> Batches:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows >= task_edges:
            yield _tree(held)
            held, rows = [], 0
    if held:
        yield _tree(held)


def _tree(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return an edge from the first place of each component to each other one."""
    table = pa.Table.from_batches(batches)
    places, first = _join(*(table.column(name).to_numpy() for name in ("low", "high")))
    others = places != first
    return pa.record_batch({"low": from_numpy(first[others]), "high": from_numpy(places[others])})


def _large_star(edges: DataFrame) -> DataFrame:
    """Link the larger neighbours of each place to its smallest neighbour, or to the place itself if it is smaller."""
    forth = f.struct(f.col("low").alias("centre"), f.col("high").alias("other"))
    back = f.struct(f.col("high").alias("centre"), f.col("low").alias("other"))
    both = edges.select(f.explode(f.array(forth, back)).alias("edge")).select("edge.centre", "edge.other")
    distinct = both.repartition("centre").dropDuplicates(["centre", "other"])
    smallest = f.min("other").over(Window.partitionBy("centre"))
    starred = distinct.withColumn("low", f.least("centre", smallest)).where("other > centre")
    return starred.select("low", f.col("other").alias("high"))


def _small_star(edges: DataFrame) -> DataFrame:
    """Link each place and its smaller neighbours to the smallest of these. ``low`` must be smaller than ``high``."""
    distinct = edges.repartition("high").dropDuplicates(["high", "low"])
    starred = distinct.withColumn("smallest", f.min("low").over(Window.partitionBy("high")))
    other = f.when(f.col("low") == f.col("smallest"), f.col("high")).otherwise(f.col("low"))
    return starred.select(f.col("smallest").alias("low"), other.alias("high"))


class _RoundStore:
    """Writer of one round after the other, without the plan that made it; deletes the round before."""

    def __init__(self, session: SparkSession, work: str | None) -> None:
        self.session = session
        self.folder = None if work is None else StageFolder(work)
        self.finished = 0

    def finish(self, edges: DataFrame) -> DataFrame:
        if self.folder is None:
            return checkpoint(edges)
        name, earlier = (f"components-round-{number}" for number in (self.finished, self.finished - 1))
        edges.write.mode("overwrite").parquet(self.folder.url(name))
        self.folder.delete(earlier)
        self.finished += 1
        return self.session.read.schema(EDGES).parquet(self.folder.pattern(name))


def star_groups(
    pairs: DataFrame, components: DataFrame, *, protected: int = 0, partitions: int | None = None
) -> DataFrame:
    """Return the removed places: in ascending order, each that has a pair with a kept place before it.

    Its witness is its most similar kept partner, the smallest among equals, as
    :func:`minwise.search.clustering.cluster_by_star` decides.

    The pairs of a component pass through one task in ascending order; Spark sorts them on disk if they are many. The
    task does not hold them: only 21 bytes for each member of the open component, 24 bytes for each pair whose smaller
    side is removed while its larger side is undecided, and as many rows that came last. Memory is bounded by the
    members of the largest component.

    Args:
        pairs: ``low``, ``high`` and ``similarity``; the smaller place first.
        components: ``place`` and ``component`` of every place in a pair, as :func:`connected_components` returns them.
        protected: Places below this are never removed, and pairs among them do not count.
        partitions: Number of partitions of the components; Spark's own choice by default. The result does not depend on
            it.

    Returns:
        ``place``, ``witness`` and ``similarity`` of the removed places.
    """
    low, high = (f.col(side).cast("long").alias(side) for side in ("low", "high"))
    counting = pairs.where(f.col("high") >= protected).select(low, high, "similarity")
    named = components.select(f.col("place").alias("low"), "component")
    unknown = f.raise_error(f.concat(f.lit("components must have every place of a pair, but not "), f.col("low")))
    grouped = counting.join(named, "low", "left").withColumn("component", f.coalesce("component", unknown))
    parts = grouped.repartition("component") if partitions is None else grouped.repartition(partitions, "component")
    ordered = parts.sortWithinPartitions("component", "low", "high")
    return ordered.mapInArrow(_removed_places, ddl(REMOVED))


def _removed_places(batches: Batches) -> Batches:
    """Yield the removed places of pairs sorted by component, smaller and larger place."""
    members, component = _OpenComponent(), None
    for table in _chunks(batches, members):
        numbers = table.column("component").to_numpy()
        if numbers[-1] != component:
            ended = int(np.searchsorted(numbers, numbers[-1]))
            members.add(table.slice(0, ended))
            yield from members.finish()
            table, component = table.slice(ended), numbers[-1]
        members.add(table)
    yield from members.finish()


def _chunks(batches: Batches, members: "_OpenComponent") -> Iterator[pa.Table]:
    """Yield as many batches at once as there are rows held, so that growing costs a constant amount per row."""
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


class _OpenComponent:
    """Members of the components that may continue in the next batch.

    When a place appears as the smaller one of a pair, everything before it is decided, and so is the place itself. So a
    pair whose smaller side is kept is used at once, one whose sides are both removed never, and only the others wait.
    """

    def __init__(self) -> None:
        self._clear()

    def __len__(self) -> int:
        return len(self.places) + len(self.waiting[0])

    def _clear(self) -> None:
        self.places = np.empty(0, dtype=np.int64)
        self.removed = np.empty(0, dtype=bool)
        self.witness = np.empty(0, dtype=np.uint32)
        self.best = np.empty(0, dtype=np.float64)
        # A separate array: the kernel does not accept one array as both input and output.
        self.waiting: tuple[Int64s, Int64s, Similarities] = (self.places, self.places, self.best.copy())

    def add(self, table: pa.Table) -> None:
        """Add the next pairs."""
        low, high, similarity = (table.column(name).to_numpy() for name in ("low", "high", "similarity"))
        self._grow(np.union1d(low, high))
        smaller, larger = self._numbers(low), self._numbers(high)
        _kernel.remove_neighbours(smaller, larger, self.removed)
        kept = ~self.removed[smaller]
        self._choose(smaller[kept], larger[kept], similarity[kept])
        self._wait(low[~kept], high[~kept], similarity[~kept])

    def finish(self) -> Batches:
        """Yield the removed places, all of which are decided now, and clear the members."""
        low, high, similarity = self.waiting
        self._choose(self._numbers(low), self._numbers(high), similarity)
        removed = np.flatnonzero(self.removed)
        found = (self.places[removed], self.places[self.witness[removed]], self.best[removed])
        self._clear()
        for start in range(0, len(removed), BLOCK_ROWS):
            columns = [from_numpy(values[start : start + BLOCK_ROWS]) for values in found]
            yield pa.RecordBatch.from_arrays(columns, schema=REMOVED)

    def _numbers(self, places: Int64s) -> NDArray[np.uint32]:
        return np.searchsorted(self.places, places).astype(np.uint32)

    def _choose(self, low: NDArray[np.uint32], high: NDArray[np.uint32], similarity: Similarities) -> None:
        _kernel.choose_witnesses(low, high, similarity, self.removed, self.witness, self.best)

    def _wait(self, low: Int64s, high: Int64s, similarity: Similarities) -> None:
        """Add pairs whose smaller side is removed; drop those whose larger side has been removed too."""
        columns = zip(self.waiting, (low, high, similarity), strict=True)
        low, high, similarity = (np.concatenate(both) for both in columns)
        undecided = ~self.removed[self._numbers(high)]
        self.waiting = (low[undecided], high[undecided], similarity[undecided])

    def _grow(self, places: Int64s) -> None:
        """Add places, some of which may be known."""
        places = np.union1d(self.places, places)
        moved = np.searchsorted(places, self.places)
        removed, best = np.zeros(len(places), dtype=bool), np.full(len(places), np.nan)
        witness = np.full(len(places), NO_DOCUMENT, dtype=np.uint32)
        removed[moved], best[moved] = self.removed, self.best
        witness[moved[self.removed]] = moved[self.witness[self.removed]]
        self.places, self.removed, self.witness, self.best = places, removed, witness, best
