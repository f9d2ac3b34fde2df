"""Normalised text, tokens and shingles; specifies the text stages of the kernel (DESIGN, appendix, "Text → tokens").

Five of the six normalisation steps rewrite a normalisation segment, which is a starting character and all that composes
with it, independently of its neighbours. So the same code normalises a whole text (`normalise`) and a text segment by
segment (`normalise_with_offsets`), which gives the offsets of each normalised character in the original.

Character properties come from the tables of the kernel, because those of Python may be of another Unicode version. Only
NFKC, NFD and NFC are Python's.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from minwise.errors import ConfigError, InputError
from minwise.reference.hashing import GOLDEN, Domain, Words, encode, hash_bytes, mix, mix_words

__all__ = [
    "Normalisation",
    "NormalisedCharacter",
    "Span",
    "character_properties",
    "normalise",
    "normalise_with_offsets",
    "parse_shingle",
    "shingle_hashes",
    "shingle_strings",
    "spans",
    "tokens",
]

# Bits of the character properties exported by the kernel.
TOKEN_CLASS = 0x03
WHITE_SPACE = 0x04
PUNCTUATION_OR_SYMBOL = 0x08
DECIMAL_DIGIT = 0x10
STARTS_SEGMENT = 0x20
# Values of TOKEN_CLASS.
SEPARATOR, WORD_CHARACTER, MARK, CHARACTER_TOKEN = range(4)

KINDS = ("word", "char", "byte")
# Multiplier of the rolling sum. M − 1 is divisible by two only once, so swapping neighbours loses one bit, not several.
MULTIPLIER = 0xE7037ED1A0B428DB


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """Normalisation steps, applied in this order.

    Attributes:
        nfkc: Replace compatibility variants (ﬁ, Ａ, ①) and compose (NFKC).
        strip_accents: Remove U+0300–U+036F from the canonical decomposition, and recompose.
        lowercase: Lower-case each character by itself: a Greek sigma is σ at the end of a word too.
        strip_punctuation: Remove punctuation and symbols (P*, S*).
        mask_digits: Replace every decimal digit (Nd) by 0.
        collapse_whitespace: Replace a run of white space by one space, and strip both ends.
    """

    nfkc: bool = True
    strip_accents: bool = False
    lowercase: bool = True
    strip_punctuation: bool = False
    mask_digits: bool = False
    collapse_whitespace: bool = True


class NormalisedCharacter(NamedTuple):
    """Character of the normalised text, and the range of code points of the original text that it replaces."""

    character: str
    start: int
    end: int


def normalise(text: str, **normalisation: bool) -> str:
    r"""Return the text after the steps of `Normalisation`, whose attributes are the keywords.

    >>> normalise("  Ｈello,\tWORLD 42 ", mask_digits=True)
    'hello, world 00'
    """
    steps = Normalisation(**normalisation)
    text = _rewrite(text, steps)
    return _collapse(text) if steps.collapse_whitespace else text


def normalise_with_offsets(text: str, **normalisation: bool) -> list[NormalisedCharacter]:
    r"""Return the characters of `normalise`, each with its range in the original text.

    The range is a normalisation segment, or a single character when nothing composes (``nfkc`` and ``strip_accents``
    both off); the range of a collapsed space is its whole run of white space.

    >>> [tuple(character) for character in normalise_with_offsets("e\u0301 \n!")]
    [('é', 0, 2), (' ', 2, 4), ('!', 4, 5)]
    """
    steps = Normalisation(**normalisation)
    characters = [
        NormalisedCharacter(character, start, end)
        for start, end in _segments(text, composing=steps.nfkc or steps.strip_accents)
        for character in _rewrite(text[start:end], steps)
    ]
    return list(_collapse_characters(characters)) if steps.collapse_whitespace else characters


@cache
def character_properties() -> bytes:
    """Return one byte of properties for each of the 0x110000 code points, from the kernel."""
    from minwise import _kernel

    return _kernel.character_properties()


@cache
def lowercase_table() -> dict[int, str]:
    """Return the lower case of each code point that differs from it, from the kernel."""
    from minwise import _kernel

    return _kernel.lowercase_table()


def _rewrite(text: str, steps: Normalisation) -> str:
    if steps.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if steps.strip_accents:
        bare = "".join(character for character in unicodedata.normalize("NFD", text) if not _is_accent(character))
        text = unicodedata.normalize("NFC", bare)
    if steps.lowercase:
        text = text.translate(lowercase_table())
    if steps.strip_punctuation:
        text = "".join(character for character in text if not _has(character, PUNCTUATION_OR_SYMBOL))
    if steps.mask_digits:
        text = "".join("0" if _has(character, DECIMAL_DIGIT) else character for character in text)
    return text


def _collapse(text: str) -> str:
    spaced = "".join(" " if _has(character, WHITE_SPACE) else character for character in text)
    return " ".join(part for part in spaced.split(" ") if part)


def _collapse_characters(characters: list[NormalisedCharacter]) -> Iterator[NormalisedCharacter]:
    spaces: list[NormalisedCharacter] = []
    started = False
    for character in characters:
        if _has(character.character, WHITE_SPACE):
            spaces.append(character)
            continue
        if spaces and started:
            yield NormalisedCharacter(" ", spaces[0].start, spaces[-1].end)
        spaces, started = [], True
        yield character


def _segments(text: str, *, composing: bool) -> list[tuple[int, int]]:
    starts = [i for i, character in enumerate(text) if i == 0 or not composing or _has(character, STARTS_SEGMENT)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True)) if text else []


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def _has(character: str, flag: int) -> bool:
    return bool(character_properties()[ord(character)] & flag)


class Span(NamedTuple):
    """Element of a shingle and its range in the original text, in code points, or in bytes for ``byte`` shingles."""

    element: int
    start: int
    end: int


class _Token(NamedTuple):
    data: bytes
    start: int
    end: int


def tokens(text: str | bytes, kind: str = "word", **normalisation: bool) -> list[str]:
    """Return the tokens of a text: its words, characters or bytes (each byte as two hexadecimal digits).

    A word is a run of letters, digits and the marks after them; in scripts written without spaces, every character with
    its marks is a word.

    >>> tokens("Don't panic: 漢字!")
    ['don', 't', 'panic', '漢', '字']
    """
    data = _token_bytes(text, kind, normalisation)
    return [token.hex() if kind == "byte" else token.decode() for token in data]


def shingle_strings(text: str | bytes, shingle: str = "word:5", **normalisation: bool) -> list[str]:
    """Return every shingle of a text as a readable string, in text order and with repetitions.

    A text of n tokens has n + 1 − k shingles; one, if it has tokens but fewer than k. Characters are joined directly,
    words and bytes by a space.

    >>> shingle_strings("abcab", "char:2")
    ['ab', 'bc', 'ca', 'ab']
    """
    kind, size = parse_shingle(shingle)
    parts = tokens(text, kind, **normalisation)
    separator = "" if kind == "char" else " "
    return [separator.join(parts[start : start + size]) for start in range(_shingle_count(len(parts), size))]


def shingle_hashes(
    text: str | bytes,
    shingle: str = "word:5",
    *,
    bag: bool = False,
    hash_bits: int = 64,
    seed: int = 1,
    **normalisation: bool,
) -> Words:
    """Return the distinct elements of a document, ascending.

    Args:
        text: The document; bytes are decoded as UTF-8, except for ``byte`` shingles.
        shingle: Kind of token and tokens per shingle: ``word:5``, ``char:9``, ``byte:8``.
        bag: Number the repetitions of a shingle, so that the Jaccard similarity of the elements is that of multisets.
        hash_bits: 64, or 32 to keep only the low half.
        seed: Seed of the hash.
        normalisation: Attributes of `Normalisation`; not allowed with ``byte`` shingles.
    """
    kind, size = parse_shingle(shingle)
    elements = _hash_windows(_token_bytes(text, kind, normalisation), size, hash_bits, seed)
    return np.unique(_number_repetitions(elements, hash_bits) if bag else elements)


def spans(
    text: str | bytes,
    shingle: str = "word:5",
    *,
    bag: bool = False,
    hash_bits: int = 64,
    seed: int = 1,
    **normalisation: bool,
) -> list[Span]:
    """Return the range of every shingle in text order, with repetitions.

    A token extends from the start of its first character to the end of its last, a shingle from the start of its first
    token to the end of its last.

    Args:
        text: The document; bytes are decoded as UTF-8, except for ``byte`` shingles.
        shingle: Kind of token and tokens per shingle: ``word:5``, ``char:9``, ``byte:8``.
        bag: Number the repetitions of a shingle.
        hash_bits: 64, or 32 to keep only the low half.
        seed: Seed of the hash.
        normalisation: Attributes of `Normalisation`; not allowed with ``byte`` shingles.
    """
    kind, size = parse_shingle(shingle)
    parts = _tokens_with_offsets(text, kind, normalisation)
    elements = _hash_windows([token.data for token in parts], size, hash_bits, seed)
    elements = _number_repetitions(elements, hash_bits) if bag else elements
    width = min(size, len(parts))
    return [Span(int(x), parts[i].start, parts[i + width - 1].end) for i, x in enumerate(elements)]


def parse_shingle(shingle: str) -> tuple[str, int]:
    """Return the token kind and the size of a shingle.

    >>> parse_shingle("word:5")
    ('word', 5)
    """
    kind, _, size = shingle.partition(":")
    if kind not in KINDS or not (size.isascii() and size.isdigit()) or int(size) < 1:
        raise ConfigError(f"shingle must be word:k, char:k or byte:k with k at least 1, got {shingle!r}")
    return kind, int(size)


def _token_bytes(text: str | bytes, kind: str, normalisation: dict[str, bool]) -> list[bytes]:
    if kind == "byte":
        return [token.data for token in _byte_tokens(text, normalisation)]
    normalised = normalise(_as_text(text), **normalisation)
    return [encode(normalised[start:end]) for start, end in _token_ranges(normalised, kind)]


def _tokens_with_offsets(text: str | bytes, kind: str, normalisation: dict[str, bool]) -> list[_Token]:
    if kind == "byte":
        return _byte_tokens(text, normalisation)
    characters = normalise_with_offsets(_as_text(text), **normalisation)
    normalised = "".join(item.character for item in characters)
    return [
        _Token(encode(normalised[start:end]), characters[start].start, characters[end - 1].end)
        for start, end in _token_ranges(normalised, kind)
    ]


def _byte_tokens(text: str | bytes, normalisation: dict[str, bool]) -> list[_Token]:
    if Normalisation(**normalisation) != Normalisation():
        raise ConfigError(f"byte shingles are never normalised, got {normalisation}: leave these settings out")
    data = text if isinstance(text, bytes) else encode(text)
    return [_Token(data[i : i + 1], i, i + 1) for i in range(len(data))]


def _token_ranges(normalised: str, kind: str) -> list[tuple[int, int]]:
    """Return the start and end of each token."""
    if kind not in KINDS:
        raise ConfigError(f"kind must be word, char or byte, got {kind!r}")
    if kind == "char":
        return [(i, i + 1) for i in range(len(normalised))]
    return _word_ranges(normalised)


def _word_ranges(normalised: str) -> list[tuple[int, int]]:
    properties = character_properties()
    ranges: list[tuple[int, int]] = []
    current = SEPARATOR  # class of the current token; SEPARATOR outside of tokens
    for i, character in enumerate(normalised):
        token_class = properties[ord(character)] & TOKEN_CLASS
        if token_class == CHARACTER_TOKEN or (token_class == WORD_CHARACTER and current != WORD_CHARACTER):
            ranges.append((i, i + 1))
            current = token_class
        elif token_class == SEPARATOR:
            current = SEPARATOR
        elif current != SEPARATOR:  # another letter of a word, or a mark after a letter
            ranges[-1] = (ranges[-1][0], i + 1)
    return ranges


def _hash_windows(data: list[bytes], size: int, hash_bits: int, seed: int) -> Words:
    """Return mix(Σ tᵢ·M^(k−1−i)) of every window of k tokens, by Horner's rule on all windows at once."""
    if hash_bits not in (32, 64):
        raise ConfigError(f"hash_bits must be 32 or 64, got {hash_bits}")
    hash_of = {token: hash_bytes(token, Domain.TOKEN, seed) for token in set(data)}
    hashes = np.array([hash_of[token] for token in data], dtype=np.uint64)
    count = _shingle_count(len(data), size)
    total = np.zeros(count, dtype=np.uint64)
    for offset in range(min(size, len(data))):
        total = total * np.uint64(MULTIPLIER) + hashes[offset : offset + count]
    return mix_words(total) & np.uint64(2**hash_bits - 1)


def _number_repetitions(elements: Words, hash_bits: int) -> Words:
    """Replace the i-th repetition of x by mix(x + i·G); the first occurrence stays x."""
    seen: Counter[int] = Counter()
    numbered = []
    for x in elements.tolist():
        numbered.append(mix(x + seen[x] * GOLDEN) if seen[x] else x)
        seen[x] += 1
    return np.array(numbered, dtype=np.uint64) & np.uint64(2**hash_bits - 1)


def _shingle_count(token_count: int, size: int) -> int:
    return max(token_count + 1 - size, min(token_count, 1))


def _as_text(text: str | bytes) -> str:
    try:
        return text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise InputError(f"a text must be valid UTF-8, got an invalid byte at {error.start}") from None
