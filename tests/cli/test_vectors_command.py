"""``minwise vectors pairs`` and ``minwise vectors near``."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import minwise as mw
from minwise.cli.command import command
from minwise.errors import ConfigError, InputError, MismatchError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with 400 vectors around 80 centres, and 20 queries."""
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(80, 16))
    np.save(tmp_path / "x.npy", (centres[rng.integers(0, 80, 400)] + 0.05 * rng.normal(size=(400, 16))).astype("f4"))
    np.save(tmp_path / "q.npy", centres[:20].astype("f4"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(command, ["vectors", *words])


def test_pairs_equal_those_of_the_library(folder: Path) -> None:
    done = run("pairs", "x.npy", "--radius", "0.6", "-o", "pairs.parquet")
    assert done.exit_code == 0, done.output
    vectors = np.load("x.npy")
    expected = mw.EuclideanLSH.plan(vectors, radius=0.6).fit(vectors).pairs(0.6)
    assert pq.read_table("pairs.parquet").equals(expected.to_arrow())
    assert len(expected) > 400
    assert done.stdout.startswith(f"{len(expected):,} pairs among 400 vectors in ")


def test_neighbours_equal_those_of_the_library(folder: Path) -> None:
    assert run("near", "x.npy", "q.npy", "--top", "3", "-o", "near.csv").exit_code == 0
    done = run("near", "x.npy", "q.npy", "--radius", "0.5", "-o", "near.parquet", "--json")
    vectors, queries = np.load("x.npy"), np.load("q.npy")
    expected = mw.EuclideanLSH.plan(vectors, radius=0.5, queries=queries).fit(vectors).query(queries, radius=0.5)
    assert pq.read_table("near.parquet").equals(expected.to_arrow())
    report = json.loads(done.output)
    assert report["neighbours"] == len(expected) > 20
    assert report["queries"] == {"asked": 20, "quarantined": 0}
    assert Path("near.csv").read_text(encoding="utf-8").startswith('"query","neighbour","distance"\n0,')


def test_a_given_cosine_layout_on_a_parquet_column(folder: Path) -> None:
    lists = pa.array(np.load("x.npy").tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": range(400), "embedding": lists}), "x.parquet")
    words = ["--measure", "cosine", "--hashes", "8", "--tables", "30", "--column", "embedding", "-o", "pairs.parquet"]
    assert run("pairs", "x.parquet", "--radius", "0.02", *words).exit_code == 0
    expected = mw.CosineLSH(hashes=8, tables=30).fit(np.load("x.npy")).pairs(0.02)
    assert pq.read_table("pairs.parquet").equals(expected.to_arrow())
    assert len(expected) > 100


def test_invalid_vectors_are_listed_unless_on_error_is_fail(folder: Path) -> None:
    vectors = np.load("x.npy")
    vectors[7, 3] = np.nan
    np.save("x.npy", vectors)
    done = run("pairs", "x.npy", "--radius", "0.6", "-o", "pairs.parquet")
    assert "1 vector could not be used and is left out" in done.output
    assert "x.npy: row 7: values must be finite, got NaN at column 3" in done.output
    done = run("near", "q.npy", "x.npy", "--radius", "0.6", "-o", "near.jsonl")
    assert "1 vector could not be used and is left out" in done.output
    done = run("pairs", "x.npy", "--radius", "0.6", "-o", "pairs.parquet", "--overwrite", "--on-error", "fail")
    assert isinstance(done.exception, InputError)


def test_a_work_directory_is_reused_with_the_same_settings_only(folder: Path) -> None:
    words = ["x.npy", "--radius", "0.6", "-o", "pairs.parquet", "--work", "state", "--overwrite"]
    assert run("pairs", *words).exit_code == 0
    first = Path("pairs.parquet").read_bytes()
    assert run("pairs", *words, "--threads", "1", "--memory", "300MB").exit_code == 0
    assert Path("pairs.parquet").read_bytes() == first
    assert isinstance(run("pairs", *words, "--hashes", "2", "--tables", "3", "--width", "1").exception, MismatchError)
    near = ["x.npy", "q.npy", "--top", "2", "-o", "near.csv", "--work", "asked", "--overwrite"]
    assert run("near", *near).exit_code == 0
    second = Path("near.csv").read_bytes()
    assert run("near", *near, "--memory", "300MB").exit_code == 0
    assert Path("near.csv").read_bytes() == second


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pairs", "x.npy", "--radius", "-1", "-o", "p.csv"), "radius must be 0 or more"),
        (("pairs", "x.npy", "--radius", "1", "-o", "p.npy"), "output must end in"),
        (
            ("pairs", "x.npy", "--radius", "1", "-o", "p.csv", "--overwrite", "--hashes", "3"),
            "must be given together, got no width",
        ),
        (
            ("pairs", "x.npy", "--radius", "1", "-o", "p.csv", "--overwrite", "--measure", "cosine", "--width", "3"),
            "left out with",
        ),
        (
            ("pairs", "x.npy", "--radius", "1", "-o", "p.csv", "--tables", "0", "--recall", "2"),
            "recall must be above 0",
        ),
        (("pairs", "x.npy", "--radius", "1", "-o", "p.csv", "--measure", "hamming", "--recall", "0"), "recall must be"),
        (("dedup", "x.npy", "--radius", "1", "-o", "-"), "output must be a directory"),
        (("near", "x.npy", "q.npy", "-o", "n.csv"), "takes --top, --radius or both"),
        (("near", "x.npy", "q.npy", "--top", "0", "-o", "n.csv", "--overwrite"), "top must be a whole number"),
    ],
)
def test_invalid_settings_write_nothing(folder: Path, words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)
    assert {path.name for path in folder.iterdir()} == {"x.npy", "q.npy"}


def test_queries_of_another_length_are_refused_before_the_plan(folder: Path) -> None:
    rng = np.random.default_rng(3)
    np.save("x.npy", rng.normal(size=(20_000, 8)).astype("f4"))
    np.save("q.npy", rng.normal(size=(20_000, 5)).astype("f4"))
    done = run("near", "x.npy", "q.npy", "--top", "3", "-o", "near.csv")
    assert isinstance(done.exception, MismatchError)
    assert "got 5 in queries, 8 in vectors" in str(done.exception)


def test_queries_are_checked_although_there_are_no_vectors(folder: Path) -> None:
    np.save("x.npy", np.empty((0, 3), dtype="f4"))
    np.save("q.npy", np.array([[1, 2, 3, 4], [1, np.nan, 3, 4]], dtype="f4"))
    done = run("near", "x.npy", "q.npy", "--top", "3", "-o", "near.csv")
    assert done.exit_code == 0, done.output
    assert "q.npy: row 1: values must be finite, got NaN at column 1" in done.output
    failed = run("near", "x.npy", "q.npy", "--top", "3", "-o", "near.csv", "--overwrite", "--on-error", "fail")
    assert isinstance(failed.exception, InputError)


def test_the_summary_states_a_recall_below_one(folder: Path) -> None:
    layout = ["--width", "2", "--hashes", "4", "--overwrite"]
    few = run("pairs", "x.npy", "--radius", "0.6", "-o", "pairs.csv", *layout, "--tables", "2")
    recall = mw.EuclideanLSH(width=2.0, hashes=4, tables=2).probability(0.6)
    assert f"warning: recall is {recall:.3f}"[:-1] in few.stdout
    assert "below 0.99" in few.stdout
    many = run("near", "x.npy", "q.npy", "--radius", "0.6", "-o", "near.csv", *layout, "--tables", "40")
    assert "recall 0.99" in many.stdout
    assert "warning" not in many.stdout
    exact = run("pairs", "x.npy", "--radius", "0.6", "-o", "pairs.csv", "--overwrite")
    assert "recall" not in exact.stdout


def test_tables_0_is_accepted_for_bits(folder: Path) -> None:
    np.save("x.npy", np.zeros((3, 2), dtype=np.uint8))
    done = run("pairs", "x.npy", "--radius", "1", "-o", "p.csv", "--measure", "hamming", "--tables", "0")
    assert done.stdout.startswith("3 pairs among 3 vectors")
