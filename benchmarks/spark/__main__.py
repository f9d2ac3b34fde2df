"""Spark benchmark: ``python -m benchmarks.spark`` prepares corpora, measures, prints tables and writes the record."""

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
from benchmarks.spark.methods import SHINGLES, TABLES, THRESHOLD
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
    truths, kernel = {corpus.documents: exact_pairs(corpus) for corpus in (fewest, few)}, kernel_seconds(sizes[-1])
    jobs = [(method, corpus) for corpus in (fewest, few) for method in ("mllib", *OURS)] * settings.rounds
    jobs += [("mllib", many), *((method, many) for method in OURS), *(("dedup", corpus) for corpus in sizes)]
    runs: Runs = []
    for method, corpus in jobs:
        truth = truths.get(corpus.documents) if method != "dedup" else None
        runs.append(measure(method, corpus, settings.bound, truth))
    content = {
        "settings": {"threshold": THRESHOLD, "shingles": SHINGLES, "mllib_tables": TABLES, **vars(settings)},
        "versions": {name: version(name) for name in ("pyspark", "pyarrow")},
        "corpora": [{**asdict(corpus), "folder": Path(corpus.folder).name} for corpus in (fewest, few, many, *sizes)],
        "exact_pairs": {str(documents): len(truth) for documents, truth in truths.items()},
        "kernel": kernel,
        "runs": runs,
        "ratios": ratios(runs, few, sizes),
    }
    if settings.record:  # before printing, so that a failure there does not lose a quarter of an hour of measurements
        print(f"written to {write_json(content, benchmark='spark')}")
    print_tables(content)


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("spark", __doc__)
    parser.add_argument("--fewest", type=int, default=5_000, help="documents on which MLlib is expected to finish")
    parser.add_argument("--few", type=int, default=30_000, help="documents on which MLlib may or may not finish")
    parser.add_argument("--many", type=int, default=100_000, help="documents on which MLlib is not expected to finish")
    parser.add_argument(
        "--size",
        type=int,
        default=100_000,
        help="documents of the smaller growth measurement",
    )
    parser.add_argument("--bound", type=float, default=400, help="maximum seconds of a run")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each method on few documents and on the fewest")
    return parser.parse_args()


def exact_pairs(corpus: SparkCorpus) -> set[tuple[int, int]]:
    """Return every pair at the threshold, by an exact join."""
    table = mw.pairs([str(path) for path in corpus.files], threshold=THRESHOLD, shingle=SHINGLES, exact=True)
    return pair_set(table)


def pair_set(table: pa.Table) -> set[tuple[int, int]]:
    """Return pairs with the smaller id first."""
    columns = zip(table.column("left").to_pylist(), table.column("right").to_pylist(), strict=True)
    return {(min(pair), max(pair)) for pair in columns}


def measure(method: str, corpus: SparkCorpus, bound: float, truth: set[tuple[int, int]] | None) -> dict[str, Any]:
    """Run a method in a separate process; return its time, memory and quality."""
    warm_up = passages(WARM_UP)
    # Workers of a method that was killed may still be writing.
    with tempfile.TemporaryDirectory(prefix="spark-", dir=cache_dir(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        arguments = [method, corpus.folder, warm_up.folder, name, "--bound", str(bound)]
        run = run_measured([sys.executable, "-m", "benchmarks.spark.run", *arguments])
        result = run.result(f"{method} on {corpus.documents:,} documents")
        facts = {"way": method, "documents": corpus.documents, **result, "peak_bytes": run.peak_bytes, "load": run.load}
        if result["finished"] and method != "mllib":
            facts["stages"] = stage_table(folder / "events", result["began"], result["ended"])
        if result["finished"] and truth:
            found = found_pairs(folder, method)
            facts |= {"pairs": len(found), "recall": len(found & truth) / len(truth), "wrong": len(found - truth)}
    print(f"{method:6} {corpus.documents:>9,} {facts['seconds']:8.1f} s  {facts.get('recall', '')}", flush=True)
    return facts


def found_pairs(folder: Path, method: str) -> set[tuple[int, int]]:
    """Return the pairs that a method has written."""
    return pair_set(pq.read_table(folder / ("out.parquet" if method == "files" else "out")))


def stage_table(events: Path, began: float, ended: float) -> list[dict[str, Any]]:
    """Return the sums of each action that writes a stage, and of all others together."""
    (log,) = (path for path in events.rglob("*") if path.is_file() and not path.name.startswith("."))
    actions = within(read_actions(log), began, ended)
    named = [action for action in actions if action.writes]
    others = [action for action in actions if not action.writes]
    return [*(describe(action.writes or "", [action]) for action in named), describe("others", others)]


def describe(name: str, actions: list[Action]) -> dict[str, Any]:
    """Return the sums over some actions."""
    metrics = ("tasks", "task_seconds", "java_seconds", "shuffled_bytes", "shuffled_records", "spilled_bytes")
    python = ("python_run_milliseconds", "python_sent_bytes", "python_returned_bytes")
    totals = {figure: sum(action.total(figure) for action in actions) for figure in (*metrics, *python)}
    return {"stage": name, "seconds": sum(action.seconds for action in actions), **totals}


def kernel_seconds(corpus: SparkCorpus) -> dict[str, float]:
    """Return the time of the kernel alone for the texts of a corpus, on one core, in this process."""
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


def best(runs: Runs, method: str, documents: int) -> dict[str, Any] | None:
    """Return the fastest finished run of a method; None if none finished."""
    fitting = [run for run in runs if run["way"] == method and run["documents"] == documents and run["finished"]]
    return min(fitting, key=lambda run: float(run["seconds"]), default=None)


def ratios(runs: Runs, few: SparkCorpus, sizes: list[SparkCorpus]) -> dict[str, float]:
    """Return the figures that have targets; a run that was killed counts with the time it took until then."""
    found: dict[str, float] = {}
    mllib = min(run["seconds"] for run in runs if run["way"] == "mllib" and run["documents"] == few.documents)
    for method in OURS:
        ours = best(runs, method, few.documents)
        if ours:
            found[f"{method}: {TIMES_MLLIB.figure}"] = mllib / ours["seconds"]
    small, large = (best(runs, "dedup", corpus.documents) for corpus in sizes)
    if small and large:
        found[GROWTH.figure] = large["seconds"] / small["seconds"]
    staged = largest_dedup(runs)
    if staged:
        entries = staged["documents"] * mw.plan(threshold=THRESHOLD).bands
        shuffled = sum(stage["shuffled_bytes"] for stage in staged["stages"] if stage["stage"] == "candidates")
        found[ENTRY_BYTES.figure] = shuffled / entries
    return found


def largest_dedup(runs: Runs) -> dict[str, Any] | None:
    """Return the finished run of ``dedup`` on most documents; None if none finished."""
    finished = [run for run in runs if run["way"] == "dedup" and run["finished"]]
    return max(finished, key=lambda run: int(run["documents"]), default=None)


def print_tables(content: dict[str, Any]) -> None:
    """Print the measurements."""
    rows = [["way", "documents", "seconds", "recall", "peak MB", ""]]
    for run in content["runs"]:
        seconds = f"{run['seconds']:.1f}" if run["finished"] else f"> {run['seconds']:.0f}"
        recall = f"{run['recall']:.4f}" if "recall" in run else ""
        rows.append([run["way"], f"{run['documents']:,}", seconds, recall, f"{run['peak_bytes'] / 1e6:,.0f}", ""])
    print("\n" + align_rows(rows, text_columns=1))
    last = largest_dedup(content["runs"])
    if last:
        print(f"\ndedup of {last['documents']:,} documents\n{align_rows(stage_rows(last), text_columns=1)}")
    for name, value in content["ratios"].items():
        (target,) = (known for known in (TIMES_MLLIB, GROWTH, ENTRY_BYTES) if name.endswith(known.figure))
        print(f"{name}: {value:.2f}  {target.verdict(value)}")


def stage_rows(run: dict[str, Any]) -> list[list[str]]:
    """Return the stages of a run as cells."""
    rows = [["stage", "seconds", "task seconds", "in Python", "shuffled, bytes a document", ""]]
    for stage in run["stages"]:
        share = stage["python_run_milliseconds"] / 1e3 / stage["task_seconds"] if stage["task_seconds"] else 0
        shuffled = stage["shuffled_bytes"] / run["documents"]
        cells = [f"{stage['seconds']:.1f}", f"{stage['task_seconds']:.1f}", f"{share:.0%}", f"{shuffled:.1f}"]
        rows.append([stage["stage"], *cells, ""])
    return rows


if __name__ == "__main__":
    main()
