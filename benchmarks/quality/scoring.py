"""Recall, precision, F1 and ARI of the answer of a tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from statistics import mean
from typing import Any

from benchmarks.quality.corpora import Corpus, CrossPairs, Judged, components
from benchmarks.quality.exact_join import Pair


def score(corpus: Corpus, *, pairs: Iterable[Pair] | None, clusters: Sequence[int] | None) -> dict[str, Any]:
    """Return the figures of an answer, given as pairs or as clusters.

    The pairs of clusters are all pairs within a cluster; the clusters of pairs are their connected components.
    """
    if pairs is None:
        grouped = list(clusters or [])
        right = sum(grouped[left] == grouped[right] for left, right in corpus.truth)
        figures = pair_figures(count_together(grouped, corpus.judged), right, len(corpus.truth))
    else:
        found = {(min(pair), max(pair)) for pair in pairs}
        grouped = components(len(corpus.sets), found) if corpus.clusters else []
        judged = found if corpus.judged is None else {pair for pair in found if pair in corpus.judged}
        figures = pair_figures(len(judged), len(judged & corpus.truth), len(corpus.truth))
    if corpus.clusters is not None:
        figures["ari"] = adjusted_rand_index(grouped, corpus.clusters)
    return figures


def count_together(clusters: Sequence[int], judged: Judged) -> int:
    """Return the number of judged pairs within clusters, without listing them: a large cluster has too many."""
    if isinstance(judged, CrossPairs):
        lists = clusters[: judged.first], clusters[judged.first :]
        return count_together(clusters, None) - sum(count_together(part, None) for part in lists)
    if judged is None:
        return sum(comb(count, 2) for count in Counter(clusters).values())
    return sum(clusters[left] == clusters[right] for left, right in judged)


def summarize(figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of each figure over seeds, and its minimum and maximum as ``range``."""
    columns = {name: [run[name] for run in figures] for name in figures[0]}
    means = {name: mean(values) for name, values in columns.items()}
    return {**means, "range": {name: [min(values), max(values)] for name, values in columns.items()}}


def pair_figures(found: int, right: int, true: int) -> dict[str, Any]:
    """Return recall, precision and F1 from numbers of pairs; the precision of no pairs is 1."""
    precision = right / found if found else 1.0
    f1 = 2 * right / (found + true)
    return {"found": found, "right": right, "recall": right / true, "precision": precision, "f1": f1}


def adjusted_rand_index(left: Sequence[int], right: Sequence[int]) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985) of two clusterings: 1 if equal, 0 by chance."""

    def together(counts: Counter[Any]) -> int:
        return sum(comb(count, 2) for count in counts.values())

    both = together(Counter(zip(left, right, strict=True)))
    first, second = together(Counter(left)), together(Counter(right))
    expected = first * second / comb(len(left), 2)
    most = (first + second) / 2
    return (both - expected) / (most - expected) if most != expected else 1.0
