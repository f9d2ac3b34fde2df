"""text-dedup: its own command, on all cores. It writes Arrow files, which are then written as Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from benchmarks.endtoend.runners.pipeline import Settings, parse_settings, report_versions, write_kept

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # nothing it needs lies elsewhere


def run_command(settings: Settings, folder: Path) -> None:
    """Run ``text_dedup.minhash`` and leave its Arrow files in ``folder``; its cache beside it starts empty."""
    cache = folder.with_name("cache")
    options = {
        "path": "parquet",
        "data_files": settings.source,
        "split": "train",
        "cache_dir": cache,
        "output": folder,
        "column": "text",
        "ngram": 5,
        "min_length": 1,
        "num_perm": settings.slots,
        "threshold": settings.threshold,
        "num_proc": settings.threads,
        "hash_func": "xxh3",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "text_dedup.minhash", *words]
    subprocess.run(command, env={**os.environ, **OFFLINE, "HF_HOME": str(cache)}, stdout=sys.stderr, check=True)


def read_arrow_files(folder: Path) -> pa.Table:
    """Return what the command kept."""
    return pa.concat_tables(pa.ipc.open_stream(path).read_all() for path in sorted(folder.glob("*.arrow")))


if __name__ == "__main__":
    chosen = parse_settings()
    chosen.output.mkdir(parents=True)
    run_command(chosen, chosen.output / "arrow")
    write_kept(read_arrow_files(chosen.output / "arrow"), chosen.output)
    report_versions(("text-dedup", "datasets", "numpy"))
