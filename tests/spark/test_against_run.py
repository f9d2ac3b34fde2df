"""Runs against earlier runs on Spark: the bytes of the local engine."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.growing_corpus import DAYS, grow, removed_ids, write_days
from support.spark.arrangement import LOCAL, SPARK, Arrangement, differing_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def grown(folder: Path, name: str, engine: dict[str, Any]) -> Path:
    """Deduplicate three days, each against the one before it, and move the outputs to a directory of their own."""
    grow(folder, days=3, **engine)
    (folder / name).mkdir()
    for day in DAYS[:3]:
        (folder / f"out-{day}").rename(folder / name / day)
    return folder / name


def test_three_days_have_the_bytes_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_days(tmp_path, days=3)
    local = grown(tmp_path, "local", LOCAL)
    with Arrangement(partitions=3, task_bytes=1 << 12, batch_rows=7).on(spark):
        other = grown(tmp_path, "spark", SPARK)
    assert all(removed_ids(local / day) for day in DAYS[:3])
    for day in DAYS[:3]:
        assert differing_files(local / day, other / day) == []
