"""Everything of a cluster that must not matter, and the bytes that an engine leaves."""

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
from minwise.spark import engine, read_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL", "SPARK", "Arrangement", "digest", "tables", "unlike"]

# The engines, as a call is given them.
LOCAL: dict[str, Any] = {}
SPARK: dict[str, Any] = {"engine": "spark"}
# What these hold differs from run to run: how long it took, and where.
OF_THE_RUN = ("run.json", "report.html")


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """How Spark cuts the work.

    Attributes:
        partitions: Into how many parts a shuffle is cut.
        task_bytes: How much of the files a task reads.
        split_bytes: How much of a finished stage a task reads.
        batch_rows: How many rows go to Python at once.
        adaptive: Whether Spark may join small parts.
        order: In which order files are given: so many of them are moved to the end.
        compiled: Whether Spark compiles its plans, as it does outside of tests.
    """

    partitions: int = 3
    task_bytes: int = 1 << 27
    split_bytes: int = 1 << 27
    batch_rows: int = 10_000
    adaptive: bool = True
    order: int = 0
    compiled: bool = False

    @contextmanager
    def on(self, spark: "SparkSession") -> Iterator[None]:
        """Lets the session work so."""
        given = {
            "spark.sql.shuffle.partitions": str(self.partitions),
            "spark.sql.files.maxPartitionBytes": str(self.split_bytes),
            "spark.sql.files.openCostInBytes": str(min(1 << 22, self.split_bytes)),
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(self.batch_rows),
            "spark.sql.adaptive.enabled": str(self.adaptive).lower(),
            "spark.sql.codegen.wholeStage": str(self.compiled).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if self.compiled else "NO_CODEGEN",
        }
        before = {name: str(spark.conf.get(name)) for name in given}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(read_tasks, "TASK_BYTES", self.task_bytes)
            patch.setattr(engine, "LEAST_PARTITIONS", self.partitions)
            try:
                for name, value in given.items():
                    spark.conf.set(name, value)
                yield
            finally:
                for name, value in before.items():
                    spark.conf.set(name, value)

    def arranged(self, files: tuple[str, ...]) -> Files:
        """The files in this order, which document order does not depend on."""
        return Files([*files[self.order :], *files[: self.order]])


def digest(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder, by its path; of those that tell about the run, that they are there."""
    return {
        path.relative_to(folder).as_posix(): "" if path.name in OF_THE_RUN else sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def unlike(one: Path, other: Path) -> list[str]:
    """The files that are not the same in two folders."""
    left, right = digest(one), digest(other)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def tables(result: DedupResult, folder: Path) -> None:
    """What a result tells about itself in memory, as a file."""
    found = [result.removed.to_pydict(), result.clusters.to_pydict(), result.kept.to_pydict(), result.keep.tolist()]
    found += [result.largest_clusters(), result.report]
    (folder / "tables.json").write_text(json.dumps(found, default=repr), encoding="utf-8")
