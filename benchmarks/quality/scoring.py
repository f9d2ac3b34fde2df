"""Scoring: what a tool found and what is true in; recall, precision, F1 and ARI out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from typing import Any

from benchmarks.quality.corpora import Corpus, components, pairs_within
from benchmarks.quality.joining import Pair


def score(corpus: Corpus, *, pairs: Iterable[Pair] | None, clusters: Sequence[int] | None) -> dict[str, Any]:
    """Return the figures of an answer, given as pairs or as clusters. The other of the two follows from it.

    The pairs of clusters are all pairs within one; the clusters of pairs are what they connect.
    """
    if pairs is None:
        pairs = pairs_within(clusters or [])
    found = {(min(pair), max(pair)) for pair in pairs}
    judged = found if corpus.judged is None else {pair for pair in found if pair in corpus.judged}
    figures: dict[str, Any] = pair_figures(judged, corpus.truth)
    if corpus.clusters is not None:
        grouped = components(len(corpus.sets), found) if clusters is None else clusters
        figures["ari"] = adjusted_rand_index(grouped, corpus.clusters)
    return figures


def pair_figures(found: set[Pair], truth: set[Pair]) -> dict[str, Any]:
    """Return recall, precision and F1; who finds nothing has a precision of 1."""
    right = len(found & truth)
    recall, precision = right / len(truth), right / len(found) if found else 1.0
    f1 = 2 * right / (len(found) + len(truth))
    return {"found": len(found), "right": right, "recall": recall, "precision": precision, "f1": f1}


def adjusted_rand_index(one: Sequence[int], other: Sequence[int]) -> float:
    """Return how far two clusterings agree beyond chance (Hubert and Arabie 1985): 1 for equal ones, 0 by chance."""

    def together(counts: Counter[Any]) -> int:
        return sum(comb(count, 2) for count in counts.values())

    both = together(Counter(zip(one, other, strict=True)))
    first, second = together(Counter(one)), together(Counter(other))
    expected = first * second / comb(len(one), 2)
    most = (first + second) / 2
    return (both - expected) / (most - expected) if most != expected else 1.0
