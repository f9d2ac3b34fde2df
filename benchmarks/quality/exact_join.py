"""Joining: sets in, every pair with its exact similarity out. The truth of a corpus that has no labels.

Nothing of minwise is used, so that it is not measured against itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
# A similarity of 4/5 is 0.8 whichever way it is rounded.
ROUNDING = 1e-9


def join(sets: Sequence[Sequence[str]], threshold: float) -> set[Pair]:
    """Return all pairs of sets with a Jaccard similarity of at least ``threshold``; an empty set is in none.

    One row at a time: how often each other set is met in the lists of its elements is what they have in common.
    """
    return {pair for pair, _ in similarities(sets, threshold)}


def similarities(sets: Sequence[Sequence[str]], threshold: float = 0.0) -> Iterator[tuple[Pair, float]]:
    """Yield every pair that has something in common and is similar enough, the smaller number first."""
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    lists = posting_lists(sets)
    for row, elements in enumerate(sets):
        if not elements:
            continue
        shared = np.bincount(np.concatenate([lists[element] for element in elements]), minlength=len(sets))
        others = np.flatnonzero(shared[row + 1 :]) + row + 1
        common = shared[others]
        values = common / (sizes[row] + sizes[others] - common)
        enough = values >= threshold - ROUNDING
        for other, value in zip(others[enough].tolist(), values[enough].tolist(), strict=True):
            yield (row, other), value


def posting_lists(sets: Sequence[Sequence[str]]) -> dict[str, NDArray[np.int64]]:
    """Return for each element which sets have it."""
    rows: dict[str, list[int]] = {}
    for row, elements in enumerate(sets):
        for element in elements:
            rows.setdefault(element, []).append(row)
    return {element: np.array(have, dtype=np.int64) for element, have in rows.items()}
