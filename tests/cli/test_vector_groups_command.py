"""``minwise vectors clusters`` and ``minwise vectors dedup``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

import minwise as mw
from minwise.cli.command import command
from minwise.errors import ConfigError, FormatError
from minwise.vectors import grouping


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NDArray[np.float64]:
    """Return 300 vectors around 60 centres, with three copies of the first; they are in x.npy, as float64."""
    rng = np.random.default_rng(2)
    centres = 5 * rng.normal(size=(60, 8))
    points = centres[rng.integers(0, 60, 300)] + 0.05 * rng.normal(size=(300, 8))
    points[[7, 8, 9]] = points[0]
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", points)
    return points


def run(*words: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(command, ["vectors", *words])


def test_clusters_equal_those_of_the_library(vectors: NDArray[Any]) -> None:
    done = run("clusters", "x.npy", "--radius", "1", "-o", "clusters.parquet")
    assert done.exit_code == 0, done.output
    expected = mw.EuclideanLSH(tables=0).fit(vectors).clusters(1.0)
    assert pq.read_table("clusters.parquet").equals(expected.to_arrow())
    assert done.stdout.startswith("55 clusters among 300 vectors in ")


def test_dedup_writes_kept_vectors_tables_and_report(vectors: NDArray[Any]) -> None:
    done = run("dedup", "x.npy", "--radius", "1", "-o", "clean")
    assert done.exit_code == 0, done.output
    expected = mw.EuclideanLSH(tables=0).fit(vectors).dedup(1.0)
    kept = np.load("clean/kept/x.npy")
    assert kept.dtype == vectors.dtype
    np.testing.assert_array_equal(kept, vectors[expected.keep])
    removed = pq.read_table("clean/removed.parquet")
    columns = ["id", "kept_id", "distance"]
    assert removed.select(columns).equals(expected.removed.to_arrow().select(columns))
    assert set(removed["source"].to_pylist()) == {"x.npy"}
    assert pq.read_table("clean/clusters.parquet").num_rows == 300
    report = json.loads(Path("clean/report.json").read_text(encoding="utf-8"))
    assert report["counts"] == {**report["counts"], "read": 300, "kept": 60, "removed": 240, "removed_identical": 3}
    assert report["plan"]["recall"] == 1.0
    assert done.stdout.startswith("60 of 300 vectors kept, 240 removed (3 identical) in ")


def test_dedup_keeps_all_columns_of_a_parquet_file(vectors: NDArray[Any]) -> None:
    lists = pa.array(vectors.tolist(), pa.list_(pa.float32()))
    table = pa.table({"name": [f"picture {row}" for row in range(300)], "embedding": lists})
    pq.write_table(table, "x.parquet")
    assert run("dedup", "x.parquet", "--radius", "1", "-o", "clean").exit_code == 0
    keep = mw.EuclideanLSH(tables=0).fit("x.parquet").dedup(1.0).keep
    assert pq.read_table("clean/kept/x.parquet").equals(table.filter(pa.array(keep)))


def test_vectors_that_cannot_be_used_are_neither_kept_nor_removed(vectors: NDArray[Any]) -> None:
    vectors[5, 2] = np.nan
    np.save("x.npy", vectors)
    done = run("dedup", "x.npy", "--radius", "1", "-o", "clean", "--on-error", "quarantine")
    assert "1 vector could not be used and is left out" in done.output
    assert not np.isnan(np.load("clean/kept/x.npy")).any()
    fault = json.loads(Path("clean/quarantine.jsonl").read_text(encoding="utf-8"))
    assert (fault["row"], fault["reason"]) == (5, "values must be finite, got NaN at column 2")


def test_an_output_that_is_not_empty_is_refused_unless_overwritten(vectors: NDArray[Any]) -> None:
    words = ("dedup", "x.npy", "--radius", "1", "-o", "clean")
    assert run(*words).exit_code == 0
    first = Path("clean/removed.parquet").read_bytes()
    refused = run(*words)
    assert isinstance(refused.exception, ConfigError)
    assert run(*words, "--overwrite", "--threads", "1", "--memory", "300MB").exit_code == 0
    assert Path("clean/removed.parquet").read_bytes() == first
    assert isinstance(run("dedup", "x.npy", "--radius", "1", "-o", ".").exception, ConfigError)


def test_a_failed_run_leaves_no_output_and_resumes(vectors: NDArray[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("dedup", "x.npy", "--radius", "1", "-o", "clean", "--work", "state")
    with monkeypatch.context() as patch:
        patch.setattr(grouping, "write_json", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
        assert run(*words).exit_code != 0
    assert not Path("clean").exists()
    assert run(*words).exit_code == 0
    written = {path: path.stat().st_mtime_ns for path in Path("clean").rglob("*")}
    assert run(*words).exit_code == 0  # already published
    assert {path: path.stat().st_mtime_ns for path in Path("clean").rglob("*")} == written


@pytest.mark.parametrize(
    "words", [("restore", "clean", "--all", "-o", "out"), ("report", "clean"), ("explain", "clean", "1")]
)
def test_commands_for_texts_refuse_the_output_of_vectors(vectors: NDArray[Any], words: tuple[str, ...]) -> None:
    assert run("dedup", "x.npy", "--radius", "1", "-o", "clean").exit_code == 0
    done = CliRunner().invoke(command, list(words))
    assert isinstance(done.exception, FormatError)
    assert "got that of minwise vectors dedup; read its removed.parquet" in str(done.exception)
