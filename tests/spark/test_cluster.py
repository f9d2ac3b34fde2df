"""The tests run on a cluster with separate executor processes."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import minwise as mw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_executors_are_separate_processes_with_this_minwise(spark: "SparkSession") -> None:
    """Tasks run on both executors, with the interpreter and the package of the tests."""

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import minwise

        for _ in batches:
            row = {"process": os.getpid(), "parent": os.getppid(), "python": sys.executable, "file": minwise.__file__}
            yield pa.RecordBatch.from_pylist([row])

    schema = "process long, parent long, python string, file string"
    seen = spark.range(8).repartition(8).mapInArrow(describe, schema).collect()
    assert os.getpid() not in {row.process for row in seen}
    assert {row.python for row in seen} == {sys.executable}
    assert {Path(row.file) for row in seen} == {Path(str(mw.__file__))}
    assert len({row.parent for row in seen}) == 2
