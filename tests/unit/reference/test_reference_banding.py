"""Reference band keys, content hashes and groups: examples computed by hand, and laws."""

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minwise import reference as ref
from minwise.errors import ConfigError
from minwise.reference import banding
from minwise.reference.banding import band_keys, components, content_hash, propose_pairs, star

WORD = 2**64 - 1
DOCUMENTS = 9
Pairs = dict[tuple[int, int], float]

words = st.integers(0, WORD)
seeds = st.integers(0, WORD)
pairs = st.dictionaries(
    st.sampled_from(list(combinations(range(DOCUMENTS), 2))), st.sampled_from((0.8, 0.85, 0.9, 1.0)), max_size=20
)


def test_band_keys_by_hand() -> None:
    """Two bands of three slots: a full step and one with a missing high word each."""
    slots, seed = [11, 22, 33, 44, 55, 66], 5
    k0, k1 = ref.key(seed, 8, 0), ref.key(seed, 8, 1)
    expected = []
    for number, (a, b, c) in enumerate([(11, 22, 33), (44, 55, 66)]):
        state = ref.fold(a ^ k0 ^ ref.key(seed, 8, 2 + number), b ^ k1)
        expected.append(ref.mix(ref.fold(c ^ k0 ^ state, k1)))
    assert band_keys(slots, bands=2, rows=3, seed=seed) == expected


def test_content_hash_by_hand() -> None:
    """Three tokens: a full step, one with a missing high word, and the number of tokens."""
    lanes = []
    for lane in (0, 1):
        k0, k1, k2 = (ref.key(5, 9, 3 * lane + index) for index in range(3))
        state = ref.fold(33 ^ k0 ^ ref.fold(11 ^ k0, 22 ^ k1), k1)
        lanes.append(ref.mix((state + 3 * k2) & WORD))
    assert content_hash([11, 22, 33], seed=5) == tuple(lanes)


@given(slots=st.lists(words, min_size=8, max_size=8), seed=seeds, changed=st.integers(0, 7), value=words)
def test_a_slot_changes_the_key_of_its_band_only(slots: list[int], seed: int, changed: int, value: int) -> None:
    other = [*slots[:changed], value, *slots[changed + 1 :]]
    before, after = (band_keys(signature, bands=4, rows=2, seed=seed) for signature in (slots, other))
    differing = {band for band in range(4) if before[band] != after[band]}
    assert differing == ({changed // 2} if slots != other else set())


def test_equal_slots_in_different_bands_have_different_keys() -> None:
    assert len(set(band_keys([7] * 12, bands=4, rows=3))) == 4


def test_32_bit_slots_have_the_keys_of_equal_64_bit_slots() -> None:
    slots = np.array([1, 2**32 - 2, 3, 2**32 - 1], dtype=np.uint32)
    assert band_keys(slots, bands=2, rows=2) == band_keys(slots.tolist(), bands=2, rows=2)


def test_slots_beyond_the_bands_are_not_used() -> None:
    """For example 208 of 256."""
    assert band_keys([1, 2, 3, 4, 5], bands=2, rows=2) == band_keys([1, 2, 3, 4, 6], bands=2, rows=2)


def test_more_bands_than_slots_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"bands·rows must be at most the 5 slots, got 2·3"):
        band_keys([1, 2, 3, 4, 5], bands=2, rows=3)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_an_empty_document_has_the_marker_in_every_band(dtype: type[np.unsignedinteger]) -> None:
    """For slots of 64 and of 32 bits."""
    assert band_keys(np.full(6, np.iinfo(dtype).max, dtype=dtype), bands=3, rows=2) == [WORD] * 3


def test_the_marker_is_reserved_for_empty_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document with elements whose key would be 2⁶⁴−1 gets 2⁶⁴−2."""
    monkeypatch.setattr(banding, "mix", lambda _: WORD)
    assert band_keys([1, 2], bands=2, rows=1) == [WORD - 1, WORD - 1]


def test_content_hash_of_no_tokens_is_zero() -> None:
    assert content_hash([]) == (0, 0)
    assert content_hash([0]) != (0, 0)


def test_content_hash_depends_on_the_length() -> None:
    """A missing high word differs from a token of zero."""
    assert len({content_hash([0] * length) for length in range(20)}) == 20


@given(tokens=st.lists(words, min_size=1, max_size=7), seed=seeds)
def test_content_hash_has_two_lanes(tokens: list[int], seed: int) -> None:
    """The lanes have different keys, and the order of the tokens matters."""
    low, high = content_hash(tokens, seed)
    assert low != high
    backwards = tokens[::-1]
    assert (content_hash(backwards, seed) == (low, high)) == (backwards == tokens)


def test_pairs_share_a_band() -> None:
    """Equal keys in different bands are not a bucket, nor is the marker of empty documents."""
    keys = [[1, 2], [2, 1], [1, 9], [WORD, WORD], [WORD, WORD], [5, 1]]
    assert propose_pairs(keys) == {(0, 2), (1, 5)}


def test_large_buckets_pair_with_their_first_members() -> None:
    """Six documents in one bucket with a limit of five: 2·4 + 1 pairs instead of 15."""
    keys = [[3]] * 6
    assert len(propose_pairs(keys, max_bucket=6)) == 15
    expected = {(0, 1), *((early, late) for early in (0, 1) for late in range(2, 6))}
    assert propose_pairs(keys, max_bucket=5, first=2) == expected


def test_default_limit_of_large_buckets() -> None:
    """2,001 members: the first sixteen with all after them."""
    assert len(propose_pairs([[3]] * 2001)) == sum(2001 - 1 - early for early in range(16))


@given(keys=st.lists(st.lists(st.sampled_from((1, 2, 3, WORD)), min_size=3, max_size=3), max_size=10))
def test_pairs_by_definition(keys: list[list[int]]) -> None:
    expected = {
        (left, right)
        for left, right in combinations(range(len(keys)), 2)
        if any(x == y != WORD for x, y in zip(keys[left], keys[right], strict=True))
    }
    assert propose_pairs(keys) == expected


def test_star_by_hand() -> None:
    """A chain 0-1-2-3: 1 is removed for 0, 2 is kept since 1 is removed, 3 is removed for 2; 2 is the witness of 1."""
    kept, removed = star({(0, 1): 0.8, (1, 2): 0.9, (2, 3): 0.85}, documents=5)
    assert kept == [0, 2, 4]
    assert removed == {1: (2, 0.9), 3: (2, 0.85)}


def test_star_prefers_the_first_of_equal_witnesses() -> None:
    """By number, not by the order of the pairs."""
    assert star({(1, 2): 0.9, (0, 2): 0.9}, documents=3) == ([0, 1], {2: (0, 0.9)})


@given(pairs=pairs)
@example(pairs={})
def test_star_keeps_no_pair_and_removes_none_without_witness(pairs: Pairs) -> None:
    """No two kept documents are a pair, and a document is removed only for a kept one before it."""
    kept, removed = star(pairs, DOCUMENTS)
    assert sorted([*kept, *removed]) == list(range(DOCUMENTS))
    assert not any(pair in pairs for pair in combinations(kept, 2))
    for document, (witness, similarity) in removed.items():
        partners = {sum(pair) - document: value for pair, value in pairs.items() if document in pair}
        kept_partners = {other: value for other, value in partners.items() if other in kept}
        assert any(other < document for other in kept_partners)
        assert similarity == kept_partners[witness] == max(kept_partners.values())
        assert witness == min(other for other, value in kept_partners.items() if value == similarity)


def reachable(start: int, pairs: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield every document that a chain of pairs connects to one."""
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        yield here
        found = {sum(pair) - here for pair in pairs if here in pair} - seen
        seen |= found
        waiting.extend(found)


@given(pairs=pairs)
@example(pairs={(0, 8): 1.0, (1, 8): 1.0})
def test_components_are_the_first_reachable_documents(pairs: Pairs) -> None:
    """By brute force from each document."""
    assert components(pairs, DOCUMENTS) == [min(reachable(start, pairs)) for start in range(DOCUMENTS)]


@given(pairs=pairs)
def test_a_star_lies_within_its_component(pairs: Pairs) -> None:
    """A witness is in the same component, and each component keeps its first document."""
    label = components(pairs, DOCUMENTS)
    kept, removed = star(pairs, DOCUMENTS)
    assert all(label[document] == label[witness] for document, (witness, _) in removed.items())
    assert set(label) <= set(kept)
