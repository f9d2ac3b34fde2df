"""Passages: where the shingles of two texts stand in, what they have in common out, place by place.

A passage is a run of consecutive shingles that stands in both texts, and it goes on as far as the texts agree to both
sides. The heaviest chain of passages that come in the same order in both texts is the backbone; what is not part of it
has moved, or is told more often in one text than in the other. `shared_runs` finds the runs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.shared_runs import Runs, find_runs, number_shared
from minwise.stages.shingle import ShingleSpans

__all__ = ["Passage", "align_passages", "heaviest_chain", "passages_of"]

Places = NDArray[np.int64]
LOW = 2**32 - 1


class Passage(NamedTuple):
    """A passage that stands in both texts; places are code points, or bytes for ``byte`` shingles.

    Attributes:
        left_start: Where it starts in the left text.
        left_end: One past its last place there.
        right_start: Where it starts in the right text.
        right_end: One past its last place there.
        moved: Whether it is outside of the backbone: moved, or told again.
    """

    left_start: int
    left_end: int
    right_start: int
    right_end: int
    moved: bool


def align_passages(left: ShingleSpans, right: ShingleSpans) -> list[Passage]:
    """The passages that two texts share, by their place in the left text.

    Every shingle that both texts have is in a passage, wherever it stands in either text.

    >>> import minwise as mw
    >>> left, right = "one two three four", "three four and one two three"
    >>> spans = [mw.Shingler("word:2").spans(text) for text in (left, right)]
    >>> [(left[p.left_start:p.left_end], p.moved) for p in align_passages(*spans)]
    [('one two three', False), ('three four', True)]
    """
    return passages_of(left, right, *number_shared(left.hashes, right.hashes))


def passages_of(
    left: ShingleSpans, right: ShingleSpans, here: NDArray[np.int32], there: NDArray[np.int32]
) -> list[Passage]:
    """The shared passages of two texts whose shared shingles have been numbered."""
    runs = find_runs(here, there, here >= 0)
    backbone = heaviest_chain(runs.there, runs.there + runs.length, runs.length)
    again = find_runs(there, here, (there >= 0) & ~_covered(runs, len(there)))
    first = np.concatenate([runs.here - runs.back, again.there - again.back])
    twin = np.concatenate([runs.there - runs.back, again.here - again.back])
    length = np.concatenate([runs.length + runs.back, again.length + again.back])
    moved = np.concatenate([~backbone, np.ones(len(again.here), dtype=bool)])
    columns = (*_places(left, first, length), *_places(right, twin, length), moved)
    order = np.lexsort((columns[2], columns[0]))
    return list(map(Passage, *(column[order].tolist() for column in columns)))


def heaviest_chain(starts: Places, ends: Places, weights: Places) -> NDArray[np.bool_]:
    """Which intervals form the chain of most weight in which none starts before the one ahead of it has ended.

    The intervals are in the order that the chain has to keep. A tree over the ends knows the heaviest chain that ends
    up to any place (Fenwick, 1994), so that n intervals take n·log n steps.
    """
    if (starts[1:] >= ends[:-1]).all():
        return np.ones(len(starts), dtype=bool)
    places = np.sort(ends)
    ranks = (np.searchsorted(places, ends) + 1).tolist()
    allowed = np.searchsorted(places, starts, side="right").tolist()
    # A weight and the number of the interval that reached it are one integer, which is quicker than two.
    tree, before, heaviest = [0] * (len(places) + 1), [], 0
    for number, (rank, limit, weight) in enumerate(zip(ranks, allowed, weights.tolist(), strict=True), 1):
        best = 0
        while limit:
            if tree[limit] > best:
                best = tree[limit]
            limit &= limit - 1
        before.append((best & LOW) - 1)
        best = ((best >> 32) + weight << 32) | number
        heaviest = max(heaviest, best)
        while rank < len(tree):
            if tree[rank] < best:
                tree[rank] = best
            rank += rank & -rank
    return _traced(before, (heaviest & LOW) - 1)


def _traced(before: list[int], last: int) -> NDArray[np.bool_]:
    """The chain that ends with ``last``, as flags."""
    chain = np.zeros(len(before), dtype=bool)
    while last >= 0:
        chain[last] = True
        last = before[last]
    return chain


def _covered(runs: Runs, length: int) -> NDArray[np.bool_]:
    """Which shingles of the other text are in a run."""
    steps = np.bincount(runs.there - runs.back, minlength=length + 1)
    steps -= np.bincount(runs.there + runs.length, minlength=length + 1)
    covered: NDArray[np.bool_] = np.cumsum(steps)[:-1] > 0
    return covered


def _places(spans: ShingleSpans, first: Places, length: Places) -> tuple[Places, Places]:
    """Start and end of runs of shingles in the text."""
    return spans.starts[first].astype(np.int64), spans.ends[first + length - 1].astype(np.int64)
