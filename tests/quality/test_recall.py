"""Recall: of pairs just at the threshold the plan's share is found, through the whole pipeline.

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

PAIRS = 3000
# Elements of a pair's union: of short documents and of long ones; thresholds of it are whole numbers.
SHORT, LONG = 20, 400

Words = NDArray[np.int64]


def pairs_at(similarity: float, union: int, seed: int) -> list[Words]:
    """Sets of which numbers 2i and 2i+1 have exactly this similarity and all others hardly anything in common.

    Of each union round(similarity·union) elements are shared; each other one goes to a side at random.
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


def least_hits(trials: int, chance: float) -> int:
    """The most hits h for which fewer than h come with a probability of at most FAILURE: exact binomial tail."""
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in range(trials + 1)]
    below = 0.0
    for hits, ways in enumerate(logs):
        below += math.exp(ways + hits * math.log(chance) + (trials - hits) * math.log1p(-chance))
        if below > FAILURE:
            return hits
    return trials


def most_hits(trials: int, chance: float) -> int:
    """The fewest hits h for which more than h come with a probability of at most FAILURE."""
    return trials - least_hits(trials, 1 - chance)


def found_pairs(sets: list[Words], **options: Any) -> dict[tuple[int, int], float]:  # noqa: ANN401 - settings
    """What `mw.pairs` finds among sets."""
    table = mw.pairs(mw.ShingleSets.from_sets(sets), shingle="set", **options)
    left, right, similarity = (table.column(name).to_pylist() for name in ("left", "right", "similarity"))
    return dict(zip(zip(left, right, strict=True), similarity, strict=True))


def test_the_binomial_bounds() -> None:
    """Where they can be counted: 20 coins, P[0 heads] = 9.5·10⁻⁷, P[at most 1] = 2·10⁻⁵."""
    assert least_hits(20, 0.5) == 1
    assert most_hits(20, 0.5) == 19
    assert least_hits(10, 0.5) == 0


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("union", [SHORT, LONG])
@pytest.mark.parametrize("threshold", [0.7, 0.8])
def test_pairs_at_the_threshold_are_found_with_the_promised_recall(scheme: str, union: int, threshold: float) -> None:
    """As many of 3,000 as the plan says, all with their exact similarity, and none that was not planted.

    One function per slot makes the number binomial from both sides. With ``fast`` slots repel each other, which helps
    on short documents, so there only too few would be wrong.
    """
    plan = mw.plan(threshold, 0.99)
    found = found_pairs(pairs_at(threshold, union, seed=union), threshold=threshold, scheme=scheme)
    assert found.keys() <= {(2 * number, 2 * number + 1) for number in range(PAIRS)}
    assert set(found.values()) == {threshold}
    assert plan.recall >= 0.99
    assert len(found) >= least_hits(PAIRS, plan.recall)
    if scheme == "minhash":
        assert len(found) <= most_hits(PAIRS, plan.recall)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("union", [SHORT, LONG])
def test_a_low_recall_is_not_exceeded_by_much(scheme: str, union: int) -> None:
    """A plan for 0.6 finds about that: bands and rows are those that the plan says, and no more are looked at."""
    plan = mw.plan(0.8, 0.6)
    assert 0.6 <= plan.recall < 0.75
    found = found_pairs(pairs_at(0.8, union, seed=7), threshold=0.8, recall=0.6, scheme=scheme)
    assert len(found) >= least_hits(PAIRS, plan.recall)
    if scheme == "minhash" or union == LONG:
        assert len(found) <= most_hits(PAIRS, plan.recall)


@pytest.mark.parametrize("union", [SHORT, LONG])
def test_pairs_just_below_the_threshold_are_never_given(union: int) -> None:
    """One shared element less than the threshold asks for; nearly all of these are candidates."""
    sets = pairs_at(0.75, union, seed=3)
    threshold = (round(0.75 * union) + 1) / union
    assert found_pairs(sets, threshold=threshold, bands=60, rows=4) == {}
    assert len(found_pairs(sets, threshold=0.75, bands=60, rows=4)) == PAIRS  # 3,000·(1 − 0.75⁴)⁶⁰ < 10⁻⁶
