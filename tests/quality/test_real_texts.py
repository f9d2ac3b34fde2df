"""Real texts with known truth: exact similarities, and what signatures say of them.

The texts are not part of this repository; without them the tests are skipped.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import minwise as mw
from minwise.sketches import Scheme, similarities

DATA = Path(__file__).parents[3] / "shared" / "data" / "text"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled texts of ../shared/data are not here")

# The truth splits words at underscores differently, which changes a similarity by at most this (README of the data).
TOKEN_DIFFERENCE = 0.008
# The one pair in Chinese, where the truth treats whole runs of characters as words.
CHINESE = frozenset(("MulanPSL-1.0", "MulanPSL-2.0"))


def read_texts(name: str) -> tuple[list[str], list[str]]:
    """Return ids and texts of a corpus."""
    lines = (DATA / name / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    return [document["id"] for document in documents], [document["text"] for document in documents]


def every_pair(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return all pairs of documents, in order."""
    return np.column_stack(np.triu_indices(count, k=1))


def test_similarities_of_licences_equal_those_of_an_independent_tool() -> None:
    """At 0.5 of word-3 sets 1,546 of the 1,547 known pairs are found."""
    ids, texts = read_texts("spdx_licenses")
    truth = np.loadtxt(DATA / "spdx_licenses" / "spdx_licenses_w3.jaccard0.5.tsv")
    order = (DATA / "spdx_licenses" / "spdx_licenses_w3.ids").read_text(encoding="utf-8").split()
    known = {frozenset((order[int(left)], order[int(right)])): value for left, right, value in truth.tolist()}
    pairs = every_pair(len(ids))
    found = similarities(mw.Shingler("word:3").shingle(texts), pairs)
    named = {frozenset((ids[left], ids[right])): value for (left, right), value in zip(pairs, found, strict=True)}
    differences = {pair: abs(named[pair] - value) for pair, value in known.items() if pair != CHINESE}
    assert max(differences.values()) <= TOKEN_DIFFERENCE
    similar = {pair for pair, value in named.items() if value >= 0.5}
    assert len(known) == 1547
    assert len(similar & known.keys()) == 1546


@pytest.mark.parametrize("scheme", [mw.FastSketch(slots=256), mw.MinHash(slots=256)], ids=lambda scheme: scheme.name)
def test_estimates_of_licences_are_unbiased(scheme: Scheme) -> None:
    """The mean error over all pairs of at least 0.3 is within a bound for completely correlated errors.

    The standard deviation of one pair is at most 1/(2·sqrt(256)) = 0.03125. Pairs share documents and one seed, so in
    the worst case their errors are equal; the mean of 16 seeds then has 0.03125/4, and five times that is 0.039.
    """
    _, texts = read_texts("spdx_licenses")
    sets = mw.Shingler("word:3").shingle(texts)
    pairs = every_pair(len(texts))
    exact = similarities(sets, pairs)
    pairs, exact = pairs[exact >= 0.3], exact[exact >= 0.3]
    kind = type(scheme)
    errors = [kind(seed=seed).sketch(sets).estimate_many(pairs).value - exact for seed in range(16)]
    assert abs(float(np.mean(errors))) <= 5 * 0.03125 / 4


@pytest.mark.parametrize("name", ["articles_100", "articles_1000", "articles_2500"])
def test_planted_copies_are_the_most_similar_pairs(name: str) -> None:
    ids, texts = read_texts(name)
    lines = (DATA / name / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    planted = {frozenset(line.split("\t")[:2]) for line in lines}
    pairs = every_pair(len(ids))
    found = similarities(mw.Shingler("word:3").shingle(texts), pairs)
    best = pairs[np.argsort(found)[::-1][: len(planted)]]
    assert {frozenset((ids[left], ids[right])) for left, right in best} == planted
