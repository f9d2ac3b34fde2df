"""Components: pairs of places in; the component of each place, named after its smallest one, out.

Few edges are joined on the driver. Many are joined by large-star and small-star (Kiveris et al. 2014, "Connected
Components in MapReduce and Beyond", section 3): whoever stands between two others hands the larger over to the smaller,
again and again, until everybody is tied to the smallest of his component and to nobody else.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.spark.holding import held
from minwise.spark.stages import Folder

__all__ = ["components", "star_rounds"]

Batches = Iterator[pa.RecordBatch]
Numbers = NDArray[np.int64]

EDGES = "low long, high long"
# What the driver joins by itself: 320 MB of numbers, and five times as much while it works. Spark's own limit for what
# is sent to the driver, spark.driver.maxResultSize, is 1 GB if nobody says otherwise.
DRIVER_EDGES = 20_000_000
# What a task joins by itself before anything is sent: about 80 MB while it works.
HELD_EDGES = 1 << 20


def components(edges: DataFrame, *, driver_edges: int = DRIVER_EDGES, work: str | None = None) -> DataFrame:
    """The connected component of every place that has an edge to another one.

    The direction of edges, their repetitions and edges from a place to itself do not matter.

    Args:
        edges: ``low`` and ``high``. It is evaluated more than once, so it should be a finished stage.
        driver_edges: Up to so many are joined on the driver, in about 100 bytes each; more are joined by
            :func:`star_rounds`. The result does not depend on it.
        work: A directory for the rounds, as a path or URL. The last of them stays there and is what the result is read
            from. Without it the executors hold the rounds, each on two of them: a run survives the loss of one, of
            more not.

    Returns:
        ``place`` and ``component``, the smallest place of its component.
    """
    edges = _edges(edges)
    if edges.count() <= driver_edges:
        return _join_on_driver(edges)
    for last in star_rounds(edges, work=work):
        forest = last
    first = forest.select("low").distinct().select(f.col("low").alias("place"), f.col("low").alias("component"))
    return first.union(forest.select("high", "low"))


def star_rounds(edges: DataFrame, *, work: str | None = None, held_edges: int = HELD_EDGES) -> Iterator[DataFrame]:
    """The edges after each round of large-star and small-star, until a round changes nothing.

    In the last of them every component is a star: each of its places but the smallest is ``high`` once, with the
    smallest as ``low``. A round that changes anything leaves fewer edges, or as many with a smaller sum of all places;
    so comparing these two says exactly whether it has.

    Their number is of the order of log n for n places, measured up to 18 on a path of 100,000, 2 or 3 where components
    are small. A round sends each edge three times (48 bytes) and holds in a task what ``held_edges`` says; the edges of
    one place go through one task, which sorts them on disk if they are many.

    Args:
        edges: ``low`` and ``high``.
        work: A directory for the rounds; each is deleted when the next is finished. Without it the executors hold them,
            until nobody refers to them.
        held_edges: How many sorted edges a task joins at once before it sends anything, which leaves a tree of each
            connected piece of them. 0: it joins none.

    Yields:
        ``low`` and ``high``, finished.
    """
    edges, held, before = _edges(edges), _Rounds(edges.sparkSession, work), None
    while True:
        edges = held.finish(_small_star(_large_star(_contract(edges, held_edges))))
        total = f.sum(f.col("low").cast("decimal(38, 0)") + f.col("high"))
        after = edges.agg(f.count("low"), total).first()
        yield edges
        if after == before:
            return
        before = after


def _edges(edges: DataFrame) -> DataFrame:
    """The edges as two numbers, the smaller first, none of them from a place to itself."""
    one, other = f.col("low").cast("long"), f.col("high").cast("long")
    return edges.where(one != other).select(f.least(one, other).alias("low"), f.greatest(one, other).alias("high"))


def _join_on_driver(edges: DataFrame) -> DataFrame:
    table = edges.toArrow()
    places, first = _join(*(table.column(name).to_numpy() for name in ("low", "high")))
    joined = pa.table({"place": from_numpy(places), "component": from_numpy(first)})
    return edges.sparkSession.createDataFrame(joined)


def _join(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Every place, ascending, and the smallest of its component."""
    places, numbers = np.unique(np.concatenate([low, high]), return_inverse=True)
    dense = numbers.astype(np.uint32)
    parents = np.arange(len(places), dtype=np.uint32)
    _kernel.join_pairs(dense[: len(low)], dense[len(low) :], parents)
    _kernel.flatten_components(parents)
    return places, places[parents]


def _contract(edges: DataFrame, held_edges: int) -> DataFrame:
    """The edges of each part, joined there as far as possible.

    Sorted, so that a task that is run again after a loss gives the same edges and not only as good ones: half of the
    next tasks may have read the first ones.
    """
    if not held_edges:
        return edges

    def contract(batches: Batches) -> Batches:
        return _contracted(batches, held_edges)

    return edges.sortWithinPartitions("low", "high").mapInArrow(contract, EDGES)


def _contracted(batches: Batches, held_edges: int) -> Batches:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows >= held_edges:
            yield _tree(held)
            held, rows = [], 0
    if held:
        yield _tree(held)


def _tree(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """An edge from the first of each component to each other of it."""
    table = pa.Table.from_batches(batches)
    places, first = _join(*(table.column(name).to_numpy() for name in ("low", "high")))
    others = places != first
    return pa.record_batch({"low": from_numpy(first[others]), "high": from_numpy(places[others])})


def _large_star(edges: DataFrame) -> DataFrame:
    """Ties everybody's larger neighbours to his smallest one, or to himself if he is smaller."""
    there = f.struct(f.col("low").alias("centre"), f.col("high").alias("other"))
    back = f.struct(f.col("high").alias("centre"), f.col("low").alias("other"))
    both = edges.select(f.explode(f.array(there, back)).alias("edge")).select("edge.centre", "edge.other")
    distinct = both.repartition("centre").dropDuplicates(["centre", "other"])
    smallest = f.min("other").over(Window.partitionBy("centre"))
    starred = distinct.withColumn("low", f.least("centre", smallest)).where("other > centre")
    return starred.select("low", f.col("other").alias("high"))


def _small_star(edges: DataFrame) -> DataFrame:
    """Ties everybody and his smaller neighbours to the smallest of these. ``low`` must be smaller than ``high``."""
    distinct = edges.repartition("high").dropDuplicates(["high", "low"])
    starred = distinct.withColumn("smallest", f.min("low").over(Window.partitionBy("high")))
    other = f.when(f.col("low") == f.col("smallest"), f.col("high")).otherwise(f.col("low"))
    return starred.select(f.col("smallest").alias("low"), other.alias("high"))


class _Rounds:
    """Makes a table that does not remember how it was made, and forgets the one before."""

    def __init__(self, session: SparkSession, work: str | None) -> None:
        self.session = session
        self.folder = None if work is None else Folder(work)
        self.finished = 0

    def finish(self, edges: DataFrame) -> DataFrame:
        if self.folder is None:
            return held(edges)
        name, earlier = (f"components-round-{number}" for number in (self.finished, self.finished - 1))
        edges.write.mode("overwrite").parquet(self.folder.url(name))
        self.folder.delete(earlier)
        self.finished += 1
        return self.session.read.schema(EDGES).parquet(self.folder.pattern(name))
