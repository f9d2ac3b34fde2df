"""Coverage of confidence intervals.

The probability that an interval contains the true value can be summed exactly from the distribution of the slots,
without simulation. It differs from the confidence because counts are integers: each end of the interval moves by whole
counts, so the difference is at most the probability of the count at either end, 2·φ(z)/σ for counts of standard
deviation σ. Simulation then shows that the sketches follow that distribution.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistical_bounds import QUANTILE, assert_share
from support.trials import JACCARDS, SLOTS, Cell, cell, estimate

from minwise.sketches.estimates import bbit_collision_probability, one_permutation_trials, wilson_interval
from minwise.sketches.signatures import Bits

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
ONE_PERMUTATION_SIZES = (50, 200, 1000)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("slots", [64, 256, 1024])
def test_exact_coverage_of_minhash_is_the_confidence(slots: int, jaccard: float) -> None:
    """For binomial counts, up to the error of whole counts."""
    spread = math.sqrt(slots * jaccard * (1 - jaccard))
    assert abs(binomial_coverage(slots, jaccard) - CONFIDENCE) <= lattice_error(spread)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", ONE_PERMUTATION_SIZES)
def test_exact_coverage_of_one_permutation_is_the_confidence(size: int, jaccard: float) -> None:
    """For hypergeometric counts in occupied bins, up to the error of whole counts."""
    situation = cell(size, jaccard)
    occupied, f, r = SLOTS * (1 - (1 - 1 / SLOTS) ** situation.union), situation.union, situation.jaccard
    spread = math.sqrt(occupied * r * (1 - r) * (f - occupied) / (f - 1))
    assert abs(one_permutation_coverage(situation) - CONFIDENCE) <= lattice_error(spread)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 1000])
def test_simulated_coverage_of_minhash(size: int, jaccard: float) -> None:
    """As for binomial counts."""
    truth = cell(size, jaccard).jaccard
    assert_share(contains_truth("minhash", size, jaccard), binomial_coverage(SLOTS, truth))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", ONE_PERMUTATION_SIZES)
def test_simulated_coverage_of_one_permutation(size: int, jaccard: float) -> None:
    """As for hypergeometric counts."""
    assert_share(contains_truth("oph", size, jaccard), one_permutation_coverage(cell(size, jaccard)))


@pytest.mark.parametrize("bits", [1, 2, 8])
@pytest.mark.parametrize("jaccard", [0.3, 0.5, 0.8])
def test_simulated_coverage_of_packed_minhash(jaccard: float, bits: Bits) -> None:
    """As for binomial counts of agreeing bits."""
    chance = bbit_collision_probability(cell(200, jaccard).jaccard, 2.0**-bits, 2.0**-bits)
    assert_share(contains_truth("minhash", 200, jaccard, bits), binomial_coverage(SLOTS, chance))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 50, 200, 1000, 10_000])
def test_simulated_coverage_of_fast_sketch_is_at_least_the_confidence(size: int, jaccard: float) -> None:
    """Its variance is below that of binomial counts; up to whole counts and chance."""
    hits, truth = contains_truth("fast", size, jaccard), cell(size, jaccard).jaccard
    chance = QUANTILE * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / hits.size)
    assert float(hits.mean()) >= CONFIDENCE - lattice_error(math.sqrt(SLOTS * truth * (1 - truth))) - chance


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 50])
def test_intervals_of_fast_sketch_are_wide_on_small_sets(size: int, jaccard: float) -> None:
    """With half the variance, z/√½ = 2.77 of its σ fit: at least 99.4 %, up to whole counts and chance."""
    hits, truth = contains_truth("fast", size, jaccard), cell(size, jaccard).jaccard
    quantile = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(2)
    sure = 2 * NormalDist().cdf(quantile) - 1
    edges = 2 * NormalDist().pdf(quantile) / math.sqrt(SLOTS * truth * (1 - truth) / 2)
    assert float(hits.mean()) >= sure - edges - QUANTILE * math.sqrt(sure * (1 - sure) / hits.size)


def contains_truth(name: str, size: int, jaccard: float, bits: Bits | None = None) -> NDArray[np.bool_]:
    """Return which of the simulated intervals contain the true value."""
    estimates, truth = estimate(name, size, jaccard, bits=bits), cell(size, jaccard).jaccard
    inside: NDArray[np.bool_] = (estimates.low <= truth) & (truth <= estimates.high)
    return inside


def lattice_error(spread: float) -> float:
    """Return 2·φ(z)/σ, the probability of one count at each end."""
    return 2 * NormalDist().pdf(NormalDist().inv_cdf((1 + CONFIDENCE) / 2)) / spread


def binomial_coverage(trials: int, chance: float) -> float:
    """Return P[the interval of a binomial count contains the probability], summed over the counts."""
    counts = np.arange(trials + 1)
    low, high = wilson_interval(counts / trials, trials, CONFIDENCE)
    logs = log_binomial(trials, counts) + counts * math.log(chance) + (trials - counts) * math.log1p(-chance)
    return float(np.exp(logs)[(low <= chance) & (chance <= high)].sum())


def one_permutation_coverage(situation: Cell) -> float:
    """Return P[the interval contains the truth], summed over occupied bins m and hypergeometric matches h."""
    f, a = situation.union, situation.shared
    total = 0.0
    for occupied, weight in enumerate(occupancy(SLOTS, f)):
        matches = np.arange(max(0, occupied - (f - a)), min(a, occupied) + 1)
        if weight < 1e-12 or not occupied:  # 256 such terms are less than 10⁻⁹ together
            continue
        trials = one_permutation_trials(SLOTS, SLOTS - occupied)
        low, high = wilson_interval(matches / occupied, trials, CONFIDENCE)
        logs = log_binomial(a, matches) + log_binomial(f - a, occupied - matches) - log_binomial(f, np.array(occupied))
        total += weight * float(np.exp(logs)[(low <= a / f) & (a / f <= high)].sum())
    return total


def occupancy(bins: int, members: int) -> list[float]:
    """Return the probabilities of 0, 1, 2, … occupied bins."""
    chances = np.zeros(bins + 1)
    chances[0] = 1.0
    counts = np.arange(bins + 1)
    for _ in range(members):
        chances = chances * counts / bins + np.concatenate([[0.0], chances[:-1] * (1 - counts[:-1] / bins)])
    return [float(chance) for chance in chances]


def log_binomial(n: int, k: NDArray[np.integer]) -> Floats:
    """Return the logarithms of the binomial coefficients n over k."""
    values = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in np.atleast_1d(k).tolist()]
    return np.array(values)
