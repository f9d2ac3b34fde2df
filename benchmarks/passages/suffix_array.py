"""Process that builds a suffix array over the bytes of a corpus with pydivsufsort.

``python -m benchmarks.passages.suffix_array CORPUS.parquet``. The array is what tools for exact substrings build first;
finding and merging the repeats comes on top.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pyarrow.parquet as pq


def main() -> None:
    """Build the array and print the time."""
    from pydivsufsort import divsufsort  # type: ignore[import-untyped, import-not-found, unused-ignore]

    texts = pq.read_table(sys.argv[1], columns=["text"]).column(0)
    joined = np.frombuffer(
        bytearray("\0".join(texts.to_pylist()).encode()), dtype=np.uint8
    )  # it refuses read-only bytes
    start, cpu_start = time.perf_counter(), time.process_time()
    array = divsufsort(joined)
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    print(json.dumps({**spent, "text_bytes": len(joined), "entries": len(array), "version": version("pydivsufsort")}))


if __name__ == "__main__":
    main()
