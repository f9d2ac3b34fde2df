"""Process that compares the time to add one document durably with one sync of the same file system.

``python -m benchmarks.index.single TEXTS.parquet FOLDER``. Syncs and additions alternate, so that both see the same
state of the disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import minwise as mw

ROUNDS = 1_000
# Approximate number of bytes that adding a text of 2 kB appends to the log.
APPENDED_BYTES = 3 * 4096


def main() -> None:
    """Measure both and print their medians."""
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    texts = next(pq.ParquetFile(path).iter_batches(ROUNDS, columns=["text"])).column(0).to_pylist()
    index = mw.Index.create(folder / "single.mw")
    file = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT)
    syncs, additions = [], []
    for number, text in enumerate(texts):
        os.pwrite(file, os.urandom(APPENDED_BYTES), number * APPENDED_BYTES)
        start = time.perf_counter()
        os.fsync(file)
        syncs.append(time.perf_counter() - start)
        start = time.perf_counter()
        index.add([number], [text])
        additions.append(time.perf_counter() - start)
    syncs.sort()
    additions.sort()
    middle, late = ROUNDS // 2, ROUNDS * 99 // 100
    print(
        json.dumps(
            {
                "sync_p50": syncs[middle],
                "add_p50": additions[middle],
                "sync_p99": syncs[late],
                "add_p99": additions[late],
            }
        )
    )


if __name__ == "__main__":
    main()
