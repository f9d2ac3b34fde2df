"""Entry: ``python -m benchmarks.vectors`` makes the points, measures, prints the table and writes the record."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import run_measured
from benchmarks.recording import write_json
from benchmarks.speed.corpus import cache_dir
from benchmarks.speed.peers import environment_python
from benchmarks.targets import Target, align_rows
from benchmarks.vectors.points import DIMS, KINDS, make_points

# The share of all pairs that the radius holds.
SHARE = 0.0001
RECALL = Target(figure="recall", wanted=0.99)
TIMES_BRUTE = Target(figure="times as fast as brute force", wanted=10)
# Rows that Spark's join can be asked for: a line per table lets most of what is far into a bucket.
SPARK_ROWS = 2000

Row = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    faiss = environment_python("peer-faiss", ["faiss-cpu>=1.8,<2", "numpy"])
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="vectors-", dir=cache_dir()) as folder:
        for kind in settings.kinds:
            rows += measure(kind, settings, faiss, Path(folder))
            if settings.record:  # after each kind, since they take minutes
                content = {"settings": {"dims": DIMS, "share": SHARE, **vars(settings)}, "measurements": rows}
                print(f"written to {write_json(content, benchmark='vectors')}")
    columns = ["points", "task", "engine", "seconds", "recall", "peak MB", "target"]
    print(f"\n{align_rows([columns, *(shown(row) for row in rows)], words=3)}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="points of each kind")
    parser.add_argument("--queries", type=int, default=1000, help="points that are asked for their ten nearest")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each engine, of which the best counts")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, help="kinds of points")
    parser.add_argument("--no-record", dest="record", action="store_false", help="print only")
    return parser.parse_args()


def measure(kind: str, settings: argparse.Namespace, faiss: Path, folder: Path) -> list[Row]:
    """Return what every engine does with points of a kind."""
    points, path = make_points(kind, settings.rows), folder / "points.npy"
    np.save(path, points)
    radius = radius_of(points)
    ours, peer = sys.executable, str(faiss)
    jobs = [(ours, "brute", "pairs"), (ours, "minwise", "pairs"), (peer, "flat", "pairs")]
    jobs += [(ours, "brute", "near"), (ours, "minwise", "near")]
    jobs += [(peer, name, "near") for name in ("flat", "lsh", "hnsw")]
    rows = compare(kind, jobs, path, radius, settings, folder)
    if kind == "clustered":
        small = folder / "small.npy"
        np.save(small, points[:SPARK_ROWS])
        few = [(ours, name, "pairs") for name in ("brute", "minwise", "spark")]
        rows += compare(f"{kind}, {SPARK_ROWS:,}", few, small, radius, settings, folder)
    return rows


def radius_of(points: np.ndarray) -> float:
    """Return the distance that holds ``SHARE`` of all pairs, told from 2,000 points against all."""
    some = np.linspace(0, len(points) - 1, 2000).astype(int)
    squares = (points * points).sum(axis=1)
    apart = squares[some, None] + squares[None] - 2 * points[some] @ points.T
    apart[np.arange(len(some)), some] = np.inf
    place = int(SHARE * apart.size)
    return float(np.sqrt(np.partition(apart.ravel(), place)[place]))


def compare(
    kind: str,
    jobs: list[tuple[str, str, str]],
    path: Path,
    radius: float,
    settings: argparse.Namespace,
    folder: Path,
) -> list[Row]:
    """Run the engines in turn, so that a noisy neighbour hits all; recall is against brute force of the same task."""
    best: dict[tuple[str, str], Row] = {}
    answers: dict[tuple[str, str], np.ndarray] = {}
    for _ in range(settings.rounds):
        for python, engine, task in jobs:
            answer = folder / "answer.npy"
            words = [engine, task, str(path), repr(radius), str(settings.queries), str(answer)]
            run = run_measured([python, "-m", "benchmarks.vectors.run", *words])
            if run.code != 0:
                raise SystemExit(f"{engine} {task} failed: {run.errors}")
            row = {"kind": kind, "task": task, "engine": engine, "radius": radius, **json.loads(run.output)}
            row |= {"peak_bytes": run.peak_bytes, "load": run.load, "layout": run.errors if engine == "minwise" else ""}
            print(f"{kind:16} {task:6} {engine:8} {row['seconds']:8.2f} s", flush=True)
            answers[engine, task] = np.load(answer)
            if (engine, task) not in best or row["seconds"] < best[engine, task]["seconds"]:
                best[engine, task] = row
    for (engine, task), row in best.items():
        row["recall"] = recall(answers["brute", task], answers[engine, task])
        row["found"] = (
            int(np.count_nonzero(answers[engine, task] != -1)) if task == "near" else len(answers[engine, task])
        )
        row["times_brute"] = best["brute", task]["seconds"] / row["seconds"]
    return list(best.values())


def recall(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the truth that was found."""
    if truth.ndim == 1:
        return len(np.intersect1d(truth, found)) / max(1, len(truth))
    return float(np.mean([len(np.intersect1d(one, other)) / len(one) for one, other in zip(truth, found, strict=True)]))


def shown(row: Row) -> list[str]:
    """Return a row of the table, with the verdict on its targets."""
    verdict = ""
    if row["engine"] == "minwise" and row["task"] == "pairs":
        verdict = (
            f"{RECALL.verdict(row['recall'])}, {TIMES_BRUTE.verdict(row['times_brute'])}: {row['times_brute']:.1f}"
        )
    cells = [f"{row['seconds']:.2f}", f"{row['recall']:.4f}", f"{row['peak_bytes'] / 1e6:,.0f}"]
    return [row["kind"], row["task"], row["engine"], *cells, verdict]


if __name__ == "__main__":
    main()
