"""Intervals: they hold the truth as often as they say.

The chance that an interval holds the truth can be summed exactly from the law of the slots, without any simulation. It
differs from the confidence because counts are whole: each end of the interval moves by whole counts, so it is off by at
most the chance of the count at either end, 2·φ(z)/σ for counts of standard deviation σ. Simulation then shows that the
sketches follow that law.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistical_bounds import QUANTILE, assert_share
from support.trials import JACCARDS, SLOTS, Cell, cell, estimate

from minwise.sketches.estimates import bbit_collision_probability, one_permutation_trials, wilson_interval

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
ONE_PERMUTATION_SIZES = (50, 200, 1000)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("slots", [64, 256, 1024])
def test_intervals_of_minhash_are_about_as_sure_as_they_say(slots: int, jaccard: float) -> None:
    """Exact coverage for binomial counts is the confidence, but for whole counts."""
    spread = math.sqrt(slots * jaccard * (1 - jaccard))
    assert abs(binomial_coverage(slots, jaccard) - CONFIDENCE) <= lattice_error(spread)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", ONE_PERMUTATION_SIZES)
def test_intervals_of_one_permutation_are_about_as_sure_as_they_say(size: int, jaccard: float) -> None:
    """Exact coverage for hypergeometric counts in occupied bins is the confidence, but for whole counts."""
    situation = cell(size, jaccard)
    occupied, f, r = SLOTS * (1 - (1 - 1 / SLOTS) ** situation.union), situation.union, situation.jaccard
    spread = math.sqrt(occupied * r * (1 - r) * (f - occupied) / (f - 1))
    assert abs(one_permutation_coverage(situation) - CONFIDENCE) <= lattice_error(spread)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 1000])
def test_intervals_of_minhash_hold_the_truth(size: int, jaccard: float) -> None:
    """As often as binomial counts make them."""
    truth = cell(size, jaccard).jaccard
    assert_share(holds("minhash", size, jaccard), binomial_coverage(SLOTS, truth))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", ONE_PERMUTATION_SIZES)
def test_intervals_of_one_permutation_hold_the_truth(size: int, jaccard: float) -> None:
    """As often as hypergeometric counts make them."""
    assert_share(holds("oph", size, jaccard), one_permutation_coverage(cell(size, jaccard)))


@pytest.mark.parametrize("bits", [1, 2, 8])
@pytest.mark.parametrize("jaccard", [0.3, 0.5, 0.8])
def test_intervals_of_packed_minhash_hold_the_truth(jaccard: float, bits: int) -> None:
    """As often as binomial counts of agreeing bits make them."""
    chance = bbit_collision_probability(cell(200, jaccard).jaccard, 2.0**-bits, 2.0**-bits)
    assert_share(holds("minhash", 200, jaccard, bits), binomial_coverage(SLOTS, chance))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 50, 200, 1000, 10_000])
def test_intervals_of_fast_sketch_hold_the_truth_at_least_as_often(size: int, jaccard: float) -> None:
    """Its variance is below that of binomial counts, so it is at least as sure, but for whole counts and chance."""
    hits, truth = holds("fast", size, jaccard), cell(size, jaccard).jaccard
    chance = QUANTILE * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / hits.size)
    assert float(hits.mean()) >= CONFIDENCE - lattice_error(math.sqrt(SLOTS * truth * (1 - truth))) - chance


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 50])
def test_intervals_of_fast_sketch_are_wide_on_small_sets(size: int, jaccard: float) -> None:
    """With half the variance z/√½ = 2.77 of its σ fit: 99.4 % at least, but for whole counts and chance."""
    hits, truth = holds("fast", size, jaccard), cell(size, jaccard).jaccard
    quantile = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(2)
    sure = 2 * NormalDist().cdf(quantile) - 1
    edges = 2 * NormalDist().pdf(quantile) / math.sqrt(SLOTS * truth * (1 - truth) / 2)
    assert float(hits.mean()) >= sure - edges - QUANTILE * math.sqrt(sure * (1 - sure) / hits.size)


def holds(name: str, size: int, jaccard: float, bits: int | None = None) -> NDArray[np.bool_]:
    """Which of the simulated intervals hold the truth."""
    estimates, truth = estimate(name, size, jaccard, bits=bits), cell(size, jaccard).jaccard
    inside: NDArray[np.bool_] = (estimates.low <= truth) & (truth <= estimates.high)
    return inside


def lattice_error(spread: float) -> float:
    """2·φ(z)/σ: the chance of one count at each end."""
    return 2 * NormalDist().pdf(NormalDist().inv_cdf((1 + CONFIDENCE) / 2)) / spread


def binomial_coverage(trials: int, chance: float) -> float:
    """P[the interval of a binomial count holds the chance], summed over the counts."""
    counts = np.arange(trials + 1)
    low, high = wilson_interval(counts / trials, trials, CONFIDENCE)
    logs = log_binomial(trials, counts) + counts * math.log(chance) + (trials - counts) * math.log1p(-chance)
    return float(np.exp(logs)[(low <= chance) & (chance <= high)].sum())


def one_permutation_coverage(situation: Cell) -> float:
    """P[the interval holds the truth], summed over occupied bins m and hypergeometric matches h."""
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
    """Chances of 0, 1, 2, … occupied bins when the members fall one after the other."""
    chances = np.zeros(bins + 1)
    chances[0] = 1.0
    counts = np.arange(bins + 1)
    for _ in range(members):
        chances = chances * counts / bins + np.concatenate([[0.0], chances[:-1] * (1 - counts[:-1] / bins)])
    return [float(chance) for chance in chances]


def log_binomial(n: int, k: NDArray[np.integer]) -> Floats:
    """Logarithms of the binomial coefficients n over k."""
    values = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in np.atleast_1d(k).tolist()]
    return np.array(values)
