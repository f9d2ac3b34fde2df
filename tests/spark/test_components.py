"""Connected components equal those of scipy, on the driver and by star rounds, for any places and order of edges."""

from contextlib import redirect_stdout
from io import StringIO
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csgraph

from minwise.spark.clustering import connected_components, star_rounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Numbers = NDArray[np.int64]

FAR = 1 << 40
NONE = np.empty((0, 2), dtype=np.int64)


def path(nodes: int) -> Numbers:
    """Return edges from each node to the next: the longest path to the smallest place."""
    return np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)


def star(nodes: int) -> Numbers:
    """Return edges from each node to the last."""
    return np.stack([np.arange(nodes - 1), np.full(nodes - 1, nodes - 1)], axis=1)


def random_graphs(seed: int) -> Numbers:
    """Return sparse and dense graphs of non-consecutive places, with reversed and repeated edges and self-loops."""
    random = np.random.default_rng(seed)
    graphs = [
        random.integers(0, nodes, (edges, 2)) for nodes in (2, 5, 30, 200) for edges in (1, nodes // 2, 2 * nodes)
    ]
    starts = np.cumsum([0] + [int(graph.max()) + 1 for graph in graphs])
    edges = np.concatenate([graph + start for graph, start in zip(graphs, starts, strict=False)])
    edges = random.choice(FAR, starts[-1])[edges] + FAR
    return random.permutation(np.concatenate([edges, edges[::3], edges[::4, ::-1]]))


def frame(spark: "SparkSession", edges: Numbers) -> "DataFrame":
    """Return the edges as a DataFrame of two partitions."""
    table = pa.table({"low": pa.array(edges[:, 0]), "high": pa.array(edges[:, 1])})
    return spark.createDataFrame(table).repartition(2)


def found(result: "DataFrame") -> tuple[list[int], list[int]]:
    """Return places in ascending order, and their components."""
    table = result.toArrow().sort_by("place")
    return table.column("place").to_pylist(), table.column("component").to_pylist()


def expected(edges: Numbers) -> tuple[list[int], list[int]]:
    """Return the components of scipy, each named after its smallest place."""
    places, numbers = np.unique(edges[edges[:, 0] != edges[:, 1]], return_inverse=True)
    low, high = numbers.reshape(-1, 2).T
    graph = coo_matrix((np.ones(len(low)), (low, high)), shape=(len(places), len(places)))
    _, first, labels = np.unique(
        csgraph.connected_components(graph, directed=False)[1], return_index=True, return_inverse=True
    )
    return places.tolist(), places[first[labels]].tolist()


def plan_lines(frame: "DataFrame") -> int:
    """Number of lines of the logical and physical plans."""
    with redirect_stdout(StringIO()) as printed:
        frame.explain("extended")
    return len(printed.getvalue().splitlines())


@pytest.mark.parametrize("driver_edges", [0, 1 << 20], ids=["stars", "driver"])
@pytest.mark.parametrize(
    "edges", [path(20_000), star(20_000), random_graphs(1), NONE], ids=["path", "star", "random", "none"]
)
def test_components_are_those_of_scipy(spark: "SparkSession", edges: Numbers, driver_edges: int) -> None:
    """Both methods return every place that has an edge, once, with the smallest place of its component."""
    assert found(connected_components(frame(spark, edges), driver_edges=driver_edges)) == expected(edges)


def test_star_rounds_on_a_path_are_logarithmic(spark: "SparkSession") -> None:
    """Without edges joined inside tasks: log2 n rounds, a first one, and one that changes nothing.

    No round contains the plans before it: the plan of the last is as long as that of the first.
    """
    edges = path(130)
    rounds = list(star_rounds(frame(spark, edges), task_edges=0))
    assert len(rounds) <= ceil(log2(len(edges))) + 2
    low, high = (np.array(rounds[-1].toArrow().sort_by("high").column(name)) for name in ("low", "high"))
    assert (low.tolist(), high.tolist()) == ([0] * 129, list(range(1, 130)))
    assert plan_lines(rounds[0]) == plan_lines(rounds[-1]) > 0


def test_star_rounds_join_what_tasks_have_joined_in_small_groups(spark: "SparkSession") -> None:
    """Tasks that join few edges at once leave the rest to the rounds, for random graphs and for a path."""
    edges = np.concatenate([path(200), random_graphs(2)])
    batch_rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(batch_rows)
    spark.conf.set(batch_rows, "20")
    try:
        *_, forest = star_rounds(frame(spark, edges), task_edges=40)
    finally:
        spark.conf.set(batch_rows, str(before))
    places, smallest = expected(edges)
    star = [(low, high) for low, high in zip(smallest, places, strict=True) if low != high]
    assert sorted((row.low, row.high) for row in forest.collect()) == sorted(star)


def test_only_the_last_round_stays_in_the_work_directory(spark: "SparkSession", tmp_path: Path) -> None:
    """A second run over the files of the first gives the same result."""
    edges = random_graphs(3)
    for _ in range(2):
        result = connected_components(frame(spark, edges), driver_edges=0, work=str(tmp_path / "a [b]"))
        assert found(result) == expected(edges)
        assert len(list((tmp_path / "a [b]").iterdir())) == 1
