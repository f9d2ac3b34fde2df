"""Entry point of ``python -m benchmarks.nearest``: nearest records beside sparse brute force, in one run.

Two tables of records of four short fields; for each record of one the five nearest of the other. minwise runs as a
command that reads and writes Parquet; the peers get vectors of the same elements and are timed without making them.
The rows of a sample of records are compared with those of a brute force.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.environments import peer_python
from benchmarks.nearest.records import FIELDS, make_tables
from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, align_rows, figure_table
from minwise._internal.arrays import to_numpy
from minwise.inputs.records import RecordFields, parse_fields

PEERS = ("scikit-learn", "sparse_dot_topn")
TARGETS = {
    target.figure: target
    for target in (
        *(Target(figure=f"times as fast as {peer}, in seconds", wanted=3) for peer in PEERS),
        *(Target(figure=f"times as fast as {peer}, in processor seconds", wanted=3) for peer in PEERS),
        Target(figure="share of the sampled records with the rows of a brute force", wanted=1),
    )
}
Runs = dict[str, list[dict[str, Any]]]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    left, right = make_tables(settings.rows, settings.seed)
    sides, columns = vectors(left, right)
    with tempfile.TemporaryDirectory(prefix="nearest-", dir=cache_dir()) as name:
        folder = Path(name)
        pq.write_table(left, folder / "left.parquet")
        pq.write_table(right, folder / "right.parquet")
        stored: dict[str, Any] = {
            f"{side}_{part}": values for side, sets in sides.items() for part, values in sets.items()
        }
        np.savez(folder / "vectors.npz", columns=columns, **stored)
        runs: Runs = {}
        for _ in range(settings.rounds):
            add(runs, "minwise", run_minwise(folder, settings.top))
            for peer in PEERS:
                add(runs, peer, run_peer(peer, folder, settings.top))
        share = equal_share(pq.read_table(folder / "found.parquet"), sides, settings)
    figures = ratios(runs, share)
    elements = len(sides["left"]["elements"]) / settings.rows
    print(f"\n{settings.rows:,} records among {settings.rows:,}, {elements:.1f} elements each, {columns:,} distinct")
    print(align_rows([("run", "seconds", "processor s", "peak MB"), *map(row, runs.items())], text_columns=1))
    print(f"\n{figure_table(figures, TARGETS)}")
    if settings.record:
        content = {"settings": vars(settings), "fields": FIELDS, "runs": runs, "figures": figures}
        print(f"written to {write_json(content, benchmark='nearest')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("nearest", __doc__)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each program (default 1)")
    parser.add_argument("--rows", type=int, default=100_000, help="records of each table (default 100000)")
    parser.add_argument("--top", type=int, default=5, help="nearest records of each (default 5)")
    parser.add_argument("--sample", type=int, default=300, help="records whose rows are checked (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the records (default 1)")
    return parser.parse_args()


def vectors(left: pa.Table, right: pa.Table) -> tuple[dict[str, dict[str, NDArray[np.int64]]], int]:
    """Return offsets and numbered elements of both tables, and the number of distinct elements."""
    fields = RecordFields(fields=parse_fields(FIELDS, None), bag=False, seed=1)
    lists = [fields.from_arrow([column.combine_chunks() for column in table.columns])[0] for table in (left, right)]
    sets = [(to_numpy(one.offsets).astype(np.int64), to_numpy(one.values)) for one in lists]
    distinct, numbers = np.unique(np.concatenate([elements for _, elements in sets]), return_inverse=True)
    parts = np.split(numbers.astype(np.int64), [len(sets[0][1])])
    named = zip(("left", "right"), sets, parts, strict=True)
    return {side: {"offsets": one[0], "elements": part} for side, one, part in named}, len(distinct)


def run_minwise(folder: Path, top: int) -> dict[str, Any]:
    """Run the command and return time and memory."""
    output = str(folder / "found.parquet")
    options = ["--among", str(folder / "right.parquet"), "--fields", FIELDS, "--top", str(top), "-o", output]
    words = [sys.executable, "-m", "minwise", "nearest", str(folder / "left.parquet"), *options]
    run = run_measured([*words, "--overwrite", "--json"])
    rows = run.result("nearest")["pairs"]
    return {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "rows": rows, **shared_figures(run)}


def run_peer(peer: str, folder: Path, top: int) -> dict[str, Any]:
    """Run a peer, which times itself."""
    words = [str(peer_python(peer)), "-m", "benchmarks.nearest.peer", peer, str(folder / "vectors.npz"), str(top)]
    run = run_measured(words)
    return {**run.result(peer), **shared_figures(run)}


def shared_figures(run: Any) -> dict[str, Any]:  # noqa: ANN401 - a run
    """Return peak memory and load of a run."""
    return {"peak_bytes": run.peak_bytes, "load": run.load}


def add(runs: Runs, name: str, run: dict[str, Any]) -> None:
    """Add a run and print it."""
    runs.setdefault(name, []).append(run)
    print("  ".join(row((name, [run]))), flush=True)


def equal_share(found: pa.Table, sides: dict[str, dict[str, NDArray[np.int64]]], settings: argparse.Namespace) -> float:
    """Return the share of the sampled records whose rows, with similarities, are those of comparing all."""
    left, right = sides["left"], sides["right"]
    rows: dict[int, list[tuple[int, float]]] = {}
    for one in found.select(["left", "right", "similarity"]).to_batches():
        columns = [one.column(number).to_pylist() for number in range(3)]
        for first, second, similarity in zip(*columns, strict=True):
            rows.setdefault(row_number(first), []).append((row_number(second), similarity))
    sample = np.random.default_rng(settings.seed).permutation(settings.rows)[: settings.sample].tolist()
    expected = {number: brute_force(number, left, right, settings.top) for number in sample}
    return sum(rows.get(number, []) == expected[number] for number in sample) / len(sample)


def row_number(identity: str) -> int:
    """Return the row of a default id, ``file:row``."""
    return int(identity.rpartition(":")[2])


def brute_force(
    number: int, left: dict[str, NDArray[np.int64]], right: dict[str, NDArray[np.int64]], top: int
) -> list[tuple[int, float]]:
    """Return the nearest records of one, by counting the elements that it shares with each."""
    query = left["elements"][left["offsets"][number] : left["offsets"][number + 1]]
    sizes = np.diff(right["offsets"])
    owners = np.repeat(np.arange(len(sizes)), sizes)
    shared = np.bincount(owners[np.isin(right["elements"], query)], minlength=len(sizes))
    similarity = shared / (len(query) + sizes - shared)
    order = np.lexsort((np.arange(len(sizes)), -similarity))[:top]
    return [(int(at), float(similarity[at])) for at in order if shared[at]]


def least(runs: Runs, name: str, figure: str) -> float:
    """Return the figure of the best round; everything above it is noise of the machine."""
    return float(min(run[figure] for run in runs[name]))


def ratios(runs: Runs, share: float) -> dict[str, float]:
    """Return the figures that have targets, in their order."""
    values = [
        least(runs, peer, figure) / least(runs, "minwise", figure)
        for figure in ("seconds", "cpu_seconds")
        for peer in PEERS
    ]
    return dict(zip(TARGETS, [*values, share], strict=True))


def row(named: tuple[str, list[dict[str, Any]]]) -> tuple[str, ...]:
    """Return the cells of a run: its best round."""
    name, runs = named
    best = {figure: min(run[figure] for run in runs) for figure in ("seconds", "cpu_seconds")}
    return (name, f"{best['seconds']:.2f}", f"{best['cpu_seconds']:.2f}", f"{runs[0]['peak_bytes'] / 1e6:,.0f}")


if __name__ == "__main__":
    main()
