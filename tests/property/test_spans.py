"""Spans of the kernel equal the reference and cover their shingles."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import SIZES, comparable, effort, options, seeds, shinglers, texts

import minwise as mw
from minwise import reference


@effort(2.5)
@given(text=texts, shingler=shinglers())
def test_spans_equal_the_reference(text: str, shingler: mw.Shingler) -> None:
    """The same element, start and end for every occurrence, in text order."""
    text = comparable(text, shingler)
    spans = shingler.spans(text)
    found = list(zip(spans.hashes.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True))
    assert found == [tuple(span) for span in reference.spans(text, **shingler.settings)]


@given(data=st.binary(max_size=200), shingler=shinglers(("byte",)))
def test_spans_of_bytes_equal_the_reference(data: bytes, shingler: mw.Shingler) -> None:
    spans = shingler.spans(data)
    found = list(zip(spans.hashes.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True))
    assert found == [tuple(span) for span in reference.spans(data, **shingler.settings)]


@given(text=texts, shingler=shinglers())
def test_elements_of_spans_are_the_shingle_set(text: str, shingler: mw.Shingler) -> None:
    """For any text, even of unassigned characters."""
    np.testing.assert_array_equal(np.unique(shingler.spans(text).hashes), shingler.shingle([text])[0])


@given(text=texts, shingler=shinglers())
def test_spans_ascend_inside_the_text(text: str, shingler: mw.Shingler) -> None:
    """0 ≤ start < end ≤ length, and both ends ascend along the text."""
    spans = shingler.spans(text)
    starts, ends = spans.starts.astype(np.int64), spans.ends.astype(np.int64)
    length = len(text.encode()) if shingler.kind == "byte" else len(text)
    assert np.all((starts >= 0) & (starts < ends) & (ends <= length))
    assert np.all(np.diff(starts) >= 0)
    assert np.all(np.diff(ends) >= 0)


@effort(1.5)
@given(text=texts, shingler=shinglers(("word",), bag=False))
def test_the_slice_of_a_word_shingle_contains_it(text: str, shingler: mw.Shingler) -> None:
    """text[start:end] shingled alone has the element; also others where one character becomes two words, like ½."""
    assert_slices_contain_their_shingles(text, shingler)


@given(text=texts, size=st.sampled_from(SIZES), seed=seeds, switches=options)
def test_the_slice_of_a_character_shingle_contains_it(
    text: str, size: int, seed: int, switches: dict[str, Any]
) -> None:
    """While white space at the ends of the slice is kept."""
    shingler = mw.Shingler(f"char:{size}", seed=seed, **{**switches, "collapse_whitespace": False})
    assert_slices_contain_their_shingles(text, shingler)


@given(text=texts, shingler=shinglers(("byte",), bag=False))
def test_the_slice_of_a_byte_shingle_is_the_shingle(text: str, shingler: mw.Shingler) -> None:
    data = text.encode()
    hashes, starts, ends = shingler.spans(data)
    slices = shingler.shingle([data[start:end] for start, end in zip(starts, ends, strict=True)])
    assert np.all(slices.sizes == 1)
    np.testing.assert_array_equal(slices.hashes, hashes)


@given(
    words=st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=40), size=st.sampled_from(SIZES)
)
def test_the_slice_of_a_plain_word_shingle_has_one_element(words: list[str], size: int) -> None:
    text, shingler = "; ".join(words), mw.Shingler(f"word:{size}")
    for element, start, end in zip(*shingler.spans(text), strict=True):
        assert shingler.shingle([text[start:end]])[0].tolist() == [element]


def assert_slices_contain_their_shingles(text: str, shingler: mw.Shingler) -> None:
    """Assert that each slice of the text, shingled by itself, has the element of its span."""
    hashes, starts, ends = shingler.spans(text)
    slices = shingler.shingle([text[start:end] for start, end in zip(starts, ends, strict=True)])
    for number, element in enumerate(hashes):
        assert element in slices[number]


@given(left=texts, right=texts, shingler=shinglers())
def test_shared_ranges_cover_exactly_the_shared_shingles(left: str, right: str, shingler: mw.Shingler) -> None:
    """A position is in a shared range if and only if a shingle that both texts have covers it."""
    both = shingler.spans(left), shingler.spans(left + right)
    for shared, one, other in zip(both[0].shared_ranges(both[1]), both, reversed(both), strict=True):
        common = set(one.hashes.tolist()) & set(other.hashes.tolist())
        covered = {
            position
            for element, start, end in zip(one.hashes.tolist(), one.starts.tolist(), one.ends.tolist(), strict=True)
            if element in common
            for position in range(start, end)
        }
        assert {position for start, end in shared for position in range(start, end)} == covered
        assert all(before[1] < after[0] for before, after in pairwise(shared))
