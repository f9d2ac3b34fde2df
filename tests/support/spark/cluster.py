"""Local Spark cluster: executors are separate processes, and all files and connections stay on this machine."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["FAST_JAVA", "FAST_PLANS", "make_spark_home", "missing_requirement", "start_cluster", "working_executors"]

MASTER = "local-cluster[2,1,1024]"
OLDEST_JAVA = 17
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Tests have many plans and few rows: compiling a plan takes longer than interpreting it.
FAST_PLANS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
CONF = {
    **FAST_PLANS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    # Queries are planned once and not after each shuffle; arrangements with `adaptive` have it, as Spark by default.
    "spark.sql.adaptive.enabled": "false",
    "spark.log.level": "ERROR",
    # Jobs wait until both executors are registered.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.driver.extraJavaOptions": FAST_JAVA,
    "spark.executor.extraJavaOptions": FAST_JAVA,
    # Tasks of a lost executor start on the other one at once.
    "spark.locality.wait": "0",
    # A new executor gets replicas at once. Executors keep the list of their peers for a minute, and the one that is
    # left after a loss reads it when there is none: its blocks would have no replica if it is killed next.
    "spark.storage.cachedPeersTtl": "0",
    # Shuffle files of a lost executor are not requested several times before they are made again.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    # Tests read tasks, their run times and their results from the event log.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def missing_requirement() -> str | None:
    """Return why Spark cannot run on this machine; None if it can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: install minwise with the extra spark"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        return f"there is no Java on this machine: Spark needs Java {OLDEST_JAVA}"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', answer)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA}, {java} is: {answer.strip()[:100]}"
    return None


def make_spark_home(folder: Path) -> Path:
    """Create a Spark home whose executors write below ``folder``, not where pyspark is installed."""
    import pyspark

    folder.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder


def start_cluster(folder: Path, **conf: str) -> "SparkSession":
    """Start a session on a cluster of two executors, all of whose files are below ``folder``."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).appName("minwise tests")
    folders = {"spark.eventLog.dir": folder / "events", "spark.sql.warehouse.dir": folder / "warehouse"}
    for path in (*folders.values(), folder / "local"):
        path.mkdir()
    for name, value in {**CONF, **{name: path.as_uri() for name, path in folders.items()}, **conf}.items():
        builder = builder.config(name, value)
    return builder.config("spark.local.dir", str(folder / "local")).getOrCreate()


def working_executors(spark: "SparkSession") -> int:
    """Return the number of executors that run tasks: a process that has started may not be registered yet."""

    def parent(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for _ in batches:
            time.sleep(0.1)  # so that one executor does not run all tasks
            yield pa.RecordBatch.from_pydict({"parent": [os.getppid()]})

    rows = spark.range(0, 4, 1, 4).mapInArrow(parent, "parent long").collect()
    return len({row["parent"] for row in rows})
