"""Measurements from a Spark event log: seconds, tasks and bytes of each SQL action.

The log is one JSON object per line. A job names the SQL action it is part of, an action's plan names where it writes,
and a task names its stage and carries its metrics; see "Monitoring and Instrumentation" in Spark's documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
WRITES = re.compile(r"InsertIntoHadoopFsRelationCommand\s+Input[^\n]*\s+Arguments: file:[^\s,]*/([^\s,/]+)")
# Spark's metrics of the transfer to Python and back, by Spark's names.
PYTHON_METRICS = {
    "data sent to Python workers": "python_sent_bytes",
    "data returned from Python workers": "python_returned_bytes",
    "time to start Python workers": "python_start_milliseconds",
    "time to initialize Python workers": "python_initialise_milliseconds",
    "time to run Python workers": "python_run_milliseconds",
}


@dataclass(slots=True)
class Totals:
    """Sums over tasks.

    Attributes:
        tasks: Number of tasks that succeeded.
        task_seconds: Run time on executors, including the time they wait for Python.
        java_seconds: Processor time of their Java threads.
        collection_seconds: Time of garbage collection.
        longest_seconds: Run time of the longest task.
        read_bytes: Bytes read from files.
        shuffled_bytes: Bytes written to shuffles, compressed.
        shuffled_records: Rows written to shuffles.
        spilled_bytes: Bytes written to disk because memory was short.
        counts: Metrics of the transfer to Python, by the names of `PYTHON_METRICS`.
    """

    tasks: int = 0
    task_seconds: float = 0
    java_seconds: float = 0
    collection_seconds: float = 0
    longest_seconds: float = 0
    read_bytes: int = 0
    shuffled_bytes: int = 0
    shuffled_records: int = 0
    spilled_bytes: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def add_task(self, event: Event) -> None:
        """Add one task."""
        metrics = event["Task Metrics"]
        seconds = metrics["Executor Run Time"] / 1e3
        shuffled = metrics["Shuffle Write Metrics"]
        self.tasks += 1
        self.task_seconds += seconds
        self.java_seconds += metrics["Executor CPU Time"] / 1e9
        self.collection_seconds += metrics["JVM GC Time"] / 1e3
        self.longest_seconds = max(self.longest_seconds, seconds)
        self.read_bytes += metrics["Input Metrics"]["Bytes Read"]
        self.shuffled_bytes += shuffled["Shuffle Bytes Written"]
        self.shuffled_records += shuffled["Shuffle Records Written"]
        self.spilled_bytes += metrics["Disk Bytes Spilled"]
        for metric in event["Task Info"].get("Accumulables", []):
            name = PYTHON_METRICS.get(metric.get("Name"))
            if name:
                self.counts[name] = self.counts.get(name, 0) + int(metric["Update"])


@dataclass(slots=True)
class Action:
    """SQL action: a write, a count or a collect.

    Attributes:
        number: Execution id of Spark.
        began: Start, in seconds since 1970.
        description: Description by Spark.
        writes: Name of the directory it writes, if it writes one.
        plan: Physical plan.
        ended: End; None if it did not end.
        jobs: Number of jobs.
        stages: Sums over the tasks of each Spark stage, by the number of the stage.
    """

    number: int
    began: float
    description: str
    writes: str | None
    plan: str
    ended: float | None = None
    jobs: int = 0
    stages: dict[int, Totals] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Wall time."""
        return (self.ended or self.began) - self.began

    def total(self, name: str) -> float:
        """Return the sum over all Spark stages of one of the attributes or counts of `Totals`."""
        return sum(
            totals.counts.get(name, 0) if name in PYTHON_METRICS.values() else getattr(totals, name)
            for totals in self.stages.values()
        )


def read_actions(path: Path) -> list[Action]:
    """Return the SQL actions of an event log, in the order in which they began."""
    with path.open(encoding="utf-8") as file:
        return group_events(json.loads(line) for line in file)


def group_events(events: Iterable[Event]) -> list[Action]:
    """Return the actions of events; tasks outside of any action are left out."""
    actions: dict[int, Action] = {}
    owners: dict[int, Action] = {}
    for event in events:
        name = event["Event"]
        if name == f"{SQL}ExecutionStart":
            actions[event["executionId"]] = new_action(event)
        elif name == f"{SQL}ExecutionEnd" and event["executionId"] in actions:
            actions[event["executionId"]].ended = event["time"] / 1e3
        elif name == "SparkListenerJobStart":
            owners.update(stages_of_job(event, actions))
        elif name == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            owner = owners.get(event["Stage ID"])
            if owner is not None:
                owner.stages.setdefault(event["Stage ID"], Totals()).add_task(event)
    return sorted(actions.values(), key=lambda action: action.began)


def new_action(event: Event) -> Action:
    """Return the action that an event starts."""
    plan = event["physicalPlanDescription"]
    found = WRITES.search(plan)
    return Action(event["executionId"], event["time"] / 1e3, event["description"], found and found[1], plan)


def stages_of_job(event: Event, actions: dict[int, Action]) -> Iterator[tuple[int, Action]]:
    """Yield the Spark stages of a job with the action it is part of, and count the job."""
    number = event.get("Properties", {}).get("spark.sql.execution.id")
    action = None if number is None else actions.get(int(number))
    if action is not None:
        action.jobs += 1
        for stage in event["Stage IDs"]:
            yield stage, action


def within(actions: Iterable[Action], began: float, ended: float) -> list[Action]:
    """Return the actions that began in an interval."""
    return [action for action in actions if began <= action.began <= ended]
