"""Sketch: elements in, the slots of a signature out (DESIGN, section 3, "Elements → slots").

Three schemes. `one_permutation_sketch` hashes each element once and may leave slots empty; `fast_sketch` goes on
until none is; `minhash_sketch` is the classic, one function per slot.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.reference.hashing import GOLDEN, WORD, Domain, Words, fold_words, key, mix, multiply_words

__all__ = [
    "EMPTY",
    "EMPTY_32",
    "count_jointly_empty",
    "count_matches",
    "densify_optimal",
    "densify_rotation",
    "fast_sketch",
    "merge",
    "minhash_sketch",
    "one_permutation_sketch",
    "pack_bits",
    "unpack_bits",
]

EMPTY = 2**64 - 1
EMPTY_32 = 2**32 - 1  # of the 32-bit slots of `minhash_sketch`
MOST_SLOTS = 16_384  # the 2t rounds of `fast_sketch` then fit into the 16 bits above a 48-bit value


def one_permutation_sketch(elements: Iterable[int], bins: int, seed: int = 1, densify: str | None = None) -> Words:
    """The least position in each of t bins, `EMPTY` where nothing fell: one permutation hashing (Li et al., 2012).

    Args:
        elements: The set, as 64-bit words.
        bins: Number of bins, t.
        seed: Seed of the hash.
        densify: How empty bins are filled: not at all, by ``rotation`` or by ``optimal``.
    """
    _check_slots("bins", bins)
    if densify not in (None, "rotation", "optimal"):
        raise ConfigError(f"densify must be rotation, optimal or None, got {densify!r}")
    bin_of, rest, _ = _throw(_as_words(elements), bins, seed, 0)
    slots = np.full(bins, EMPTY, dtype=np.uint64)
    np.minimum.at(slots, bin_of, rest >> np.uint64(16))
    if densify is None:
        return slots
    return densify_rotation(slots) if densify == "rotation" else densify_optimal(slots, seed)


def densify_rotation(slots: Words) -> Words:
    """Empty bins filled from the right: the next non-empty value, d bins away, plus d·G (Shrivastava & Li, 2014)."""
    filled, bins, source = slots.copy(), len(slots), 0
    if np.all(slots == EMPTY):
        return filled
    for place in reversed(range(2 * bins)):  # from the right, and twice, so that the first round knows what lies ahead
        if slots[place % bins] != EMPTY:
            source = place
        elif place < bins:
            distance = source - place
            filled[place] = min((int(slots[source % bins]) + distance * GOLDEN) & WORD, EMPTY - 1)
    return filled


def densify_optimal(slots: Words, seed: int = 1) -> Words:
    """Empty bins filled from a bin drawn by hashing, again and again until it is not empty (Shrivastava, 2017)."""
    bins, start = len(slots), key(seed, Domain.DENSIFICATION, 0)
    filled = slots.copy()
    if np.all(slots == EMPTY):
        return filled
    for empty in np.flatnonzero(slots == EMPTY).tolist():
        attempt, source = 0, empty
        while slots[source] == EMPTY:
            attempt += 1
            source = (mix(start + (attempt * bins + empty) * GOLDEN) * bins) >> 64
        filled[empty] = slots[source]
    return filled


def fast_sketch(elements: Iterable[int], slots: int, seed: int = 1) -> Words:
    """Fast similarity sketching: each slot the least (round, position) it saw (Dahlgaard, Knudsen & Thorup, 2017).

    Rounds 0 … t−1 throw every element into a bin, each by another hash; round t+j throws all of them into bin j. The
    first round after which no bin is empty is the last. Two sets agree in a slot with probability exactly R.
    """
    _check_slots("slots", slots)
    words = _as_words(elements)
    sketch = np.full(slots, EMPTY, dtype=np.uint64)
    for number in range(2 * slots if len(words) else 0):
        bin_of, rest, hashes = _throw(words, slots, seed, number)
        if number >= slots:
            bin_of, rest = np.full(len(words), number - slots), hashes
        np.minimum.at(sketch, bin_of, np.uint64(number << 48) + (rest >> np.uint64(16)))
        if not np.any(sketch == EMPTY):
            break
    return sketch


def minhash_sketch(elements: Iterable[int], slots: int, seed: int = 1) -> NDArray[np.uint32]:
    """The least value of each of k hash functions, in 32 bits (Broder, 1997)."""
    _check_slots("slots", slots)
    words = _as_words(elements)
    low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
    sketch = np.full(slots, EMPTY_32, dtype=np.uint32)
    for i in range(slots if len(words) else 0):
        sketch[i] = min(int(_minhash_values(low, high, key(seed, Domain.MINHASH, i)).min()), EMPTY_32 - 1)
    return sketch


def merge(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """The slotwise minimum: the sketch of the union, for `minhash_sketch`, `fast_sketch` and undensified bins."""
    least: NDArray[np.unsignedinteger] = np.minimum(left, right)
    return least


def count_matches(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> int:
    """N_mat: slots that agree, not counting those empty on both sides."""
    return int(np.count_nonzero((left == right) & ~_is_empty(left)))


def count_jointly_empty(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> int:
    """N_emp: slots empty on both sides. One permutation hashing estimates R by N_mat/(t − N_emp)."""
    return int(np.count_nonzero(_is_empty(left) & _is_empty(right)))


def pack_bits(slots: NDArray[np.unsignedinteger], bits: int) -> NDArray[np.uint8]:
    """The low b bits of each slot of each row: slot s in bits s·b … s·b + b − 1, bit 0 the lowest of byte 0.

    Args:
        slots: Signatures, one row each.
        bits: Bits kept per slot, b. An empty document packs to ones; that it is empty must be kept beside.

    >>> pack_bits(np.array([[1, 2, 3, 0, 1]], dtype=np.uint64), bits=2)
    array([[57,  1]], dtype=uint8)
    """
    _check_bits(bits)
    shifts = np.arange(bits, dtype=slots.dtype)
    digits = (slots[:, :, np.newaxis] >> shifts) & slots.dtype.type(1)
    return np.packbits(digits.astype(np.uint8).reshape(len(slots), slots.shape[1] * bits), axis=1, bitorder="little")


def unpack_bits(packed: NDArray[np.uint8], bits: int, slots: int) -> Words:
    """The b-bit values that `pack_bits` packed."""
    _check_bits(bits)
    digits = np.unpackbits(packed, axis=1, count=slots * bits, bitorder="little").astype(np.uint64)
    weights = np.uint64(1) << np.arange(bits, dtype=np.uint64)
    values: Words = (digits.reshape(len(packed), slots, bits) * weights).sum(axis=2, dtype=np.uint64)
    return values


def _throw(words: Words, bins: int, seed: int, number: int) -> tuple[NDArray[np.intp], Words, Words]:
    """Bin, position inside the bin, and hash of every element in a round."""
    before, factor = key(seed, Domain.BINS, 2 * number), key(seed, Domain.BINS, 2 * number + 1) | 1
    hashes = fold_words(words ^ np.uint64(before), factor)
    bin_of, rest = multiply_words(hashes, bins)
    return bin_of.astype(np.intp), rest, hashes


def _minhash_values(low: NDArray[np.uint32], high: NDArray[np.uint32], function: int) -> NDArray[np.uint32]:
    before, factor = np.uint32(function & 0xFFFFFFFF), np.uint32(function >> 32 | 1)
    values = (low ^ before) * np.uint32(0x7FEB352D)
    values ^= values >> np.uint32(15)
    values = (values ^ high) * factor
    return values ^ (values >> np.uint32(16))


def _as_words(elements: Iterable[int]) -> Words:
    if isinstance(elements, np.ndarray):
        return elements.astype(np.uint64)
    return np.array(list(elements), dtype=np.uint64)


def _is_empty(slots: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    empty: NDArray[np.bool_] = slots == np.iinfo(slots.dtype).max
    return empty


def _check_slots(name: str, value: int) -> None:
    if not 1 <= value <= MOST_SLOTS:
        raise ConfigError(f"{name} must be between 1 and {MOST_SLOTS}, got {value}")


def _check_bits(bits: int) -> None:
    if bits not in (1, 2, 4, 8, 16, 32):
        raise ConfigError(f"bits must be 1, 2, 4, 8, 16 or 32, got {bits}")
