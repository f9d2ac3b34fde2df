"""Entry point of ``python -m benchmarks.exact``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import minwise as mw
from benchmarks.environments import peer_python
from benchmarks.processes import run_measured, run_self_timed
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir, prepare_corpus
from benchmarks.targets import Target, align_rows

THRESHOLD, SHINGLES = 0.8, "word:5"
# Enough of the corpus of whole files for the default number of documents.
MEGABYTES = 1300
PEER = "SetSimilaritySearch"
TIME_BY_BANDS = Target(figure="times the bands", wanted=10, at_most=True)
SPEEDUP_OVER_PEER = Target(figure="times as fast as the peer", wanted=20)

Runs = list[dict[str, Any]]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    corpus = prepare_corpus("source", settings.megabytes)
    peer = peer_python(PEER)
    with tempfile.TemporaryDirectory(prefix="exact-", dir=cache_dir()) as folder:
        documents = first_documents(corpus.path, settings.documents, Path(folder) / "documents.parquet")
        corpora = compare_with_bands(documents, Path(folder), settings.rounds)
        sets = write_sets(documents, settings.sets, Path(folder) / "sets.npz")
        joins = compare_with_peer(sets, peer, settings.rounds)
    rows = [["engine", "seconds", "pairs", "peak MB", "target"], *table(corpora, joins)]
    print(f"\n{settings.documents:,} documents, then {settings.sets:,} sets of {corpus.note}")
    print(align_rows(rows, text_columns=1))
    if settings.record:
        content = {
            "settings": {"threshold": THRESHOLD, "shingles": SHINGLES, **vars(settings)},
            "corpus": asdict(corpus),
            "documents": corpora,
            "sets": joins,
            "ratios": ratios(corpora, joins),
        }
        print(f"written to {write_json(content, benchmark='exact')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("exact", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine (default 3)")
    parser.add_argument("--documents", type=int, default=100_000, help="documents in the join of files")
    parser.add_argument("--sets", type=int, default=10_000, help="documents whose sets minwise and the peer join")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="size of the corpus of these documents")
    return parser.parse_args()


def first_documents(source: Path, count: int, path: Path) -> Path:
    """Write the first documents of a file to ``path`` and return it."""
    with pq.ParquetWriter(path, pq.read_schema(source), compression="zstd") as writer:
        for batch in pq.ParquetFile(source).iter_batches(10_000):
            writer.write_batch(batch.slice(0, count))
            count -= min(count, batch.num_rows)
    return path


def write_sets(documents: Path, count: int, path: Path) -> Path:
    """Write the shingle sets of the first documents to ``path`` and return it."""
    texts = next(pq.ParquetFile(documents).iter_batches(count, columns=["text"])).column(0)
    sets = mw.Shingler(SHINGLES).shingle(texts)
    np.savez(path, offsets=sets.offsets, elements=sets.hashes)
    return path


def compare_with_bands(documents: Path, folder: Path, rounds: int) -> dict[str, Runs]:
    """Run ``minwise pairs`` with bands and with the exact join, alternately."""
    modes: dict[str, list[str]] = {"bands": [], "exact": ["--exact"]}
    runs: dict[str, Runs] = {name: [] for name in modes}
    for _ in range(rounds):
        for name, options in modes.items():
            settings = ["--threshold", str(THRESHOLD), "--shingle", SHINGLES, "--json", *options]
            output = ["-o", str(folder / "pairs.parquet")]
            run = run_measured([sys.executable, "-m", "minwise", "pairs", str(documents), *output, *settings])
            found = run.result(name)["pairs"]
            runs[name].append({"seconds": run.seconds, "pairs": found, "peak_bytes": run.peak_bytes, "load": run.load})
            print(f"{name:8} {run.seconds:8.2f} s  {found:,} pairs", flush=True)
    return runs


def compare_with_peer(sets: Path, peer: Path, rounds: int) -> dict[str, Runs]:
    """Join the same sets with minwise, on one core and on two, and with the peer, alternately."""
    ours = (sys.executable, "minwise")
    engines = {"minwise, one core": (*ours, "1"), "minwise, two cores": (*ours, "2"), PEER: (str(peer), PEER, "1")}
    runs: dict[str, Runs] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, (python, package, threads) in engines.items():
            words = [python, "-m", "benchmarks.exact.join_sets", package, str(sets), str(THRESHOLD), threads]
            runs[name].append(run_self_timed(words))
            print(f"{name:18} {runs[name][-1]['seconds']:8.2f} s  {runs[name][-1]['pairs']:,} pairs", flush=True)
    return runs


def best(runs: Runs) -> float:
    """Return the seconds of the best round; everything above it is noise of the machine."""
    return float(min(run["seconds"] for run in runs))


def ratios(corpora: dict[str, Runs], joins: dict[str, Runs]) -> dict[str, float]:
    """Return the figures that have targets."""
    peer = best(joins[PEER])
    found = {TIME_BY_BANDS.figure: best(corpora["exact"]) / best(corpora["bands"])}
    return found | {
        f"{name}: {SPEEDUP_OVER_PEER.figure}": peer / best(runs) for name, runs in joins.items() if name != PEER
    }


def table(corpora: dict[str, Runs], joins: dict[str, Runs]) -> Sequence[Sequence[str]]:
    """Return a row per engine, with the verdict on its target."""
    figures = ratios(corpora, joins)
    verdicts = {"exact": f"{TIME_BY_BANDS.verdict(figures[TIME_BY_BANDS.figure])}: {figures[TIME_BY_BANDS.figure]:.1f}"}
    for name in joins:
        figure = figures.get(f"{name}: {SPEEDUP_OVER_PEER.figure}")
        if figure is not None:
            verdicts[name] = f"{SPEEDUP_OVER_PEER.verdict(figure)}: {figure:.1f}"
    rows = []
    for name, runs in (corpora | joins).items():
        peak = max(run["peak_bytes"] for run in runs)
        cells = [f"{best(runs):.2f}", f"{runs[0]['pairs']:,}", f"{peak / 1e6:,.0f}"]
        rows.append([name, *cells, verdicts.get(name, "")])
    return rows


if __name__ == "__main__":
    main()
