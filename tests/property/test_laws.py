"""Exact laws of signatures and sets that need no oracle."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.schemes import scheme
from support.strategies import (
    BITS,
    DENSE,
    MERGING,
    SCHEMES,
    SIZES,
    SLOT_COUNTS,
    effort,
    elements,
    seeds,
    shingle_sets,
    shinglers,
    texts,
)

import minwise as mw
from minwise import reference
from minwise.sketches import containment, hamming, similarities
from minwise.sketches.signatures import Bits

slot_counts = st.sampled_from(SLOT_COUNTS)
integers = st.integers(-(2**200), 2**200) | st.sampled_from(
    tuple(sign * 2**power + step for power in (0, 31, 32, 63, 64, 127, 128) for step in (-1, 0, 1) for sign in (1, -1))
)

items = integers | st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.binary(max_size=40)


@pytest.mark.parametrize("name", MERGING)
@effort(0.67)
@given(left=elements, right=elements, slots=slot_counts, seed=seeds)
@example(left=set(), right=set(), slots=7, seed=1)
@example(left=set(), right={1}, slots=7, seed=1)
def test_signature_of_a_union_is_the_slotwise_minimum(
    name: str, left: set[int], right: set[int], slots: int, seed: int
) -> None:
    """sketch(A ∪ B) == sketch(A) | sketch(B) == min(sketch(A), sketch(B))."""
    chosen = scheme(name, slots, seed)
    a, b, union = (chosen.sketch(shingle_sets(sorted(members))) for members in (left, right, left | right))
    np.testing.assert_array_equal((a | b).slots, union.slots)
    np.testing.assert_array_equal((a | b).slots[0], reference.merge(a[0], b[0]))


@pytest.mark.parametrize("name", MERGING)
@effort(0.5)
@given(sets=st.tuples(elements, elements, elements), slots=slot_counts)
def test_merging_is_commutative_associative_and_idempotent(name: str, sets: tuple[set[int], ...], slots: int) -> None:
    """A | B == B | A, (A | B) | C == A | (B | C), A | A == A, and merging with the empty set changes nothing."""
    a, b, c = (scheme(name, slots).sketch(shingle_sets(sorted(members))) for members in sets)
    nothing = scheme(name, slots).sketch(shingle_sets([]))
    for left, right in ((a | b, b | a), ((a | b) | c, a | (b | c)), (a | a, a), (a | nothing, a)):
        np.testing.assert_array_equal(left.slots, right.slots)


@pytest.mark.parametrize("name", SCHEMES)
@effort(0.67)
@given(data=st.data(), members=elements, slots=slot_counts)
def test_order_and_repetition_of_elements_do_not_matter(
    name: str, data: st.DataObject, members: set[int], slots: int
) -> None:
    ordered = sorted(members)
    again = data.draw(st.lists(st.sampled_from(ordered), max_size=20)) if ordered else []
    shuffled = data.draw(st.permutations(ordered + again))
    one, other = scheme(name, slots).sketch(shingle_sets(ordered, shuffled)).slots
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bits", [None, *BITS])
@pytest.mark.parametrize("name", SCHEMES)
@effort(0.33)
@given(members=elements, slots=slot_counts)
@example(members=set(), slots=7)
@example(members={0}, slots=1)
def test_the_similarity_of_a_set_to_itself_is_1_unless_empty(
    name: str, bits: Bits | None, members: set[int], slots: int
) -> None:
    """The similarity of an empty set to itself is 0."""
    signatures = scheme(name, slots).sketch(shingle_sets(sorted(members)))
    if bits is not None and name in DENSE:
        signatures = signatures.bbit(bits)
    assert signatures.estimate(0, 0).value == (1.0 if members else 0.0)


@pytest.mark.parametrize("bits", [None, 1, 8])
@pytest.mark.parametrize("name", SCHEMES)
@effort(0.33)
@given(sets=st.lists(elements, min_size=2, max_size=4), shared=elements, slots=slot_counts)
def test_estimates_are_symmetric(
    name: str, bits: Bits | None, sets: list[set[int]], shared: set[int], slots: int
) -> None:
    """estimate(i, j) == estimate(j, i), in value and interval."""
    signatures = scheme(name, slots).sketch(shingle_sets(*(sorted(members | shared) for members in sets), []))
    if bits is not None and name in DENSE:
        signatures = signatures.bbit(bits)
    pairs = [(i, j) for i in range(len(signatures)) for j in range(len(signatures))]
    there, back = signatures.estimate_many(pairs), signatures.estimate_many([(j, i) for i, j in pairs])
    for column in ("value", "low", "high"):
        np.testing.assert_array_equal(getattr(there, column), getattr(back, column))


@pytest.mark.parametrize("bits", [None, 1, 8])
@given(left=elements, shared=elements, slots=slot_counts)
@example(left=set(), shared={1}, slots=256)
@example(left={1}, shared=set(), slots=256)
def test_an_interval_contains_its_estimate(bits: Bits | None, left: set[int], shared: set[int], slots: int) -> None:
    """0 ≤ low ≤ value ≤ high ≤ 1, to the last digit, and low < high unless a set is empty."""
    signatures = scheme("fast", slots).sketch(shingle_sets(sorted(left | shared), sorted(shared)))
    estimate = (signatures.bbit(bits) if bits else signatures).estimate(0, 1)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.low < estimate.high or not shared


@given(text=texts, shingler=shinglers(bag=False))
def test_a_bag_without_repetitions_is_the_set(text: str, shingler: mw.Shingler) -> None:
    """A bag contains the set and has as many elements as there are occurrences."""
    bag = replace(shingler, bag=True)
    occurrences = shingler.spans(text).hashes
    as_set, as_bag = shingler.shingle([text])[0], bag.shingle([text])[0]
    assert np.isin(as_set, as_bag).all()
    assert len(as_bag) == len(occurrences)
    assert len(as_set) != len(occurrences) or np.array_equal(as_set, as_bag)


@given(left=st.text("ab ", max_size=60), right=st.text("ab ", max_size=60), size=st.sampled_from(SIZES))
def test_jaccard_of_bags_is_that_of_multisets(left: str, right: str, size: int) -> None:
    """Σ min / Σ max of the numbers of occurrences."""
    bags = mw.Shingler(f"char:{size}", bag=True).shingle([left, right])
    x, y = (Counter(reference.shingle_strings(text, f"char:{size}")) for text in (left, right))
    expected = (x & y).total() / (x | y).total() if x | y else 0.0
    assert mw.jaccard(bags[0], bags[1]) == expected


@given(sets=st.lists(st.lists(items, max_size=12), max_size=5), seed=seeds)
@example(sets=[[3, "3", b"3", -3], [2**63 - 1, -(2**63)], [2**63, 2**64]], seed=1)
def test_items_hash_as_in_the_reference(sets: list[list[int | str | bytes]], seed: int) -> None:
    """Integers of any size and sign, strings and bytes."""
    hashed = mw.ShingleSets.from_sets(sets, seed=seed)
    for number, members in enumerate(sets):
        np.testing.assert_array_equal(hashed[number], reference.hash_items(members, seed))


@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), seed=seeds)
def test_arrays_of_integers_hash_as_their_members(numbers: list[int], seed: int) -> None:
    """An int64 array, the fast path, equals the set of its integers; so does a mixed list, the slow path."""
    array, mixed = np.array(numbers, dtype=np.int64), [*map(np.int64, numbers)]
    hashed = mw.ShingleSets.from_sets([array, numbers, mixed], seed=seed)
    for number in range(3):
        np.testing.assert_array_equal(hashed[number], reference.hash_items(numbers, seed))


@given(members=st.lists(items, max_size=12), data=st.data())
def test_order_and_repetition_of_items_do_not_matter(members: list[int | str | bytes], data: st.DataObject) -> None:
    sets = mw.ShingleSets.from_sets([members, data.draw(st.permutations(members + members[:3]))])
    np.testing.assert_array_equal(sets[0], sets[1])


@given(sets=st.lists(st.sets(st.integers(0, 40), max_size=30), min_size=1, max_size=6), data=st.data())
def test_similarities_are_those_of_python_sets(sets: list[set[int]], data: st.DataObject) -> None:
    """Similarity, containment and Hamming distance of the kernel, for any pairs."""
    number = st.integers(0, len(sets) - 1)
    pairs = data.draw(st.lists(st.tuples(number, number), max_size=20))
    hashed = mw.ShingleSets.from_sets(sets)
    expected = [len(sets[i] & sets[j]) / max(len(sets[i] | sets[j]), 1) for i, j in pairs]
    assert similarities(hashed, pairs).tolist() == expected
    assert [mw.jaccard(hashed[i], hashed[j]) for i, j in pairs] == expected
    assert [hamming(hashed[i], hashed[j]) for i, j in pairs] == [len(sets[i] ^ sets[j]) for i, j in pairs]
    shares = [len(sets[i] & sets[j]) / max(len(sets[i]), 1) for i, j in pairs]
    assert [containment(hashed[i], hashed[j]) for i, j in pairs] == shares
