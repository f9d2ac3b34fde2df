"""Audit: shares with their intervals, bins, estimates for the corpus, and the suggested threshold."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError
from minwise.results.audit import (
    Audit,
    HistogramBin,
    ThresholdSuggestion,
    audit_floor,
    effective_trials,
    suggest_threshold,
    summarise_audit,
)
from minwise.search.audit_sample import AuditSample
from minwise.search.bands import BucketCounts
from minwise.search.clustering import PairBlock
from minwise.settings import SearchSettings
from minwise.sketches.estimates import wilson_interval

THRESHOLD, FLOOR = 0.8, 0.4

Pairs = dict[tuple[int, int], float]


def sample_of(
    pairs: Pairs, sampled: tuple[int, ...], documents: int, missed: tuple[tuple[int, int], ...] = ()
) -> AuditSample:
    """Return the audit of a sample: all pairs but the missed ones are found, and nothing else is proposed."""
    visible = sorted(pair for pair in pairs if set(pair) & set(sampled))
    low, high = (np.array([pair[side] for pair in visible], dtype=np.uint32) for side in (0, 1))
    block = PairBlock(low, high, np.array([pairs[pair] for pair in visible]))
    found = np.array([pair not in missed for pair in visible], dtype=bool)
    owners = [next(document for document in pair if document in sampled) for pair in visible if pair not in missed]
    candidates = np.array([owners.count(document) for document in sampled], dtype=np.int64)
    return AuditSample(
        block, found, np.array(sampled, dtype=np.int64), candidates, documents, documents, 0, 0, BucketCounts()
    )


def figures(sample: AuditSample, threshold: float = THRESHOLD) -> Audit:
    """Return the figures of an audit with 20 bands of 5 rows."""
    settings = SearchSettings(plan=mw.plan(threshold, bands=20, rows=5), shingler=None)
    return summarise_audit(sample, settings, FLOOR, recall=0.99, slots=256)


@pytest.mark.parametrize(
    ("groups", "trials"),
    [
        ([1], 1.0),
        ([1, 2, 3, 4], 4.0),  # all independent
        ([7, 7, 7, 7], 1.0),  # one group
        ([3, 9, 3, 9], 2.0),
        ([1, 1, 2], 9 / 5),  # 3² / (2² + 1²)
        ([5, 1, 5, 5, 2, 1], 36 / 14),
    ],
)
def test_effective_trials_of_groups(groups: list[int], trials: float) -> None:
    """Kish's effective sample size, (Σt)² / Σt², for any order."""
    assert effective_trials(np.array(groups)) == pytest.approx(trials)


def test_shares_computed_by_hand() -> None:
    """Documents 0 and 5 are sampled: three pairs of 0 and one of 5, of which two are missed.

    4 pairs are equivalent to 16 / (9 + 1) = 1.6 trials. A pair of each document is found.
    """
    pairs = {(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.85, (5, 6): 0.8, (0, 4): 0.5, (8, 9): 1.0}
    result = figures(sample_of(pairs, (0, 5), 10, missed=((0, 2), (0, 3))))
    low, high = wilson_interval(0.5, 1.6, 0.95)
    assert result.recall == type(result.recall)(2, 4, 0.5, float(low), float(high))
    curve = mw.plan(THRESHOLD, bands=20, rows=5).probability
    assert result.promised == pytest.approx((2 * curve(0.9) + curve(0.85) + curve(0.8)) / 4)
    assert (result.with_duplicates.found, result.with_duplicates.of) == (2, 2)
    assert (result.precision.found, result.precision.of) == (2, 3)  # the pair of 0.5 is a false candidate
    assert result.precision.low == pytest.approx(float(wilson_interval(2 / 3, 9 / 5, 0.95)[0]))
    assert (result.sampled, result.distinct, result.complete) == (2, 10, False)


def test_share_of_documents_with_a_found_duplicate() -> None:
    """A document counts once for any number of duplicates; the documents of a cluster are one trial."""
    pairs = {(0, 1): 0.9, (0, 2): 0.9, (1, 2): 0.9, (3, 4): 0.8, (5, 6): 0.79}
    result = figures(sample_of(pairs, tuple(range(7)), 7, missed=((0, 2), (1, 2), (3, 4))))
    share = result.with_duplicates
    assert (share.found, share.of) == (2, 5)  # 0 and 1 are found as a pair; 2, 3 and 4 are not
    low, high = wilson_interval(2 / 5, 25 / (9 + 4), 0.95)
    assert (share.low, share.high) == (float(low), float(high))


def test_bins_have_exact_borders() -> None:
    """A similarity at a border is in the bin above, 1 is in the last."""
    values = [0.4, 0.45, float(np.nextafter(0.45, 0)), 0.8, float(np.nextafter(0.8, 0)), 0.95, 1.0]
    pairs = {(2 * index, 2 * index + 1): value for index, value in enumerate(values)}
    result = figures(sample_of(pairs, tuple(range(14)), 14))
    counts = {entry.start: entry.share.of for entry in result.bins if entry.share.of}
    assert counts == {0.4: 2, 0.45: 1, 0.75: 1, 0.8: 1, 0.95: 2}
    assert [entry.start for entry in result.bins] == [round(0.4 + 0.05 * number, 6) for number in range(12)]
    assert result.bins[-1].end == 1.0
    assert {entry.start: entry.seen for entry in result.histogram if entry.seen} == {
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
def test_the_floor_is_half_the_threshold_rounded_down_to_a_border(threshold: float, floor: float) -> None:
    assert audit_floor(threshold) == floor


def test_estimates_of_pairs_are_unbiased() -> None:
    """The mean over every sample of 3 out of 7 documents is exactly the true number of each bin."""
    pairs = {(0, 1): 0.81, (0, 2): 0.81, (0, 3): 0.82, (4, 5): 0.81, (1, 2): 0.5, (5, 6): 0.99}
    true = [entry.seen for entry in figures(sample_of(pairs, tuple(range(7)), 7)).histogram]
    assert sum(true) == len(pairs)
    runs = [figures(sample_of(pairs, sampled, 7)) for sampled in combinations(range(7), 3)]
    means = np.mean([[entry.estimated for entry in run.histogram] for run in runs], axis=0)
    assert means == pytest.approx(np.array(true, dtype=float))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7])
def test_an_estimate_lies_in_its_interval(size: int) -> None:
    """The lower end is at least the number that was seen, for any sample."""
    pairs = {(0, 1): 0.81, (0, 2): 0.81, (0, 3): 0.82, (4, 5): 0.81, (1, 2): 0.5, (5, 6): 0.99}
    for sampled in combinations(range(7), size):
        for entry in figures(sample_of(pairs, sampled, 7)).histogram:
            assert entry.seen <= entry.low <= entry.estimated <= entry.high


def test_a_sample_of_one_has_a_wide_interval() -> None:
    """Its variance is unknown."""
    [top] = [entry for entry in figures(sample_of({(0, 1): 0.81, (2, 3): 0.81}, (0,), 100)).histogram if entry.seen]
    assert top.low < top.high


def test_intervals_of_estimates_contain_the_true_number() -> None:
    """In nearly 95 % of 300 samples of 100 out of 400 documents in a graph of random stars.

    With skewed degrees and few documents a normal interval has a lower coverage than 95 %. If it were 91 %, fewer than
    82 % of 300 would have a probability below 10⁻⁶ (exact binomial tail).
    """
    rng = np.random.default_rng(1)
    pairs: Pairs = {}
    for hub in range(0, 400, 8):
        pairs |= {(hub, hub + 1 + leaf): 0.86 for leaf in range(int(rng.integers(0, 7)))}
    hits = 0
    for _ in range(300):
        sampled = tuple(sorted(rng.choice(400, size=100, replace=False).tolist()))
        [entry] = [entry for entry in figures(sample_of(pairs, sampled, 400)).histogram if entry.start == 0.85]
        hits += entry.low <= len(pairs) <= entry.high
    assert hits >= 0.82 * 300


def test_a_sample_without_pairs_has_a_positive_upper_end() -> None:
    """It is 0 only if all documents are sampled."""
    some, every = figures(sample_of({}, (1, 4, 7), 10)), figures(sample_of({}, tuple(range(10)), 10))
    assert {(entry.estimated, entry.low) for entry in some.histogram} == {(0.0, 0.0)}
    expected = 10 / 2 * float(wilson_interval(0.0, 3, 0.95)[1])
    assert [entry.high for entry in some.histogram] == pytest.approx([expected] * len(some.histogram))
    assert {entry.high for entry in every.histogram} == {0.0}


def test_an_audit_is_written_as_json(tmp_path: Path) -> None:
    """The file ends in a line break, and no temporary file is left."""
    result = mw.audit(
        [{"text": "one two three four five six"}, {"text": "one two three four five six seven"}], threshold=0.5
    )
    result.write(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_bytes()) == result.to_dict()
    assert (tmp_path / "a.json").read_bytes().endswith(b"}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("sample", [0, -1, 2.5, "10", True, None])
def test_a_sample_must_be_a_positive_whole_number(sample: Any) -> None:  # noqa: ANN401 - wrong types
    message = error_message(ConfigError, lambda: mw.audit(["/nothing/here"], sample=sample))
    assert message.startswith("sample must be")
    assert repr(sample) in message


@pytest.mark.parametrize("name", ["keep", "group", "against", "verify", "exact"])
def test_settings_without_meaning_for_an_audit_are_refused(name: str) -> None:
    given: dict[str, Any] = {name: None}
    assert repr(name) in error_message(ConfigError, lambda: mw.audit(["one two"], **given))


# --- The suggested threshold ---


def histogram_of(counts: list[int], start: float = 0.4, width: float = 0.05) -> list[HistogramBin]:
    """Return adjacent bins with these counts, the first at ``start``."""
    ends = [round(start + width * number, 6) for number in range(len(counts) + 1)]
    return [
        HistogramBin(low, high, count, count, 3.0 * count, 0.0, 0.0)
        for low, high, count in zip(ends, ends[1:], counts, strict=False)
    ]


def test_the_middle_of_a_clear_valley_is_suggested() -> None:
    """With a plan that reaches the recall, and the effect of the change."""
    histogram = histogram_of([900, 400, 100, 4, 2, 2, 60, 300, 500, 400, 300, 800])  # lowest from 0.55 to 0.7
    suggestion = suggest_threshold(histogram, threshold=0.8, recall=0.95, slots=256)
    assert suggestion is not None
    plan = mw.plan(0.62, 0.95)
    assert suggestion == ThresholdSuggestion(0.62, plan.bands, plan.rows, plan.recall, suggestion.why)
    assert plan.recall >= 0.95
    assert "between 0.55 and 0.7" in suggestion.why
    assert "would join about 1,086 pairs" in suggestion.why  # 3 · (2 + 60 + 300): from 0.62 to 0.8


def test_a_valley_above_the_threshold_leaves_out_pairs() -> None:
    suggestion = suggest_threshold(
        histogram_of([900, 400, 300, 200, 100, 1, 1, 1, 60, 200, 700, 800]), threshold=0.5, recall=0.99, slots=256
    )
    assert suggestion is not None
    assert suggestion.threshold == 0.73  # between 0.65 and 0.8
    assert "would leave out about 1,806 pairs" in suggestion.why  # 3 · (300 + 200 + 100 + 1 + 1)


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
def test_without_a_clear_valley_nothing_is_suggested(counts: list[int]) -> None:
    assert suggest_threshold(histogram_of(counts), threshold=0.8, recall=0.99, slots=256) is None


@pytest.mark.parametrize(
    ("threshold", "suggested"), [(0.62, False), (0.65, False), (0.59, False), (0.67, True), (0.57, True)]
)
def test_a_valley_within_0_04_of_the_threshold_is_not_suggested(threshold: float, suggested: bool) -> None:
    histogram = histogram_of([900, 400, 100, 4, 2, 2, 60, 300, 500, 400, 300, 800])
    assert (suggest_threshold(histogram, threshold, recall=0.99, slots=256) is not None) is suggested


def test_a_threshold_that_no_plan_reaches_is_not_suggested() -> None:
    histogram = histogram_of([900, 900, 900, 0, 0, 0, 900, 900, 900], start=0.01, width=0.01)
    message = error_message(ConfigError, lambda: mw.plan(0.06, 0.999999, slots=64))
    assert "recall" in message
    assert suggest_threshold(histogram, threshold=0.8, recall=0.999999, slots=64) is None


def test_a_corpus_with_a_gap_gets_a_suggestion() -> None:
    """In a complete audit: many pairs near 0.45, many near 0.95, hardly any between."""
    rng = np.random.default_rng(3)
    sets = []
    for shared in [58] * 120 + [97] * 120:  # of 100 each: 58 / 142 = 0.41 and 97 / 103 = 0.94
        base = rng.integers(0, 2**62, size=200 - shared).tolist()
        sets += [base[:100], base[:shared] + base[100:]]
    suggestion = mw.audit(sets, shingle="set", threshold=0.8).suggestion
    assert suggestion is not None
    assert 0.5 <= suggestion.threshold <= 0.76
    assert mw.audit(sets, shingle="set", threshold=suggestion.threshold).suggestion is None
