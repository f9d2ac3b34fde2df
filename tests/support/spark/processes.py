"""Processes of a cluster: who they are, and waiting for what they do."""

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["DRIVER", "children", "command_line", "executors", "group_members", "wait_for"]

DEADLINE_SECONDS = 240
# The classes that Java runs in the driver and in executors.
DRIVER = "org.apache.spark.deploy.SparkSubmit"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


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


def children(parent: int, program: str) -> list[int]:
    """The child processes of a process whose command line names a program."""
    found = [one for one in _processes() if _status(one)[1:2] == [str(parent)]]
    return [one for one in found if program in command_line(one)]


def command_line(process: int) -> list[str]:
    """The command line of a process; empty if it is gone."""
    try:
        return (Path("/proc") / str(process) / "cmdline").read_text().split("\0")
    except OSError:
        return []


def executors() -> list[int]:
    """The processes of the executors: children of the Java process behind the session."""
    return [one for driver in children(os.getpid(), DRIVER) for one in children(driver, EXECUTOR)]


def group_members(group: int) -> list[int]:
    """The processes of a group."""
    return [one for one in _processes() if _status(one)[2:3] == [str(group)]]
