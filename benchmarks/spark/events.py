"""Events: a Spark event log in; what each SQL action did, in seconds, tasks and bytes, out.

The log is one JSON object a line. A job names the SQL action it is part of, an action's plan names where it writes, and
a task names its stage and carries its metrics; see "Monitoring and Instrumentation" in Spark's documentation.
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
# What Spark counts of the way to Python and back, by its own names.
PYTHON_METRICS = {
    "data sent to Python workers": "python_sent_bytes",
    "data returned from Python workers": "python_returned_bytes",
    "time to start Python workers": "python_start_milliseconds",
    "time to initialize Python workers": "python_initialise_milliseconds",
    "time to run Python workers": "python_run_milliseconds",
}


@dataclass(slots=True)
class Totals:
    """What tasks did, summed up.

    Attributes:
        tasks: How many ended well.
        task_seconds: Their run time on executors, the Python they waited for included.
        java_seconds: Processor time of the Java threads that ran them.
        collection_seconds: What garbage collection took of it.
        longest_seconds: The run time of the longest.
        read_bytes: Read from files.
        shuffled_bytes: Written to shuffles, compressed as they are.
        shuffled_records: Rows written to shuffles.
        spilled_bytes: Written to disk because memory was short.
        counts: Spark's counts of the way to Python, by the names of `PYTHON_METRICS`.
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
        """Count one task."""
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
        for one in event["Task Info"].get("Accumulables", []):
            name = PYTHON_METRICS.get(one.get("Name"))
            if name:
                self.counts[name] = self.counts.get(name, 0) + int(one["Update"])


@dataclass(slots=True)
class Action:
    """One SQL action: a write, a count, a collect.

    Attributes:
        number: Spark's number of it.
        began: When, in seconds since 1970.
        description: What Spark calls it.
        writes: Name of the directory it writes, if it writes one.
        plan: How Spark does it.
        ended: When; None if it never did.
        jobs: Jobs it started.
        stages: What the tasks of each Spark stage did, by the stage's number.
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
            one.counts.get(name, 0) if name in PYTHON_METRICS.values() else getattr(one, name)
            for one in self.stages.values()
        )


def read_actions(path: Path) -> list[Action]:
    """Return the SQL actions of an event log, in the order in which they began."""
    with path.open(encoding="utf-8") as file:
        return sort_out(json.loads(line) for line in file)


def sort_out(events: Iterable[Event]) -> list[Action]:
    """Return what events say about actions; tasks outside of any action are left out."""
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
    return sorted(actions.values(), key=lambda one: one.began)


def new_action(event: Event) -> Action:
    """Return the action that begins with an event."""
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
    """Return the actions that began in a span of time."""
    return [one for one in actions if began <= one.began <= ended]
