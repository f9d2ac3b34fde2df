"""text-dedup: its own command, on all cores. It writes Arrow files, which are then written as Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from benchmarks.peers.runners.pipeline import parse_settings, report_versions, write_kept

WORDS = 5
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # nothing it needs lies elsewhere


def run_command(
    source: Path, output: Path, *flags: str, words: int, slots: int, threshold: float, processes: int
) -> None:
    """Run ``text_dedup.minhash`` and leave its Arrow files in ``output``; its cache beside it starts empty."""
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
    settings = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "text_dedup.minhash", *settings, *flags]
    subprocess.run(command, env={**os.environ, **OFFLINE, "HF_HOME": str(cache)}, stdout=sys.stderr, check=True)


def read_arrow_files(folder: Path) -> pa.Table:
    """Return what the command kept."""
    return pa.concat_tables(pa.ipc.open_stream(path).read_all() for path in sorted(folder.glob("*.arrow")))


if __name__ == "__main__":
    chosen = parse_settings()
    chosen.output.mkdir(parents=True)
    run_command(
        chosen.source,
        chosen.output / "arrow",
        words=WORDS,
        slots=chosen.slots,
        threshold=chosen.threshold,
        processes=chosen.threads,
    )
    write_kept(read_arrow_files(chosen.output / "arrow"), chosen.output)
    report_versions(("text-dedup", "datasets", "numpy"))
