"""Generator of synthetic corpora with known truth, as Parquet shards.

``python -m benchmarks.scale.generate OUT --documents 1e6`` writes ``OUT/part-00000.parquet`` and so on. Columns: ``id``
(int64), ``text``, ``cluster`` (the original it was copied from, −1 for none), ``changed`` (number of replaced
words). The same arguments give the same texts on every machine. Three kinds of corpus:

- ``mixed``: 10 % near-duplicates in clusters of 2 to 500, one cluster of identical pages (2 %), one of pages that
  differ in a word near the end (0.5 %), the rest unrelated; copies are scattered over all shards.
- ``copies``: copies of one page.
- ``bucket``: documents that share a bucket of a band but are not similar; see `benchmarks.scale.bucket`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.scale import synthetic_text
from benchmarks.scale.bucket import bucket_texts

# Increase when the texts or their metadata change, so that no older corpus is taken from the cache.
GENERATION = 2
KINDS = ("mixed", "copies", "bucket")
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.large_string()), ("cluster", pa.int64()), ("changed", pa.int8())])
SHARD_DOCUMENTS = 500_000
GROUP_DOCUMENTS = 65_536
BLOCK_DOCUMENTS = 8_192  # the tables of a block take 4 MB and stay in the cache; twice as fast as a whole shard

IDENTICAL_SHARE, ALIKE_SHARE, CLUSTERED_SHARE = 0.02, 0.005, 0.10
MIN_CLUSTER, MAX_CLUSTER = 2, 500
# The density of sizes is size**-2.2: 57 % of the clusters are pairs and triples, one in 1,100 has 500 documents.
TAIL = 1.2
MAX_CHANGES = 3
UNRELATED, IDENTICAL, ALIKE, FIRST_CLUSTER = -1, 0, 1, 2

Rows = NDArray[np.int64]
MakeBlock = Callable[[Rows], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCorpus:
    """Description of a generated corpus.

    Attributes:
        kind: One of `KINDS`.
        documents: Number of documents.
        text_bytes: Length of all texts.
        clusters: Number of clusters of copies.
        sha256: Of all texts in order, each followed by a NUL byte.
    """

    kind: str
    documents: int
    text_bytes: int
    clusters: int
    sha256: str


def generate(folder: Path, *, kind: str, documents: int) -> ScaleCorpus:
    """Write a corpus into ``folder``, and ``_corpus.json`` when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    origins = plan_clusters(documents) if kind == "mixed" else np.empty(0, dtype=np.int64)
    make_block = block_maker(kind, origins)
    digest, text_bytes = hashlib.sha256(), 0
    for number, start in enumerate(range(0, documents, SHARD_DOCUMENTS)):
        stop = min(start + SHARD_DOCUMENTS, documents)
        for joined in write_shard(folder / f"part-{number:05}.parquet", make_block, start, stop):
            digest.update(joined)
            text_bytes += len(joined) - joined.count(b"\0")
    clusters = {"mixed": int(origins.max(initial=-1)) + 1, "copies": 1, "bucket": 0}[kind]
    corpus = ScaleCorpus(
        kind=kind, documents=documents, text_bytes=text_bytes, clusters=clusters, sha256=digest.hexdigest()
    )
    (folder / "_corpus.json").write_text(json.dumps(asdict(corpus), indent=1) + "\n", encoding="utf-8")
    return corpus


def plan_clusters(documents: int) -> Rows:
    """Return the cluster of each document, −1 for none."""
    order = np.random.default_rng(synthetic_text.SEED)
    identical, alike = int(documents * IDENTICAL_SHARE), int(documents * ALIKE_SHARE)
    sizes = np.concatenate([[identical, alike], cluster_sizes(int(documents * CLUSTERED_SHARE), order)])
    members = np.repeat(np.arange(len(sizes)), sizes)
    origins = np.full(documents, UNRELATED, dtype=np.int64)
    origins[order.choice(documents, len(members), replace=False)] = members
    return origins


def cluster_sizes(members: int, order: np.random.Generator) -> Rows:
    """Return cluster sizes from a truncated Pareto distribution that add up to at most ``members`` documents."""
    draws = order.random(members // MIN_CLUSTER)
    sizes = np.minimum(MIN_CLUSTER * draws ** (-1 / TAIL), MAX_CLUSTER).astype(np.int64)
    return sizes[np.cumsum(sizes) <= members]


def block_maker(kind: str, origins: Rows) -> MakeBlock:
    """Return the function that generates the documents of given rows."""
    if kind == "mixed":
        return lambda rows: mixed_block(rows, origins[rows])
    if kind == "copies":
        return lambda rows: mixed_block(rows, np.full(len(rows), IDENTICAL))
    return lambda rows: as_table(rows, bucket_texts(rows.astype(np.uint64)), np.full(len(rows), UNRELATED))


def mixed_block(rows: Rows, origins: Rows) -> pa.Table:
    """Return unrelated documents, and copies with some replaced words."""
    clustered = origins != UNRELATED
    # Row and cluster numbers share one key space: clusters have even keys, rows odd ones.
    keys = np.where(clustered, origins * 2, rows * 2 + 1).astype(np.uint64)
    table, counts = synthetic_text.word_table(keys), synthetic_text.lengths(keys)
    changes = count_changes(rows, origins)
    for number in range(MAX_CHANGES):
        chosen = np.flatnonzero(changes > number)
        replace_word(table, chosen, rows[chosen].astype(np.uint64), counts[chosen], origins[chosen] == ALIKE, number)
    return as_table(rows, synthetic_text.write_texts(table, counts), origins, changes)


def count_changes(rows: Rows, origins: Rows) -> Rows:
    """Return the number of replaced words of each document: one in the alike pages, zero to three in other copies."""
    drawn = synthetic_text.below(synthetic_text.draw(rows.astype(np.uint64), synthetic_text.CHANGES), MAX_CHANGES + 1)
    return np.where(origins >= FIRST_CLUSTER, drawn, (origins == ALIKE).astype(np.int64))


def replace_word(
    table: synthetic_text.WordNumbers,
    chosen: Rows,
    keys: synthetic_text.Keys,
    counts: Rows,
    alike: NDArray[np.bool_],
    number: int,
) -> None:
    """Replace one word of the chosen documents in place: anywhere, or among the last three words of alike pages.

    The last words are part of at most three shingles, so any two alike pages have a similarity of at least 0.87. With
    words replaced anywhere, it could be as low as 0.64.
    """
    anywhere = synthetic_text.below(synthetic_text.draw(keys, synthetic_text.POSITION, number), 2**31) % counts
    near_end = counts - 1 - anywhere % 3
    positions = np.where(alike, near_end, anywhere)
    table[chosen, positions] = synthetic_text.below(
        synthetic_text.draw(keys, synthetic_text.REPLACEMENT, number), synthetic_text.VOCABULARY_WORDS
    )


def as_table(rows: Rows, texts: pa.Array, origins: Rows, changes: Rows | None = None) -> pa.Table:
    """Return documents with their truth columns."""
    changed = np.zeros(len(rows), dtype=np.int8) if changes is None else changes.astype(np.int8)
    return pa.table([pa.array(rows), texts, pa.array(origins), pa.array(changed)], schema=SCHEMA)


def write_shard(path: Path, make_block: MakeBlock, start: int, stop: int) -> Iterator[bytes]:
    """Write the documents of some rows to a file; yield the written texts, each followed by a NUL byte."""
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=["cluster", "changed"]) as writer:
        for first in range(start, stop, GROUP_DOCUMENTS):
            group = pa.concat_tables(blocks(make_block, first, min(first + GROUP_DOCUMENTS, stop)))
            writer.write_table(group, row_group_size=GROUP_DOCUMENTS)
            yield "".join(f"{text}\0" for text in group["text"].to_pylist()).encode()


def blocks(make_block: MakeBlock, start: int, stop: int) -> Iterator[pa.Table]:
    """Yield the documents of some rows, a block at a time."""
    for first in range(start, stop, BLOCK_DOCUMENTS):
        yield make_block(np.arange(first, min(first + BLOCK_DOCUMENTS, stop), dtype=np.int64))


def main() -> None:
    """Generate a corpus as given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.generate", description=__doc__)
    parser.add_argument("folder", metavar="OUT", type=Path)
    parser.add_argument("--documents", type=lambda text: int(float(text)), default=1_000_000, help="e.g. 1e6")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    settings = parser.parse_args()
    print(generate(settings.folder, kind=settings.kind, documents=settings.documents))


if __name__ == "__main__":
    main()
