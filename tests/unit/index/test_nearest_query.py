"""Queries without a threshold: exact similarities in order, and a stated recall that brute force confirms."""

import random
from math import comb
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message

import minwise as mw
from minwise import reference
from minwise.errors import ConfigError

SHINGLE = "word:1"
WORDS = 60


def corpus(seed: int, families: int) -> tuple[dict[str, str], list[str]]:
    """Return one document per family of words, and a text of each family that shares some of its words."""
    rng = random.Random(seed)
    documents, texts = {}, []
    for family in range(families):
        words = [f"w{family}x{number}" for number in range(WORDS)]
        shared = rng.randrange(WORDS // 3, WORDS + 1)
        documents[f"family {family}"] = " ".join(words)
        texts.append(" ".join([*words[:shared], *(f"new{family}x{number}" for number in range(WORDS - shared))]))
    return documents, texts


def jaccard(left: str, right: str) -> float:
    left_set, right_set = (set(reference.shingle_strings(text, SHINGLE)) for text in (left, right))
    return len(left_set & right_set) / len(left_set | right_set)


def probability(plan: Any, similarity: float) -> float:  # noqa: ANN401 - a plan
    return float(1 - (1 - similarity**plan.rows) ** plan.bands)


def test_hits_are_exact_and_as_many_as_their_recall_says(tmp_path: Path) -> None:
    """Families share no words, so their pairs are found independently: the count is within four standard deviations."""
    documents, texts = corpus(1, 800)
    with mw.Index.create(tmp_path / "x.mw", threshold=0.7, shingle=SHINGLE, seed=9) as index:
        index.add(list(documents), list(documents.values()))
        answers = index.query_many(texts, 0)
        truth = [jaccard(text, document) for text, document in zip(texts, documents.values(), strict=True)]
        for answer, name, similarity in zip(answers, documents, truth, strict=True):
            assert [(hit.id, hit.similarity, hit.exact) for hit in answer] in ([], [(name, similarity, True)])
            assert [hit.recall for hit in answer] == [pytest.approx(probability(index.plan, similarity))] * len(answer)
        recalls = [probability(index.plan, similarity) for similarity in truth]
        deviation = sum(recall * (1 - recall) for recall in recalls) ** 0.5
        assert deviation > 5
        assert abs(sum(map(len, answers)) - sum(recalls)) <= 4 * deviation
        assert any(similarity < 0.7 for answer, similarity in zip(answers, truth, strict=True) if answer.hits)


def test_an_answer_is_complete_above_the_stated_similarity(tmp_path: Path) -> None:
    """At most 1 % of the documents above it are missing, and more of those below it."""
    documents, texts = corpus(2, 800)
    with mw.Index.create(tmp_path / "x.mw", threshold=0.7, shingle=SHINGLE, seed=10) as index:
        index.add(list(documents), list(documents.values()))
        answers = index.query_many(texts, 0)
        (limit,) = {answer.complete_above for answer in answers}
        assert limit is not None
        assert probability(index.plan, limit) == pytest.approx(0.99)
        truth = [jaccard(text, document) for text, document in zip(texts, documents.values(), strict=True)]
        above = [len(answer) for answer, similarity in zip(answers, truth, strict=True) if similarity >= limit]
        below = [len(answer) for answer, similarity in zip(answers, truth, strict=True) if similarity < limit]
        assert len(above) - sum(above) <= 0.01 * len(above) + 4 * (0.0099 * len(above)) ** 0.5
        assert sum(below) < 0.9 * len(below)


def test_the_most_similar_come_first(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(40)]
    documents = {str(size): " ".join(words[:size]) for size in (10, 40, 30, 38, 20)}
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, threshold=0.9, bands=200, rows=1, slots=200) as index:
        index.add(list(documents), list(documents.values()))
        answer = index.query(" ".join(words), 0, top=3)
        assert [(hit.id, hit.similarity) for hit in answer] == [("40", 1.0), ("38", 0.95), ("30", 0.75)]
        assert not answer.truncated
        assert [hit.id for hit in index.query(" ".join(words), 0)] == ["40", "38", "30", "20", "10"]


def test_a_search_that_was_cut_short_claims_less(tmp_path: Path) -> None:
    """A document that was not compared shares at most as many bands as the next candidate."""
    texts = [
        " ".join([*(f"w{number}" for number in range(30)), *(f"x{n}y{m}" for m in range(n % 30))]) for n in range(200)
    ]
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, threshold=0.5, seed=3) as index:
        index.add(range(len(texts)), texts)
        complete = index.query(texts[0], 0, top=200)
        short = index.query(texts[0], 0, top=200, max_candidates=100)
        assert (complete.truncated, short.truncated) == (False, True)
        assert complete.complete_above is not None
        assert short.complete_above is not None
        assert complete.complete_above < short.complete_above < 1
        bands, agreement = index.plan.bands, short.complete_above**index.plan.rows
        chances = [comb(bands, k) * agreement**k * (1 - agreement) ** (bands - k) for k in range(bands + 1)]
        assert min(abs(sum(chances[: shared + 1]) - 0.01) for shared in range(bands)) < 1e-9


def test_nothing_is_claimed_if_identical_documents_were_left_out(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE) as index:
        index.add(range(200), ["one two three"] * 200)
        answer = index.query("one two three", 0, top=200, max_candidates=100)
        assert (len(answer), answer.truncated, answer.complete_above) == (100, True, None)
        full = index.query("one two three", 0, top=2)
        assert ([hit.id for hit in full], full.truncated) == ([0, 1], False)


def test_a_query_with_a_threshold_is_as_before(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, threshold=0.8) as index:
        index.add(["a", "b"], ["one two three four", "one two three five"])
        answer = index.query("one two three four")
        assert ([hit.id for hit in answer], answer.complete_above, answer[0].recall) == (["a"], None, None)
        assert index.query_many(["one two"], None) == index.query_many(["one two"])
        (row,) = index.query_from(["one two three four"])
        assert row["hits"] == [{"id": "a", "similarity": 1.0, "exact": True}]
        assert set(row) == {"id", "hits", "truncated"}


def test_rows_of_a_source_state_what_they_cannot_know(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, threshold=0.8) as index:
        index.add(["a"], ["one two three four"])
        known, unknown = index.query_from(["one two three four", "nothing like it"], threshold=0)
        assert known["hits"] == [{"id": "a", "similarity": 1.0, "exact": True, "recall": 1.0}]
        assert unknown["hits"] == []
        assert known["complete_above"] == unknown["complete_above"]
        assert 0 < (known["complete_above"] or 0) < 1


def test_filters_and_stored_texts_work_without_a_threshold(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, store_text=True) as index:
        index.add(["a", "b"], ["one two", "one two"], [{"n": 1}, {"n": 2}])
        (hit,) = index.query("one two", 0, where={"n": 2}, with_text=True)
        assert (hit.id, hit.text, hit.recall) == ("b", "one two", 1.0)
        assert index.query("", 0).hits == ()


def test_sketches_give_estimates(tmp_path: Path) -> None:
    documents, texts = corpus(4, 50)
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, sketch_only=True, threshold=0.5) as index:
        index.add(list(documents), list(documents.values()))
        hits = [hit for answer in index.query_many(texts, 0) for hit in answer]
    assert len(hits) > 20
    assert {hit.exact for hit in hits} == {False}
    assert all(hit.recall is not None for hit in hits)


@pytest.mark.parametrize("threshold", [0.1, 0.79, -1, 1.1, False, "0", float("nan")])
def test_other_low_thresholds_are_refused(threshold: Any, tmp_path: Path) -> None:  # noqa: ANN401 - wrong values
    with mw.Index.create(tmp_path / "x.mw") as index:
        message = error_message(ConfigError, lambda: index.query("a b", threshold))
    assert message.startswith("threshold must be from 0.8, which the index was planned for, to 1, got ")
    assert message.endswith("; 0 is no threshold, only the most similar")
