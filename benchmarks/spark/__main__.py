"""Entry: ``python -m benchmarks.spark`` prepares, measures, prints the tables and writes the record."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import minwise as mw
from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.spark.corpora import SparkCorpus, mixed, passages
from benchmarks.spark.events import Action, read_actions, within
from benchmarks.spark.ways import SHINGLES, TABLES, THRESHOLD
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, align_rows

TIMES_MLLIB = Target(figure="times as fast as MLlib", wanted=5)
GROWTH = Target(figure="time at ten times the documents", wanted=12, at_most=True)
ENTRY_BYTES = Target(figure="bytes shuffled per band entry", wanted=16, at_most=True)
WARM_UP = 1000
OURS = ("files", "frame")

Runs = list[dict[str, Any]]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    fewest, few, many = (passages(count) for count in (settings.fewest, settings.few, settings.many))
    sizes = [mixed(settings.size), mixed(10 * settings.size)]
    truths, kernel = {one.documents: exact_pairs(one) for one in (fewest, few)}, kernel_seconds(sizes[-1])
    jobs = [(way, corpus) for corpus in (fewest, few) for way in ("mllib", *OURS)] * settings.rounds
    jobs += [("mllib", many), *((way, many) for way in OURS), *(("dedup", one) for one in sizes)]
    runs: Runs = []
    for way, corpus in jobs:
        runs.append(go(way, corpus, settings.bound, truths.get(corpus.documents) if way != "dedup" else None))
    content = {
        "settings": {"threshold": THRESHOLD, "shingles": SHINGLES, "mllib_tables": TABLES, **vars(settings)},
        "versions": {name: version(name) for name in ("pyspark", "pyarrow")},
        "corpora": [{**asdict(one), "folder": Path(one.folder).name} for one in (fewest, few, many, *sizes)],
        "exact_pairs": {str(documents): len(truth) for documents, truth in truths.items()},
        "kernel": kernel,
        "runs": runs,
        "ratios": ratios(runs, few, sizes),
    }
    if settings.record:  # before anything is shown, which took a quarter of an hour to be had
        print(f"written to {write_json(content, benchmark='spark')}")
    print_tables(content)


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("spark", __doc__)
    parser.add_argument("--fewest", type=int, default=5_000, help="documents on which MLlib is expected to finish")
    parser.add_argument("--few", type=int, default=30_000, help="documents on which it may or may not")
    parser.add_argument("--many", type=int, default=100_000, help="documents on which it is not expected to")
    parser.add_argument("--size", type=int, default=100_000, help="documents that are made ten times as many")
    parser.add_argument("--bound", type=float, default=400, help="seconds that anybody is given")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each way on few documents and on the fewest")
    return parser.parse_args()


def exact_pairs(corpus: SparkCorpus) -> set[tuple[int, int]]:
    """Return every pair there is, by an exact join."""
    table = mw.pairs([str(path) for path in corpus.files], threshold=THRESHOLD, shingle=SHINGLES, exact=True)
    return pair_set(table)


def pair_set(table: pa.Table) -> set[tuple[int, int]]:
    """Return pairs with the smaller id first."""
    columns = zip(table.column("left").to_pylist(), table.column("right").to_pylist(), strict=True)
    return {(min(pair), max(pair)) for pair in columns}


def go(way: str, corpus: SparkCorpus, bound: float, truth: set[tuple[int, int]] | None) -> dict[str, Any]:
    """Go one way in a process of its own, and say what it took and found."""
    warm_up = passages(WARM_UP)
    # Of a way that was ended, workers may still be writing.
    with tempfile.TemporaryDirectory(prefix="spark-", dir=cache_dir(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        words = [way, corpus.folder, warm_up.folder, name, "--bound", str(bound)]
        run = run_measured([sys.executable, "-m", "benchmarks.spark.run", *words])
        told = run.result(f"{way} on {corpus.documents:,} documents")
        facts = {"way": way, "documents": corpus.documents, **told, "peak_bytes": run.peak_bytes, "load": run.load}
        if told["finished"] and way != "mllib":
            facts["stages"] = stage_table(folder / "events", told["began"], told["ended"])
        if told["finished"] and truth:
            found = found_pairs(folder, way)
            facts |= {"pairs": len(found), "recall": len(found & truth) / len(truth), "wrong": len(found - truth)}
    print(f"{way:6} {corpus.documents:>9,} {facts['seconds']:8.1f} s  {facts.get('recall', '')}", flush=True)
    return facts


def found_pairs(folder: Path, way: str) -> set[tuple[int, int]]:
    """Return the pairs that a way has written."""
    return pair_set(pq.read_table(folder / ("out.parquet" if way == "files" else "out")))


def stage_table(events: Path, began: float, ended: float) -> list[dict[str, Any]]:
    """Return what each action that writes a stage did, and all others together."""
    (log,) = (path for path in events.rglob("*") if path.is_file() and not path.name.startswith("."))
    actions = within(read_actions(log), began, ended)
    named = [one for one in actions if one.writes]
    others = [one for one in actions if not one.writes]
    return [*(describe(one.writes or "", [one]) for one in named), describe("others", others)]


def describe(name: str, actions: list[Action]) -> dict[str, Any]:
    """Return what some actions did together."""
    figures = ("tasks", "task_seconds", "java_seconds", "shuffled_bytes", "shuffled_records", "spilled_bytes")
    python = ("python_run_milliseconds", "python_sent_bytes", "python_returned_bytes")
    totals = {one: sum(action.total(one) for action in actions) for one in (*figures, *python)}
    return {"stage": name, "seconds": sum(action.seconds for action in actions), **totals}


def kernel_seconds(corpus: SparkCorpus) -> dict[str, float]:
    """Return how long the kernel alone takes for the texts of a corpus, on one core, in this process."""
    from minwise.options import DedupOptions
    from minwise.search.bands import Bander, KeyBlock, element_arrays
    from minwise.settings import resolve_options, search_settings

    settings = search_settings(resolve_options(DedupOptions, None, {"threshold": THRESHOLD, "shingle": SHINGLES}))
    bander, spent = Bander(settings), {"band": 0.0, "shingle": 0.0}
    for batch in batches_of(corpus):
        texts = batch.column("text").cast(pa.large_string())
        start = time.perf_counter()
        bander.band(texts, KeyBlock.allocate(settings, len(texts)), 1)
        middle = time.perf_counter()
        element_arrays(texts, settings.shingler, 1)
        spent["band"] += middle - start
        spent["shingle"] += time.perf_counter() - middle
    return spent


def batches_of(corpus: SparkCorpus) -> Iterator[pa.RecordBatch]:
    """Yield the texts."""
    for path in corpus.files:
        yield from pq.ParquetFile(path).iter_batches(10_000, columns=["text"])


def best(runs: Runs, way: str, documents: int) -> dict[str, Any] | None:
    """Return the quickest run of a way that finished; None if none did."""
    fitting = [one for one in runs if one["way"] == way and one["documents"] == documents and one["finished"]]
    return min(fitting, key=lambda one: float(one["seconds"]), default=None)


def ratios(runs: Runs, few: SparkCorpus, sizes: list[SparkCorpus]) -> dict[str, float]:
    """Return the figures that have targets; whoever was ended took as long at least."""
    found: dict[str, float] = {}
    mllib = min(one["seconds"] for one in runs if one["way"] == "mllib" and one["documents"] == few.documents)
    for way in OURS:
        ours = best(runs, way, few.documents)
        if ours:
            found[f"{way}: {TIMES_MLLIB.figure}"] = mllib / ours["seconds"]
    small, large = (best(runs, "dedup", one.documents) for one in sizes)
    if small and large:
        found[GROWTH.figure] = large["seconds"] / small["seconds"]
    staged = largest_dedup(runs)
    if staged:
        entries = staged["documents"] * mw.plan(threshold=THRESHOLD).bands
        shuffled = sum(one["shuffled_bytes"] for one in staged["stages"] if one["stage"] == "candidates")
        found[ENTRY_BYTES.figure] = shuffled / entries
    return found


def largest_dedup(runs: Runs) -> dict[str, Any] | None:
    """Return the run of ``dedup`` on most documents that finished; None if none did."""
    finished = [one for one in runs if one["way"] == "dedup" and one["finished"]]
    return max(finished, key=lambda one: int(one["documents"]), default=None)


def print_tables(content: dict[str, Any]) -> None:
    """Print what was measured."""
    rows = [["way", "documents", "seconds", "recall", "peak MB", ""]]
    for one in content["runs"]:
        seconds = f"{one['seconds']:.1f}" if one["finished"] else f"> {one['seconds']:.0f}"
        recall = f"{one['recall']:.4f}" if "recall" in one else ""
        rows.append([one["way"], f"{one['documents']:,}", seconds, recall, f"{one['peak_bytes'] / 1e6:,.0f}", ""])
    print("\n" + align_rows(rows, text_columns=1))
    last = largest_dedup(content["runs"])
    if last:
        print(f"\ndedup of {last['documents']:,} documents\n{align_rows(stage_rows(last), text_columns=1)}")
    for name, value in content["ratios"].items():
        (target,) = (one for one in (TIMES_MLLIB, GROWTH, ENTRY_BYTES) if name.endswith(one.figure))
        print(f"{name}: {value:.2f}  {target.verdict(value)}")


def stage_rows(run: dict[str, Any]) -> list[list[str]]:
    """Return the stages of a run as cells."""
    rows = [["stage", "seconds", "task seconds", "in Python", "shuffled, bytes a document", ""]]
    for one in run["stages"]:
        share = one["python_run_milliseconds"] / 1e3 / one["task_seconds"] if one["task_seconds"] else 0
        shuffled = one["shuffled_bytes"] / run["documents"]
        cells = [f"{one['seconds']:.1f}", f"{one['task_seconds']:.1f}", f"{share:.0%}", f"{shuffled:.1f}"]
        rows.append([one["stage"], *cells, ""])
    return rows


if __name__ == "__main__":
    main()
