"""Pairs of one value, or of different values, by comparing all sets."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Literal, TypeVar

__all__ = ["ValueRule", "pairs_by_value"]

Element = TypeVar("Element")
# Compare sets of one value only, or those of different values only.
ValueRule = Literal["within", "across"]


def pairs_by_value(
    sets: Sequence[AbstractSet[Element]], values: Sequence[object], threshold: float, rule: ValueRule
) -> dict[tuple[int, int], float]:
    """Return every pair of similar sets that the rule allows, with the Jaccard similarity, in ascending order.

    Values are compared as they are; None, which stands for no value, equals itself. Two empty sets are no pair. What is
    removed follows from these pairs as from any others, by :func:`minwise.reference.star`.

    Args:
        sets: The sets.
        values: The value of each set.
        threshold: Minimum similarity.
        rule: Which pairs are compared.

    >>> alike = [{1, 2}, {1, 2}, {1, 2}]
    >>> pairs_by_value(alike, ["a", "b", "a"], 0.5, "within")
    {(0, 2): 1.0}
    >>> pairs_by_value(alike, ["a", "b", "a"], 0.5, "across")
    {(0, 1): 1.0, (1, 2): 1.0}
    """
    pairs = {}
    for left, right in combinations(range(len(sets)), 2):
        shared, union = len(sets[left] & sets[right]), len(sets[left] | sets[right])
        if (values[left] == values[right]) == (rule == "within") and shared and shared / union >= threshold:
            pairs[left, right] = shared / union
    return pairs
