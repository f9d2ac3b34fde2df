"""A real cluster for all tests of a run: executors are processes of their own, and everything stays on this machine."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.spark.event_log import Events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local-cluster[2,1,1024]"
OLDEST_JAVA = 17
# Said at every mapInArrow, which uses nothing of pandas.
OF_PANDAS = "PySpark does not yet fully support pandas"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Plans are many and rows are few: compiling a plan takes longer than going through it uncompiled.
QUICK_PLANS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
CONF = {
    **QUICK_PLANS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.log.level": "ERROR",
    # Both executors are there before anything starts, and what they run is compiled quickly rather than well.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    # So that a lost executor is noticed by its closed connection and its tasks start elsewhere at once.
    "spark.locality.wait": "0",
    # And so that its shuffle files are not asked for again and again before they are made again.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    # What happened is read from here: which tasks there were, how long they took, what they sent to the driver.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def what_is_missing() -> str | None:
    """Why there can be no Spark here; None if there can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: install minwise with the extra spark"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        return f"there is no Java on this machine: Spark needs Java {OLDEST_JAVA}"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA}, {java} is: {told.strip()[:100]}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, and says why, what needs Spark where there is none."""
    here = Path(__file__).parent
    ours = [one for one in items if here in one.path.parents]
    missing = what_is_missing() if ours else None
    for one in ours:
        one.add_marker(pytest.mark.filterwarnings(f"ignore:{OF_PANDAS}:FutureWarning"))
        if missing is not None:
            one.add_marker(pytest.mark.skip(reason=missing))


def make_home(folder: Path) -> Path:
    """A Spark home whose executors work below ``folder``, and not where pyspark is installed."""
    import pyspark

    folder.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder


def start(folder: Path, **conf: str) -> "SparkSession":
    """A session on a cluster of two executors, whose files are all below ``folder``."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).appName("minwise tests")
    places = {"spark.eventLog.dir": folder / "events", "spark.sql.warehouse.dir": folder / "warehouse"}
    for place in (*places.values(), folder / "local"):
        place.mkdir()
    for name, value in {**CONF, **{name: path.as_uri() for name, path in places.items()}, **conf}.items():
        builder = builder.config(name, value)
    return builder.config("spark.local.dir", str(folder / "local")).getOrCreate()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on a cluster of two executors with one core and 1 GB each."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(make_home(folder / "home")))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        for name in ("SPARK_LOCAL_DIRS", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"):
            patch.delenv(name, raising=False)
        session = start(folder)
        yield session
        session.stop()  # its Java process ends with this one


@pytest.fixture(scope="session")
def events(spark: "SparkSession") -> Events:
    """What happens on the cluster."""
    return Events(spark)
