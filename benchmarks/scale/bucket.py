"""Bucket: documents that all agree in the first band of their signatures and are not similar at all.

A band's bucket is shared by documents that agree in all of its slots. A slot of `FastSketch` holds the least place any
shingle takes in its bin (DESIGN §3), so a passage with a shingle of extremely small place in a bin decides that slot
for nearly every document it stands in. One such passage for each slot of the first band, side by side, and fresh
words after them: the documents share the bucket, and about a quarter of their shingles. Whoever compares all documents
of a bucket with each other pays for it here; 100,000 documents are 5,000,000,000 pairs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import minwise as mw
from benchmarks.scale import synthetic_text

SLOTS, ROWS, SIGNATURE_SEED = 208, 8, 1
SHINGLES = "word:5"
PASSAGE_WORDS = 5
FRESH_WORDS = 54  # 36 shared shingles of 36 + 2 * 54 in a pair: a similarity of 0.25
CANDIDATES = 1_000_000  # about 4,800 for a bin: the best of them has a place of 1/4,800 of the range
CHUNK = 20_000  # signatures of 33 MB at a time
PASSAGE_KEYS = 2**40  # far from the keys of documents


@cache
def decisive_passages() -> words.WordNumbers:
    """Return the words of eight passages, each with the least place in its bin among all candidates."""
    # Round 0 of FastSketch is OnePermutation: with one shingle in the set, the slot that is not empty tells the bin.
    scheme = mw.OnePermutation(bins=SLOTS, seed=SIGNATURE_SEED, densify=None)
    best = np.full(ROWS, np.iinfo(np.uint64).max, dtype=np.uint64)
    passages = np.zeros((ROWS, PASSAGE_WORDS), dtype=np.int32)
    for start in range(PASSAGE_KEYS, PASSAGE_KEYS + CANDIDATES, CHUNK):
        table = words.word_table(np.arange(start, start + CHUNK, dtype=np.uint64), PASSAGE_WORDS)
        texts = words.write_texts(table, np.full(CHUNK, PASSAGE_WORDS))
        places = scheme.sketch_texts(texts, mw.Shingler(SHINGLES)).slots[:, :ROWS]
        winners = places.argmin(axis=0)
        least = places[winners, np.arange(ROWS)]
        better = least < best
        best[better], passages[better] = least[better], table[winners[better]]
    return passages


def bucket_texts(keys: words.Keys) -> pa.Array:
    """Return documents of the deciding passages and fresh words."""
    fresh = words.word_table(keys, FRESH_WORDS)
    shared = np.broadcast_to(decisive_passages().reshape(1, -1), (len(keys), ROWS * PASSAGE_WORDS))
    table = np.concatenate([shared, fresh], axis=1)
    return words.write_texts(table, np.full(len(keys), table.shape[1]))


def shared_bucket_share(texts: pa.Array) -> float:
    """Return the share of documents in the fullest bucket of the first band."""
    signatures = mw.FastSketch(slots=SLOTS, seed=SIGNATURE_SEED).sketch_texts(texts, mw.Shingler(SHINGLES))
    _, sizes = np.unique(signatures.slots[:, :ROWS], axis=0, return_counts=True)
    return float(sizes.max() / len(texts))


def greatest_similarity(texts: pa.Array) -> float:
    """Return the greatest exact similarity of neighbouring documents."""
    sets = mw.Shingler(SHINGLES).shingle(texts)
    return max(mw.jaccard(sets[index], sets[index + 1]) for index in range(len(texts) - 1))


def main() -> None:
    """Print what the construction promises: ``python -m benchmarks.scale.bucket``."""
    texts = bucket_texts(np.arange(10_000, dtype=np.uint64))
    print(f"{shared_bucket_share(texts):.2%} of {len(texts):,} documents share a bucket of the first band")
    print(f"greatest similarity of neighbours: {greatest_similarity(texts):.3f}")


if __name__ == "__main__":
    main()
