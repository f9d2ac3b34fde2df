"""Exact scan of vectors: pairs and neighbours equal those of a comparison one by one, bit for bit."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.vectors import FAMILIES, exact_distances, exact_nearest, exact_pairs, processor_seconds, table_search

import minwise as mw
from minwise import _kernel
from minwise.vectors import nearest as nearest_search
from minwise.vectors import pairs as pair_search
from minwise.vectors import planning
from minwise.vectors import scan as scan_module

DATA = Path(__file__).parents[3] / "shared" / "data" / "vec"
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROUND = st.integers(-3, 3).map(float)
SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 5))
VECTORS = SHAPES.flatmap(
    lambda shape: (
        arrays(np.float32, shape, elements=FINITE) | arrays(np.float32, shape, elements=ROUND) | arrays(np.uint8, shape)
    )
)
HUGE = np.array([[3e38, -3e38], [3e38, -3e38], [1e25, 1], [1e25, 2], [1e-45, -0.0]], dtype=np.float32)
TINY = np.array([[1e-30, 0], [2e-30, 0], [1e-22, 1e-23], [1e-22, 0]], dtype=np.float32)
# The square of the first overflows, but neither its products nor the square of the radius.
OVERFLOWING = np.array([[2.2e19], *([float(i)] for i in range(11))], dtype=np.float32)
MEASURES = ("euclidean", "cosine")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use blocks of five rows, so that small matrices have several."""
    monkeypatch.setattr(scan_module, "BLOCK_ROWS", 5)
    monkeypatch.setattr(scan_module, "MIN_BLOCK_ROWS", 5)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


def usable(vectors: NDArray[Any], measure: str) -> NDArray[Any]:
    """Return the vectors that have a distance."""
    return vectors[vectors.any(axis=1)] if measure == "cosine" else vectors


def real(name: str, rows: int) -> NDArray[Any]:
    """Return the first rows of a matrix of real images."""
    if not (DATA / name).exists():
        pytest.skip("the images of ../shared/data/vec are missing")
    images: NDArray[Any] = np.load(DATA / name)
    return images.reshape(len(images), -1)[:rows]


@given(vectors=VECTORS, share=st.floats(0, 1))
@example(vectors=HUGE, share=0.0)
@example(vectors=TINY, share=0.2)
@example(vectors=OVERFLOWING, share=1.0)
@pytest.mark.parametrize("measure", MEASURES)
def test_pairs_equal_a_comparison_one_by_one(measure: str, vectors: NDArray[Any], share: float) -> None:
    """The radius is the distance of a pair, so that a pair at the radius must be found whatever a product rounds to."""
    vectors = usable(vectors, measure)
    apart = np.sort(exact_distances(vectors, vectors, measure), axis=None)
    radius = float(apart[int(share * (len(apart) - 1))]) if len(apart) else 0.0
    found = FAMILIES[measure](tables=0).fit(vectors).pairs(radius)
    expected = exact_pairs(vectors, radius, measure)
    assert [row[:2] for row in rows_of(found)] == [row[:2] for row in expected]
    # Equal vectors have distance 0, which rounding keeps from 1 − cosine.
    assert all(one[2] in (other[2], 0.0) for one, other in zip(rows_of(found), expected, strict=True))


@given(vectors=VECTORS, top=st.integers(1, 15), seed=st.integers(0, 3), share=st.none() | st.floats(0, 1))
@example(vectors=HUGE, top=2, seed=0, share=None)
@example(vectors=TINY, top=2, seed=0, share=None)
@pytest.mark.parametrize("measure", MEASURES)
def test_neighbours_equal_a_comparison_one_by_one(
    measure: str, vectors: NDArray[Any], top: int, seed: int, share: float | None
) -> None:
    vectors = usable(vectors, measure)
    queries = vectors[np.random.default_rng(seed).permutation(len(vectors))]
    apart = np.sort(exact_distances(vectors, vectors, measure), axis=None)
    radius = math.inf if share is None or not len(apart) else float(apart[int(share * (len(apart) - 1))])
    search = FAMILIES[measure](tables=0).fit(vectors)
    found = search.query(queries, top=top, radius=None if math.isinf(radius) else radius)
    assert rows_of(found) == exact_nearest(vectors, queries, measure, top, radius)


@pytest.mark.parametrize("name", ["digits.npy", "mnist_t10k_first3000.npy"])
def test_real_images_equal_a_comparison_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "BLOCK_ROWS", 300)
    images = real(name, 700)
    search = mw.EuclideanLSH(tables=0).fit(images)
    radius = float(np.quantile(exact_distances(images, images, "euclidean"), 0.01))
    expected = exact_pairs(images, radius, "euclidean")
    assert rows_of(search.pairs(radius)) == expected
    assert len(expected) > 500
    assert rows_of(search.query(images[:100], top=10)) == exact_nearest(images, images[:100], "euclidean", 10)


def test_vectors_far_from_the_origin_are_told_apart() -> None:
    """At 10⁶, squares in 24 bits have steps of 65,536; the centre is subtracted first."""
    near = np.random.default_rng(1).normal(size=(60, 8))
    vectors = (near + 1e6).astype(np.float32)
    found = mw.EuclideanLSH(tables=0).fit(vectors).pairs(2.0)
    assert rows_of(found) == exact_pairs(vectors, 2.0, "euclidean")
    assert 0 < len(found) < 60 * 59 // 2


def test_neighbours_in_descending_order_of_distance_are_found() -> None:
    """Each block is nearer than all before it, so bounds of earlier blocks exclude nothing."""
    vectors = np.arange(200, 0, -1, dtype=np.float32).reshape(-1, 1)
    found = mw.EuclideanLSH(tables=0).fit(vectors).query(np.zeros((3, 1), dtype=np.float32), top=2)
    assert rows_of(found) == [
        (query, row, distance) for query in range(3) for row, distance in ((199, 1.0), (198, 2.0))
    ]


def test_more_pairs_than_are_held_at_once_are_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(2).normal(size=(40, 3)).astype(np.float32)
    monkeypatch.setattr(pair_search._VectorSearch, "chunk", 7)
    assert rows_of(mw.EuclideanLSH(tables=0).fit(vectors).pairs(9.0)) == exact_pairs(vectors, 9.0, "euclidean")


def test_an_interrupted_scan_resumes_after_the_last_written_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(3).normal(size=(40, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", vectors)
    search, scanned = mw.EuclideanLSH(tables=0).fit(tmp_path / "x.npy"), []
    original = pair_search._VectorSearch._scan

    def interrupted(self: Any, scan: Any, rows: Any, part: slice, space: Any) -> Any:  # noqa: ANN401 - as the original
        scanned.append(part.start)
        if len(scanned) == 4:
            raise KeyboardInterrupt
        return original(self, scan, rows, part, space)

    monkeypatch.setattr(pair_search._VectorSearch, "_scan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.pairs(1.0, work=tmp_path / "work")
    assert rows_of(search.pairs(1.0, work=tmp_path / "work")) == exact_pairs(vectors, 1.0, "euclidean")
    assert scanned == [0, 5, 10, 15, 15, 20, 25, 30, 35]


def test_vectors_that_cannot_be_used_are_left_out_of_a_scan() -> None:
    vectors = np.random.default_rng(4).normal(size=(30, 3)).astype(np.float32)
    vectors[[3, 17], 1] = np.nan
    good = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    search = mw.EuclideanLSH(tables=0).fit(vectors)
    expected = [(good[left], good[right], d) for left, right, d in exact_pairs(vectors[good], 1.5, "euclidean")]
    assert rows_of(search.pairs(1.5, on_error="skip")) == expected
    near = exact_nearest(vectors[good], vectors[good], "euclidean", 3)
    assert rows_of(search.query(vectors, top=3, on_error="skip")) == [(good[q], good[row], d) for q, row, d in near]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_nearest_are_found_although_the_tables_are_for_a_small_radius(measure: str, tmp_path: Path) -> None:
    """Each with probability 0.99 or more, also beyond the radius of the tables.

    Of 3,000, that is 2,970 in the mean, less six standard deviations of at most √(3000·0.99·0.01) = 5.5.
    """
    rng = np.random.default_rng(5)
    vectors, queries = (rng.normal(size=(rows, 10)).astype(np.float32) for rows in (1000, 300))
    truth = {row[:2] for row in exact_nearest(vectors, queries, measure, 10)}
    radius = float(np.quantile(exact_distances(queries, vectors, measure), 0.0005))
    search = table_search(vectors, radius, measure=measure).fit(vectors)
    found = {row[:2] for row in rows_of(search.query(queries, top=10))}
    assert len(truth & found) >= 2937
    report = search.write_query(queries, tmp_path / "near.csv", top=10)
    assert report["plan"] == {"radius": None, "top": 10, "recall": 0.99}
    within = search.write_query(queries, tmp_path / "near.csv", radius=4 * radius)
    assert within["plan"]["recall"] == search.probability(4 * radius) < 0.99


def test_tables_answer_the_queries_whose_neighbours_are_near(tmp_path: Path) -> None:
    """Only the query without near vectors is compared with all 1,000."""
    rng = np.random.default_rng(6)
    centres = 100 * rng.normal(size=(100, 8))
    vectors = (np.repeat(centres, 10, axis=0) + 0.01 * rng.normal(size=(1000, 8))).astype(np.float32)
    queries = np.concatenate([vectors[:20], np.zeros((1, 8), dtype=np.float32)])
    search = table_search(vectors, 0.2).fit(vectors)
    report = search.write_query(queries, tmp_path / "near.parquet", top=5)
    assert 1000 <= report["compared"] < 2000
    found = rows_of(search.query(queries, top=5))
    assert [row for row in found if row[0] == 20] == [
        (20, *row[1:]) for row in exact_nearest(vectors, queries[20:], "euclidean", 5)
    ]


def test_a_plan_scans_few_vectors_and_hashes_many_in_groups() -> None:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(3000, 16))
    vectors = (np.repeat(centres, 10, axis=0) + 0.01 * rng.normal(size=(30_000, 16))).astype(np.float32)
    assert mw.EuclideanLSH.plan(vectors[:2000], radius=0.2).tables == 0
    assert mw.EuclideanLSH.plan(vectors, radius=0.2).tables > 0
    vectors[rng.permutation(30_000)[:3000]] = 0  # equal vectors count once, so they do not fill a bucket
    assert mw.EuclideanLSH.plan(vectors, radius=0.2).tables > 0
    # Without structure, tables would compare most pairs.
    assert mw.EuclideanLSH.plan(rng.normal(size=(20_000, 200)).astype(np.float32), radius=18.0).tables == 0


def test_a_plan_takes_tables_above_the_cap_only_if_a_scan_is_ten_times_as_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 5,000 of 100,000 vectors in one bucket, tables cost 0.044 s and a scan, which finds all pairs, 9.5 s."""
    rng = np.random.default_rng(8)
    vectors = 100 * rng.normal(size=(100_000, 16)).astype(np.float32)
    vectors[rng.permutation(100_000)[:5000]] = 0.001 * rng.normal(size=(5000, 16))
    assert mw.EuclideanLSH.plan(vectors, radius=0.5).tables > 0
    monkeypatch.setattr(planning, "WORTH_ALL_PAIRS", 300)
    assert mw.EuclideanLSH.plan(vectors, radius=0.5).tables == 0
    assert mw.EuclideanLSH.plan(vectors, radius=0.5, max_bucket=10_000).tables > 0


@pytest.mark.parametrize("radius", [1.99999, 2.0])
def test_a_plan_compares_all_where_no_tables_reach_the_recall(radius: float) -> None:
    vectors = np.random.default_rng(9).normal(size=(20_000, 4)).astype(np.float32)
    assert mw.CosineLSH.plan(vectors, radius=radius).tables == 0
    assert mw.CosineLSH.plan(vectors, radius=0.01).tables > 0


@pytest.mark.parametrize("measure", [*MEASURES, "hamming"])
def test_threads_that_share_a_search_get_the_answers_of_one(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "BLOCK_ROWS", 2048)
    rng = np.random.default_rng(10)
    vectors, *queries = (rng.integers(0, 256, (rows, 64)).astype(np.uint8) for rows in (6000, *[200] * 6))
    search = (mw.HammingSearch() if measure == "hamming" else FAMILIES[measure](tables=0)).fit(vectors)
    expected = [search.query(part, top=10) for part in queries]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda part: search.query(part, top=10), 3 * queries))
    assert all(answer.equals(expected[i % 6]) for i, answer in enumerate(answers))


@pytest.mark.parametrize("top", [1, 4, 30])
def test_equally_distant_vectors_are_taken_in_row_order(top: int) -> None:
    """Distances have three values, so that ties cross every bound and block."""
    rng = np.random.default_rng(11)
    vectors = rng.integers(-1, 2, (300, 1)).astype(np.float32)
    queries = np.array([[0], [1], [5]], dtype=np.float32)
    found = mw.EuclideanLSH(tables=0).fit(vectors).query(queries, top=top)
    assert rows_of(found) == exact_nearest(vectors, queries, "euclidean", top)


def test_a_query_with_far_more_near_vectors_than_the_others_is_answered() -> None:
    """All vectors near one query arrive nearest last, so that its hits outnumber those of all others."""
    vectors = np.concatenate([np.arange(400, 0, -1), np.full(3, 1e6)]).astype(np.float32).reshape(-1, 1)
    queries = np.array([[0], *[[1e6]] * 40], dtype=np.float32)
    found = mw.EuclideanLSH(tables=0).fit(vectors).query(queries, top=3)
    assert rows_of(found) == exact_nearest(vectors, queries, "euclidean", 3)


def test_tables_and_scan_are_made_once_for_each_block_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(12).normal(size=(200, 4)).astype(np.float32)
    made: list[str] = []
    original = nearest_search.NearestSearch.__init__

    def counted(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:  # noqa: ANN401 - as the original
            made.append(name)
            return make(*given)

        return counting

    def two_blocks(self: Any, *given: Any) -> None:  # noqa: ANN401 - as the original
        original(self, *given)
        self.block_rows = 100

    monkeypatch.setattr(_kernel, "VectorTables", counted("tables", _kernel.VectorTables))
    monkeypatch.setattr(nearest_search, "make_scan", counted("scan", scan_module.make_scan))
    monkeypatch.setattr(nearest_search.NearestSearch, "__init__", two_blocks)
    monkeypatch.setattr(nearest_search, "QUERY_BLOCK", 20)
    search = mw.EuclideanLSH(width=1.0, hashes=4, tables=4).fit(vectors)
    assert rows_of(search.query(vectors, top=3)) == exact_nearest(vectors, vectors, "euclidean", 3)
    assert sorted(made) == ["scan", "scan", "tables", "tables"]


@pytest.mark.parametrize("wanted", [{"top": 500}, {"radius": 6.5}], ids=["top", "radius"])
def test_large_answers_take_about_as_long_as_brute_force(
    wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorting all hits after each block took 5 to 10 times as long as brute force; one sort takes 0.5 to 2.5 times."""
    monkeypatch.setattr(scan_module, "BLOCK_ROWS", 2048)
    rng = np.random.default_rng(13)
    vectors, queries = (rng.normal(size=(rows, 32)).astype(np.float32) for rows in (40_000, 400))
    search, halves = mw.EuclideanLSH(tables=0).fit(vectors), (vectors * vectors).sum(axis=1) / 2

    def brute_force() -> None:
        apart = halves - queries @ vectors.T
        if "top" in wanted:
            best = np.argpartition(apart, wanted["top"] - 1, axis=1)[:, : wanted["top"]]
            np.argsort(np.take_along_axis(apart, best, axis=1), axis=1)
        else:
            apart += (queries * queries).sum(axis=1)[:, None] / 2
            query, row = np.nonzero(apart <= wanted["radius"] ** 2 / 2)
            np.lexsort((np.sqrt(2 * apart[query, row]), query))

    ours, theirs = processor_seconds(lambda: search.query(queries, **wanted, threads=1), brute_force)
    assert ours < 4.5 * theirs
