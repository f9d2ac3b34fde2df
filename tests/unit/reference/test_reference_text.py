"""Reference normalisation, tokens, shingles and spans, on small examples and on all of Unicode."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise import reference as ref
from minwise.errors import ConfigError, InputError


def drop_unassigned(text: str) -> str:
    """Return the text without characters that the Unicode version of the kernel does not define; newer Pythons may."""
    return "".join(character for character in text if ref.character_properties()[ord(character)] & 0x40)


texts = st.text(max_size=40).map(drop_unassigned)
steps = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in (
            "nfkc",
            "strip_accents",
            "lowercase",
            "strip_punctuation",
            "mask_digits",
            "collapse_whitespace",
        )
    }
)


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("ﬁne ＡＢ①", {}, "fine ab1"),
        ("ﬁne Ａ", {"nfkc": False, "lowercase": False}, "ﬁne Ａ"),
        ("Crème Brûlée", {"strip_accents": True}, "creme brulee"),
        ("ΟΔΟΣ", {}, "οδοσ"),
        ("İ", {}, "i\u0307"),
        ("a-b, c!", {"strip_punctuation": True}, "ab c"),
        ("t\u0663 = 42", {"mask_digits": True}, "t0 = 00"),
        (" a\u2003\n b\t", {}, "a b"),
        (" a\n b\t", {"collapse_whitespace": False}, " a\n b\t"),
        ("", {}, ""),
        (" \n", {}, ""),
    ],
)
def test_normalise(text: str, settings: dict[str, bool], expected: str) -> None:
    """Each step on a text that needs it."""
    assert ref.normalise(text, **settings) == expected


@given(text=texts, settings=steps)
def test_characters_with_offsets_are_the_normalised_text(text: str, settings: dict[str, bool]) -> None:
    """Normalising segment by segment equals normalising the whole text, which spans rely on."""
    placed = ref.normalise_with_offsets(text, **settings)
    assert "".join(item.character for item in placed) == ref.normalise(text, **settings)
    assert [item.start for item in placed] == sorted(item.start for item in placed)
    assert all(0 <= item.start < item.end <= len(text) for item in placed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop_now 3.14", ["don", "t", "stop", "now", "3", "14"]),
        ("日本語 text", ["日", "本", "語", "text"]),
        ("ab漢字cd", ["ab", "漢", "字", "cd"]),
        ("กำลัง", ["ก\u0e4d", "า", "ล\u0e31", "ง"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("x\u0332y \u0332z", ["x\u0332y", "z"]),
        ("漢\u0301a", ["漢\u0301", "a"]),
        ("🙂🙃", []),
        ("a🙂b", ["a", "b"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Scripts with and without spaces, marks with and without a letter."""
    assert ref.tokens(text) == expected


def test_characters_and_bytes() -> None:
    """Characters are normalised, bytes never."""
    assert ref.tokens("A é", "char") == ["a", " ", "é"]
    assert ref.tokens("Aé", "byte") == ["41", "c3", "a9"]
    assert ref.tokens(b"\xff\x00", "byte") == ["ff", "00"]


def test_shingle_hash_by_hand() -> None:
    """A mixed sum of two hashed words; a text that is too short is one shingle."""
    one, two = (ref.hash_bytes(word, ref.Domain.TOKEN, seed=9) for word in (b"one", b"two"))
    expected = ref.mix(one * 0xE7037ED1A0B428DB + two)
    assert ref.shingle_hashes("One, two!", "word:2", seed=9).tolist() == [expected]
    assert ref.shingle_hashes("One, two!", "word:5", seed=9).tolist() == [expected]
    assert ref.shingle_hashes("One, two!", "word:2", seed=9, hash_bits=32).tolist() == [expected & 0xFFFFFFFF]


def test_a_text_without_tokens_has_no_elements() -> None:
    assert len(ref.shingle_hashes("... !", "word:3")) == 0
    assert ref.spans(b"", "byte:3") == []


@pytest.mark.parametrize("bits", [32, 64])
def test_repetitions_in_a_bag_are_numbered(bits: int) -> None:
    """The first occurrence stays, the next are numbered in text order."""
    (x,) = ref.shingle_hashes("a a a", "word:1", hash_bits=bits).tolist()
    further = [ref.mix(x + i * 0x9E3779B97F4A7C15) & (2**bits - 1) for i in (1, 2)]
    assert ref.shingle_hashes("a a a", "word:1", bag=True, hash_bits=bits).tolist() == sorted([x, *further])
    assert [span.element for span in ref.spans("a a a", "word:1", bag=True, hash_bits=bits)] == [x, *further]


@given(
    text=texts,
    kind=st.sampled_from(["word", "char"]),
    size=st.integers(1, 4),
    bag=st.booleans(),
    bits=st.sampled_from([32, 64]),
    settings=steps,
)
def test_spans_hold_the_elements_of_the_document(
    text: str, kind: str, size: int, bag: bool, bits: int, settings: dict[str, bool]
) -> None:
    """One span per shingle, and no element without a span."""
    shingle = f"{kind}:{size}"
    found = ref.spans(text, shingle, bag=bag, hash_bits=bits, **settings)
    elements = ref.shingle_hashes(text, shingle, bag=bag, hash_bits=bits, **settings)
    assert sorted({span.element for span in found}) == elements.tolist()
    assert len(found) == len(ref.shingle_strings(text, shingle, **settings))


def test_spans_point_into_the_original_text() -> None:
    text = "  ﬁne, Cafe\u0301 — ＡＢ "
    pieces = [text[span.start : span.end] for span in ref.spans(text, "word:2")]
    assert pieces == ["ﬁne, Cafe\u0301", "Cafe\u0301 — ＡＢ"]
    assert [(span.start, span.end) for span in ref.spans("é!", "byte:2")] == [(0, 2), (1, 3)]


def test_spans_without_composition_are_single_characters() -> None:
    """A mark has its own span when nothing composes."""
    found = ref.spans("e\u0301", "char:1", nfkc=False)
    assert [(span.start, span.end) for span in found] == [(0, 1), (1, 2)]


@given(text=texts)
def test_canonically_equal_texts_have_equal_shingles(text: str) -> None:
    """NFKC makes a text and its decomposition equal."""
    decomposed = unicodedata.normalize("NFD", text)
    np.testing.assert_array_equal(ref.shingle_hashes(text, "char:3"), ref.shingle_hashes(decomposed, "char:3"))


@pytest.mark.parametrize("shingle", ["word", "word:0", "line:3", "char:-1", "char:two", "byte:²", ""])
def test_unknown_shingles_are_refused(shingle: str) -> None:
    with pytest.raises(ConfigError, match="shingle must be"):
        ref.parse_shingle(shingle)


def test_invalid_texts_and_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="never normalised"):
        ref.shingle_hashes("a", "byte:1", lowercase=False)
    with pytest.raises(ConfigError, match="hash_bits must be 32 or 64, got 16"):
        ref.shingle_hashes("a", hash_bits=16)
    with pytest.raises(ConfigError, match="kind must be"):
        ref.tokens("a", "line")
    with pytest.raises(InputError, match="invalid byte at 1"):
        ref.shingle_hashes(b"a\xff", "word:1")
    with pytest.raises(InputError, match="lone surrogate"):
        ref.shingle_hashes("\ud800", "char:1")
