"""Bbit: b-bit minwise hashing in a small universe, by permutations one can list and by exact counting.

Hashed sets live in a universe without end, where the low bits of unequal minima agree with chance 2⁻ᵇ. Here the
universe is 0 … D−1, and the question is how good Li and König's approximation is (Li & König, 2010, theorem 1 and
appendix).
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
    "comparison_days",
    "false_candidates",
    "low_bits_of_minimum",
    "pair_count",
    "permutation_bytes",
    "signature_bytes",
    "worst_approximation_error",
]

Floats = NDArray[np.float64]


def low_bits_of_minimum(members: Iterable[int], positions: Sequence[int], bits: int) -> int:
    """The lowest b bits of the least permuted position of a set; ``positions[x]`` is where x goes, counted from 0.

    >>> low_bits_of_minimum({0, 2}, [3, 0, 2, 1], bits=1)
    0
    """
    return min(positions[member] for member in members) & ((1 << bits) - 1)


def collision_probabilities(universe: int, bits: int) -> Floats:
    """Exact P[low b bits of the two minima agree] over all permutations of 0 … D−1, for all sizes at once.

    Entry [x, y, a] is for |X| = x, |Y| = y, |X∩Y| = a; nan where no such sets exist. Equal minima have chance R. For
    min X = i < min Y = j place Y first, its least at j in C(D−j−1, y−1) of C(D, y) ways; nothing of Y lies below j, so
    the m = x − a members of X∖Y, placed among the D − y free positions, have their least at i in C(D−y−i−1, m−1) of
    C(D−y, m) ways. The other half, Y before X, is the same with the names exchanged. Cost O(D³) numbers.
    """
    before = np.array([_smaller_first(universe, size, bits) for size in range(universe + 1)])
    x, y, a = np.ogrid[: universe + 1, : universe + 1, : universe + 1]
    union = x + y - a
    possible = (x > 0) & (y > 0) & (a <= np.minimum(x, y)) & (union <= universe)
    only_left, only_right = np.where(possible, x - a, 0), np.where(possible, y - a, 0)
    exact = a / np.maximum(union, 1) + before[y, only_left] + before[x, only_right]
    return np.where(possible, exact, np.nan)


def approximation_error(universe: int, bits: int) -> Floats:
    """How far C1 + (1 − C2)·R is from `collision_probabilities`, signed, in the same layout."""
    exact = collision_probabilities(universe, bits)
    sizes = np.arange(1, universe + 1)
    c1, c2 = bbit_constants(sizes[:, np.newaxis], sizes[np.newaxis, :], universe, bits)
    x, y, a = np.ogrid[1 : universe + 1, 1 : universe + 1, : universe + 1]
    jaccard: Floats = a / np.maximum(x + y - a, 1)
    error = np.full_like(exact, np.nan)
    error[1:, 1:] = bbit_collision_probability(jaccard, c1[..., np.newaxis], c2[..., np.newaxis]) - exact[1:, 1:]
    return error


def worst_approximation_error(universe: int, bits: int) -> tuple[float, tuple[int, int, int]]:
    """The largest absolute `approximation_error` and the (|X|, |Y|, |X∩Y|) where it is reached first."""
    size = np.abs(approximation_error(universe, bits))
    x, y, a = (int(i) for i in np.unravel_index(np.nanargmax(size), size.shape))
    return float(size[x, y, a]), (x, y, a)


def _smaller_first(universe: int, size: int, bits: int) -> Floats:
    """Entry m: P[min of m others < min of Y, low bits agree], for |Y| = size and others outside of Y."""
    if bits < 1:
        raise ConfigError(f"bits must be at least 1, got {bits}")
    least_of_set = _minimum_chances(universe, size)
    result = np.zeros(universe + 1)
    for others in range(1, universe - size + 1):
        least_of_others = _minimum_chances(universe - size, others)
        for j in range(1, universe):
            lower = [least_of_others[i] for i in range(j % 2**bits, min(j, len(least_of_others)), 2**bits)]
            result[others] += least_of_set[j] * sum(lower)
    return result


def _minimum_chances(universe: int, size: int) -> Floats:
    """Chance of each position 0 … D−1 to be the least of a random set of that size; all 0 for the empty set."""
    ways = math.comb(universe, size)
    chances = [math.comb(universe - least - 1, size - 1) / ways if size else 0.0 for least in range(universe)]
    return np.array(chances)


def signature_bytes(documents: int, slots: int, slot_bytes: int) -> int:
    """Bytes of the signatures of that many documents.

    >>> signature_bytes(documents=100_000, slots=100, slot_bytes=4)
    40000000
    """
    return documents * slots * slot_bytes


def permutation_bytes(universe: int, item_bytes: int = 4) -> int:
    """Bytes of one explicit permutation of the universe: why nobody stores k of them.

    >>> permutation_bytes(10**9)
    4000000000
    """
    return universe * item_bytes


def pair_count(documents: int) -> int:
    """n(n−1)/2, the comparisons of each document with each other.

    >>> pair_count(10**6)
    499999500000
    """
    return documents * (documents - 1) // 2


def comparison_days(documents: int, comparisons_per_second: float, seconds_per_day: float = 86_400) -> float:
    """Days to compare each document with each other."""
    return pair_count(documents) / comparisons_per_second / seconds_per_day


def false_candidates(pairs: float, probability: float) -> float:
    """Pairs below the threshold that banding proposes all the same, on average."""
    return pairs * probability
