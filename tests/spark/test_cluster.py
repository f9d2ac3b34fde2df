"""The cluster that the tests run on is a real one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import minwise as mw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_executors_are_processes_of_their_own_with_this_minwise(spark: "SparkSession") -> None:
    """Tasks run in other processes, on more than one executor, with the interpreter and the package of the tests."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import minwise

        for _ in batches:
            told = {"process": os.getpid(), "parent": os.getppid(), "python": sys.executable, "file": minwise.__file__}
            yield pa.RecordBatch.from_pylist([told])

    schema = "process long, parent long, python string, file string"
    seen = spark.range(8).repartition(8).mapInArrow(tell, schema).collect()
    assert os.getpid() not in {row.process for row in seen}
    assert {row.python for row in seen} == {sys.executable}
    assert {Path(row.file) for row in seen} == {Path(str(mw.__file__))}
    assert len({row.parent for row in seen}) == 2
