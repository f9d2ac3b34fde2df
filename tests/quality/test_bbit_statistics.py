"""Statistics of b-bit slots: unbiased with hashed elements (an infinite universe) and with explicit permutations."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistical_bounds import assert_mean
from support.trials import SLOTS, cell, estimate

from minwise import reference
from minwise.sketches.estimates import bbit_collision_probability, bbit_constants, bbit_estimate, bbit_variance
from minwise.sketches.signatures import Bits

BITS = (1, 2, 4, 8)
# Estimates are clipped to 0 and 1. With 256 slots and one bit σ is 0.060, 0.054 and 0.038 at these similarities, so
# either end is five σ away and clipping moves a mean by less than σ·10⁻⁷.
JACCARDS = (0.3, 0.5, 0.8)
UNIVERSE = 4096
PERMUTATIONS = 8000


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("size", [50, 1000])
@pytest.mark.parametrize("name", ["minhash", "fast", "oph+rotation", "oph+optimal"])
def test_estimates_from_packed_slots_are_unbiased(name: str, size: int, bits: Bits, jaccard: float) -> None:
    """Bits that agree by chance are corrected for, for any b."""
    assert_mean(estimate(name, size, jaccard, bits=bits).value, cell(size, jaccard).jaccard)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("bits", BITS)
def test_packed_minhash_has_the_variance_of_theory(bits: Bits, jaccard: float) -> None:
    """E[(R̂_b − R)²] = P_b(1−P_b) / (k(1−2⁻ᵇ)²), three times that of whole slots at b = 1 and R = ½."""
    truth = cell(200, jaccard).jaccard
    variance = bbit_variance(truth, SLOTS, 2.0**-bits, 2.0**-bits)
    assert_mean((estimate("minhash", 200, jaccard, bits=bits).value - truth) ** 2, variance)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize(("left", "right", "shared"), [(800, 800, 400), (1200, 300, 250)])
def test_estimates_in_a_small_universe_are_unbiased(bits: int, left: int, right: int, shared: int) -> None:
    """D = 4096 by explicit permutations: the constants C1 and C2 of the two densities make the estimate unbiased.

    They are approximations with an error below 0.5/D (see the next test), which is the slack. 8,000 permutations bound
    the mean to ±0.05, while the constants of an infinite universe have an error of 0.07 at |X| = |Y| = 800 and one bit.
    """
    x, y = smallest_positions(left, right, shared)
    c1, c2 = bbit_constants(left, right, UNIVERSE, bits)
    agree = ((x ^ y) & (2**bits - 1) == 0).astype(np.float64)
    jaccard = shared / (left + right - shared)
    assert_mean(agree, bbit_collision_probability(jaccard, float(c1), float(c2)), slack=0.5 / UNIVERSE)
    assert_mean(bbit_estimate(agree, c1, c2), jaccard, slack=0.5 / UNIVERSE / (1 - float(c2)))


def test_slack_for_a_small_universe_follows_from_enumeration() -> None:
    """The worst error of C1 + (1−C2)·R over all set sizes, times D, stays below one half from D = 10 to D = 40."""
    for universe in (10, 20, 40):
        for bits in (1, 2, 3):
            assert reference.worst_approximation_error(universe, bits)[0] * universe < 0.5


@cache
def smallest_positions(left: int, right: int, shared: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the minima of two sets under many explicit permutations of 0 … 4095, which have 12 bits."""
    rng = np.random.default_rng(left)
    x, y = range(left), range(left - shared, left - shared + right)
    minima = [
        [reference.low_bits_of_minimum(members, positions, bits=12) for members in (x, y)]
        for positions in (rng.permutation(UNIVERSE).tolist() for _ in range(PERMUTATIONS))
    ]
    first, second = np.array(minima, dtype=np.int64).T
    return first, second
