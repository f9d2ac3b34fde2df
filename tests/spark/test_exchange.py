"""Blocks reach the task of their part, whichever way this version of Spark routes them, in batches of bounded bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from minwise._internal.arrays import from_numpy
from minwise.spark.blocks import BLOCKS, Batches, by_label, exchange, received, rows_of_blocks
from minwise.spark.read_tasks import task_frame, task_numbers
from minwise.spark.stage_store import BYTES_PER_BATCH, StageStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS, SENDERS = 13, 5


def sent(spark: "SparkSession") -> "DataFrame":
    """Return a block from each of five tasks for each of thirteen parts but the last."""

    def send(batches: Batches) -> Batches:
        for number in task_numbers(batches):
            numbers = pa.record_batch({"sender": from_numpy(np.array([number]))})
            yield from rows_of_blocks((part, numbers) for part in range(PARTS - 1))

    return task_frame(spark, SENDERS).mapInArrow(send, BLOCKS)


def receiver() -> Callable[[Batches], Batches]:
    """Return the function of the receiving tasks. It is pickled by value, because executors cannot import tests."""

    def receive(batches: Batches) -> Batches:
        found = [(part, int(batch.column("sender")[0].as_py())) for part, batch in received(batches)]
        parts, senders = sorted({part for part, _ in found}), sorted(sender for _, sender in found)
        yield pa.record_batch({"parts": pa.array([parts], INTEGERS), "senders": pa.array([senders], INTEGERS)})

    return receive


INTEGERS = pa.list_(pa.int64())
EXPECTED = sorted([*([part] for part in range(PARTS - 1)), []])


def test_each_part_is_one_task(spark: "SparkSession") -> None:
    rows = exchange(sent(spark), PARTS, receiver(), "parts array<long>, senders array<long>").collect()
    assert sorted(row["parts"] for row in rows) == EXPECTED
    assert all(row["senders"] == list(range(SENDERS)) for row in rows if row["parts"])


@pytest.mark.parametrize("parts", [1, PARTS])
def test_labels_send_each_part_to_its_partition(spark: "SparkSession", parts: int) -> None:
    """As Spark 4.0 does, which cannot route by number."""
    from pyspark.sql import functions

    numbers = spark.range(0, 100, 1, 3).select((functions.col("id") % parts).cast("int").alias("part"))
    routed = by_label(numbers, parts).select("part", functions.spark_partition_id().alias("partition"))
    rows = routed.distinct().collect()
    assert len(rows) == parts
    assert all(row["part"] == row["partition"] for row in rows)


@pytest.mark.parametrize("rows", [None, 7])
def test_every_stage_limits_the_bytes_of_a_batch(rows: int | None, spark: "SparkSession", tmp_path: Path) -> None:
    """As Spark 4.0 does not by itself; the setting of the session is restored."""
    before, seen = str(spark.conf.get(BYTES_PER_BATCH)), []

    def numbers() -> "DataFrame":
        seen.append(spark.conf.get(BYTES_PER_BATCH))
        return spark.range(3)

    spark.conf.set(BYTES_PER_BATCH, "2147483647")
    try:
        StageStore(spark, str(tmp_path / "stages"), {}).run("numbers", numbers, rows_per_batch=rows)
        assert (seen, spark.conf.get(BYTES_PER_BATCH)) == (["64m"], "2147483647")
    finally:
        spark.conf.set(BYTES_PER_BATCH, before)
