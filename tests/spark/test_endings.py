"""Copies, marks, weights and votes on Spark: the bytes of the local engine."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from property.test_one_answer import SHARDS, corpus, write_shards
from support.restored_runs import contents
from support.spark.arrangement import SPARK, Arrangement

import minwise as mw
from minwise.inputs import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = Arrangement(task_bytes=1 << 14, batch_rows=7, order=2)
# Files that tell time and memory of a run.
RUN_FILES = ("run.json", "report.html")
OPTIONS: dict[str, Any] = {
    "threshold": 0.5,
    "shingle": "word:2",
    "bands": 40,
    "rows": 2,
    "on_error": "quarantine",
    "keep": "max:score",
}
ENDINGS: list[dict[str, Any]] = [
    {"mark": True, "votes": "score", "add_weight": "w=sqrt(votes) / size", "mark_names": "cluster=dup"},
    {"copies": 3, "add_weight": "w=min(size, 5)", "against": "half"},
    {"drop_all": True, "group": "components", "target": 60},
]


def output_files(files: Files, folder: Path, options: dict[str, Any]) -> dict[str, bytes]:
    """Run and return the files that do not differ from run to run."""
    given = {**options, "against": Files(["reference.jsonl"])} if "against" in options else options
    result = mw.dedup(files, folder, **OPTIONS, **given)
    assert result.report["counts"]["removed"] > 0
    return {name: content for name, content in contents(folder).items() if name not in RUN_FILES}


@pytest.mark.parametrize("number", range(len(ENDINGS)))
def test_the_output_is_that_of_the_local_engine(
    number: int, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    lines = (tmp_path / "in" / SHARDS[1]).read_text(encoding="utf-8").splitlines()
    Path("reference.jsonl").write_text("\n".join(lines[10:40]) + "\n", encoding="utf-8")
    expected = output_files(Files(SHARDS), tmp_path / "local", ENDINGS[number])
    with MANY.on(spark):
        assert output_files(MANY.arranged(SHARDS), tmp_path / "spark", {**ENDINGS[number], **SPARK}) == expected
