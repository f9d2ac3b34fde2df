"""Vectors: vectors in, their slots on random lines, keys and exact distances out. The readable twin of the kernel.

Everything is arithmetic of 64-bit floating point in the order that is written here, on values and weights of 32 bits;
so the kernel has the same bits (DESIGN, section 3, "Vectors").
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.reference.banding import band_keys, content_hash
from minwise.reference.hashing import GOLDEN, WORD, Domain, key, mix

__all__ = [
    "cosine_distance",
    "euclidean_distance",
    "line_weights",
    "natural_log",
    "vector_content",
    "vector_keys",
    "vector_slots",
]

LANES = 8
Values = NDArray[np.float32]


def natural_log(x: float) -> float:
    """The logarithm of 0 < x < 1 in operations that every machine rounds alike.

    x = m·2ᵉ and ln m = 2·(z + z³/3 + z⁵/5 + …) with z = (m−1)/(m+1), of which 17 terms are taken.

    >>> abs(natural_log(0.3) - math.log(0.3)) < 1e-15
    True
    """
    m, exponent = math.frexp(x)
    z = (m - 1.0) / (m + 1.0)
    square, total = z * z, 0.0
    for term in reversed(range(17)):
        total = total * square + 1.0 / (2 * term + 1)
    return exponent * math.log(2.0) + 2.0 * z * total


def line_weights(dims: int, line: int, seed: int = 1) -> Values:
    """The direction of a line: numbers of a normal distribution by the polar method (Marsaglia & Bray, 1964)."""
    weights: list[float] = []
    numbers = _uniform(key(seed, Domain.LINE, line))
    while len(weights) < dims:
        x, y = next(numbers), next(numbers)
        square = x * x + y * y
        if 0.0 < square < 1.0:
            factor = math.sqrt(-2.0 * natural_log(square) / square)
            weights += [x * factor, y * factor]
    return np.array(weights[:dims], dtype=np.float32)


def _uniform(state: int) -> Iterator[float]:
    """Numbers from −1 to 1."""
    while True:
        state = (state + GOLDEN) & WORD
        yield 2.0 * _unit(mix(state)) - 1.0


def _unit(word: int) -> float:
    return (word >> 11) / 2**53


def vector_slots(vector: ArrayLike, lines: int, width: float | None, seed: int = 1) -> list[int]:
    """The slot of a vector on each line: ⌊(w·x + u)/width⌋ + 2⁶³; without a width, 1 on the side that w points to.

    The products are added up value by value, from the first to the last.
    """
    values = np.asarray(vector, dtype=np.float32)
    slots = []
    for line in range(lines):
        total = 0.0
        for value, weight in zip(values.tolist(), line_weights(len(values), line, seed).tolist(), strict=True):
            total += value * weight
        if width is None:
            slots.append(int(total >= 0.0))
            continue
        place = (total + _unit(key(seed, Domain.OFFSET, line)) * width) / width
        whole = math.floor(min(max(place, -(2.0**63)), 2.0**63))
        slots.append(min(whole, 2**63 - 1) + 2**63)
    return slots


def vector_keys(vector: ArrayLike, hashes: int, tables: int, width: float | None, seed: int = 1) -> list[int]:
    """The key of each table: its lines' slots are a band."""
    return band_keys(vector_slots(vector, hashes * tables, width, seed), tables, hashes, seed)


def vector_content(vector: ArrayLike, seed: int = 1) -> tuple[int, int]:
    """128 bits that stand for a vector: its values' bits two by two, −0 as 0."""
    bits = (np.asarray(vector, dtype=np.float32) + np.float32(0)).view(np.uint32).tolist()
    bits += [0] * (len(bits) % 2)
    return content_hash([low | high << 32 for low, high in zip(bits[::2], bits[1::2], strict=True)], seed)


def euclidean_distance(left: ArrayLike, right: ArrayLike) -> float:
    """The length of the difference.

    >>> euclidean_distance([0, 0], [3, 4])
    5.0
    """
    apart = _wide(left) - _wide(right)
    return math.sqrt(_sum(apart * apart))


def cosine_distance(left: ArrayLike, right: ArrayLike) -> float:
    """1 − cos θ, from 0 to 2.

    >>> cosine_distance([1, 0], [0, 7]), cosine_distance([1, 1], [-2, -2])
    (1.0, 2.0)
    """
    one, other = _wide(left), _wide(right)
    cosine = _sum(one * other) / math.sqrt(_sum(one * one) * _sum(other * other))
    return min(2.0, max(0.0, 1.0 - cosine))


def _wide(vector: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(vector, dtype=np.float32).astype(np.float64)


def _sum(values: NDArray[np.float64]) -> float:
    """Value i is added to lane i mod 8, then the lanes are added two by two."""
    lanes = [0.0] * LANES
    for place, value in enumerate(values.tolist()):
        lanes[place % LANES] += value
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
