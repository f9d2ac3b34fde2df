"""What can not be read ends no job, nor does a huge row: quarantine and complaints are those of the local engine."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.expect import complaint
from support.spark.arrangement import LOCAL, SPARK, Arrangement, digest, unlike
from support.spark.corpora import changed, huge, write_faults
from support.spark.event_log import Events

import minwise as mw
from minwise.errors import InputError
from minwise.inputs import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEARCH: dict[str, Any] = {"threshold": 0.7, "shingle": "word:2", "bands": 14, "rows": 3}
# Damaged files are met by tasks that begin before, in and after the damage.
CUT = Arrangement(task_bytes=8000, batch_rows=20)
MEGABYTE = 10**6
HUGE_BYTES = 50 * MEGABYTE


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Files with every fault, in the current directory."""
    write_faults(tmp_path / "in", 8)
    monkeypatch.chdir(tmp_path / "in")
    return Files([path.as_posix() for path in sorted(Path().rglob("*")) if path.is_file()])


def test_quarantine_is_that_of_the_local_engine(spark: "SparkSession", tmp_path: Path, faults: Files) -> None:
    """Nulls, bytes that are no text, broken lines, cut and damaged files: the same rows and reasons, and one each."""
    for name, engine in (("local", LOCAL), ("spark", SPARK)):
        with CUT.on(spark):
            mw.dedup(faults, tmp_path / name, on_error="quarantine", **SEARCH, **engine)
    assert unlike(tmp_path / "local", tmp_path / "spark") == []
    found = [json.loads(line) for line in (tmp_path / "spark" / "quarantine.jsonl").read_text().splitlines()]
    of = {source: [one["row"] for one in found if one["source"] == source] for source in faults}
    assert of["damaged.parquet"].count(None) == 1
    assert of["cut.jsonl.gz"][-1] is None
    assert len(of["cut.jsonl.gz"]) > 40
    assert of["lines.jsonl"][:3] == [3, 7, 8]
    assert of["nulls.parquet"][:2] == [0, 7]


def test_skipping_leaves_no_quarantine(spark: "SparkSession", tmp_path: Path, faults: Files) -> None:
    """The counts still tell."""
    for name, engine in (("local", LOCAL), ("spark", SPARK)):
        mw.dedup(faults, tmp_path / name, on_error="skip", **SEARCH, **engine)
    assert unlike(tmp_path / "local", tmp_path / "spark") == []
    assert "quarantine.jsonl" not in digest(tmp_path / "spark")


@pytest.mark.parametrize("first", ["damaged.parquet", "lines.jsonl"])
def test_failing_tells_the_first_fault_as_the_local_engine_does(
    first: str, spark: "SparkSession", tmp_path: Path, faults: Files
) -> None:
    """One line with the file, the row and the reason, and nothing is written."""
    files = Files([one for one in faults if one >= first])
    expected = complaint(InputError, lambda: mw.dedup(files, tmp_path / "local", **SEARCH))
    assert expected.startswith(first)
    with CUT.on(spark):
        told = complaint(InputError, lambda: mw.dedup(files, tmp_path / "spark", engine="spark", **SEARCH))
    assert told == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_documents_of_fifty_megabytes(
    spark: "SparkSession", events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that are candidates, with executors of 1 GB; and no text comes to the driver."""
    text = huge(random.Random(5), HUGE_BYTES)
    assert HUGE_BYTES - 10 < len(text) <= HUGE_BYTES
    documents = [text, "a short one", changed(text, 1000), "a short one"]
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    with Path("huge.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": number, "text": one}) + "\n" for number, one in enumerate(documents))
    settings: dict[str, Any] = {"shingle": "word:2", "bands": 20, "rows": 4}
    before = events.now()
    mw.dedup("huge.jsonl", tmp_path / "spark", engine="spark", **settings)
    seen = events.since(before)
    result = mw.dedup("huge.jsonl", tmp_path / "local", **settings)
    assert unlike(tmp_path / "local", tmp_path / "spark") == []
    assert result.removed.column("id").to_pylist() == [2, 3]
    assert seen.failed == []
    assert 0 < seen.result_bytes < MEGABYTE
