"""rensa: its deduplicators, which sketch, look up and keep the first of similar documents, as in its README.

Its "rho" functions are not used: they report that a document has a similar one, but not which of the two to keep.
"""

from __future__ import annotations

from collections.abc import Iterator

from rensa import CMinHashDeduplicator, RMinHashDeduplicator

from benchmarks.peers.runners.pipeline import Settings, deduplicate
from benchmarks.speed.runners.shingling import word_shingles

SEED = 1
# By default it uses 8 bands of 32 rows for 256 slots and a threshold of 0.8; a pair at 0.8 shares one of them with a
# probability of 0.006.
ROWS = 8


def choose_kept(texts: list[str], settings: Settings) -> list[bool]:
    """Return which documents have no similar earlier document."""
    entries: Iterator[tuple[str, set[str]]] = ((str(number), word_shingles(text)) for number, text in enumerate(texts))
    return list(make_deduplicator(settings).add_pairs(entries))


def make_deduplicator(settings: Settings) -> CMinHashDeduplicator | RMinHashDeduplicator:
    """Return the deduplicator of the scheme; that of CMinHash has no bands."""
    if settings.scheme == "cminhash":
        return CMinHashDeduplicator(threshold=settings.threshold, num_perm=settings.slots, seed=SEED)
    bands = settings.slots // ROWS
    return RMinHashDeduplicator(settings.threshold, settings.slots, use_lsh=True, num_bands=bands, seed=SEED)


if __name__ == "__main__":
    deduplicate(choose_kept, packages=("rensa",))
