"""Process that fills an index with passages of real text, or opens it and queries it for some of them.

``python -m benchmarks.index.passages build PATH PASSAGES.parquet`` and ``… use PATH PASSAGES.parquet``. The corpus has
clusters of thousands of near-duplicates, such as licence headers. Every part is a process of its own, so the first
round of queries finds no row in the memory of the index; the files are in the page cache of the system.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import minwise as mw
from minwise.index.lookup import SearchGoal

BATCH = 10_000
QUERIES = 2_500
# Queries whose answers are compared with those of a search without limits, which takes up to a second.
SAMPLE = 500
# Larger than any bucket or number of candidates.
UNLIMITED = 2**31
SEED = 7


def main() -> None:
    """Run one of the two parts and print the measurements."""
    job, path, passages = sys.argv[1:]
    part = build if job == "build" else use
    print(json.dumps(part(Path(path), Path(passages))))


def build(path: Path, passages: Path) -> dict[str, Any]:
    """Fill a new index with default settings."""
    start, first = time.perf_counter(), 0
    with mw.Index.create(path, seed=SEED) as index:
        for batch in pq.ParquetFile(passages).iter_batches(BATCH, columns=["text"]):
            index.add(range(first, first + len(batch)), batch.column(0))
            first += len(batch)
    return {"documents": first, "seconds": time.perf_counter() - start}


def use(path: Path, passages: Path) -> dict[str, Any]:
    """Query the index in two rounds, and measure the recall of both numbers of hits."""
    queries = distinct_texts(passages)
    open_index = mw.Index.open  # accessing the name triggers its lazy imports
    with open_index(path) as index:
        measured = {
            "queries": len(queries),
            **time_round(index, queries, "first"),
            **time_round(index, queries, "warm"),
        }
    with open_index(path) as index:
        measured |= time_round(index, queries, "first_1000", top=1000)
        sample = queries[:: len(queries) // SAMPLE]
        for top in (10, 1000):
            measured[f"recall_{top}"] = recall(index, sample, top)
    return measured


def distinct_texts(passages: Path) -> list[str]:
    """Return different texts, spread evenly over the corpus."""
    rows = pq.ParquetFile(passages).metadata.num_rows
    return list(dict.fromkeys(every_nth(passages, rows // QUERIES)))


def every_nth(passages: Path, step: int) -> Iterator[str]:
    """Yield the text of every ``step``-th row."""
    first = 0
    for batch in pq.ParquetFile(passages).iter_batches(BATCH, columns=["text"]):
        rows = range(-first % step, len(batch), step)
        yield from batch.column(0).take(list(rows)).to_pylist()
        first += len(batch)


def time_round(index: mw.Index, queries: Sequence[str], name: str, top: int = 10) -> dict[str, float]:
    """Return quantiles of the time of a query, and the share of answers that were cut short.

    A query runs on one thread, so ``_cpu`` is its processor time, without that of other processes.
    """
    times, answers = np.zeros((2, len(queries))), []
    for row, text in enumerate(queries):
        start = time.perf_counter(), time.thread_time()
        answers.append(index.query(text, top=top))
        times[:, row] = time.perf_counter() - start[0], time.thread_time() - start[1]
    quantiles = {
        f"{name}{clock}_p{percent}": float(np.percentile(row, percent))
        for clock, row in zip(("", "_cpu"), times, strict=True)
        for percent in (50, 99, 100)
    }
    truncated = float(np.mean([answer.truncated for answer in answers]))
    return {**quantiles, f"{name}_truncated": truncated, f"{name}_hits": float(np.mean([*map(len, answers)]))}


def recall(index: mw.Index, queries: Sequence[str], top: int) -> float:
    """Return the share of the most similar documents that answers contain; equal similarities are alike.

    The truth is the most similar of all documents that share a bucket with the text.
    """
    found = wanted = 0
    for text in queries:
        best, answer = all_similarities(index, text, top), index.query(text, top=top)
        wanted += len(best)
        found += min(len(best), sum(hit.similarity >= best[-1] for hit in answer)) if best else 0
    return found / wanted


def all_similarities(index: mw.Index, text: str, top: int) -> list[float]:
    """Return the highest similarities of all documents that share a bucket with a text, in descending order."""
    sketches, lookup = index._sketcher.sketch([text]), index._lookup
    goal = SearchGoal(index.plan.threshold, top, UNLIMITED, max_miss=0.0)
    with index._reading():
        limits = UNLIMITED, UNLIMITED
        ((_, comparison),) = lookup._compare_rows(sketches, [0], limits, goal)
        return [document.similarity for document in comparison.hits]


if __name__ == "__main__":
    main()
