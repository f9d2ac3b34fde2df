"""datasketch: bulk sketching; a document is added to the index if a query for it finds nothing."""

from __future__ import annotations

from datasketch import MinHash, MinHashLSH

from benchmarks.peers.runners.pipeline import Settings, deduplicate
from benchmarks.speed.runners.shingling import word_shingles


def choose_kept(texts: list[str], settings: Settings) -> list[bool]:
    """Return which documents have no similar earlier document."""
    index = MinHashLSH(threshold=settings.threshold, num_perm=settings.slots)
    sets = ([shingle.encode() for shingle in word_shingles(text)] for text in texts)
    kept: list[bool] = []
    for number, sketch in enumerate(MinHash.generator(sets, num_perm=settings.slots)):
        kept.append(not index.query(sketch))
        if kept[-1]:
            index.insert(number, sketch, check_duplication=False)
    return kept


if __name__ == "__main__":
    deduplicate(choose_kept, packages=("datasketch", "numpy"))
