"""Jobs of the benchmark: corpus, memory limit, and preparation of the corpus in the cache."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.generate import GENERATION, ScaleCorpus, generate
from benchmarks.speed.corpus import cache_dir

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
DOCUMENT_BYTES = 300
CORPUS_BY_MEMORY = 5  # size of the corpus of the memory job relative to its memory limit
COPIES = 1_000_000
BUCKETS = (50_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleJob:
    """One run of the command.

    Attributes:
        name: ``size``, ``memory``, ``copies`` or ``bucket``.
        kind: Kind of corpus.
        documents: Number of documents.
        memory: Value of ``--memory``, such as ``2GB``.
    """

    name: str
    kind: str
    documents: int
    memory: str

    @property
    def memory_bytes(self) -> int:
        """Memory limit in bytes."""
        return parse_bytes(self.memory)


def all_jobs(sizes: Sequence[int], *, memory: str, tight_memory: str) -> dict[str, list[ScaleJob]]:
    """Return the jobs by name, in ascending order of size."""
    tight = math.ceil(parse_bytes(tight_memory) * CORPUS_BY_MEMORY / DOCUMENT_BYTES)
    return {
        "size": [ScaleJob(name="size", kind="mixed", documents=count, memory=memory) for count in sorted(sizes)],
        "memory": [ScaleJob(name="memory", kind="mixed", documents=tight, memory=tight_memory)],
        "copies": [ScaleJob(name="copies", kind="copies", documents=COPIES, memory=memory)],
        "bucket": [ScaleJob(name="bucket", kind="bucket", documents=count, memory=memory) for count in BUCKETS],
    }


def parse_bytes(text: str) -> int:
    """Return a size such as ``2GB`` in bytes.

    >>> parse_bytes("1.5MB")
    1500000
    """
    number, unit = text[:-2], text[-2:].upper()
    if unit not in UNITS:
        raise ValueError(f"a size ends with one of {', '.join(UNITS)}, got {text!r}")
    return int(float(number) * UNITS[unit])


def prepare(job: ScaleJob) -> tuple[ScaleCorpus, list[Path]]:
    """Return the corpus of a job and its files; generate it if the cache has none."""
    folder = cache_dir() / "scale" / f"{job.kind}-{job.documents}-generation-{GENERATION}"
    description = folder / "_corpus.json"
    if not description.exists():
        print(f"generating {job.documents:,} documents, {job.kind} ...", flush=True)
        generate(folder, kind=job.kind, documents=job.documents)
    return ScaleCorpus(**json.loads(description.read_text(encoding="utf-8"))), sorted(folder.glob("part-*.parquet"))
