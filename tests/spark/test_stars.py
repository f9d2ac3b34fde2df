"""Stars decided component by component equal those that the local engine finds in all pairs at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from minwise.search.clustering import CopyGroups, PairBlock, cluster_by_star
from minwise.spark import clustering
from minwise.spark.clustering import _HeldPairs, _removed_places, connected_components, star_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Numbers = NDArray[np.int64]
Removed = dict[int, tuple[int, str]]

FAR = 1 << 40
NO_COPIES = CopyGroups(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.uint64))


class Pairs(NamedTuple):
    """Pairs of numbers below ``documents``, ascending; ``first`` is added to make places of them."""

    low: Numbers
    high: Numbers
    similarity: NDArray[np.float64]
    documents: int
    first: int

    @property
    def table(self) -> pa.Table:
        """The pairs by place, shuffled."""
        columns = {"low": self.low + self.first, "high": self.high + self.first, "similarity": self.similarity}
        mixed = np.random.default_rng(0).permutation(len(self.low))
        return pa.table({name: pa.array(values[mixed]) for name, values in columns.items()})


def random_pairs(sizes: list[int], *, first: int = FAR, seed: int = 1) -> Pairs:
    """Return sparse and dense graphs of the sizes, with interleaved members and many equal similarities."""
    random = np.random.default_rng(seed)
    numbers, graphs = random.permutation(sum(sizes)), []
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        graphs.append(numbers[random.integers(end - size, end, (random.integers(1, 3 * size), 2))])
    edges = np.concatenate(graphs)
    low, high = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0).T
    similarity = random.choice([0.8, 0.85, 0.9, 1.0], len(low))
    return Pairs(np.ascontiguousarray(low), np.ascontiguousarray(high), similarity, len(numbers), first)


def clique(members: int) -> Pairs:
    """Return all pairs of some documents."""
    low, high = np.array(list(combinations(range(members), 2))).T
    return Pairs(low, high, np.ones(len(low)), members, 0)


def expected(pairs: Pairs, protected: int = 0) -> Removed:
    """Return the removed places of the local engine, their witnesses and similarities."""
    counting = pairs.high >= protected
    low, high = (side[counting].astype(np.uint32) for side in (pairs.low, pairs.high))
    block = PairBlock(low, high, pairs.similarity[counting])
    clustering = cluster_by_star(lambda: [block], NO_COPIES, pairs.documents, protected)
    return {
        int(place) + pairs.first: (
            int(clustering.witness[place]) + pairs.first,
            repr(float(clustering.similarity[place])),
        )
        for place in np.flatnonzero(clustering.removed)
    }


def found(result: "DataFrame") -> Removed:
    """Return the removed places of Spark, and check that none occurs twice."""
    rows = result.collect()
    assert len({row.place for row in rows}) == len(rows)
    return {row.place: (row.witness, repr(row.similarity)) for row in rows}


@contextmanager
def batches_of(spark: "SparkSession", rows: int) -> Iterator[None]:
    """Send this many rows to Python at once inside the block."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, str(rows))
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


@pytest.mark.parametrize(("rows", "partitions"), [(7, 1), (10_000, 3), (1, None)])
def test_stars_are_those_of_the_local_engine(spark: "SparkSession", rows: int, partitions: int | None) -> None:
    """Of 200 graphs, one of which spans hundreds of batches, for any partitions and batches."""
    pairs = random_pairs([*np.random.default_rng(2).integers(2, 20, 200), 400])
    whole = spark.createDataFrame(pairs.table)
    with batches_of(spark, rows):
        assert found(star_groups(whole, connected_components(whole), partitions=partitions)) == expected(pairs)


def test_with_unknown_similarities_the_witness_is_the_first_kept_one(spark: "SparkSession") -> None:
    """Unverified pairs have no similarity; the witness is that of the local engine."""
    pairs = random_pairs([10] * 30)
    pairs = pairs._replace(similarity=np.full(len(pairs.low), np.nan))
    whole = spark.createDataFrame(pairs.table)
    with batches_of(spark, 11):
        assert found(star_groups(whole, connected_components(whole))) == expected(pairs)


def test_protected_places_are_never_removed(spark: "SparkSession") -> None:
    """Pairs among them do not count; pairs with other places remove these."""
    pairs = random_pairs([12] * 40, first=0)
    whole, protected = spark.createDataFrame(pairs.table), pairs.documents // 3
    removed = found(star_groups(whole, connected_components(whole), protected=protected))
    assert removed == expected(pairs, protected)
    assert min(removed) >= protected
    assert any(witness < protected for witness, _ in removed.values())
    assert min(found(star_groups(whole, connected_components(whole)))) < protected


def test_without_pairs_nothing_is_removed(spark: "SparkSession") -> None:
    """In no partition and in an empty one."""
    nothing = spark.createDataFrame([], "low long, high long, similarity double")
    assert star_groups(nothing, connected_components(nothing)).collect() == []
    assert list(_removed_places(iter([]))) == []  # an empty partition


def test_a_place_without_a_component_is_refused(spark: "SparkSession") -> None:
    """Its pairs would be lost, and the places that they remove would be kept."""
    from pyspark.errors import PySparkException

    pairs = spark.createDataFrame([(3, 4, 0.9), (5, 6, 0.9)], "low long, high long, similarity double")
    with pytest.raises(PySparkException, match="components must have every place of a pair, but not 5"):
        star_groups(pairs, connected_components(pairs.where("low = 3"))).collect()


def by_component(pairs: Pairs) -> pa.Table:
    """Return the pairs as a task receives them: by component, smaller and larger place."""
    first = np.arange(pairs.documents)
    for _ in range(pairs.documents):
        for low, high in zip(pairs.low.tolist(), pairs.high.tolist(), strict=True):
            first[low] = first[high] = min(first[low], first[high])
    table = pairs.table.append_column("component", pa.array(first[pairs.table["low"].to_numpy() - pairs.first]))
    return table.sort_by([(name, "ascending") for name in ("component", "low", "high")])


@given(
    sizes=st.lists(st.integers(2, 12), min_size=1, max_size=8),
    seed=st.integers(0, 99),
    rows=st.integers(1, 20),
    held=st.integers(1, 30),
)
def test_stars_do_not_depend_on_how_many_pairs_a_task_holds(sizes: list[int], seed: int, rows: int, held: int) -> None:
    """Components end anywhere in a batch and continue in the next files."""
    pairs = random_pairs(sizes, seed=seed)
    batches = by_component(pairs).combine_chunks().to_batches(max_chunksize=rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "TASK_EDGES", held)
        removed = [row for batch in _removed_places(iter(batches)) for row in batch.to_pylist()]
    assert len({row["place"] for row in removed}) == len(removed)
    assert {row["place"]: (row["witness"], repr(row["similarity"])) for row in removed} == expected(pairs)


def test_members_are_held_but_not_their_pairs(tmp_path: Path) -> None:
    """However many pairs a member has: they are in files."""
    held, table = _HeldPairs(tmp_path), by_component(clique(100))
    for start in range(0, len(table), 50):
        held.add(table.slice(start, 50))
        assert sum(map(len, held.places)) <= 200
    assert sum(map(len, held.removed_places())) == 99
    assert sum(map(len, held.places)) == 0
    assert list(tmp_path.iterdir()) == []
