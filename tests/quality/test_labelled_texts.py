"""Labelled real texts: planted copies are found and no other pairs, and more copying means more similarity.

The texts are not part of this repository; without them the tests are skipped.
"""

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import minwise as mw
from minwise.options import SchemeName
from minwise.sketches import containment

DATA = Path(__file__).parents[3] / "shared" / "data" / "text"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled texts of ../shared/data are not here")

ARTICLES = ("articles_100", "articles_1000", "articles_2500")
# From most to least copied.
LABELS = ("cut", "light", "heavy", "non")
OPTIONS: dict[str, Any] = {"shingle": "word:3", "threshold": 0.4}


def read_documents(name: str) -> list[dict[str, str]]:
    """Return the documents of a corpus, with id and text."""
    return [json.loads(line) for line in (DATA / name / "docs.jsonl").read_bytes().splitlines()]


def read_labels(name: str) -> list[list[str]]:
    """Return the rows of the table of pairs of a corpus."""
    return [line.split("\t") for line in (DATA / name / "pairs.tsv").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ARTICLES)
@pytest.mark.parametrize("kind", ["file", "rows", "texts"])
def test_planted_articles_are_found_and_no_others(name: str, kind: str) -> None:
    """At 0.4 of word-3 shingles, for every kind of source."""
    documents = read_documents(name)
    planted = {frozenset(line[:2]) for line in read_labels(name)}
    ids: list[Any] = [document["id"] for document in documents]
    sources: dict[str, Any] = {
        "file": DATA / name / "docs.jsonl",
        "rows": documents,
        "texts": [document["text"] for document in documents],
    }
    found = mw.pairs(sources[kind], **OPTIONS).to_pylist()
    if kind == "texts":  # the id of a text is its number
        found = [{**row, "left": ids[row["left"]], "right": ids[row["right"]]} for row in found]
    assert len(planted) == {"articles_100": 5, "articles_1000": 10, "articles_2500": 20}[name]
    assert {frozenset((row["left"], row["right"])) for row in found} == planted
    assert len(found) == len(planted)
    texts = {document["id"]: document["text"] for document in documents}
    for row in found:
        left, right = mw.Shingler("word:3").shingle([texts[row["left"]], texts[row["right"]]])
        assert row["similarity"] == mw.jaccard(left, right) >= 0.4


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
def test_one_of_each_planted_pair_is_removed(scheme: SchemeName, tmp_path: Path) -> None:
    """The second is removed; every other article is kept, byte for byte."""
    source = DATA / "articles_1000" / "docs.jsonl"
    result = mw.dedup(source, tmp_path / "out", scheme=scheme, **OPTIONS)
    planted = {frozenset(line[:2]) for line in read_labels("articles_1000")}
    assert {frozenset((row["id"], row["kept_id"])) for row in result.removed.to_pylist()} == planted
    assert all(row["kept_row"] < row["row"] for row in result.removed.to_pylist())
    removed = set(result.removed.column("row").to_pylist())
    lines = source.read_bytes().splitlines(keepends=True)
    kept = (tmp_path / "out" / "kept" / "docs.jsonl").read_bytes()
    assert kept == b"".join(line for number, line in enumerate(lines) if number not in removed)


@pytest.mark.parametrize("measure", [mw.jaccard, containment], ids=["jaccard", "containment"])
def test_more_copied_answers_are_more_similar(measure: Any) -> None:  # noqa: ANN401 - one of two functions
    """Copies, light revisions, heavy revisions and own answers have decreasing mean similarities."""
    documents = read_documents("clough")
    sets = mw.Shingler("word:3").shingle([document["text"] for document in documents])
    number_of = {document["id"]: number for number, document in enumerate(documents)}
    similarities: dict[str, list[float]] = {label: [] for label in LABELS}
    for answer, original, label in read_labels("clough"):
        similarities[label].append(measure(sets[number_of[answer]], sets[number_of[original]]))
    assert sum(map(len, similarities.values())) == 95
    means = [fmean(similarities[label]) for label in LABELS]
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == len(LABELS)


def test_near_copies_are_found_at_a_threshold_and_own_answers_are_not() -> None:
    """The found pairs of answer and original are those with an exact similarity of at least 0.3."""
    documents = read_documents("clough")
    sets = mw.Shingler("word:3").shingle([document["text"] for document in documents])
    number_of = {document["id"]: number for number, document in enumerate(documents)}
    label = {frozenset((answer, original)): kind for answer, original, kind in read_labels("clough")}
    expected = {pair for pair in label if mw.jaccard(*(sets[number_of[name]] for name in pair)) >= 0.3}
    table = mw.pairs(DATA / "clough" / "docs.jsonl", shingle="word:3", threshold=0.3, bands=250, rows=2)
    found = {frozenset((row["left"], row["right"])) for row in table.to_pylist()}
    assert expected == found & label.keys()  # a pair at 0.3 is missed with a chance of (1 − 0.09)²⁵⁰ < 10⁻¹⁰
    assert expected
    assert {label[pair] for pair in expected} >= {"cut", "light"}
    assert "non" not in {label[pair] for pair in expected}


def test_passages_find_exactly_the_answers_that_share_eight_words_with_an_original() -> None:
    """And more of the copied answers than pairs do: the oracle is a set of word runs, without hashes."""
    rows = [(row["id"], row["text"]) for row in read_documents("clough")]
    words = {name: [word.lower() for word in re.findall(r"[^\W_]+", text)] for name, text in rows}
    runs = {name: {tuple(own[i : i + 8]) for i in range(len(own) - 7)} for name, own in words.items()}
    labels = {(answer, original): label for answer, original, label in read_labels("clough")}
    expected = {pair for pair in labels if not runs[pair[0]].isdisjoint(runs[pair[1]])}
    sides: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for name, text in rows:
        sides[name.startswith("orig")].append({"id": name, "text": text})
    found = mw.passages(sides[False], against=sides[True], min_tokens=8)
    pairs = set(zip(found["id"].to_pylist(), found["other_id"].to_pylist(), strict=True))
    assert pairs & labels.keys() == expected
    copied = {pair for pair, label in labels.items() if label != "non"}
    similar = mw.pairs([*sides[False], *sides[True]], shingle="word:3", threshold=0.2)
    alike = set(zip(similar["left"].to_pylist(), similar["right"].to_pylist(), strict=True))
    assert len(copied & pairs) > 1.5 * len(copied & alike) > 0
