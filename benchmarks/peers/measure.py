"""Measure: jobs and sizes in, their runs out."""

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

from benchmarks.peers.engines import MINWISE, REMOVING, Job
from benchmarks.processes import Run, run_measured
from benchmarks.speed.corpus import Corpus, cache_dir
from benchmarks.speed.sketching import EngineFailedError, environment

ENOUGH_SECONDS = 20.0  # what takes longer is not run again: its noise is small
WARM_BYTES = 8 << 30  # more than most need
LEAST_GROWTH = 8  # ten times the documents take at least so many times as long; so who can not finish is known before


@dataclass(slots=True)
class Measurement:
    """All runs of a job with one number of documents.

    Attributes:
        job: What was done.
        documents: How many documents it was given.
        seconds: Of each round; of a task in memory those of its passes, without starting and reading.
        peaks: Most bytes of memory of each round, of the process and its children together.
        loads: Load of the machine at the end of each round.
        finished: Whether it was done within the bound.
        kept: Documents in the output, for the task that removes some.
        versions: Of what was measured.
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
        """The best round: what is above it is the machine's noise."""
        return min(self.seconds)

    @property
    def peak_bytes(self) -> int:
        """Most memory of any round."""
        return max(self.peaks)

    @property
    def wants_more(self) -> bool:
        """Whether another round would tell more."""
        return self.finished and sum(self.seconds) < ENOUGH_SECONDS


def measure(jobs: Sequence[Job], corpora: Iterable[Corpus], *, rounds: int, bound: float) -> list[Measurement]:
    """Run every job with every corpus, the smaller first; within a round all take turns."""
    every: list[Measurement] = []
    for corpus in corpora:
        asked = [Measurement(job, corpus.documents) for job in jobs if may_finish(job, every, bound)]
        for turn in range(rounds):
            for one in asked:
                if turn == 0 or one.wants_more:
                    add_run(one, corpus.path, bound)
                    said = f"{one.seconds[-1]:9.3f} s" if one.finished else f"more than {bound:.0f} s"
                    print(f"{corpus.documents:>9,} {turn + 1}/{rounds} {said}  {one.job}", flush=True)
        every += asked
    return every


def may_finish(job: Job, before: Sequence[Measurement], bound: float) -> bool:
    """Whether a job can be expected to be done within the bound with ten times the documents it was last given."""
    last = [one for one in before if one.job == job][-1:]
    return all(one.finished and one.best * LEAST_GROWTH < bound for one in last)


def add_run(one: Measurement, source: Path, bound: float) -> None:
    """Run a job once, in a folder of its own, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="peers-", dir=cache_dir()))
    try:
        words = one.job.command(source, folder / "out")
        run = run_measured(
            words,
            environment=environment(one.job.cores),
            bound_seconds=bound,
            cores=one.job.cores,
            warm_bytes=WARM_BYTES,
        )
        if run.finished and run.code:
            raise EngineFailedError(f"{one.job} ended with code {run.code}:\n{run.errors}")
        take_run(one, run, folder / "out" / "kept")
    finally:
        shutil.rmtree(folder)


def take_run(one: Measurement, run: Run, kept: Path) -> None:
    """Take over what a run says; a task in memory says itself how long it took."""
    one.finished = run.finished
    one.peaks.append(run.peak_bytes)
    one.loads.append(run.load)
    one.seconds.append(run.seconds)
    if not run.finished:
        return
    if one.job.task == REMOVING:
        one.kept = sum(pq.read_metadata(path).num_rows for path in kept.glob("*.parquet"))
        one.versions = engine_versions(one.job, run.output)
    else:
        told: Mapping[str, Any] = json.loads(run.output.splitlines()[-1])
        one.seconds[-1] = statistics.median(float(each["seconds"]) for each in told["passes"])
        one.versions = dict(told["versions"])


def engine_versions(job: Job, output: str) -> dict[str, str]:
    """Return what a peer printed about itself, or what is installed here."""
    if job.engine is MINWISE:
        return {name: version(name) for name in ("minwise", "numpy", "pyarrow")}
    return dict(json.loads(output.splitlines()[-1]))


def growth(every: Iterable[Measurement], job: Job) -> float | None:
    """Return the exponent by which time grows with documents, between the two largest sizes that a job finished."""
    done = sorted((one.documents, one.best) for one in every if one.job == job and one.finished)
    if len(done) < 2:
        return None
    (few, quick), (many, slow) = done[-2:]
    return math.log(slow / quick) / math.log(many / few)
