"""Common parts of the runs of peers: reading the file and writing the kept documents.

This module runs in the environments of the peers and needs only pyarrow.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CODEC = "zstd"  # the codec of the corpus

Settings = argparse.Namespace
ChooseKept = Callable[[list[str], Settings], list[bool]]


def parse_settings() -> Settings:
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path, help="Parquet file with a column text")
    parser.add_argument("output", type=Path, help="folder for kept/kept.parquet")
    parser.add_argument("--scheme", required=True)
    parser.add_argument("--threshold", type=float, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def deduplicate(choose_kept: ChooseKept, *, packages: tuple[str, ...]) -> None:
    """Read the texts, let the peer choose the kept ones and write them."""
    settings = parse_settings()
    table = pq.read_table(settings.source)
    kept = choose_kept(table["text"].to_pylist(), settings)
    write_kept(table.filter(pa.array(kept)), settings.output)
    report_versions(packages)


def write_kept(table: pa.Table, output: Path) -> None:
    """Write the kept documents."""
    (output / "kept").mkdir(parents=True)
    pq.write_table(table, output / "kept" / "kept.parquet", compression=CODEC)


def report_versions(packages: tuple[str, ...]) -> None:
    """Print the versions of the packages as one line of JSON."""
    print(json.dumps({name: version(name) for name in (*packages, "pyarrow")}))
