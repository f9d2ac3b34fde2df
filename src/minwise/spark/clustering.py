"""Groups of similar documents: connected components of pairs, and the stars inside each component.

A document is known by its ``place``, its position in the keep order.

Few edges are joined on the driver. Many are joined by large-star and small-star (Kiveris et al. 2014, "Connected
Components in MapReduce and Beyond", section 3): each place links its larger neighbours to its smallest one, round after
round, until every place is linked to the smallest place of its component and to no other.

A star lies within one component, so components are decided independently, by the kernel of the local engine.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise._internal.sorted_arrays import distinct
from minwise.search.clustering import Blocks, CopyGroups, PairBlock, cluster_by_star
from minwise.search.workdir import WorkDirectory
from minwise.spark.arrow_columns import Int64s, ddl
from minwise.spark.blocks import Batches, collected, record_batches
from minwise.spark.stage_store import StageFolder, checkpoint, task_directory

__all__ = [
    "DRIVER_EDGES",
    "EDGES",
    "NO_COPIES",
    "connected_components",
    "joined_edges",
    "star_groups",
    "star_removals",
    "star_rounds",
]

EDGES = pa.schema([("low", pa.int64()), ("high", pa.int64())])
# Pairs that the driver joins by itself: 320 MB of numbers, and five times as much during the join. Spark's own limit
# of what is sent to the driver, spark.driver.maxResultSize, is 1 GB by default.
DRIVER_EDGES = 20_000_000
# Edges that a task joins by itself before it sends any, or pairs that it writes to a file: about 80 MB meanwhile.
TASK_EDGES = 1 << 20
REMOVED = pa.schema([("place", pa.int64()), ("witness", pa.int64()), ("similarity", pa.float64())])
NO_COPIES = CopyGroups(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.uint64))


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
    places, first = _join(*_sides(edges.toArrow()))
    joined = pa.table({"place": from_numpy(places), "component": from_numpy(first)})
    return edges.sparkSession.createDataFrame(joined)


def _join(low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
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
        for held in collected(batches, len, task_edges):
            yield from record_batches(EDGES, *joined_edges(*_sides(pa.Table.from_batches(held))))

    return edges.sortWithinPartitions("low", "high").mapInArrow(contract, ddl(EDGES))


def _sides(edges: pa.Table) -> Iterator[Int64s]:
    return (edges.column(name).to_numpy() for name in EDGES.names)


def joined_edges(low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an edge from the first place of each component to each other one."""
    places, first = _join(low, high)
    others = places != first
    return first[others], places[others]


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
        return self.session.read.schema(ddl(EDGES)).parquet(self.folder.pattern(name))


def star_groups(
    pairs: DataFrame, components: DataFrame, *, protected: int = 0, partitions: int | None = None
) -> DataFrame:
    """Return the removed places: in ascending order, each that has a pair with a kept place before it.

    Its witness is its most similar kept partner, the smallest among equals, as
    :func:`minwise.search.clustering.cluster_by_star` decides.

    The pairs of a component pass through one task in ascending order; Spark sorts them on disk if they are many. The
    task writes them to files, and holds a million of them and the members of the component: it took 490 MB with four
    million members and four pairs each. Memory is bounded by the members of the largest component.

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
    with task_directory() as folder:
        held, component = _HeldPairs(Path(folder)), None
        for several in collected(batches, len, TASK_EDGES):
            pairs = pa.Table.from_batches(several)
            numbers = pairs.column("component").to_numpy()
            if numbers[-1] != component:
                ended = int(np.searchsorted(numbers, numbers[-1]))
                held.add(pairs.slice(0, ended))
                yield from held.removed_places()
                pairs, component = pairs.slice(ended), numbers[-1]
            held.add(pairs)
        yield from held.removed_places()


class _HeldPairs:
    """Pairs of whole components, in files, and of the component that may continue; their members are in memory."""

    def __init__(self, folder: Path) -> None:
        self.work = WorkDirectory(folder, durable=False)
        self.places = [np.empty(0, dtype=np.int64)]  # in several arrays, together at most twice all members

    def add(self, pairs: pa.Table) -> None:
        """Add the next pairs."""
        low, high = _sides(pairs)
        sides = {"low": low.view(np.uint64), "high": high.view(np.uint64)}  # files have no signed numbers
        similarity = pairs.column("similarity").to_numpy()
        self.work.write(f"pairs-{len(self._files):09}", {**sides, "similarity": similarity})
        self.places.append(distinct(np.concatenate([low, high])))
        if sum(map(len, self.places[1:])) > len(self.places[0]):
            self._join_places()

    def _join_places(self) -> None:
        self.places = [distinct(np.concatenate(self.places))]

    @property
    def _files(self) -> list[str]:
        return self.work.names("pairs-")

    def _blocks(self) -> Iterator[PairBlock]:
        """Yield the pairs, of numbers of the members."""
        for file in map(self.work.open, self._files):
            sides = (file.read(side).view(np.int64) for side in EDGES.names)
            low, high = (np.searchsorted(self.places[0], side).astype(np.uint32) for side in sides)
            yield PairBlock(low, high, file.read("similarity"))

    def removed_places(self) -> Batches:
        """Yield the places that the pairs remove, and forget the pairs."""
        self._join_places()
        places = self.places[0]
        witness, removed, similarity = star_removals(self._blocks, len(places))
        yield from record_batches(REMOVED, places[removed], places[witness], similarity)
        self.work.delete("pairs-")
        self.places = [places[:0]]


def star_removals(blocks: Blocks, documents: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]:
    """Return the witness, the number and the similarity of each document that is removed; as in the local engine."""
    found = cluster_by_star(blocks, NO_COPIES, documents)
    removed = np.flatnonzero(found.removed).astype(np.uint32)
    return found.witness[removed], removed, found.similarity[removed]
