"""Plain-text table of the measurements, with verdicts on their targets."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.engines import BASELINES, MINWISE, READING, REMOVING, Job
from benchmarks.peers.measure import Measurement, growth
from benchmarks.targets import Target, align_rows

COPY_TARGET = Target(figure="x copy", wanted=2.5, at_most=True)
PEER_TARGET = Target(figure="fastest peer x", wanted=6)
GROWTH_TARGET = Target(figure="growth", wanted=1.1, at_most=True)
NAMES = {"parquet": "pyarrow", "copy": "reading and writing"}


def table(measurements: Sequence[Measurement]) -> str:
    """Return all measurements as aligned plain text, a row for each job."""
    sizes = sorted({measurement.documents for measurement in measurements})
    seconds, peaks = ([f"{size:,} {what}" for size in sizes] for what in ("s", "MB"))
    header = ["task", "engine", "cores", *seconds, "growth", *peaks, "x minwise", "x reading", "targets"]
    jobs = dict.fromkeys(measurement.job for measurement in measurements)
    return align_rows([header, *(row(job, measurements, sizes) for job in jobs)], text_columns=2)


def row(job: Job, measurements: Sequence[Measurement], sizes: Sequence[int]) -> list[str]:
    """Return the cells of a job."""
    found = [find(measurements, job, size) for size in sizes]
    grown = growth(measurements, job)
    return [
        job.task,
        NAMES.get(job.engine.name, job.engine.name),
        str(job.cores),
        *(show_seconds(measurement) for measurement in found),
        "" if grown is None else f"{grown:.2f}",
        *("" if measurement is None else f"{measurement.peak_bytes / 1e6:,.0f}" for measurement in found),
        *(show_ratio(ratio) for ratio in (times_minwise(job, measurements), times_reading(job, measurements))),
        "; ".join(verdicts(job, measurements)),
    ]


def show_seconds(measurement: Measurement | None) -> str:
    """Return the time; a hyphen if the job was not run because it could not finish within the time limit."""
    if measurement is None:
        return "-"
    digits = 3 if measurement.best < 1 else 1
    return f"{measurement.best:.{digits}f}" if measurement.finished else f">{measurement.best:.0f}"


def show_ratio(ratio: tuple[float, bool] | None) -> str:
    """Return the ratio; with ">" if the engine did not finish, so the ratio is a lower bound."""
    return "" if ratio is None else f"{'>' * (not ratio[1])}{ratio[0]:.1f}"


def find(measurements: Sequence[Measurement], job: Job, documents: int) -> Measurement | None:
    """Return the measurement of a job with a number of documents, or None."""
    return next(
        (measurement for measurement in measurements if measurement.job == job and measurement.documents == documents),
        None,
    )


def times_minwise(job: Job, measurements: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return the time relative to minwise with as many cores, and whether the engine finished, at the largest size."""
    return None if job.engine is MINWISE else times(job, "minwise", job.task, measurements)


def times_reading(job: Job, measurements: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return the time relative to reading the file with as many cores, and whether the engine finished."""
    return None if job.task == READING else times(job, "parquet", READING, measurements)


def times(job: Job, name: str, task: str, measurements: Sequence[Measurement]) -> tuple[float, bool] | None:
    """Return the time relative to another engine with as many cores, at the largest size that both were run with."""
    others = {
        measurement.documents: measurement.best
        for measurement in measurements
        if (measurement.job.engine.name, measurement.job.task, measurement.job.cores) == (name, task, job.cores)
        and measurement.finished
    }
    both = [measurement for measurement in measurements if measurement.job == job and measurement.documents in others]
    if not both:
        return None
    largest = max(both, key=lambda measurement: measurement.documents)
    return largest.best / others[largest.documents], largest.finished


def fastest_peer(job: Job, measurements: Sequence[Measurement]) -> float | None:
    """Return the least time of the peers with up to as many cores, relative to the job, at its largest size."""
    ours = [one for one in measurements if one.job == job and one.finished][-1:]
    theirs = [
        one.best / ours[0].best
        for one in measurements
        if ours and one.finished and (one.job.task, one.documents) == (job.task, ours[0].documents)
        if one.job.cores <= job.cores and one.job.engine.name not in BASELINES
    ]
    return min(theirs, default=None)


def verdicts(job: Job, measurements: Sequence[Measurement]) -> list[str]:
    """Return the verdicts on the targets of a job."""
    if job.engine is MINWISE:
        return own_verdicts(job, measurements)
    ratio = times_minwise(job, measurements)
    if ratio is None or job.task not in job.engine.min_ratio:
        return []
    return [Target(figure="x minwise", wanted=job.engine.min_ratio[job.task]).verdict(ratio[0])]


def own_verdicts(job: Job, measurements: Sequence[Measurement]) -> list[str]:
    """Return the verdicts on minwise: the copy and the fastest peer, from file to file, and the growth."""
    copied, peer = times(job, "copy", REMOVING, measurements), fastest_peer(job, measurements)
    figures = [(COPY_TARGET, copied and copied[0]), (PEER_TARGET, peer)] if job.task == REMOVING else []
    figures.append((GROWTH_TARGET, growth(measurements, job)))
    return [target.verdict(figure) for target, figure in figures if figure is not None]
