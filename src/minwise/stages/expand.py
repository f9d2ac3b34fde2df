"""Expand: pairs of documents that stand for their copies in, pairs of all documents out.

Identical documents are compared once, through the first of them. Whoever asks for pairs wants every one of them; but
a group of identical documents above the cap counts with its first few members only, so that a million copies give
millions of pairs and not a trillion.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.stages.cluster import CopyGroups, PairBlock

__all__ = ["FIRST", "Expansion", "earlier_members"]

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
