"""Vector search: accepted inputs, errors, and settings that do not change the result."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from support.vectors import exact_nearest, table_search

import minwise as mw
from minwise.errors import InputError, MismatchError
from minwise.vectors.sources import open_vectors

POINTS = np.array([[0, 0], [3, 4], [0, 1], [50, 50]], dtype=np.float32)


def one_bucket() -> mw.EuclideanLSH:
    """Return a search in which all vectors share a bucket."""
    return mw.EuclideanLSH(width=1e9, hashes=1, tables=8)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


def random_points(rows: int, dims: int = 8) -> NDArray[np.float32]:
    """Return points that are the same in every run."""
    return np.random.default_rng(1).normal(size=(rows, dims)).astype(np.float32)


def test_pairs_include_those_at_the_radius() -> None:
    table = one_bucket().fit(POINTS).pairs(5.0)
    assert table.schema == pa.schema([("left", pa.int64()), ("right", pa.int64()), ("distance", pa.float64())])
    assert rows_of(table) == [(0, 1, 5.0), (0, 2, 1.0), (1, 2, pytest.approx(math.sqrt(18)))]
    assert rows_of(one_bucket().fit(POINTS).pairs(math.nextafter(5.0, 0))) == rows_of(table)[1:]


def test_query_returns_the_nearest_first_by_top_and_radius() -> None:
    search = one_bucket().fit(POINTS)
    assert rows_of(search.query([[0, 2]], top=2)) == [(0, 2, 1.0), (0, 0, 2.0)]
    assert rows_of(search.query(np.array([0.0, 2.0]), radius=1.0)) == [(0, 2, 1.0)]
    assert rows_of(search.query([0, 2], radius=9.0, top=1)) == [(0, 2, 1.0)]


@pytest.mark.parametrize(
    "given",
    [
        POINTS.astype(np.float64),
        POINTS.astype(np.float16),
        POINTS.astype(np.uint8),
        POINTS.astype(np.int16),
        POINTS.astype(">f4"),
        np.asfortranarray(POINTS),
        POINTS.tolist(),
        POINTS.astype(int).tolist(),
        pa.array(POINTS.tolist()),
    ],
    ids=lambda given: getattr(getattr(given, "dtype", None), "str", type(given).__name__),
)
def test_every_type_of_matrix_gives_the_same_pairs(given: Any) -> None:  # noqa: ANN401 - any matrix
    assert rows_of(one_bucket().fit(given).pairs(5.0)) == rows_of(one_bucket().fit(POINTS).pairs(5.0))


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.uint8(), 2)])
def test_every_list_type_of_parquet_gives_the_same_pairs(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"name": list("abcd"), "vector": pa.array(POINTS.astype(int).tolist(), kind)})
    pq.write_table(table, tmp_path / "x.parquet")
    for column in (None, "vector"):
        found = one_bucket().fit(tmp_path / "x.parquet", column=column).pairs(5.0)
        assert rows_of(found) == rows_of(one_bucket().fit(POINTS).pairs(5.0))


def test_files_give_the_plan_and_result_of_a_matrix_in_memory(tmp_path: Path) -> None:
    points = random_points(300)
    np.save(tmp_path / "x.npy", points)
    np.save(tmp_path / "columns.npy", np.asfortranarray(points))
    pq.write_table(pa.table({"v": pa.array(points.tolist(), pa.list_(pa.float32()))}), tmp_path / "x.parquet")
    expected = mw.EuclideanLSH.plan(points, radius=2.0)
    for name in ("x.npy", "columns.npy", "x.parquet"):
        search = mw.EuclideanLSH.plan(tmp_path / name, radius=2.0)
        assert repr(search) == repr(expected)
        found = search.fit(tmp_path / name)
        assert found.pairs(2.0).equals(expected.fit(points).pairs(2.0))
        assert found.query(tmp_path / name, top=3).equals(expected.query(points, top=3))


@pytest.mark.parametrize("vectors", [np.empty((0, 5), dtype=np.float32), [], np.empty((0, 0))])
def test_an_empty_matrix_has_no_pairs(vectors: Any) -> None:  # noqa: ANN401 - any matrix
    search = mw.EuclideanLSH.plan(vectors, radius=1.0).fit(vectors)
    assert len(search.pairs(1.0)) == 0
    assert len(search.query(vectors, top=3)) == 0


def test_one_vector_has_no_pair_and_is_its_own_neighbour() -> None:
    search = mw.EuclideanLSH.plan([[1.0, 2.0]], radius=1.0).fit([[1.0, 2.0]])
    assert len(search.pairs(1.0)) == 0
    assert rows_of(search.query([[1.0, 2.0]], top=3)) == [(0, 0, 0.0)]


@pytest.mark.parametrize("radius", [0.0, 0.5])
def test_equal_vectors_are_pairs(radius: float) -> None:
    """Minus zero equals zero."""
    vectors = np.array([[1, 0], [5, 5], [1, -0.0], [1, 0]], dtype=np.float32)
    for search in (mw.EuclideanLSH.plan(vectors, radius=radius), mw.CosineLSH.plan(vectors, radius=radius)):
        found = [row[:3] for row in rows_of(search.fit(vectors).pairs(radius)) if 1 not in row[:2]]
        assert found == [(0, 2, 0.0), (0, 3, 0.0), (2, 3, 0.0)]


def test_many_equal_vectors_are_capped_and_counted(tmp_path: Path) -> None:
    """Each of 20,000 equal vectors is paired with the first 16 only."""
    copies = 20_000
    vectors = np.ones((copies, 4), dtype=np.float32)
    report = one_bucket().fit(vectors).write_pairs(1.0, tmp_path / "pairs.parquet")
    given = 15 * 16 // 2 + (copies - 16) * 16
    assert report["pairs"] == given
    assert report["caps"]["identical_groups"] == 1
    assert report["caps"]["identical_pairs_left_out"] == copies * (copies - 1) // 2 - given


def test_a_bucket_above_the_cap_is_counted(tmp_path: Path) -> None:
    """Each member is paired with the first 16, in every table."""
    vectors = random_points(100)
    report = one_bucket().fit(vectors).write_pairs(100.0, tmp_path / "pairs.parquet", max_bucket=99)
    assert report["caps"]["buckets"] == 8
    assert report["caps"]["candidates_left_out"] == 8 * (100 * 99 // 2 - (15 * 16 // 2 + 84 * 16))
    assert report["pairs"] == 15 * 16 // 2 + 84 * 16


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("memory", ["256MB", "4GB"])
def test_threads_and_memory_do_not_change_the_output(threads: int, memory: str, tmp_path: Path) -> None:
    vectors = random_points(3000)
    search = table_search(vectors, 1.5).fit(vectors)
    search.write_pairs(1.5, tmp_path / "one.parquet")
    search.write_pairs(1.5, tmp_path / "other.parquet", threads=threads, memory=memory)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    one, other = search.query(vectors, top=5), search.query(vectors, top=5, threads=threads, memory=memory)
    assert one.equals(other)


def test_block_sizes_do_not_change_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 100 vectors and 12 queries give the result of one block."""
    from minwise.vectors import nearest

    vectors = random_points(1000)
    search = table_search(vectors, 2.0)
    expected = search.fit(vectors).query(vectors, top=7), search.query(vectors, radius=2.0)
    original = nearest.NearestSearch.__init__

    def small(self: Any, *given: Any) -> None:  # noqa: ANN401 - as the original
        original(self, *given)
        self.block_rows = 100

    monkeypatch.setattr(nearest.NearestSearch, "__init__", small)
    monkeypatch.setattr(nearest, "QUERY_BLOCK", 12)
    again = search.fit(vectors).query(vectors, top=7), search.query(vectors, radius=2.0)
    assert all(one.equals(other) for one, other in zip(expected, again, strict=True))


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption before verification, the files of the first pass are not written again."""
    from minwise.vectors import pairs as engine

    points, work = random_points(500), tmp_path / "work"
    np.save(tmp_path / "x.npy", points)
    search = table_search(points, 2.0).fit(tmp_path / "x.npy")
    expected = search.pairs(2.0)
    with monkeypatch.context() as patch:
        patch.setattr(engine._VectorSearch, "verify_candidates", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            search.pairs(2.0, work=work)
    made = {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.name.startswith("part-")}
    assert made
    assert search.pairs(2.0, work=work).equals(expected)
    assert made == {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.name.startswith("part-")}
    with pytest.raises(MismatchError, match=r"radius 2\.0, this one has 1\.0"):
        search.pairs(1.0, work=work)


@pytest.mark.parametrize(
    ("value", "reason"),
    [(math.nan, "values must be finite, got NaN at column 1"), (1e300, "values must be finite, got inf at column 1")],
)
def test_a_bad_vector_is_an_error_or_left_out(value: float, reason: str, tmp_path: Path) -> None:
    vectors = POINTS.astype(np.float64)
    vectors[1, 1] = value
    with pytest.raises(InputError, match=f"row 1: {reason}"):
        one_bucket().fit(vectors).pairs(5.0)
    with pytest.raises(InputError, match=f"row 1: {reason}"):
        one_bucket().fit(vectors).query(POINTS, top=1)
    with pytest.raises(InputError, match=f"row 1: {reason}"):
        one_bucket().fit(POINTS).query(vectors, top=1)
    report = one_bucket().fit(vectors).write_pairs(5.0, tmp_path / "pairs.csv", on_error="quarantine")
    assert (report["pairs"], report["counts"]["quarantined"]) == (1, 1)
    assert report["faults"] == [{"source": "", "row": 1, "reason": reason}]
    near = one_bucket().fit(POINTS).write_query(vectors, tmp_path / "near.csv", top=1, on_error="quarantine")
    assert (near["neighbours"], near["queries"]) == (3, {"asked": 3, "quarantined": 1})


def test_a_zero_vector_has_no_cosine_distance() -> None:
    with pytest.raises(InputError, match="row 0: a vector must have a direction, got zeros only"):
        mw.CosineLSH(hashes=2, tables=2).fit(POINTS).pairs(0.1)
    assert len(mw.CosineLSH(hashes=1, tables=30).fit(POINTS).pairs(0.1, on_error="skip")) == 1


def test_ragged_rows_of_a_file_are_faults(tmp_path: Path) -> None:
    lists = [[0.0, 0.0], None, [1.0], [3.0, None], [3.0, 4.0], []]
    pq.write_table(pa.table({"v": pa.array(lists, pa.list_(pa.float32()))}), tmp_path / "x.parquet")
    report = one_bucket().fit(tmp_path / "x.parquet").write_pairs(5.0, tmp_path / "pairs.csv", on_error="quarantine")
    assert (report["pairs"], report["counts"]["read"], report["counts"]["quarantined"]) == (1, 6, 4)
    assert [(fault["row"], fault["reason"]) for fault in report["faults"]] == [
        (1, "v is null"),
        (2, "v must have 2 values as the first vector has, got 1"),
        (3, "v has a null among its values"),
        (5, "v must have 2 values as the first vector has, got 0"),
    ]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros(3), "must be a matrix with a row per vector, got shape"),
        (np.zeros((2, 2, 2)), "must be a matrix with a row per vector, got shape"),
        (np.zeros((2, 0)), "vectors must have at least one value"),
        (np.zeros((2, 2), dtype=complex), "vectors must be of float32, .* got complex128"),
        (np.array([["a", "b"]]), "vectors must be of float32"),
        ([[1.0, 2.0], [3.0]], "rows of different lengths"),
        ("x.txt", "must be an .npy or .parquet file, got 'x.txt'"),
    ],
)
def test_inputs_that_are_no_matrix_are_refused(vectors: Any, message: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(mw.MinwiseError, match=message):
        open_vectors(vectors)


@pytest.mark.parametrize("damaged", ["footer", "page"])
def test_damaged_parquet_file_is_an_error_of_one_line(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"v": random_points(50).tolist()}), path, compression="none")
    data = bytearray(path.read_bytes())
    start = len(data) - 60 if damaged == "footer" else 4
    data[start : start + 20] = bytes([0xEF]) * 20
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.parquet: must be a Parquet file: .*") as caught:
        open_vectors(path)
    assert "\n" not in str(caught.value)


def test_damaged_header_of_npy_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, POINTS)
    path.write_bytes(path.read_bytes().replace(b"}", b"{", 1))
    with pytest.raises(InputError, match=r"x\.npy: must be an \.npy file of numbers: [^\n]+$"):
        open_vectors(path)


def test_files_of_another_format_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("x.npy", "x.parquet"):
        (tmp_path / name).write_bytes(b"hello")
        with pytest.raises(InputError, match=f"{name}: must be "):
            open_vectors(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            open_vectors(tmp_path / f"no-{name}")
    two = {"a": pa.array([[1.0]]), "b": pa.array([[1.0]]), "c": pa.array(["x"])}
    pq.write_table(pa.table(two), tmp_path / "two.parquet")
    for column, message in ((None, "got a, b"), ("c", "got a column of string"), ("d", "its columns are: a, b, c")):
        with pytest.raises(InputError, match=message):
            open_vectors(tmp_path / "two.parquet", column)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: one_bucket().fit(POINTS).pairs(-1.0), "radius must be 0 or more and finite, got -1.0"),
        (lambda: one_bucket().fit(POINTS).pairs(math.nan), "radius must be a number, got nan"),
        (lambda: one_bucket().fit(POINTS).pairs(math.inf), "radius must be 0 or more and finite, got inf"),
        (lambda: mw.CosineLSH(hashes=1, tables=1).fit(POINTS).pairs(3.0), "radius must be at most 2"),
        (lambda: mw.EuclideanLSH(width=0, hashes=1, tables=1), "width must be above 0 and finite, got 0"),
        (lambda: mw.EuclideanLSH(width=1, hashes=0, tables=1), "hashes must be a whole number from 1"),
        (lambda: mw.EuclideanLSH(width=1, hashes=1, tables=-1), "tables must be a whole number from 0"),
        (lambda: mw.EuclideanLSH(hashes=1, tables=0), "hashes must be left out with tables=0"),
        (lambda: mw.EuclideanLSH(width=1, tables=0), "width must be left out with tables=0"),
        (lambda: mw.CosineLSH(tables=1), "hashes must be a whole number from 1"),
        (lambda: mw.EuclideanLSH(width=1, hashes=1000, tables=1000), "must be at most 16384 slots"),
        (lambda: one_bucket().pairs(1.0), "call fit first"),
        (lambda: one_bucket().fit(POINTS).query(POINTS), "takes radius, top or both, got neither"),
        (lambda: one_bucket().fit(POINTS).query(POINTS, top=0), "top must be a whole number from 1"),
        (lambda: one_bucket().fit(POINTS).query([[1.0]], top=1), "got 1 in queries, 2 in vectors"),
        (lambda: one_bucket().fit(POINTS).write_pairs(1.0, "pairs.txt"), "output must end in"),
        (lambda: one_bucket().fit(POINTS).pairs(1.0, max_bucket=3), "max_bucket must be a whole number from 16"),
        (lambda: one_bucket().fit(POINTS).pairs(1.0, on_error="ignore"), "on_error must be one of"),  # type: ignore[arg-type]
        (lambda: mw.EuclideanLSH.plan(POINTS, radius=1.0, recall=1.0), "recall must be above 0 and below 1, got 1.0"),
        (lambda: mw.EuclideanLSH.plan(POINTS), "takes either radius or top, got None and None"),
        (lambda: mw.EuclideanLSH.plan(POINTS, radius="far"), "radius must be a number"),  # type: ignore[arg-type]
    ],
)
def test_invalid_settings_raise_a_one_line_error(call: Any, message: str) -> None:  # noqa: ANN401 - a function
    with pytest.raises(mw.MinwiseError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_plan_for_top_finds_the_neighbours() -> None:
    """Each with probability 0.99 or more; six standard deviations of 1,000 such are at most 19."""
    vectors = np.repeat(random_points(3000, 16), 10, axis=0) + np.float32(0.01) * random_points(30_000, 16)
    search = mw.EuclideanLSH.plan(vectors, top=5, queries=vectors).fit(vectors)
    assert search.tables > 0
    assert search.planned_radius is not None
    assert search.probability(search.planned_radius) >= 0.99
    truth = {row[:2] for row in exact_nearest(vectors, vectors[:200], "euclidean", 5)}
    assert len(truth & {row[:2] for row in rows_of(search.query(vectors[:200], top=5))}) >= 990 - 19


def test_a_finished_run_reports_its_faults_again(tmp_path: Path) -> None:
    vectors = random_points(50)
    vectors[3, 1], vectors[4, 0] = math.nan, math.inf
    np.save(tmp_path / "x.npy", vectors)
    settings: dict[str, Any] = {"top": 2, "on_error": "quarantine", "work": tmp_path / "work"}
    first, second = (
        one_bucket().fit(tmp_path / "x.npy").write_query(tmp_path / "x.npy", tmp_path / "near.csv", **settings)
        for _ in range(2)
    )
    assert first == second
    assert (first["counts"], first["queries"]["quarantined"]) == ({"documents": 48, "quarantined": 2}, 2)
    assert [fault["row"] for fault in first["faults"]] == [3, 4, 3, 4]
