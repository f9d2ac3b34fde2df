"""Cluster: similar pairs in, groups out.

Numbers here are places in the keep order, so that of two documents the smaller number is the one to keep.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.search.bands import NOBODY

__all__ = [
    "FIRST",
    "CopyGroups",
    "Expansion",
    "Grouping",
    "KeepOrder",
    "PairBlock",
    "earlier_members",
    "group_by_components",
    "group_by_star",
]


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


class KeepOrder:
    """A numbering of documents by preference: number 0 is kept before all others.

    Attributes:
        number_of: The number of each document.
        document_at: The document of each number.
        is_document_order: Whether a document's number is its own.
    """

    def __init__(self, document_at: NDArray[np.uint32], *, is_document_order: bool = False) -> None:
        self.is_document_order = is_document_order
        self.document_at = self.number_of = document_at
        if not is_document_order:
            self.number_of = np.empty_like(document_at)
            self.number_of[document_at] = np.arange(len(document_at), dtype=np.uint32)

    @classmethod
    def of(
        cls,
        policy: str,
        documents: int,
        *,
        protected: int = 0,
        lengths: NDArray[np.uint64] | None = None,
        ranks: pa.Array | None = None,
    ) -> "KeepOrder":
        """The order of a policy; ties by document order.

        Args:
            policy: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or ``min:COL``.
            documents: How many there are.
            protected: The first so many come first whatever the policy says.
            lengths: Bytes of each text, for ``longest`` and ``shortest``.
            ranks: The column's values, for ``max`` and ``min``; documents without one come last.
        """
        name = policy.partition(":")[0]
        if name == "first":
            return cls(np.arange(documents, dtype=np.uint32), is_document_order=True)
        free = np.arange(protected, documents, dtype=np.uint32)
        if name == "last":
            free = free[::-1]
        elif name in ("longest", "shortest") and lengths is not None:
            keys = lengths[protected:].astype(np.int64)
            free = free[np.argsort(-keys if name == "longest" else keys, kind="stable")]
        elif name in ("max", "min") and ranks is not None:
            free = free[_sorted_places(ranks.slice(protected), descending=name == "max")]
        return cls(np.concatenate([np.arange(protected, dtype=np.uint32), free]))


def _sorted_places(ranks: pa.Array, *, descending: bool) -> NDArray[np.int64]:
    """Places in sorted order; equal values in their order, nulls and what is not a number last."""
    if pa.types.is_floating(ranks.type):
        ranks = pc.if_else(pc.is_nan(ranks), None, ranks)
    table = pa.table({"rank": ranks, "place": from_numpy(np.arange(len(ranks)))})
    keys = [("rank", "descending" if descending else "ascending"), ("place", "ascending")]
    return to_numpy(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)


FIRST = _kernel.FIRST_MEMBERS


def earlier_members(
    place: NDArray[np.int64], partners: NDArray[np.int64], most: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Members of groups that lie one after the other, each with the first ones of its own group, as two indices.

    Args:
        place: The place of each member in its group, from 0 on.
        partners: With how many of its group it is paired: none of them after itself.
        most: Pairs in a block, about.
    """
    ends = np.cumsum(partners)
    start = 0
    while start < len(partners):
        base = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, base + most, side="right")))
        members, counts = np.arange(start, end), partners[start:end]
        first = np.repeat(members - place[start:end], counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        yield first + offset, np.repeat(members, counts)
        start = end


class Expansion:
    """The copies of documents as far as they count.

    Args:
        copies: The groups of identical documents.
        documents: How many documents there are.
        max_bucket: Members up to which a group counts whole.
    """

    def __init__(self, copies: CopyGroups, documents: int, max_bucket: int) -> None:
        self.copies = copies
        self.sizes = copies.sizes
        self.starts = copies.starts[:-1].astype(np.int64)
        self.counting = np.where(self.sizes <= max_bucket, self.sizes, FIRST)
        self._group = np.full(documents, -1, dtype=np.int64)
        self._group[copies.leaders] = np.arange(len(copies))

    def _counts(self, leaders: NDArray[np.uint32], counting: NDArray[np.int64]) -> NDArray[np.int64]:
        group = self._group[leaders]
        return np.where(group < 0, 1, counting[group]) if len(counting) else np.ones(len(leaders), dtype=np.int64)

    def across(self, block: PairBlock, most: int) -> Iterator[PairBlock]:
        """The pairs between the copies of both sides of each pair, in blocks of about ``most``, in no order."""
        left, right = (self._counts(side, self.counting) for side in (block.low, block.high))
        totals = left * right
        ends = np.cumsum(totals)
        start = 0
        while start < len(block):
            base = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, base + most, side="right")))
            here = slice(start, end)
            yield self._across(block.low[here], block.high[here], block.similarity[here], right[here], totals[here])
            start = end

    def _across(
        self,
        low: NDArray[np.uint32],
        high: NDArray[np.uint32],
        similarity: NDArray[np.float64],
        right: NDArray[np.int64],
        totals: NDArray[np.int64],
    ) -> PairBlock:
        place = np.arange(totals.sum()) - np.repeat(np.cumsum(totals) - totals, totals)
        width = np.repeat(right, totals)
        one = self._member(np.repeat(low, totals), place // width)
        other = self._member(np.repeat(high, totals), place % width)
        return PairBlock(np.minimum(one, other), np.maximum(one, other), np.repeat(similarity, totals))

    def _member(self, leaders: NDArray[np.uint32], place: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The member at a place of the group that each document leads; itself if it leads none."""
        group = self._group[leaders]
        grouped = group >= 0
        members = leaders.copy()
        members[grouped] = self.copies.members[self.starts[group[grouped]] + place[grouped]]
        return members

    def within(self, most: int, similarity: float = 1.0) -> Iterator[PairBlock]:
        """The pairs among identical documents, in blocks of about ``most``, in no order."""
        place = np.arange(len(self.copies.members)) - np.repeat(self.starts, self.sizes)
        limit = np.repeat(np.where(self.counting == self.sizes, self.sizes, FIRST), self.sizes)
        for earlier, later in earlier_members(place, np.minimum(place, limit), most):
            low, high = self.copies.members[earlier], self.copies.members[later]
            yield PairBlock(low, high, np.full(len(high), similarity))

    def left_out_within(self) -> int:
        """Pairs among identical documents that the cap leaves out."""
        large = self.sizes[self.counting != self.sizes]
        given = FIRST * (FIRST - 1) // 2 + (large - FIRST) * FIRST
        return int((large * (large - 1) // 2 - given).sum())

    def left_out_across(self, block: PairBlock) -> int:
        """Pairs between copies of different documents that the cap leaves out."""
        all_of = self._counts(block.low, self.sizes) * self._counts(block.high, self.sizes)
        given = self._counts(block.low, self.counting) * self._counts(block.high, self.counting)
        return int((all_of - given).sum())

    def capped(self) -> NDArray[np.uint32]:
        """The first document of every group above the cap."""
        leaders: NDArray[np.uint32] = self.copies.leaders[self.counting != self.sizes]
        return leaders
