"""Report: measurements in, one table out, with the targets that are met or missed."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.engines import MINWISE, READING, REMOVING, Job
from benchmarks.peers.measure import Measurement, growth
from benchmarks.targets import Target, align_rows

COPY_TIMES = 3  # how many times the time of copying the file we may need
GROWTH_TARGET = Target(figure="growth", wanted=1.1, at_most=True)
NAMES = {"parquet": "pyarrow", "copy": "reading and writing it"}


def table(every: Sequence[Measurement]) -> str:
    """Return all measurements as aligned plain text, a row for each job."""
    sizes = sorted({one.documents for one in every})
    seconds, peaks = ([f"{size:,} {what}" for size in sizes] for what in ("s", "MB"))
    header = ["task", "engine", "cores", *seconds, "growth", *peaks, "x minwise", "x reading", "targets"]
    jobs = dict.fromkeys(one.job for one in every)
    return align_rows([header, *(row(job, every, sizes) for job in jobs)], words=2)


def row(job: Job, every: Sequence[Measurement], sizes: Sequence[int]) -> list[str]:
    """Return the cells of a job."""
    found = [find(every, job, size) for size in sizes]
    grown = growth(every, job)
    return [
        job.task,
        NAMES.get(job.engine.name, job.engine.name),
        str(job.cores),
        *(show_seconds(one) for one in found),
        "" if grown is None else f"{grown:.2f}",
        *("" if one is None else f"{one.peak_bytes / 1e6:,.0f}" for one in found),
        *(show_ratio(ratio) for ratio in (times_minwise(job, every), times_reading(job, every))),
        "; ".join(verdicts(job, every)),
    ]


def show_seconds(one: Measurement | None) -> str:
    """Return a time; a hyphen where nobody asked, since it could not have been done within the bound."""
    if one is None:
        return "-"
    digits = 3 if one.best < 1 else 1
    return f"{one.best:.{digits}f}" if one.finished else f">{one.best:.0f}"


def show_ratio(ratio: tuple[float, bool] | None) -> str:
    """Return how many times; with a sign where it is at least so many, since the other has not finished."""
    return "" if ratio is None else f"{'>' * (not ratio[1])}{ratio[0]:.1f}"


def find(every: Sequence[Measurement], job: Job, documents: int) -> Measurement | None:
    """Return the measurement of a job with some number of documents."""
    return next((one for one in every if one.job == job and one.documents == documents), None)


def times_minwise(job: Job, every: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return an engine's time by ours on as many cores, and whether it has finished; with the most documents it had."""
    return None if job.engine is MINWISE else times(job, "minwise", job.task, every)


def times_reading(job: Job, every: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return a time by that of reading the file with as many cores."""
    return None if job.task == READING else times(job, "parquet", READING, every)


def times(job: Job, name: str, task: str, every: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return a time by that of another engine with as many cores, at the largest size that both were given."""
    others = {
        one.documents: one.best
        for one in every
        if (one.job.engine.name, one.job.task, one.job.cores) == (name, task, job.cores) and one.finished
    }
    both = [one for one in every if one.job == job and one.documents in others]
    if not both:
        return None
    largest = max(both, key=lambda one: one.documents)
    return largest.best / others[largest.documents], largest.finished


def verdicts(job: Job, every: Sequence[Measurement]) -> list[str]:
    """Return the verdict on the targets of a job; ours is held against copying the file and against its own growth."""
    if job.engine is MINWISE:
        copied, grown = times(job, "copy", REMOVING, every), growth(every, job)
        bound = Target(figure="x copy", wanted=COPY_TIMES, at_most=True)
        told = [bound.verdict(copied[0])] if copied and job.task == REMOVING else []
        return [*told, GROWTH_TARGET.verdict(grown)] if grown is not None else told
    ratio = times_minwise(job, every)
    if ratio is None or job.task not in job.engine.wanted:
        return []
    return [Target(figure="x minwise", wanted=job.engine.wanted[job.task]).verdict(ratio[0])]
