"""Passages on Spark: the bytes of the local engine, for any division of the work."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from property.test_one_answer import SHARDS, corpus, write_shards
from support.spark.arrangement import SPARK, Arrangement
from support.spark.corpora import TABLES, write_tables

import minwise as mw
from minwise.inputs import Files
from minwise.search.passages import EntryRange
from minwise.spark import passages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE = Arrangement(partitions=1, batch_rows=1, order=1)
MANY = Arrangement(task_bytes=1 << 14, batch_rows=7, order=2)
TABLE_OPTIONS: dict[str, Any] = {
    "text_column": ("title", "body"),
    "id_column": "key",
    "on_error": "quarantine",
    "keep": "max:year",
    "min_tokens": 3,
}


def written(files: Files, folder: Path, options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Write passages with their sources; return the report and the file."""
    folder.mkdir(exist_ok=True)
    report = mw.write_passages(files, folder / "passages.jsonl", sources=True, **options)
    assert report["passages"] > 0
    return report, (folder / "passages.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("min_tokens", "arrangement", "ranges"),
    [
        (8, ONE, [EntryRange(0, 256, 0, 1)]),
        (2, MANY, [EntryRange(0, 100, 0, 1), *(EntryRange(100, 256, part, 3) for part in range(3))]),
    ],
    ids=["one task", "many tasks"],
)
def test_passages_are_those_of_the_local_engine(
    min_tokens: int,
    arrangement: Arrangement,
    ranges: list[EntryRange],
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one task, and with many, some of which share partitions by fingerprint."""
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    options: dict[str, Any] = {"min_tokens": min_tokens, "on_error": "quarantine"}
    expected = written(Files(SHARDS), tmp_path / "local", options)
    monkeypatch.setattr(passages, "_ranges", lambda entry_bytes: ranges)
    with arrangement.on(spark):
        assert written(arrangement.arranged(SHARDS), tmp_path / "spark", {**options, **SPARK}) == expected


def test_units_are_those_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    options: dict[str, Any] = {"unit": "sentence", "min_count": 3, "on_error": "quarantine"}
    expected = written(Files(SHARDS), tmp_path / "local", options)
    with MANY.on(spark):
        assert written(MANY.arranged(SHARDS), tmp_path / "spark", {**options, **SPARK}) == expected


@pytest.mark.parametrize("against", [None, "known"])
def test_keep_orders_references_and_faulty_rows_are_those_of_the_local_engine(
    against: str | None, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path / "in" / "t", 3)
    write_tables(tmp_path / "in" / "known", 3, chains=4)
    monkeypatch.chdir(tmp_path / "in")
    (tmp_path / "in" / "t" / "broken.jsonl").write_text('{"key": "b", "title": "x", "body": "y", "year": 1}\nno\n')
    files = (*(f"t/{name}" for name in TABLES), "t/broken.jsonl")
    options = {**TABLE_OPTIONS, "against": against}
    expected = written(Files(files), tmp_path / "local", options)
    assert expected[0]["counts"]["quarantined"] > 0
    with MANY.on(spark):
        assert written(MANY.arranged(files), tmp_path / "spark", {**options, **SPARK}) == expected


def test_a_run_resumes_with_the_stages_that_are_finished(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run fails while it reads documents again; the second does not read the others."""
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    options: dict[str, Any] = {"min_tokens": 8, "on_error": "quarantine"}
    expected = written(Files(SHARDS), tmp_path / "local", options)
    resumed = {**options, **SPARK, "work": tmp_path / "work"}
    with MANY.on(spark):
        with monkeypatch.context() as patch:
            patch.setattr(passages, "_gram_blocks", None)
            with pytest.raises(mw.MinwiseError):
                written(Files(SHARDS), tmp_path / "spark", resumed)
        monkeypatch.setattr(passages, "_write_segments", None)
        assert written(Files(SHARDS), tmp_path / "spark", resumed) == expected


@pytest.mark.parametrize("what", [{}, {"snap": "line"}, {"unit": "line"}], ids=["tokens", "whole lines", "lines"])
def test_cuts_are_those_of_the_local_engine(
    what: dict[str, Any], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of several formats and two text columns; kept rows and tables have the same bytes."""
    write_tables(tmp_path / "in" / "t", 3)
    monkeypatch.chdir(tmp_path / "in")
    files = tuple(f"t/{name}" for name in TABLES[:3])
    options = {**TABLE_OPTIONS, "passages": True, "min_left": 2, **what}

    def content(name: str, source: Files, **more: Any) -> dict[str, bytes]:  # noqa: ANN401
        mw.dedup(source, tmp_path / name, **options, **more)
        paths = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        found = {path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in paths}
        return {file: data for file, data in found.items() if file not in ("run.json", "report.html")}

    expected = content("local", Files(files))
    assert json.loads(expected["report.json"])["counts"]["cut"] > 0
    with MANY.on(spark):
        assert content("spark", MANY.arranged(files), **SPARK) == expected
