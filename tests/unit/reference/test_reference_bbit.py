"""b-bit minwise hashing in a small universe: the counting formula equals the enumeration of permutations."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from minwise import reference as ref


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize(("x", "y", "a"), [(1, 1, 0), (2, 3, 1), (3, 3, 3), (1, 5, 0), (4, 3, 2), (6, 2, 2)])
def test_counting_equals_enumeration(x: int, y: int, a: int, bits: int) -> None:
    """All 720 permutations of six positions."""
    left, right = range(x), range(x - a, x - a + y)
    agreed = sum(
        ref.low_bits_of_minimum(left, positions, bits) == ref.low_bits_of_minimum(right, positions, bits)
        for positions in itertools.permutations(range(6))
    )
    found = ref.collision_probabilities(6, bits)[x, y, a]
    assert found == pytest.approx(float(Fraction(agreed, 720)), rel=1e-12)


def test_only_possible_sizes_have_a_probability() -> None:
    """Sizes that no two sets can have are nan."""
    table = ref.collision_probabilities(5, 1)
    for x, y, a in itertools.product(range(6), repeat=3):
        possible = x > 0 and y > 0 and a <= min(x, y) and x + y - a <= 5
        assert np.isnan(table[x, y, a]) != possible


def test_equal_sets_always_agree() -> None:
    table = ref.collision_probabilities(8, 2)
    np.testing.assert_allclose([table[size, size, size] for size in range(1, 9)], 1, rtol=1e-12)


def test_the_collision_probability_of_all_bits_is_the_similarity() -> None:
    """With 2ᵇ at least D, no two positions share their low bits."""
    table = ref.collision_probabilities(8, 3)
    assert table[3, 4, 2] == pytest.approx(2 / 5, rel=1e-12)
