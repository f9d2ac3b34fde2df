"""Grouping of a long table that is larger than the memory budget."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import TORTURE

from reliability.test_bounded_memory import peak_memory

PARTS = 40 if TORTURE else 8
PART_ROWS = 1_000_000
USERS = 100_000
# The interpreter with Arrow takes 150 MB. Sorting all eight million rows at once would take 1 GB.
MAX_BYTES = 550 * 10**6


@pytest.mark.timeout(900)
def test_unordered_rows_are_grouped_within_the_memory_budget(tmp_path: Path) -> None:
    """Two users have the same movies; all others have none in common."""
    random = np.random.default_rng(5)
    schema = pa.schema([("user", pa.int64()), ("movie", pa.int64())])
    with pq.ParquetWriter(tmp_path / "long.parquet", schema) as writer:
        for part in range(PARTS):
            users = random.integers(2, USERS, PART_ROWS)
            movies = random.integers(0, 2**60, PART_ROWS)
            users[:2], movies[:2] = (0, 1), part
            writer.write_table(pa.table({"user": users, "movie": movies}, schema=schema))
    options = ("--group-by", "user", "--item", "movie", "--memory", "256MB")
    status, peak, error = peak_memory(tmp_path, "pairs", "long.parquet", "-o", "p.csv", *options)
    assert (status, error) == (0, "")
    assert 0 < peak < MAX_BYTES
    assert (tmp_path / "p.csv").read_text().splitlines() == ['"left","right","similarity"', "0,1,1"]
