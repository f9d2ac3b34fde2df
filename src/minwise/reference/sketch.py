"""Signatures of sets; specifies the sketches of the kernel (DESIGN, appendix, "Elements → slots").

There are three schemes. `one_permutation_sketch` hashes each element once and may leave slots empty; `fast_sketch`
repeats this until no slot is empty; `minhash_sketch` uses one hash function per slot.
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
    "signature_bytes",
    "unpack_bits",
]

EMPTY = 2**64 - 1
EMPTY_32 = 2**32 - 1  # empty slot of `minhash_sketch`, whose slots have 32 bits
MAX_SLOTS = 16_384  # the number of each of the 2t rounds of `fast_sketch` fits into 16 bits above a 48-bit value


def one_permutation_sketch(elements: Iterable[int], bins: int, seed: int = 1, densify: str | None = None) -> Words:
    """Return the smallest position in each of t bins, `EMPTY` for an empty bin.

    This is one permutation hashing (Li et al., 2012).

    Args:
        elements: The set, as 64-bit words.
        bins: Number of bins, t.
        seed: Seed of the hash.
        densify: Method that fills empty bins, ``rotation`` or ``optimal``; None to leave them empty.
    """
    _check_slots("bins", bins)
    if densify not in (None, "rotation", "optimal"):
        raise ConfigError(f"densify must be rotation, optimal or None, got {densify!r}")
    bin_of, rest, _ = _assign_bins(_as_words(elements), bins, seed, 0)
    slots = np.full(bins, EMPTY, dtype=np.uint64)
    np.minimum.at(slots, bin_of, rest >> np.uint64(16))
    if densify is None:
        return slots
    return densify_rotation(slots) if densify == "rotation" else densify_optimal(slots, seed)


def densify_rotation(slots: Words) -> Words:
    """Fill an empty bin with the next value to its right, d bins away, plus d·G (Shrivastava & Li, 2014)."""
    filled, bins, source = slots.copy(), len(slots), 0
    if np.all(slots == EMPTY):
        return filled
    for position in reversed(range(2 * bins)):  # two rounds: the first finds the source of the last empty bins
        if slots[position % bins] != EMPTY:
            source = position
        elif position < bins:
            distance = source - position
            filled[position] = min((int(slots[source % bins]) + distance * GOLDEN) & WORD, EMPTY - 1)
    return filled


def densify_optimal(slots: Words, seed: int = 1) -> Words:
    """Fill each empty bin from a bin chosen by hashing, repeated until it is not empty (Shrivastava, 2017)."""
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
    """Return the smallest (round, position) in each slot.

    This is fast similarity sketching (Dahlgaard, Knudsen & Thorup, 2017). Rounds 0 … t−1 assign every element to a bin,
    each with another hash; round t+j assigns all of them to bin j. The sketch ends after the first round that leaves no
    bin empty. Two sets agree in a slot with probability exactly R.
    """
    _check_slots("slots", slots)
    words = _as_words(elements)
    sketch = np.full(slots, EMPTY, dtype=np.uint64)
    for number in range(2 * slots if len(words) else 0):
        bin_of, rest, hashes = _assign_bins(words, slots, seed, number)
        if number >= slots:
            bin_of, rest = np.full(len(words), number - slots), hashes
        np.minimum.at(sketch, bin_of, np.uint64(number << 48) + (rest >> np.uint64(16)))
        if not np.any(sketch == EMPTY):
            break
    return sketch


def minhash_sketch(elements: Iterable[int], slots: int, seed: int = 1) -> NDArray[np.uint32]:
    """Return the minimum of each of k hash functions, in 32 bits (Broder, 1997)."""
    _check_slots("slots", slots)
    words = _as_words(elements)
    low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
    sketch = np.full(slots, EMPTY_32, dtype=np.uint32)
    for i in range(slots if len(words) else 0):
        sketch[i] = min(int(_minhash_values(low, high, key(seed, Domain.MINHASH, i)).min()), EMPTY_32 - 1)
    return sketch


def merge(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return the slotwise minimum, the sketch of the union; not for densified bins."""
    minimum: NDArray[np.unsignedinteger] = np.minimum(left, right)
    return minimum


def count_matches(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> int:
    """Return N_mat, the number of slots that agree and are not empty."""
    return int(np.count_nonzero((left == right) & ~_is_empty(left)))


def count_jointly_empty(left: NDArray[np.unsignedinteger], right: NDArray[np.unsignedinteger]) -> int:
    """Return N_emp, the number of slots empty in both. One permutation hashing estimates R by N_mat/(t − N_emp)."""
    return int(np.count_nonzero(_is_empty(left) & _is_empty(right)))


def pack_bits(slots: NDArray[np.unsignedinteger], bits: int) -> NDArray[np.uint8]:
    """Pack the low b bits of each slot: slot s is in bits s·b … s·b + b − 1, and bit 0 is the lowest of byte 0.

    Args:
        slots: Signatures, one row each.
        bits: Bits kept per slot, b. An empty document packs to ones; whether it is empty must be stored separately.

    >>> pack_bits(np.array([[1, 2, 3, 0, 1]], dtype=np.uint64), bits=2)
    array([[57,  1]], dtype=uint8)
    """
    _check_bits(bits)
    shifts = np.arange(bits, dtype=slots.dtype)
    digits = (slots[:, :, np.newaxis] >> shifts) & slots.dtype.type(1)
    return np.packbits(digits.astype(np.uint8).reshape(len(slots), slots.shape[1] * bits), axis=1, bitorder="little")


def unpack_bits(packed: NDArray[np.uint8], bits: int, slots: int) -> Words:
    """Return the b-bit values of signatures packed by `pack_bits`."""
    _check_bits(bits)
    digits = np.unpackbits(packed, axis=1, count=slots * bits, bitorder="little").astype(np.uint64)
    weights = np.uint64(1) << np.arange(bits, dtype=np.uint64)
    values: Words = (digits.reshape(len(packed), slots, bits) * weights).sum(axis=2, dtype=np.uint64)
    return values


def signature_bytes(documents: int, slots: int, slot_bytes: int) -> int:
    """Return the size of the signatures of a collection, in bytes.

    >>> signature_bytes(documents=100_000, slots=100, slot_bytes=4)
    40000000
    """
    return documents * slots * slot_bytes


def _assign_bins(words: Words, bins: int, seed: int, number: int) -> tuple[NDArray[np.intp], Words, Words]:
    """Return the bin, the position inside the bin, and the hash of every element in a round."""
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
    if not 1 <= value <= MAX_SLOTS:
        raise ConfigError(f"{name} must be between 1 and {MAX_SLOTS}, got {value}")


def _check_bits(bits: int) -> None:
    if bits not in (1, 2, 4, 8, 16, 32):
        raise ConfigError(f"bits must be 1, 2, 4, 8, 16 or 32, got {bits}")
