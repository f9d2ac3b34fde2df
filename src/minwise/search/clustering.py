"""Clustering: keep order, groups of identical documents, and star and component clusters of similar pairs.

The input is the verified pairs of :mod:`minwise.search.verification`; :mod:`minwise.results` turns the clusters into
tables. Documents are identified by their rank, that is their position in the keep order, so that the smaller rank of
two documents is the one to keep. Clustering takes two passes over the pairs and 13 bytes per document.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.search.bands import NO_DOCUMENT

__all__ = [
    "FIRST_MEMBERS",
    "Blocks",
    "ClusteringResult",
    "CopyExpansion",
    "CopyGroups",
    "KeepOrder",
    "PairBlock",
    "SortKey",
    "by_number",
    "by_value",
    "cluster_by_components",
    "cluster_by_star",
    "earlier_members",
    "in_pairs",
    "removed_by_star",
]

# Members of a group above the cap that every other member is paired with.
FIRST_MEMBERS = _kernel.FIRST_MEMBERS


@dataclass(frozen=True, slots=True)
class PairBlock:
    """Pairs as columns; ``low`` is the smaller number."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    similarity: NDArray[np.float64]

    @classmethod
    def concat(cls, blocks: Sequence["PairBlock"]) -> "PairBlock":
        """Return the pairs of all blocks in one block."""
        low, high = ([np.empty(0, dtype=np.uint32)] for _ in range(2))
        similarity = [np.empty(0)]
        for block in blocks:
            low.append(block.low)
            high.append(block.high)
            similarity.append(block.similarity)
        return cls(np.concatenate(low), np.concatenate(high), np.concatenate(similarity))

    def __len__(self) -> int:
        return len(self.low)

    def where(self, mask: NDArray[np.bool_]) -> "PairBlock":
        """Return the pairs that the mask marks."""
        return PairBlock(self.low[mask], self.high[mask], self.similarity[mask])

    def take(self, indices: NDArray[np.int64]) -> "PairBlock":
        """Return the pairs at these indices, in their order."""
        return PairBlock(self.low[indices], self.high[indices], self.similarity[indices])


@dataclass(frozen=True, slots=True)
class CopyGroups:
    """Groups of documents with the same tokens: ``members[starts[i]:starts[i + 1]]``, ascending; the first leads."""

    members: NDArray[np.uint32]
    starts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each group."""
        return np.diff(self.starts).astype(np.int64)

    @property
    def leaders(self) -> NDArray[np.uint32]:
        """The first member of each group."""
        return self.members[self.starts[:-1].astype(np.int64)]

    def followers(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return every member that does not lead, and its leader."""
        leads = np.zeros(len(self.members), dtype=bool)
        leads[self.starts[:-1].astype(np.int64)] = True
        return self.members[~leads], np.repeat(self.leaders, self.sizes)[~leads]

    def divided(self, split: int) -> "CopyGroups":
        """Return the groups of two or more members below ``split``, and those of two or more others; not in order."""
        group, side = np.repeat(np.arange(len(self)), self.sizes), self.members >= split
        starts = np.flatnonzero(np.diff(2 * group + side, prepend=-1))
        sizes = np.diff(np.append(starts, len(self.members)))
        several = sizes > 1
        members = self.members[np.repeat(several, sizes)]
        return CopyGroups(members, np.concatenate([[0], np.cumsum(sizes[several])]).astype(np.uint64))

    def led_by(self, chosen: NDArray[np.bool_]) -> "CopyGroups":
        """Return the groups whose leaders are marked."""
        marked, sizes = chosen[self.leaders], self.sizes
        starts = np.concatenate([[0], np.cumsum(sizes[marked])]).astype(np.uint64)
        return CopyGroups(self.members[np.repeat(marked, sizes)], starts)

    def renumbered(self, numbers: NDArray[np.uint32]) -> "CopyGroups":
        """Return the groups with other numbers of documents, which keep the order within each group."""
        members, sizes = numbers[self.members], self.sizes
        order = np.argsort(numbers[self.leaders]) if len(self) else np.empty(0, dtype=np.int64)
        by_leader = np.argsort(np.repeat(numbers[self.leaders], sizes), kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.uint64)
        return CopyGroups(members[by_leader], starts)


@dataclass(frozen=True, slots=True)
class ClusteringResult:
    """Removed documents and the kept document that each duplicates, by rank.

    Attributes:
        removed: A flag per rank.
        witness: The kept document that a removed one is a near-duplicate of; ``NO_DOCUMENT`` for kept ones.
        similarity: Their similarity; NaN if it is unknown.
    """

    removed: NDArray[np.bool_]
    witness: NDArray[np.uint32]
    similarity: NDArray[np.float64]


Blocks = Callable[[], Iterable[PairBlock]]


def cluster_by_star(
    blocks: Blocks,
    copies: CopyGroups,
    documents: int,
    protected: int = 0,
    *,
    directed: bool = False,
    following: bool = False,
) -> ClusteringResult:
    """Return clusters in which every removed document is similar to the kept one itself.

    Documents are processed in keep order; a document is removed if it has a pair with a kept one of smaller rank. Its
    witness is its most similar kept partner, the first among equals. Copies are removed with their leader.

    Args:
        blocks: Returns the pairs in ascending order; called twice.
        copies: Documents with the same tokens; only their leaders are in pairs.
        documents: Number of documents.
        protected: The first ``protected`` ranks are never removed; no two of them may be a pair.
        directed: Whether only a partner of smaller rank can be a witness: pairs say that the second lies in the first.
        following: Whether copies are no pairs, so that a copy is removed only together with its leader.
    """
    removed = removed_by_star(blocks, copies, documents, protected, following=following)
    witness, best = np.full(documents, NO_DOCUMENT, dtype=np.uint32), np.full(documents, np.nan)
    for found in blocks():
        block = found.where(~removed[found.low]) if directed else found
        _kernel.choose_witnesses(block.low, block.high, block.similarity, removed, witness, best)
    _set_witness_of_copies(ClusteringResult(removed, witness, best), copies)
    return ClusteringResult(removed, witness, best)


def removed_by_star(
    blocks: Blocks, copies: CopyGroups, documents: int, protected: int = 0, *, following: bool = False
) -> NDArray[np.bool_]:
    """Return a flag for each removed document of :func:`cluster_by_star`, in one pass over the pairs."""
    removed = np.zeros(documents, dtype=bool)
    for block in blocks():
        _kernel.remove_neighbours(block.low, block.high, removed)
    followers, leaders = copies.followers()
    removed[followers] = removed[leaders] if following else followers >= protected
    return removed


def _set_witness_of_copies(clustering: ClusteringResult, copies: CopyGroups) -> None:
    """Set the witness of removed copies: their leader if it is kept, otherwise the leader's witness."""
    followers, leaders = copies.followers()
    removed = clustering.removed[followers]
    followers, leaders = followers[removed], leaders[removed]
    leader_removed = clustering.removed[leaders]
    clustering.witness[followers] = np.where(leader_removed, clustering.witness[leaders], leaders)
    clustering.similarity[followers] = np.where(leader_removed, clustering.similarity[leaders], 1.0)


def cluster_by_components(blocks: Blocks, copies: CopyGroups, documents: int) -> NDArray[np.uint32]:
    """Return the first member of each document's connected component."""
    parents = np.arange(documents, dtype=np.uint32)
    for block in blocks():
        _kernel.join_pairs(block.low, block.high, parents)
    followers, leaders = copies.followers()
    _kernel.join_pairs(leaders, followers, parents)
    _kernel.flatten_components(parents)
    return parents


def in_pairs(blocks: Blocks, documents: int) -> NDArray[np.bool_]:
    """Return a flag for each document that is in a pair."""
    paired = np.zeros(documents, dtype=bool)
    for block in blocks():
        paired[block.low] = paired[block.high] = True
    return paired


# Returns the indices that sort documents; equal ones stay in their order.
SortKey = Callable[[NDArray[np.uint32]], NDArray[np.int64]]


class KeepOrder:
    """Ranking of documents by preference: rank 0 is kept before all others.

    Attributes:
        rank_of: The rank of each document.
        document_at: The document of each rank.
        protected: The first ``protected`` ranks are never removed.
        is_document_order: Whether the rank of a document is its number.
    """

    def __init__(self, document_at: NDArray[np.uint32], *, protected: int = 0, is_document_order: bool = False) -> None:
        self.protected, self.is_document_order = protected, is_document_order
        self.document_at = self.rank_of = document_at
        if not is_document_order:
            self.rank_of = np.empty_like(document_at)
            self.rank_of[document_at] = np.arange(len(document_at), dtype=np.uint32)

    @classmethod
    def of(
        cls,
        documents: int,
        keys: Sequence[SortKey] = (),
        *,
        references: int = 0,
        last_first: bool = False,
        never_removed: NDArray[np.bool_] | None = None,
    ) -> "KeepOrder":
        """Return the order of sort keys; ties are broken by document order.

        Args:
            documents: Number of documents.
            keys: The keys in the order in which they decide.
            references: The first ``references`` documents come first, in their order, and are never removed.
            last_first: Whether ties are broken by reverse document order.
            never_removed: A flag for each document that is never removed; these come before the others.
        """
        if not keys and not last_first and never_removed is None:
            ranks = np.arange(documents, dtype=np.uint32)
            return cls(ranks, protected=references, is_document_order=True)
        free = np.arange(references, documents, dtype=np.uint32)[:: -1 if last_first else 1]
        for key in reversed(keys):
            free = free[key(free)]
        protected = references
        if never_removed is not None:
            never = never_removed[free]
            free = np.concatenate([free[never], free[~never]])
            protected += int(np.count_nonzero(never))
        return cls(np.concatenate([np.arange(references, dtype=np.uint32), free]), protected=protected)


def by_number(numbers: NDArray[np.int64]) -> SortKey:
    """Return the key that puts documents of smaller numbers first."""
    return lambda documents: np.argsort(numbers[documents], kind="stable")


def by_value(values: pa.Array, *, descending: bool) -> SortKey:
    """Return the key that sorts documents by their values; those without a value come last."""
    return lambda documents: _sort_indices(values.take(from_numpy(documents)), descending=descending)


def _sort_indices(values: pa.Array, *, descending: bool) -> NDArray[np.int64]:
    """Return the indices in sorted order; equal values in their order, nulls and NaN last."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    table = pa.table({"value": values, "index": from_numpy(np.arange(len(values)))})
    keys = [("value", "descending" if descending else "ascending"), ("index", "ascending")]
    return to_numpy(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)


def earlier_members(
    position: NDArray[np.int64], partners: NDArray[np.int64], most: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs of group members as two index arrays: an earlier member of the group, and the member itself.

    The groups are stored one after the other.

    Args:
        position: The position of each member in its group, counted from 0.
        partners: The number of members, counted from the first of the group, that each member is paired with; all of
            them precede it.
        most: Approximate number of pairs in a block.
    """
    ends = np.cumsum(partners)
    start = 0
    while start < len(partners):
        base = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, base + most, side="right")))
        members, counts = np.arange(start, end), partners[start:end]
        first = np.repeat(members - position[start:end], counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        yield first + offset, np.repeat(members, counts)
        start = end


class CopyExpansion:
    """Expansion of pairs of leaders to pairs of all their copies, up to the cap.

    Args:
        copies: The groups of identical documents.
        documents: Number of documents.
        max_bucket: Largest group that is expanded completely; of a larger one the first members stand for all.
    """

    def __init__(self, copies: CopyGroups, documents: int, max_bucket: int) -> None:
        self.copies = copies
        self.sizes = copies.sizes
        self.starts = copies.starts[:-1].astype(np.int64)
        self.expanded_sizes = np.where(self.sizes <= max_bucket, self.sizes, FIRST_MEMBERS)
        self._group = np.full(documents, -1, dtype=np.int64)
        self._group[copies.leaders] = np.arange(len(copies))

    def _counts(self, leaders: NDArray[np.uint32], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        group = self._group[leaders]
        return np.where(group < 0, 1, sizes[group]) if len(sizes) else np.ones(len(leaders), dtype=np.int64)

    def across(self, block: PairBlock, most: int) -> Iterator[PairBlock]:
        """Yield the pairs between the copies of both sides of each pair, unordered, in blocks of about ``most``."""
        left, right = (self._counts(side, self.expanded_sizes) for side in (block.low, block.high))
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
        index = np.arange(totals.sum()) - np.repeat(np.cumsum(totals) - totals, totals)
        width = np.repeat(right, totals)
        left_member = self._member(np.repeat(low, totals), index // width)
        right_member = self._member(np.repeat(high, totals), index % width)
        low, high = np.minimum(left_member, right_member), np.maximum(left_member, right_member)
        return PairBlock(low, high, np.repeat(similarity, totals))

    def _member(self, leaders: NDArray[np.uint32], position: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the member at a position of the group that each document leads; the document if it leads none."""
        group = self._group[leaders]
        grouped = group >= 0
        members = leaders.copy()
        members[grouped] = self.copies.members[self.starts[group[grouped]] + position[grouped]]
        return members

    def within(self, most: int, similarity: float = 1.0) -> Iterator[PairBlock]:
        """Yield the pairs among identical documents, unordered, in blocks of about ``most``."""
        position = np.arange(len(self.copies.members)) - np.repeat(self.starts, self.sizes)
        limit = np.repeat(np.where(self.expanded_sizes == self.sizes, self.sizes, FIRST_MEMBERS), self.sizes)
        for earlier, later in earlier_members(position, np.minimum(position, limit), most):
            low, high = self.copies.members[earlier], self.copies.members[later]
            yield PairBlock(low, high, np.full(len(high), similarity))

    def left_out_within(self) -> int:
        """Return the number of pairs among identical documents that the cap leaves out."""
        large = self.sizes[self.expanded_sizes != self.sizes]
        given = FIRST_MEMBERS * (FIRST_MEMBERS - 1) // 2 + (large - FIRST_MEMBERS) * FIRST_MEMBERS
        return int((large * (large - 1) // 2 - given).sum())

    def left_out_across(self, block: PairBlock) -> int:
        """Return the number of pairs between copies of different documents that the cap leaves out."""
        complete = self._counts(block.low, self.sizes) * self._counts(block.high, self.sizes)
        given = self._counts(block.low, self.expanded_sizes) * self._counts(block.high, self.expanded_sizes)
        return int((complete - given).sum())

    def capped_leaders(self) -> NDArray[np.uint32]:
        """Return the first document of every group above the cap."""
        leaders: NDArray[np.uint32] = self.copies.leaders[self.expanded_sizes != self.sizes]
        return leaders
