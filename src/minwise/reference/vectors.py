"""Slots, keys and exact distances of vectors; specifies the vector hashes of the kernel (DESIGN, appendix, "Vectors").

All arithmetic is 64-bit floating point in the order written here, on 32-bit values and weights, so that the results of
the kernel are identical bit for bit.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.reference.banding import content_hash, slot_keys
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
    """Return the logarithm of 0 < x < 1, using only operations that every machine rounds equally.

    x = m·2ᵉ and ln m = 2·(z + z³/3 + z⁵/5 + …) with z = (m−1)/(m+1); the series is cut after 17 terms.

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
    """Return the direction of a line: normally distributed numbers by the polar method (Marsaglia & Bray, 1964)."""
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
    """Yield uniform numbers from −1 to 1."""
    while True:
        state = (state + GOLDEN) & WORD
        yield 2.0 * _unit(mix(state)) - 1.0


def _unit(word: int) -> float:
    return (word >> 11) / 2**53


def vector_slots(vector: ArrayLike, lines: int, width: float | None, seed: int = 1) -> list[int]:
    """Return the slot of a vector on each line.

    It is ⌊(w·x + u)/width⌋ + 2⁶³; without a width, 1 if w·x ≥ 0, else 0. The products are summed from the first value
    to the last.

    Args:
        vector: The vector, x.
        lines: Number of lines.
        width: Width of a slot; None for one bit per line.
        seed: Seed of the directions w and offsets u.
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
        position = (total + _unit(key(seed, Domain.OFFSET, line)) * width) / width
        cell = math.floor(min(max(position, -(2.0**63)), 2.0**63))
        slots.append(min(cell, 2**63 - 1) + 2**63)
    return slots


def vector_keys(vector: ArrayLike, hashes: int, tables: int, width: float | None, seed: int = 1) -> list[int]:
    """Return the key of each table; the slots of its lines form a band."""
    slots = [int(slot) for slot in vector_slots(vector, hashes * tables, width, seed)]
    return slot_keys(slots, tables, hashes, seed)


def vector_content(vector: ArrayLike, seed: int = 1) -> tuple[int, int]:
    """Return a 128-bit hash of a vector: the bits of its values in pairs, with −0 as 0."""
    bits = (np.asarray(vector, dtype=np.float32) + np.float32(0)).view(np.uint32).tolist()
    bits += [0] * (len(bits) % 2)
    return content_hash([low | high << 32 for low, high in zip(bits[::2], bits[1::2], strict=True)], seed)


def euclidean_distance(left: ArrayLike, right: ArrayLike) -> float:
    """Return the Euclidean distance.

    >>> euclidean_distance([0, 0], [3, 4])
    5.0
    """
    difference = _to_float64(left) - _to_float64(right)
    return math.sqrt(_sum(difference * difference))


def cosine_distance(left: ArrayLike, right: ArrayLike) -> float:
    """Return the cosine distance 1 − cos θ, from 0 to 2.

    >>> cosine_distance([1, 0], [0, 7]), cosine_distance([1, 1], [-2, -2])
    (1.0, 2.0)
    """
    x, y = _to_float64(left), _to_float64(right)
    cosine = _sum(x * y) / math.sqrt(_sum(x * x) * _sum(y * y))
    return min(2.0, max(0.0, 1.0 - cosine))


def _to_float64(vector: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(vector, dtype=np.float32).astype(np.float64)


def _sum(values: NDArray[np.float64]) -> float:
    """Add value i to lane i mod 8, then add the lanes in pairs."""
    lanes = [0.0] * LANES
    for index, value in enumerate(values.tolist()):
        lanes[index % LANES] += value
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
