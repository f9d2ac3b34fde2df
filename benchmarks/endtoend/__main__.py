"""Entry: ``python -m benchmarks.endtoend`` prepares, measures, prints the table and writes the record."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.endtoend.engines import ENGINES, MINWISE, SHINGLES, SLOTS, THRESHOLD, python
from benchmarks.endtoend.measure import EngineRuns, measure, ratios, table, verdicts
from benchmarks.recording import write_json
from benchmarks.speed.corpus import Corpus, cache_dir, prepare_corpus

NAMES = tuple(engine.name for engine in ENGINES)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    engines = [engine for engine in ENGINES if engine.name in settings.engines]
    for engine in engines:
        python(engine)  # environments are made before anything is measured
    corpus = prepare_corpus("source", settings.megabytes)
    source = first_documents(corpus, settings.limit) if settings.limit else corpus.path
    minwise = shlex.split(settings.command) if settings.command else MINWISE
    every = measure(engines, source, rounds=settings.rounds, threads=settings.threads, minwise=minwise)
    print(f"\n{pq.read_metadata(source).num_rows:,} documents of {corpus.file}; {corpus.note}\n{table(every)}\n")
    if settings.record and set(settings.engines) == set(NAMES):  # part of a run must not replace the day's record
        print(f"written to {write_json(content(every, corpus, settings), benchmark='endtoend')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endtoend", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine (default 3)")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the corpus (default 100)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--limit", type=int, help="only the first documents: a quick look, not recorded")
    parser.add_argument("--command", help="measure another command than python -m minwise dedup; not recorded")
    parser.add_argument("--no-record", dest="record", action="store_false", help="print only")
    settings = parser.parse_args()
    settings.record &= settings.command is None and settings.limit is None
    return settings


def first_documents(corpus: Corpus, limit: int) -> Path:
    """Return a file of the first documents of a corpus."""
    path = cache_dir() / f"{corpus.path.stem}-first-{limit}.parquet"
    pq.write_table(pq.read_table(corpus.path).slice(0, limit), path, compression="zstd")
    return path


def content(every: Sequence[EngineRuns], corpus: Corpus, settings: argparse.Namespace) -> dict[str, Any]:
    """Return what the record holds."""
    equal = {"threshold": THRESHOLD, "shingles": SHINGLES, "slots": SLOTS}
    return {
        "versions": {"python": platform.python_version()} | {one.engine.name: one.versions for one in every},
        "settings": {"rounds": settings.rounds, "threads": settings.threads, **equal},
        "corpus": asdict(corpus),
        "measurements": [entry(one, every) for one in every],
    }


def entry(one: EngineRuns, every: Sequence[EngineRuns]) -> dict[str, Any]:
    """Return an engine with its figures, its verdicts and all its runs."""
    runs = [{name: value for name, value in asdict(run).items() if name != "output"} for run in one.runs]
    return {
        "engine": one.engine.name,
        "seconds": one.seconds,
        "kept": one.kept,
        "peak_bytes": one.peak_bytes,
        "times_minwise": ratios(every).get(one.engine.name),
        "targets": verdicts(one, every),
        "runs": runs,
    }


if __name__ == "__main__":
    main()
