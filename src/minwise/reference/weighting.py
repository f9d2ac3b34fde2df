"""Weighted similarity and its sketch; specifies the weights of the kernel (DESIGN, appendix, "Weights").

The naive weight of an element needs the number of documents that have it. The kernel counts in a hash table, where
elements of one slot are counted together, so `table_counts` does the same.

If sets have weights of their own, a set is a mapping from elements to weights, whole numbers of 2⁻²² that
`held_weight` makes.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from minwise.reference.hashing import GOLDEN, WORD, Domain, Words, key, mix
from minwise.reference.vectors import natural_log

__all__ = [
    "held_sketch",
    "held_weight",
    "min_max_similarity",
    "rarity_weight",
    "table_counts",
    "table_slot",
    "weighted_similarity",
    "weighted_sketch",
]

# The weight 1, and the smallest weight. Weights are whole numbers of 2⁻²⁰, so sums are exact.
ONE = 1 << 20
SMALLEST = ONE // 64
# Slots from which four terms of a series replace the logarithm.
SERIES_SLOTS = 64
ONLY_ROUND = 1e300
# The weight 1 of an element of a set with weights of its own, and the end of the first interval of such weights.
HELD_ONE = 1 << 22
FIRST_INTERVAL = HELD_ONE >> 8

Element = TypeVar("Element")
Weights = Callable[[int], int]


def rarity_weight(count: int, documents: int) -> int:
    """Return ln(N / f) / ln N in 2⁻²⁰, at least 2⁻⁶, of an element that f of N documents have.

    >>> [rarity_weight(count, 100) / ONE for count in (1, 10, 100)]
    [1.0, 0.5, 0.015625]
    """
    if count <= 1 or documents <= 1:
        return ONE
    if count >= documents:
        return SMALLEST
    share = natural_log(count / documents) / natural_log(1 / documents)
    return min(ONE, max(SMALLEST, math.floor(share * ONE + 0.5)))


def table_slot(element: int, bits: int) -> int:
    """Return the slot of an element in a table of 2 to the power of ``bits``."""
    return ((element * GOLDEN) & WORD) >> (64 - bits)


def table_counts(sets: Iterable[Collection[int]], bits: int) -> NDArray[np.uint32]:
    """Return how many sets have an element of each slot; a set with several elements of a slot counts several times."""
    counts = np.zeros(1 << bits, dtype=np.uint32)
    for elements in sets:
        for element in set(elements):
            counts[table_slot(element, bits)] += 1
    return counts


def weighted_similarity(
    left: Collection[Element], right: Collection[Element], weight: Callable[[Element], int] = lambda _: 1
) -> float:
    """Return the weight of the common elements divided by the weight of all; 0 if there are no common ones.

    >>> weighted_similarity({1, 2}, {2, 3})
    0.3333333333333333
    >>> weighted_similarity({1, 2}, {2, 3}, lambda element: 3 if element == 2 else 1)
    0.6
    """
    shared = sum(map(weight, set(left) & set(right)))
    return shared / sum(map(weight, set(left) | set(right))) if shared else 0.0


def weighted_sketch(elements: Collection[int], weight: Weights, slots: int, seed: int = 1) -> Words:
    """Return the earliest time in each slot, as the bits of a floating-point number; all ones for an empty set.

    Every element arrives in one bin per round, t rounds long, and then once in every bin. The time until it arrives in
    a bin is exponentially distributed, with its weight as the rate.
    """
    sketch = np.full(slots, WORD, dtype=np.uint64)
    for element in set(elements):
        pace = ONE / weight(element)
        sketch = np.minimum(sketch, (_arrivals(element, slots, seed) * pace).view(np.uint64))
    return sketch


def held_weight(weight: float) -> int:
    """Return a weight in 2⁻²², with its 20 leading bits.

    >>> [held_weight(weight) / HELD_ONE for weight in (0.5, 3, 0.1)]
    [0.5, 3.0, 0.09999990463256836]
    """
    units = round(weight * HELD_ONE)
    shift = max(0, units.bit_length() - 20)
    return round(units / (1 << shift)) << shift


def min_max_similarity(left: Mapping[Element, int], right: Mapping[Element, int]) -> float:
    """Return the sum of the smaller weights divided by that of the larger ones; 0 if no element is common.

    >>> min_max_similarity({"tea": 2, "milk": 1}, {"tea": 1, "milk": 1})
    0.6666666666666666
    """
    elements = left.keys() | right.keys()
    smaller = sum(min(left.get(element, 0), right.get(element, 0)) for element in elements)
    return smaller / sum(max(left.get(element, 0), right.get(element, 0)) for element in elements) if smaller else 0.0


def held_sketch(weights: Mapping[int, int], slots: int, seed: int = 1) -> Words:
    """Return the earliest time in each slot of a set with weights of its own, as the bits of a floating-point number.

    Every interval of the weights of an element is an element whose weight is its length. Of the last one a set has a
    share: only arrivals at a random height below it count.
    """
    sketch = np.full(slots, WORD, dtype=np.uint64)
    for element, length, share in (piece for item in weights.items() for piece in _intervals(*item)):
        times = _arrivals(element, slots, seed, share) * (HELD_ONE / length)
        sketch = np.minimum(sketch, times.view(np.uint64))
    return sketch


def _intervals(element: int, weight: int) -> Iterator[tuple[int, int, float]]:
    """Yield the element, the length and the filled share of each interval below a weight."""
    number, start, end = 0, 0, FIRST_INTERVAL
    while start < weight:
        yield mix((element + number * GOLDEN) & WORD), end - start, min(1.0, (weight - start) / (end - start))
        number, start, end = number + 1, end, 2 * end


def _in_share(time: float, share: float, end: float, state: int) -> float:
    """Return the first time of an arrival at a height below a share, from a first arrival on; infinity from an end on.

    The height of an arrival is uniform below that of the one before it, and so is the rate of the next one.
    """
    if share >= 1:
        return time
    height = 1.0
    while time < end:
        state = mix((state + GOLDEN) & WORD)
        height *= (state >> 11) / 2**53
        if height < share:
            return time
        state = mix((state + GOLDEN) & WORD)
        time += _elapsed((state >> 11) / 2**53) / height
    return math.inf


def _arrivals(element: int, slots: int, seed: int, share: float = 1.0) -> NDArray[np.float64]:
    """Return the time at which an element of weight 1, or a share of it, first arrives in each bin."""
    times = np.full(slots, np.inf)
    duration = ONLY_ROUND if slots == 1 else -natural_log(1 - 1 / slots)
    for number in range(2 * slots):
        hashed = _round_hash(element, seed, number)
        product = hashed * slots
        bin_of, offset = product >> 64, (product & WORD) >> 16
        if number < slots:
            time = number * duration + _in_share(_time(offset, slots), share, duration, hashed)
        else:
            first = _in_share(_elapsed((hashed >> 16) / 2**48), share, math.inf, hashed)
            bin_of, time = number - slots, slots * duration + first
        times[bin_of] = min(times[bin_of], time)
    return times


def _time(offset: int, slots: int) -> float:
    """Return −ln(1 − x) for x = offset/t, from 64 slots on by a series of four terms."""
    x = offset * (1 / slots / 2**48)
    if slots < SERIES_SLOTS:
        return _elapsed(x)
    return x * (1 + x * (1 / 2 + x * (1 / 3 + x * 0.25)))


def _elapsed(x: float) -> float:
    """Return −ln(1 − x), at least 0."""
    return max(0.0, -natural_log(1 - x))


def _round_hash(element: int, seed: int, number: int) -> int:
    mask, factor = key(seed, Domain.BINS, 2 * number), key(seed, Domain.BINS, 2 * number + 1) | 1
    high, low = divmod((element ^ mask) * factor, 2**64)
    return high ^ low
