"""Containment of sets by comparing all with all: which sets lie in others, and which of them are removed."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

__all__ = ["contained_pairs", "containment", "containment_star"]

Element = TypeVar("Element")


def containment(inner: AbstractSet[Element], outer: AbstractSet[Element]) -> float:
    """Return the share of the elements of ``inner`` that ``outer`` has; 0 if ``inner`` is empty.

    >>> containment({1, 2, 3, 4}, {2, 3, 4, 5, 6})
    0.75
    """
    return len(inner & outer) / len(inner) if inner else 0.0


def contained_pairs(
    sets: Sequence[AbstractSet[Element]], threshold: float, order: Sequence[int] | None = None
) -> dict[tuple[int, int], float]:
    """Return every pair of a set and another one in which it lies, with the containment, in ascending order.

    The second set of a pair has more elements, or as many and an earlier place in the keep order.

    Args:
        sets: The sets.
        threshold: Minimum containment.
        order: The sets in keep order; in the order given if None.

    >>> contained_pairs([{1, 2}, {1, 2, 3}, {3, 4}, {3, 4}], 0.5)
    {(0, 1): 1.0, (2, 1): 0.5, (3, 1): 0.5, (3, 2): 1.0}
    """
    by_size = _by_size(sets, order)
    pairs = {}
    for place, inner in enumerate(by_size):
        for outer in by_size[:place]:
            share = containment(sets[inner], sets[outer])
            if share >= threshold and share > 0:
                pairs[inner, outer] = share
    return dict(sorted(pairs.items()))


def containment_star(
    sets: Sequence[AbstractSet[Element]], threshold: float, order: Sequence[int] | None = None
) -> dict[int, tuple[int, float]]:
    """Return every removed set, with the kept one in which most of it lies and the containment.

    Sets are decided by descending size, equally large ones in keep order, and a set is removed if it lies in a kept
    one. All sets in which a set can lie are decided before it, so a kept set is never removed later: every removed set
    has a kept witness. Of witnesses with an equal containment the first in this order is chosen. A set that equals an
    earlier one is removed for it, or with it for the same witness.

    >>> containment_star([{1, 2, 3}, {2, 3}, {1, 2, 3, 4, 5, 6}, {2, 3}], 0.9)
    {0: (2, 1.0), 1: (2, 1.0), 3: (2, 1.0)}
    """
    kept: list[int] = []
    removed: dict[int, tuple[int, float]] = {}
    leaders: dict[frozenset[Element], int] = {}
    for inner in _by_size(sets, order):
        leader = leaders.setdefault(frozenset(sets[inner]), inner)
        if leader != inner and sets[inner]:
            removed[inner] = removed.get(leader, (leader, 1.0))
            continue
        shares = [(containment(sets[inner], sets[outer]), outer) for outer in kept]
        best = max(shares, key=lambda share: share[0], default=(0.0, -1))
        if best[0] >= threshold and best[0] > 0:
            removed[inner] = (best[1], best[0])
        else:
            kept.append(inner)
    return dict(sorted(removed.items()))


def _by_size(sets: Sequence[AbstractSet[Element]], order: Sequence[int] | None) -> list[int]:
    return sorted(range(len(sets)) if order is None else order, key=lambda number: -len(sets[number]))
