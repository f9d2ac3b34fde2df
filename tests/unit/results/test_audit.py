"""Audit: shares with their intervals, bins, what a sample tells of the whole, and a gap in the similarities."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.expect import complaint

import minwise as mw
from minwise.results.audit import Audit, Spread, Suggestion, effective_trials, floor_below, suggest, summarise
from minwise.search.audit_sample import Seen
from minwise.search.bands import BucketCounts
from minwise.search.clustering import PairBlock
from minwise.settings import FindSettings
from minwise.sketches.estimates import wilson_interval

THRESHOLD, FLOOR = 0.8, 0.4

Pairs = dict[tuple[int, int], float]


def seen(pairs: Pairs, sampled: tuple[int, ...], documents: int, missed: tuple[tuple[int, int], ...] = ()) -> Seen:
    """What an audit of these documents sees of these pairs; all but some are found, and nothing else is proposed."""
    touched = sorted(pair for pair in pairs if set(pair) & set(sampled))
    low, high = (np.array([pair[side] for pair in touched], dtype=np.uint32) for side in (0, 1))
    block = PairBlock(low, high, np.array([pairs[pair] for pair in touched]))
    found = np.array([pair not in missed for pair in touched], dtype=bool)
    owners = [next(one for one in pair if one in sampled) for pair in touched if pair not in missed]
    candidates = np.array([owners.count(one) for one in sampled], dtype=np.int64)
    return Seen(block, found, np.array(sampled, dtype=np.int64), candidates, documents, documents, 0, 0, BucketCounts())


def figures(what: Seen, threshold: float = THRESHOLD) -> Audit:
    """The figures of an audit with 20 bands of 5 rows."""
    settings = FindSettings(plan=mw.plan(threshold, bands=20, rows=5), shingler=None)
    return summarise(what, settings, FLOOR, recall=0.99, slots=256)


@pytest.mark.parametrize(
    ("groups", "worth"),
    [
        ([1], 1.0),
        ([1, 2, 3, 4], 4.0),  # each on its own: as many as there are
        ([7, 7, 7, 7], 1.0),  # all together: one
        ([3, 9, 3, 9], 2.0),
        ([1, 1, 2], 9 / 5),  # 3² / (2² + 1²)
        ([5, 1, 5, 5, 2, 1], 36 / 14),
    ],
)
def test_what_groups_are_worth(groups: list[int], worth: float) -> None:
    """Kish's effective size, (Σt)² / Σt², in any order."""
    assert effective_trials(np.array(groups)) == pytest.approx(worth)


def test_a_share_by_hand() -> None:
    """Documents 0 and 5 are sampled: three pairs of 0 and one of 5, of which two are missed.

    4 pairs are worth 16 / (9 + 1) = 1.6 trials. Of each document a pair is found.
    """
    pairs = {(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.85, (5, 6): 0.8, (0, 4): 0.5, (8, 9): 1.0}
    result = figures(seen(pairs, (0, 5), 10, missed=((0, 2), (0, 3))))
    low, high = wilson_interval(0.5, 1.6, 0.95)
    assert result.recall == type(result.recall)(2, 4, 0.5, float(low), float(high))
    curve = mw.plan(THRESHOLD, bands=20, rows=5).probability
    assert result.promised == pytest.approx((2 * curve(0.9) + curve(0.85) + curve(0.8)) / 4)
    assert (result.with_duplicates.found, result.with_duplicates.of) == (2, 2)
    assert (result.precision.found, result.precision.of) == (2, 3)  # the pair of 0.5 was proposed in vain
    assert result.precision.low == pytest.approx(float(wilson_interval(2 / 3, 9 / 5, 0.95)[0]))
    assert (result.sampled, result.distinct, result.complete) == (2, 10, False)


def test_documents_with_duplicates_of_which_none_is_found() -> None:
    """A document counts once, however many are similar to it; those of one cluster are one throw."""
    pairs = {(0, 1): 0.9, (0, 2): 0.9, (1, 2): 0.9, (3, 4): 0.8, (5, 6): 0.79}
    result = figures(seen(pairs, tuple(range(7)), 7, missed=((0, 2), (1, 2), (3, 4))))
    share = result.with_duplicates
    assert (share.found, share.of) == (2, 5)  # 0 and 1 are found as a pair; 2, 3 and 4 are not
    low, high = wilson_interval(2 / 5, 25 / (9 + 4), 0.95)
    assert (share.low, share.high) == (float(low), float(high))


def test_bins_have_exact_borders() -> None:
    """What is right at a border belongs to the bin above, 1 to the last."""
    values = [0.4, 0.45, float(np.nextafter(0.45, 0)), 0.8, float(np.nextafter(0.8, 0)), 0.95, 1.0]
    pairs = {(2 * one, 2 * one + 1): value for one, value in enumerate(values)}
    result = figures(seen(pairs, tuple(range(14)), 14))
    counts = {one.start: one.share.of for one in result.bins if one.share.of}
    assert counts == {0.4: 2, 0.45: 1, 0.75: 1, 0.8: 1, 0.95: 2}
    assert [one.start for one in result.bins] == [round(0.4 + 0.05 * one, 6) for one in range(12)]
    assert result.bins[-1].end == 1.0
    assert {one.start: one.seen for one in result.spread if one.seen} == {
        0.4: 1, 0.425: 1, 0.45: 1, 0.775: 1, 0.8: 1, 0.95: 1, 0.975: 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("threshold", "floor"),
    [
        (0.8, 0.4),
        (0.79, 0.35),
        (0.7, 0.35),
        (0.3, 0.15),
        (0.1, 0.05),
        (0.09, 0.05),
        (0.05, 0.05),
        (0.02, 0.02),
        (1.0, 0.5),
    ],
)
def test_the_floor(threshold: float, floor: float) -> None:
    """Half of the threshold, down to a border; never above the threshold."""
    assert floor_below(threshold) == floor


def test_estimates_of_pairs_are_unbiased() -> None:
    """Over every sample of 3 out of 7 documents the estimates of each bin have the true number as their exact mean."""
    pairs = {(0, 1): 0.81, (0, 2): 0.81, (0, 3): 0.82, (4, 5): 0.81, (1, 2): 0.5, (5, 6): 0.99}
    true = [one.seen for one in figures(seen(pairs, tuple(range(7)), 7)).spread]
    assert sum(true) == len(pairs)
    runs = [figures(seen(pairs, sampled, 7)) for sampled in combinations(range(7), 3)]
    means = np.mean([[one.estimated for one in run.spread] for run in runs], axis=0)
    assert means == pytest.approx(np.array(true, dtype=float))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7])
def test_an_estimate_lies_in_its_interval(size: int) -> None:
    """And is no less than what was seen, of any sample."""
    pairs = {(0, 1): 0.81, (0, 2): 0.81, (0, 3): 0.82, (4, 5): 0.81, (1, 2): 0.5, (5, 6): 0.99}
    for sampled in combinations(range(7), size):
        for one in figures(seen(pairs, sampled, 7)).spread:
            assert one.seen <= one.low <= one.estimated <= one.high


def test_one_document_does_not_tell_for_sure() -> None:
    """Of a sample of one no variance is known: the interval must not be a point."""
    [top] = [one for one in figures(seen({(0, 1): 0.81, (2, 3): 0.81}, (0,), 100)).spread if one.seen]
    assert top.low < top.high


def test_intervals_of_estimates_hold_the_truth() -> None:
    """Nineteen times of twenty, nearly: 100 of 400 documents in a graph of random stars, 300 samples.

    Skewed degrees and few documents cost a normal interval some of its 95 %. If it had 91 %, fewer than 82 % of 300
    would come with a probability below 10⁻⁶ (exact binomial tail).
    """
    rng = np.random.default_rng(1)
    pairs: Pairs = {}
    for hub in range(0, 400, 8):
        pairs |= {(hub, hub + 1 + one): 0.86 for one in range(int(rng.integers(0, 7)))}
    hits = 0
    for _ in range(300):
        sampled = tuple(sorted(rng.choice(400, size=100, replace=False).tolist()))
        [place] = [one for one in figures(seen(pairs, sampled, 400)).spread if one.start == 0.85]
        hits += place.low <= len(pairs) <= place.high
    assert hits >= 0.82 * 300


def test_what_was_not_seen_may_still_be_there() -> None:
    """Without a pair the estimate is 0 and its upper end is not; of all documents it is."""
    some, every = figures(seen({}, (1, 4, 7), 10)), figures(seen({}, tuple(range(10)), 10))
    assert {(one.estimated, one.low) for one in some.spread} == {(0.0, 0.0)}
    expected = 10 / 2 * float(wilson_interval(0.0, 3, 0.95)[1])
    assert [one.high for one in some.spread] == pytest.approx([expected] * len(some.spread))
    assert {one.high for one in every.spread} == {0.0}


def test_a_written_audit_is_what_it_says(tmp_path: Path) -> None:
    """JSON, with a line break at its end and no file beside it."""
    result = mw.audit(
        [{"text": "one two three four five six"}, {"text": "one two three four five six seven"}], threshold=0.5
    )
    result.write(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_bytes()) == result.to_dict()
    assert (tmp_path / "a.json").read_bytes().endswith(b"}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("sample", [0, -1, 2.5, "10", True, None])
def test_samples_are_whole_numbers(sample: Any) -> None:  # noqa: ANN401 - what is no such number
    """From one on."""
    message = complaint(mw.ConfigError, lambda: mw.audit(["/nothing/here"], sample=sample))
    assert message.startswith("sample must be")
    assert repr(sample) in message


@pytest.mark.parametrize("name", ["keep", "group", "against", "verify", "exact"])
def test_settings_that_mean_nothing(name: str) -> None:
    """Are refused by name."""
    given: dict[str, Any] = {name: None}
    assert repr(name) in complaint(mw.ConfigError, lambda: mw.audit(["one two"], **given))


# --- The valley ---


def spread_of(counts: list[int], start: float = 0.4, width: float = 0.05) -> list[Spread]:
    """Bins from ``start`` on with so many pairs."""
    ends = [round(start + width * place, 6) for place in range(len(counts) + 1)]
    return [
        Spread(low, high, count, count, 3.0 * count, 0.0, 0.0)
        for low, high, count in zip(ends, ends[1:], counts, strict=False)
    ]


def test_a_clear_valley() -> None:
    """Its middle is suggested, with a plan that reaches the recall, and what the change would do."""
    spread = spread_of([900, 400, 100, 4, 2, 2, 60, 300, 500, 400, 300, 800])  # lowest from 0.55 to 0.7
    found = suggest(spread, threshold=0.8, recall=0.95, slots=256)
    assert found is not None
    plan = mw.plan(0.62, 0.95)
    assert found == Suggestion(0.62, plan.bands, plan.rows, plan.recall, found.why)
    assert plan.recall >= 0.95
    assert "between 0.55 and 0.7" in found.why
    assert "would join about 1,086 pairs" in found.why  # 3 · (2 + 60 + 300): from 0.62 to 0.8


def test_a_valley_above_the_threshold() -> None:
    """Then the suggestion leaves out what is now joined."""
    found = suggest(
        spread_of([900, 400, 300, 200, 100, 1, 1, 1, 60, 200, 700, 800]), threshold=0.5, recall=0.99, slots=256
    )
    assert found is not None
    assert found.threshold == 0.73  # between 0.65 and 0.8
    assert "would leave out about 1,806 pairs" in found.why  # 3 · (300 + 200 + 100 + 1 + 1)


NO_VALLEY = {
    "nothing": [0] * 12,
    "flat": [100] * 12,
    "only falling": [900, 700, 500, 300, 200, 100, 50, 20, 10, 5, 2, 1],
    "only rising": [1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 900],
    "one peak": [0, 0, 5, 100, 5, 0, 0, 0, 0, 0, 0, 0],
    "too few to tell": [3, 2, 1, 0, 0, 0, 0, 1, 2, 3, 3, 2],
    "too shallow": [1000, 900, 800, 700, 600, 600, 600, 700, 800, 900, 950, 1000],
    "one bin": [10],
    "two bins": [10, 10],
    "none": [],
}


@pytest.mark.parametrize("counts", NO_VALLEY.values(), ids=NO_VALLEY)
def test_no_valley(counts: list[int]) -> None:
    """Nothing is suggested."""
    assert suggest(spread_of(counts), threshold=0.8, recall=0.99, slots=256) is None


@pytest.mark.parametrize(
    ("threshold", "said"), [(0.62, False), (0.65, False), (0.59, False), (0.67, True), (0.57, True)]
)
def test_a_valley_where_the_threshold_stands(threshold: float, said: bool) -> None:
    """Nothing is to be said within 0.04 of it."""
    spread = spread_of([900, 400, 100, 4, 2, 2, 60, 300, 500, 400, 300, 800])
    assert (suggest(spread, threshold, recall=0.99, slots=256) is not None) is said


def test_a_valley_that_no_plan_reaches() -> None:
    """A threshold for which there are too few slots is not suggested."""
    spread = spread_of([900, 900, 900, 0, 0, 0, 900, 900, 900], start=0.01, width=0.01)
    message = complaint(mw.ConfigError, lambda: mw.plan(0.06, 0.999999, slots=64))
    assert "recall" in message
    assert suggest(spread, threshold=0.8, recall=0.999999, slots=64) is None


def test_a_corpus_with_a_gap_gets_a_suggestion() -> None:
    """Through the whole audit: many pairs near 0.45, many near 0.95, hardly one between."""
    rng = np.random.default_rng(3)
    sets = []
    for shared in [58] * 120 + [97] * 120:  # of 100 each: 58 / 142 = 0.41 and 97 / 103 = 0.94
        base = rng.integers(0, 2**62, size=200 - shared).tolist()
        sets += [base[:100], base[:shared] + base[100:]]
    found = mw.audit(sets, shingle="set", threshold=0.8).suggestion
    assert found is not None
    assert 0.5 <= found.threshold <= 0.76
    assert mw.audit(sets, shingle="set", threshold=found.threshold).suggestion is None
