"""FastSketchLSH: bulk sketching and its index; a document is kept if no earlier kept document is a candidate.

Its function that returns flags of duplicates is not used: it flags every document of a bucket, including the first.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from FastSketchLSH import LSH  # type: ignore[import-not-found, unused-ignore]

from benchmarks.peers.runners.pipeline import Settings, deduplicate
from benchmarks.speed.runners.run_fastsketchlsh import BATCH, sketch

# Its bands must fill all slots, and it does not verify candidates: the layout closest to the 17 bands of 15 rows that
# datasketch and text-dedup choose. Its own benchmarks have bands of 16 rows for a threshold of 0.8, too.
ROWS = 16


def choose_kept(texts: list[str], settings: Settings) -> list[bool]:
    """Return which documents have no earlier kept candidate."""
    sketches = sketch(texts, settings.slots)
    index = LSH(num_perm=settings.slots, num_bands=settings.slots // ROWS, num_threads=settings.threads)
    index.insert(sketches)
    kept = np.zeros(len(texts), dtype=bool)  # later documents are not kept yet, so they do not count
    for start in range(0, len(texts), BATCH):
        candidates, offsets = index.query(sketches[start : start + BATCH], format="csr")
        for number, (first, end) in enumerate(pairwise(offsets.tolist()), start):
            # Most documents have one candidate: the document itself.
            kept[number] = end - first == 1 or not kept[candidates[first:end]].any()
    return list(kept.tolist())


if __name__ == "__main__":
    deduplicate(choose_kept, packages=("FastSketchLSH", "numpy"))
