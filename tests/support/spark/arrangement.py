"""Arrangements of a cluster that must not affect the result, and comparison of the files that engines write."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minwise.inputs import Files
from minwise.results import DedupResult
from minwise.spark import cells, engine, read_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL", "SPARK", "Arrangement", "differing_files", "file_digests", "write_tables_of"]

# Keyword arguments that choose an engine.
LOCAL: dict[str, Any] = {}
SPARK: dict[str, Any] = {"engine": "spark"}
# Files that contain times and paths, which differ from run to run.
RUN_FILES = ("run.json", "report.html")


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Division of the work by Spark.

    Attributes:
        partitions: Number of partitions of a shuffle, and of parts and cells.
        cell_bytes: Bytes of sets above which a component is cut.
        task_bytes: Bytes of the input files that a task reads.
        split_bytes: Bytes of a finished stage that a task reads.
        batch_rows: Rows that are sent to Python at once.
        adaptive: Whether Spark may merge small partitions.
        order: Number of files that are moved from the beginning of the input to its end.
        compiled: Whether Spark compiles its plans, as it does outside of tests.
    """

    partitions: int = 3
    cell_bytes: int = 1 << 30
    task_bytes: int = 1 << 27
    split_bytes: int = 1 << 27
    batch_rows: int = 10_000
    adaptive: bool = False
    order: int = 0
    compiled: bool = False

    @contextmanager
    def on(self, spark: "SparkSession") -> Iterator[None]:
        """Apply the arrangement to a session inside the block."""
        settings = {
            "spark.sql.shuffle.partitions": str(self.partitions),
            "spark.sql.files.maxPartitionBytes": str(self.split_bytes),
            "spark.sql.files.openCostInBytes": str(min(1 << 22, self.split_bytes)),
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(self.batch_rows),
            "spark.sql.adaptive.enabled": str(self.adaptive).lower(),
            "spark.sql.codegen.wholeStage": str(self.compiled).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if self.compiled else "NO_CODEGEN",
        }
        before = {name: str(spark.conf.get(name)) for name in settings}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(read_tasks, "TASK_BYTES", self.task_bytes)
            patch.setattr(engine, "part_count", lambda entries: self.partitions)
            patch.setattr(cells, "CELL_SECONDS", 1e-12)  # so that there are as many cells as may be
            patch.setattr(cells, "MOST_CELLS", self.partitions)
            patch.setattr(engine, "MOST_CELL_BYTES", self.cell_bytes)
            try:
                for name, value in settings.items():
                    spark.conf.set(name, value)
                yield
            finally:
                for name, value in before.items():
                    spark.conf.set(name, value)

    def arranged(self, files: tuple[str, ...]) -> Files:
        """Return the files in this order, on which the document order does not depend."""
        return Files([*files[self.order :], *files[: self.order]])


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path; an empty string for the files of ``RUN_FILES``."""
    return {
        path.relative_to(folder).as_posix(): "" if path.name in RUN_FILES else sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differing_files(first: Path, second: Path) -> list[str]:
    """Return the files that differ between two folders."""
    left, right = file_digests(first), file_digests(second)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def write_tables_of(result: DedupResult, folder: Path) -> None:
    """Write the tables and the report of a result to a file."""
    tables = [result.removed.to_pydict(), result.clusters.to_pydict(), result.kept.to_pydict(), result.keep.tolist()]
    tables += [result.largest_clusters(), result.report]
    (folder / "tables.json").write_text(json.dumps(tables, default=repr), encoding="utf-8")
