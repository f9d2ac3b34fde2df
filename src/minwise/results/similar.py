"""Similar: an outcome in; how similar its documents are, in clusters, in pairs and just below the threshold, out."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.engines.found import Found
from minwise.engines.near_misses import BINS, count_by_bin, floor_bin
from minwise.results.columns import identity
from minwise.results.outcome import Outcome

__all__ = ["SimilarityReport", "largest_clusters", "size_distribution"]

# Clusters, members of each, and pairs just below the threshold that a report names.
NAMED_CLUSTERS = 10
NAMED_MEMBERS = 20
NAMED_PAIRS = 20


class SimilarityReport:
    """The similarities of pairs, and of those that are not quite pairs."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome, self._found = outcome, outcome.found
        self._known = self._found.settings.verify != "none"
        self._first = floor_bin(outcome.threshold)
        self.pairs = 0
        self._counts = np.zeros(BINS, dtype=np.int64)
        for block in outcome.blocks():
            self.pairs += len(block)
            if self._known:
                self._counts += count_by_bin(block.similarity)

    def counts(self) -> dict[str, Any] | None:
        """How many pairs there are in each hundredth of similarity; None if similarities are not known."""
        if not self._known:
            return None
        return {"from": self._first / BINS, "counts": (self._counts + self._outcome.near_misses.counts).tolist()}

    def just_below(self) -> dict[str, Any] | None:
        """How many candidates are just below the threshold, and the most similar of two kept documents.

        What no band proposed was never compared, so there may be more. Those that are named are among the 10,000 most
        similar of all.
        """
        if not self._known:
            return None
        pairs = int(self._outcome.near_misses.counts.sum())
        return {"from": self._first / BINS, "pairs": pairs, "closest": self._closest()}

    def _closest(self) -> list[dict[str, Any]]:
        near, removals = self._outcome.near_misses.closest, self._outcome.removals
        one, other = (self._found.order.document_at[side].astype(np.int64) for side in (near.low, near.high))
        kept = np.flatnonzero(~(removals.include(one) | removals.include(other)))
        left, right, similarity = np.minimum(one, other)[kept], np.maximum(one, other)[kept], near.similarity[kept]
        order = np.lexsort((right, left, -similarity))[:NAMED_PAIRS]
        sides = (named(self._found, side[order]) for side in (left, right))
        return [
            {"similarity": alike, "left": first, "right": second}
            for alike, first, second in zip(similarity[order].tolist(), *sides, strict=True)
        ]


def largest_clusters(outcome: Outcome) -> list[dict[str, Any]]:
    """The clusters of most documents, each with the kept one and those that are least similar to it."""
    removals, found = outcome.removals, []
    for head, removed in removals.largest(NAMED_CLUSTERS):
        places = removals.least_similar(head, NAMED_MEMBERS)
        kept, *members = named(outcome.found, np.append([head], removals.documents[places]))
        similarity = [None if np.isnan(one) else one for one in removals.similarity[places].tolist()]
        with_similarity = [{**member, "similarity": alike} for member, alike in zip(members, similarity, strict=True)]
        found.append({"kept": kept, "size": removed + 1, "members": with_similarity})
    return found


def named(found: Found, numbers: NDArray[Any]) -> list[dict[str, Any]]:
    """Id, source and row of documents."""
    rows: list[dict[str, Any]] = pa.table(identity(found, numbers)).to_pylist()
    return rows


def size_distribution(sizes: NDArray[np.int64]) -> list[dict[str, int]]:
    """How many clusters have 2, 3 to 4, 5 to 8 … documents, up to the largest.

    >>> size_distribution(np.array([2, 2, 6]))[1:]
    [{'from': 3, 'to': 4, 'clusters': 0}, {'from': 5, 'to': 8, 'clusters': 1}]
    """
    powers = 2 ** np.arange(1, 33)
    counts = np.bincount(np.searchsorted(powers, sizes))
    return [
        {"from": power // 2 + 1, "to": power, "clusters": count}
        for power, count in zip(powers.tolist(), counts.tolist(), strict=False)
    ]
