"""Audits of real corpora: the measured recall agrees with the S-curve, and the exact join with the ground truth.

The texts are not part of this repository; without them the tests are skipped.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minwise as mw
from minwise.options import SchemeName
from minwise.results import Audit

from .test_recall import max_hits

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled texts of ../shared/data are not here")

CORPORA: dict[str, dict[str, Any]] = {
    "text/spdx_licenses": {"shingle": "word:3", "threshold": 0.6},
    "text/installguide_sample": {"threshold": 0.8},
    "code/irplag": {"threshold": 0.7},
    "text/articles_2500": {"shingle": "word:3", "threshold": 0.4},
}
SCHEMES: tuple[SchemeName, ...] = ("fast", "minhash")
SEEDS = 4
# As in the tests of real texts: the effect of other word boundaries in the truth, and the pair without any.
TOKEN_DIFFERENCE = 0.008
CHINESE = frozenset(("MulanPSL-1.0", "MulanPSL-2.0"))


@cache
def documents(name: str) -> list[dict[str, str]]:
    """Return ids and texts of a corpus."""
    lines = (DATA / name / "docs.jsonl").read_bytes().splitlines()
    return [{name: row[name] for name in ("id", "text")} for row in map(json.loads, lines)]


@cache
def audit(name: str, scheme: SchemeName, seed: int) -> Audit:
    """Audit a whole corpus, at a recall low enough that missed pairs can be measured."""
    return mw.audit(documents(name), scheme=scheme, seed=seed, recall=0.9, **CORPORA[name])


def seeds(name: str, scheme: SchemeName) -> range:
    """Return seeds that no other case has, so that the cases are independent."""
    first = 1000 * list(CORPORA).index(name) + 100 * SCHEMES.index(scheme)
    return range(first, first + SEEDS)


@pytest.mark.parametrize("name", CORPORA)
def test_corpora_have_similar_pairs(name: str) -> None:
    """All documents are compared, and at least 20 pairs are similar."""
    found = audit(name, "fast", seeds(name, "fast")[0])
    assert found.complete
    assert found.recall.of >= 20
    assert found.documents == len(documents(name))


def test_promised_recall_is_in_the_measured_interval() -> None:
    """At most 10 of 32 audits with different seeds have an interval without the promised recall.

    A 95 % interval misses with a probability of 0.05, provided that pairs found or missed together count as one trial;
    where documents depend on each other more than that, coverage was 0.9 at the lowest. Cases have independent hashes,
    so the number of misses is binomial, and more than 10 of 32 have a probability below 10⁻⁶.
    """
    cases = [(name, scheme, seed) for name in CORPORA for scheme in SCHEMES for seed in seeds(name, scheme)]
    results = [audit(*case) for case in cases]
    misses = [
        case
        for case, result in zip(cases, results, strict=True)
        if result.promised is None or not result.recall.low <= result.promised <= result.recall.high
    ]
    assert max_hits(len(cases), 0.05) == 10
    assert len(misses) <= 10, misses


@pytest.mark.parametrize("scheme", SCHEMES)
def test_planted_articles_are_the_similar_pairs_and_all_are_found(scheme: SchemeName) -> None:
    """At the default recall every planted pair is similar, no other is, and the bands propose all of them."""
    name = "text/articles_2500"
    lines = (DATA / name / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    planted = {frozenset(line.split("\t")[:2]) for line in lines}
    result = mw.audit(documents(name), scheme=scheme, **CORPORA[name])
    assert (result.recall.found, result.recall.of) == (len(planted), len(planted))
    assert (result.with_duplicates.found, result.with_duplicates.of) == (2 * len(planted), 2 * len(planted))
    table = mw.pairs(documents(name), exact=True, **CORPORA[name])
    assert {frozenset((row["left"], row["right"])) for row in table.to_pylist()} == planted


def test_exact_join_of_licences_equals_the_ground_truth() -> None:
    """At 0.5 of word-3 sets it has 1,546 of the 1,547 pairs, with their similarities; others are at the threshold."""
    folder = DATA / "text" / "spdx_licenses"
    truth = np.loadtxt(folder / "spdx_licenses_w3.jaccard0.5.tsv")
    order = (folder / "spdx_licenses_w3.ids").read_text(encoding="utf-8").split()
    known = {frozenset((order[int(left)], order[int(right)])): value for left, right, value in truth.tolist()}
    table = mw.pairs(documents("text/spdx_licenses"), exact=True, shingle="word:3", threshold=0.5)
    found = {frozenset((row["left"], row["right"])): row["similarity"] for row in table.to_pylist()}
    assert known.keys() - found.keys() == {CHINESE} or CHINESE in found
    assert len(known.keys() & found.keys()) == 1546
    assert all(abs(found[pair] - known[pair]) <= TOKEN_DIFFERENCE for pair in known.keys() & found.keys() - {CHINESE})
    assert all(value <= 0.5 + TOKEN_DIFFERENCE for pair, value in found.items() if pair not in known)


@pytest.mark.parametrize("name", CORPORA)
def test_sample_agrees_with_the_whole_corpus(name: str) -> None:
    """At least three quarters of the intervals contain the true number of pairs.

    A twentieth is expected to miss. Bins share documents, so there is no exact tail; five times as many is the bound.
    """
    whole = audit(name, "fast", seeds(name, "fast")[0])
    part = mw.audit(
        documents(name), sample=whole.distinct // 3, seed=seeds(name, "fast")[0], recall=0.9, **CORPORA[name]
    )
    assert part.sampled == whole.distinct // 3
    bins = zip(part.histogram, whole.histogram, strict=True)
    inside = [sampled.low <= true.seen <= sampled.high for sampled, true in bins]
    assert sum(inside) >= 0.75 * len(inside)
