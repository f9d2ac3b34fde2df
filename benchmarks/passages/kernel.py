"""Process that times the kernel on texts in memory: the scan of ``passages`` and that of ``dedup``.

``python -m benchmarks.passages.kernel passages|dedup CORPUS.parquet MEGABYTES``
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from minwise.options import DedupOptions
from minwise.search.bands import Bander, KeyBlock
from minwise.search.passages import passage_scanner
from minwise.settings import PassageSettings, resolve_options, search_settings
from minwise.text.chunks import text_chunk

BATCH_BYTES = 1 << 25


def read_texts(path: str, most: int) -> list[pa.Array]:
    """Return the first texts of a file in batches, of at most so many bytes in all."""
    batches: list[pa.Array] = []
    for batch in pq.ParquetFile(path).iter_batches(1000, columns=["text"]):
        most -= batch.column(0).nbytes
        if most < 0:
            break
        batches.append(batch.column(0))
    return batches


def scan_of(job: str) -> Callable[[pa.Array], object]:
    """Return the kernel call of the first pass for a batch of texts."""
    options = {"shingle": "word:1"} if job == "passages" else {}
    settings = search_settings(resolve_options(DedupOptions, [], options))
    if job == "dedup":
        bander = Bander(settings)
        return lambda texts: bander.band(texts, KeyBlock.allocate(settings, len(texts)), 0)
    scanner = passage_scanner(settings, PassageSettings(50), BATCH_BYTES, lambda partitions: None)

    def scan(texts: pa.Array) -> object:
        chunk = text_chunk(texts)
        return scanner.scan(chunk.offsets, chunk.data, np.arange(len(texts), dtype=np.uint32), 0)

    return scan


def main() -> None:
    """Scan all texts once to warm up, and once with the clock."""
    job, path, megabytes = sys.argv[1:]
    batches, scan = read_texts(path, int(megabytes) * 1_000_000), scan_of(job)
    spent: dict[str, float] = {}
    for _ in range(2):
        start, cpu_start = time.perf_counter(), time.process_time()
        for texts in batches:
            scan(texts)
        spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    print(json.dumps({**spent, "text_bytes": sum(texts.nbytes for texts in batches)}))


if __name__ == "__main__":
    main()
