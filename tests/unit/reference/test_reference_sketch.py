"""Reference sketches: array code equals the definition on single integers, and laws."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minwise import reference as ref
from minwise.errors import ConfigError

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
elements = st.frozensets(st.integers(0, WORD), max_size=30)
slot_counts = st.integers(1, 12)
seeds = st.integers(0, WORD)


def assign_bin(x: int, bins: int, seed: int, number: int) -> tuple[int, int, int]:
    """Return bin, rest and hash of one element in one round."""
    hashed = ref.fold(x ^ ref.key(seed, 5, 2 * number), ref.key(seed, 5, 2 * number + 1) | 1)
    return hashed * bins >> 64, hashed * bins & WORD, hashed


@given(members=elements, bins=slot_counts, seed=seeds)
@example(members=frozenset(), bins=4, seed=1)
def test_one_permutation_by_definition(members: frozenset[int], bins: int, seed: int) -> None:
    """The smallest position in each bin: the upper 48 of the 64 bits below the bin number."""
    expected = [WORD] * bins
    for x in members:
        number, rest, _ = assign_bin(x, bins, seed, 0)
        expected[number] = min(expected[number], rest >> 16)
    assert ref.one_permutation_sketch(members, bins, seed).tolist() == expected


@given(members=elements, slots=slot_counts, seed=seeds)
@example(members=frozenset({7}), slots=12, seed=1)
def test_fast_by_definition(members: frozenset[int], slots: int, seed: int) -> None:
    """Round by round until no bin is empty."""
    expected = [WORD] * slots
    for number in range(2 * slots):
        for x in members:
            target, rest, hashed = assign_bin(x, slots, seed, number)
            if number >= slots:
                target, rest = number - slots, hashed
            expected[target] = min(expected[target], (number << 48) + (rest >> 16))
        if WORD not in expected:
            break
    assert ref.fast_sketch(members, slots, seed).tolist() == expected


@given(members=elements, slots=slot_counts, seed=seeds)
def test_minhash_by_definition(members: frozenset[int], slots: int, seed: int) -> None:
    """The 32-bit functions, one element at a time."""
    half = 2**32 - 1

    def value(x: int, function: int) -> int:
        u = ((x & half) ^ (function & half)) * 0x7FEB352D & half
        u ^= u >> 15
        u = (u ^ (x >> 32)) * (function >> 32 | 1) & half
        return u ^ (u >> 16)

    expected = [
        min((min(value(x, ref.key(seed, 6, i)), half - 1) for x in members), default=half) for i in range(slots)
    ]
    assert ref.minhash_sketch(members, slots, seed).tolist() == expected


@given(left=elements, right=elements, slots=slot_counts)
def test_sketch_of_a_union_is_the_slotwise_minimum(left: frozenset[int], right: frozenset[int], slots: int) -> None:
    for sketch in (ref.minhash_sketch, ref.fast_sketch, ref.one_permutation_sketch):
        merged = ref.merge(sketch(left, slots), sketch(right, slots))
        np.testing.assert_array_equal(sketch(left | right, slots), merged)


def test_rotation_borrows_from_the_right_and_wraps_around() -> None:
    """Distances 2, 1 and, around the end, 3."""
    slots = np.array([ref.EMPTY, ref.EMPTY, 7, ref.EMPTY], dtype=np.uint64)
    expected = [(7 + 2 * GOLDEN) & WORD, 7 + GOLDEN, 7, (7 + 3 * GOLDEN) & WORD]
    assert ref.densify_rotation(slots).tolist() == expected


def test_rotation_never_makes_an_empty_slot() -> None:
    """A sum that equals the empty marker is reduced by one."""
    slots = np.array([ref.EMPTY, (WORD - GOLDEN) & WORD], dtype=np.uint64)
    assert ref.densify_rotation(slots)[0] == ref.EMPTY - 1


@given(members=elements.filter(bool), bins=slot_counts, seed=seeds, how=st.sampled_from(["rotation", "optimal"]))
def test_densification_changes_only_empty_bins(members: frozenset[int], bins: int, seed: int, how: str) -> None:
    """No bin stays empty."""
    sparse = ref.one_permutation_sketch(members, bins, seed)
    dense = ref.one_permutation_sketch(members, bins, seed, densify=how)
    assert not np.any(dense == ref.EMPTY)
    np.testing.assert_array_equal(dense[sparse != ref.EMPTY], sparse[sparse != ref.EMPTY])
    if how == "optimal":
        assert set(dense.tolist()) == set(sparse.tolist()) - {ref.EMPTY}


def test_optimal_draws_by_hash_until_it_meets_a_value() -> None:
    """The first non-empty bin of the hash sequence is copied."""
    slots = np.array([ref.EMPTY, 11, ref.EMPTY, 22, 33], dtype=np.uint64)
    start = ref.key(4, 7, 0)
    for empty in (0, 2):
        drawn = [ref.mix(start + (a * 5 + empty) * GOLDEN) * 5 >> 64 for a in range(1, 100)]
        source = next(bin_ for bin_ in drawn if slots[bin_] != ref.EMPTY)
        assert ref.densify_optimal(slots, seed=4)[empty] == slots[source]


@pytest.mark.parametrize("how", [None, "rotation", "optimal"])
def test_empty_set_stays_empty(how: str | None) -> None:
    """In every scheme, densified or not."""
    assert ref.one_permutation_sketch([], 4, densify=how).tolist() == [ref.EMPTY] * 4
    assert ref.fast_sketch([], 4).tolist() == [ref.EMPTY] * 4
    assert ref.minhash_sketch([], 4).tolist() == [ref.EMPTY_32] * 4


def test_jointly_empty_slots_are_not_matches() -> None:
    left = np.array([5, ref.EMPTY, ref.EMPTY, 9], dtype=np.uint64)
    right = np.array([5, ref.EMPTY, 6, 8], dtype=np.uint64)
    assert ref.count_matches(left, right) == 1
    assert ref.count_jointly_empty(left, right) == 1


@given(
    bits=st.sampled_from([1, 2, 4, 8, 16, 32]),
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(st.integers(0, WORD), min_size=n, max_size=n))),
)
def test_packing_is_undone_by_unpacking(bits: int, rows: list[list[int]]) -> None:
    """Up to the dropped bits."""
    slots = np.array(rows, dtype=np.uint64).reshape(len(rows), -1 if rows else 3)
    packed = ref.pack_bits(slots, bits)
    assert packed.shape == (len(rows), -(-slots.shape[1] * bits // 8))
    np.testing.assert_array_equal(ref.unpack_bits(packed, bits, slots.shape[1]), slots & np.uint64(2**bits - 1))


def test_packing_starts_at_the_lowest_bit() -> None:
    """Slot 8 is bit 0 of byte 1; 32-bit slots are little-endian."""
    slots = np.array([[1, 0, 0, 0, 0, 0, 0, 0, 1, 1]], dtype=np.uint32)
    assert ref.pack_bits(slots, 1).tolist() == [[0b1, 0b11]]
    assert ref.pack_bits(slots[:, :2], 32).tolist() == [[1, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("slots", [0, -1, 16_385])
def test_invalid_numbers_of_slots_are_refused(slots: int) -> None:
    for sketch in (ref.minhash_sketch, ref.fast_sketch, ref.one_permutation_sketch):
        with pytest.raises(ConfigError, match=f"must be between 1 and 16384, got {slots}"):
            sketch([1], slots)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="densify must be rotation, optimal or None, got 'best'"):
        ref.one_permutation_sketch([1], 4, densify="best")
    with pytest.raises(ConfigError, match="bits must be 1, 2, 4, 8, 16 or 32, got 3"):
        ref.pack_bits(np.zeros((1, 4), dtype=np.uint64), 3)
