"""Timing of an engine: load the texts, warm up, run some passes and print the times as JSON.

This module runs in the process and environment of the engine and needs only pyarrow.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# The first passes are up to 5 times slower because their memory is new to the process; the median ignores them.
MAX_PASSES = 7
ENOUGH_SECONDS = 25.0  # a slow engine makes fewer passes
WARM_UP_DOCUMENTS = 100

Texts = TypeVar("Texts")


def parse_job() -> argparse.Namespace:
    """Return the job given on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--scheme", required=True)
    parser.add_argument("--shingles", required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--limit-bytes", type=int, default=0, help="size of the first documents to use; 0 for all")
    return parser.parse_args()


def load_texts(path: Path, limit_bytes: int) -> pa.ChunkedArray:
    """Return the text column, or its shortest prefix of at least ``limit_bytes``."""
    chunks: list[pa.Array] = []
    held = 0
    for batch in pq.ParquetFile(path).iter_batches(batch_size=500, columns=["text"]):
        chunks.append(batch.column(0))
        held += text_bytes(chunks[-1])
        if limit_bytes and held >= limit_bytes:
            break
    return pa.chunked_array(chunks)


def text_bytes(texts: pa.Array | pa.ChunkedArray) -> int:
    """Return the length of all texts as UTF-8."""
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)


def time_passes(work: Callable[[], object]) -> list[dict[str, float]]:
    """Return wall and processor seconds of each pass."""
    passes: list[dict[str, float]] = []
    while len(passes) < MAX_PASSES and sum(timing["seconds"] for timing in passes) < ENOUGH_SECONDS:
        wall, processor = time.perf_counter(), time.process_time()
        work()
        passes.append({"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor})
    return passes


def report(passes: list[dict[str, float]], *, documents: int, size: int, packages: tuple[str, ...]) -> None:
    """Print the result of a run as one line of JSON."""
    result: dict[str, Any] = {"documents": documents, "text_bytes": size, "passes": passes, "load": os.getloadavg()[0]}
    result["versions"] = {name: version(name) for name in packages}
    print(json.dumps(result))


def time_sketching(
    job: argparse.Namespace,
    convert: Callable[[pa.ChunkedArray], Texts],
    sketch: Callable[[Texts], object],
    *,
    packages: tuple[str, ...],
) -> None:
    """Load the texts in the form that the engine expects, then time the computation of signatures."""
    column = load_texts(job.path, job.limit_bytes)
    documents, size = len(column), text_bytes(column)
    sketch(convert(column.slice(0, WARM_UP_DOCUMENTS)))
    texts = convert(column)
    del column
    passes = time_passes(lambda: sketch(texts))
    report(passes, documents=documents, size=size, packages=packages)


def as_list(column: pa.ChunkedArray) -> list[str]:
    """Return the texts as Python strings, the form that users of Python libraries have."""
    return list(column.to_pylist())
