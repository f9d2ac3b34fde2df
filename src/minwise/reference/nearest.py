"""Nearest sets by comparing all with all, pairs that choose each other, and a matching of the most similar pairs."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from minwise.reference.containment import containment
from minwise.reference.weighting import weighted_similarity

__all__ = ["Neighbour", "best_first_matching", "mutual_neighbours", "nearest_sets"]

Element = TypeVar("Element")
# Left set, right set, similarity and rank.
Neighbour = tuple[int, int, float, int]


def nearest_sets(
    sets: Sequence[AbstractSet[Element]],
    among: Sequence[AbstractSet[Element]] | None = None,
    top: int = 5,
    at_least: float = 0.0,
    weight: Callable[[Element], int] = lambda _: 1,
    *,
    is_contained: bool = False,
) -> list[Neighbour]:
    """Return the most similar sets of each set, by set and rank; of equally similar ones the first comes first.

    Args:
        sets: The sets.
        among: The sets that are listed; if None, ``sets`` without the set itself.
        top: Number of sets that are listed for each set.
        at_least: Minimum similarity; one of 0 is never listed.
        weight: Returns the weight of an element, a whole number above 0.
        is_contained: Whether similarity is the share of the smaller set that the other one has, without weights.

    >>> nearest_sets([{1, 2, 3}, {1, 2}, {3, 4}, {1, 2}], top=2)[:3]
    [(0, 1, 0.6666666666666666, 1), (0, 3, 0.6666666666666666, 2), (1, 3, 1.0, 1)]
    """

    def similarity(own: AbstractSet[Element], other: AbstractSet[Element]) -> float:
        if is_contained:
            return containment(*sorted((own, other), key=len))
        return weighted_similarity(own, other, weight)

    rows: list[Neighbour] = []
    for left, own in enumerate(sets):
        others = enumerate(sets if among is None else among)
        found = [(-similarity(own, other), right) for right, other in others]
        listed = [one for one in sorted(found) if one[0] < 0 and -one[0] >= at_least]
        if among is None:
            listed = [one for one in listed if one[1] != left]
        rows += [(left, right, -value, rank) for rank, (value, right) in enumerate(listed[:top], start=1)]
    return rows


def mutual_neighbours(rows: Sequence[Neighbour], back: Sequence[Neighbour]) -> list[Neighbour]:
    """Return the rows whose right set has the left one among its nearest.

    Args:
        rows: The nearest sets of each left set.
        back: The nearest sets of each right set; ``rows`` again if both sides are the same.
    """
    chosen = {(right, left) for left, right, _, _ in back}
    return [row for row in rows if row[:2] in chosen]


def best_first_matching(rows: Sequence[Neighbour], *, same_side: bool = False) -> list[Neighbour]:
    """Return the rows that are accepted by descending similarity unless one of their sets is in an accepted row.

    Equally similar rows are considered by left set and then by right one.

    Args:
        rows: Pairs of sets.
        same_side: Whether the numbers of both sides mean the same sets.

    >>> best_first_matching([(0, 0, 0.5, 1), (1, 0, 0.9, 1), (1, 1, 0.8, 2)])
    [(1, 0, 0.9, 1)]
    """
    taken: set[tuple[bool, int]] = set()
    accepted = []
    for row in sorted(rows, key=lambda row: (-row[2], row[0], row[1])):
        pair = {(False, row[0]), (not same_side, row[1])}
        if not pair & taken:
            taken |= pair
            accepted.append(row)
    return sorted(accepted, key=lambda row: (row[0], row[3]))
