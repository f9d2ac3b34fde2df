"""Cells: groups of documents whose candidate pairs one task compares.

Pairs never cross connected components of the bucket graph. The driver finds the components, from the members of the
buckets alone, and packs them into cells of about equal work: the slowest cell decides when the stage ends. If all pairs
are compared, a component that has more sets than a cell may hold, or more work than a cell should have, is cut: its
ranks are divided into intervals, and the pairs of two intervals are a cell, to which the sets of both are sent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.sorted_arrays import distinct
from minwise.spark.band_tasks import BucketGroups, count_pairs
from minwise.spark.blocks import by_part, take_lists

__all__ = [
    "CELL_BYTES",
    "MOST_CELLS",
    "MOST_CELL_BYTES",
    "NEEDED_SECONDS",
    "NO_CELLS",
    "NO_GRID",
    "PAIR_SECONDS",
    "CellPlan",
    "Grid",
    "plan_cells",
    "plan_grid",
]

# Rank that is in no cell.
NO_CELL = 2**32 - 1
# Cells of ranks where only those of buckets are needed.
NO_CELLS = np.empty(0, dtype=np.uint32)
# Bytes of sets in a cell, unless there would be more cells than this: each reading task sends a block to each cell.
CELL_BYTES, MOST_CELLS = 1 << 26, 1 << 10
# Bytes of sets that a task can hold on its disk and partly in memory; larger components are cut.
MOST_CELL_BYTES = 1 << 30
# Seconds of work in a cell, and the work of a byte of a set. Both are estimates: they only balance the cells.
CELL_SECONDS, BYTE_SECONDS = 0.25, 3e-9
# Work above which a component is cut where all pairs are compared. The sets of a component that is cut are sent to as
# many cells as there are intervals, so it is much more than that of other cells.
MOST_CELL_SECONDS = 8.0
# Work of a proposed pair if all are compared, and if only those are that decide clusters: the 122 million proposals of
# one million passages took 6.2 and 0.9 s.
PAIR_SECONDS, NEEDED_SECONDS = 5e-8, 8e-9


@dataclass(frozen=True)
class Grid:
    """Component that is cut into cells of two intervals of ranks each.

    Attributes:
        cuts: First rank of each interval but the first.
        first_cell: Number of the cell of the first interval with itself.
    """

    cuts: NDArray[np.uint32]
    first_cell: int

    @property
    def intervals(self) -> int:
        """Number of intervals."""
        return len(self.cuts) + 1

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.intervals * (self.intervals + 1) // 2

    def cell(self, low: int, high: int) -> int:
        """Return the cell of two intervals, of which ``low`` is not the larger."""
        return self.first_cell + high * (high + 1) // 2 + low

    def cell_of_pairs(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the cell of each pair of ranks."""
        sides = [np.searchsorted(self.cuts, ranks, side="right") for ranks in (left, right)]
        low, high = np.minimum(*sides), np.maximum(*sides)
        cells: NDArray[np.int64] = self.first_cell + high * (high + 1) // 2 + low
        return cells

    def cells_of(self, ranks: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the cells of some ranks: the index of a rank, and a cell that it is in."""
        interval = np.searchsorted(self.cuts, ranks, side="right")
        own, other = np.repeat(interval, self.intervals), np.tile(np.arange(self.intervals), len(ranks))
        low, high = np.minimum(own, other), np.maximum(own, other)
        cells = self.first_cell + high * (high + 1) // 2 + low
        return np.repeat(np.arange(len(ranks)), self.intervals), cells.astype(np.uint32)

    def divided(self, groups: BucketGroups) -> Iterator[tuple[int, BucketGroups]]:
        """Yield the buckets of each cell: of each bucket the pairs between two intervals."""
        sizes, heads, partners = groups.buckets.astype(np.int64).T
        bucket = np.repeat(np.arange(len(sizes)), sizes)
        index = np.arange(len(groups.members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        interval = np.searchsorted(self.cuts, groups.members, side="right")
        for low, high in combinations_with_replacement(range(self.intervals), 2):
            is_head = (interval == low) & (index < heads[bucket])
            is_partner = (interval == high) & (index >= partners[bucket])
            chosen = is_head | is_partner
            others = is_head if low < high else is_head & ~is_partner
            rows = np.stack([np.bincount(bucket[mask], minlength=len(sizes)) for mask in (chosen, is_head, others)], 1)
            rows[:, 1] = np.minimum(rows[:, 1], rows[:, 0] - 1)  # the last member is paired with none
            kept = (rows[:, 1] > 0) & (rows[:, 0] > np.maximum(rows[:, 2], 1))
            if kept.any():
                members = groups.members[chosen & kept[bucket]]
                yield self.cell(low, high), BucketGroups(rows[kept].astype(np.uint32), members)


# Grid of one interval.
NO_GRID = Grid(np.empty(0, dtype=np.uint32), 0)


@dataclass(frozen=True)
class CellPlan:
    """Cells of a search.

    Attributes:
        cells: Number of cells.
        cell_of: The cell of each rank; ``NO_CELL`` if it is in no pair, ``cells`` plus the number of its grid if it is
            in one.
        grids: Components that are cut.
    """

    cells: int
    cell_of: NDArray[np.uint32]
    grids: tuple[Grid, ...] = ()

    def cells_of(self, ranks: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the cells of documents, ascending by document: the index of a document, and a cell that it is in.

        Args:
            ranks: Ranks of the documents; ``NO_DOCUMENT`` for those that are in no bucket.
        """
        known = np.flatnonzero(ranks < len(self.cell_of))
        cells = self.cell_of[ranks[known]]
        indices, found = [known[cells < self.cells]], [cells[cells < self.cells]]
        for number, grid in enumerate(self.grids):
            own = known[cells == self.cells + number]
            of_own, of_grid = grid.cells_of(ranks[own])
            indices.append(own[of_own])
            found.append(of_grid)
        every = np.concatenate(indices)
        order = np.argsort(every, kind="stable")
        return every[order].astype(np.uint32), np.concatenate(found)[order]

    def divided(self, groups: BucketGroups, cells: NDArray[np.uint32]) -> Iterator[tuple[int, BucketGroups]]:
        """Yield the buckets of each cell; ``cells`` has the entry of ``cell_of`` for each bucket."""
        sizes = groups.buckets[:, 0].astype(np.int64)
        for cell, chosen in by_part(cells, self.cells + len(self.grids)):
            found = BucketGroups(groups.buckets[chosen], take_lists(sizes, groups.members, chosen))
            if cell < self.cells:
                yield cell, found
            else:
                yield from self.grids[cell - self.cells].divided(found)


def plan_cells(
    groups: Callable[[], Iterator[BucketGroups]],
    set_bytes: NDArray[np.float64],
    *,
    pair_seconds: float,
    most_bytes: int | None,
) -> CellPlan:
    """Return the cells of all buckets.

    Args:
        groups: Returns the buckets; called twice.
        set_bytes: Approximate bytes of the set of each rank.
        pair_seconds: Work of a pair that a bucket proposes.
        most_bytes: Bytes of sets above which a component is cut, as it is above ``MOST_CELL_SECONDS`` of work; None
            cuts none.
    """
    component, count = _components(groups, len(set_bytes))
    ranks = np.flatnonzero(component != NO_CELL)
    of_rank = component[ranks]
    sizes = np.bincount(of_rank, set_bytes[ranks], count)
    pairs = np.zeros(count)
    for group in groups():
        pairs += np.bincount(component[group.first_members], count_pairs(group.buckets), count)
    work = sizes * BYTE_SECONDS + pairs * pair_seconds
    limits = (np.inf, np.inf) if most_bytes is None else (most_bytes, MOST_CELL_SECONDS)
    is_cut = (sizes > limits[0]) | (work > limits[1])
    cost = np.where(is_cut, 0, work)
    wanted = max(cost.sum() / CELL_SECONDS, sizes[~is_cut].sum() / CELL_BYTES)
    cells = int(np.clip(np.ceil(wanted), 1, MOST_CELLS)) if count else 0
    assigned = _packed(cost, cells)
    grids: list[Grid] = []
    for number in np.flatnonzero(is_cut).tolist():
        members = ranks[of_rank == number]
        of_work = np.sqrt(2 * min(work[number] / limits[1], MOST_CELLS))
        intervals = max(2 * sizes[number] / limits[0], of_work)
        grids.append(_grid(members, set_bytes[members], cells + sum(grid.cells for grid in grids), intervals))
    total = cells + sum(grid.cells for grid in grids)
    assigned[is_cut] = total + np.arange(len(grids))
    cell_of = np.full(len(set_bytes), NO_CELL, dtype=np.uint32)
    cell_of[ranks] = assigned[of_rank]
    return CellPlan(total, cell_of, tuple(grids))


def plan_grid(ranks: NDArray[np.int64], set_bytes: NDArray[np.float64]) -> CellPlan:
    """Return cells in which every pair of documents meets, for a comparison of all with all.

    There are four intervals, so that cells run at the same time, unless a cell would be small, or larger than a task
    can hold. A set is sent to as many cells as there are intervals.

    Args:
        ranks: Ranks of the documents, ascending.
        set_bytes: Bytes of the set of each rank.
    """
    sizes = set_bytes[ranks]
    most_bytes = int(np.clip(sizes.sum() / 2, CELL_BYTES, MOST_CELL_BYTES))
    grid = _grid(ranks, sizes, 0, 2 * sizes.sum() / most_bytes) if len(ranks) else NO_GRID
    cell_of = np.full(len(set_bytes), NO_CELL, dtype=np.uint32)
    cell_of[ranks] = grid.cells
    return CellPlan(grid.cells, cell_of, (grid,))


def _components(groups: Callable[[], Iterator[BucketGroups]], documents: int) -> tuple[NDArray[np.uint32], int]:
    """Return the component of the bucket graph that each rank is in, ``NO_CELL`` for none, and their number."""
    parents = np.arange(documents, dtype=np.uint32)
    is_member = np.zeros(documents, dtype=bool)
    for group in groups():
        firsts = np.repeat(group.first_members, group.buckets[:, 0])
        later = firsts != group.members
        _kernel.join_pairs(firsts[later].astype(np.uint32), group.members[later].astype(np.uint32), parents)
        is_member[group.members] = True
    _kernel.flatten_components(parents)
    is_root = is_member & (parents == np.arange(documents, dtype=np.uint32))
    numbers = np.where(is_root, np.cumsum(is_root) - 1, 0).astype(np.uint32)
    return np.where(is_member, numbers[parents], np.uint32(NO_CELL)), int(np.count_nonzero(is_root))


def _packed(cost: NDArray[np.float64], cells: int) -> NDArray[np.int64]:
    """Return a cell for each component so that cells cost about the same: expensive components first, then the rest."""
    assigned = np.zeros(len(cost), dtype=np.int64)
    if cells <= 1:
        return assigned
    order = np.argsort(-cost, kind="stable")
    share = cost.sum() / cells
    large = order[: int(np.count_nonzero(cost > share / 16))]
    loads = [(0.0, cell) for cell in range(cells)]
    heapify(loads)
    for number in large.tolist():
        load, assigned[number] = loads[0]
        heapreplace(loads, (load + float(cost[number]), loads[0][1]))
    small = order[len(large) :]
    free = np.maximum(
        0.0, max(share, cost[small].sum() / cells) - np.array([load for load, _ in sorted(loads, key=_cell)])
    )
    ends = np.cumsum(free) * (cost[small].sum() / max(free.sum(), 1e-300))
    assigned[small] = np.minimum(np.searchsorted(ends, np.cumsum(cost[small]), side="left"), cells - 1)
    return assigned


def _cell(load: tuple[float, int]) -> int:
    return load[1]


def _grid(ranks: NDArray[np.int64], set_bytes: NDArray[np.float64], first_cell: int, least: float) -> Grid:
    """Return a grid of at least ``least`` intervals with about the same bytes of sets each."""
    ends = np.cumsum(set_bytes)
    intervals = int(np.ceil(least))
    bounds = ends[-1] * np.arange(1, intervals) / intervals
    return Grid(distinct(ranks[np.searchsorted(ends, bounds)]).astype(np.uint32), first_cell)
