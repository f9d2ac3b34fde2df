"""Shared runs: the shingles of two texts in, runs of them that stand in both out.

The search goes through one text once. At each shingle that is not in a run yet it tries a few places of the other text
with the same shingle, first those that follow the run before, and takes the one that goes on longest. The time grows
with the length of the texts, however often they repeat themselves: a text that says one thing a million times takes as
long as any other.
"""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.text.shingling import ShingleSpans

__all__ = ["Passage", "Runs", "align_passages", "find_runs", "heaviest_chain", "number_shared", "passages_of"]

Numbers = NDArray[np.int32]
Places = NDArray[np.int64]
# Places of the other text that are tried after the end of the last run, and half as many before it. After a hundred
# thousand runs, which only unrelated texts with short shingles have, the nearest must do.
TRIED, MANY_RUNS = 6, 100_000
# Shingles that are compared one by one before whole arrays are: most runs are short, and arrays take some µs a look.
STEPS, FIRST_CHUNK, LAST_CHUNK = 16, 64, 1 << 18
# Never equal to a shared shingle nor to each other: what only the left text has, and what only the right one.
ONLY_LEFT, ONLY_RIGHT = -1, -2


class Runs(NamedTuple):
    """Runs of equal shingles: the one at ``here + k`` of the text gone through is that at ``there + k`` of the other.

    Attributes:
        here: The first shingle of each that no run before it has.
        there: Its twin in the other text.
        length: How many are equal from there on.
        back: How many more are equal before, which are in a run already.
    """

    here: Places
    there: Places
    length: Places
    back: Places


def number_shared(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Both texts with a small number for each shared shingle, and -1 or -2 for those of one text only.

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
    # Equal ones are in the order of their places, so a shared shingle has a first in the left and a last in the right.
    is_shared = (order[firsts] < len(left)) & (order[lasts] >= len(left)) if len(both) else is_first
    number_of = np.where(is_shared, np.cumsum(is_shared) - 1, ONLY_LEFT).astype(np.int32)
    numbers = np.empty(len(both), dtype=np.int32)
    numbers[order] = np.repeat(number_of, lasts - firsts + 1)
    here, there = numbers[: len(left)], numbers[len(left) :]
    there[there < 0] = ONLY_RIGHT
    return here, there


def _ascending(values: NDArray[np.uint64]) -> Places:
    """``numpy.argsort``, stable and three times as fast: values are sorted with their place in the low bits."""
    bits = max(1, len(values) - 1).bit_length()
    mask = np.uint64((1 << bits) - 1)
    packed = (values & ~mask) | np.arange(len(values), dtype=np.uint64)
    packed.sort()
    order = (packed & mask).astype(np.int64)
    found = values[order]
    same = (packed[1:] ^ packed[:-1]) <= mask
    if (same & (found[1:] != found[:-1])).any():  # values that only differ in the bits that gave way to the place
        groups = np.cumsum(np.concatenate([[True], ~same]))
        mixed = np.isin(groups, groups[1:][same & (found[1:] != found[:-1])])
        order[mixed] = order[mixed][np.argsort(found[mixed], kind="stable")]
    return order


def find_runs(here: Numbers, there: Numbers, wanted: NDArray[np.bool_]) -> Runs:
    """Runs in the order of the text ``here``; every wanted shingle, which must be shared, is in one of them."""
    if not wanted.any():
        return Runs(*np.empty((4, 0), dtype=np.int64))
    search = _Search(here, there)
    end = len(here)
    following = np.where(wanted, np.arange(end), end)
    upcoming = _view(np.append(np.minimum.accumulate(following[::-1])[::-1], end))
    places: list[int] = []
    twins: list[int] = []
    lengths: list[int] = []
    place, cursor = upcoming[0], 0
    while place < end:
        twin, length = search.longest(place, cursor, TRIED if len(places) < MANY_RUNS else 1)
        places.append(place)
        twins.append(twin)
        lengths.append(length)
        cursor = twin + length
        place = upcoming[place + length]
    backs = list(map(search.back, places, twins))
    return Runs(*(np.array(column, dtype=np.int64) for column in (places, twins, lengths, backs)))


class _Search:
    """Finds the places of one text in another."""

    def __init__(self, here: Numbers, there: Numbers) -> None:
        # An end that is never equal, so that counting needs no other limit.
        self._arrays = np.append(here, np.int32(-3)), np.append(there, np.int32(-4))
        self._here, self._there = _view(self._arrays[0]), _view(self._arrays[1])
        self._end = len(there)
        shared = np.flatnonzero(there >= 0).astype(np.uint64)
        ordered = np.sort((there[there >= 0].astype(np.uint64) << np.uint64(32)) | shared)
        self._occurrences = _view((ordered & np.uint64(0xFFFF_FFFF)).astype(np.uint32))
        self._firsts = _view(np.append(0, np.cumsum(np.bincount(there[there >= 0]))))

    def longest(self, here: int, cursor: int, tried: int) -> tuple[int, int]:
        """Place and length of the longest run found; of equally long ones the nearest at or after ``cursor``."""
        number = self._here[here]
        first, end = self._firsts[number], self._firsts[number + 1]
        if end - first == 1:
            there = self._occurrences[first]
            return there, self._length(here, there)
        best = length = 0
        wanted = number
        for there in self._candidates(first, end, cursor, tried):
            # Only where the shingle after the best run so far agrees too can there be a longer one.
            if there < self._end - length and self._there[there + length] == wanted:
                longer = self._length(here, there)
                if longer > length:
                    best, length = there, longer
                    wanted = self._here[here + length]
        return best, length

    def _candidates(self, first: int, end: int, cursor: int, tried: int) -> list[int]:
        """The nearest occurrences of a shingle: first those at or after the cursor."""
        middle = bisect_left(self._occurrences, cursor, first, end)
        last = middle + tried
        after = self._occurrences[middle : last if last < end else end].tolist()
        return after + self._occurrences[max(first, middle - (tried + 1) // 2) : middle].tolist()[::-1]

    def _length(self, here: int, there: int) -> int:
        """How many shingles agree from two places on."""
        mine, other = self._here, self._there
        for length in range(STEPS):
            if mine[here + length] != other[there + length]:
                return length
        return STEPS + _agreeing(self._arrays[0][here + STEPS :], self._arrays[1][there + STEPS :])

    def back(self, here: int, there: int) -> int:
        """How many agree before two places."""
        most = min(here, there)
        mine, other = self._here, self._there
        for length in range(min(most, STEPS)):
            if mine[here - length - 1] != other[there - length - 1]:
                return length
        if most <= STEPS:
            return most
        before = self._arrays[0][: here - STEPS][::-1], self._arrays[1][: there - STEPS][::-1]
        return STEPS + _agreeing(*before)


def _view(numbers: NDArray[Any]) -> "memoryview[int]":
    """The same memory, which gives its entries one by one twice as fast as an array does."""
    return memoryview(numbers)  # type: ignore[arg-type]


def _agreeing(left: Numbers, right: Numbers) -> int:
    """How many leading entries agree, looked at in chunks that grow, so that a short answer is a quick one."""
    most, done, chunk = min(len(left), len(right)), 0, FIRST_CHUNK
    while done < most:
        upto = min(most, done + chunk)
        unequal = left[done:upto] != right[done:upto]
        first = int(unequal.argmax())
        if unequal[first]:
            return done + first
        done, chunk = upto, min(2 * chunk, LAST_CHUNK)
    return most


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
