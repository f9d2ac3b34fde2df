"""Generate: a number of documents in, Parquet shards with the truth beside each document out.

``python -m benchmarks.scale.generate OUT --documents 1e6`` writes ``OUT/part-00000.parquet`` and so on. Columns: ``id``
(int64), ``text``, ``cluster`` (the original it was copied from, −1 for none), ``changed`` (how many words were replaced
in it). The same arguments give the same texts on every machine. Three kinds of corpus:

- ``mixed``: 10 % near-duplicates in clusters of 2 to 500, one cluster of identical pages (2 %), one of pages that
  differ in a word near the end (0.5 %), the rest unrelated; copies are scattered over all shards.
- ``copies``: one page, over and over.
- ``bucket``: documents that share a band's bucket and are not similar; `benchmarks.scale.bucket` says how.
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

# To be raised when the texts, or what is noted of them, change: then no corpus of an older making is taken from the
# cache.
GENERATION = 2
KINDS = ("mixed", "copies", "bucket")
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.large_string()), ("cluster", pa.int64()), ("changed", pa.int8())])
SHARD_DOCUMENTS = 500_000
GROUP_DOCUMENTS = 65_536
BLOCK_DOCUMENTS = 8_192  # tables of a block stay near the processor: 4 MB; twice as fast as a shard at once

IDENTICAL_SHARE, ALIKE_SHARE, CLUSTERED_SHARE = 0.02, 0.005, 0.10
LEAST_CLUSTER, MOST_CLUSTER = 2, 500
TAIL = 1.2  # sizes fall as size**-2.2: 57 % of the clusters are pairs and triples, one in 1,100 has 500 documents
MOST_CHANGES = 3
UNRELATED, IDENTICAL, ALIKE, FIRST_CLUSTER = -1, 0, 1, 2

Rows = NDArray[np.int64]
MakeBlock = Callable[[Rows], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCorpus:
    """What was generated.

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
    """Write a corpus into ``folder``, and ``_corpus.json`` when all of it is there."""
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
    """Return for each document the cluster it belongs to, −1 for none."""
    order = np.random.default_rng(words.SEED)
    identical, alike = int(documents * IDENTICAL_SHARE), int(documents * ALIKE_SHARE)
    sizes = np.concatenate([[identical, alike], cluster_sizes(int(documents * CLUSTERED_SHARE), order)])
    members = np.repeat(np.arange(len(sizes)), sizes)
    origins = np.full(documents, UNRELATED, dtype=np.int64)
    origins[order.choice(documents, len(members), replace=False)] = members
    return origins


def cluster_sizes(members: int, order: np.random.Generator) -> Rows:
    """Return sizes of a heavy-tailed distribution (Pareto, cut at both ends) that make up ``members`` documents."""
    draws = order.random(members // LEAST_CLUSTER)
    sizes = np.minimum(LEAST_CLUSTER * draws ** (-1 / TAIL), MOST_CLUSTER).astype(np.int64)
    return sizes[np.cumsum(sizes) <= members]


def block_maker(kind: str, origins: Rows) -> MakeBlock:
    """Return the function that makes the documents of some rows."""
    if kind == "mixed":
        return lambda rows: mixed_block(rows, origins[rows])
    if kind == "copies":
        return lambda rows: mixed_block(rows, np.full(len(rows), IDENTICAL))
    return lambda rows: as_table(rows, bucket_texts(rows.astype(np.uint64)), np.full(len(rows), UNRELATED))


def mixed_block(rows: Rows, origins: Rows) -> pa.Table:
    """Return unrelated documents, and copies with some words replaced."""
    clustered = origins != UNRELATED
    # Row and cluster numbers meet in one space of keys: clusters take the even, rows the odd ones.
    keys = np.where(clustered, origins * 2, rows * 2 + 1).astype(np.uint64)
    table, counts = words.word_table(keys), words.lengths(keys)
    changes = count_changes(rows, origins)
    for number in range(MOST_CHANGES):
        chosen = np.flatnonzero(changes > number)
        replace_word(table, chosen, rows[chosen].astype(np.uint64), counts[chosen], origins[chosen] == ALIKE, number)
    return as_table(rows, words.write_texts(table, counts), origins, changes)


def count_changes(rows: Rows, origins: Rows) -> Rows:
    """Return how many words each document has replaced: one in the alike pages, none to three in other copies."""
    drawn = words.below(words.draw(rows.astype(np.uint64), words.CHANGES), MOST_CHANGES + 1)
    return np.where(origins >= FIRST_CLUSTER, drawn, (origins == ALIKE).astype(np.int64))


def replace_word(
    table: words.WordNumbers, chosen: Rows, keys: words.Keys, counts: Rows, alike: NDArray[np.bool_], number: int
) -> None:
    """Replace one word of the chosen documents, in place: anywhere, but among the last three words of alike pages.

    There a word is part of at most three shingles, so any two alike pages have a similarity of at least 0.87; replaced
    anywhere, two of them would come to 0.64.
    """
    anywhere = words.below(words.draw(keys, words.PLACE, number), 2**31) % counts
    near_end = counts - 1 - anywhere % 3
    places = np.where(alike, near_end, anywhere)
    table[chosen, places] = words.below(words.draw(keys, words.REPLACEMENT, number), words.VOCABULARY_WORDS)


def as_table(rows: Rows, texts: pa.Array, origins: Rows, changes: Rows | None = None) -> pa.Table:
    """Return documents with their truth."""
    changed = np.zeros(len(rows), dtype=np.int8) if changes is None else changes.astype(np.int8)
    return pa.table([pa.array(rows), texts, pa.array(origins), pa.array(changed)], schema=SCHEMA)


def write_shard(path: Path, make_block: MakeBlock, start: int, stop: int) -> Iterator[bytes]:
    """Write the documents of some rows to a file; yield the texts that were written, each followed by a NUL byte."""
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
    """Generate what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.generate", description=__doc__)
    parser.add_argument("folder", metavar="OUT", type=Path)
    parser.add_argument("--documents", type=lambda text: int(float(text)), default=1_000_000, help="e.g. 1e6")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    settings = parser.parse_args()
    print(generate(settings.folder, kind=settings.kind, documents=settings.documents))


if __name__ == "__main__":
    main()
