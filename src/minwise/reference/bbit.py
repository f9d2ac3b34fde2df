"""b-bit minwise hashing in a small universe, by explicit permutations and by exact counting.

Hashed sets have a practically infinite universe, in which the low bits of unequal minima agree with probability 2⁻ᵇ.
Here the universe is 0 … D−1, which shows the error of Li and König's approximation (Li & König, 2010, theorem 1 and
appendix). Estimators for real signatures are in :mod:`minwise.sketches.estimates`.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.sketches.estimates import bbit_collision_probability, bbit_constants

__all__ = [
    "approximation_error",
    "collision_probabilities",
    "low_bits_of_minimum",
    "worst_approximation_error",
]

Floats = NDArray[np.float64]


def low_bits_of_minimum(members: Iterable[int], positions: Sequence[int], bits: int) -> int:
    """Return the lowest b bits of the smallest permuted position of a set.

    Args:
        members: The set, members of 0 … D−1.
        positions: Permutation: ``positions[x]`` is the position of x, counted from 0.
        bits: Number of bits, b.

    >>> low_bits_of_minimum({0, 2}, [3, 0, 2, 1], bits=1)
    0
    """
    return min(positions[member] for member in members) & ((1 << bits) - 1)


def collision_probabilities(universe: int, bits: int) -> Floats:
    """Return the exact P[low b bits of the two minima agree] over all permutations of 0 … D−1, for all set sizes.

    Entry [x, y, a] is for |X| = x, |Y| = y, |X∩Y| = a; nan where no such sets exist. The minima are equal with
    probability R. For min X = i < min Y = j, choose the positions of Y first: its minimum is j in C(D−j−1, y−1) of
    C(D, y) ways. No member of Y is below j, so the minimum of the m = x − a members of X∖Y among the D − y free
    positions is i in C(D−y−i−1, m−1) of C(D−y, m) ways. The case min Y < min X is symmetric. Memory is O(D³).
    """
    before = np.array([_smaller_first(universe, size, bits) for size in range(universe + 1)])
    x, y, a = np.ogrid[: universe + 1, : universe + 1, : universe + 1]
    union = x + y - a
    possible = (x > 0) & (y > 0) & (a <= np.minimum(x, y)) & (union <= universe)
    only_left, only_right = np.where(possible, x - a, 0), np.where(possible, y - a, 0)
    exact = a / np.maximum(union, 1) + before[y, only_left] + before[x, only_right]
    return np.where(possible, exact, np.nan)


def approximation_error(universe: int, bits: int) -> Floats:
    """Return C1 + (1 − C2)·R minus `collision_probabilities`, in the same layout."""
    exact = collision_probabilities(universe, bits)
    sizes = np.arange(1, universe + 1)
    c1, c2 = bbit_constants(sizes[:, np.newaxis], sizes[np.newaxis, :], universe, bits)
    x, y, a = np.ogrid[1 : universe + 1, 1 : universe + 1, : universe + 1]
    jaccard: Floats = a / np.maximum(x + y - a, 1)
    error = np.full_like(exact, np.nan)
    error[1:, 1:] = bbit_collision_probability(jaccard, c1[..., np.newaxis], c2[..., np.newaxis]) - exact[1:, 1:]
    return error


def worst_approximation_error(universe: int, bits: int) -> tuple[float, tuple[int, int, int]]:
    """Return the largest absolute `approximation_error` and the first (|X|, |Y|, |X∩Y|) that has it."""
    size = np.abs(approximation_error(universe, bits))
    x, y, a = (int(i) for i in np.unravel_index(np.nanargmax(size), size.shape))
    return float(size[x, y, a]), (x, y, a)


def _smaller_first(universe: int, size: int, bits: int) -> Floats:
    """Return P[min of m elements < min of Y and their low bits agree] for every m, with |Y| = size, disjoint from Y."""
    if bits < 1:
        raise ConfigError(f"bits must be at least 1, got {bits}")
    set_minimum = _minimum_distribution(universe, size)
    result = np.zeros(universe + 1)
    for count in range(1, universe - size + 1):
        other_minimum = _minimum_distribution(universe - size, count)
        for j in range(1, universe):
            lower = [other_minimum[i] for i in range(j % 2**bits, min(j, len(other_minimum)), 2**bits)]
            result[count] += set_minimum[j] * sum(lower)
    return result


def _minimum_distribution(universe: int, size: int) -> Floats:
    """Return the probability of each position 0 … D−1 to be the minimum of a random set; all 0 for the empty set."""
    ways = math.comb(universe, size)
    chances = [math.comb(universe - minimum - 1, size - 1) / ways if size else 0.0 for minimum in range(universe)]
    return np.array(chances)
