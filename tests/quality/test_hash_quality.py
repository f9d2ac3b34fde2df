"""Hash quality: structured inputs, on which weak hashes fail, give uniform bins and slots and no collisions."""

import math
from functools import cache
from itertools import product
from string import ascii_lowercase
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from support.statistical_bounds import FAILURE, assert_uniform

import minwise as mw
from minwise.sketches import OnePermutation
from minwise.sketches.signatures import Bits

Words = NDArray[np.uint64]

CELLS = 64
INPUTS = ("integers", "multiples", "short words", "numbers", "one token changed", "one character changed")


@cache
def structured(name: str) -> Words:
    """Return the distinct elements of a structured input, at least 17,000 of them."""
    if name == "integers":
        return mw.ShingleSets.from_sets([np.arange(100_000, dtype=np.int64)])[0]
    if name == "multiples":
        return mw.ShingleSets.from_sets([np.arange(100_000, dtype=np.int64) << 40])[0]
    if name == "short words":
        return shingle("word:1", [" ".join(map("".join, product(ascii_lowercase, repeat=3)))])
    if name == "numbers":
        return shingle("word:1", [" ".join(map(str, range(100_000)))])
    if name == "one token changed":
        return shingle("word:5", [f"the quick brown fox {i} jumps over the lazy dog" for i in range(20_000)])
    return shingle("char:9", [f"abcdefgh{chr(0x4E00 + i)}ijklmnop" for i in range(20_000)])


def shingle(spec: str, texts: list[str], hash_bits: Literal[64, 32] = 64) -> Words:
    """Return the distinct elements of all texts together."""
    return np.unique(mw.Shingler(spec, hash_bits=hash_bits).shingle(texts).hashes)


def singletons(elements: Words) -> mw.ShingleSets:
    """Return each element as a set of its own."""
    return mw.ShingleSets(np.arange(len(elements) + 1), elements)


@pytest.mark.parametrize("name", INPUTS)
def test_elements_are_uniform(name: str) -> None:
    """High, middle and low bits of the elements, each divided into 64 cells."""
    elements = structured(name)
    for shift in (58, 32, 26, 0):
        assert_uniform(elements >> np.uint64(shift) & np.uint64(CELLS - 1), CELLS)


@pytest.mark.parametrize("hash_bits", [64, 32])
@pytest.mark.parametrize("bins", [CELLS, 100])
@pytest.mark.parametrize("name", INPUTS)
def test_bins_are_uniform(name: str, bins: int, hash_bits: int) -> None:
    """Each element alone: its bin and its position inside the bin, high and low bits of 48, under three seeds."""
    elements = structured(name) & np.uint64(2**hash_bits - 1)
    for seed in (1, 2, 2**63):
        slots = OnePermutation(bins=bins, seed=seed).sketch(singletons(elements)).slots
        documents, bin_numbers = np.nonzero(slots != np.iinfo(np.uint64).max)
        assert len(documents) == len(elements)
        assert_uniform(bin_numbers, bins)
        assert_uniform(slots[documents, bin_numbers] >> np.uint64(42), CELLS)
        assert_uniform(slots[documents, bin_numbers] & np.uint64(CELLS - 1), CELLS)


@pytest.mark.parametrize("hash_bits", [64, 32])
@pytest.mark.parametrize("name", INPUTS)
def test_slots_of_minhash_are_uniform(name: str, hash_bits: int) -> None:
    """Each element alone: high and low bits of the value of every function."""
    slots = mw.MinHash(slots=8).sketch(singletons(structured(name) & np.uint64(2**hash_bits - 1))).slots
    for function in slots.T:
        assert_uniform(function >> np.uint32(26), CELLS)
        assert_uniform(function & np.uint32(CELLS - 1), CELLS)


@pytest.mark.parametrize("name", INPUTS)
def test_slots_of_fast_sketch_are_uniform(name: str) -> None:
    """Each element alone: the positions, high and low bits of the 48 below the round, in every slot."""
    slots = mw.FastSketch(slots=8).sketch(singletons(structured(name))).slots
    for slot in slots.T:
        assert_uniform(slot >> np.uint64(42) & np.uint64(CELLS - 1), CELLS)
        assert_uniform(slot & np.uint64(CELLS - 1), CELLS)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("name", ["minhash", "fast", "oph"])
def test_packed_bits_are_uniform(name: str, bits: Bits) -> None:
    """For the usual powers of two of slots."""
    schemes = {
        "minhash": mw.MinHash(slots=8),
        "fast": mw.FastSketch(slots=8),
        "oph": OnePermutation(bins=8, densify="optimal"),
    }
    packed = schemes[name].sketch(singletons(structured("integers"))).bbit(bits).slots
    assert_uniform(packed[:, 0] & np.uint8(2**bits - 1), 2**bits)


def test_a_million_integers_do_not_collide() -> None:
    """Among n = 10⁶ words of 64 bits a collision has probability n²/2⁶⁵ = 3·10⁻⁸."""
    assert len(mw.ShingleSets.from_sets([np.arange(1_000_000, dtype=np.int64)])[0]) == 1_000_000


def test_a_million_word_shingles_do_not_collide() -> None:
    """All windows over 0 1 2 3 … are different."""
    assert len(shingle("word:5", [" ".join(map(str, range(1_000_004)))])) == 1_000_000


def test_a_million_orders_of_words_do_not_collide() -> None:
    """All ordered triples of 100 words: the rolling sum distinguishes every order and repetition."""
    words = [f"w{i}" for i in range(100)]
    assert len(shingle("word:3", [f"{a} {b} {c}" for a, b, c in product(words, repeat=3)])) == 1_000_000


def test_a_million_texts_with_one_token_changed_do_not_collide() -> None:
    """Five windows contain the changed token, one does not."""
    texts = [f"the quick brown fox {i} jumps over the lazy dog" for i in range(200_000)]
    assert len(shingle("word:5", texts)) == 5 * 200_000 + 1


def test_a_million_character_shingles_do_not_collide() -> None:
    """All strings of four letters out of 32."""
    letters = ascii_lowercase + "äöüßéè"
    assert len(shingle("char:4", ["".join(four) for four in product(letters, repeat=4)])) == 32**4


def test_32_bit_hashes_collide_as_often_as_by_chance() -> None:
    """Of n = 10⁶ words of 32 bits n²/2³³ = 116.4 pairs collide, Poisson; P[|N − μ| ≥ x] ≤ 2·exp(−x²/(2(μ + x/3)))."""
    collisions = 1_000_000 - len(shingle("word:5", [" ".join(map(str, range(1_000_004)))], hash_bits=32))
    expected, log = 1e12 / 2**33, math.log(2 / FAILURE)
    allowance = log / 3 + math.sqrt(log**2 / 9 + 2 * log * expected)  # Bernstein's bound, solved for x
    assert abs(collisions - expected) <= allowance
