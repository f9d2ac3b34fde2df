"""Estimators of set similarity, their variances and confidence intervals.

All functions are pure mathematics on numbers or NumPy arrays. In the formulas, R is the Jaccard similarity of two sets,
k the number of slots, t the number of bins of one permutation hashing, and f the size of the union of the two sets.
"""

import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.checks import show
from minwise.errors import ConfigError

__all__ = [
    "Estimate",
    "Estimates",
    "bbit_collision_probability",
    "bbit_constants",
    "bbit_estimate",
    "bbit_variance",
    "containment_from_jaccard",
    "hamming_distance",
    "intersection_size",
    "minhash_variance",
    "normal_quantile",
    "one_permutation_trials",
    "one_permutation_variance",
    "slots_for",
    "wilson_interval",
]

Floats = NDArray[np.float64]
Real = TypeVar("Real", float, Floats)

# Up to these sizes the expectation of 1/(t - N_emp) is summed exactly, in at most 0.1 s. Above both, two terms of its
# series have a relative error below one millionth.
MAX_EXACT_BINS = 256
MAX_EXACT_UNION = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimate with its confidence interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        confidence: Share of such intervals that contain the true value, for example 0.95.
    """

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Estimates of many pairs, as arrays of equal length; ``estimates[i]`` is an `Estimate`.

    Attributes:
        value: The estimates.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
        confidence: Share of such intervals that contain the true value.
    """

    value: Floats
    low: Floats
    high: Floats
    confidence: float

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Estimate:
        value, low, high = (float(column[index]) for column in (self.value, self.low, self.high))
        return Estimate(value=value, low=low, high=high, confidence=self.confidence)

    def __iter__(self) -> Iterator[Estimate]:
        return (self[index] for index in range(len(self)))


def wilson_interval(fraction: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's score interval of an observed fraction.

    With p the fraction, n the trials and z the two-sided normal quantile, the ends are
    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n) (Wilson, 1927), computed with w = z²/(n + z²) as
    p(1−w) + w/2 ± √(w(1−w)p(1−p) + w²/4). Unlike p ± z·σ, the interval stays inside [0, 1] and has a width above 0
    when every slot agrees. Zero trials give (0, 1), infinitely many give (p, p).

    Args:
        fraction: Observed fraction of successes, between 0 and 1.
        trials: Number of independent trials; need not be an integer, see `one_permutation_trials`.
        confidence: Share of such intervals that contain the true value, between 0 and 1.

    Raises:
        ConfigError: If an argument is outside its range.

    >>> low, high = wilson_interval(0.5, 400)
    >>> print(f"{low:.3f} {high:.3f}")
    0.451 0.549
    """
    _check_open("confidence", confidence)
    share, count = np.asarray(fraction, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    _check_fraction("fraction", share)
    if np.any(np.isnan(count) | (count < 0)):
        raise ConfigError(f"trials must be at least 0, got {show(count)}")
    squared = normal_quantile(confidence) ** 2
    weight = squared / (count + squared)
    centre = share * (1 - weight) + weight / 2
    half = np.sqrt(weight * (1 - weight) * share * (1 - share) + weight**2 / 4)
    # In exact arithmetic the interval contains the fraction; rounding may move an end past it by one digit.
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)


def slots_for(error: float = 0.05, confidence: float = 0.95) -> int:
    """Return the number of slots that keep a similarity estimate within ± ``error`` of the true value.

    σ = √(R(1−R)/k) is at most 1/(2√k) for any similarity, and z·σ ≤ ε gives k = ⌈(z/2ε)²⌉. z is the two-sided normal
    quantile rounded up to one decimal, so that 95 % is the usual "two sigma". Omitting the square root gives 20 instead
    of 400, an error that occurs in print: 20 slots give ±0.22.

    Args:
        error: Maximum absolute error of the estimate, between 0 and 1. Default: 0.05.
        confidence: Probability of an error of at most ``error``, between 0 and 1. Default: 0.95.

    Raises:
        ConfigError: If an argument is not between 0 and 1.

    >>> slots_for(error=0.05, confidence=0.95)
    400
    """
    _check_open("error", error)
    _check_open("confidence", confidence)
    from fractions import Fraction  # imported here to keep `import minwise` fast

    quantile = Fraction(math.ceil(10 * normal_quantile(confidence)), 10)
    # Exact fractions, because (1.7 / 0.1)² in floats may be on the wrong side of 289.
    return max(1, math.ceil((quantile / (2 * Fraction(str(float(error))))) ** 2))


def minhash_variance(jaccard: Real, slots: int) -> Real:
    """Return R(1−R)/k, the variance of the share of agreeing slots (Broder, 1997).

    >>> minhash_variance(0.5, slots=400)
    0.000625
    """
    _check_count("slots", slots)
    return jaccard * (1 - jaccard) / slots


def one_permutation_variance(jaccard: Real, bins: int, union_size: int) -> Real:
    """Return the variance of the estimate N_mat/(t − N_emp) of one permutation hashing.

    It is R(1−R)·(E[1/(t−N_emp)]·(1 + 1/(f−1)) − 1/(f−1)) (Li, Owen & Zhang, 2012). The non-empty bins sample
    t − N_emp different members of the union without replacement, so given N_emp the matches are hypergeometric and the
    variance is below R(1−R)/t. The expectation is that of f members distributed independently over t equal bins, as
    hashing does (the permutation of an infinite universe).

    Args:
        jaccard: Jaccard similarity of the sets, R.
        bins: Number of bins, t.
        union_size: Size of the union of the sets, f.

    >>> one_permutation_variance(0.5, bins=64, union_size=10_000) < minhash_variance(0.5, slots=64)
    True
    """
    _check_count("bins", bins)
    _check_count("union_size", union_size)
    reciprocal = _expected_reciprocal(bins, union_size)
    # For f = 1, R is 0 or 1 and the variance 0; max() only avoids a division by zero.
    return jaccard * (1 - jaccard) * (reciprocal + (reciprocal - 1) / max(union_size - 1, 1))


def one_permutation_trials(bins: ArrayLike, empty: ArrayLike) -> Floats:
    """Return the number n of independent slots with the variance R(1−R)/n of an observed one permutation sketch.

    Given m = t − N_emp non-empty bins, the variance is R(1−R)/m·(f−m)/(f−1), so n = m(f−1)/(f−m). The union size is
    estimated from the bins, f = ln(N_emp/t)/ln(1−1/t), which is infinite when no bin is empty (then n = t). With few
    non-empty bins n approaches 2t, not m, because the bins hold almost all of the union. Without any it is 0.

    Args:
        bins: Number of bins, t.
        empty: Number of bins that are empty in both sketches, N_emp.

    >>> one_permutation_trials(256, [0, 1, 128, 256]).round().tolist()
    [256.0, 311.0, 459.0, 0.0]
    """
    total, vacant = np.broadcast_arrays(np.asarray(bins, dtype=np.float64), np.asarray(empty, dtype=np.float64))
    if np.any(total < 1) or np.any(vacant < 0) or np.any(vacant > total):
        raise ConfigError(f"empty must be between 0 and bins, got {show(vacant)} of {show(total)}")
    occupied = total - vacant
    with np.errstate(divide="ignore", invalid="ignore"):
        union = np.log(vacant / total) / np.log1p(-1 / total)
        trials = occupied * (union - 1) / (union - occupied)
    # For m = 1 the formula is 0/0; its limit is 2t − 2/3, up to O(1/t).
    defined = np.where(vacant == 0, total, np.where(occupied == 1, 2 * total - 2 / 3, trials))
    return np.where(occupied == 0, 0.0, defined)


def bbit_constants(
    size_left: ArrayLike, size_right: ArrayLike, universe: int | None, bits: int
) -> tuple[Floats, Floats]:
    """Return the constants C1 and C2 of b-bit minwise hashing (Li & König, 2010).

    They say how often the low bits of two unequal minima agree. With r = |X|/D and
    A = r(1−r)^(2ᵇ−1) / (1−(1−r)^(2ᵇ)) for each set, C1 = (A_X·r_Y + A_Y·r_X)/(r_X + r_Y) and
    C2 = (A_X·r_X + A_Y·r_Y)/(r_X + r_Y).

    Args:
        size_left: Size of the left set.
        size_right: Size of the right set.
        universe: Size of the universe, D; None for infinity, the case of hashed elements, where both are 2⁻ᵇ.
        bits: Bits kept per slot, b.

    >>> [float(constant) for constant in bbit_constants(100, 100, None, bits=1)]
    [0.5, 0.5]
    """
    _check_count("bits", bits)
    left, right = np.broadcast_arrays(np.asarray(size_left, dtype=np.float64), np.asarray(size_right, dtype=np.float64))
    if universe is None:
        return np.full(left.shape, 2.0**-bits), np.full(left.shape, 2.0**-bits)
    for name, size in (("size_left", left), ("size_right", right)):
        if np.any(size < 1) or np.any(size > universe):
            raise ConfigError(f"{name} must be between 1 and the universe of {universe}, got {show(size)}")
    agree_left, agree_right = _low_bits_agree(left / universe, bits), _low_bits_agree(right / universe, bits)
    first = (agree_left * right + agree_right * left) / (left + right)
    second = (agree_left * left + agree_right * right) / (left + right)
    return first, second


def bbit_collision_probability(jaccard: Real, c1: Real, c2: Real) -> Real:
    """Return P_b = C1 + (1 − C2)·R, the probability that the low b bits of two slots agree.

    This is theorem 1 of Li & König (2010); `bbit_constants` returns C1 and C2.

    >>> bbit_collision_probability(0.5, 0.5, 0.5)
    0.75
    """
    return c1 + (1 - c2) * jaccard


def bbit_estimate(matching_fraction: Real, c1: Real, c2: Real) -> Real:
    """Return the estimate R̂ = (P̂ − C1)/(1 − C2) from the observed share P̂ of agreeing b-bit slots.

    The estimate is unbiased and therefore not clipped: it may be slightly below 0.

    >>> bbit_estimate(0.75, 0.5, 0.5)
    0.5
    """
    return (matching_fraction - c1) / (1 - c2)


def bbit_variance(jaccard: Real, slots: int, c1: Real, c2: Real) -> Real:
    """Return P_b(1−P_b) / (k(1−C2)²), the variance of `bbit_estimate` (Li & König, 2010).

    It decreases to R(1−R)/k as b grows.

    >>> bbit_variance(0.5, 100, 0.5, 0.5) / minhash_variance(0.5, 100)
    3.0
    """
    _check_count("slots", slots)
    probability = bbit_collision_probability(jaccard, c1, c2)
    return probability * (1 - probability) / (slots * (1 - c2) ** 2)


def intersection_size(jaccard: Real, size_left: Real, size_right: Real) -> Real:
    """Return the size of the intersection of two sets, a = R/(1+R)·(|X|+|Y|).

    >>> round(intersection_size(0.6, 4, 4), 9)
    3.0
    """
    return jaccard / (1 + jaccard) * (size_left + size_right)


def hamming_distance(jaccard: Real, size_left: Real, size_right: Real) -> Real:
    """Return the number of members of exactly one of two sets, (1−R)/(1+R)·(|X|+|Y|) = |X|+|Y|−2a.

    >>> round(hamming_distance(0.6, 4, 4), 9)
    2.0
    """
    return (1 - jaccard) / (1 + jaccard) * (size_left + size_right)


def containment_from_jaccard(jaccard: Real, size_left: Real, size_right: Real) -> Real:
    """Return the share of the left set that is in the right one, a/|X|, at most 1; 0 for an empty left set.

    >>> float(containment_from_jaccard(0.5, 5, 10))
    1.0
    """
    shared = np.clip(intersection_size(jaccard, size_left, size_right), 0.0, size_left)
    share: Real = shared / np.maximum(size_left, 1)
    return share


def normal_quantile(confidence: float) -> float:
    """Return z such that mean ± z·σ contains the share ``confidence`` of a normal distribution."""
    from statistics import NormalDist  # imported here to keep `import minwise` fast

    return NormalDist().inv_cdf((1 + confidence) / 2)


def _low_bits_agree(density: Floats, bits: int) -> Floats:
    """Return A of `bbit_constants`; uses logarithms, because the plain formula is 0/0 at densities of hashed sets."""
    with np.errstate(divide="ignore"):  # density 1: log1p(-1) is -inf and the result correctly 0
        absent = np.log1p(-density)
    result: Floats = density * np.exp((2.0**bits - 1) * absent) / -np.expm1(2.0**bits * absent)
    return result


@lru_cache(maxsize=256)
def _expected_reciprocal(bins: int, members: int) -> float:
    """Return E[1/(t − N_emp)] for members distributed independently and uniformly over t bins."""
    if members > bins * (math.log(bins) + 40):
        return 1 / bins  # P[an empty bin] < t·exp(−f/t) ≤ exp(−40), below the precision of a float
    if bins <= MAX_EXACT_BINS or members <= MAX_EXACT_UNION:
        chances = _occupancy(bins, members)
        return float(np.sum(chances[1:] / np.arange(1, len(chances))))
    return _reciprocal_series(bins, members)


def _occupancy(bins: int, members: int) -> Floats:
    """Return the probabilities that 0, 1, 2, … bins are occupied; a member hits one of m occupied bins with m/t."""
    occupied = np.arange(min(bins, members) + 1)
    chances: Floats = (occupied == 0).astype(np.float64)
    for _ in range(members):
        grown = chances[:-1] * (1 - occupied[:-1] / bins)
        chances *= occupied / bins
        chances[1:] += grown
    return chances


def _reciprocal_series(bins: int, members: int) -> float:
    """Return 1/μ + σ²/μ³ with the exact mean and variance of the number of occupied bins.

    The next terms of E[1/m] are of order (σ/μ)⁴, and σ/μ is below 1/√t here.
    """
    one_vacant = math.exp(members * math.log1p(-1 / bins))
    two_vacant = math.exp(members * math.log1p(-2 / bins))
    mean = bins * (1 - one_vacant)
    variance = bins * one_vacant + bins * (bins - 1) * two_vacant - (bins * one_vacant) ** 2
    return 1 / mean + variance / mean**3


def _check_open(name: str, value: float) -> None:
    # If (1 + value) / 2 rounds to 1, the normal quantile is infinite.
    if not isinstance(value, numbers.Real) or not 0 < value < 1 or (1 + float(value)) / 2 >= 1:
        raise ConfigError(f"{name} must be between 0 and 1, both excluded, got {show(value)}")


def _check_count(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"{name} must be at least 1, got {show(value)}")


def _check_fraction(name: str, value: Floats) -> None:
    if not np.all((value >= 0) & (value <= 1)):
        raise ConfigError(f"{name} must be between 0 and 1, got {show(value)}")
