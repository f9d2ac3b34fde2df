"""Shared passages of two texts: runs of equal shingles, and which of them keep their order.

The search makes one pass over a text. At each shingle that is in no run yet it tries a few positions of the other text
with the same shingle, those after the last run first, and chooses the longest run. The time is linear in the length of
the texts, also for repetitive ones: a text that repeats one sentence a million times takes as long as any other.
"""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.text.shingling import ShingleSpans

__all__ = ["Passage", "Runs", "align_passages", "find_runs", "heaviest_chain", "number_shared", "passages_from_numbers"]

Numbers = NDArray[np.int32]
Positions = NDArray[np.int64]
# Positions of the other text that are tried after the end of the last run, and half as many before it. After 100,000
# runs, which only unrelated texts with short shingles have, only the nearest is tried.
TRIED, MANY_RUNS = 6, 100_000
# Shingles that are compared one by one before arrays are: most runs are short, and an array operation takes some µs.
STEPS, FIRST_CHUNK, LAST_CHUNK = 16, 64, 1 << 18
# Numbers of shingles that only one text has; equal neither to a shared shingle nor to each other.
ONLY_LEFT, ONLY_RIGHT = -1, -2


class Runs(NamedTuple):
    """Runs of equal shingles: shingle ``start + k`` of a text equals shingle ``other_start + k`` of the other text.

    Attributes:
        start: First shingle of each run that is in no earlier run.
        other_start: Its position in the other text.
        length: Number of equal shingles from there.
        back: Number of equal shingles before it, which are in an earlier run.
    """

    start: Positions
    other_start: Positions
    length: Positions
    back: Positions


def number_shared(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Return both texts as numbers: a small number for each shared shingle, -1 or -2 for those of one text only.

    >>> [text.tolist() for text in number_shared(np.array([7, 5, 9], np.uint64), np.array([5, 5, 7, 1], np.uint64))]
    [[1, 0, -1], [0, 0, 1, -2]]
    """
    both = np.concatenate([left, right])
    order = _ascending(both)
    values = both[order]
    is_first = np.ones(len(both), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(both)) - 1
    # Equal hashes are in the order of their positions: a shared one starts in the left text and ends in the right one.
    is_shared = (order[firsts] < len(left)) & (order[lasts] >= len(left)) if len(both) else is_first
    number_of = np.where(is_shared, np.cumsum(is_shared) - 1, ONLY_LEFT).astype(np.int32)
    numbers = np.empty(len(both), dtype=np.int32)
    numbers[order] = np.repeat(number_of, lasts - firsts + 1)
    in_left, in_right = numbers[: len(left)], numbers[len(left) :]
    in_right[in_right < 0] = ONLY_RIGHT
    return in_left, in_right


def _ascending(values: NDArray[np.uint64]) -> Positions:
    """Return a stable ``numpy.argsort``, three times as fast: values are sorted with their position in the low bits."""
    bits = max(1, len(values) - 1).bit_length()
    mask = np.uint64((1 << bits) - 1)
    packed = (values & ~mask) | np.arange(len(values), dtype=np.uint64)
    packed.sort()
    order = (packed & mask).astype(np.int64)
    found = values[order]
    same = (packed[1:] ^ packed[:-1]) <= mask
    if (same & (found[1:] != found[:-1])).any():  # values that differ only in the bits that the position replaced
        groups = np.cumsum(np.concatenate([[True], ~same]))
        mixed = np.isin(groups, groups[1:][same & (found[1:] != found[:-1])])
        order[mixed] = order[mixed][np.argsort(found[mixed], kind="stable")]
    return order


def find_runs(text: Numbers, other: Numbers, wanted: NDArray[np.bool_]) -> Runs:
    """Return runs in the order of ``text`` that contain every wanted shingle.

    Args:
        text: The text to go through, from :func:`number_shared`.
        other: The other text.
        wanted: A flag per shingle of ``text``; those that are set must be shared.
    """
    if not wanted.any():
        return Runs(*np.empty((4, 0), dtype=np.int64))
    finder = _RunFinder(text, other)
    end = len(text)
    following = np.where(wanted, np.arange(end), end)
    upcoming = _view(np.append(np.minimum.accumulate(following[::-1])[::-1], end))
    starts: list[int] = []
    other_starts: list[int] = []
    lengths: list[int] = []
    position, cursor = upcoming[0], 0
    while position < end:
        found, length = finder.longest(position, cursor, TRIED if len(starts) < MANY_RUNS else 1)
        starts.append(position)
        other_starts.append(found)
        lengths.append(length)
        cursor = found + length
        position = upcoming[position + length]
    backs = list(map(finder.back, starts, other_starts))
    return Runs(*(np.array(column, dtype=np.int64) for column in (starts, other_starts, lengths, backs)))


class _RunFinder:
    """Finds the longest run at a position of a text in another text."""

    def __init__(self, text: Numbers, other: Numbers) -> None:
        # Sentinels that are never equal, so that counting needs no other limit.
        self._arrays = np.append(text, np.int32(-3)), np.append(other, np.int32(-4))
        self._text, self._other = _view(self._arrays[0]), _view(self._arrays[1])
        self._end = len(other)
        shared = np.flatnonzero(other >= 0).astype(np.uint64)
        ordered = np.sort((other[other >= 0].astype(np.uint64) << np.uint64(32)) | shared)
        self._occurrences = _view((ordered & np.uint64(0xFFFF_FFFF)).astype(np.uint32))
        self._firsts = _view(np.append(0, np.cumsum(np.bincount(other[other >= 0]))))

    def longest(self, start: int, cursor: int, tried: int) -> tuple[int, int]:
        """Return start and length of the longest run found; of equally long ones the nearest at or after ``cursor``."""
        number = self._text[start]
        first, end = self._firsts[number], self._firsts[number + 1]
        if end - first == 1:
            only = self._occurrences[first]
            return only, self._length(start, only)
        best = length = 0
        wanted = number
        for candidate in self._candidates(first, end, cursor, tried):
            # A run can only be longer if the shingle after the best run so far agrees too.
            if candidate < self._end - length and self._other[candidate + length] == wanted:
                longer = self._length(start, candidate)
                if longer > length:
                    best, length = candidate, longer
                    wanted = self._text[start + length]
        return best, length

    def _candidates(self, first: int, end: int, cursor: int, tried: int) -> list[int]:
        """Return the nearest occurrences of a shingle, those at or after the cursor first."""
        middle = bisect_left(self._occurrences, cursor, first, end)
        last = middle + tried
        after = self._occurrences[middle : last if last < end else end].tolist()
        return after + self._occurrences[max(first, middle - (tried + 1) // 2) : middle].tolist()[::-1]

    def _length(self, start: int, other_start: int) -> int:
        """Return the number of equal shingles from two positions."""
        text, other = self._text, self._other
        for length in range(STEPS):
            if text[start + length] != other[other_start + length]:
                return length
        return STEPS + _common_prefix(self._arrays[0][start + STEPS :], self._arrays[1][other_start + STEPS :])

    def back(self, start: int, other_start: int) -> int:
        """Return the number of equal shingles before two positions."""
        most = min(start, other_start)
        text, other = self._text, self._other
        for length in range(min(most, STEPS)):
            if text[start - length - 1] != other[other_start - length - 1]:
                return length
        if most <= STEPS:
            return most
        before = self._arrays[0][: start - STEPS][::-1], self._arrays[1][: other_start - STEPS][::-1]
        return STEPS + _common_prefix(*before)


def _view(numbers: NDArray[Any]) -> "memoryview[int]":
    """Return a view of the same memory, whose single entries are read twice as fast as those of an array."""
    return memoryview(numbers)  # type: ignore[arg-type]


def _common_prefix(left: Numbers, right: Numbers) -> int:
    """Return the number of equal leading entries; chunks grow, so that a short prefix is found quickly."""
    most, done, chunk = min(len(left), len(right)), 0, FIRST_CHUNK
    while done < most:
        upto = min(most, done + chunk)
        unequal = left[done:upto] != right[done:upto]
        first = int(unequal.argmax())
        if unequal[first]:
            return done + first
        done, chunk = upto, min(2 * chunk, LAST_CHUNK)
    return most


# The low half of an entry of the tree in heaviest_chain.
LOW = 2**32 - 1


class Passage(NamedTuple):
    """A passage that both texts have. Positions are code points, or bytes for ``byte`` shingles.

    Attributes:
        left_start: Start in the left text.
        left_end: End in the left text, exclusive.
        right_start: Start in the right text.
        right_end: End in the right text, exclusive.
        moved: Whether it is not in the backbone, the heaviest chain of passages in the same order in both texts: its
            position differs, or it is repeated.
    """

    left_start: int
    left_end: int
    right_start: int
    right_end: int
    moved: bool


def align_passages(left: ShingleSpans, right: ShingleSpans) -> list[Passage]:
    """Return the shared passages of two texts, ordered by their start in the left text.

    Every occurrence of a shingle that both texts have is in a passage.

    >>> import minwise as mw
    >>> left, right = "one two three four", "three four and one two three"
    >>> spans = [mw.Shingler("word:2").spans(text) for text in (left, right)]
    >>> [(left[p.left_start:p.left_end], p.moved) for p in align_passages(*spans)]
    [('one two three', False), ('three four', True)]
    """
    return passages_from_numbers(left, right, *number_shared(left.hashes, right.hashes))


def passages_from_numbers(
    left: ShingleSpans, right: ShingleSpans, left_numbers: Numbers, right_numbers: Numbers
) -> list[Passage]:
    """Return the shared passages of two texts.

    Args:
        left: Shingles of the left text.
        right: Shingles of the right text.
        left_numbers: The left text, from :func:`number_shared`.
        right_numbers: The right text, likewise.
    """
    runs = find_runs(left_numbers, right_numbers, left_numbers >= 0)
    backbone = heaviest_chain(runs.other_start, runs.other_start + runs.length, runs.length)
    uncovered = (right_numbers >= 0) & ~_covered(runs, len(right_numbers))
    repeated = find_runs(right_numbers, left_numbers, uncovered)
    left_first = np.concatenate([runs.start - runs.back, repeated.other_start - repeated.back])
    right_first = np.concatenate([runs.other_start - runs.back, repeated.start - repeated.back])
    length = np.concatenate([runs.length + runs.back, repeated.length + repeated.back])
    moved = np.concatenate([~backbone, np.ones(len(repeated.start), dtype=bool)])
    columns = (*_text_ranges(left, left_first, length), *_text_ranges(right, right_first, length), moved)
    order = np.lexsort((columns[2], columns[0]))
    return list(map(Passage, *(column[order].tolist() for column in columns)))


def heaviest_chain(starts: Positions, ends: Positions, weights: Positions) -> NDArray[np.bool_]:
    """Return flags for the chain of intervals with the highest total weight.

    In a chain no interval starts before the previous one ends. The intervals are given in the order that the chain has
    to keep. A Fenwick tree (1994) over the ends holds the heaviest chain up to any position, so that n intervals take
    O(n·log n) steps.
    """
    if (starts[1:] >= ends[:-1]).all():
        return np.ones(len(starts), dtype=bool)
    sorted_ends = np.sort(ends)
    nodes = (np.searchsorted(sorted_ends, ends) + 1).tolist()
    allowed = np.searchsorted(sorted_ends, starts, side="right").tolist()
    # A weight and the number of the interval that reached it share one integer, which is faster than two.
    tree, before, heaviest = [0] * (len(sorted_ends) + 1), [], 0
    for number, (node, limit, weight) in enumerate(zip(nodes, allowed, weights.tolist(), strict=True), 1):
        best = 0
        while limit:
            if tree[limit] > best:
                best = tree[limit]
            limit &= limit - 1
        before.append((best & LOW) - 1)
        best = ((best >> 32) + weight << 32) | number
        heaviest = max(heaviest, best)
        while node < len(tree):
            if tree[node] < best:
                tree[node] = best
            node += node & -node
    return _chain_flags(before, (heaviest & LOW) - 1)


def _chain_flags(before: list[int], last: int) -> NDArray[np.bool_]:
    """Return the chain that ends with ``last``, as flags."""
    chain = np.zeros(len(before), dtype=bool)
    while last >= 0:
        chain[last] = True
        last = before[last]
    return chain


def _covered(runs: Runs, length: int) -> NDArray[np.bool_]:
    """Return flags for the shingles of the other text that are in a run."""
    steps = np.bincount(runs.other_start - runs.back, minlength=length + 1)
    steps -= np.bincount(runs.other_start + runs.length, minlength=length + 1)
    covered: NDArray[np.bool_] = np.cumsum(steps)[:-1] > 0
    return covered


def _text_ranges(spans: ShingleSpans, first: Positions, length: Positions) -> tuple[Positions, Positions]:
    """Return start and end of runs of shingles in the text."""
    return spans.starts[first].astype(np.int64), spans.ends[first + length - 1].astype(np.int64)
