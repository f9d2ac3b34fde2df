"""Shingles of the kernel equal the reference bit for bit, for every script, setting and lane boundary."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import (
    ASCII,
    KINDS,
    LANE_LENGTHS,
    SCRAPS,
    SCRATCH_LENGTHS,
    SIZES,
    Words,
    comparable,
    effort,
    is_settled,
    long_texts,
    portable_shingler,
    repeat_to,
    shinglers,
    texts,
)

import minwise as mw
from minwise import reference
from minwise.text.chunks import read_texts

# Blocks of hundred thousands of characters with equal behaviour, of which one in 97 is tested.
ALIKE = ((0x3400, 0xA000), (0xAC00, 0xD7A4), (0xE000, 0xF900), (0x17000, 0x18D00), (0x20000, 0x110000))
CHARACTERS = [
    chr(code)
    for code in range(0x110000)
    if is_settled(chr(code)) and (code % 97 == 0 or not any(first <= code < end for first, end in ALIKE))
    if not 0xD800 <= code < 0xE000
]


def shingle_without_simd(shingler: mw.Shingler, text: str | bytes) -> Words:
    """Return the elements of one text by the portable code of the kernel."""
    (chunk,) = read_texts([text])
    return portable_shingler(shingler).shingle(chunk.offsets, chunk.data, 1)[1]


def assert_equals_reference(text: str | bytes, shingler: mw.Shingler) -> None:
    """Assert that the kernel with SIMD, the kernel without, and the reference agree."""
    expected = reference.shingle_hashes(text, **shingler.settings)
    np.testing.assert_array_equal(shingler.shingle([text])[0], expected)
    np.testing.assert_array_equal(shingle_without_simd(shingler, text), expected)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), text=texts)
def test_shingles_equal_the_reference(kind: str, data: st.DataObject, text: str) -> None:
    """Any text, any settings."""
    shingler = data.draw(shinglers((kind,)))
    assert_equals_reference(comparable(text, shingler), shingler)


@effort(3)
@given(text=texts, size=st.sampled_from(SIZES))
def test_words_under_default_normalisation_equal_the_reference(text: str, size: int) -> None:
    """Covers the fast path of the default settings."""
    shingler = mw.Shingler(f"word:{size}")
    assert_equals_reference(comparable(text, shingler), shingler)


@effort(0.33)
@given(text=long_texts, shingler=shinglers())
def test_long_texts_equal_the_reference(text: str, shingler: mw.Shingler) -> None:
    """Texts that fill the scratch buffer to the byte lose nothing at its end."""
    assert_equals_reference(comparable(text, shingler), shingler)


@given(data=st.binary(max_size=300), shingler=shinglers(("byte",)))
@example(data=b"", shingler=mw.Shingler("byte:8"))
@example(data=b"\xff", shingler=mw.Shingler("byte:8"))
@example(data=b"\x00" * 300, shingler=mw.Shingler("byte:2", bag=True))
def test_byte_shingles_of_any_bytes_equal_the_reference(data: bytes, shingler: mw.Shingler) -> None:
    assert_equals_reference(data, shingler)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bag", [False, True], ids=["set", "bag"])
@pytest.mark.parametrize("hash_bits", [64, 32])
def test_every_kind_size_and_width_equals_the_reference(
    kind: str, size: int, bag: bool, hash_bits: Literal[64, 32]
) -> None:
    """Every combination: the empty text, one character, every scrap, and a hundredfold repetition."""
    shingler = mw.Shingler(f"{kind}:{size}", bag=bag, hash_bits=hash_bits, seed=size)
    for text in ("", "a", "漢", "\u0301", " ", "".join(SCRAPS), "to be or not to be " * 100):
        assert_equals_reference(comparable(text, shingler), shingler)


@pytest.mark.parametrize("length", [*LANE_LENGTHS, *SCRATCH_LENGTHS])
@pytest.mark.parametrize("behind", ["", "e", "\u0301", "é", "漢", "ﬁ", " \u0301", "\U0001f642"])
def test_every_lane_boundary_equals_the_reference(length: int, behind: str) -> None:
    """A character after a run of ASCII may change its last letter, at any position in a lane."""
    shingler = mw.Shingler("word:1")
    for run in (repeat_to(ASCII, length), "x" * length):
        assert_equals_reference(run + behind + "tail", shingler)


@pytest.mark.parametrize("unit", ["x", "é", "e\u0301", "\u0301", "漢", "ﷺ", "ก\u0e49", "\u1100\u1161\u11a8", "x "])
@pytest.mark.parametrize("shingle", ["word:1", "word:3", "char:2", "byte:5"])
def test_huge_repetition_equals_the_reference(unit: str, shingle: str) -> None:
    """A unit repeated ten thousand times, as a set and as a bag."""
    for bag in (False, True):
        assert_equals_reference(unit * 10_000, mw.Shingler(shingle, bag=bag))


@pytest.mark.parametrize(
    "switch", ["default", "nfkc", "strip_accents", "lowercase", "strip_punctuation", "mask_digits"]
)
@pytest.mark.parametrize("kind", ["word", "char"])
def test_every_character_equals_the_reference(kind: str, switch: str) -> None:
    """Each character, between letters and before an accent, under the defaults and under each option alone."""
    off: dict[str, Any] = dict.fromkeys(("nfkc", "lowercase", "collapse_whitespace"), False)
    shingler = mw.Shingler(f"{kind}:1", **({} if switch == "default" else {**off, switch: True}))
    documents = [
        "\n".join(f"a{c}b {c}\u0301c" for c in CHARACTERS[i : i + 1024]) for i in range(0, len(CHARACTERS), 1024)
    ]
    sets = shingler.shingle(documents)
    for number, document in enumerate(documents):
        np.testing.assert_array_equal(sets[number], reference.shingle_hashes(document, **shingler.settings))
