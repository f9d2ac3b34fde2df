"""Entry point of ``python -m benchmarks.vectors``: generate points, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import peer_python
from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, align_rows
from benchmarks.vectors.points import DIMS, IMAGES, KINDS, images, make_points

# Share of all pairs within the radius.
SHARE = 0.0001
RECALL = Target(figure="recall", wanted=0.99)
SPEEDUP = Target(figure="times as fast as brute force", wanted=10)
# Rows for Spark's join: with one projection per table, most distant points share a bucket, so more rows take too long.
SPARK_ROWS = 2000

Row = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    faiss = peer_python("faiss")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="vectors-", dir=cache_dir()) as folder:
        for kind in settings.kinds:
            rows += measure(kind, settings, faiss, Path(folder))
            if settings.record:  # after each kind, because each takes minutes
                content = {"settings": {"dims": DIMS, "share": SHARE, **vars(settings)}, "measurements": rows}
                print(f"written to {write_json(content, benchmark='vectors')}")
    columns = ["points", "task", "engine", "seconds", "recall", "peak MB", "target"]
    print(f"\n{align_rows([columns, *(cells(row) for row in rows)], text_columns=3)}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("vectors", __doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="points of each kind")
    parser.add_argument("--queries", type=int, default=1000, help="points whose nearest neighbours are searched")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each engine, of which the best counts")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, help="kinds of points")
    return parser.parse_args()


def measure(kind: str, settings: argparse.Namespace, faiss: Path, folder: Path) -> list[Row]:
    """Return the measurements of every engine with points of a kind."""
    points = images(kind) if kind in IMAGES else make_points(kind, settings.rows)
    if points is None:
        print(f"{kind}: files are missing, skipped")
        return []
    radius, ours, peer = radius_of(points), sys.executable, str(faiss)
    jobs = [(ours, "brute", "pairs"), (ours, "minwise", "pairs")]
    jobs += [(peer, name, "pairs") for name in ("flat", "ivf")]
    jobs += [(ours, "brute", "near"), (ours, "minwise", "near")]
    jobs += [(peer, name, "near") for name in ("flat", "ivf", "lsh", "hnsw")]
    if kind not in IMAGES:
        jobs += [(ours, name, "many") for name in ("brute", "minwise")]
    name = f"{kind}, {len(points):,} × {points.shape[1]}" if kind in IMAGES else kind
    rows = compare(name, jobs, points, radius, settings, folder)
    if kind == "clustered":
        few = [(ours, name, "pairs") for name in ("brute", "minwise", "spark")]
        rows += compare(f"{kind}, {SPARK_ROWS:,}", few, points[:SPARK_ROWS], radius, settings, folder)
    return rows


def radius_of(points: np.ndarray) -> float:
    """Return the distance that contains ``SHARE`` of all pairs, estimated from up to 2,000 points against all.

    Pixels are integers, and so are their squared distances. Adding a half keeps pairs off the bound, which each tool
    rounds in its own way.
    """
    some = np.unique(np.linspace(0, len(points) - 1, 2000).astype(int))
    squares = (points * points).sum(axis=1)
    apart = squares[some, None] + squares[None] - 2 * points[some] @ points.T
    apart[np.arange(len(some)), some] = np.inf
    rank = int(SHARE * apart.size)
    whole = bool(np.all(points == np.round(points)))
    return float(np.sqrt(np.partition(apart.ravel(), rank)[rank] + 0.5 * whole))


def compare(
    kind: str,
    jobs: list[tuple[str, str, str]],
    points: np.ndarray,
    radius: float,
    settings: argparse.Namespace,
    folder: Path,
) -> list[Row]:
    """Run the engines alternately, so that other load affects all; recall is relative to brute force."""
    path, queries = folder / "points.npy", min(settings.queries, len(points))
    np.save(path, points)
    description = {
        "kind": kind,
        "rows": len(points),
        "dims": points.shape[1],
        "sha256": hashlib.sha256(points.tobytes()).hexdigest(),
    }
    best: dict[tuple[str, str], Row] = {}
    answers: dict[tuple[str, str], np.ndarray] = {}
    for _ in range(settings.rounds):
        for python, engine, task in jobs:
            answer = folder / "answer.npy"
            words = [engine, task, str(path), repr(radius), str(queries), str(answer)]
            run = run_measured([python, "-m", "benchmarks.vectors.run", *words])
            row = {**description, "task": task, "engine": engine, "radius": radius, **run.result(f"{engine} {task}")}
            row |= {"peak_bytes": run.peak_bytes, "load": run.load, "layout": run.errors if engine == "minwise" else ""}
            print(f"{kind:16} {task:6} {engine:8} {row['seconds']:8.2f} s", flush=True)
            answers[engine, task] = np.load(answer)
            if (engine, task) not in best or row["seconds"] < best[engine, task]["seconds"]:
                best[engine, task] = row
    for (engine, task), row in best.items():
        truth, found = answers["brute", task], answers[engine, task]
        near = task != "pairs"
        row["recall"] = recall_of_nearest(points, truth, found) if near else recall_of_pairs(truth, found)
        row["found"] = int(np.count_nonzero(found != -1)) if near else len(found)
        row["times_brute"] = best["brute", task]["seconds"] / row["seconds"]
    return list(best.values())


def recall_of_pairs(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the true pairs that were found."""
    return len(np.intersect1d(truth, found)) / max(1, len(truth))


def recall_of_nearest(points: np.ndarray, truth: np.ndarray, found: np.ndarray) -> float:
    """Return the share of neighbours at most as far as the last true one, so ties count as found."""
    near = []
    for query, *answers in zip(points.astype(np.float64), truth, found, strict=False):
        true, given = (((points[rows] - query) ** 2).sum(axis=1) for rows in answers)
        near.append((answers[1] != -1) & (given <= true.max()))
    return float(np.mean(near))


def cells(row: Row) -> list[str]:
    """Return a row of the table, with the verdict on its targets."""
    verdict = ""
    if row["engine"] == "minwise" and row["task"] == "pairs":
        verdict = f"{RECALL.verdict(row['recall'])}, {SPEEDUP.verdict(row['times_brute'])}: {row['times_brute']:.1f}"
    figures = [f"{row['seconds']:.2f}", f"{row['recall']:.4f}", f"{row['peak_bytes'] / 1e6:,.0f}"]
    return [row["kind"], row["task"], row["engine"], *figures, verdict]


if __name__ == "__main__":
    main()
