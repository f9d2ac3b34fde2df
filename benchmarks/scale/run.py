"""Run: jobs in, measurements out, with what each should reach."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.processes import Run, run_measured
from benchmarks.scale.check import Answer, check_answer
from benchmarks.scale.generate import ScaleCorpus
from benchmarks.scale.jobs import ScaleJob, prepare
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, align_rows

COMMAND = (sys.executable, "-m", "minwise", "dedup")
SETTINGS = ("--threshold", "0.8", "--shingle", "word:5", "--text-column", "text", "--quiet", "--json")
ALLOWANCE_BYTES = 300_000_000  # for the interpreter and its libraries, beside what --memory bounds
GROWTH = 1.3  # time per document may grow by so much from the smallest to the largest corpus
COLUMNS = ("job", "documents", "memory", "seconds", "documents/s", "MB/s", "peak MB", "kept", "targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleMeasurement:
    """One job's run.

    Attributes:
        job: What was run.
        corpus: What it was run on.
        run: The quickest round, with the most memory of any.
        seconds: Of every round.
        answer: How good the answer is; None if the command failed.
    """

    job: ScaleJob
    corpus: ScaleCorpus
    run: Run
    seconds: list[float]
    answer: Answer | None

    @property
    def seconds_per_document(self) -> float:
        """Wall time by the number of documents."""
        return self.run.seconds / self.job.documents


def measure(
    jobs: Sequence[ScaleJob], *, threads: int, rounds: int, command: Sequence[str] = COMMAND
) -> Iterator[ScaleMeasurement]:
    """Run jobs one after the other, the larger of a name after the smaller."""
    for job in jobs:
        corpus, inputs = prepare(job)
        tried = [run_once(job, inputs, threads, command) for _ in range(rounds)]
        yield gather(job, corpus, tried)


def run_once(job: ScaleJob, inputs: Sequence[Path], threads: int, command: Sequence[str]) -> tuple[Run, Answer | None]:
    """Run a job; a failed one is measured too, without an answer."""
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=cache_dir() / "scale"))
    try:
        run = run_measured(
            [*command, *map(str, inputs), *arguments(job, folder, threads)],
            limit_bytes=job.memory_bytes + ALLOWANCE_BYTES if job.name == "memory" else None,
        )
        return run, None if run.code else check_answer(inputs, folder / "out")
    finally:
        shutil.rmtree(folder)


def gather(job: ScaleJob, corpus: ScaleCorpus, tried: Sequence[tuple[Run, Answer | None]]) -> ScaleMeasurement:
    """Return what rounds say together: the one that failed, else the quickest, with the most memory of any."""
    run, answer = min(tried, key=lambda one: (not one[0].code, one[0].seconds))
    peak_bytes = max(one.peak_bytes for one, _ in tried)
    seconds = [one.seconds for one, _ in tried]
    return ScaleMeasurement(
        job=job, corpus=corpus, run=replace(run, peak_bytes=peak_bytes), seconds=seconds, answer=answer
    )


def arguments(job: ScaleJob, folder: Path, threads: int) -> list[str]:
    """Return what follows the input files on the command line."""
    places = ["-o", str(folder / "out"), "--work", str(folder / "work")]
    return [*places, "--memory", job.memory, "--threads", str(threads), *SETTINGS]


def figures(one: ScaleMeasurement, every: Sequence[ScaleMeasurement]) -> dict[str, float]:
    """Return the figures of a measurement.

    ``growth``: time per document by that of the smallest job of the same name. ``over memory``: megabytes of the peak
    above ``--memory``. ``lost``: documents neither kept nor removed. The other two: see `Answer`.
    """
    run, job = one.run, one.job
    found = {
        "documents/s": job.documents / run.seconds,
        "MB/s": one.corpus.text_bytes / 1e6 / run.seconds,
        "over memory": (run.peak_bytes - job.memory_bytes) / 1e6,
    }
    smallest = min((other for other in every if other.job.name == job.name), key=lambda other: other.job.documents)
    if smallest is not one:
        found["growth"] = one.seconds_per_document / smallest.seconds_per_document
    if one.answer:
        found["lost"] = one.answer.read - one.answer.kept - one.answer.removed
        found["surplus copies"] = one.answer.surplus_copies
        found["unrelated removed"] = one.answer.unrelated_removed
    return found


def targets() -> list[Target]:
    """Return what every job should reach, where it has the figure."""
    bounds = {
        "growth": GROWTH,
        "over memory": ALLOWANCE_BYTES / 1e6,
        "lost": 0,
        "surplus copies": 0,
        "unrelated removed": 0,
    }
    return [Target(figure=name, wanted=bound, at_most=True) for name, bound in bounds.items()]


def verdicts(one: ScaleMeasurement, every: Sequence[ScaleMeasurement]) -> list[str]:
    """Return the verdict on each target of a measurement."""
    if one.run.code:
        return [f"FAILED with code {one.run.code}"]
    found = figures(one, every)
    return [target.verdict(found[target.figure]) for target in targets() if target.figure in found]


def row(one: ScaleMeasurement, every: Sequence[ScaleMeasurement]) -> list[str]:
    """Return the cells of a measurement."""
    found = figures(one, every)
    rates = [f"{one.run.seconds:.2f}", f"{found['documents/s']:,.0f}", f"{found['MB/s']:.1f}"]
    sizes = [f"{one.run.peak_bytes / 1e6:,.0f}", f"{one.answer.kept:,}" if one.answer else ""]
    name = f"{one.job.name} ({one.job.kind})"
    return [name, f"{one.job.documents:,}", one.job.memory, *rates, *sizes, "; ".join(verdicts(one, every))]


def table(every: Sequence[ScaleMeasurement]) -> str:
    """Return all measurements as aligned plain text."""
    return align_rows([COLUMNS, *(row(one, every) for one in every)], words=1)
