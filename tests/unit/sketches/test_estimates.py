"""Estimators: laws and closed forms."""

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise.errors import ConfigError
from minwise.sketches import estimates as est

fractions = st.floats(min_value=0, max_value=1)


def test_estimates_are_a_sequence_of_estimate() -> None:
    many = est.Estimates(
        value=np.array([0.5, 0.2]), low=np.array([0.4, 0.1]), high=np.array([0.6, 0.3]), confidence=0.9
    )
    assert len(many) == 2
    assert many[1] == est.Estimate(value=0.2, low=0.1, high=0.3, confidence=0.9)
    assert [one.value for one in many] == [0.5, 0.2]


@given(fraction=fractions, trials=st.floats(min_value=0, max_value=1e9))
def test_wilson_interval_contains_the_fraction(fraction: float, trials: float) -> None:
    """The interval stays inside [0, 1]; 10⁻¹² is for rounding."""
    low, high = est.wilson_interval(fraction, trials)
    assert 0 <= low <= fraction + 1e-12
    assert fraction - 1e-12 <= high <= 1


@pytest.mark.parametrize("successes", [0, 3, 50, 97, 100])
def test_wilson_ends_solve_the_score_equation(successes: int) -> None:
    """Both ends p solve |p̂ − p| = z·√(p(1−p)/n), the definition."""
    fraction, trials, z = successes / 100, 100, NormalDist().inv_cdf(0.975)
    for end in est.wilson_interval(fraction, trials, 0.95):
        assert abs(fraction - end) == pytest.approx(z * math.sqrt(end * (1 - end) / trials), abs=1e-12)


def test_wilson_interval_of_zero_and_of_infinitely_many_trials() -> None:
    low, high = est.wilson_interval([0.3, 0.3], [0, math.inf])
    assert low.tolist() == [0, 0.3]
    assert high.tolist() == [1, 0.3]


@pytest.mark.parametrize(("fraction", "trials", "confidence"), [(1.5, 10, 0.9), (0.5, -1, 0.9), (0.5, 10, 1.0)])
def test_wilson_refuses_values_out_of_range(fraction: float, trials: float, confidence: float) -> None:
    with pytest.raises(ConfigError, match="must be"):
        est.wilson_interval(fraction, trials, confidence)


@pytest.mark.parametrize("error", [0.01, 0.02, 0.03, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_slots_for_is_the_smallest_sufficient_number(error: float, confidence: float) -> None:
    """One slot fewer would violate z/(2√k) ≤ ε, in exact fractions."""
    slots = est.slots_for(error, confidence)
    z = Fraction(math.ceil(10 * NormalDist().inv_cdf((1 + confidence) / 2)), 10)
    wanted = Fraction(str(error))
    assert (z / 2) ** 2 <= wanted**2 * slots
    assert (z / 2) ** 2 > wanted**2 * (slots - 1)


@pytest.mark.parametrize(("error", "confidence"), [(0, 0.95), (1, 0.95), (0.05, 0), (0.05, 1), (math.nan, 0.95)])
def test_slots_for_refuses_values_out_of_range(error: float, confidence: float) -> None:
    with pytest.raises(ConfigError, match="both excluded"):
        est.slots_for(error, confidence)


@pytest.mark.parametrize(("bins", "union"), [(1, 3), (2, 4), (3, 5), (4, 4)])
def test_one_permutation_variance_by_enumerating_bins(bins: int, union: int) -> None:
    """All tᶠ assignments, each with the hypergeometric mean over the orders inside the bins, in exact fractions."""
    shared = union // 2
    jaccard = Fraction(shared, union)
    total = Fraction(0)
    for throw in itertools.product(range(bins), repeat=union):
        used = len(set(throw))
        total += jaccard * (1 - jaccard) / used * Fraction(union - used, union - 1)
    expected = float(total / bins**union)
    assert est.one_permutation_variance(float(jaccard), bins, union) == pytest.approx(expected, rel=1e-12)


def test_one_permutation_variance_by_enumerating_bins_and_orders() -> None:
    """By the definition: 2 of 4 members shared, 2 bins, all assignments and all orders of the members."""
    estimates = []
    for throw in itertools.product(range(2), repeat=4):
        for order in itertools.permutations(range(4)):
            winners = {throw[member]: member for member in reversed(order)}
            estimates.append(Fraction(sum(member < 2 for member in winners.values()), len(winners)))
    mean = sum(estimates, Fraction(0)) / len(estimates)
    variance = sum(((value - mean) ** 2 for value in estimates), Fraction(0)) / len(estimates)
    assert mean == Fraction(1, 2)
    assert est.one_permutation_variance(0.5, bins=2, union_size=4) == pytest.approx(float(variance), rel=1e-12)


@pytest.mark.parametrize(("bins", "union"), [(257, 4097), (512, 4097), (1024, 5000), (2048, 6000)])
def test_series_and_exact_sum_agree_at_the_limit(bins: int, union: int) -> None:
    """To a millionth, as documented where the limit is defined."""
    chances = est._occupancy(bins, union)
    exact = float(np.sum(chances[1:] / np.arange(1, len(chances))))
    assert est._reciprocal_series(bins, union) == pytest.approx(exact, rel=1e-6)


def test_one_permutation_variance_of_a_single_member_is_zero() -> None:
    """R is then 0 or 1."""
    assert est.one_permutation_variance(1.0, bins=8, union_size=1) == 0


@pytest.mark.parametrize(("bins", "union"), [(64, 30), (64, 100), (256, 1000)])
def test_trials_reproduce_the_variance_at_the_expected_occupancy(bins: int, union: int) -> None:
    """With N_emp at its mean t(1−1/t)ᶠ the union size is exact, so only E[1/m] and 1/E[m] differ.

    They differ by a factor 1 + σ²/μ² with σ² < t/4, and the variance amplifies it by at most f/(f − m).
    """
    empty = bins * (1 - 1 / bins) ** union
    used = bins - empty
    trials = est.one_permutation_trials(bins, empty)
    assert trials == pytest.approx(used * (union - 1) / (union - used), rel=1e-9)
    variance = est.one_permutation_variance(0.5, bins, union)
    slack = bins / 4 / used**2 * union / (union - used)
    assert 0.25 / trials <= variance <= 0.25 / trials * (1 + slack)


def test_trials_at_the_limits() -> None:
    """No bin empty, all empty, one occupied, a single bin."""
    assert est.one_permutation_trials(64, [0, 64]).tolist() == [64, 0]
    near_one = est.one_permutation_trials(64, [62.999, 63])
    assert near_one[0] == pytest.approx(near_one[1], abs=0.05)
    assert float(est.one_permutation_trials(1, 0)) == 1


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_bbit_constants_converge_to_those_of_an_infinite_universe(bits: int) -> None:
    """A = 2⁻ᵇ·(1 − r(2ᵇ−1)/2 + …), so at r = 10⁻⁹ the relative difference is below 2ᵇ·10⁻⁹."""
    for constant in est.bbit_constants(1000, 1000, 10**12, bits):
        assert float(constant) == pytest.approx(2.0**-bits, rel=2**bits * 1e-9)
    assert [float(c) for c in est.bbit_constants(5, 7, None, bits)] == [2.0**-bits] * 2


@given(left=st.integers(1, 40), right=st.integers(1, 40), bits=st.integers(1, 6))
def test_bbit_constants_equal_the_published_formula(left: int, right: int, bits: int) -> None:
    """In exact fractions, over a universe of 40."""
    universe = 40

    def a(size: int) -> Fraction:
        r = Fraction(size, universe)
        return Fraction(r * (1 - r) ** (2**bits - 1) / (1 - (1 - r) ** (2**bits)))

    share = Fraction(right, left + right)
    c1, c2 = est.bbit_constants(left, right, universe, bits)
    assert float(c1) == pytest.approx(float(a(left) * share + a(right) * (1 - share)), rel=1e-9)
    assert float(c2) == pytest.approx(float(a(left) * (1 - share) + a(right) * share), rel=1e-9)


def test_bbit_constants_refuse_sets_larger_than_the_universe() -> None:
    with pytest.raises(ConfigError, match="size_right must be between 1 and the universe of 10"):
        est.bbit_constants(5, 11, 10, bits=2)


@given(jaccard=fractions, bits=st.sampled_from([1, 2, 4, 8]))
def test_bbit_estimate_inverts_the_collision_probability(jaccard: float, bits: int) -> None:
    probability = est.bbit_collision_probability(jaccard, 2.0**-bits, 2.0**-bits)
    assert est.bbit_estimate(probability, 2.0**-bits, 2.0**-bits) == pytest.approx(jaccard, abs=1e-12)


def test_bbit_variance_decreases_to_that_of_whole_slots() -> None:
    variances = [est.bbit_variance(0.4, 100, 2.0**-bits, 2.0**-bits) for bits in (1, 2, 4, 8, 16, 32)]
    assert variances == sorted(variances, reverse=True)
    assert variances[-1] == pytest.approx(est.minhash_variance(0.4, 100), rel=1e-8)


@given(left=st.frozensets(st.integers(0, 30), min_size=1), right=st.frozensets(st.integers(0, 30)))
def test_sizes_from_the_true_similarity_are_the_true_sizes(left: frozenset[int], right: frozenset[int]) -> None:
    """The formulas are exact when R is."""
    jaccard = len(left & right) / len(left | right)
    sizes = (len(left), len(right))
    assert est.intersection_size(jaccard, *sizes) == pytest.approx(len(left & right))
    assert est.hamming_distance(jaccard, *sizes) == pytest.approx(len(left ^ right))
    assert est.containment_from_jaccard(jaccard, *sizes) == pytest.approx(len(left & right) / len(left))


def test_containment_is_between_0_and_1() -> None:
    """At most 1 when R̂ is too high, 0 for an empty set."""
    found = est.containment_from_jaccard(np.array([0.9, 0.5]), np.array([2.0, 0.0]), np.array([100.0, 7.0]))
    assert found.tolist() == [1, 0]
