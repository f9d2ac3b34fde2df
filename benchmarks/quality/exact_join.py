"""Exact join of sets, the truth of a corpus without labels.

It uses no code of minwise, so that minwise is not compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
# Tolerance, so that a similarity of 4/5 counts as 0.8 regardless of rounding.
ROUNDING = 1e-9


def join(sets: Sequence[Sequence[str]], threshold: float) -> set[Pair]:
    """Return all pairs of sets with a Jaccard similarity of at least ``threshold``; an empty set is in none.

    The size of an intersection is the number of occurrences of one set in the posting lists of the other's elements.
    """
    return {pair for pair, _ in similarities(sets, threshold)}


def similarities(sets: Sequence[Sequence[str]], threshold: float = 0.0) -> Iterator[tuple[Pair, float]]:
    """Yield every pair with a common element that reaches the threshold, the smaller number first."""
    sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
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
    """Return for each element the numbers of the sets that contain it."""
    rows: dict[str, list[int]] = {}
    for row, elements in enumerate(sets):
        for element in elements:
            rows.setdefault(element, []).append(row)
    return {element: np.array(numbers, dtype=np.int64) for element, numbers in rows.items()}
