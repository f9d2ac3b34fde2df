"""Text: a text in, tokens, shingles and their hashes out (DESIGN, section 3)."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from minwise.errors import ConfigError, InputError
from minwise.reference.hashing import GOLDEN, Domain, Words, encode, hash_bytes, mix, mix_words
from minwise.reference.normalise import TOKEN_CLASS, Normalisation, character_properties, normalise, place

__all__ = ["Span", "parse_shingle", "shingle_hashes", "shingle_strings", "spans", "tokens"]

# Multiplier of the rolling sum. M − 1 is divisible by two only once, so swapping neighbours loses one bit, not several.
MULTIPLIER = 0xE7037ED1A0B428DB

KINDS = ("word", "char", "byte")
SEPARATOR, WORD_CHARACTER, MARK, CHARACTER_TOKEN = range(4)


class Span(NamedTuple):
    """A shingle's element and where the shingle stands: code points of the original text, or bytes for ``byte``."""

    element: int
    start: int
    end: int


class _Token(NamedTuple):
    data: bytes
    start: int
    end: int


def tokens(text: str | bytes, kind: str = "word", **normalisation: bool) -> list[str]:
    """The tokens of a text: its words, characters or bytes (each byte as two hexadecimal digits).

    A word is a run of letters, digits and the marks after them; in scripts written without spaces every character with
    its marks is one.

    >>> tokens("Don't panic: 漢字!")
    ['don', 't', 'panic', '漢', '字']
    """
    data = _token_bytes(text, kind, normalisation)
    return [token.hex() if kind == "byte" else token.decode() for token in data]


def shingle_strings(text: str | bytes, shingle: str = "word:5", **normalisation: bool) -> list[str]:
    """Every shingle of a text as a readable string, in text order and with repetitions.

    A text of n tokens has n + 1 − k of them; one, if it has tokens but fewer than k. Characters are joined directly,
    words and bytes by a space.

    >>> shingle_strings("abcab", "char:2")
    ['ab', 'bc', 'ca', 'ab']
    """
    kind, size = parse_shingle(shingle)
    parts = tokens(text, kind, **normalisation)
    glue = "" if kind == "char" else " "
    return [glue.join(parts[start : start + size]) for start in range(_shingle_count(len(parts), size))]


def shingle_hashes(
    text: str | bytes,
    shingle: str = "word:5",
    *,
    bag: bool = False,
    hash_bits: int = 64,
    seed: int = 1,
    **normalisation: bool,
) -> Words:
    """The distinct elements of a document, ascending.

    Args:
        text: The document; bytes are taken as UTF-8, except for ``byte``, which takes any.
        shingle: Kind of token and tokens per shingle: ``word:5``, ``char:9``, ``byte:8``.
        bag: Tell repetitions of a shingle apart, so that Jaccard on the elements is multiset Jaccard.
        hash_bits: 64, or 32 to keep only the low half.
        seed: Seed of the hash.
        normalisation: The attributes of `Normalisation`; ``byte`` refuses all but their defaults.
    """
    kind, size = parse_shingle(shingle)
    elements = _roll(_token_bytes(text, kind, normalisation), size, hash_bits, seed)
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
    """Where each shingle stands, one entry per occurrence in text order; arguments as for `shingle_hashes`.

    A token reaches from the start of its first character to the end of its last, a shingle from the start of its first
    token to the end of its last.
    """
    kind, size = parse_shingle(shingle)
    placed = _placed_tokens(text, kind, normalisation)
    elements = _roll([token.data for token in placed], size, hash_bits, seed)
    elements = _number_repetitions(elements, hash_bits) if bag else elements
    width = min(size, len(placed))
    return [Span(int(x), placed[i].start, placed[i + width - 1].end) for i, x in enumerate(elements)]


def parse_shingle(shingle: str) -> tuple[str, int]:
    """Kind and size of a shingle.

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


def _placed_tokens(text: str | bytes, kind: str, normalisation: dict[str, bool]) -> list[_Token]:
    if kind == "byte":
        return _byte_tokens(text, normalisation)
    placed = place(_as_text(text), **normalisation)
    normalised = "".join(item.character for item in placed)
    return [
        _Token(encode(normalised[start:end]), placed[start].start, placed[end - 1].end)
        for start, end in _token_ranges(normalised, kind)
    ]


def _byte_tokens(text: str | bytes, normalisation: dict[str, bool]) -> list[_Token]:
    if Normalisation(**normalisation) != Normalisation():
        raise ConfigError(f"byte shingles are never normalised, got {normalisation}: leave these settings out")
    data = text if isinstance(text, bytes) else encode(text)
    return [_Token(data[i : i + 1], i, i + 1) for i in range(len(data))]


def _token_ranges(normalised: str, kind: str) -> list[tuple[int, int]]:
    """First and one-past-last character of each token."""
    if kind not in KINDS:
        raise ConfigError(f"kind must be word, char or byte, got {kind!r}")
    if kind == "char":
        return [(i, i + 1) for i in range(len(normalised))]
    return _word_ranges(normalised)


def _word_ranges(normalised: str) -> list[tuple[int, int]]:
    properties = character_properties()
    ranges: list[tuple[int, int]] = []
    inside = SEPARATOR  # what the token being read is made of; SEPARATOR when there is none
    for i, character in enumerate(normalised):
        found = properties[ord(character)] & TOKEN_CLASS
        if found == CHARACTER_TOKEN or (found == WORD_CHARACTER and inside != WORD_CHARACTER):
            ranges.append((i, i + 1))
            inside = found
        elif found == SEPARATOR:
            inside = SEPARATOR
        elif inside != SEPARATOR:  # a further letter of a word, or a mark after a letter
            ranges[-1] = (ranges[-1][0], i + 1)
    return ranges


def _roll(data: list[bytes], size: int, hash_bits: int, seed: int) -> Words:
    """mix(Σ tᵢ·M^(k−1−i)) of every window of k tokens, by Horner's rule on all windows at once."""
    if hash_bits not in (32, 64):
        raise ConfigError(f"hash_bits must be 32 or 64, got {hash_bits}")
    known = {token: hash_bytes(token, Domain.TOKEN, seed) for token in set(data)}
    hashes = np.array([known[token] for token in data], dtype=np.uint64)
    count = _shingle_count(len(data), size)
    total = np.zeros(count, dtype=np.uint64)
    for offset in range(min(size, len(data))):
        total = total * np.uint64(MULTIPLIER) + hashes[offset : offset + count]
    return mix_words(total) & np.uint64(2**hash_bits - 1)


def _number_repetitions(elements: Words, hash_bits: int) -> Words:
    """The i-th further occurrence of x becomes mix(x + i·G); the first stays x."""
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
