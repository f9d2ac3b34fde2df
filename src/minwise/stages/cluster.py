"""Cluster: similar pairs in, groups out.

Numbers here are places in the keep order, so that of two documents the smaller number is the one to keep.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.stages.band import NOBODY

__all__ = ["CopyGroups", "Grouping", "PairBlock", "group_by_components", "group_by_star"]


@dataclass(frozen=True, slots=True)
class PairBlock:
    """Pairs, column by column; ``low`` is the smaller number."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.low)

    def where(self, mask: NDArray[np.bool_]) -> "PairBlock":
        """Only the pairs that the mask marks."""
        return PairBlock(self.low[mask], self.high[mask], self.similarity[mask])


@dataclass(frozen=True, slots=True)
class CopyGroups:
    """Groups of documents with the same tokens: ``members[starts[i]:starts[i + 1]]``, ascending; the first leads."""

    members: NDArray[np.uint32]
    starts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each group."""
        return np.diff(self.starts).astype(np.int64)

    @property
    def leaders(self) -> NDArray[np.uint32]:
        """The first member of each group."""
        return self.members[self.starts[:-1].astype(np.int64)]

    def followers(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Every member that does not lead, and its leader."""
        leads = np.zeros(len(self.members), dtype=bool)
        leads[self.starts[:-1].astype(np.int64)] = True
        return self.members[~leads], np.repeat(self.leaders, self.sizes)[~leads]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Who is removed, and for whom.

    Attributes:
        removed: A flag per number.
        witness: The kept document that a removed one is a near-duplicate of; ``NOBODY`` for kept ones.
        similarity: Their similarity; NaN if it is unknown.
    """

    removed: NDArray[np.bool_]
    witness: NDArray[np.uint32]
    similarity: NDArray[np.float64]


Blocks = Callable[[], Iterable[PairBlock]]


def group_by_star(blocks: Blocks, copies: CopyGroups, documents: int, protected: int = 0) -> Grouping:
    """Groups in which every removed document is similar to the kept one itself.

    Documents are looked at in keep order; one is removed if it has a pair with a kept one before it. Its witness is its
    most similar kept partner, the first among equals. Copies share the fate of their leader.

    Args:
        blocks: Gives the pairs in ascending order, as often as it is called.
        copies: Documents with the same tokens; only their leaders are in pairs.
        documents: How many there are.
        protected: The first so many are never removed; no two of them may be a pair.
    """
    removed = np.zeros(documents, dtype=bool)
    for block in blocks():
        _kernel.remove_neighbours(block.low, block.high, removed)
    witness, best = np.full(documents, NOBODY, dtype=np.uint32), np.full(documents, np.nan)
    for block in blocks():
        _kernel.choose_witnesses(block.low, block.high, block.similarity, removed, witness, best)
    _follow_leaders(Grouping(removed, witness, best), copies, protected)
    return Grouping(removed, witness, best)


def _follow_leaders(grouping: Grouping, copies: CopyGroups, protected: int) -> None:
    """Copies of a kept leader are removed for it, copies of a removed one for the same witness."""
    followers, leaders = copies.followers()
    free = followers >= protected
    followers, leaders = followers[free], leaders[free]
    gone = grouping.removed[leaders]
    grouping.removed[followers] = True
    grouping.witness[followers] = np.where(gone, grouping.witness[leaders], leaders)
    grouping.similarity[followers] = np.where(gone, grouping.similarity[leaders], 1.0)


def group_by_components(blocks: Blocks, copies: CopyGroups, documents: int) -> NDArray[np.uint32]:
    """The first member of each document's connected component."""
    parents = np.arange(documents, dtype=np.uint32)
    for block in blocks():
        _kernel.join_pairs(block.low, block.high, parents)
    followers, leaders = copies.followers()
    _kernel.join_pairs(leaders, followers, parents)
    _kernel.flatten_components(parents)
    return parents
