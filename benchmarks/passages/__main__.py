"""Entry point of ``python -m benchmarks.passages``: repeated passages beside dedup and a suffix array, in one run.

All ratios are of figures of one run. Processor seconds are recorded beside wall time, because they depend less on what
else the machine does.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.environments import peer_python
from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir, prepare_corpus
from benchmarks.targets import Target, align_rows, figure_table

PEER = "pydivsufsort"
SMALL_MEMORY = "256MB"
SAMPLE_SECONDS = 0.05
TARGETS = {
    target.figure: target
    for target in (
        Target(figure="times the processor seconds of dedup", wanted=1.0, at_most=True),
        Target(figure="times the seconds of dedup", wanted=1.0, at_most=True),
        Target(figure="times the processor seconds of the kernel of dedup", wanted=0.5, at_most=True),
        Target(figure=f"MB of memory with --memory {SMALL_MEMORY}", wanted=556, at_most=True),
        Target(figure="bytes of work files per byte of text", wanted=0.6, at_most=True),
        Target(figure="times the processor seconds for twice the text", wanted=2.2, at_most=True),
        Target(figure="times as fast as a suffix array, in processor seconds", wanted=1),
    )
}
Runs = dict[str, list[dict[str, Any]]]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    corpus = prepare_corpus("source", settings.megabytes)
    peer = peer_python(PEER)
    with tempfile.TemporaryDirectory(prefix="passages-", dir=cache_dir()) as name:
        folder = Path(name)
        parts = {share: first_texts(corpus.path, corpus.text_bytes // share, folder) for share in (4, 2)}
        small = first_texts(corpus.path, settings.suffix_megabytes * 1_000_000, folder)
        runs: Runs = {}
        for _ in range(settings.rounds):
            measure_commands(runs, {1: corpus.path, **parts}, folder)
            measure_kernels(runs, corpus.path, settings.megabytes)
            add(runs, "passages, small", run_command("passages", small, folder))
            add(runs, "suffix array, small", run_module("suffix_array", str(small), python=str(peer)))
    figures = ratios(runs, corpus.text_bytes)
    print(f"\n{corpus.text_bytes / 1e6:,.0f} MB of {corpus.note}; small: {settings.suffix_megabytes} MB")
    print(align_rows([("run", "seconds", "processor s", "peak MB"), *map(row, runs.items())], text_columns=1))
    print(f"\n{figure_table(figures, TARGETS)}")
    if settings.record:
        content = {"settings": vars(settings), "corpus": asdict(corpus), "runs": runs, "figures": figures}
        print(f"written to {write_json(content, benchmark='repeated-passages')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("passages", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command (default 3)")
    parser.add_argument("--megabytes", type=int, default=1300, help="size of the corpus")
    parser.add_argument("--suffix-megabytes", type=int, default=300, help="size of the text of the suffix array")
    return parser.parse_args()


def first_texts(source: Path, most: int, folder: Path) -> Path:
    """Write the first documents of a file, up to so many bytes of text, and return the new file."""
    path = folder / f"first-{most}.parquet"
    with pq.ParquetWriter(path, pq.read_schema(source), compression="zstd") as writer:
        for batch in pq.ParquetFile(source).iter_batches(500):
            if most <= 0:
                break
            writer.write_batch(batch)
            most -= pc.sum(pc.binary_length(batch.column("text"))).as_py()
    return path


def measure_commands(runs: Runs, files: dict[int, Path], folder: Path) -> None:
    """Run passages and dedup on the corpus, and passages on its parts and with little memory."""
    add(runs, "passages", run_command("passages", files[1], folder))
    add(runs, "dedup", run_command("dedup", files[1], folder))
    add(runs, "passages, 1/2", run_command("passages", files[2], folder))
    add(runs, "passages, 1/4", run_command("passages", files[4], folder))
    little = run_command("passages", files[1], folder, "--memory", SMALL_MEMORY, "--work", str(folder / "work"))
    add(runs, "passages, little memory", little)


def measure_kernels(runs: Runs, corpus: Path, megabytes: int) -> None:
    """Run the kernel of the first pass on texts in memory."""
    for job in ("passages", "dedup"):
        add(runs, f"kernel of {job}", run_module("kernel", job, str(corpus), str(megabytes)))


def add(runs: Runs, name: str, run: dict[str, Any]) -> None:
    """Add a run and print it."""
    runs.setdefault(name, []).append(run)
    print("  ".join(row((name, [run]))), flush=True)


def run_command(command: str, source: Path, folder: Path, *options: str) -> dict[str, Any]:
    """Run a command of minwise and return time, memory, and the largest size of its work directory."""
    output = folder / ("found.parquet" if command == "passages" else "kept")
    words = [
        sys.executable,
        "-m",
        "minwise",
        command,
        str(source),
        "-o",
        str(output),
        "--overwrite",
        "--json",
        *options,
    ]
    with watched_size(folder / "work") as size:
        run = run_measured(words)
    result = run.result(command)
    for made in (output, folder / "work"):
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    measured = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "peak_bytes": run.peak_bytes, "load": run.load}
    return {**measured, "work_bytes": size[0], "found": result.get("passages")}


def run_module(name: str, *arguments: str, python: str = sys.executable) -> dict[str, Any]:
    """Run a module of this package, which times itself."""
    run = run_measured([python, "-m", f"benchmarks.passages.{name}", *arguments])
    return {**run.result(name), "peak_bytes": run.peak_bytes, "load": run.load}


@contextmanager
def watched_size(folder: Path) -> Iterator[list[int]]:
    """Give a list that has the largest size of a directory, sampled, after the block."""
    size, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            size[0] = max(size[0], sum(bytes_of(path) for path in folder.glob("*")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield size
    finally:
        done.set()
        watcher.join()


def bytes_of(path: Path) -> int:
    """Return the size of a file; 0 if it has been deleted."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def least(runs: Runs, name: str, figure: str = "cpu_seconds") -> float:
    """Return the figure of the best round; everything above it is noise of the machine."""
    return float(min(run[figure] for run in runs[name]))


def ratios(runs: Runs, text_bytes: int) -> dict[str, float]:
    """Return the figures that have targets, in their order."""
    little = "passages, little memory"
    values = (
        least(runs, "passages") / least(runs, "dedup"),
        least(runs, "passages", "seconds") / least(runs, "dedup", "seconds"),
        least(runs, "kernel of passages") / least(runs, "kernel of dedup"),
        max(run["peak_bytes"] for run in runs[little]) / 1e6,
        max(run["work_bytes"] for run in runs[little]) / text_bytes,
        (least(runs, "passages") / least(runs, "passages, 1/4")) ** 0.5,
        least(runs, "suffix array, small") / least(runs, "passages, small"),
    )
    return dict(zip(TARGETS, values, strict=True))


def row(named: tuple[str, list[dict[str, Any]]]) -> tuple[str, ...]:
    """Return the cells of a run: its best round."""
    name, runs = named
    best = {figure: min(run[figure] for run in runs) for figure in ("seconds", "cpu_seconds")}
    return (name, f"{best['seconds']:.2f}", f"{best['cpu_seconds']:.2f}", f"{runs[0]['peak_bytes'] / 1e6:,.0f}")


if __name__ == "__main__":
    main()
