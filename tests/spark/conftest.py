"""One cluster for all tests of a process."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.spark.cluster import make_spark_home, missing_requirement, start_cluster
from support.spark.event_log import EventLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# pyspark warns at every mapInArrow, which uses nothing of pandas.
PANDAS_WARNING = "PySpark does not yet fully support pandas"
# Java needs most of an executor's memory to write a set of 50 MB; checkpoints of earlier tests would occupy part of it.
LARGEST = "test_documents_of_50_mb_are_compared_in_executors_of_1_gb"
# Files that take longest, so that the two processes of `make test` end together: it passes files in this order.
LONGEST = (
    "test_faulty_rows.py",
    "test_dataframes.py",
    "test_same_output.py",
    "test_kill.py",
    "test_session.py",
    "test_object_storage.py",
    "test_components.py",
    "test_passages.py",
    "test_skew.py",
    "test_steps.py",
    "test_stars.py",
    "test_migrating.py",
    "test_dataframe_faults.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where Spark cannot run, with the reason; run the largest and longest ones first."""
    folder = Path(__file__).parent
    tests = [item for item in items if folder in item.path.parents]
    missing = missing_requirement() if tests else None
    for test in tests:
        test.add_marker(pytest.mark.filterwarnings(f"ignore:{PANDAS_WARNING}:FutureWarning"))
        if missing is not None:
            test.add_marker(pytest.mark.skip(reason=missing))
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (item.name != LARGEST, order.get(item.path.name, len(order))))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Return a session on a cluster of two executors with one core and 1 GB each."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(make_spark_home(folder / "home")))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        for name in ("SPARK_LOCAL_DIRS", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"):
            patch.delenv(name, raising=False)
        session = start_cluster(folder)
        yield session
        session.stop()  # its Java process ends with this one


@pytest.fixture(scope="session")
def events(spark: "SparkSession") -> EventLog:
    """Return the event log of the cluster."""
    return EventLog(spark)
