"""Spark's event log: stages, their tasks, and the bytes that these sent to the driver."""

import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EventLog", "Events", "StageAttempt"]

DEADLINE_SECONDS = 60


@dataclass(frozen=True)
class StageAttempt:
    """One attempt of a stage.

    Attributes:
        number: Number of the stage.
        tasks: Metrics of every task that succeeded.
    """

    number: int
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def values(self, *path: str) -> list[int]:
        """Return one metric of every task."""
        found = []
        for task in self.tasks:
            value: Any = task
            for name in path:
                value = value[name]
            found.append(int(value))
        return found

    @property
    def milliseconds(self) -> list[int]:
        """Run times of its tasks."""
        return self.values("Executor Run Time")

    @property
    def shuffled_rows(self) -> list[int]:
        """Rows that each task read from a shuffle."""
        return self.values("Shuffle Read Metrics", "Total Records Read")

    def describe(self) -> str:
        """Return the metrics for a message."""
        longest = sorted(self.milliseconds)
        return f"stage {self.number}: {len(longest)} tasks, median {median(longest)} ms, longest {longest[-3:]} ms"


@dataclass(frozen=True)
class Events:
    """Events of an interval.

    Attributes:
        lines: The events, in order.
    """

    lines: list[dict[str, Any]]

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.lines if event["Event"] == f"SparkListener{kind}"]

    @property
    def stages(self) -> list[StageAttempt]:
        """Stages with their tasks."""
        tasks: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for event in self._of("TaskEnd"):
            if event["Task End Reason"]["Reason"] == "Success":
                tasks[event["Stage ID"]].append(event["Task Metrics"])
        return [StageAttempt(number, found) for number, found in sorted(tasks.items())]

    @property
    def failed(self) -> list[tuple[int, str]]:
        """Stages of tasks that failed, and the reasons."""
        ends = [(event["Stage ID"], event["Task End Reason"]["Reason"]) for event in self._of("TaskEnd")]
        return [(stage, reason) for stage, reason in ends if reason != "Success"]

    @property
    def shuffling(self) -> set[int]:
        """Stages that read or write a shuffle."""
        return {
            stage.number
            for stage in self.stages
            if sum(stage.shuffled_rows) or sum(stage.values("Shuffle Write Metrics", "Shuffle Records Written"))
        }

    @property
    def lost_executors(self) -> int:
        """Number of executors that were lost."""
        return len(self._of("ExecutorRemoved"))

    @property
    def result_bytes(self) -> int:
        """Bytes that all tasks together sent to the driver."""
        return sum(sum(stage.values("Result Size")) for stage in self.stages)


class EventLog:
    """Event log of a session, to which Spark appends."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._folder = Path(urlsplit(str(spark.conf.get("spark.eventLog.dir"))).path)

    def now(self) -> int:
        """Return the current end of the log, after everything that has happened so far."""
        return len(self._settled())

    def since(self, point: int) -> Events:
        """Return the events after a point of the log."""
        return Events([json.loads(line) for line in self._settled()[point:]])

    def _settled(self) -> list[str]:
        """Run a job, wait until its end is in the log, which everything before it then is too, and return the lines."""
        mark = f"mark {time.monotonic_ns()}"
        context = self._spark.sparkContext
        context.setJobDescription(mark)
        self._spark.range(1).write.format("noop").mode("overwrite").save()
        context.setJobDescription(None)  # type: ignore[arg-type]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not _has_ended(mark, lines := self._lines()):
            assert time.monotonic() < deadline, "Spark does not write its event log"
            time.sleep(0.02)
        return lines

    def _lines(self) -> list[str]:
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file() and "appstatus" not in path.name)
        text = "".join(path.read_text(encoding="utf-8") for path in paths)
        return text.split("\n")[:-1]  # without the line that is being written


def _has_ended(mark: str, lines: list[str]) -> bool:
    """Return whether a job of this description has ended."""
    for number, line in enumerate(lines):
        if mark in line and '"SparkListenerJobStart"' in line:
            job = json.loads(line)["Job ID"]
            return any(f'"SparkListenerJobEnd","Job ID":{job},' in later for later in lines[number:])
    return False
