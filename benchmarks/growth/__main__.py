"""Cost of growth: ``python -m benchmarks.growth`` adds one percent to a corpus that an earlier run deduplicated.

The new documents are deduplicated alone, against the kept rows of the earlier run, and against its saved state, with
and without saving a state again; and all documents in one run. All runs have the same settings and read Parquet of
``benchmarks.scale``, in which copies of a cluster are scattered over all documents. The runs against kept rows and
against the state must keep the same bytes.
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.scale.jobs import ScaleJob, prepare
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, align_rows, figure_table

# New documents, as one of so many old ones.
SHARE = 100
NEW_ALONE, ALL, OLD, KEPT_ROWS, STATE, SAVED = (
    *("new alone", "all in one run", "old, saved", "against kept rows", "against the state"),
    "against the state, saved",
)
TARGETS = {
    figure: Target(figure=figure, wanted=wanted, at_most=True)
    for figure, wanted in (("times the run of the new documents alone", 2), ("share of the run over all", 0.05))
}
Runs = dict[str, list[dict[str, Any]]]


def main() -> None:
    """Run the benchmark."""
    given = parse_settings()
    total = given.documents + given.documents // SHARE
    corpus, shards = prepare(ScaleJob(name="growth", kind="mixed", documents=total, memory=given.memory))
    with tempfile.TemporaryDirectory(prefix="growth-", dir=given.folder or cache_dir()) as folder:
        old, new = divide(shards, given.documents, Path(folder))
        runs = measure(old, new, Path(folder), given)
    figures = dict(zip(TARGETS, ratios(runs), strict=True))
    header = ("run", "seconds", "processor s", "peak MB", "read", "kept")
    print(align_rows([header, *(row(name, done) for name, done in runs.items())], text_columns=1))
    print(f"\n{figure_table(figures, TARGETS)}")
    if given.record:
        content = {"settings": vars(given), "corpus": asdict(corpus), "runs": runs, "figures": figures}
        print(f"written to {write_json(content, benchmark='growth')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("growth", __doc__)
    parser.add_argument("--documents", type=lambda text: int(float(text)), default=10_000_000, help="old documents")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command on the new documents (default 3)")
    parser.add_argument("--memory", default="4GB", help="memory limit of all commands (default 4GB)")
    parser.add_argument("--folder", help="where outputs are written (default: the cache)")
    return parser.parse_args()


def divide(shards: Sequence[Path], documents: int, folder: Path) -> tuple[list[Path], Path]:
    """Return the files of the first documents, and one of all others."""
    old, rest, first = list[Path](), folder / "new.parquet", 0
    for shard in shards:
        rows = pq.read_metadata(shard).num_rows
        if first + rows <= documents:
            old.append(shard)
        else:
            table = pq.read_table(shard)
            if first < documents:
                old.append(folder / "old.parquet")
                pq.write_table(table.slice(0, documents - first), old[-1])
            pq.write_table(table.slice(max(0, documents - first)), rest)
        first += rows
    return old, rest


def measure(old: Sequence[Path], new: Path, folder: Path, given: argparse.Namespace) -> Runs:
    """Run all commands; those on the new documents alternately."""
    earlier = folder / "earlier"
    runs: Runs = {OLD: [dedup(old, earlier, given, "--save-state")]}
    runs[ALL] = [dedup([*old, new], folder / "all", given)]
    shutil.rmtree(folder / "all")
    against = ("--against-run", str(earlier))
    for _ in range(given.rounds):
        for name, options in new_runs(against):
            if name == KEPT_ROWS:
                (earlier / "state").rename(folder / "state")
            runs.setdefault(name, []).append(dedup([new], folder / name, given, *options))
            if name == KEPT_ROWS:
                (folder / "state").rename(earlier / "state")
        check_same(folder / KEPT_ROWS, folder / STATE)
        for name, _ in new_runs(against):
            shutil.rmtree(folder / name)
    return runs


def new_runs(against: tuple[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the runs on the new documents, with their options."""
    yield NEW_ALONE, ()
    yield KEPT_ROWS, against
    yield STATE, against
    yield SAVED, (*against, "--save-state")


def dedup(sources: Sequence[Path], output: Path, given: argparse.Namespace, *options: str) -> dict[str, Any]:
    """Run dedup and return time, memory and counts."""
    shared = ("--overwrite", "--quiet", "--json", "--memory", given.memory)
    command = [sys.executable, "-m", "minwise", "dedup", *map(str, sources), "-o", str(output), *shared, *options]
    run = run_measured(command)
    result = run.result("dedup")
    measured = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "peak_bytes": run.peak_bytes, "load": run.load}
    done = {
        **measured,
        **{name: result["counts"][name] for name in ("read", "kept")},
        "stages": result["run"]["stages"],
    }
    print(f"{output.name}: {run.seconds:.1f} s, {run.cpu_seconds:.1f} processor s", flush=True)
    return done


def check_same(first: Path, second: Path) -> None:
    """Raise if two outputs differ in kept rows or tables."""
    names = [path.relative_to(first).as_posix() for path in (first / "kept").rglob("*") if path.is_file()]
    _, different, missing = filecmp.cmpfiles(first, second, [*names, "removed.parquet", "clusters.parquet"], False)
    if different or missing:
        raise SystemExit(f"{first} and {second} must be the same, got other {different} {missing}")


def ratios(runs: Runs) -> tuple[float, float]:
    """Return the processor seconds against the state divided by those of the new documents alone, and of all."""
    seconds = {name: min(run["cpu_seconds"] for run in done) for name, done in runs.items()}
    return seconds[STATE] / seconds[NEW_ALONE], seconds[STATE] / seconds[ALL]


def row(name: str, runs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of a run: its best round, and its largest memory."""
    seconds, cpu = (f"{min(run[figure] for run in runs):.2f}" for figure in ("seconds", "cpu_seconds"))
    peak = max(run["peak_bytes"] for run in runs)
    return name, seconds, cpu, f"{peak / 1e6:,.0f}", f"{runs[0]['read']:,}", f"{runs[0]['kept']:,}"


if __name__ == "__main__":
    main()
