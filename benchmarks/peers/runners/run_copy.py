"""Lower bound: pyarrow reads the file and writes it again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.runners.pipeline import parse_settings, report_versions, write_kept

if __name__ == "__main__":
    settings = parse_settings()
    pa.set_cpu_count(settings.threads)
    write_kept(pq.read_table(settings.source), settings.output)
    report_versions(())
