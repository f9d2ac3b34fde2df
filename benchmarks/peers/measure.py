"""Measurement of jobs with several numbers of documents."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.peers.engines import BASELINES, MINWISE, REMOVING, Job
from benchmarks.processes import Run, run_measured
from benchmarks.speed.corpus import Corpus, cache_dir
from benchmarks.speed.sketching import EngineFailedError, environment

REPEATED_PEERS = 2  # the fastest ones, of which the ratio to minwise should be precise
WARM_BYTES_PER_DOCUMENT = (
    8 << 10
)  # more than most tools need; 8 GB took up to 19 s, so it is not the same for all sizes
MIN_GROWTH = 8  # ten times the documents take at least 8 times as long; predicts which job cannot finish in time


@dataclass(slots=True)
class Measurement:
    """All runs of a job with one number of documents.

    Attributes:
        job: The job.
        documents: Number of documents.
        seconds: Seconds of each round; for tasks in memory without start-up and reading.
        peaks: Peak memory of each round in bytes, of the process and its descendants together.
        loads: Load of the machine at the end of each round.
        finished: Whether the job finished within the time limit.
        kept: Number of documents in the output, for the task that removes documents.
        versions: Versions of the engine and its libraries.
    """

    job: Job
    documents: int
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    finished: bool = True
    kept: int | None = None
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """Seconds of the best round; everything above it is noise of the machine."""
        return min(self.seconds)

    @property
    def peak_bytes(self) -> int:
        """Highest peak memory of all rounds."""
        return max(self.peaks)


def measure(jobs: Sequence[Job], corpora: Iterable[Corpus], *, rounds: int, bound: float) -> list[Measurement]:
    """Run every job with every corpus, the smaller first, then repeat `repeated` jobs alternately."""
    measurements: list[Measurement] = []
    for corpus in corpora:
        current: list[Measurement] = []
        for job in jobs:
            if may_finish(job, corpus.documents, [*measurements, *current], bound):
                current.append(Measurement(job, corpus.documents))
                add_run(current[-1], corpus.path, bound)
        chosen = repeated(current)
        for _ in range(1, rounds):
            for measurement in chosen:
                add_run(measurement, corpus.path, bound)
        measurements += current
    return measurements


def may_finish(job: Job, documents: int, before: Sequence[Measurement], bound: float) -> bool:
    """Return whether a job is expected to finish in time, judging by fewer documents and by more cores."""
    of_engine = [one for one in before if (one.job.task, one.job.engine) == (job.task, job.engine)]
    fewer = [one for one in of_engine if one.job.cores == job.cores and one.documents < documents][-1:]
    more_cores = [one for one in of_engine if one.job.cores > job.cores and one.documents == documents]
    return all(one.finished for one in [*fewer, *more_cores]) and all(one.best * MIN_GROWTH < bound for one in fewer)


def repeated(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the jobs from file to file that are run in every round: minwise, the copy and the fastest peers.

    A peer is repeated with the most cores that it was run with. Tasks in memory repeat their passes themselves.
    """
    finished = [one for one in measurements if one.job.task == REMOVING and one.finished]
    baselines = [one for one in finished if one.job.engine.name in BASELINES]
    peers: dict[str, Measurement] = {}
    for one in finished:
        if one not in baselines:
            peers.setdefault(one.job.engine.name, one)
    return [*baselines, *sorted(peers.values(), key=lambda one: one.best)[:REPEATED_PEERS]]


def add_run(measurement: Measurement, source: Path, bound: float) -> None:
    """Run a job once in a temporary folder, add the run to its measurement and print its time."""
    folder = Path(tempfile.mkdtemp(prefix="peers-", dir=cache_dir()))
    try:
        words = measurement.job.command(source, folder / "out")
        run = run_measured(
            words,
            environment=environment(measurement.job.cores),
            bound_seconds=bound,
            cores=measurement.job.cores,
            warm_bytes=WARM_BYTES_PER_DOCUMENT * measurement.documents,
        )
        if run.finished and run.code:
            raise EngineFailedError(f"{measurement.job} ended with code {run.code}:\n{run.errors}")
        store_run(measurement, run, folder / "out" / "kept")
    finally:
        shutil.rmtree(folder)
    took = f"{measurement.seconds[-1]:9.3f} s" if measurement.finished else f"more than {bound:.0f} s"
    print(f"{measurement.documents:>9,} round {len(measurement.seconds)} {took}  {measurement.job}", flush=True)


def store_run(measurement: Measurement, run: Run, kept: Path) -> None:
    """Store the result of a run; tasks in memory report their own time.

    A job that finished in its first round has finished, whatever happens in a later one.
    """
    measurement.finished = run.finished or bool(measurement.seconds)
    measurement.peaks.append(run.peak_bytes)
    measurement.loads.append(run.load)
    measurement.seconds.append(run.seconds)
    if not run.finished:
        return
    if measurement.job.task == REMOVING:
        measurement.kept = sum(pq.read_metadata(path).num_rows for path in kept.glob("*.parquet"))
        measurement.versions = engine_versions(measurement.job, run.output)
    else:
        result: Mapping[str, Any] = json.loads(run.output.splitlines()[-1])
        measurement.seconds[-1] = statistics.median(float(each["seconds"]) for each in result["passes"])
        measurement.versions = dict(result["versions"])


def engine_versions(job: Job, output: str) -> dict[str, str]:
    """Return the versions that a peer printed, or those installed in the current environment."""
    if job.engine is MINWISE:
        return {name: version(name) for name in ("minwise", "numpy", "pyarrow")}
    return dict(json.loads(output.splitlines()[-1]))


def growth(measurements: Iterable[Measurement], job: Job) -> float | None:
    """Return the exponent of the time in the number of documents, between the two largest finished sizes."""
    done = sorted(
        (measurement.documents, measurement.best)
        for measurement in measurements
        if measurement.job == job and measurement.finished
    )
    if len(done) < 2:
        return None
    (few, quick), (many, slow) = done[-2:]
    return math.log(slow / quick) / math.log(many / few)
