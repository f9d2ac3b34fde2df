"""What quality is measured with is itself right: the join, the scores, the layouts and the special documents."""

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
def test_join_is_what_comparing_all_pairs_finds(threshold: float) -> None:
    """Sets of a few letters, empty ones among them; 4/5 counts as 0.8."""
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
def test_join_is_the_truth_that_comes_with_the_licences() -> None:
    """1,547 pairs, found by somebody else's program."""
    numbers, _ = read_documents(LICENCES)
    ids = [row[0] for row in read_rows(LICENCES / "spdx_licenses_w3.ids")]
    rows = read_rows(LICENCES / "spdx_licenses_w3.jaccard0.5.tsv")
    truth = {ordered(numbers[ids[int(left)]], numbers[ids[int(right)]]) for left, right, _ in rows}
    assert licences(LICENCES)[0].truth == truth


@pytest.mark.parametrize(
    ("truth", "judged", "expected"),
    [
        ({(0, 1)}, None, 0.7),  # as good as 0.8, and closer to a half
        ({(0, 1), (1, 2)}, None, 0.6),
        ({(0, 1), (0, 2), (1, 2)}, None, 0.5),
        ({(1, 2)}, CrossPairs(2), 0.6),
    ],
)
def test_threshold_is_the_best_of_an_exact_join(truth: set[Pair], judged: Judged, expected: float) -> None:
    """Three sets with similarities of 4/5, 2/3 and 1/2."""
    sets = [list("abcd"), list("abcde"), list("deabf")]
    assert best_threshold(sets, truth, judged) == expected


def test_people_are_found_by_their_names(tmp_path: Path) -> None:
    """An original and its copies are one person, in one list and across two."""
    for name, ids in {"1": ("1-org", "2-org", "1-dup-0"), "4a": ("5-org", "6-org"), "4b": ("6-dup-0",)}.items():
        lines = ["rec_id, given_name", *(f"rec-{one}, ann lee" for one in ids)]
        (tmp_path / f"dataset{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    (alone,) = people(tmp_path / "dataset1.csv")
    assert (alone.name, alone.truth, alone.clusters) == ("febrl1", {(0, 2)}, [0, 1, 0])
    (both,) = two_lists_of_people(tmp_path)
    assert (both.truth, both.judged) == ({(1, 2)}, CrossPairs(2))


def test_characters_are_cut_with_single_blanks() -> None:
    """A short text is one element, and white space or case make no difference."""
    assert character_sets([" Ann\n LEE "], 3) == [encode_elements(["ann", "nn ", "n l", " le", "lee"])]
    assert character_sets(["a"], 3) == [encode_elements(["a"])]


def test_corpora_that_are_not_there_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is named."""
    assert load_corpora(tmp_path) == []
    assert "er/febrl/dataset1.csv: missing, skipped" in capsys.readouterr().out


def test_figures_of_seeds_are_their_mean_and_range() -> None:
    """What does not differ has no spread, and neither has what would be written as 0."""
    run = summarize([{"f1": 0.5, "ari": 0.25}, {"f1": 0.7, "ari": 0.25}])
    assert (run["f1"], run["range"]) == (0.6, {"f1": [0.5, 0.7], "ari": [0.25, 0.25]})
    assert [with_spread(run, name) for name in ("f1", "ari")] == ["0.6000 ± 0.1000", "0.2500"]


def test_scores_of_pairs_and_of_clusters() -> None:
    """Clusters count with all their pairs, pairs with what they connect, and only judged pairs count."""
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
def test_pairs_of_clusters_are_counted_as_if_they_were_listed(judged: Judged) -> None:
    """Six documents in three clusters."""
    clusters = [0, 0, 1, 0, 1, 2]
    listed = [pair for pair in pairs_within(clusters) if judged is None or pair in judged]
    assert count_together(clusters, judged) == len(listed)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([0, 1, 2, 3], [0, 1, 2, 3], 1.0),
    ],
)
def test_adjusted_rand_index(one: list[int], other: list[int], expected: float) -> None:
    """Worked by hand; the numbers of clusters do not matter."""
    assert adjusted_rand_index(one, other) == pytest.approx(expected)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_no_engine_has_more_slots_than_another(engine: Engine, threshold: float) -> None:
    """Bands of rows fit into the slots; who checks candidates uses them all."""
    job = job_for(engine, make_job(["a"], words=1, threshold=threshold))
    assert job.slots == SLOTS
    assert 0.9 * SLOTS < job.bands * job.rows <= SLOTS


def test_elements_are_words_that_no_tool_changes() -> None:
    """Letters only, and as many as there are different elements."""
    made = encode_elements(["new york", "new york", "2nd Avenue", "…"])
    assert len(made) == 3
    assert all(word.isalpha() and word.isascii() and word.islower() and len(word) == 15 for word in made)


def test_special_documents_are_always_the_same() -> None:
    """Made anew, they are equal; and the two of a pair are not."""
    assert make_cases() == make_cases()
    assert all(case.left != case.right for case in make_cases())


def test_only_a_whole_is_a_hundred_percent() -> None:
    """One missed pair of many is to be seen."""
    assert [percent(share) for share in (1.0, 0.99996, 0.5)] == ["100", "99.9", "50.0"]
