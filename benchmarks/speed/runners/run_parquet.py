"""Baseline: reading the whole Parquet file with a warm page cache and the same number of cores."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed.runners.timing import parse_job, report, text_bytes, time_passes

if __name__ == "__main__":
    job = parse_job()
    pa.set_cpu_count(job.threads)
    table = pq.read_table(job.path)
    passes = time_passes(lambda: pq.read_table(job.path))
    report(passes, documents=table.num_rows, size=text_bytes(table["text"]), packages=("pyarrow",))
