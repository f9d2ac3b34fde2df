"""A tenth of all documents in one bucket: no task gets more than its share, and no text comes to the driver."""

import ast
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from support.small_corpus import write
from support.spark.arrangement import Arrangement, unlike
from support.spark.corpora import crowded
from support.spark.event_log import Events, Stage

import minwise as mw
import minwise.spark
from minwise.inputs import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS, CROWD = 200_000, 20_000
SEARCH: dict[str, Any] = {"threshold": 0.8, "shingle": "word:1", "bands": 4, "rows": 4}
# Shuffle parts of which each would hold half of the crowd's entries if these were spread: a crowd in one of them shows.
CUT = Arrangement(partitions=20, task_bytes=2 * 10**6, adaptive=False, compiled=True)
# No task may take longer than so many times the median of its stage.
TIMES = 10
TRIES = 3
# What a task may send to the driver: metrics, and where its files are. A document of this corpus has about 90 bytes.
RESULT_BYTES_PER_TASK = 64 << 10
# Of Spark: what collects on the driver, goes round DataFrames, or is not there in Spark Connect.
FORBIDDEN = {"sparkContext", "rdd", "monotonically_increasing_id", "toPandas", "foreach"}
PRIVATE = {"_gateway", "_jvm", "_jdf", "_jsc", "_sc", "_active_spark_context", "_instantiatedSession", "java_gateway"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file and JSON lines with half of the documents each."""
    folder = tmp_path_factory.mktemp("skew")
    rows = list(crowded(DOCUMENTS, CROWD))
    write(folder / "a.jsonl", rows[: DOCUMENTS // 2])
    write(folder / "b.parquet", rows[DOCUMENTS // 2 :])
    return folder


def unfair(stage: Stage, overhead: int) -> bool:
    """Whether a task took longer than its share.

    A task that does next to nothing takes ``overhead`` milliseconds, whatever there is to do, and now and then all of
    it: so this is the least that a stage's median counts for.
    """
    return len(stage.tasks) > 2 and max(stage.milliseconds) > TIMES * max(median(stage.milliseconds), overhead)


def longest_empty_task(spark: "SparkSession", events: Events) -> int:
    """Milliseconds that a task takes that sends one row through Python."""
    before = events.now()
    spark.range(0, 8, 1, 8).mapInArrow(lambda batches: batches, "id long").write.format("noop").mode("overwrite").save()
    return max(time for stage in events.since(before).stages for time in stage.milliseconds)


def test_a_crowded_bucket_makes_no_task_long(
    spark: "SparkSession", events: Events, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the clock nor by the rows it gets; and the answer is that of the local engine.

    A task that is long because of what it has to do is long every time; one that had to wait for the machine is not.
    """
    monkeypatch.chdir(corpus)
    for number in range(TRIES):
        overhead = longest_empty_task(spark, events)
        before = events.now()
        with CUT.on(spark):
            mw.dedup(Files(["."]), tmp_path / f"spark{number}", engine="spark", **SEARCH)
        seen = events.since(before)
        long = [stage.describe() for stage in seen.stages if unfair(stage, overhead)]
        if not long:
            break
    assert long == []
    result = mw.dedup(Files(["."]), tmp_path / "local", **SEARCH)
    assert unlike(tmp_path / "local", tmp_path / "spark0") == []
    assert result.report["caps"]["largest_bucket"] == CROWD
    assert sum(result.report["counts"][name] for name in ("kept", "removed")) == DOCUMENTS
    for stage in seen.stages:
        if len(stage.tasks) >= CUT.partitions and sum(stage.shuffled_rows) > DOCUMENTS // 10:
            assert max(stage.shuffled_rows) <= TIMES * median(stage.shuffled_rows), stage.describe()
    tasks = sum(len(stage.tasks) for stage in seen.stages)
    assert seen.result_bytes <= RESULT_BYTES_PER_TASK * tasks


def test_only_the_dataframe_interface_is_used() -> None:
    """No module but those of the session uses RDDs, rows as Python objects, or what Spark Connect does not have."""
    sessions = ("session.py", "java_process.py")
    assert [use for use in _uses(FORBIDDEN) if not use.startswith(sessions)] == []


def test_private_state_of_pyspark_is_used_by_one_function() -> None:
    """Ending the Java process has no public interface; everything else has."""
    function = "java_process.py _end_process"
    assert {use.rpartition(" ")[0] for use in _uses(PRIVATE)} == {function}


def _uses(names: set[str]) -> list[str]:
    """The places in minwise.spark that name one of them: file, top-level definition and name."""
    folder = Path(minwise.spark.__file__).parent
    return [
        f"{path.name} {getattr(definition, 'name', '-')} {name}"
        for path in sorted(folder.glob("*.py"))
        for definition in ast.parse(path.read_text(encoding="utf-8")).body
        for node in ast.walk(definition)
        if (name := _name(node)) in names
    ]


def _name(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
        case ast.ImportFrom(module=str(name)):
            return name.rpartition(".")[2]
        case ast.Constant(value=str(name)):
            return name
    return ""
