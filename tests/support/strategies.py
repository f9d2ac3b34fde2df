"""Hypothesis strategies: texts of all scripts, shingle settings, and sets of elements."""

import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import minwise as mw
from minwise import _kernel, reference

Words = NDArray[np.uint64]
Options = dict[str, bool]

WORD = 2**64 - 1
KINDS = ("word", "char", "byte")
SIZES = (1, 2, 3, 5, 9)
SLOT_COUNTS = (1, 2, 3, 7, 64, 100, 256)
BITS = (1, 2, 4, 8, 16, 32)
SWITCHES = ("nfkc", "strip_accents", "lowercase", "strip_punctuation", "mask_digits", "collapse_whitespace")
ASSIGNED = 0x40  # bit of the character properties of the kernel: assigned in its Unicode version

# 64 bytes are classified at once and the scratch buffer has 8,192: both limits, from both sides.
LANE_LENGTHS = (15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193)
SCRATCH_LENGTHS = (8190, 8191, 8192, 8193, 8194, 8255, 8256, 8257)

# Scraps of text, separated by bars: spaces and signs, Latin, lone marks, case, Han and kana, half and full width,
# scripts without spaces, Hangul, Arabic and Hebrew, Indic, compatibility forms, emoji and unassigned code points.
SCRAPS = tuple(
    "|".join(
        (
            "| |  |\t\n|\u00a0|\u3000|\u2028|\u0085|\x00|\x7f|_|-|.|'|…|$|¬",
            "a|Z|é|e\u0301|E\u0301\u0323|E\u0323\u0301|ß|ẞ|ø|\u00c5|\u212b|ŉ|ǰ|ﬁ|ﬃ|ſ|ẛ\u0323",
            "\u0301|\u0323\u0301|\u0301\u0323|\u0345|\u0308\u0301|\u034f|\u0338|\u20dd|\ufe0f|\u200d",
            "İ|i\u0307|ı|Σ|ΑΣ|ς|ΰ|ᾳ|ᾼ|ͺ|΄|\u1fbd|Ж|й|и\u0306|Ѐ|Ა|Ⴀ|Ꭰ|ꭰ",
            "漢|字|\uf900|⼀|㊀|㋐|㍿|㌀|𠀀|𪘀|々|〇|㈠|ひ|ら|が|か\u3099|゛|ー|ヷ",
            "ﾊ|ﾊﾞ|ﾊﾟ|ｱ|ﾞ|ｰ|Ａ|ｚ|９|！|￥|￢|ﾡ|ￂ",
            "ก|ที่|น้ำ|ำ|๑|ລ|ລາວ|ຳ|ໜ|໑|ខ្មែរ|ក|១|မက|မြန်မာ|၁|ေ",
            "각|가|\u1100|\u1161|\u11a8|\u1100\u1161\u11a8|가\u11a8|\u1160|ㄱ|ㅏ|ﾠ|㉠|㈀",
            "مَرْحَبًا|\u064b\u0651|\u0651\u064b|\u0655\u0654|ﷺ|ﷲ|ﻻ|٣|۴|א\u05b8\u05bc|ש\u05c1|\ufb2a|\ufb1d",
            "क्षि|क\u093c|\u0958|ক\u09cb|\u09c7\u09be|தெ|\u0b92\u0bd7|ശ്രീ|\u0dd9\u0dcf\u0dca|བོད|\u0f73|\u0f71\u0f72",
            "½|⅓|①|⑳|Ⅷ|ⅷ|²|㎏|℡|™|𝔸|𝟘|🄰|🈁|㏒|\U0001d15e|\U0001d165",
            "🙂|👩‍👩‍👧|🇩🇪|👍🏽|❤️|1️⃣|\U000e0067|\ufeff|\u00ad|\u200b|\u061c|\ufffd|\ufffe|\U0010ffff",
        )
    ).split("|")
)
ASCII = "The quick brown fox, 42 TIMES over_the lazy dog; pneumonoultramicroscopicsilicovolcanoconiosis\n\tand-so-on. "
# Blocks that interact in normalisation or are tokenised specially; drawn at random in addition to the scraps.
BLOCKS = (
    "0-7f a0-24f 300-36f 370-52f 590-6ff 900-dff e00-fff 1000-109f 1100-11ff 1780-17ff 1ab0-1aff 1dc0-1fff "
    "2000-24ff 2e80-33ff a640-abff ac00-ac80 f900-ffff 10a00-11fff 1d100-1d7ff"
)

ORACLES: dict[str, Callable[[Any, int, int], NDArray[Any]]] = {
    "minhash": reference.minhash_sketch,
    "fast": reference.fast_sketch,
    "oph": reference.one_permutation_sketch,
    "oph+rotation": lambda elements, bins, seed: reference.one_permutation_sketch(elements, bins, seed, "rotation"),
    "oph+optimal": lambda elements, bins, seed: reference.one_permutation_sketch(elements, bins, seed, "optimal"),
}
SCHEMES = tuple(ORACLES)
MERGING = ("minhash", "fast", "oph")
DENSE = ("minhash", "fast", "oph+rotation", "oph+optimal")


def effort(share: float) -> settings:
    """Return settings with a multiple of the examples of the profile, for laws that cost less or more than others."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))


def shingle_sets(*sets: Any) -> mw.ShingleSets:  # noqa: ANN401 - lists, sets or arrays of words
    """Return shingle sets of given elements, without hashing, in the order given."""
    arrays = [np.array(list(elements), dtype=np.uint64) for elements in sets]
    offsets = np.cumsum([0, *map(len, arrays)])
    return mw.ShingleSets(offsets, np.concatenate([np.empty(0, dtype=np.uint64), *arrays]))


def portable_shingler(shingler: mw.Shingler) -> _kernel.Shingler:
    """Return a kernel shingler without SIMD."""
    switches = asdict(shingler)
    del switches["spec"]
    return _kernel.Shingler(kind=shingler.kind, size=shingler.size, simd=False, **switches)


@cache
def is_settled(character: str) -> bool:
    """Return whether a character is assigned both in the Unicode version of the kernel and in that of Python."""
    known = reference.character_properties()[ord(character)] & ASSIGNED
    return bool(known) and unicodedata.category(character) != "Cn"


def settle(text: str) -> str:
    """Return the text without the characters whose normalisation may differ between the two Unicode versions."""
    return "".join(character for character in text if is_settled(character))


def repeat_to(unit: str, length: int) -> str:
    """Return the unit repeated and cut to a number of characters."""
    return (unit * (length // len(unit) + 1))[:length]


def block_text(block: str) -> st.SearchStrategy[str]:
    """Return short texts of the characters first-last, given in hexadecimal."""
    first, last = (int(code, 16) for code in block.split("-"))
    return st.text(st.characters(min_codepoint=first, max_codepoint=last, exclude_categories=["Cs"]), max_size=8)


seeds = st.just(1) | st.integers(0, WORD)
elements = st.sets(st.integers(0, WORD) | st.sampled_from((0, 1, 2**32 - 1, 2**32, WORD - 1, WORD)), max_size=300)
scraps = st.sampled_from(SCRAPS)
ascii_runs = st.builds(
    lambda start, length: repeat_to(ASCII[start:] + ASCII[:start], length),
    st.integers(0, len(ASCII) - 1),
    st.sampled_from(LANE_LENGTHS) | st.integers(1, 40),
)
wild = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
blocks = st.sampled_from(BLOCKS.split()).flatmap(block_text)
repetitions = st.builds(lambda unit, times: unit * times, scraps, st.integers(2, 70))
pieces = scraps | scraps | ascii_runs | blocks | wild | repetitions
texts = st.lists(pieces, max_size=12).map("".join)
long_runs = st.builds(repeat_to, st.sampled_from(("x", "X", " ", "x ", ASCII)), st.sampled_from(SCRATCH_LENGTHS))
long_texts = st.tuples(st.lists(pieces, max_size=3).map("".join), long_runs, texts).map("".join)
options: st.SearchStrategy[Options] = st.fixed_dictionaries({name: st.booleans() for name in SWITCHES}) | st.just({})


@st.composite
def shinglers(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, bag: bool | None = None) -> mw.Shingler:
    """Draw a shingler with any settings."""
    kind = draw(st.sampled_from(kinds))
    return mw.Shingler(
        f"{kind}:{draw(st.sampled_from(SIZES))}",
        bag=draw(st.booleans()) if bag is None else bag,
        hash_bits=draw(st.sampled_from((64, 64, 32))),
        seed=draw(seeds),
        **({} if kind == "byte" else draw(options)),
    )


def comparable(text: str, shingler: mw.Shingler) -> str:
    """Return the text as far as Python and the kernel must agree on it: all of it, unless it is to be composed."""
    return settle(text) if shingler.kind != "byte" and (shingler.nfkc or shingler.strip_accents) else text
