"""Process that adds texts to an index of minwise on disk or of datasketch in memory, then queries some of them.

``python -m benchmarks.index.texts minwise|datasketch TEXTS.parquet DOCUMENTS FOLDER``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

THRESHOLD, SLOTS = 0.8, 256
QUERIES = 2_000
# Documents per call; each call is made durable by one sync.
BATCH = 10_000

Query = Callable[[str], int]
Fill = Callable[[Any, Path], Query]


def main() -> None:
    """Add and query texts, and print the times."""
    engine, path, documents, folder = sys.argv[1:]
    texts = next(pq.ParquetFile(path).iter_batches(int(documents), columns=["text"])).column(0)
    fill = minwise_index() if engine == "minwise" else datasketch_index()
    start = time.perf_counter()
    query = fill(texts, Path(folder))
    seconds = time.perf_counter() - start
    times, hits = [], 0
    for text in texts[:QUERIES].to_pylist():
        start = time.perf_counter()
        hits += query(text) > 0
        times.append(time.perf_counter() - start)
    times.sort()
    found = {"seconds": seconds, "query_p50": times[len(times) // 2], "query_p99": times[len(times) * 99 // 100]}
    print(json.dumps({**found, "answered": hits / len(times), "version": version(engine)}))


def minwise_index() -> Fill:
    """Return a function that fills an index with stored shingles, durably."""
    import minwise as mw

    create = mw.Index.create  # accessing the name triggers its lazy imports

    def fill(texts: Any, folder: Path) -> Query:  # noqa: ANN401 - an Arrow array
        index = create(folder / "index.mw", threshold=THRESHOLD, slots=SLOTS)
        for first in range(0, len(texts), BATCH):
            batch = texts[first : first + BATCH]
            index.add(range(first, first + len(batch)), batch)
        return lambda text: len(index.query(text))

    return fill


def datasketch_index() -> Fill:
    """Return a function that fills an index of datasketch in memory, using its bulk sketching."""
    from datasketch import MinHash, MinHashLSH

    from benchmarks.speed.runners.shingling import word_shingles

    def fill(texts: Any, folder: Path) -> Query:  # noqa: ANN401 - an Arrow array
        index = MinHashLSH(threshold=THRESHOLD, num_perm=SLOTS)
        sets = ([shingle.encode() for shingle in word_shingles(text)] for text in texts.to_pylist())
        for number, sketch in enumerate(MinHash.generator(sets, num_perm=SLOTS)):
            index.insert(number, sketch, check_duplication=False)

        def query(text: str) -> int:
            (sketch,) = MinHash.bulk([[shingle.encode() for shingle in word_shingles(text)]], num_perm=SLOTS)
            return len(index.query(sketch))

        return query

    return fill


if __name__ == "__main__":
    main()
