"""Shinglers and shingle sets: settings, words of many scripts, normalisation, and sets given directly."""

import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.sketches import containment
from minwise.text.shingling import MAX_SIZE


def passages(shingler: mw.Shingler, text: str) -> list[str]:
    """Return the part of the text covered by each shingle."""
    spans = shingler.spans(text)
    return [text[start:end] for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)]


def words(text: str) -> list[str]:
    """Return the words of a text as they are written in it."""
    return passages(mw.Shingler("word:1"), text)


def each(sets: Any) -> list[Any]:  # noqa: ANN401 - anything that can be looped over
    """Return every set, by iteration."""
    return list(sets)


def equal(left: str | bytes, right: str | bytes, shingler: mw.Shingler) -> bool:
    """Return whether two texts have the same shingles."""
    sets = shingler.shingle([left, right])
    return np.array_equal(sets[0], sets[1])


@pytest.mark.parametrize(
    "spec",
    [
        *("word:0", "word", "word:", "word:-1", "word:+5", "word:1e3", "word:5.0", "word:５", "word:05", "word:5:5"),
        *("wort:5", "WORD:5", " word:5", "word:5 ", "", ":", f"word:{MAX_SIZE + 1}", "char:" + "9" * 5000),
        *(5, None, b"word:5"),
    ],
    ids=lambda spec: repr(spec)[:20],
)
def test_invalid_shingles_are_refused(spec: Any) -> None:  # noqa: ANN401 - anything
    """Also another spelling of a size, because settings are compared as text."""
    found = error_message(ConfigError, lambda: mw.Shingler(spec))
    assert found.startswith(f"shingle must be word:N, char:N or byte:N with N from 1 to {MAX_SIZE}, got ")
    assert repr(spec)[:50] in found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hash_bits": 16}, "hash_bits must be one of 64, 32, got 16"),
        ({"hash_bits": "64"}, "hash_bits must be one of 64, 32, got '64'"),
        ({"hash_bits": 64.0}, "hash_bits must be one of 64, 32, got 64.0"),
        ({"seed": -1}, "seed must be a whole number from 0 to 18446744073709551615, got -1"),
        ({"seed": 2**64}, f"seed must be a whole number from 0 to 18446744073709551615, got {2**64}"),
        ({"seed": 1.0}, "seed must be a whole number from 0 to 18446744073709551615, got 1.0"),
        ({"seed": "1"}, "seed must be a whole number from 0 to 18446744073709551615, got '1'"),
        ({"seed": True}, "seed must be a whole number from 0 to 18446744073709551615, got True"),
        ({"bag": "yes"}, "bag must be one of True, False, got 'yes'"),
        ({"bag": None}, "bag must be one of True, False, got None"),
        ({"bag": 1}, "bag must be one of True, False, got 1"),
        ({"lowercase": 0}, "lowercase must be one of True, False, got 0"),
        ({"nfkc": "no"}, "nfkc must be one of True, False, got 'no'"),
    ],
    ids=str,
)
def test_invalid_settings_are_refused_by_the_constructor(settings: dict[str, Any], message: str) -> None:
    assert error_message(ConfigError, lambda: mw.Shingler(**settings)) == message


@pytest.mark.parametrize(
    "option",
    [
        *({"nfkc": False}, {"lowercase": False}, {"collapse_whitespace": False}),
        *({"strip_accents": True}, {"strip_punctuation": True}, {"mask_digits": True}),
    ],
    ids=str,
)
def test_byte_shingles_refuse_every_normalisation_option(option: dict[str, Any]) -> None:
    (name,) = option
    found = error_message(ConfigError, lambda: mw.Shingler("byte:8", **option))
    assert found == f"{name} must be left out with 'byte:8': byte shingles are never normalised"


def test_the_whole_range_of_seeds_works() -> None:
    sets = [mw.Shingler(seed=seed).shingle(["one two"])[0] for seed in (0, 1, 2**63, 2**64 - 1)]
    assert len(np.unique(np.concatenate(sets))) == 4


def test_numpy_integers_become_plain_settings() -> None:
    plain, numpy = mw.Shingler(seed=5), mw.Shingler(seed=np.int64(5))  # type: ignore[arg-type]
    assert plain == numpy
    assert type(numpy.settings["seed"]) is int
    np.testing.assert_array_equal(plain.shingle(["a b"])[0], numpy.shingle(["a b"])[0])


def test_a_shingler_is_a_hashable_frozen_value() -> None:
    shingler = mw.Shingler("char:9", bag=True)
    assert shingler == mw.Shingler("char:9", bag=True)
    assert hash(shingler) == hash(mw.Shingler("char:9", bag=True))
    assert (shingler.kind, shingler.size) == ("char", 9)
    assert shingler.settings["shingle"] == "char:9"
    with pytest.raises(AttributeError):
        shingler.bag = False  # type: ignore[misc]


# A text, and its words as they are written in it.
WORDS: list[tuple[str, list[str]]] = [
    ("the 2nd cat", ["the", "2nd", "cat"]),
    ("don't stop", ["don", "t", "stop"]),
    ("snake_case", ["snake", "case"]),
    ("1,234.5 C++", ["1", "234", "5", "C"]),
    ("a\u00a0b\u2003c\u200bd", ["a", "b", "c", "d"]),
    ("\ufeffstart", ["start"]),
    ("nul\x00nul", ["nul", "nul"]),
    # scripts written without spaces: a word per character, with its marks
    ("港の朝", ["港", "の", "朝"]),
    ("カメラ", ["カ", "メ", "ラ"]),
    ("日本語abc漢字", ["日", "本", "語", "abc", "漢", "字"]),
    ("龍龜々〇", ["龍", "龜", "々", "〇"]),
    ("\U00020000\U0002a6d6", ["\U00020000", "\U0002a6d6"]),
    ("か\u3099き", ["か\u3099", "き"]),
    ("ｶﾞｷﾞ", ["ｶﾞ", "ｷﾞ"]),
    ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
    ("ที่นี่", ["ที่", "นี่"]),
    ("ກຸງ", ["ກຸ", "ງ"]),
    ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្", "មែ", "រ"]),
    ("မြန်မာ", ["မြ", "န်", "မာ"]),
    # scripts with spaces
    ("Привет, мир", ["Привет", "мир"]),
    ("السلام عليكم", ["السلام", "عليكم"]),
    ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
    ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
    ("가나다 하하", ["가나다", "하하"]),
    # marks
    ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
    ("e\u0301\u0323x", ["e\u0301\u0323x"]),
    ("\u0301abc", ["abc"]),
    ("a \u0301 b", ["a", "b"]),
    # emoji and symbols separate
    ("👩‍👩‍👧 ok 🏳️‍🌈", ["ok"]),
    ("good👍job", ["good", "job"]),
    ("🇩🇪", []),
    # one character that normalisation turns into several words
    ("½", ["½", "½"]),
    ("", []),
    ("!? …", []),
]


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=lambda value: ascii(value)[:40])
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    """The words are the parts of the text under the spans."""
    assert words(text) == expected


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=lambda value: ascii(value)[:40])
def test_shingle_and_spans_find_the_same_words(text: str, expected: list[str]) -> None:
    shingler = mw.Shingler("word:1")
    np.testing.assert_array_equal(shingler.shingle([text])[0], np.unique(shingler.spans(text).hashes))
    assert len(shingler.spans(text).hashes) == len(expected)


ALIKE: dict[str, tuple[str, str]] = {
    "full-width": ("ＡＢＣ　ｄｅｆ　１２", "abc def 12"),
    "half-width katakana": ("ｶﾒﾗ", "カメラ"),
    "ligature": ("ﬁne ﬂow", "fine flow"),
    "case": ("ÄRGER STRAẞE Σ", "ärger straße σ"),
    "mathematical letters": ("𝕏 𝐚", "x a"),
    "Roman numeral": ("Ⅳ", "iv"),
    "superscript": ("x²", "x2"),
    "Ångström": ("\u212b", "\u00e5"),
    "Hebrew with its dot": ("\ufb2a", "\u05e9\u05c1"),
    "Devanagari with its dot": ("\u0958", "\u0915\u093c"),
    "white space": ("a \t\r\n b\u3000c", "a b c"),
}


@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("spec", ["word:2", "char:3"])
def test_default_normalisation_makes_spellings_equal(kind: str, spec: str) -> None:
    assert equal(*ALIKE[kind], mw.Shingler(spec))


@pytest.mark.parametrize("text", ["Fähre über Öland", "Việt Nam đẹp", "が ぎ ぐ", "한국어", "ά έ ή"])
@pytest.mark.parametrize("spec", ["word:2", "char:3"])
def test_nfc_and_nfd_texts_are_equal(text: str, spec: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert equal(composed, decomposed, mw.Shingler(spec))
    assert not equal(composed, decomposed, mw.Shingler("byte:3"))


@pytest.mark.parametrize(
    ("option", "left", "right"),
    [
        ({"lowercase": False}, "Word", "word"),
        ({"nfkc": False}, "ＡＢ", "ab"),
        ({"strip_accents": True}, "café", "cafe"),
        ({"strip_punctuation": True}, "don't", "dont"),
        ({"mask_digits": True}, "page 17", "page 93"),
        ({"collapse_whitespace": False}, "a  b", "a b"),
    ],
    ids=str,
)
def test_every_normalisation_option_has_its_effect(option: dict[str, Any], left: str, right: str) -> None:
    """Two texts that are equal with one value of the option and different with the other."""
    (value,) = option.values()
    assert equal(left, right, mw.Shingler("char:3", **option)) is value
    assert equal(left, right, mw.Shingler("char:3")) is not value


@pytest.mark.parametrize(
    ("spec", "text", "shingles"),
    [
        ("word:5", "one two three", ["one two three"]),
        ("word:5", "  one ", ["one"]),
        ("word:3", "one two three", ["one two three"]),
        ("word:3", "one two three four", ["one two three", "two three four"]),
        ("word:2", "To be, or not", ["To be", "be, or", "or not"]),
        ("char:9", "short", ["short"]),
        ("char:2", "abc", ["ab", "bc"]),
        ("char:3", "a  b", ["a  b"]),
        ("char:2", " ab ", ["ab"]),
        ("byte:8", "abc", ["abc"]),
        ("byte:2", "abc", ["ab", "bc"]),
    ],
)
def test_windows_over_tokens(spec: str, text: str, shingles: list[str]) -> None:
    """One shingle per window; a single one of all tokens if they fill none."""
    assert passages(mw.Shingler(spec), text) == shingles


def test_a_short_document_has_one_shingle_of_its_own_length() -> None:
    """Three words are the same shingle for word:3 and word:5."""
    text = ["one two three"]
    np.testing.assert_array_equal(mw.Shingler("word:5").shingle(text)[0], mw.Shingler("word:3").shingle(text)[0])


@pytest.mark.parametrize(
    ("spec", "text"),
    [("word:5", ""), ("word:5", "  \n"), ("word:5", "!?"), ("char:9", ""), ("char:9", " \t "), ("byte:8", "")],
)
def test_documents_without_a_token_are_empty(spec: str, text: str) -> None:
    """The empty set, not a set with an empty shingle."""
    sets = mw.Shingler(spec).shingle([text, "words", text])
    assert [len(elements) for elements in each(sets)] == [0, 1, 0]
    assert len(mw.Shingler(spec).spans(text).hashes) == 0


def test_byte_spans_count_bytes() -> None:
    spans = mw.Shingler("byte:2").spans("é!")
    assert spans.starts.tolist() == [0, 1]
    assert spans.ends.tolist() == [2, 3]


def test_sets_are_ascending_and_distinct() -> None:
    found = mw.Shingler("word:2").shingle(["row row row your boat " * 50])[0]
    assert found.dtype == np.uint64
    assert np.all(found[1:] > found[:-1])
    assert len(found) == 4


def test_a_bag_counts_repetitions() -> None:
    """4 'a' and 2 'a' have the multiset similarity 2/4, and a bag contains its set."""
    bag = mw.Shingler("word:1", bag=True).shingle(["a a a a", "a a"])
    assert [len(elements) for elements in each(bag)] == [4, 2]
    assert mw.jaccard(bag[0], bag[1]) == 0.5
    assert containment(mw.Shingler("word:1").shingle(["a"])[0], bag[1]) == 1


def test_spans_of_a_bag_are_its_elements() -> None:
    shingler = mw.Shingler("word:1", bag=True)
    spans = shingler.spans("a b a a b")
    np.testing.assert_array_equal(np.sort(spans.hashes), shingler.shingle(["a b a a b"])[0])
    assert len(set(spans.hashes.tolist())) == 5


@pytest.mark.parametrize("bag", [False, True])
def test_32_bit_hashes_are_the_low_half(bag: bool) -> None:
    """Repetitions in a bag are numbered after narrowing, but stay narrow."""
    text = ["one two three one two three"]
    narrow = mw.Shingler("word:2", hash_bits=32, bag=bag).shingle(text)[0]
    wide = mw.Shingler("word:2").shingle(text)[0]
    assert narrow.dtype == np.uint64
    assert int(narrow.max()) < 2**32
    assert np.isin(wide & np.uint64(2**32 - 1), narrow).all()


def test_the_result_does_not_depend_on_threads() -> None:
    """On a batch of many tasks."""
    texts = [f"document {number} " * 400 for number in range(300)]
    one, two = (mw.Shingler("word:3").shingle(texts, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.offsets, two.offsets)
    np.testing.assert_array_equal(one.hashes, two.hashes)


@pytest.fixture
def sets() -> mw.ShingleSets:
    """Sets of three, zero and one element."""
    return mw.ShingleSets.from_sets([[3, 5, "x"], [], [b"y"]])


def test_sets_are_a_sequence(sets: mw.ShingleSets) -> None:
    assert len(sets) == 3
    assert [len(elements) for elements in each(sets)] == [3, 0, 1]
    assert sets.sizes.tolist() == [3, 0, 1]
    for number in range(3):
        np.testing.assert_array_equal(sets[number], sets[number - 3])
    last: Any = np.int64(2)
    np.testing.assert_array_equal(sets[last], sets[2])
    assert repr(sets) == "ShingleSets(3 documents, 4 elements, shingle='set')"


@pytest.mark.parametrize("number", [3, -4, 2**70])
def test_an_unknown_set_number_is_an_index_error(sets: mw.ShingleSets, number: int) -> None:
    with pytest.raises(IndexError, match=f"no document {number} among 3"):
        sets[number]


@pytest.mark.parametrize("number", [1.0, "1", None])
def test_a_set_number_that_is_not_an_integer_is_a_type_error(sets: mw.ShingleSets, number: Any) -> None:  # noqa: ANN401 - anything
    with pytest.raises(TypeError, match="integer"):
        sets[number]


def test_a_set_is_a_view(sets: mw.ShingleSets) -> None:
    assert np.shares_memory(sets[0], sets.hashes)


def test_to_arrow_shares_memory(sets: mw.ShingleSets) -> None:
    column = sets.to_arrow()
    assert column.type == pa.large_list(pa.uint64())
    assert column.to_pylist() == [elements.tolist() for elements in each(sets)]
    assert column.values.buffers()[1].address == sets.hashes.ctypes.data
    assert column.buffers()[1].address == sets.offsets.ctypes.data


def test_an_empty_collection_of_sets() -> None:
    none = mw.ShingleSets.from_sets([])
    assert len(none) == 0
    assert none.to_arrow().to_pylist() == []
    with pytest.raises(IndexError, match="no document 0 among 0"):
        none[0]


@pytest.mark.parametrize(
    ("offsets", "hashes"),
    [([0, 5], [1]), ([-1, 1], [1]), ([], [1]), ([0, 2, 1, 3], [1, 2, 3]), ([[0, 1]], [1])],
    ids=str,
)
def test_invalid_offsets_are_refused_by_the_constructor(offsets: list[Any], hashes: list[int]) -> None:
    """So that no later read is outside the arrays."""
    arrays = np.array(offsets, dtype=np.int64), np.array(hashes, dtype=np.uint64)
    assert "offsets must" in error_message(InputError, lambda: mw.ShingleSets(*arrays))


def test_integers_strings_and_bytes_differ() -> None:
    """3, "3" and b"3" are three elements; so are 1 and 2**64 + 1."""
    sets = mw.ShingleSets.from_sets([[3, "3", b"3"], [1, 2**64 + 1, 2**128 + 1, -1, 2**64 - 1]])
    assert [len(elements) for elements in each(sets)] == [3, 5]


@pytest.mark.parametrize(
    "same",
    [
        [
            [3],
            [np.int8(3)],
            [np.uint64(3)],
            np.array([3]),
            np.array([3], dtype=np.uint8),
            (3,),
            {3},
            iter([3]),
            range(3, 4),
        ],
        [[1], [True], [np.bool_(True)]],
        [[2**63], np.array([2**63], dtype=np.uint64), [np.uint64(2**63)]],
        [["x"], {"x"}, [np.str_("x")], np.array(["x"]), {"x": 0}, ["x", "x"]],
        [[-1, "a"], ["a", -1, -1]],
        [[2**70, 3], [3, 2**70]],
    ],
    ids=lambda same: str(same[0]),
)
def test_the_type_of_collections_and_numbers_does_not_change_elements(same: list[Any]) -> None:
    sets = mw.ShingleSets.from_sets(same)
    for elements in each(sets):
        np.testing.assert_array_equal(elements, sets[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1], [1.5]], "set 1 holds a float; elements must be integers, strings or bytes"),
        ([[None]], "set 0 holds a NoneType; elements"),
        ([[(1, 2)]], "set 0 holds a tuple; elements"),
        ([[1], [["a"]]], "set 1 holds a list; elements"),
        ([np.array([1.5])], "set 0 holds a float64; elements"),
        ([np.array([[1, 2], [3, 4]])], "set 0"),
        ([np.array(3)], "set 0"),
        ([[1], "abc"], "set 1 must be a collection of elements, got str"),
        ([b"abc"], "set 0 must be a collection of elements, got bytes"),
        ([[1], 3], "set 1 must be a collection of elements, got int"),
        ([None], "set 0 must be a collection of elements, got NoneType"),
        ([["a\ud800"]], "set 0 holds a string that is not valid Unicode: 'a\\ud800'"),
        ("abc", "set"),
        (5, "sets must be"),
        (None, "sets must be"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_invalid_members_are_refused(given: Any, message: str) -> None:  # noqa: ANN401 - anything
    """The message contains the number of the set and the type of the member."""
    assert error_message(InputError, lambda: mw.ShingleSets.from_sets(given)).startswith(message)


def test_the_seed_of_sets_changes_settings_and_elements() -> None:
    one, two = (mw.ShingleSets.from_sets([[3, "x"]], seed=seed) for seed in (1, 2))
    assert len(np.intersect1d(one[0], two[0])) == 0
    assert one.settings == {"shingle": "set", "seed": 1}
    assert "seed must be" in error_message(ConfigError, lambda: mw.ShingleSets.from_sets([[3]], seed=-1))
