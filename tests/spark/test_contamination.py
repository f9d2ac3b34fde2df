"""Decontamination on Spark: the bytes of the local engine."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from property.test_one_answer import SHARDS, corpus, write_shards
from support.restored_runs import contents
from support.spark.arrangement import SPARK, Arrangement

import minwise as mw
from minwise.inputs import Files
from minwise.spark import contamination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = Arrangement(task_bytes=1 << 14, batch_rows=7, order=2)
# Files that tell time and memory of a run.
RUN_FILES = ("run.json", "report.html")
RULE: dict[str, Any] = {"ngram": 6, "min_share": 0.4, "common_count": 3, "on_error": "quarantine"}


def write_items(path: Path) -> None:
    texts = [text for row in corpus() if len(text := row["text"] or "") > 60]
    items = [text[len(text) // 3 : len(text) // 3 + 120] for text in texts[::9]]
    lines = (json.dumps({"id": f"q{number}", "text": item}) for number, item in enumerate([*items, "too short"]))
    path.write_text("".join(f"{line}\n" for line in lines))


def output_files(train: Files, folder: Path, **options: Any) -> dict[str, bytes]:  # noqa: ANN401 - settings
    result = mw.decontaminate(train, Files(["items.jsonl"]), folder, **RULE, **options)
    assert result.report["items"]["hits"] > 20
    assert result.report["items"]["uncheckable"] == 1
    return {name: content for name, content in contents(folder).items() if name not in RUN_FILES}


def shown_hits(folder: Path) -> str:
    page = (folder / "report.html").read_text(encoding="utf-8")
    return page[page.index('id="hits"') : page.index('id="sources"')]


def test_the_output_is_that_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run on the work directory uses the stages of the first."""
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    write_items(tmp_path / "in" / "items.jsonl")
    expected = output_files(Files(SHARDS), tmp_path / "local", action="cut")
    resumed = {**SPARK, "action": "cut", "work": tmp_path / "work"}
    train = MANY.arranged(SHARDS)
    with MANY.on(spark):
        assert output_files(train, tmp_path / "spark", **resumed) == expected
        monkeypatch.setattr(contamination, "_scanned_files", None)
        monkeypatch.setattr(contamination, "_located_files", None)
        assert output_files(train, tmp_path / "again", **resumed) == expected
    assert "<mark>" in shown_hits(tmp_path / "local")
    assert "read again" not in shown_hits(tmp_path / "local")
    assert shown_hits(tmp_path / "spark") == shown_hits(tmp_path / "again") == shown_hits(tmp_path / "local")


@pytest.mark.parametrize("action", ["remove", "mark"])
def test_removed_and_marked_rows_are_those_of_the_local_engine(
    action: str, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    write_items(tmp_path / "in" / "items.jsonl")
    expected = output_files(Files(SHARDS), tmp_path / "local", action=action)
    with MANY.on(spark):
        assert output_files(MANY.arranged(SHARDS), tmp_path / "spark", action=action, **SPARK) == expected
