"""Processes of a cluster: who they are, and waiting for what they do."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["executors", "group_members", "wait_for"]

DEADLINE_SECONDS = 240
EXECUTOR = b"CoarseGrainedExecutorBackend"


def wait_for(what: str, come: Callable[[], bool]) -> None:
    """Looks again and again until something has come; fails if it never does."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not come():
        assert time.monotonic() < deadline, f"never seen: {what}"
        time.sleep(0.002)


def _status(process: int) -> list[str]:
    """State, parent, group and so on; nothing of a process that is gone."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _processes() -> list[int]:
    """All that run."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [one for one in numbers if _status(one)[:1] not in ([], ["Z"], ["X"])]


def executors(spark: "SparkSession") -> list[int]:
    """The processes of the executors: children of the Java process behind the session."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    found = []
    for process in _processes():
        if _status(process)[1:2] == [str(gateway.proc.pid)]:
            command = Path("/proc") / str(process) / "cmdline"
            found += [process] if EXECUTOR in command.read_bytes() else []
    return found


def group_members(group: int) -> list[int]:
    """The processes of a group."""
    return [one for one in _processes() if _status(one)[2:3] == [str(group)]]
