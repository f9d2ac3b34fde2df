"""Vector search: results are a subset of brute force, and recall reaches that of the plan."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.vectors import table_search

import minwise as mw
from minwise.vectors.projection import bucket_probability, slot_probability

DATA = Path(__file__).parents[3] / "shared" / "data" / "vec"
SMALL = st.integers(-3, 3).map(float)
POINTS = st.integers(0, 30).flatmap(lambda rows: arrays(np.float32, (rows, 3), elements=SMALL))


def brute(vectors: NDArray[Any], others: NDArray[Any], measure: str) -> NDArray[np.float64]:
    """Return all distances, computed by NumPy in float64."""
    left, right = vectors.astype(np.float64), others.astype(np.float64)
    if measure == "euclidean":
        return np.stack([np.sqrt(((right - row) ** 2).sum(axis=1)) for row in left]) if len(left) else np.empty((0, 0))
    norms = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    return 1 - left @ right.T / norms


def true_pairs(vectors: NDArray[Any], radius: float, measure: str) -> dict[tuple[int, int], float]:
    """Return every pair within the radius, with its distance."""
    distances = brute(vectors, vectors, measure)
    within = np.argwhere(np.triu(distances <= radius, 1)) if len(vectors) else np.empty((0, 2), dtype=int)
    return {(left, right): float(distances[left, right]) for left, right in within.tolist()}


def found_pairs(table: pa.Table) -> dict[tuple[int, int], float]:
    """Return a table of pairs as a dictionary."""
    columns = [table.column(name).to_pylist() for name in ("left", "right", "distance")]
    return {(left, right): distance for left, right, distance in zip(*columns, strict=True)}


def clustered(rows: int, dims: int, seed: int, spread: float = 0.1) -> NDArray[np.float32]:
    """Return points around a fifth as many centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, rows // 5), dims))
    points = centres[rng.integers(0, len(centres), rows)] + spread * rng.normal(size=(rows, dims))
    return points.astype(np.float32)


@given(points=POINTS, radius=st.sampled_from([0.0, 1.0, 1.5, 3.0]))
def test_one_wide_bucket_gives_every_pair(points: NDArray[np.float32], radius: float) -> None:
    """Segments wider than all data put all vectors into one bucket, so no pair may be missed."""
    search = mw.EuclideanLSH(width=1e9, hashes=1, tables=6)
    found = found_pairs(search.fit(points).pairs(radius))
    expected = true_pairs(points, radius, "euclidean")
    # A segment may end between the points; that it does in all six tables has a probability of about (1e-8)^6.
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=1e-12)
    assert list(found) == sorted(found)


@given(points=POINTS, radius=st.sampled_from([0.0, 1.0, 1.5, 3.0]), seed=st.integers(0, 5))
def test_every_layout_finds_only_true_pairs(points: NDArray[np.float32], radius: float, seed: int) -> None:
    """Pairs are within the radius and have their exact distance; pairs of equal vectors are always found."""
    found = found_pairs(mw.EuclideanLSH(width=0.5, hashes=3, tables=2, seed=seed).fit(points).pairs(radius))
    expected = true_pairs(points, radius, "euclidean")
    assert found.keys() <= expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-12) for pair in found)
    assert {pair for pair, distance in expected.items() if distance == 0.0} <= found.keys()


@given(
    points=POINTS,
    queries=arrays(np.float32, (4, 3), elements=SMALL),
    top=st.integers(1, 40),
    radius=st.none() | st.just(2.0),
)
def test_one_wide_bucket_gives_the_nearest(
    points: NDArray[np.float32], queries: NDArray[np.float32], top: int, radius: float | None
) -> None:
    """Neighbours are ordered by distance, ties by row."""
    search = mw.EuclideanLSH(width=1e9, hashes=1, tables=6).fit(points)
    rows = search.query(queries, top=top, radius=radius).to_pylist()
    expected = []
    for number, apart in enumerate(brute(queries, points, "euclidean") if len(points) else np.empty((4, 0))):
        order = [row for row in np.lexsort((np.arange(len(points)), apart)) if radius is None or apart[row] <= radius]
        expected += [(number, int(row)) for row in order[:top]]
    assert [(row["query"], row["neighbour"]) for row in rows] == expected


@pytest.mark.parametrize(("measure", "radius"), [("euclidean", 0.9), ("cosine", 0.03)])
@pytest.mark.parametrize("recall", [0.8, 0.99])
def test_recall_is_at_least_that_of_the_plan(measure: str, radius: float, recall: float) -> None:
    """Every pair within the radius is found with at least the recall of the plan.

    Pairs of one run share projections, seeds share nothing: the shares of 12 seeds are independent. Their mean is 5
    standard errors below its expectation with a probability of 0.0002 (Student, 11 degrees of freedom).
    """
    vectors = clustered(1000, 24, seed=5)
    expected = true_pairs(vectors, radius, measure)
    assert len(expected) > 1000
    shares = []
    for seed in range(12):
        search = table_search(vectors, radius, measure=measure, recall=recall, seed=seed)
        assert search.probability(radius) >= recall
        found = found_pairs(search.fit(vectors).pairs(radius))
        assert found.keys() <= expected.keys()
        shares.append(len(found) / len(expected))
    assert np.mean(shares) >= recall - 5 * np.std(shares, ddof=1) / math.sqrt(len(shares))


@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("width", [1.0, 4.0])
def test_probability_of_a_euclidean_slot_follows_the_formula(distance: float, width: float) -> None:
    """The share among 20,000 projections is within six standard errors, 6·sqrt(p(1−p)/20000) ≤ 0.0213."""
    projections = 20_000
    pair = np.zeros((2, 4), dtype=np.float32)
    pair[1] = distance / 2
    shared = _shared_slots(pair, width, projections)
    assert shared == pytest.approx(slot_probability("euclidean", distance, width), abs=0.0213)


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.5, 3.0])
def test_probability_of_a_cosine_slot_follows_the_formula(angle: float) -> None:
    """The share among 20,000 projections is within six standard errors of 1 − θ/π."""
    pair = np.array([[1, 0, 0], [math.cos(angle), math.sin(angle), 0]], dtype=np.float32)
    shared = _shared_slots(pair, None, 20_000)
    assert shared == pytest.approx(slot_probability("cosine", 1 - math.cos(angle), None), abs=0.0213)
    assert slot_probability("cosine", 1 - math.cos(angle), None) == pytest.approx(1 - angle / math.pi)


def _shared_slots(pair: NDArray[np.float32], width: float | None, projections: int) -> float:
    """Return the share of projections that give both vectors the same slot: tables of one projection each."""
    from minwise.sketches.planning import Plan
    from minwise.vectors.projection import VectorBander, VectorSettings

    shared, at_once = 0, 10_000
    for seed in range(projections // at_once):
        settings = VectorSettings(
            plan=Plan(threshold=1.0, bands=at_once, rows=1),
            shingler=None,
            measure="euclidean" if width else "cosine",
            width=width,
            radius=1.0,
            seed=seed,
        )
        keys = VectorBander(settings, pair.shape[1]).keys(pair, settings, 1).keys
        shared += int((keys[:, 0] == keys[:, 1]).sum())
    return shared / projections


@given(slot=st.floats(0, 1), hashes=st.integers(1, 30), tables=st.integers(1, 300))
def test_probability_of_a_bucket_follows_from_that_of_a_slot(slot: float, hashes: int, tables: int) -> None:
    assert bucket_probability(slot, hashes, tables) == pytest.approx(1 - (1 - slot**hashes) ** tables, abs=1e-9)


@pytest.mark.parametrize("name", ["digits.npy", "mnist_t10k_first3000.npy"])
def test_recall_on_real_images(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip("the images of ../shared/data/vec are missing")
    vectors = np.load(DATA / name)
    vectors = vectors.reshape(len(vectors), -1)[:1500]
    apart = brute(vectors, vectors, "euclidean")
    radius = float(np.quantile(apart[np.triu_indices(len(vectors), 1)], 0.001))
    expected = true_pairs(vectors, radius, "euclidean")
    search = table_search(vectors, radius)
    found = found_pairs(search.fit(vectors).pairs(radius))
    assert found.keys() <= expected.keys()
    assert len(found) >= 0.98 * len(expected) > 500
