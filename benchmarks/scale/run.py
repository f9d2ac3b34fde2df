"""Runs of the jobs, their measurements and targets."""

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
ALLOWANCE_BYTES = 300_000_000  # for the interpreter and its libraries, in addition to --memory
GROWTH = 1.3  # maximum growth of the time per document from the smallest to the largest corpus
COLUMNS = ("job", "documents", "memory", "seconds", "documents/s", "MB/s", "peak MB", "kept", "targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleMeasurement:
    """Measurement of a job.

    Attributes:
        job: The job.
        corpus: Its corpus.
        run: The fastest round, with the highest peak memory of all rounds.
        seconds: Seconds of every round.
        answer: Quality of the result; None if the command failed.
    """

    job: ScaleJob
    corpus: ScaleCorpus
    run: Run
    seconds: list[float]
    answer: Answer | None

    @property
    def seconds_per_document(self) -> float:
        """Wall time divided by the number of documents."""
        return self.run.seconds / self.job.documents


def measure(
    jobs: Sequence[ScaleJob], *, threads: int, rounds: int, command: Sequence[str] = COMMAND
) -> Iterator[ScaleMeasurement]:
    """Run the jobs one after the other and yield their measurements."""
    for job in jobs:
        corpus, inputs = prepare(job)
        tried = [run_once(job, inputs, threads, command) for _ in range(rounds)]
        yield summarise(job, corpus, tried)


def run_once(job: ScaleJob, inputs: Sequence[Path], threads: int, command: Sequence[str]) -> tuple[Run, Answer | None]:
    """Run a job; a failed run is returned without an answer."""
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=cache_dir() / "scale"))
    try:
        run = run_measured(
            [*command, *map(str, inputs), *arguments(job, folder, threads)],
            limit_bytes=job.memory_bytes + ALLOWANCE_BYTES if job.name == "memory" else None,
        )
        return run, None if run.code else check_answer(inputs, folder / "out")
    finally:
        shutil.rmtree(folder)


def summarise(job: ScaleJob, corpus: ScaleCorpus, tried: Sequence[tuple[Run, Answer | None]]) -> ScaleMeasurement:
    """Return the summary of the rounds: a failed one, otherwise the fastest, with the highest peak memory of all."""
    run, answer = min(tried, key=lambda attempt: (not attempt[0].code, attempt[0].seconds))
    peak_bytes = max(run.peak_bytes for run, _ in tried)
    seconds = [run.seconds for run, _ in tried]
    return ScaleMeasurement(
        job=job, corpus=corpus, run=replace(run, peak_bytes=peak_bytes), seconds=seconds, answer=answer
    )


def arguments(job: ScaleJob, folder: Path, threads: int) -> list[str]:
    """Return the command-line arguments after the input files."""
    paths = ["-o", str(folder / "out"), "--work", str(folder / "work")]
    return [*paths, "--memory", job.memory, "--threads", str(threads), *SETTINGS]


def figures(measurement: ScaleMeasurement, measurements: Sequence[ScaleMeasurement]) -> dict[str, float]:
    """Return the figures of a measurement.

    ``growth``: time per document relative to the smallest job of the same name. ``over memory``: megabytes of the peak
    above ``--memory``. ``lost``: documents neither kept nor removed. See `Answer` for the other two.
    """
    run, job = measurement.run, measurement.job
    found = {
        "documents/s": job.documents / run.seconds,
        "MB/s": measurement.corpus.text_bytes / 1e6 / run.seconds,
        "over memory": (run.peak_bytes - job.memory_bytes) / 1e6,
    }
    same_name = [other for other in measurements if other.job.name == job.name]
    smallest = min(same_name, key=lambda other: other.job.documents)
    if smallest is not measurement:
        found["growth"] = measurement.seconds_per_document / smallest.seconds_per_document
    if measurement.answer:
        found["lost"] = measurement.answer.read - measurement.answer.kept - measurement.answer.removed
        found["surplus copies"] = measurement.answer.surplus_copies
        found["unrelated removed"] = measurement.answer.unrelated_removed
    return found


def targets() -> list[Target]:
    """Return the targets of all jobs that have the figure."""
    bounds = {
        "growth": GROWTH,
        "over memory": ALLOWANCE_BYTES / 1e6,
        "lost": 0,
        "surplus copies": 0,
        "unrelated removed": 0,
    }
    return [Target(figure=name, wanted=bound, at_most=True) for name, bound in bounds.items()]


def verdicts(measurement: ScaleMeasurement, measurements: Sequence[ScaleMeasurement]) -> list[str]:
    """Return the verdict on each target of a measurement."""
    if measurement.run.code:
        return [f"FAILED with code {measurement.run.code}"]
    found = figures(measurement, measurements)
    return [target.verdict(found[target.figure]) for target in targets() if target.figure in found]


def row(measurement: ScaleMeasurement, measurements: Sequence[ScaleMeasurement]) -> list[str]:
    """Return the cells of a measurement."""
    found = figures(measurement, measurements)
    rates = [f"{measurement.run.seconds:.2f}", f"{found['documents/s']:,.0f}", f"{found['MB/s']:.1f}"]
    sizes = [f"{measurement.run.peak_bytes / 1e6:,.0f}", f"{measurement.answer.kept:,}" if measurement.answer else ""]
    name = f"{measurement.job.name} ({measurement.job.kind})"
    verdict = "; ".join(verdicts(measurement, measurements))
    return [name, f"{measurement.job.documents:,}", measurement.job.memory, *rates, *sizes, verdict]


def table(measurements: Sequence[ScaleMeasurement]) -> str:
    """Return all measurements as aligned plain text."""
    return align_rows([COLUMNS, *(row(measurement, measurements) for measurement in measurements)], text_columns=1)
