"""Rows that cannot be read, and huge rows: quarantine and error messages are those of the local engine."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.spark.arrangement import LOCAL, SPARK, Arrangement, differing_files, file_digests
from support.spark.corpora import changed, huge_text, write_faults
from support.spark.event_log import EventLog

import minwise as mw
from minwise.errors import InputError
from minwise.inputs import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEARCH: dict[str, Any] = {"threshold": 0.7, "shingle": "word:2", "bands": 14, "rows": 3}
# Tasks of damaged files begin before, in and after the damage.
SMALL_TASKS = Arrangement(task_bytes=8000, batch_rows=20)
MEGABYTE = 10**6
HUGE_BYTES = 50 * MEGABYTE


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return files with every fault, in the current directory."""
    write_faults(tmp_path / "in", 8)
    monkeypatch.chdir(tmp_path / "in")
    return Files([path.as_posix() for path in sorted(Path().rglob("*")) if path.is_file()])


def test_quarantine_is_that_of_the_local_engine(spark: "SparkSession", tmp_path: Path, faults: Files) -> None:
    """Nulls, bytes that are no text, broken lines, cut and damaged files: the same rows and reasons, once each."""
    for name, engine in (("local", LOCAL), ("spark", SPARK)):
        with SMALL_TASKS.on(spark):
            mw.dedup(faults, tmp_path / name, on_error="quarantine", **SEARCH, **engine)
    assert differing_files(tmp_path / "local", tmp_path / "spark") == []
    found = [json.loads(line) for line in (tmp_path / "spark" / "quarantine.jsonl").read_text().splitlines()]
    rows = {source: [fault["row"] for fault in found if fault["source"] == source] for source in faults}
    size = pq.ParquetFile("damaged.parquet").metadata.row_group(0).num_rows
    assert rows["damaged.parquet"] == list(range(2 * size, 3 * size))  # only the third row group
    assert rows["cut.jsonl.gz"][-1] is None
    assert len(rows["cut.jsonl.gz"]) > 40
    assert rows["lines.jsonl"][:3] == [3, 7, 8]
    assert rows["nulls.parquet"][:2] == [0, 7]


def test_skipping_leaves_no_quarantine(spark: "SparkSession", tmp_path: Path, faults: Files) -> None:
    """The report still counts the rows."""
    for name, engine in (("local", LOCAL), ("spark", SPARK)):
        mw.dedup(faults, tmp_path / name, on_error="skip", **SEARCH, **engine)
    assert differing_files(tmp_path / "local", tmp_path / "spark") == []
    assert "quarantine.jsonl" not in file_digests(tmp_path / "spark")


@pytest.mark.parametrize("first", ["damaged.parquet", "lines.jsonl"])
def test_the_first_fault_is_reported_as_by_the_local_engine(
    first: str, spark: "SparkSession", tmp_path: Path, faults: Files
) -> None:
    """One line with the file, the row and the reason; nothing is written."""
    files = Files([name for name in faults if name >= first])
    expected = error_message(InputError, lambda: mw.dedup(files, tmp_path / "local", **SEARCH))
    assert expected.startswith(first)
    with SMALL_TASKS.on(spark):
        message = error_message(InputError, lambda: mw.dedup(files, tmp_path / "spark", engine="spark", **SEARCH))
    assert message == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_unusable_inputs_notes_and_paths_are_those_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without the column is divided into several tasks; each of its rows is counted once."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    short = [{"id": number % 400, "doc": {"body": f"four words number {number}"}} for number in range(3000)]
    pq.write_table(pa.Table.from_pylist(short), "a.parquet", row_group_size=200)
    pq.write_table(pa.table({"id": range(3000), "content": ["x"] * 3000}), "b.parquet", row_group_size=200)
    settings: dict[str, Any] = {"text_column": "doc.body", "shingle": "word:5"}
    reports, messages = [], []
    for name, engine in (("local", LOCAL), ("spark", SPARK)):
        with SMALL_TASKS.on(spark):
            out = tmp_path / name
            reports.append(mw.dedup("*.parquet", out, on_error="quarantine", **settings, **engine).report)
            strict: dict[str, Any] = {**settings, **engine, "on_error": "quarantine-rows"}
            messages.append(error_message(InputError, lambda strict=strict: mw.dedup("*.parquet", **strict)))  # type: ignore[misc]
    assert differing_files(tmp_path / "local", tmp_path / "spark") == []
    assert reports[0] == reports[1]
    assert reports[0]["counts"]["quarantined"] == 3000
    assert any("fewer than the 5 words of a shingle" in note for note in reports[0]["notes"])
    assert any("share the id" in note for note in reports[0]["notes"])
    assert messages[0] == messages[1]
    assert messages[0].startswith("b.parquet: none of its 3,000 rows can be used: has no column 'doc.body'")


def test_documents_of_50_mb_are_compared_in_executors_of_1_gb(
    spark: "SparkSession", events: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them are candidates; no text is sent to the driver."""
    text = huge_text(random.Random(5), HUGE_BYTES)
    assert HUGE_BYTES - 10 < len(text) <= HUGE_BYTES
    documents = [text, "a short one", changed(text, 1000), "a short one"]
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    with Path("huge.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(documents))
    settings: dict[str, Any] = {"shingle": "word:2", "bands": 20, "rows": 4}
    before = events.now()
    mw.dedup("huge.jsonl", tmp_path / "spark", engine="spark", **settings)
    seen = events.since(before)
    result = mw.dedup("huge.jsonl", tmp_path / "local", **settings)
    assert differing_files(tmp_path / "local", tmp_path / "spark") == []
    assert result.removed.column("id").to_pylist() == [2, 3]
    assert seen.failed == []
    assert 0 < seen.result_bytes < MEGABYTE
