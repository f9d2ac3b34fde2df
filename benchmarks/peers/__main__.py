"""Entry: ``python -m benchmarks.peers`` prepares, measures, prints the table and writes the record."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.peers.engines import ENGINES, SHINGLES, SLOTS, THRESHOLD, Job, all_jobs
from benchmarks.peers.measure import Measurement, growth, measure
from benchmarks.peers.passages import MOST_DOCUMENTS, prepare_passages
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import Corpus, CorpusUnavailableError

NAMES = tuple(engine.name for engine in ENGINES)
SIZES = (10_000, 100_000, MOST_DOCUMENTS)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    engines = [engine for engine in ENGINES if engine.name in settings.engines]
    for engine in engines:
        _ = engine.python  # environments are made before anything is measured
    corpora = prepare_corpora(settings.sizes)
    every = measure(list(all_jobs(engines)), corpora, rounds=settings.rounds, bound=settings.bound)
    print(f"\n{table(every)}\n")
    whole = set(settings.engines) == set(NAMES) and tuple(settings.sizes) == SIZES
    if settings.record and whole:  # part of a run must not replace the day's record
        print(f"written to {write_json(content(every, corpora, settings), benchmark='peers')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("peers", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each job that is quick (default 3)")
    parser.add_argument("--bound", type=float, default=400, help="seconds that anybody is given (default 400)")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of documents")
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=list(NAMES))
    return parser.parse_args()


def prepare_corpora(sizes: Sequence[int]) -> list[Corpus]:
    """Return the corpora that can be had, the smaller first, and say which can not."""
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


def content(every: Sequence[Measurement], corpora: Sequence[Corpus], settings: argparse.Namespace) -> dict[str, Any]:
    """Return what the record holds."""
    equal = {"threshold": THRESHOLD, "shingles": SHINGLES, "slots": SLOTS}
    versions = {name: number for one in every for name, number in one.versions.items()}
    return {
        "versions": {"python": platform.python_version(), **dict(sorted(versions.items()))},
        "settings": {"rounds": settings.rounds, "bound_seconds": settings.bound, **equal},
        "corpora": [asdict(corpus) for corpus in corpora],
        "rows": [entry(job, every) for job in dict.fromkeys(one.job for one in every)],
    }


def entry(job: Job, every: Sequence[Measurement]) -> dict[str, Any]:
    """Return a row of the table with all its runs."""
    mine = [one for one in every if one.job == job]
    return {
        "task": job.task,
        "engine": job.engine.name,
        "cores": job.cores,
        "growth": growth(every, job),
        "times_minwise": times_minwise(job, every),
        "times_reading": times_reading(job, every),
        "targets": verdicts(job, every),
        "sizes": [
            {
                "documents": one.documents,
                "finished": one.finished,
                "seconds": one.seconds,
                "peak_bytes": one.peaks,
                "load": one.loads,
                "kept": one.kept,
            }
            for one in mine
        ],
    }


if __name__ == "__main__":
    main()
