"""Expansion: pairs of those who stand for copies become pairs of everyone, as far as the cap lets them."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

from minwise.search.clustering import FIRST, CopyGroups, Expansion, PairBlock

# Documents 0 … 9 and 12 stand alone; two groups of copies, of three and of twenty members.
SMALL, LARGE = [10, 14, 15], [11, 13, *range(16, 34)]
DOCUMENTS = 34

Found = list[tuple[int, int, float]]


def groups(*members: list[int]) -> CopyGroups:
    """Groups of copies as two arrays."""
    starts = np.cumsum([0, *map(len, members)]).astype(np.uint64)
    return CopyGroups(np.array([one for group in members for one in group], dtype=np.uint32), starts)


def block(*pairs: tuple[int, int, float]) -> PairBlock:
    """Pairs column by column."""
    low, high = (np.array([pair[side] for pair in pairs], dtype=np.uint32) for side in (0, 1))
    return PairBlock(low, high, np.array([pair[2] for pair in pairs], dtype=np.float64))


def tuples(blocks: Iterable[PairBlock]) -> Found:
    """Blocks as a sorted list."""
    return sorted(
        (int(low), int(high), float(similarity))
        for one in blocks
        for low, high, similarity in zip(one.low, one.high, one.similarity, strict=True)
    )


def between(left: list[int], right: list[int], similarity: float) -> Found:
    """All pairs of two groups, the smaller number first."""
    return sorted((min(one, other), max(one, other), similarity) for one in left for other in right)


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_pairs_of_two_groups_are_pairs_of_all_their_members(most: int) -> None:
    """Whatever the size of blocks; who stands alone stays so, and the smaller number comes first."""
    expansion = Expansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=20)
    given = block((0, 1, 0.8), (3, 10, 0.85), (10, 11, 0.9), (11, 12, 0.95))
    expected = [(0, 1, 0.8), *between([3], SMALL, 0.85), *between(SMALL, LARGE, 0.9), *between(LARGE, [12], 0.95)]
    assert tuples(expansion.across(given, most)) == sorted(expected)
    assert expansion.left_out_across(given) == 0


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_a_group_above_the_cap_counts_with_its_first_members(most: int) -> None:
    """Sixteen of twenty; the other group is below the cap and counts whole."""
    expansion = Expansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=19)
    given = block((10, 11, 0.9), (11, 12, 0.95))
    expected = [*between(SMALL, LARGE[:FIRST], 0.9), *between(LARGE[:FIRST], [12], 0.95)]
    assert tuples(expansion.across(given, most)) == sorted(expected)
    assert expansion.left_out_across(given) == (len(LARGE) - FIRST) * (len(SMALL) + 1)
    assert expansion.capped().tolist() == [LARGE[0]]


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
@pytest.mark.parametrize(("max_bucket", "first"), [(20, 20), (19, FIRST), (FIRST, FIRST)])
def test_pairs_among_copies(most: int, max_bucket: int, first: int) -> None:
    """All of a group, or each with its first sixteen if the group is above the cap; similarity is 1."""
    expansion = Expansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket)
    expected = [(left, right, 1.0) for left, right in combinations(SMALL, 2)]
    expected += [(left, right, 1.0) for left, right in combinations(LARGE, 2) if left in LARGE[:first]]
    assert tuples(expansion.within(most)) == sorted(expected)
    assert expansion.left_out_within() == len(LARGE) * (len(LARGE) - 1) // 2 + 3 - len(expected)


@pytest.mark.parametrize("most", [5, 50])
def test_blocks_are_about_as_large_as_asked_for(most: int) -> None:
    """Never larger, unless one pair or one member alone is."""
    expansion = Expansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=20)
    given = block(*((left, right, 0.9) for left, right in combinations(range(10), 2)), (10, 11, 0.8))
    assert all(len(one) <= max(most, 60) for one in expansion.across(given, most))
    singles = [len(one) for one in expansion.across(given, most)][:-1]
    assert all(size <= most for size in singles)
    assert all(len(one) <= max(most, len(LARGE) - 1) for one in expansion.within(most))


def test_without_copies_nothing_changes() -> None:
    """The pairs as they came; none among copies, none left out."""
    expansion = Expansion(groups(), 5, max_bucket=16)
    given = block((0, 3, 0.8), (1, 2, 0.9))
    assert tuples(expansion.across(given, 10)) == [(0, 3, 0.8), (1, 2, 0.9)]
    assert tuples(expansion.within(10)) == []
    assert (expansion.left_out_within(), expansion.left_out_across(given)) == (0, 0)
    assert tuples(expansion.across(block(), 10)) == []


def test_ten_thousand_copies_cost_sixteen_pairs_each() -> None:
    """Not fifty million."""
    copies = groups(list(range(10_000)))
    expansion = Expansion(copies, 10_000, max_bucket=2000)
    found = sum(len(one) for one in expansion.within(1 << 15))
    assert found == FIRST * (FIRST - 1) // 2 + (10_000 - FIRST) * FIRST
    assert expansion.left_out_within() == 10_000 * 9_999 // 2 - found
