"""text-dedup with `check_false_positive`, which compares the sets of all pairs inside each cluster, on all cores.

Its command reads its settings from the file ``config.toml`` in the current folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.runners.pipeline import parse_settings, write_kept
from benchmarks.peers.runners.run_text_dedup import OFFLINE, WORDS, read_arrow_files


def run_command(
    source: Path, output: Path, *, words: int, slots: int, threshold: float, processes: int, seed: int = 42
) -> None:
    """Run ``text_dedup.minhash``, which writes Arrow files and clusters to ``output``; its cache is next to it."""
    cache = output.with_name("cache")
    cache.mkdir(parents=True)
    sections: dict[str, Mapping[str, str | float]] = {
        "input": {"input_type": "local_files", "file_type": "parquet"},
        "input.read_arguments": {
            "path": "parquet",
            "data_files": str(source.resolve()),
            "split": "train",
            "cache_dir": str(cache),
        },
        "algorithm": {
            "algorithm_name": "minhash",
            "text_column": "text",
            "ngram_size": words,
            "min_length": 1,
            "num_perm": slots,
            "threshold": threshold,
            "seed": seed,
            "num_proc": processes,
            "check_false_positive": True,
        },
        "output": {"output_dir": str(output), "save_clusters": True},
        "debug": {},
    }
    (cache / "config.toml").write_text("\n".join(map(toml_section, sections.items())), encoding="utf-8")
    variables = {**os.environ, **OFFLINE, "HF_HOME": str(cache), "POLARS_MAX_THREADS": str(processes)}
    command = [sys.executable, "-m", "text_dedup.minhash"]
    subprocess.run(command, cwd=cache, env=variables, stdout=sys.stderr, check=True)


def toml_section(section: tuple[str, Mapping[str, str | float]]) -> str:
    """Return a section of a TOML file; JSON writes strings, numbers and truth values in the same way."""
    name, values = section
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


if __name__ == "__main__":
    settings = parse_settings()
    output = settings.output.resolve()
    run_command(
        settings.source,
        output / "arrow",
        words=WORDS,
        slots=settings.slots,
        threshold=settings.threshold,
        processes=settings.threads,
    )
    write_kept(read_arrow_files(output / "arrow").select(["id", "text"]), output)
    print(json.dumps({"text-dedup checked": version("text-dedup")}))
