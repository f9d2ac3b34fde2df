"""Sketches: every scheme of the kernel equals the reference slot for slot, with SIMD and without, packed and whole."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.schemes import scheme
from support.strategies import BITS, DENSE, ORACLES, SCHEMES, SLOT_COUNTS, WORD, effort, elements, seeds, shingle_sets

import minwise as mw
from minwise import _kernel, reference
from minwise.sketches.signatures import Bits

EDGES: tuple[list[int], ...] = ([], [0], [WORD], [0, WORD], [1, 2], [2**32, 2**32 - 1], [WORD - 1])


def sketch_without_simd(name: str, sets: mw.ShingleSets, slots: int, seed: int) -> NDArray[Any]:
    """Return the slots by the portable code of the kernel."""
    kind, _, densify = name.partition("+")
    rows = np.empty((len(sets), slots), dtype=np.uint32 if name == "minhash" else np.uint64)
    sketcher = _kernel.Sketcher(scheme=kind, slots=slots, seed=seed, densify=densify or None, simd=False)
    sketcher.sketch_sets(sets.offsets, sets.hashes, rows, None, 1)
    return rows


def assert_equals_reference(name: str, sets: mw.ShingleSets, slots: int, seed: int) -> None:
    """Assert that the kernel with SIMD, the kernel without, and the reference agree for every set."""
    expected = np.array([ORACLES[name](sets[i], slots, seed) for i in range(len(sets))])
    signatures = scheme(name, slots, seed).sketch(sets)
    assert signatures.slots.dtype == expected.dtype
    np.testing.assert_array_equal(signatures.slots, expected)
    np.testing.assert_array_equal(sketch_without_simd(name, sets, slots, seed), expected)


@pytest.mark.parametrize("name", SCHEMES)
@effort(0.5)
@given(members=elements, slots=st.sampled_from(SLOT_COUNTS), seed=seeds)
def test_sketches_equal_the_reference(name: str, members: set[int], slots: int, seed: int) -> None:
    """Sets of up to 300 elements, any seed, any number of slots."""
    assert_equals_reference(name, shingle_sets(sorted(members)), slots, seed)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("slots", SLOT_COUNTS)
def test_sketches_of_the_smallest_sets_equal_the_reference(name: str, slots: int) -> None:
    """Sets of 0, 1 and 2 elements, at the ends of the 64-bit range, in one batch."""
    assert_equals_reference(name, shingle_sets(*EDGES), slots, seed=1)


@pytest.mark.parametrize("name", SCHEMES)
def test_sketch_of_a_large_set_equals_the_reference(name: str) -> None:
    """A hundred thousand elements, between two small sets."""
    large = np.random.default_rng(1).integers(0, WORD, size=100_000, dtype=np.uint64, endpoint=True)
    assert_equals_reference(name, shingle_sets([7], np.unique(large), [8]), slots=256, seed=1)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("size", [60, 64, 100, 250, 500, 1200])
def test_sketches_of_sets_about_as_large_as_the_slots_equal_the_reference(name: str, size: int) -> None:
    """Some bins are empty after the first round and some are not."""
    rng = np.random.default_rng(size)
    sets = [rng.integers(0, WORD, size=size, dtype=np.uint64) for _ in range(4)]
    for slots in (63, 64, 65, 257):
        assert_equals_reference(name, shingle_sets(*sets), slots, seed=size)


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("bits", BITS)
@effort(0.25)
@given(
    sets=st.lists(elements, min_size=1, max_size=4), slots=st.sampled_from(SLOT_COUNTS) | st.integers(1, 70), seed=seeds
)
def test_packed_slots_equal_the_reference(name: str, bits: Bits, sets: list[set[int]], slots: int, seed: int) -> None:
    """Packed by the scheme or afterwards; which documents are empty is kept."""
    members = shingle_sets(*map(sorted, sets))
    whole = scheme(name, slots, seed).sketch(members)
    packed = whole.bbit(bits)
    np.testing.assert_array_equal(packed.slots, reference.pack_bits(whole.slots, bits))
    np.testing.assert_array_equal(packed.empty, [not elements for elements in sets])
    np.testing.assert_array_equal(scheme(name, slots, seed, bits).sketch(members).slots, packed.slots)


@pytest.mark.parametrize("bits", BITS)
@effort(0.5)
@given(data=st.data(), slots=st.integers(1, 150))
def test_packed_matches_equal_unpacked_matches(bits: int, data: st.DataObject, slots: int) -> None:
    """Also where rows end inside a byte."""
    rows = np.array([data.draw(st.lists(st.integers(0, 3), min_size=slots, max_size=slots)) for _ in range(2)])
    packed = _kernel.pack_bits(rows.astype(np.uint64), bits)
    unpacked = reference.unpack_bits(packed, bits, slots)
    equal = _kernel.count_packed_matches(packed, packed, np.array([[0, 1]]), slots, bits)
    assert equal.tolist() == [np.count_nonzero(unpacked[0] == unpacked[1])]


@pytest.mark.parametrize("name", SCHEMES)
@effort(0.5)
@given(left=elements, right=elements, shared=elements, slots=st.sampled_from(SLOT_COUNTS), seed=seeds)
def test_matches_are_those_of_the_reference(
    name: str, left: set[int], right: set[int], shared: set[int], slots: int, seed: int
) -> None:
    """The estimate is matching slots divided by those not empty in both, counted slot by slot."""
    signatures = scheme(name, slots, seed).sketch(shingle_sets(sorted(left | shared), sorted(right | shared)))
    filled = slots - reference.count_jointly_empty(*signatures.slots)
    expected = reference.count_matches(*signatures.slots) / filled if filled else 0.0
    assert signatures.estimate(0, 1).value == (expected if left | shared and right | shared else 0.0)
