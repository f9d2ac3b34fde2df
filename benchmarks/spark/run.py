"""Process that applies one method to a corpus and prints how long it took.

``python -m benchmarks.spark.run METHOD CORPUS FOLDER [--master URL] [--warm-up CORPUS]``. The session is the one that
minwise starts with its own defaults, with an event log in FOLDER. The time of the method does not include its start,
until a first trivial job has ended, nor its end; both are printed too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.spark.methods import METHODS, Task
from minwise.spark import session as spark_sessions

EVENT_LOG = {"enabled": "true", "compress": "false", "rolling.enabled": "false"}


def main() -> None:
    """Apply a method and print the measurement as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.run", description=__doc__)
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("folder", type=Path, help="directory of the output, the event log and the work directory")
    parser.add_argument("--master", help="master URL of Spark; without it the local engine runs")
    parser.add_argument("--warm-up", type=Path, help="corpus that is processed before the measurement")
    settings = parser.parse_args()
    task = Task(corpus=settings.corpus, folder=settings.folder, master=settings.master, conf=event_log(settings.folder))
    warm_up = settings.warm_up and replace(task, corpus=settings.warm_up, folder=settings.folder / "warm-up")
    print(json.dumps(measure(settings.method, task, warm_up)))


def event_log(folder: Path) -> dict[str, str]:
    """Return the settings of an event log in a folder, which is created."""
    (folder / "events").mkdir()
    conf = {"dir": (folder / "events").as_uri(), **EVENT_LOG}
    return {f"spark.eventLog.{name}": value for name, value in conf.items()}


def measure(method: str, task: Task, warm_up: Task | None) -> dict[str, float]:
    """Return the seconds of a method, without those of its session, and of the session."""
    clock = {"session_seconds": 0.0, "warm_up_seconds": 0.0, "stop_seconds": 0.0, "began": time.time()}
    start = spark_sessions.spark_session

    @contextmanager
    def timed(*arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401 - those of spark_session
        spark_sessions.spark_session = start  # a warm-up uses the active session
        began = time.perf_counter()
        with start(*arguments, **options) as session:
            session.range(1).count()
            started = time.perf_counter()
            if warm_up is not None:
                warm_up.folder.mkdir()
                METHODS[method](warm_up)
            ready = time.perf_counter()
            clock.update(session_seconds=started - began, warm_up_seconds=ready - started, began=time.time())
            yield session
            ended = time.perf_counter()
        clock["stop_seconds"] = time.perf_counter() - ended

    spark_sessions.spark_session = timed
    began = time.perf_counter()
    METHODS[method](task)
    whole = time.perf_counter() - began
    if task.master is not None and not clock["session_seconds"]:
        raise RuntimeError("minwise started no session by spark_session, so its start was not measured")
    return {"seconds": whole - sum(value for name, value in clock.items() if name != "began"), **clock}


if __name__ == "__main__":
    main()
