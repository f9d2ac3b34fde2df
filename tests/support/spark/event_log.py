"""What happened on the cluster, from Spark's own log of it: stages, their tasks, and what these sent to the driver."""

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

__all__ = ["Events", "Seen", "Stage"]

DEADLINE_SECONDS = 60


@dataclass(frozen=True)
class Stage:
    """One attempt of a stage.

    Attributes:
        number: Which stage it is.
        tasks: The measurements of every task that came to its end.
    """

    number: int
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def values(self, *path: str) -> list[int]:
        """One measurement of every task."""
        found = []
        for task in self.tasks:
            value: Any = task
            for name in path:
                value = value[name]
            found.append(int(value))
        return found

    @property
    def milliseconds(self) -> list[int]:
        """How long its tasks ran."""
        return self.values("Executor Run Time")

    @property
    def shuffled_rows(self) -> list[int]:
        """How many rows each task got from a shuffle."""
        return self.values("Shuffle Read Metrics", "Total Records Read")

    def describe(self) -> str:
        """The measurements, for a message."""
        longest = sorted(self.milliseconds)
        return f"stage {self.number}: {len(longest)} tasks, median {median(longest)} ms, longest {longest[-3:]} ms"


@dataclass(frozen=True)
class Seen:
    """What happened in some time.

    Attributes:
        lines: The events.
    """

    lines: list[dict[str, Any]]

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.lines if one["Event"] == f"SparkListener{kind}"]

    @property
    def stages(self) -> list[Stage]:
        """The stages with their tasks."""
        tasks: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for one in self._of("TaskEnd"):
            if one["Task End Reason"]["Reason"] == "Success":
                tasks[one["Stage ID"]].append(one["Task Metrics"])
        return [Stage(number, found) for number, found in sorted(tasks.items())]

    @property
    def failed(self) -> list[tuple[int, str]]:
        """The stages of tasks that came to no good end, and why."""
        ends = [(one["Stage ID"], one["Task End Reason"]["Reason"]) for one in self._of("TaskEnd")]
        return [one for one in ends if one[1] != "Success"]

    @property
    def shuffling(self) -> set[int]:
        """The stages that read or write a shuffle."""
        return {
            stage.number
            for stage in self.stages
            if sum(stage.shuffled_rows) or sum(stage.values("Shuffle Write Metrics", "Shuffle Records Written"))
        }

    @property
    def lost_executors(self) -> int:
        """How many executors went away."""
        return len(self._of("ExecutorRemoved"))

    @property
    def result_bytes(self) -> int:
        """What all tasks together sent to the driver."""
        return sum(sum(stage.values("Result Size")) for stage in self.stages)


class Events:
    """The log of a session, which Spark appends to."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._folder = Path(urlsplit(str(spark.conf.get("spark.eventLog.dir"))).path)

    def now(self) -> int:
        """A point of the log: everything that has happened so far is before it."""
        return len(self._settled())

    def since(self, point: int) -> Seen:
        """What happened after a point, up to now."""
        return Seen([json.loads(line) for line in self._settled()[point:]])

    def _settled(self) -> list[str]:
        """The lines, once the end of a job that is started here is among them: then so is all before it."""
        mark = f"mark {time.monotonic_ns()}"
        context = self._spark.sparkContext
        context.setJobDescription(mark)
        self._spark.range(1).write.format("noop").mode("overwrite").save()
        context.setJobDescription(None)  # type: ignore[arg-type]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not _has_ended(mark, lines := self._lines()):
            assert time.monotonic() < deadline, "Spark does not write its log"
            time.sleep(0.02)
        return lines

    def _lines(self) -> list[str]:
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file() and "appstatus" not in path.name)
        text = "".join(path.read_text(encoding="utf-8") for path in paths)
        return text.split("\n")[:-1]  # without the line that is just being written


def _has_ended(mark: str, lines: list[str]) -> bool:
    """Whether a job of this description has come to its end."""
    for number, line in enumerate(lines):
        if mark in line and '"SparkListenerJobStart"' in line:
            job = json.loads(line)["Job ID"]
            return any(f'"SparkListenerJobEnd","Job ID":{job},' in one for one in lines[number:])
    return False
