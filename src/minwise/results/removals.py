"""Removals: the documents that deduplication removes, each with the kept document that it duplicates.

:class:`DedupDecision` applies the clustering of the settings, at the threshold of the search or a higher one, to the
verified pairs. :mod:`minwise.results.dedup` and :mod:`minwise.results.report_data` read everything from it. Memory is
16 bytes per removed document, plus 13 per document while clusters are formed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.checks import show
from minwise.errors import ConfigError
from minwise.search.bands import FAULTY
from minwise.search.clustering import (
    ClusteringResult,
    PairBlock,
    cluster_by_components,
    cluster_by_star,
    in_pairs,
    removed_by_star,
)
from minwise.search.engine import SearchResult
from minwise.search.verification import NearMisses, smallest_indices
from minwise.settings import SearchSettings

__all__ = [
    "STEP",
    "DedupDecision",
    "PairSimilarities",
    "Removals",
    "check_similarities",
    "count_by_threshold",
    "removed_at",
    "threshold_steps",
]

# Difference of two thresholds, and the smallest one: similarities in a report are counted in hundredths, too.
STEP, LEAST_STEP = 0.05, 0.01

Ranks = NDArray[np.uint32]
# Least similar removed documents among which examples of different clusters are chosen.
EXAMPLE_POOL = 1000
# Returns the exact similarity of documents that are in candidate pairs, given by rank.
PairSimilarities = Callable[[SearchResult, Ranks, Ranks], NDArray[np.float64]]


@dataclass(frozen=True)
class Removals:
    """Removed documents by number, ascending. All others are kept, so only the removed ones take memory.

    Attributes:
        documents: The removed documents.
        witness: The kept document that each is a near-duplicate of.
        similarity: Their similarity; NaN if it is unknown.
    """

    documents: NDArray[np.uint32]
    witness: NDArray[np.uint32]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.documents)

    def include(self, documents: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a flag for each of the documents that is removed."""
        if not len(self):
            return np.zeros(len(documents), dtype=bool)
        indices = np.minimum(np.searchsorted(self.documents, documents), len(self) - 1)
        return self.documents[indices] == documents  # type: ignore[no-any-return]

    def between(self, start: int, end: int) -> int:
        """Return how many of the documents from ``start`` up to ``end`` are removed."""
        first, last = np.searchsorted(self.documents, [start, end])
        return int(last - first)

    @cached_property
    def _clusters(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The kept documents with removed near-duplicates, ascending, and how many each has."""
        kept = np.sort(self.witness)
        firsts = np.flatnonzero(np.concatenate([[True], kept[1:] != kept[:-1]])) if len(kept) else np.empty(0, int)
        return kept[firsts], np.diff(np.append(firsts, len(kept)))

    def kept_of(self, documents: NDArray[Any]) -> NDArray[np.int64]:
        """Return the kept document of each document's cluster: its witness, or itself."""
        kept = documents.astype(np.int64)
        if len(self):
            indices = np.minimum(np.searchsorted(self.documents, documents), len(self) - 1)
            removed = self.documents[indices] == documents
            kept[removed] = self.witness[indices[removed]]
        return kept

    def sizes_of(self, kept: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of documents in the cluster of each kept document, including itself."""
        owners, removed = self._clusters
        sizes = np.ones(len(kept), dtype=np.int64)
        if len(owners):
            indices = np.minimum(np.searchsorted(owners, kept), len(owners) - 1)
            sizes += np.where(owners[indices] == kept, removed[indices], 0)
        return sizes

    def largest(self, count: int) -> list[tuple[int, int]]:
        """Return the kept documents with most removed near-duplicates, and how many; among equals the first."""
        owners, removed = self._clusters
        order = np.argsort(-removed, kind="stable")[:count]
        return list(zip(owners[order].tolist(), removed[order].tolist(), strict=True))

    def least_similar(self, kept: int, count: int) -> NDArray[np.int64]:
        """Return the indices of the documents removed for a kept one: least similar first, among equals in order.

        An unknown similarity comes first: such documents are connected through others, and are not identical.
        """
        indices = np.flatnonzero(self.witness == kept)
        return indices[smallest_indices(np.nan_to_num(self.similarity[indices], nan=-1.0), count)]

    def least_similar_examples(self, count: int) -> NDArray[np.int64]:
        """Return the indices of the documents least similar to their kept one, of different clusters if possible."""
        known = np.nan_to_num(self.similarity, nan=1.0)
        nearest = smallest_indices(known, EXAMPLE_POOL)
        _, firsts = np.unique(self.witness[nearest], return_index=True)
        others = np.delete(nearest, firsts)
        return np.concatenate([nearest[np.sort(firsts)], others])[:count]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of documents in each cluster of two or more, in the order of the kept ones."""
        return self._clusters[1] + 1

    @property
    def clusters(self) -> int:
        """Number of kept documents with removed near-duplicates."""
        return len(self._clusters[0])


@dataclass(frozen=True)
class DedupDecision:
    """Kept and removed documents of a search, at one threshold.

    Attributes:
        search: The result of the search.
        similarities: Computes similarities that the search did not need; only called for component clusters.
        raised: A threshold above that of the search; None for its own.
    """

    search: SearchResult
    similarities: PairSimilarities
    raised: float | None = None

    @property
    def threshold(self) -> float:
        """Minimum similarity of near-duplicates."""
        return self.search.settings.plan.threshold if self.raised is None else self.raised

    def blocks(self) -> Iterator[PairBlock]:
        """Yield the pairs that reach the threshold, ascending."""
        return self.search.blocks(self.raised)

    @cached_property
    def near_misses(self) -> NearMisses:
        """The candidates just below the threshold."""
        return self.search.near_misses(self.raised)

    @cached_property
    def removals(self) -> Removals:
        """The removed documents, each with its witness."""
        search = self.search
        if search.settings.group == "star":
            documents, protected = len(search.documents), search.order.protected
            directed = search.settings.measure == "containment"
            following = search.settings.across is not None
            clustering = cluster_by_star(
                self.blocks, search.copies, documents, protected, directed=directed, following=following
            )
        else:
            clustering = self._cluster_by_components()
        ranks = np.flatnonzero(clustering.removed)
        removed, witness = search.order.document_at[ranks], search.order.document_at[clustering.witness[ranks]]
        order = np.argsort(removed)
        return Removals(removed[order], witness[order], clustering.similarity[ranks][order])

    def _cluster_by_components(self) -> ClusteringResult:
        """Keep one document per connected component: the first in keep order."""
        first, removed = self._components()
        similarity = np.full(len(removed), np.nan)
        removed_ranks = np.flatnonzero(removed)
        similarity[removed_ranks] = self._similarities(
            self.search, first[removed_ranks], removed_ranks.astype(np.uint32)
        )
        return ClusteringResult(removed, first, similarity)

    def _components(self) -> tuple[Ranks, NDArray[np.bool_]]:
        """Return the first rank of each rank's component, and a flag for each removed rank."""
        copies, documents = self.search.copies, len(self.search.documents)
        if self.search.settings.across is not None:
            copies = copies.led_by(in_pairs(self.blocks, documents))
        first = cluster_by_components(self.blocks, copies, documents)
        removed = first != np.arange(len(first), dtype=np.uint32)
        removed[: self.search.order.protected] = False
        return first, removed

    def count_removed(self) -> int:
        """Return how many documents are removed: one pass over the pairs, without witnesses and similarities."""
        search = self.search
        if search.settings.group == "star":
            documents, protected = len(search.documents), search.order.protected
            following = search.settings.across is not None
            removed = removed_by_star(self.blocks, search.copies, documents, protected, following=following)
            return int(np.count_nonzero(removed))
        return int(np.count_nonzero(self._components()[1]))

    def _similarities(self, search: SearchResult, kept: Ranks, removed: Ranks) -> NDArray[np.float64]:
        """Return the similarity of removed documents to kept ones, often not a candidate pair."""
        leader = np.arange(len(search.documents), dtype=np.uint32)
        followers, leaders = search.copies.followers()
        leader[followers] = leaders
        left, right = leader[kept], leader[removed]
        similarity = np.ones(len(removed))
        differ = left != right
        if search.settings.verify != "exact":
            similarity[differ] = np.nan
        elif differ.any():
            low, high = np.minimum(left, right)[differ], np.maximum(left, right)[differ]
            similarity[differ] = self.similarities(search, low, high)
        return similarity

    def plain_similarities(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarity without discount of some removed documents to their witnesses."""
        search, rank_of = self.search, self.search.order.rank_of
        kept, removed = rank_of[self.removals.witness[rows]], rank_of[self.removals.documents[rows]]
        return self._similarities(search.without_discount(), kept, removed)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for removed and for unreadable rows."""
        keep: NDArray[np.bool_] = self.search.documents.states != FAULTY
        keep[self.removals.documents] = False
        return keep[self.search.documents.protected :]


def check_similarities(settings: SearchSettings) -> None:
    """Raise ConfigError if a run does not know the similarities of its pairs."""
    if settings.verify == "none":
        raise ConfigError("verify must be exact or signature to know similarities, got none; run again")


def threshold_steps(start: float, step: float = STEP) -> list[float]:
    """Return ``start``, the multiples of ``step`` above it, and 1.

    >>> threshold_steps(0.83), threshold_steps(0.5, 0.25), threshold_steps(1.0)
    ([0.83, 0.85, 0.9, 0.95, 1.0], [0.5, 0.75, 1.0], [1.0])
    """
    if isinstance(step, bool) or not isinstance(step, (int, float)) or not LEAST_STEP <= step <= 1:
        raise ConfigError(f"step must be a number from {LEAST_STEP} to 1, got {show(step)}")
    multiples = (round(number * step, 9) for number in range(1, int(1 / step) + 1))
    return [*dict.fromkeys([start, *(value for value in multiples if start < value < 1), 1.0])]


def count_by_threshold(decision: DedupDecision) -> list[dict[str, Any]] | None:
    """Return how many documents each threshold from the one of the decision on removes.

    None if similarities are unknown, or if pairs were not compared that decide it: those of two documents that are
    removed at the threshold of the decision but not at a higher one.
    """
    if decision.search.settings.verify == "none" or not decision.search.is_complete:
        return None
    counts = removed_at(decision, threshold_steps(decision.threshold))
    return [{"threshold": threshold, "removed": removed} for threshold, removed in counts]


def removed_at(decision: DedupDecision, thresholds: Iterable[float]) -> Iterator[tuple[float, int]]:
    """Yield each threshold with the number of documents that it removes; one pass over the pairs for each."""
    for threshold in thresholds:
        yield threshold, replace(decision, raised=threshold).count_removed()
