"""Plain-text table of the measurements, with verdicts on their targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.speed.jobs import PEERS, Job
from benchmarks.speed.languages import LANGUAGES
from benchmarks.speed.sketching import Measurement
from benchmarks.targets import Target, align_rows

COLUMNS = ("corpus", "engine", "scheme", "shingles", "slots", "cores", "MB/s", "MB/s/core", "spread")
FIGURES = ("rensa x", "datasketch x", "parquet x", "scaling")


def targets(job: Job) -> list[Target]:
    """Return the targets of a job; most jobs are for information and have none."""
    if (job.engine, job.scheme, job.shingles, job.slots) != ("minwise", "fast", "word:5", 256):
        return []
    if job.sample:
        return [Target(figure="rensa x", wanted=20), Target(figure="datasketch x", wanted=200)]
    if job.corpus in LANGUAGES:
        return [Target(figure="MB/s/core", wanted=150)]
    if job.threads == 1:
        rates = (500, 800) if job.corpus == "source" else ()
        return [Target(figure="MB/s/core", wanted=rate) for rate in rates]
    bound = 1.2 if job.corpus == "source" else 2.5
    scaling = [Target(figure="scaling", wanted=1.8)] if job.corpus == "source" else []
    return [*scaling, Target(figure="parquet x", wanted=bound, at_most=True)]


def figures(measurement: Measurement, measurements: Sequence[Measurement]) -> dict[str, float]:
    """Return the figures of a measurement; ratios only where there is a measurement to compare with.

    ``rensa x`` and ``datasketch x``: rate relative to the fastest sketch of the peer with as many slots on the same
    texts. ``parquet x``: seconds relative to reading the file. ``scaling``: rate relative to one core.
    """
    job = measurement.job
    found = {"MB/s/core": measurement.megabytes_per_second / job.threads}
    if job.engine != "minwise" or job.scheme != "fast" or job.shingles != "word:5":
        return found
    if job.sample:
        for engine in PEERS:
            rates = [
                peer.megabytes_per_second for peer in same_texts(measurement, measurements) if peer.job.engine == engine
            ]
            found |= {f"{engine} x": measurement.megabytes_per_second / max(rates)} if rates else {}
    for other in measurements:
        if other.job.corpus == job.corpus and not job.sample and other.job.engine == "parquet":
            found["parquet x"] = measurement.seconds / other.seconds
        if job.threads > 1 and other.job == one_core(job):
            found["scaling"] = measurement.megabytes_per_second / other.megabytes_per_second
    return found


def same_texts(measurement: Measurement, measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the measurements on the same sample with as many slots."""
    key = (measurement.job.corpus, measurement.job.slots, measurement.job.sample)
    return [other for other in measurements if (other.job.corpus, other.job.slots, other.job.sample) == key]


def one_core(job: Job) -> Job:
    """Return the job with one core."""
    return replace(job, threads=1)


def verdicts(measurement: Measurement, measurements: Sequence[Measurement]) -> list[str]:
    """Return the verdict on each target of a measurement."""
    found = figures(measurement, measurements)
    return [target.verdict(found[target.figure]) for target in targets(measurement.job) if target.figure in found]


def row(measurement: Measurement, measurements: Sequence[Measurement]) -> list[str]:
    """Return the cells of a measurement."""
    job, found = measurement.job, figures(measurement, measurements)
    corpus = f"{job.corpus} (sample)" if job.sample else job.corpus
    reading = job.engine == "parquet"
    settings = ["", ""] if reading else [job.shingles, str(job.slots)]
    rates = [f"{measurement.megabytes_per_second:.1f}", f"{found['MB/s/core']:.1f}", f"{measurement.spread:.0%}"]
    ratios = [f"{found[name]:.2f}" if name in found else "" for name in FIGURES]
    return [
        corpus,
        job.engine,
        job.scheme,
        *settings,
        str(job.threads),
        *rates,
        *ratios,
        "; ".join(verdicts(measurement, measurements)),
    ]


def table(measurements: Sequence[Measurement]) -> str:
    """Return all measurements as aligned plain text, grouped by corpus."""
    order = sorted(
        measurements,
        key=lambda measurement: (
            measurement.job.corpus,
            measurement.job.sample,
            measurement.job.slots,
            -measurement.megabytes_per_second,
        ),
    )
    rows = [[*COLUMNS, *FIGURES, "targets"], *(row(measurement, measurements) for measurement in order)]
    return align_rows(rows, text_columns=len(("corpus", "engine", "scheme", "shingles")))
