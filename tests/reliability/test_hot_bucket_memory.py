"""Memory of the Spark task that receives the entries of a hot bucket. No cluster is needed."""

from pathlib import Path

import pytest
from support.peak_memory import run_measured

pytest.importorskip("pyspark")

PROGRAM = """
import sys
import numpy as np
from minwise.spark.band_tasks import count_pairs, entry_blocks, group_entries
from minwise.spark.blocks import rows_of_blocks

STEP = 1 << 20
documents = int(sys.argv[1])

def rows():
    for first in range(0, documents, STEP):
        ranks = np.arange(first, first + STEP, dtype=np.uint32)
        yield from rows_of_blocks(entry_blocks(np.full((STEP, 1), 7, dtype=np.uint64), ranks, 1))

pairs = sum(int(count_pairs(groups.buckets).sum()) for _, groups, _ in group_entries(rows(), 2000, 0))
assert pairs == 16 * (documents - 16) + 120, pairs
"""
SMALL, LARGE = 12 << 20, 36 << 20
# A member of a hot bucket is four bytes of a mapped file, whose pages count while they are in memory. The rest allows
# for how the system counts. Sorting in memory took 28 bytes, and holding the blocks 13 more.
MEMBER_BYTES = 8


def test_a_hot_bucket_takes_no_more_memory_than_its_file(tmp_path: Path) -> None:
    small, large = (run_measured(tmp_path, str(documents), python=PROGRAM) for documents in (SMALL, LARGE))
    assert (small.status, large.status) == (0, 0), small.error + large.error
    assert large.peak - small.peak < MEMBER_BYTES * (LARGE - SMALL)
