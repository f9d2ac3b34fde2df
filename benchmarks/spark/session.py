"""Spark session with the same settings for all methods."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

MASTER = "local[2]"
SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "16",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def open_session(folder: Path) -> SparkSession:
    """Return a session that keeps its event log and its temporary files in ``folder``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logs, local = folder / "events", folder / "local"
    logs.mkdir()
    paths = {"spark.eventLog.dir": logs.as_uri(), "spark.local.dir": str(local)}
    builder = SparkSession.builder.master(MASTER)
    for name, value in (SETTINGS | paths).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
