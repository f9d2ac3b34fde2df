"""One flipped bit in a stage of a Spark run: the next run names the file and the remedy, or its result is right.

One bit in each of three files by default; `make torture` flips 20 in the largest file and the list of each stage.
"""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.fault_corpora import NAMES, write_corpus
from support.spark.arrangement import differing_files

import minwise as mw
from minwise.errors import FormatError
from minwise.inputs import Files
from minwise.spark.stage_store import StageStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TORTURE = bool(os.environ.get("MINWISE_TORTURE"))


def stage_files(work: Path) -> list[Path]:
    """Return the largest file of each stage, the lists of their files, and the manifest."""
    lists = sorted((work / "spark").rglob("*.json"))
    stages = [folder for folder in (work / "spark").iterdir() if folder.is_dir()]
    largest = [max(folder.glob("[!_]*"), key=lambda path: path.stat().st_size) for folder in sorted(stages)]
    return [*largest, *lists]


def failure(call: Callable[[], object]) -> str | None:
    """Return the message of the FormatError that a call raises; None if it raises none."""
    try:
        call()
    except FormatError as error:
        return str(error)
    return None


@pytest.mark.usefixtures("spark")
def test_flipped_bit_of_a_stage_is_reported_or_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_corpus(tmp_path, 300)
    monkeypatch.chdir(folder)
    settings: dict[str, Any] = {"engine": "spark", "on_error": "quarantine-rows", "work": "work"}
    mw.dedup(Files(NAMES), "whole", **settings)
    for path in Path("work").iterdir():  # what the driver collected from the stages
        if path.is_file() and path.name not in ("manifest.json", ".lock"):
            path.unlink()
    Path("work").rename("intact")
    draw, reported = random.Random(3), 0
    files = stage_files(Path("intact"))
    for path in files * 20 if TORTURE else draw.sample(files, 3):
        shutil.copytree("intact", "work")
        damaged = Path("work") / path.relative_to("intact")
        content = bytearray(damaged.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        damaged.write_bytes(content)
        message = failure(lambda: mw.dedup(Files(NAMES), "out", **settings))
        if message is None:
            assert differing_files(Path("out"), Path("whole")) == []
        else:
            reported += 1
            assert str(damaged) in message
            assert "delete the work directory and start again" in message
            assert not Path("out").exists()
        shutil.rmtree("work")
        shutil.rmtree("out", ignore_errors=True)
    assert reported


def test_executors_compute_the_checksums_of_a_large_stage(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StageStore(spark, str(tmp_path / "stages"), {"task": "test"})
    store.run("numbers", lambda: spark.range(0, 1000, 1, 5).toDF("number"))
    by_driver = store._checksums("numbers")
    monkeypatch.setattr("minwise.spark.stage_store.DRIVER_BYTES", 0)
    assert store._checksums("numbers") == by_driver
    assert len(by_driver) == 5
