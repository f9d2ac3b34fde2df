"""Processes of a cluster, from /proc, and waiting for them."""

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["DRIVER", "children", "command_line", "executors", "group_members", "wait_for"]

DEADLINE_SECONDS = 240
# Classes that Java runs in the driver and in executors.
DRIVER = "org.apache.spark.deploy.SparkSubmit"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def wait_for(event: str, has_happened: Callable[[], bool]) -> None:
    """Wait until an event has happened; fail after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not has_happened():
        assert time.monotonic() < deadline, f"never happened: {event}"
        time.sleep(0.002)


def _status(process: int) -> list[str]:
    """Return state, parent, group and further fields; an empty list if the process has ended."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _processes() -> list[int]:
    """Return all running processes."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if _status(number)[:1] not in ([], ["Z"], ["X"])]


def children(parent: int, program: str) -> list[int]:
    """Return the child processes whose command line contains ``program``."""
    found = [number for number in _processes() if _status(number)[1:2] == [str(parent)]]
    return [number for number in found if program in command_line(number)]


def command_line(process: int) -> list[str]:
    """Return the command line of a process; an empty list if it has ended."""
    try:
        return (Path("/proc") / str(process) / "cmdline").read_text().split("\0")
    except OSError:
        return []


def executors() -> list[int]:
    """Return the processes of the executors: children of the Java process of this one."""
    return [number for driver in children(os.getpid(), DRIVER) for number in children(driver, EXECUTOR)]


def group_members(group: int) -> list[int]:
    """Return the processes of a process group."""
    return [number for number in _processes() if _status(number)[2:3] == [str(group)]]
