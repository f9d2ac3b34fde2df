"""Entry point of ``python -m benchmarks.scale``: generate, run the command, print the table and write the record."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.record_files import command_line, write_json
from benchmarks.scale.jobs import all_jobs
from benchmarks.scale.run import COMMAND, ScaleMeasurement, figures, measure, table, verdicts

NAMES = ("size", "memory", "copies", "bucket")


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    jobs = all_jobs(settings.documents, memory=settings.memory, tight_memory=settings.tight_memory)
    command = shlex.split(settings.command) if settings.command else COMMAND
    measurements: list[ScaleMeasurement] = []
    for name in settings.jobs:
        for measurement in measure(jobs[name], threads=settings.threads, rounds=settings.rounds, command=command):
            measurements.append(measurement)
            job, run = measurement.job, measurement.run
            print(f"{job.name} {job.documents:,}: {run.seconds:.1f} s {run.errors}", flush=True)
    print(f"\n{table(measurements)}\n")
    whole = set(settings.jobs) == set(NAMES) and all(measurement.answer for measurement in measurements)
    if settings.record and whole:  # a partial run must not replace the record of the day
        print(f"written to {write_json(content(measurements, settings), benchmark='scale')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("scale", __doc__)
    parser.add_argument("--documents", type=parse_sizes, default=parse_sizes("1e6,1e7"), help="default 1e6,1e7")
    parser.add_argument("--memory", default="2GB", help="memory limit of the command (default 2GB)")
    parser.add_argument("--tight-memory", default="512MB", help="memory limit of the job memory (default 512MB)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each job; the fastest counts (default 3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--jobs", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--command", help="command to measure instead of python -m minwise dedup; not recorded")
    settings = parser.parse_args()
    settings.record &= settings.command is None
    return settings


def parse_sizes(text: str) -> list[int]:
    """Return numbers of documents.

    >>> parse_sizes("1e6,2e6")
    [1000000, 2000000]
    """
    return [int(float(part)) for part in text.split(",")]


def content(measurements: Sequence[ScaleMeasurement], settings: argparse.Namespace) -> dict[str, Any]:
    """Return the content of the record."""
    chosen = {name: getattr(settings, name) for name in ("documents", "memory", "tight_memory", "threads", "rounds")}
    return {
        "settings": chosen,
        "measurements": [entry(measurement, measurements) for measurement in measurements],
    }


def entry(measurement: ScaleMeasurement, measurements: Sequence[ScaleMeasurement]) -> dict[str, Any]:
    """Return a measurement with its figures and verdicts."""
    run = {name: value for name, value in asdict(measurement.run).items() if name != "output"}
    return {
        **asdict(measurement.job),
        "corpus": asdict(measurement.corpus),
        "run": run,
        "seconds": measurement.seconds,
        "answer": asdict(measurement.answer) if measurement.answer else None,
        "figures": figures(measurement, measurements),
        "targets": verdicts(measurement, measurements),
    }


if __name__ == "__main__":
    main()
