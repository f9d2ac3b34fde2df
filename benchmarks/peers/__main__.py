"""Entry point of ``python -m benchmarks.peers``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.peers.engines import ENGINES, SHINGLES, SLOTS, TASKS, THRESHOLD, Job, all_jobs
from benchmarks.peers.markdown_table import ratio_rows
from benchmarks.peers.measure import Measurement, growth, measure
from benchmarks.peers.passages import MAX_DOCUMENTS, prepare_passages
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts
from benchmarks.record_files import command_line, processor, write_json
from benchmarks.speed.corpus import Corpus, CorpusUnavailableError
from benchmarks.tables import newest_record

NAMES = tuple(engine.name for engine in ENGINES)
SIZES = (10_000, 100_000, MAX_DOCUMENTS)
ROUNDS = 3
BOUND = 120.0  # seconds; all engines together then take 35 minutes


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    engines = [engine for engine in ENGINES if engine.name in settings.engines]
    for engine in engines:
        _ = engine.python  # environments are created before the first measurement
    corpora = prepare_corpora(settings.sizes)
    earlier = earlier_record(corpora) if settings.reuse else None
    measurements = measure(list(all_jobs(engines)), corpora, rounds=settings.rounds, bound=settings.bound)
    record = content(measurements, corpora, settings)
    print(f"\n{table(measurements)}\n")
    for name, cells in ratio_rows(record).items():
        print(f"{name}: {', '.join(cells)}")
    whole = (earlier or set(settings.engines) == set(NAMES)) and tuple(settings.sizes) == SIZES
    if settings.record and whole:  # a partial run must not replace the record of the day
        print(f"written to {write_json(with_earlier_rows(record, earlier), benchmark='peers')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("peers", __doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"runs of the jobs that are repeated (default {ROUNDS})"
    )
    parser.add_argument("--bound", type=float, default=BOUND, help=f"time limit of a run in seconds (default {BOUND})")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of documents")
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--reuse", action="store_true", help="take other engines from the newest record and write one")
    return parser.parse_args()


def earlier_record(corpora: Sequence[Corpus]) -> dict[str, Any]:
    """Return the newest record; it must be of this processor and these corpora."""
    record = newest_record("peers")
    same_texts = [corpus["sha256"] for corpus in record["corpora"]] == [corpus.sha256 for corpus in corpora]
    if record["machine"]["processor"] != processor() or not same_texts:
        raise SystemExit("--reuse needs a record of this processor and these corpora; run without it")
    return record


def with_earlier_rows(record: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Return a record with the rows of an earlier one for engines that were not run, each with its date."""
    if earlier is None:
        return record
    measured = {row["engine"] for row in record["rows"]}
    others = [{"measured": earlier["finished"][:10], **row} for row in earlier["rows"] if row["engine"] not in measured]
    rows = sorted([*record["rows"], *others], key=lambda row: (TASKS.index(row["task"]), NAMES.index(row["engine"])))
    return {**record, "versions": {**earlier["versions"], **record["versions"]}, "rows": rows}


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
