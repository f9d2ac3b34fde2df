"""Recall of the whole pipeline: pairs at the threshold are found with the probability of the plan.

Every pair has a union of its own of random elements, so hashing makes the pairs independent of each other and the
number found is binomial.
"""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistical_bounds import FAILURE

import minwise as mw
from minwise.options import SchemeName

PAIRS = 3000
# Elements of the union of a pair, for short and for long documents; the thresholds of it are integers.
SHORT, LONG = 20, 400

Words = NDArray[np.int64]


def pairs_at(similarity: float, union: int, seed: int) -> list[Words]:
    """Return sets of which numbers 2i and 2i+1 have exactly this similarity and others hardly anything in common.

    Of each union round(similarity·union) elements are shared; each other one is assigned to a side at random.
    """
    rng = np.random.default_rng(seed)
    shared = round(similarity * union)
    assert shared / union == similarity
    members = rng.integers(-(2**63), 2**63, size=(PAIRS, union))
    sides = rng.random((PAIRS, union - shared)) < 0.5
    sets = []
    for both, rest, left in zip(members[:, :shared], members[:, shared:], sides, strict=True):
        sets += [np.concatenate([both, rest[left]]), np.concatenate([both, rest[~left]])]
    return sets


def min_hits(trials: int, chance: float) -> int:
    """Return the largest h such that fewer than h hits have a probability of at most FAILURE: exact binomial tail."""
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in range(trials + 1)]
    below = 0.0
    for hits, ways in enumerate(logs):
        below += math.exp(ways + hits * math.log(chance) + (trials - hits) * math.log1p(-chance))
        if below > FAILURE:
            return hits
    return trials


def max_hits(trials: int, chance: float) -> int:
    """Return the smallest h such that more than h hits have a probability of at most FAILURE."""
    return trials - min_hits(trials, 1 - chance)


def found_pairs(sets: list[Words], **options: Any) -> dict[tuple[int, int], float]:  # noqa: ANN401 - settings
    """Return the pairs that `mw.pairs` finds among sets."""
    table = mw.pairs(mw.ShingleSets.from_sets(sets), shingle="set", **options)
    left, right, similarity = (table.column(name).to_pylist() for name in ("left", "right", "similarity"))
    return dict(zip(zip(left, right, strict=True), similarity, strict=True))


def test_binomial_bounds() -> None:
    """For 20 coins, P[0 heads] = 9.5·10⁻⁷, P[at most 1] = 2·10⁻⁵."""
    assert min_hits(20, 0.5) == 1
    assert max_hits(20, 0.5) == 19
    assert min_hits(10, 0.5) == 0


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("union", [SHORT, LONG])
@pytest.mark.parametrize("threshold", [0.7, 0.8])
def test_pairs_at_the_threshold_are_found_with_the_promised_recall(
    scheme: SchemeName, union: int, threshold: float
) -> None:
    """As many of 3,000 as the plan says, all with their exact similarity, and no others.

    With one function per slot the number is binomial, so both bounds hold. With ``fast``, slots are negatively
    correlated, which helps on short documents, so only the lower bound holds.
    """
    plan = mw.plan(threshold, 0.99)
    found = found_pairs(pairs_at(threshold, union, seed=union), threshold=threshold, scheme=scheme)
    assert found.keys() <= {(2 * number, 2 * number + 1) for number in range(PAIRS)}
    assert set(found.values()) == {threshold}
    assert plan.recall >= 0.99
    assert len(found) >= min_hits(PAIRS, plan.recall)
    if scheme == "minhash":
        assert len(found) <= max_hits(PAIRS, plan.recall)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("union", [SHORT, LONG])
def test_low_recall_is_not_exceeded_by_much(scheme: SchemeName, union: int) -> None:
    """A plan for 0.6 finds about that: exactly the bands and rows of the plan are used."""
    plan = mw.plan(0.8, 0.6)
    assert 0.6 <= plan.recall < 0.75
    found = found_pairs(pairs_at(0.8, union, seed=7), threshold=0.8, recall=0.6, scheme=scheme)
    assert len(found) >= min_hits(PAIRS, plan.recall)
    if scheme == "minhash" or union == LONG:
        assert len(found) <= max_hits(PAIRS, plan.recall)


@pytest.mark.parametrize("union", [SHORT, LONG])
def test_pairs_just_below_the_threshold_are_not_returned(union: int) -> None:
    """One shared element less than the threshold requires; nearly all of these are candidates."""
    sets = pairs_at(0.75, union, seed=3)
    threshold = (round(0.75 * union) + 1) / union
    assert found_pairs(sets, threshold=threshold, bands=60, rows=4) == {}
    assert len(found_pairs(sets, threshold=0.75, bands=60, rows=4)) == PAIRS  # 3,000·(1 − 0.75⁴)⁶⁰ < 10⁻⁶
