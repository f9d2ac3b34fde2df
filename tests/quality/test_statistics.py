"""Statistics of the schemes: unbiased, and with the variance of theory. `support.statistical_bounds` has the bounds."""

import numpy as np
import pytest
from support.schemes import scheme
from support.statistical_bounds import assert_mean, assert_mean_at_most
from support.trials import JACCARDS, SCHEMES, SLOTS, cell, errors

import minwise as mw
from minwise.sketches.estimates import minhash_variance, one_permutation_variance

SIZES = (20, 50, 200, 1000, 10_000)


def fast_variance(jaccard: float, slots: int, union: int) -> float:
    """Return the exact variance of FastSketch, R(1−R)/k · (1 − (k−1)·s/(f−1)), s being the chance of a common round.

    A slot agrees if the member of the union that wins it is shared, and all f members are equally likely to win it.
    Two slots filled in the same round have two different winners; filled in different rounds, independent winners. So
    one member wins both with probability q = (1−s)/f, and the correlation of two agreements is
    q − (1−q)/(f−1) = −s/(f−1). A round leaves two given bins empty with probability p₀ = (1−2/k)^f and fills both with
    probability p₂ = 1 − 2(1−1/k)^f + p₀. Both are filled in the same one of the first k rounds with probability
    s = p₂·(1 + p₀ + p₀² + … + p₀^(k−1)); the later rounds fill one bin each.
    """
    neither = (1 - 2 / slots) ** union
    both = 1 - 2 * (1 - 1 / slots) ** union + neither
    common_round = both * (1 - neither**slots) / (1 - neither)
    return minhash_variance(jaccard, slots) * (1 - (slots - 1) * common_round / (union - 1))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize("name", SCHEMES)
def test_estimates_are_unbiased(name: str, size: int, jaccard: float) -> None:
    """For sets with fewer members than slots and with more."""
    assert_mean(errors(name, size, jaccard), 0.0)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("size", [20, 1000])
def test_estimates_of_32_bit_elements_are_unbiased(name: str, size: int) -> None:
    """Shingles of 32 bits leave the upper half of every element zero."""
    assert_mean(errors(name, size, 0.5, hash_bits=32), 0.0)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("slots", [7, 100])
def test_estimates_with_odd_numbers_of_slots_are_unbiased(name: str, slots: int) -> None:
    """Also for numbers of bins that do not divide 2⁶⁴."""
    assert_mean(errors(name, 50, 0.5, slots=slots), 0.0)


@pytest.mark.parametrize("name", SCHEMES)
def test_estimates_of_texts_are_unbiased(name: str) -> None:
    """Two texts that differ in every tenth word, over 1,000 seeds."""
    words = [f"w{i % 97}x{i}" for i in range(400)]
    changed = [word if i % 10 else f"{word}y" for i, word in enumerate(words)]
    sets = mw.Shingler("word:3").shingle([" ".join(words), " ".join(changed)])
    values = np.array([scheme(name, SLOTS, seed).sketch(sets).estimate(0, 1).value for seed in range(1, 1001)])
    assert_mean(values, mw.jaccard(sets[0], sets[1]))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 200, 1000])
def test_minhash_has_the_variance_of_independent_slots(size: int, jaccard: float) -> None:
    """E[(R̂ − R)²] = R(1−R)/k."""
    assert_mean(errors("minhash", size, jaccard) ** 2, minhash_variance(cell(size, jaccard).jaccard, SLOTS))


@pytest.mark.parametrize("size", [20, 1000])
def test_minhash_of_32_bit_elements_has_the_variance_of_independent_slots(size: int) -> None:
    """The upper halves of all elements are zero."""
    variance = minhash_variance(cell(size, 0.5).jaccard, SLOTS)
    assert_mean(errors("minhash", size, 0.5, hash_bits=32) ** 2, variance)


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", SIZES)
def test_fast_sketch_errs_no_more_than_minhash(size: int, jaccard: float) -> None:
    """E[(R̂ − R)²] ≤ R(1−R)/k at every size."""
    assert_mean_at_most(errors("fast", size, jaccard) ** 2, minhash_variance(cell(size, jaccard).jaccard, SLOTS))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", SIZES)
def test_fast_sketch_has_the_variance_of_its_rounds(size: int, jaccard: float) -> None:
    """Not only the bound but the variance itself, as derived in `fast_variance`."""
    situation = cell(size, jaccard)
    assert_mean(errors("fast", size, jaccard) ** 2, fast_variance(situation.jaccard, SLOTS, situation.union))


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize("size", [20, 50, 200])
def test_fast_sketch_errs_clearly_less_on_sets_smaller_than_the_slots(size: int, jaccard: float) -> None:
    """Below two thirds of R(1−R)/k. Theory says 0.50 to 0.55 here, which leaves more than enough for chance."""
    situation = cell(size, jaccard)
    limit = 2 / 3 * minhash_variance(situation.jaccard, SLOTS)
    assert fast_variance(situation.jaccard, SLOTS, situation.union) < limit
    assert float((errors("fast", size, jaccard) ** 2).mean()) < limit


@pytest.mark.parametrize("jaccard", JACCARDS)
@pytest.mark.parametrize(("slots", "size"), [(64, 50), (64, 200), (256, 50), (256, 200), (256, 1000), (256, 10_000)])
def test_one_permutation_has_the_variance_of_formula_28(slots: int, size: int, jaccard: float) -> None:
    """R(1−R)·(E[1/(t−N_emp)]·(1 + 1/(f−1)) − 1/(f−1)), from mostly empty bins to none (Li, Owen & Zhang, 2012)."""
    situation = cell(size, jaccard)
    variance = one_permutation_variance(situation.jaccard, slots, situation.union)
    assert_mean(errors("oph", size, jaccard, slots=slots) ** 2, variance)


@pytest.mark.parametrize("densify", ["rotation", "optimal"])
@pytest.mark.parametrize("jaccard", JACCARDS)
def test_densified_bins_are_unbiased_where_most_are_borrowed(densify: str, jaccard: float) -> None:
    """About 30 members in 256 bins: nine of ten bins are filled from others."""
    assert_mean(errors(f"oph+{densify}", 20, jaccard), 0.0)


def test_optimal_densification_errs_less_than_rotation() -> None:
    """On sets much smaller than the bins its mean squared error is lower by more than chance.

    The difference of squared errors, pair by pair, has a negative mean by more than the allowance.
    """
    difference = errors("oph+optimal", 20, 0.5) ** 2 - errors("oph+rotation", 20, 0.5) ** 2
    assert_mean_at_most(difference, 0.0)
    assert float(difference.mean()) < 0
