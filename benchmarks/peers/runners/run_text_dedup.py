"""text-dedup: its own command on all cores. It writes Arrow files, which are then converted to Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from benchmarks.peers.runners.pipeline import parse_settings, report_versions, write_kept

WORDS = 5
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # it needs no remote files


def run_command(
    source: Path, output: Path, *flags: str, words: int, slots: int, threshold: float, processes: int
) -> None:
    """Run ``text_dedup.minhash``, which writes Arrow files to ``output``, with an empty cache next to it."""
    cache = output.with_name("cache")
    options = {
        "path": "parquet",
        "data_files": source,
        "split": "train",
        "cache_dir": cache,
        "output": output,
        "column": "text",
        "ngram": words,
        "min_length": 1,
        "num_perm": slots,
        "threshold": threshold,
        "num_proc": processes,
        "hash_func": "xxh3",
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "text_dedup.minhash", *arguments, *flags]
    subprocess.run(command, env={**os.environ, **OFFLINE, "HF_HOME": str(cache)}, stdout=sys.stderr, check=True)


def read_arrow_files(folder: Path) -> pa.Table:
    """Return the documents that the command kept."""
    return pa.concat_tables(pa.ipc.open_stream(path).read_all() for path in sorted(folder.glob("*.arrow")))


if __name__ == "__main__":
    settings = parse_settings()
    settings.output.mkdir(parents=True)
    run_command(
        settings.source,
        settings.output / "arrow",
        words=WORDS,
        slots=settings.slots,
        threshold=settings.threshold,
        processes=settings.threads,
    )
    write_kept(read_arrow_files(settings.output / "arrow"), settings.output)
    report_versions(("text-dedup", "datasets", "numpy"))
