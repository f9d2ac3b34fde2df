"""Expansion of pairs of leaders to pairs of all their copies, up to the cap."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

from minwise.search.clustering import FIRST_MEMBERS, CopyExpansion, CopyGroups, PairBlock

# Documents 0 … 9 and 12 have no copies; two groups of copies, of three and of twenty members.
SMALL, LARGE = [10, 14, 15], [11, 13, *range(16, 34)]
DOCUMENTS = 34

PairList = list[tuple[int, int, float]]


def groups(*members: list[int]) -> CopyGroups:
    """Return groups of copies as two arrays."""
    starts = np.cumsum([0, *map(len, members)]).astype(np.uint64)
    return CopyGroups(np.array([member for group in members for member in group], dtype=np.uint32), starts)


def block(*pairs: tuple[int, int, float]) -> PairBlock:
    """Return pairs as columns."""
    low, high = (np.array([pair[side] for pair in pairs], dtype=np.uint32) for side in (0, 1))
    return PairBlock(low, high, np.array([pair[2] for pair in pairs], dtype=np.float64))


def tuples(blocks: Iterable[PairBlock]) -> PairList:
    """Return the pairs of blocks as a sorted list."""
    return sorted(
        (int(low), int(high), float(similarity))
        for pairs in blocks
        for low, high, similarity in zip(pairs.low, pairs.high, pairs.similarity, strict=True)
    )


def between(left: list[int], right: list[int], similarity: float) -> PairList:
    """Return all pairs of two groups, the smaller number first."""
    return sorted((min(first, second), max(first, second), similarity) for first in left for second in right)


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_pairs_of_two_groups_are_pairs_of_all_their_members(most: int) -> None:
    """The block size makes no difference; a document without copies stays as it is."""
    expansion = CopyExpansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=20)
    given = block((0, 1, 0.8), (3, 10, 0.85), (10, 11, 0.9), (11, 12, 0.95))
    expected = [(0, 1, 0.8), *between([3], SMALL, 0.85), *between(SMALL, LARGE, 0.9), *between(LARGE, [12], 0.95)]
    assert tuples(expansion.across(given, most)) == sorted(expected)
    assert expansion.left_out_across(given) == 0


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_a_group_above_the_cap_is_represented_by_its_first_members(most: int) -> None:
    expansion = CopyExpansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=19)
    given = block((10, 11, 0.9), (11, 12, 0.95))
    expected = [*between(SMALL, LARGE[:FIRST_MEMBERS], 0.9), *between(LARGE[:FIRST_MEMBERS], [12], 0.95)]
    assert tuples(expansion.across(given, most)) == sorted(expected)
    assert expansion.left_out_across(given) == (len(LARGE) - FIRST_MEMBERS) * (len(SMALL) + 1)
    assert expansion.capped_leaders().tolist() == [LARGE[0]]


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
@pytest.mark.parametrize(("max_bucket", "first"), [(20, 20), (19, FIRST_MEMBERS), (FIRST_MEMBERS, FIRST_MEMBERS)])
def test_pairs_among_copies(most: int, max_bucket: int, first: int) -> None:
    """All pairs of a group, or of each member with the first sixteen if the group is above the cap."""
    expansion = CopyExpansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket)
    expected = [(left, right, 1.0) for left, right in combinations(SMALL, 2)]
    expected += [(left, right, 1.0) for left, right in combinations(LARGE, 2) if left in LARGE[:first]]
    assert tuples(expansion.within(most)) == sorted(expected)
    assert expansion.left_out_within() == len(LARGE) * (len(LARGE) - 1) // 2 + 3 - len(expected)


@pytest.mark.parametrize("most", [5, 50])
def test_blocks_have_about_the_requested_size(most: int) -> None:
    """A block is only larger if a single pair or member exceeds the size."""
    expansion = CopyExpansion(groups(SMALL, LARGE), DOCUMENTS, max_bucket=20)
    given = block(*((left, right, 0.9) for left, right in combinations(range(10), 2)), (10, 11, 0.8))
    assert all(len(pairs) <= max(most, 60) for pairs in expansion.across(given, most))
    singles = [len(pairs) for pairs in expansion.across(given, most)][:-1]
    assert all(size <= most for size in singles)
    assert all(len(pairs) <= max(most, len(LARGE) - 1) for pairs in expansion.within(most))


def test_without_copies_pairs_are_unchanged() -> None:
    expansion = CopyExpansion(groups(), 5, max_bucket=16)
    given = block((0, 3, 0.8), (1, 2, 0.9))
    assert tuples(expansion.across(given, 10)) == [(0, 3, 0.8), (1, 2, 0.9)]
    assert tuples(expansion.within(10)) == []
    assert (expansion.left_out_within(), expansion.left_out_across(given)) == (0, 0)
    assert tuples(expansion.across(block(), 10)) == []


def test_ten_thousand_copies_cost_sixteen_pairs_each() -> None:
    copies = groups(list(range(10_000)))
    expansion = CopyExpansion(copies, 10_000, max_bucket=2000)
    pairs = sum(len(block) for block in expansion.within(1 << 15))
    assert pairs == FIRST_MEMBERS * (FIRST_MEMBERS - 1) // 2 + (10_000 - FIRST_MEMBERS) * FIRST_MEMBERS
    assert expansion.left_out_within() == 10_000 * 9_999 // 2 - pairs
