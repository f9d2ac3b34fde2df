"""Measurements from a Spark event log: tasks, bytes and time in Python of the jobs of each description.

The log is one JSON object per line. A job carries its description and lists its stages, and a task names its stage and
carries its metrics; see "Monitoring and Instrumentation" in Spark's documentation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Totals = dict[str, float]

PARENT_FOLDERS = re.compile(r"/\S*/")  # a record must not depend on where the repository is
# Spark's metric of the time in Python, which is in milliseconds.
PYTHON_TIME = "time to run Python workers"
# Sums over tasks: name here, path in the metrics of a task, unit of Spark.
METRICS: dict[str, tuple[tuple[str, ...], float]] = {
    "task_seconds": (("Executor Run Time",), 1e3),
    "java_seconds": (("Executor CPU Time",), 1e9),
    "collection_seconds": (("JVM GC Time",), 1e3),
    "shuffled_bytes": (("Shuffle Write Metrics", "Shuffle Bytes Written"), 1),
    "shuffled_records": (("Shuffle Write Metrics", "Shuffle Records Written"), 1),
    "spilled_bytes": (("Disk Bytes Spilled",), 1),
    "driver_bytes": (("Result Size",), 1),
}


def read_totals(folder: Path, began: float) -> dict[str, Totals]:
    """Return the sums over the jobs of each description that began at ``began`` or later, in seconds since 1970.

    Args:
        folder: Directory of one event log.
        began: Start of the measurement; a job before it started the session or warmed it up.
    """
    (log,) = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    with log.open(encoding="utf-8") as lines:
        return group_events((json.loads(line) for line in lines), began)


def group_events(events: Iterable[Event], began: float) -> dict[str, Totals]:
    """Return the sums over successful tasks, by description of their job and its number among those."""
    totals: dict[str, Totals] = {}
    jobs: Counter[str] = Counter()
    owners: dict[int, Totals] = {}
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            if event["Submission Time"] / 1e3 >= began:
                description = describe(event)
                jobs[description] += 1
                owner = totals.setdefault(f"{description} {jobs[description]}", {})
                owners.update(dict.fromkeys(event["Stage IDs"], owner))
        elif has_succeeded(event) and event["Stage ID"] in owners:
            add_task(owners[event["Stage ID"]], event)
    return totals


def has_succeeded(event: Event) -> bool:
    """Return whether an event is the end of a successful task."""
    return event["Event"] == "SparkListenerTaskEnd" and bool(event["Task End Reason"]["Reason"] == "Success")


def describe(job: Event) -> str:
    """Return the description of a job, or the line of code that started it."""
    properties = job.get("Properties", {})
    call_site = PARENT_FOLDERS.sub("", properties.get("callSite.short", "other"))
    return str(properties.get("spark.job.description") or call_site)


def add_task(totals: Totals, event: Event) -> None:
    """Add one task to the sums."""
    added = {"tasks": 1.0}
    for name, (path, unit) in METRICS.items():
        value: Any = event["Task Metrics"]
        for key in path:
            value = value[key]
        added[name] = value / unit
    times = [int(one["Update"]) for one in event["Task Info"].get("Accumulables", []) if one.get("Name") == PYTHON_TIME]
    added["python_seconds"] = sum(times) / 1e3
    for name, value in added.items():
        totals[name] = totals.get(name, 0) + value


def sum_totals(totals: Iterable[Totals]) -> Totals:
    """Return the sums over all descriptions."""
    names = ("tasks", *METRICS, "python_seconds")
    found = list(totals)
    return {name: sum(one.get(name, 0) for one in found) for name in names}
