"""Queries by containment: exact shares, the side that lies in the other, and a recall that is stated and kept."""

import random
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message

import minwise as mw
from minwise import reference
from minwise.errors import ConfigError

SHINGLE = "word:1"


def family(seed: int, count: int) -> tuple[dict[str, str], list[str]]:
    """Return documents, and texts of which parts are in them or which are parts of them."""
    rng = random.Random(seed)
    books = [[f"w{rng.randrange(10**6)}" for _ in range(rng.randrange(30, 120))] for _ in range(count)]
    texts = []
    for book in books:
        size = rng.randrange(5, len(book))
        texts.append(" ".join([*rng.sample(book, size), *(f"new{rng.randrange(10**6)}" for _ in range(size // 6))]))
        texts.append(" ".join([*book, *(f"more{rng.randrange(10**6)}" for _ in range(rng.randrange(60)))]))
    return {f"book {number}": " ".join(book) for number, book in enumerate(books)}, texts


def elements(text: str) -> set[str]:
    return set(reference.shingle_strings(text, SHINGLE))


def expected(index: mw.Index, documents: dict[str, str], text: str, threshold: float) -> dict[Any, tuple[Any, ...]]:
    """Return containment, contained side and recall of each document, by definition."""
    found, query = {}, elements(text)
    for identity, stored in documents.items():
        other = elements(stored)
        small, large = (query, other) if len(query) <= len(other) else (other, query)
        share = reference.containment(small, large)
        if share >= threshold:
            jaccard = len(query & other) / len(query | other)
            side = "query" if small is query else "document"
            found[identity] = (share, side, 1 - (1 - jaccard**index.plan.rows) ** index.plan.bands)
    return found


@pytest.mark.parametrize("threshold", [0.3, 0.8, 1.0])
def test_hits_are_exact_and_as_many_as_their_recall_says(threshold: float, tmp_path: Path) -> None:
    """Of all documents that hold a text or lie in it, the stated share is found, within four standard deviations."""
    documents, texts = family(3, 150)
    with mw.Index.create(tmp_path / "x.mw", threshold=0.5, shingle=SHINGLE, seed=5) as index:
        index.add(list(documents), list(documents.values()))
        found = wanted = variance = 0.0
        for text, answer in zip(texts, index.query_many(texts, threshold, measure="containment"), strict=True):
            truth = expected(index, documents, text, threshold)
            for hit in answer:
                share, side, recall = truth[hit.id]
                assert (hit.similarity, hit.contained) == (share, side)
                assert hit.recall == pytest.approx(recall)
            found += len(answer)
            wanted += sum(recall for _, _, recall in truth.values())
            variance += sum(recall * (1 - recall) for _, _, recall in truth.values())
            assert [hit.similarity for hit in answer] == sorted((hit.similarity for hit in answer), reverse=True)
        assert wanted > 50
        assert abs(found - wanted) <= 4 * variance**0.5 + 1


def test_other_queries_have_no_side_and_no_recall(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE) as index:
        index.add(["a"], ["one two three"])
        (hit,) = index.query("one two three")
        assert (hit.contained, hit.recall) == (None, None)
        (row,) = index.query_from(["one two three"])
        assert row["hits"] == [{"id": "a", "similarity": 1.0, "exact": True}]
        (row,) = index.query_from(["one two three"], measure="containment")
        assert row["hits"] == [{"id": "a", "similarity": 1.0, "exact": True, "contained": "query", "recall": 1.0}]


def test_an_answer_that_left_documents_out_is_truncated(tmp_path: Path) -> None:
    """Also if the hits are full: a later candidate may hold more of the text."""
    with mw.Index.create(tmp_path / "x.mw", shingle=SHINGLE, threshold=0.3) as index:
        index.add([str(number) for number in range(200)], [f"one two three four w{n}" for n in range(200)])
        answer = index.query("one two three four", 0.9, top=2, measure="containment", max_candidates=50)
        assert (len(answer), answer.truncated, answer.truncated_by) == (2, True, "candidates")
        complete = index.query("one two three four", 0.9, top=2, measure="containment")
        assert ([hit.id for hit in complete], complete.truncated) == (["0", "1"], False)


@pytest.mark.parametrize("threshold", [0, 1.5, True, "much"])
def test_wrong_values_are_refused(threshold: Any, tmp_path: Path) -> None:  # noqa: ANN401 - wrong values
    with mw.Index.create(tmp_path / "x.mw") as index:
        message = error_message(ConfigError, lambda: index.query("a b", threshold, measure="containment"))
        assert message.startswith("threshold must be above 0 and at most 1")
        message = error_message(ConfigError, lambda: index.query("a b", measure="cosine"))  # type: ignore[arg-type]
        assert message.startswith("measure must be one of jaccard, containment")


def test_an_index_of_sketches_refuses_containment(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", sketch_only=True) as index:
        message = error_message(ConfigError, lambda: index.query("a b", measure="containment"))
    assert message.startswith("measure must be jaccard for an index of sketches")
