"""Removals: verified pairs in; the removed documents, each with its witness, out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.search.bands import FAULTY
from minwise.search.clustering import Grouping, PairBlock, group_by_components, group_by_star
from minwise.search.engine import Found
from minwise.search.near_misses import NearMisses, places_of_smallest

__all__ = ["Outcome", "Removals", "find_removals"]

Blocks = Callable[[], Iterator[PairBlock]]


@dataclass(frozen=True)
class Removals:
    """The removed documents by number, ascending. All others are kept, so only these take memory.

    Attributes:
        documents: Who is removed.
        witness: The kept document that each is a near-duplicate of.
        similarity: Their similarity; NaN if it is unknown.
    """

    documents: NDArray[np.uint32]
    witness: NDArray[np.uint32]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.documents)

    def include(self, documents: NDArray[Any]) -> NDArray[np.bool_]:
        """A flag for each of the documents that is removed."""
        if not len(self):
            return np.zeros(len(documents), dtype=bool)
        places = np.minimum(np.searchsorted(self.documents, documents), len(self) - 1)
        return self.documents[places] == documents  # type: ignore[no-any-return]

    def between(self, start: int, end: int) -> int:
        """How many documents of a range are removed."""
        first, last = np.searchsorted(self.documents, [start, end])
        return int(last - first)

    @cached_property
    def _clusters(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The kept documents for which others are removed, ascending, and how many."""
        heads = np.sort(self.witness)
        firsts = np.flatnonzero(np.concatenate([[True], heads[1:] != heads[:-1]])) if len(heads) else np.empty(0, int)
        return heads[firsts], np.diff(np.append(firsts, len(heads)))

    def heads_of(self, documents: NDArray[Any]) -> NDArray[np.int64]:
        """The kept document of each document's cluster: its witness, or itself."""
        heads = documents.astype(np.int64)
        if len(self):
            places = np.minimum(np.searchsorted(self.documents, documents), len(self) - 1)
            removed = self.documents[places] == documents
            heads[removed] = self.witness[places[removed]]
        return heads

    def sizes_of(self, heads: NDArray[Any]) -> NDArray[np.int64]:
        """Documents in the cluster of each kept document, itself included."""
        owners, removed = self._clusters
        sizes = np.ones(len(heads), dtype=np.int64)
        if len(owners):
            places = np.minimum(np.searchsorted(owners, heads), len(owners) - 1)
            sizes += np.where(owners[places] == heads, removed[places], 0)
        return sizes

    def largest(self, count: int) -> list[tuple[int, int]]:
        """The kept documents for which most are removed, and how many; among equals the first."""
        owners, removed = self._clusters
        order = np.argsort(-removed, kind="stable")[:count]
        return list(zip(owners[order].tolist(), removed[order].tolist(), strict=True))

    def least_similar(self, head: int, count: int) -> NDArray[np.int64]:
        """The places here of the documents removed for a kept one: least similar first, among equals in order.

        An unknown similarity comes first: the documents were joined through others, and are not identical.
        """
        places = np.flatnonzero(self.witness == head)
        return places[places_of_smallest(np.nan_to_num(self.similarity[places], nan=-1.0), count)]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents in each cluster of two or more, in the order of the kept ones."""
        return self._clusters[1] + 1

    @property
    def clusters(self) -> int:
        """How many kept documents have others removed for them."""
        return len(self._clusters[0])


def find_removals(found: Found, blocks: Blocks) -> Removals:
    """Who is removed, and for whom, under the settings of a search."""
    documents, protected = len(found.documents), found.documents.protected
    if found.settings.group == "star":
        grouping = group_by_star(blocks, found.copies, documents, protected)
    else:
        grouping = _group_by_components(found, blocks)
    places = np.flatnonzero(grouping.removed)
    removed, witness = found.order.document_at[places], found.order.document_at[grouping.witness[places]]
    similarity = grouping.similarity[places]
    order = np.argsort(removed)
    return Removals(removed[order], witness[order], similarity[order])


def _group_by_components(found: Found, blocks: Blocks) -> Grouping:
    """One kept per connected component: the first in keep order."""
    documents, protected = len(found.documents), found.documents.protected
    first = group_by_components(blocks, found.copies, documents)
    removed = first != np.arange(documents, dtype=np.uint32)
    removed[:protected] = False
    similarity = np.full(documents, np.nan)
    gone = np.flatnonzero(removed)
    similarity[gone] = _similarities_to_kept(found, first[gone], gone.astype(np.uint32))
    return Grouping(removed, first, similarity)


def _similarities_to_kept(found: Found, kept: NDArray[np.uint32], gone: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How similar removed documents are to the kept one of their component, with which none may have compared them."""
    leader = np.arange(len(found.documents), dtype=np.uint32)
    followers, leaders = found.copies.followers()
    leader[followers] = leaders
    left, right = leader[kept], leader[gone]
    similarity = np.ones(len(gone))
    apart = left != right
    if found.settings.verify != "exact":
        similarity[apart] = np.nan
    elif apart.any():
        low, high = np.minimum(left, right)[apart], np.maximum(left, right)[apart]
        similarity[apart] = found.engine.similarities(found, low, high)
    return similarity


@dataclass(frozen=True)
class Outcome:
    """What becomes of the documents of a search.

    Attributes:
        found: What the search left.
        raised: A threshold above that of the search; None for its own.
    """

    found: Found
    raised: float | None = None

    @property
    def threshold(self) -> float:
        """The similarity from which on two documents are near-duplicates."""
        return self.found.settings.plan.threshold if self.raised is None else self.raised

    def blocks(self) -> Iterator[PairBlock]:
        """The pairs that reach the threshold, ascending, block by block."""
        return self.found.blocks(self.raised)

    @cached_property
    def near_misses(self) -> NearMisses:
        """The candidates just below the threshold."""
        return self.found.near_misses(self.raised)

    @cached_property
    def removals(self) -> Removals:
        """Who is removed, and for whom."""
        return find_removals(self.found, self.blocks)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for what is removed or could not be read."""
        keep: NDArray[np.bool_] = self.found.documents.states != FAULTY
        keep[self.removals.documents] = False
        return keep[self.found.documents.protected :]
