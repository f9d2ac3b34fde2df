"""A tenth of all documents in one bucket: no task is much longer than the others, and no text is sent to the driver."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.small_corpus import write
from support.spark.arrangement import Arrangement, differing_files
from support.spark.corpora import with_large_bucket
from support.spark.event_log import EventLog, StageAttempt

import minwise as mw
import minwise.spark
from minwise.inputs import Files
from minwise.spark import band_tasks
from minwise.spark.blocks import Batches, exchange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCUMENTS, BUCKET = 200_000, 20_000
SEARCH: dict[str, Any] = {"threshold": 0.8, "shingle": "word:1", "bands": 4, "rows": 4}
# So many partitions that one with the whole bucket would be much larger than the others.
MANY_PARTITIONS = Arrangement(partitions=20, task_bytes=2 * 10**6, compiled=True)
# Maximum ratio of a task to the median of its stage.
MAX_RATIO = 10
TRIES = 3
# Maximum ratio of the bytes of band entries that a task receives to their median, and of the median to the least. A
# part has 40,000 entries, and that of a large bucket 20,000 more; two of the four large buckets may share a part.
MAX_BYTES_RATIO = 2.5
# Bytes that a task may send to the driver: metrics and file names. A document of this corpus has about 90 bytes.
RESULT_BYTES_PER_TASK = 64 << 10
# Interfaces of Spark that collect on the driver, bypass DataFrames, or are missing in Spark Connect.
FORBIDDEN = {"sparkContext", "rdd", "monotonically_increasing_id", "toPandas", "foreach"}
# Names of private state that getattr could be given.
PRIVATE = {"_gateway", "_jvm", "_jdf", "_jsc", "_sc", "_active_spark_context", "_instantiatedSession"}
# Modules of pyspark without documented interfaces.
INTERNAL = {"java_gateway", "find_spark_home"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Parquet file and JSON lines with half of the documents each; return their folder."""
    folder = tmp_path_factory.mktemp("skew")
    rows = list(with_large_bucket(DOCUMENTS, BUCKET))
    write(folder / "a.jsonl", rows[: DOCUMENTS // 2])
    write(folder / "b.parquet", rows[DOCUMENTS // 2 :])
    return folder


def is_skewed(stage: StageAttempt, overhead: int) -> bool:
    """Return whether a task took much longer than the median.

    A task that does next to nothing takes up to ``overhead`` milliseconds, so a smaller median counts as that.
    """
    return len(stage.tasks) > 2 and max(stage.milliseconds) > MAX_RATIO * max(median(stage.milliseconds), overhead)


def longest_empty_task(spark: "SparkSession", events: EventLog) -> int:
    """Return the milliseconds of the longest task that sends one row through Python."""
    before = events.now()
    spark.range(0, 8, 1, 8).mapInArrow(lambda batches: batches, "id long").write.format("noop").mode("overwrite").save()
    return max(time for stage in events.since(before).stages for time in stage.milliseconds)


def counted_exchange(received: list[list[int]]) -> "Callable[..., DataFrame]":
    """Return a replacement of ``exchange`` that adds the bytes of blocks that each task receives to a list.

    The rows only say where blocks are in files, so the event log does not have these bytes.
    """

    def counted(blocks: "DataFrame", parts: int, receive: Callable[[Batches], Batches], schema: str) -> "DataFrame":
        def add_up(batches: Batches) -> Batches:
            sizes = [size for batch in batches for size in batch.column("size").to_pylist()]
            yield pa.record_batch({"bytes": pa.array([sum(sizes)], pa.int64())})

        sent = blocks.localCheckpoint()
        received.append([row["bytes"] for row in exchange(sent, parts, add_up, "bytes long").collect()])
        return exchange(sent, parts, receive, schema)

    return counted


def test_a_large_bucket_makes_no_task_long(
    spark: "SparkSession", events: EventLog, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in time nor in band entries; and the result is that of the local engine.

    A task that is long because of its data is long in every try; one that had to wait for the machine is not.
    """
    monkeypatch.chdir(corpus)
    received: list[list[int]] = []
    monkeypatch.setattr(band_tasks, "exchange", counted_exchange(received))
    for number in range(TRIES):
        overhead = longest_empty_task(spark, events)
        before = events.now()
        with MANY_PARTITIONS.on(spark):
            mw.dedup(Files(["."]), tmp_path / f"spark{number}", engine="spark", **SEARCH)
        seen = events.since(before)
        long = [stage.describe() for stage in seen.stages if is_skewed(stage, overhead)]
        if not long:
            break
    assert long == []
    result = mw.dedup(Files(["."]), tmp_path / "local", **SEARCH)
    assert differing_files(tmp_path / "local", tmp_path / "spark0") == []
    assert result.report["caps"]["largest_bucket"] == BUCKET
    assert sum(result.report["counts"][name] for name in ("kept", "removed")) == DOCUMENTS
    sizes = sorted(received[0])
    assert len(sizes) == MANY_PARTITIONS.partitions
    assert sum(sizes) > 8 * SEARCH["bands"] * DOCUMENTS
    assert sizes[-1] / MAX_BYTES_RATIO < median(sizes) < sizes[0] * MAX_BYTES_RATIO, sizes
    tasks = sum(len(stage.tasks) for stage in seen.stages)
    assert seen.result_bytes <= RESULT_BYTES_PER_TASK * tasks


def test_only_the_dataframe_interface_is_used() -> None:
    """No module but the session uses RDDs, rows as Python objects, or what Spark Connect does not have."""
    assert [use for use in _uses(_name) if use[1] in FORBIDDEN and use[0] != "session.py"] == []


def test_no_private_attribute_of_pyspark_is_used() -> None:
    """Modules access private attributes of their own objects only, and import no private name of pyspark."""
    assert _uses(_private_name) == []


def _uses(name_in: Callable[[ast.AST], str]) -> list[tuple[str, str]]:
    """Return file and name of every node of the sources of minwise.spark in which the function finds a name."""
    return [
        (path.name, name)
        for path in sorted(Path(minwise.spark.__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (name := name_in(node))
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


def _private_name(node: ast.AST) -> str:
    """Return the private attribute, or the private part of pyspark, that a node uses; also one named in a string."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")) | ast.Attribute(attr="_asdict" | "_replace"):
            return ""  # of the module itself, or a public method of named tuples
        case ast.Attribute(attr=name):
            return name if re.fullmatch(r"_[^_].*", name) else ""
        case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] in ("pyspark", "py4j"):
            parts = [*module.split("."), *(alias.name for alias in names)]
            return next((part for part in parts if part.startswith("_") or part in INTERNAL), "")
        case ast.Import(names=[ast.alias(name=name)]) if name.startswith("py4j"):
            return name
        case ast.Constant(value=str(name)):
            return name if name in PRIVATE else ""
    return ""
