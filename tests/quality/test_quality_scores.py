"""Correctness of the quality benchmark: its join, scores, layouts and special documents."""

from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from benchmarks.quality.corpora import (
    DATA,
    Corpus,
    CrossPairs,
    Judged,
    best_threshold,
    character_sets,
    encode_elements,
    licences,
    load_corpora,
    ordered,
    pairs_within,
    people,
    read_documents,
    read_rows,
    two_lists_of_people,
)
from benchmarks.quality.engines import ENGINES, SLOTS, Engine, job_for, make_job
from benchmarks.quality.exact_join import Pair, join
from benchmarks.quality.markdown_tables import percent, with_spread
from benchmarks.quality.scoring import adjusted_rand_index, count_together, score, summarize
from benchmarks.quality.special_documents import make_cases

LICENCES = DATA / "text" / "spdx_licenses"


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.0])
def test_join_equals_a_comparison_of_all_pairs(threshold: float) -> None:
    """For sets of a few letters, empty ones included; 4/5 counts as 0.8."""
    random = Random(1)
    sets = [sorted(set(random.choices("abcdefgh", k=random.randint(0, 6)))) for _ in range(80)]
    expected = {
        (left, right)
        for left, right in combinations(range(len(sets)), 2)
        if (either := len({*sets[left], *sets[right]}))
        and len({*sets[left]} & {*sets[right]}) >= threshold * either - 1e-9
        and {*sets[left]} & {*sets[right]}
    }
    assert join(sets, threshold) == expected


@pytest.mark.skipif(not LICENCES.is_dir(), reason="the licences of ../shared/data are not here")
def test_join_of_licences_equals_their_published_truth() -> None:
    """An independent program found these 1,547 pairs."""
    numbers, _ = read_documents(LICENCES)
    ids = [row[0] for row in read_rows(LICENCES / "spdx_licenses_w3.ids")]
    rows = read_rows(LICENCES / "spdx_licenses_w3.jaccard0.5.tsv")
    truth = {ordered(numbers[ids[int(left)]], numbers[ids[int(right)]]) for left, right, _ in rows}
    assert licences(LICENCES)[0].truth == truth


@pytest.mark.parametrize(
    ("truth", "judged", "expected"),
    [
        ({(0, 1)}, None, 0.7),  # as good as 0.8, and closer to 0.5
        ({(0, 1), (1, 2)}, None, 0.6),
        ({(0, 1), (0, 2), (1, 2)}, None, 0.5),
        ({(1, 2)}, CrossPairs(2), 0.6),
    ],
)
def test_threshold_is_the_best_of_an_exact_join(truth: set[Pair], judged: Judged, expected: float) -> None:
    """The three sets have similarities of 4/5, 2/3 and 1/2."""
    sets = [list("abcd"), list("abcde"), list("deabf")]
    assert best_threshold(sets, truth, judged) == expected


def test_truth_of_people_follows_from_their_ids(tmp_path: Path) -> None:
    """An original and its copies are one person, in one list and in two."""
    for name, ids in {"1": ("1-org", "2-org", "1-dup-0"), "4a": ("5-org", "6-org"), "4b": ("6-dup-0",)}.items():
        lines = ["rec_id, given_name", *(f"rec-{record_id}, ann lee" for record_id in ids)]
        (tmp_path / f"dataset{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    (alone,) = people(tmp_path / "dataset1.csv")
    assert (alone.name, alone.truth, alone.clusters) == ("febrl1", {(0, 2)}, [0, 1, 0])
    (both,) = two_lists_of_people(tmp_path)
    assert (both.truth, both.judged) == ({(1, 2)}, CrossPairs(2))


def test_character_sets_collapse_white_space_and_case() -> None:
    """A text that is shorter than a shingle is one element."""
    assert character_sets([" Ann\n LEE "], 3) == [encode_elements(["ann", "nn ", "n l", " le", "lee"])]
    assert character_sets(["a"], 3) == [encode_elements(["a"])]


def test_missing_corpora_are_skipped_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load_corpora(tmp_path) == []
    assert "er/febrl/dataset1.csv: missing, skipped" in capsys.readouterr().out


def test_scores_of_several_seeds_have_mean_and_range() -> None:
    """Equal scores are shown without a spread."""
    run = summarize([{"f1": 0.5, "ari": 0.25}, {"f1": 0.7, "ari": 0.25}])
    assert (run["f1"], run["range"]) == (0.6, {"f1": [0.5, 0.7], "ari": [0.25, 0.25]})
    assert [with_spread(run, name) for name in ("f1", "ari")] == ["0.6000 ± 0.1000", "0.2500"]


def test_scores_of_pairs_and_of_clusters() -> None:
    """Clusters count as all their pairs, and only judged pairs count."""
    truth = {(0, 1), (1, 2)}
    corpus = Corpus(
        name="",
        sets=[[]] * 4,
        shingle="",
        threshold=0.5,
        kind="",
        truth=truth,
        judged={*truth, (2, 3)},
        clusters=[0, 0, 0, 1],
    )
    of_pairs = score(corpus, pairs=[(1, 0), (0, 3), (2, 3)], clusters=None)
    assert (of_pairs["recall"], of_pairs["precision"], of_pairs["f1"]) == (0.5, 0.5, 0.5)
    of_clusters = score(corpus, pairs=None, clusters=[7, 7, 7, 8])
    assert (of_clusters["recall"], of_clusters["precision"], of_clusters["ari"]) == (1.0, 1.0, 1.0)
    assert score(corpus, pairs=[], clusters=None)["precision"] == 1.0


@pytest.mark.parametrize("judged", [None, CrossPairs(3), {(0, 1), (2, 5), (3, 4)}])
def test_number_of_pairs_of_clusters_equals_their_list(judged: Judged) -> None:
    clusters = [0, 0, 1, 0, 1, 2]
    listed = [pair for pair in pairs_within(clusters) if judged is None or pair in judged]
    assert count_together(clusters, judged) == len(listed)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([0, 1, 2, 3], [0, 1, 2, 3], 1.0),
    ],
)
def test_adjusted_rand_index(left: list[int], right: list[int], expected: float) -> None:
    """The expected values are calculated by hand; the numbering of clusters does not matter."""
    assert adjusted_rand_index(left, right) == pytest.approx(expected)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_all_engines_have_the_same_number_of_slots(engine: Engine, threshold: float) -> None:
    """Bands of rows use more than 90 % of the slots."""
    job = job_for(engine, make_job(["a"], words=1, threshold=threshold))
    assert job.slots == SLOTS
    assert 0.9 * SLOTS < job.bands * job.rows <= SLOTS


def test_elements_are_words_that_no_tool_changes() -> None:
    """They have lower-case ASCII letters only, and different elements stay different."""
    made = encode_elements(["new york", "new york", "2nd Avenue", "…"])
    assert len(made) == 3
    assert all(word.isalpha() and word.isascii() and word.islower() and len(word) == 15 for word in made)


def test_special_documents_are_deterministic() -> None:
    """The two documents of a pair differ."""
    assert make_cases() == make_cases()
    assert all(case.left != case.right for case in make_cases())


def test_percentages_are_not_rounded_up_to_100() -> None:
    """One missed pair of many must be visible."""
    assert [percent(share) for share in (1.0, 0.99996, 0.5)] == ["100", "99.9", "50.0"]
