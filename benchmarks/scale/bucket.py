"""Documents that agree in the first band of their signatures but are not similar.

Documents share a bucket of a band if they agree in all of its slots. A slot of `FastSketch` holds the smallest value
of any shingle in its bin (see DESIGN.md), so a passage with a shingle of extremely small value determines that slot for
nearly every document that contains it. Each document consists of one such passage for each slot of the first band,
followed by other words. The documents share the bucket and about a quarter of their shingles. A tool that compares all
documents of a bucket with each other has 5,000,000,000 pairs to compare for 100,000 documents.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import minwise as mw
from benchmarks.scale import synthetic_text
from minwise.sketches import OnePermutation

SLOTS, ROWS, SIGNATURE_SEED = 208, 8, 1
SHINGLES = "word:5"
PASSAGE_WORDS = 5
FRESH_WORDS = 54  # 36 shared shingles of 36 + 2 * 54 in a pair: a similarity of 0.25
CANDIDATES = 1_000_000  # about 4,800 per bin: the smallest value is about 1/4,800 of the range
CHUNK = 20_000  # signatures of 33 MB per chunk
PASSAGE_KEYS = 2**40  # distinct from the keys of documents


@cache
def decisive_passages() -> synthetic_text.WordNumbers:
    """Return the words of eight passages, each with the smallest value in its bin among all candidates."""
    # Round 0 of FastSketch equals OnePermutation: the only non-empty slot of a set with one shingle gives its bin.
    scheme = OnePermutation(bins=SLOTS, seed=SIGNATURE_SEED, densify=None)
    best = np.full(ROWS, np.iinfo(np.uint64).max, dtype=np.uint64)
    passages = np.zeros((ROWS, PASSAGE_WORDS), dtype=np.int32)
    for start in range(PASSAGE_KEYS, PASSAGE_KEYS + CANDIDATES, CHUNK):
        table = synthetic_text.word_table(np.arange(start, start + CHUNK, dtype=np.uint64), PASSAGE_WORDS)
        texts = synthetic_text.write_texts(table, np.full(CHUNK, PASSAGE_WORDS))
        values = scheme.sketch_texts(texts, mw.Shingler(SHINGLES)).slots[:, :ROWS]
        winners = values.argmin(axis=0)
        least = values[winners, np.arange(ROWS)]
        better = least < best
        best[better], passages[better] = least[better], table[winners[better]]
    return passages


def bucket_texts(keys: synthetic_text.Keys) -> pa.Array:
    """Return documents of the decisive passages followed by other words."""
    fresh = synthetic_text.word_table(keys, FRESH_WORDS)
    shared = np.broadcast_to(decisive_passages().reshape(1, -1), (len(keys), ROWS * PASSAGE_WORDS))
    table = np.concatenate([shared, fresh], axis=1)
    return synthetic_text.write_texts(table, np.full(len(keys), table.shape[1]))


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
    """Print the properties of the construction: ``python -m benchmarks.scale.bucket``."""
    texts = bucket_texts(np.arange(10_000, dtype=np.uint64))
    print(f"{shared_bucket_share(texts):.2%} of {len(texts):,} documents share a bucket of the first band")
    print(f"greatest similarity of neighbours: {greatest_similarity(texts):.3f}")


if __name__ == "__main__":
    main()
