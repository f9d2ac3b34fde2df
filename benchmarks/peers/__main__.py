"""Entry point of ``python -m benchmarks.peers``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.peers.engines import ENGINES, SHINGLES, SLOTS, THRESHOLD, Job, all_jobs
from benchmarks.peers.measure import Measurement, growth, measure
from benchmarks.peers.passages import MAX_DOCUMENTS, prepare_passages
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import Corpus, CorpusUnavailableError

NAMES = tuple(engine.name for engine in ENGINES)
SIZES = (10_000, 100_000, MAX_DOCUMENTS)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    engines = [engine for engine in ENGINES if engine.name in settings.engines]
    for engine in engines:
        _ = engine.python  # environments are created before the first measurement
    corpora = prepare_corpora(settings.sizes)
    measurements = measure(list(all_jobs(engines)), corpora, rounds=settings.rounds, bound=settings.bound)
    print(f"\n{table(measurements)}\n")
    whole = set(settings.engines) == set(NAMES) and tuple(settings.sizes) == SIZES
    if settings.record and whole:  # a partial run must not replace the record of the day
        print(f"written to {write_json(content(measurements, corpora, settings), benchmark='peers')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("peers", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="maximum number of runs of each job (default 3)")
    parser.add_argument("--bound", type=float, default=400, help="time limit of a run in seconds (default 400)")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of documents")
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=list(NAMES))
    return parser.parse_args()


def prepare_corpora(sizes: Sequence[int]) -> list[Corpus]:
    """Return the available corpora, the smaller first, and print which are not available."""
    corpora = []
    for size in sorted(sizes):
        try:
            corpora.append(prepare_passages(size))
        except CorpusUnavailableError as problem:
            print(f"SKIPPED: {problem}")
            continue
        found = corpora[-1]
        print(f"{found.documents:,} documents, {found.text_bytes / 1e6:,.0f} MB; {found.note}")
    return corpora


def content(
    measurements: Sequence[Measurement], corpora: Sequence[Corpus], settings: argparse.Namespace
) -> dict[str, Any]:
    """Return the content of the record."""
    common = {"threshold": THRESHOLD, "shingles": SHINGLES, "slots": SLOTS}
    versions = {name: number for measurement in measurements for name, number in measurement.versions.items()}
    return {
        "versions": {"python": platform.python_version(), **dict(sorted(versions.items()))},
        "settings": {"rounds": settings.rounds, "bound_seconds": settings.bound, **common},
        "corpora": [asdict(corpus) for corpus in corpora],
        "rows": [entry(job, measurements) for job in dict.fromkeys(measurement.job for measurement in measurements)],
    }


def entry(job: Job, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Return a row of the table with all its runs."""
    of_job = [measurement for measurement in measurements if measurement.job == job]
    return {
        "task": job.task,
        "engine": job.engine.name,
        "cores": job.cores,
        "growth": growth(measurements, job),
        "times_minwise": times_minwise(job, measurements),
        "times_reading": times_reading(job, measurements),
        "targets": verdicts(job, measurements),
        "sizes": [
            {
                "documents": measurement.documents,
                "finished": measurement.finished,
                "seconds": measurement.seconds,
                "peak_bytes": measurement.peaks,
                "load": measurement.loads,
                "kept": measurement.kept,
            }
            for measurement in of_job
        ],
    }


if __name__ == "__main__":
    main()
