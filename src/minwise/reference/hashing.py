"""Hashing: bytes and items in, 64-bit words out. The readable twin of the kernel's hash (DESIGN, section 3, "Tools").

Each tool comes twice: on Python integers, to be read (`mix`, `fold`), and on NumPy arrays, to be used on many words
at once (`mix_words`, `fold_words`). The tests hold the two equal.
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
GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio: its multiples spread evenly over the words


class Domain(IntEnum):
    """What a key is for, so that no two uses of one seed share a key."""

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
    """The word x stirred: a bijection of which every output bit depends on every input bit.

    It is the finaliser of splitmix64 (Steele, Lea & Flood, 2014, with the constants of Stafford's variant 13).
    """
    x &= WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def fold(a: int, b: int) -> int:
    """High xor low half of the 128-bit product a·b (the folded multiplication of wyhash, Wang, 2019)."""
    product = (a & WORD) * (b & WORD)
    return (product >> 64) ^ (product & WORD)


@lru_cache(maxsize=4096)
def key(seed: int, domain: int, index: int) -> int:
    """The index-th key of a domain, mix(mix(seed + domain·G) + (index+1)·G)."""
    return mix(mix(seed + domain * GOLDEN) + (index + 1) * GOLDEN)


def hash_bytes(data: bytes, domain: int, seed: int = 1) -> int:
    """The 64-bit hash of some bytes: 16-byte blocks folded one after the other, then the length added.

    Not stirred: whoever uses it calls `mix` afterwards.
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
    """The element that a member of a set becomes; 3, "3" and b"3" become three different ones.

    Integers are written in two's complement, little-endian, in the fewest groups of 8 bytes; strings in UTF-8.
    """
    if isinstance(item, (int, np.integer)):
        return mix(hash_bytes(_integer_bytes(int(item)), Domain.INTEGER, seed))
    if isinstance(item, str):
        return mix(hash_bytes(encode(item), Domain.STRING, seed))
    if isinstance(item, bytes):
        return mix(hash_bytes(item, Domain.BYTES, seed))
    raise InputError(f"a member of a set must be an integer, a string or bytes, got {type(item).__name__}")


def hash_items(items: Iterable[Item], seed: int = 1) -> Words:
    """The distinct elements of a set of items, ascending."""
    return np.unique(np.array([hash_item(item, seed) for item in items], dtype=np.uint64))


def encode(text: str) -> bytes:
    """UTF-8 of a text; a lone surrogate has none and is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"a text must be valid Unicode, got a lone surrogate at character {error.start}") from None


def mix_words(words: Words) -> Words:
    """`mix` of every word of an array."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def fold_words(words: Words, factor: int) -> Words:
    """`fold` of every word of an array with one factor."""
    high, low = multiply_words(words, factor)
    return high ^ low


def multiply_words(words: Words, factor: int) -> tuple[Words, Words]:
    """High and low halves of the 128-bit products of an array of words and one factor.

    NumPy has no 128-bit integers, so it is long multiplication with digits of 32 bits. ``middle`` can not overflow:
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
    groups = magnitude.bit_length() // 64 + 1  # one bit more than the magnitude has, for the sign
    return number.to_bytes(8 * groups, "little", signed=True)
