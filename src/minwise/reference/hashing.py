"""64-bit hash of bytes and items; specifies the hash of the kernel (DESIGN, appendix, "Tools").

Each function exists twice: for Python integers, which is easy to read (`mix`, `fold`), and for NumPy arrays, which is
fast on many words (`mix_words`, `fold_words`). Tests prove that both are equal.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.errors import InputError

__all__ = [
    "Domain",
    "fold",
    "fold_words",
    "hash_bytes",
    "hash_item",
    "hash_items",
    "key",
    "mix",
    "mix_words",
    "multiply_words",
]

Words = NDArray[np.uint64]
Item = int | np.integer[Any] | str | bytes

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio: its multiples are evenly distributed over the words


class Domain(IntEnum):
    """Purpose of a key; different purposes of one seed have different keys."""

    TOKEN = 1
    INTEGER = 2
    STRING = 3
    BYTES = 4
    BINS = 5
    MINHASH = 6
    DENSIFICATION = 7
    BAND = 8
    CONTENT = 9
    LINE = 10
    OFFSET = 11


def mix(x: int) -> int:
    """Return x after a bijection in which every output bit depends on every input bit.

    It is the finaliser of splitmix64 (Steele, Lea & Flood, 2014, with the constants of Stafford's variant 13).
    """
    x &= WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def fold(a: int, b: int) -> int:
    """Return the high xor the low half of the 128-bit product a·b (folded multiplication of wyhash, Wang, 2019)."""
    product = (a & WORD) * (b & WORD)
    return (product >> 64) ^ (product & WORD)


@lru_cache(maxsize=4096)
def key(seed: int, domain: int, index: int) -> int:
    """Return the index-th key of a domain, mix(mix(seed + domain·G) + (index+1)·G)."""
    return mix(mix(seed + domain * GOLDEN) + (index + 1) * GOLDEN)


def hash_bytes(data: bytes, domain: int, seed: int = 1) -> int:
    """Return a 64-bit hash of bytes: 16-byte blocks are folded one after the other, then the length is added.

    The result is not mixed; callers apply `mix` afterwards.
    """
    lo_key, hi_key, length_key = (key(seed, domain, index) for index in range(3))
    padded = data.ljust(max(16, -(-len(data) // 16) * 16), b"\0")
    state = 0
    for start in range(0, len(padded), 16):
        lo = int.from_bytes(padded[start : start + 8], "little")
        hi = int.from_bytes(padded[start + 8 : start + 16], "little")
        state = fold(lo ^ lo_key ^ state, hi ^ hi_key)
    return (state + len(data) * length_key) & WORD


def hash_item(item: Item, seed: int = 1) -> int:
    """Return the element of a set for an item; 3, "3" and b"3" are three different elements.

    Integers are encoded in two's complement, little-endian, in the fewest groups of 8 bytes; strings in UTF-8.
    """
    if isinstance(item, (int, np.integer)):
        return mix(hash_bytes(_integer_bytes(int(item)), Domain.INTEGER, seed))
    if isinstance(item, str):
        return mix(hash_bytes(encode(item), Domain.STRING, seed))
    if isinstance(item, bytes):
        return mix(hash_bytes(item, Domain.BYTES, seed))
    raise InputError(f"a member of a set must be an integer, a string or bytes, got {type(item).__name__}")


def hash_items(items: Iterable[Item], seed: int = 1) -> Words:
    """Return the distinct elements of a set of items, ascending."""
    return np.unique(np.array([hash_item(item, seed) for item in items], dtype=np.uint64))


def encode(text: str) -> bytes:
    """Return a text in UTF-8; raises an InputError for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"a text must be valid Unicode, got a lone surrogate at character {error.start}") from None


def mix_words(words: Words) -> Words:
    """Return `mix` of every word of an array."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def fold_words(words: Words, factor: int) -> Words:
    """Return `fold` of every word of an array with one factor."""
    high, low = multiply_words(words, factor)
    return high ^ low


def multiply_words(words: Words, factor: int) -> tuple[Words, Words]:
    """Return the high and low halves of the 128-bit products of an array of words and one factor.

    NumPy has no 128-bit integers, so this is long multiplication with digits of 32 bits. ``middle`` cannot overflow:
    (2³²−1)² + 2·(2³²−1) = 2⁶⁴ − 1.
    """
    half, digit = np.uint64(32), np.uint64(0xFFFFFFFF)
    low_factor, high_factor = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
    low_words, high_words = words & digit, words >> half
    lowest = low_words * low_factor
    middle = high_words * low_factor + (lowest >> half)
    crossed = low_words * high_factor + (middle & digit)
    high = high_words * high_factor + (middle >> half) + (crossed >> half)
    return high, (crossed << half) | (lowest & digit)


def _integer_bytes(number: int) -> bytes:
    magnitude = number if number >= 0 else ~number
    groups = magnitude.bit_length() // 64 + 1  # one bit more than the magnitude, for the sign
    return number.to_bytes(8 * groups, "little", signed=True)
