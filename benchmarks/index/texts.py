"""Texts: a process of its own that adds texts to an index, ours on disk or datasketch's in memory, then asks for some.

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
QUESTIONS = 2_000
# Documents that are added with one call, and so durable with one sync.
BATCH = 10_000

Ask = Callable[[str], int]
Fill = Callable[[Any, Path], Ask]


def main() -> None:
    """Add, ask, and print how long both took."""
    engine, path, documents, folder = sys.argv[1:]
    texts = next(pq.ParquetFile(path).iter_batches(int(documents), columns=["text"])).column(0)
    fill = ours() if engine == "minwise" else theirs()
    start = time.perf_counter()
    ask = fill(texts, Path(folder))
    seconds = time.perf_counter() - start
    times, hits = [], 0
    for text in texts[:QUESTIONS].to_pylist():
        start = time.perf_counter()
        hits += ask(text) > 0
        times.append(time.perf_counter() - start)
    times.sort()
    found = {"seconds": seconds, "query_p50": times[len(times) // 2], "query_p99": times[len(times) * 99 // 100]}
    print(json.dumps({**found, "answered": hits / len(times), "version": version(engine)}))


def ours() -> Fill:
    """Return what adds to an index that stores shingles, durably."""
    import minwise as mw

    create = mw.Index.create  # naming it imports what it needs

    def fill(texts: Any, folder: Path) -> Ask:  # noqa: ANN401 - an Arrow array
        index = create(folder / "index.mw", threshold=THRESHOLD, slots=SLOTS)
        for first in range(0, len(texts), BATCH):
            batch = texts[first : first + BATCH]
            index.add(range(first, first + len(batch)), batch)
        return lambda text: len(index.query(text))

    return fill


def theirs() -> Fill:
    """Return what adds to datasketch's index in memory, sketching in its bulk way."""
    from datasketch import MinHash, MinHashLSH

    from benchmarks.speed.runners.shingling import word_shingles

    def fill(texts: Any, folder: Path) -> Ask:  # noqa: ANN401 - as above
        index = MinHashLSH(threshold=THRESHOLD, num_perm=SLOTS)
        sets = ([shingle.encode() for shingle in word_shingles(text)] for text in texts.to_pylist())
        for number, sketch in enumerate(MinHash.generator(sets, num_perm=SLOTS)):
            index.insert(number, sketch, check_duplication=False)

        def ask(text: str) -> int:
            (sketch,) = MinHash.bulk([[shingle.encode() for shingle in word_shingles(text)]], num_perm=SLOTS)
            return len(index.query(sketch))

        return ask

    return fill


if __name__ == "__main__":
    main()
