"""Process that fills an index with sketches, or opens it, queries it and removes documents.

``python -m benchmarks.index.growth build PATH DOCUMENTS TEXTS.parquet`` and ``… use PATH TEXTS.parquet``.
Most sketches are random numbers; some are those of real texts, so that queries have hits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import minwise as mw
from benchmarks.processes import status_bytes
from minwise.sketches import Signatures

# 16 bands and 64 slots, of which 16 bits each are stored: a sketch of 128 bytes.
LAYOUT: dict[str, Any] = {"threshold": 0.6, "bands": 16, "rows": 4, "sketch_only": True, "seed": 7}
BATCH = 50_000
# Number of real texts, which form the first batch.
TEXTS = 50_000
QUERIES = 5_000
REMOVALS = 50_000


def main() -> None:
    """Run one of the two parts and print the measurements."""
    job, path, *rest = sys.argv[1:]
    measured = build(Path(path), int(rest[0]), Path(rest[1])) if job == "build" else use(Path(path), Path(rest[0]))
    print(json.dumps(measured))


def texts_of(path: Path, count: int) -> pa.Array:
    """Return the first texts of a file."""
    return next(pq.ParquetFile(path).iter_batches(count, columns=["text"])).column(0)


def build(path: Path, documents: int, texts: Path) -> dict[str, Any]:
    """Fill a new index batch by batch; the seconds include only the calls that add."""
    seconds: list[float] = []
    with mw.Index.create(path, **LAYOUT) as index:
        for number, signatures in enumerate(batches(index, documents, texts)):
            ids = [f"document-{row:08}" for row in range(number * BATCH, number * BATCH + len(signatures))]
            start = time.perf_counter()
            index.add_signatures(ids, signatures)
            seconds.append(time.perf_counter() - start)
        stats = index.stats()
    whole = sum(file.stat().st_size for file in path.iterdir())
    return {
        "documents": stats["documents"],
        "seconds": sum(seconds),
        "batch_seconds": seconds,
        "segments": len(stats["segments"]),
        "bytes_per_document": whole / stats["documents"],
    }


def batches(index: mw.Index, documents: int, texts: Path) -> Iterator[Signatures]:
    """Yield the sketches of real texts, then random sketches."""
    real = index.scheme.sketch_texts(texts_of(texts, TEXTS), index.shingler)
    yield real
    random = np.random.default_rng(1)
    for done in range(len(real), documents, BATCH):
        shape = (min(BATCH, documents - done), real.slots.shape[1])
        slots = random.integers(0, 2**64, size=shape, dtype=np.uint64)
        yield Signatures(slots, settings=real.settings, shingle_settings=real.shingle_settings)


def use(path: Path, texts: Path) -> dict[str, Any]:
    """Open the index, query it for real texts and remove some documents; the memory is that of an open index."""
    texts_to_query = texts_of(texts, QUERIES).to_pylist()
    open_index = mw.Index.open  # accessing the name triggers its lazy imports
    before = status_bytes(os.getpid(), "RssAnon")
    start = time.perf_counter()
    with open_index(path) as index:
        opening = time.perf_counter() - start
        answers = [timed_query(index, text) for text in texts_to_query]  # the first round warms the page cache
        answers = [timed_query(index, text) for text in texts_to_query]
        resident = status_bytes(os.getpid(), "RssAnon") - before
        documents = len(index)
    times = [seconds for seconds, _ in answers]
    return {
        "documents": documents,
        "open_seconds": opening,
        "resident_bytes": resident,
        "query_p50": float(np.percentile(times, 50)),
        "query_p99": float(np.percentile(times, 99)),
        "answered": float(np.mean([hits > 0 for _, hits in answers])),
        "text_bytes": float(np.mean([len(text.encode()) for text in texts_to_query])),
        "removed_per_second": removals(path),
    }


def timed_query(index: mw.Index, text: str) -> tuple[float, int]:
    """Return the seconds of a query and its number of hits."""
    start = time.perf_counter()
    hits = len(index.query(text))
    return time.perf_counter() - start, hits


def removals(path: Path) -> float:
    """Return the number of documents removed per second."""
    with mw.Index.open(path, "w") as index:
        ids = [f"document-{number:08}" for number in range(TEXTS, TEXTS + REMOVALS)]
        start = time.perf_counter()
        removed = index.remove(ids)
        return removed / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
