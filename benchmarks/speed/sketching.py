"""Measurement of the jobs, each run in its own process, round by round."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environments import peer_python
from benchmarks.speed.corpus import Corpus
from benchmarks.speed.jobs import PEERS, Job

ROOT = Path(__file__).parents[2]


class EngineFailedError(RuntimeError):
    """Raised when the process of an engine fails."""


@dataclass(slots=True)
class Measurement:
    """All runs of a job.

    Attributes:
        job: The job.
        runs: Output of each process: its passes, the size of the texts, versions, load of the machine.
    """

    job: Job
    runs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        """Wall seconds of every pass of every run."""
        return [float(timing["seconds"]) for run in self.runs for timing in run["passes"]]

    @property
    def seconds(self) -> float:
        """Median of the passes."""
        return statistics.median(self.times)

    @property
    def spread(self) -> float:
        """Interquartile range divided by the median."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return (high - low) / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        """Text in megabytes (10⁶ bytes) sketched per second."""
        return float(self.runs[0]["text_bytes"]) / 1e6 / self.seconds


def measure(jobs: Iterable[Job], corpora: Mapping[str, Corpus], *, rounds: int, sample_bytes: int) -> list[Measurement]:
    """Run all jobs once per round and return their measurements."""
    measurements = [Measurement(job) for job in jobs if job.corpus in corpora]
    for turn in range(rounds):
        for number, measurement in enumerate(measurements, 1):
            job = measurement.job
            python = peer_python(job.engine) if job.engine in PEERS else Path(sys.executable)
            limit_bytes = sample_bytes if job.sample else 0
            measurement.runs.append(run_job(job, corpora[job.corpus].path, python, limit_bytes))
            rate = f"{measurement.megabytes_per_second:8.1f} MB/s"
            print(f"round {turn + 1}/{rounds} {number:2}/{len(measurements)} {rate}  {describe(job)}", flush=True)
    return measurements


def run_job(job: Job, path: Path, python: Path, limit_bytes: int) -> dict[str, Any]:
    """Run a job in a new process and return its output."""
    options = ["--scheme", job.scheme, "--shingles", job.shingles, "--slots", str(job.slots)]
    options += ["--threads", str(job.threads), "--limit-bytes", str(limit_bytes)]
    command = [str(python), "-m", f"benchmarks.speed.runners.run_{job.engine}", str(path), *options]
    done = subprocess.run(command, cwd=ROOT, env=environment(job.threads), capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineFailedError(f"{describe(job)} ended with code {done.returncode}:\n{done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def environment(threads: int) -> dict[str, str]:
    """Return the environment with the thread pools of libraries limited to ``threads``."""
    pools = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(pools, str(threads))}


def describe(job: Job) -> str:
    """Return a description of a job."""
    part = " (sample)" if job.sample else ""
    return f"{job.engine} {job.scheme} {job.shingles} {job.slots} slots {job.threads} core(s), {job.corpus}{part}"
