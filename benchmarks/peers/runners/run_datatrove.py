"""datatrove: its four MinHash steps from Parquet to Parquet.

Its tasks read whole files, so the file is first split into one for each core, which takes a hundredth of the time.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found, unused-ignore]
from datatrove.pipeline.dedup.minhash import (  # type: ignore[import-not-found, unused-ignore]
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found, unused-ignore]
from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found, unused-ignore]

from benchmarks.peers.runners.pipeline import CODEC, Settings, parse_settings, report_versions

WORDS = 5
# The layout that datasketch and text-dedup choose for 256 slots and a threshold of 0.8; datatrove takes no threshold.
BANDS, ROWS = 17, 15


def run_steps(settings: Settings, folder: Path) -> None:
    """Run the four steps; ``folder`` receives signatures, pairs and clusters."""
    config = MinhashConfig(n_grams=WORDS, num_buckets=BANDS, hashes_per_bucket=ROWS)
    signatures, buckets, removed = (str(folder / name) for name in ("signatures", "buckets", "removed"))
    reader = ParquetReader(str(split_file(settings.source, folder / "parts", settings.threads)))
    writer = ParquetWriter(str(settings.output / "kept"), compression=CODEC)
    steps = [
        ([reader, MinhashDedupSignature(signatures, config)], settings.threads),
        ([MinhashDedupBuckets(signatures, buckets, config=config)], BANDS),
        ([MinhashDedupCluster(buckets, removed, config=config)], 1),
        ([reader, MinhashDedupFilter(removed), writer], settings.threads),
    ]
    for number, (pipeline, tasks) in enumerate(steps):
        logs = str(folder / f"logs-{number}")
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=settings.threads, logging_dir=logs).run()


def split_file(source: Path, folder: Path, parts: int) -> Path:
    """Write a file as ``parts`` files of equal length and return their folder."""
    folder.mkdir(parents=True)
    table = pq.read_table(source)
    rows = -(-table.num_rows // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * rows, rows), folder / f"part-{part}.parquet", compression=CODEC)
    return folder


if __name__ == "__main__":
    settings = parse_settings()
    run_steps(settings, settings.output / "work")
    report_versions(("datatrove", "numpy", "spacy"))
