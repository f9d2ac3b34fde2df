"""Clusters and deduplication of vectors: equal to a simple algorithm on all distances."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.vectors import exact_distances

import minwise as mw

SMALL = st.integers(-3, 3).map(float)
POINTS = st.integers(0, 25).flatmap(lambda rows: arrays(np.float32, (rows, 2), elements=SMALL))
RADII = st.sampled_from([0.0, 1.0, 1.5, 3.0])


def removed_by_hand(vectors: NDArray[Any], radius: float) -> list[dict[str, Any]]:
    """Return the removed vectors: those near an earlier kept one, each with the nearest kept one."""
    apart = exact_distances(vectors, vectors, "euclidean")
    kept: list[int] = []
    for row in range(len(vectors)):
        if not any(apart[row, other] <= radius for other in kept):
            kept.append(row)
    removed = []
    for row in sorted(set(range(len(vectors))) - set(kept)):
        witness = min(kept, key=lambda other: (apart[row, other], other))
        removed.append({"id": row, "kept_id": witness, "distance": float(apart[row, witness])})
    return removed


def components_by_hand(vectors: NDArray[Any], radius: float) -> list[int]:
    """Return the first vector that each one is connected with."""
    apart, first = exact_distances(vectors, vectors, "euclidean"), list(range(len(vectors)))
    for _ in vectors:
        first = [min(first[other] for other in np.flatnonzero(near)) for near in apart <= radius]
    return first


@given(vectors=POINTS, radius=RADII)
def test_each_removed_vector_has_the_nearest_kept_one(vectors: NDArray[np.float32], radius: float) -> None:
    result = mw.EuclideanLSH(tables=0).fit(vectors).dedup(radius)
    expected = removed_by_hand(vectors, radius)
    found = result.removed.to_arrow().select(["id", "kept_id", "distance"]).to_pylist()
    # A copy of a removed vector has the kept one of that vector, at the same distance.
    assert found == expected
    assert np.flatnonzero(~result.keep).tolist() == [row["id"] for row in expected]
    kept_of = {row["id"]: row["kept_id"] for row in expected}
    cluster = [kept_of.get(row, row) for row in range(len(vectors))]
    assert result.clusters["cluster"].to_pylist() == cluster
    assert result.clusters["size"].to_pylist() == [cluster.count(first) for first in cluster]
    counts = result.report["counts"]
    assert (counts["read"], counts["removed"]) == (len(vectors), len(expected))


@given(vectors=POINTS, radius=RADII)
def test_clusters_are_the_connected_components(vectors: NDArray[np.float32], radius: float) -> None:
    table = mw.EuclideanLSH(tables=0).fit(vectors).clusters(radius)
    first = components_by_hand(vectors, radius)
    assert table.to_pydict() == {
        "id": list(range(len(vectors))),
        "cluster": first,
        "size": [first.count(one) for one in first],
    }


@given(vectors=POINTS, radius=RADII)
def test_star_clusters_are_those_of_deduplication(vectors: NDArray[np.float32], radius: float) -> None:
    search = mw.EuclideanLSH(tables=0).fit(vectors)
    clusters = search.dedup(radius).clusters.to_arrow().select(["id", "cluster", "size"])
    assert search.clusters(radius, group="star").to_arrow().to_pylist() == clusters.to_pylist()


@pytest.mark.parametrize("threads", [1, 3])
def test_tables_group_as_a_scan_does(threads: int) -> None:
    """Groups are far apart, so that tables miss none of their pairs."""
    rng = np.random.default_rng(1)
    centres = 100 * rng.normal(size=(200, 8))
    vectors = (np.repeat(centres, 5, axis=0) + 0.01 * rng.normal(size=(1000, 8))).astype(np.float32)
    scan, tables = mw.EuclideanLSH(tables=0), mw.EuclideanLSH(width=4.0, hashes=4, tables=20)
    one, other = scan.fit(vectors).dedup(0.5), tables.fit(vectors).dedup(0.5, threads=threads, memory="256MB")
    assert one.removed.to_arrow().equals(other.removed.to_arrow())
    assert len(one.removed) == 800
