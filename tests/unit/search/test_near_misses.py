"""Near misses: exact borders of bins, and the same closest pairs however they are split."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minwise.search import verification
from minwise.search.clustering import PairBlock
from minwise.search.verification import BINS, NearMisses, bin_of, count_by_bin, floor_bin, smallest_indices

# Borders, the values right below them, and any values between.
similarities = st.one_of(
    st.integers(0, BINS).map(lambda number: number / BINS),
    st.integers(1, BINS).map(lambda number: float(np.nextafter(number / BINS, 0))),
    st.floats(0, 1),
)


def bin_by_definition(similarity: float) -> int:
    """Return the last bin whose lower border is not above the similarity; 1.0 is in the last bin."""
    return max(number for number in range(BINS) if number / BINS <= similarity)


@given(st.lists(similarities))
@example([number / BINS for number in range(BINS + 1)])
@example([float(np.nextafter(number / BINS, 0)) for number in range(1, BINS + 1)])
def test_bins_are_those_of_the_definition(values: list[float]) -> None:
    """Also at the borders, where multiplying by a hundred rounds to the other side."""
    expected = np.zeros(BINS, dtype=int)
    for value in values:
        expected[bin_by_definition(value)] += 1
        assert bin_of(value) == bin_by_definition(value)
    np.testing.assert_array_equal(count_by_bin(np.array(values, dtype=float)), expected)


@pytest.mark.parametrize(("threshold", "first"), [(0.8, 75), (0.7, 65), (0.55, 50), (0.799, 74), (1.0, 95), (0.02, 0)])
def test_near_misses_begin_at_a_border(threshold: float, first: int) -> None:
    """0.05 below the threshold, or at the next border below that."""
    assert floor_bin(threshold) == first


@given(st.lists(st.integers(0, 5)), st.integers(1, 10))
def test_the_smallest_are_those_of_a_stable_sort(values: list[int], count: int) -> None:
    expected = sorted(range(len(values)), key=values.__getitem__)[:count]
    assert smallest_indices(np.array(values, dtype=float), count).tolist() == expected


@given(st.lists(st.sampled_from([0.75, 0.76, 0.7777, 0.79]), max_size=40), st.data())
def test_merged_pieces_equal_the_whole(values: list[float], data: st.DataObject) -> None:
    """For any cuts and any order of merging."""
    low = np.arange(len(values), dtype=np.uint32) // 3  # several pairs of one document
    block = PairBlock(low, np.arange(len(values), dtype=np.uint32) + 10, np.array(values, dtype=float))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5)))
    bounds = data.draw(st.permutations(list(pairwise([0, *cuts, len(values)]))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "CLOSEST", 7)
        patch.setattr(verification, "MERGED", 1)
        pieces = (block.take(np.arange(start, end)) for start, end in bounds)
        whole, merged = NearMisses.of(block), NearMisses.merge(map(NearMisses.of, pieces))
    best = sorted(range(len(values)), key=lambda index: (-values[index], low[index], index))[:7]
    assert (whole.closest.high - 10).tolist() == (merged.closest.high - 10).tolist() == best
    assert whole.counts.tolist() == merged.counts.tolist()
    assert int(whole.counts.sum()) == len(values)
