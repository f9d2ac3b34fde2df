"""Corpora of the benchmark: folders of Parquet files with the columns ``id`` and ``text``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.passages import MAX_DOCUMENTS, prepare_passages
from benchmarks.scale.jobs import ScaleJob, prepare
from benchmarks.speed.corpus import SCHEMA, cache_dir, read_documents, row_groups

FILES = 8  # so that each of a few cores has several to read and to write


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCorpus:
    """Folder of documents.

    Attributes:
        folder: Path of the folder.
        documents: Number of documents.
        text_bytes: Length of all texts as UTF-8.
        sha256: Of all texts in order, each followed by a NUL byte.
        note: Description of the documents.
    """

    folder: str
    documents: int
    text_bytes: int
    sha256: str
    note: str


def passages(documents: int) -> SparkCorpus:
    """Return passages spread evenly over the million of `benchmarks.peers`, divided into files."""
    folder = cache_dir() / "spark" / f"passages-{documents}-in-{FILES}"
    if not (folder / "_corpus.json").exists():
        print(f"dividing {documents:,} passages into files ...", flush=True)
        corpus = write_passages(folder, documents)
        (folder / "_corpus.json").write_text(json.dumps(asdict(corpus), indent=1) + "\n", encoding="utf-8")
    return SparkCorpus(**json.loads((folder / "_corpus.json").read_text(encoding="utf-8")))


def write_passages(folder: Path, documents: int) -> SparkCorpus:
    """Write every n-th of the million passages to files with equal numbers of documents."""
    folder.mkdir(parents=True, exist_ok=True)
    million = prepare_passages(MAX_DOCUMENTS)
    step = million.documents // documents
    chosen = islice(read_documents(million.path), 0, None, step)
    digest, size = hashlib.sha256(), 0
    for number in range(FILES):
        count = (number + 1) * documents // FILES - number * documents // FILES
        with pq.ParquetWriter(folder / f"part-{number:05}.parquet", SCHEMA, compression="zstd") as writer:
            for group in row_groups(islice(chosen, count)):
                writer.write_table(pa.table(list(zip(*group, strict=True)), schema=SCHEMA))
                for _, text in group:
                    digest.update(text.encode() + b"\0")
                    size += len(text.encode())
    note = f"one in {step} of {million.file}, in {FILES} files; {million.note}"
    return SparkCorpus(folder=str(folder), documents=documents, text_bytes=size, sha256=digest.hexdigest(), note=note)


def mixed(documents: int) -> SparkCorpus:
    """Return the synthetic documents of `benchmarks.scale`, a tenth of them near-duplicates."""
    made, files = prepare(ScaleJob(name="size", kind="mixed", documents=documents, memory="2GB"))
    return SparkCorpus(
        folder=str(files[0].parent),
        documents=documents,
        text_bytes=made.text_bytes,
        sha256=made.sha256,
        note=f"synthetic documents of 54 words, a tenth of them near-duplicates, in {len(files)} files",
    )
