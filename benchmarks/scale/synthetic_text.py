"""Words: numbers in, made-up text out, all in NumPy and Arrow.

Every choice is a hash of what it is about (the document's key, the place in the text), never the next number of a
generator. So a document is the same whatever shard it stands in and however many are made, and a copy is made from
its original's key without having the original at hand.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

VOCABULARY_WORDS = 50_000
SHORT_WORDS = 100  # the commonest words are short, as in real languages; they are 45 % of all text
# 54 on average, which is 300 bytes. With at least 50, one replaced word leaves a similarity of 41/51 or more.
FEWEST_WORDS, MOST_WORDS = 50, 58
ZIPF_BITS = 20  # the rarest word has a share of 1.8 in 2**20, so each is in the table
SEED = 1

Keys = NDArray[np.uint64]
WordNumbers = NDArray[np.int32]

# What a hash is drawn for; two purposes never share a number.
LENGTH, WORD, CHANGES, PLACE, REPLACEMENT = range(5)


def draw(keys: Keys, purpose: int, places: int | Keys = 0) -> Keys:
    """Return 64 random-looking bits for each key, purpose and place: the finaliser of splitmix64 over a counter."""
    counter = keys * np.uint64(0x9E3779B97F4A7C15) + np.asarray(places, dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)
    bits = counter + np.uint64((SEED * 0x632BE59BD9B4E019 + purpose * 0xA24BAED4963EE407) % 2**64)
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def below(bits: Keys, bound: int) -> NDArray[np.int64]:
    """Return numbers in [0, bound) from the upper 32 bits."""
    return (((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


@cache
def vocabulary() -> tuple[str, ...]:
    """Return the words, the commonest first: 100 of one syllable, then a mixture of two and three."""
    syllables = ["".join(letters) for letters in product("bdfgklmnprstvz", "aeiou")]
    short = ["".join(letters) for letters in product("bdfgklmnprstvz", "aeiou", "nrs")]
    longer = ["".join(parts) for count in (2, 3) for parts in product(syllables, repeat=count)]
    order = np.random.default_rng(SEED)
    few = [short[index] for index in order.permutation(len(short))[:SHORT_WORDS]]
    many = [longer[index] for index in order.permutation(len(longer))[: VOCABULARY_WORDS - SHORT_WORDS]]
    return (*few, *many)


@cache
def written_words() -> pa.Array:
    """Return the vocabulary twice: each word with a space after it, then each as the last word of a text."""
    return pa.array([f"{word} " for word in vocabulary()] + list(vocabulary()), type=pa.large_string())


@cache
def zipf_table() -> WordNumbers:
    """Return 2**20 word numbers in which the word of rank i has a share of about 1/i (Zipf's law)."""
    shares = np.cumsum(1 / np.arange(1, VOCABULARY_WORDS + 1))
    places = (np.arange(2**ZIPF_BITS) + 0.5) / 2**ZIPF_BITS
    ranks: WordNumbers = np.searchsorted(shares / shares[-1], places).astype(np.int32)
    return ranks


def lengths(keys: Keys) -> NDArray[np.int64]:
    """Return the number of words of each document."""
    return FEWEST_WORDS + below(draw(keys, LENGTH), MOST_WORDS - FEWEST_WORDS + 1)


def word_table(keys: Keys, width: int = MOST_WORDS) -> WordNumbers:
    """Return word numbers, one row per document; a row holds more than the document's length needs."""
    bits = draw(keys[:, None], WORD, np.arange(width, dtype=np.uint64)[None, :])
    drawn: WordNumbers = zipf_table()[bits >> np.uint64(64 - ZIPF_BITS)]
    return drawn


def write_texts(words: WordNumbers, counts: NDArray[np.int64]) -> pa.Array:
    """Return the first ``counts[i]`` words of each row as text.

    The words of all documents are gathered at once; since each carries its space, their bytes stand one after the
    other as the texts want them, and only the borders have to be named: half a million documents a second on one core.
    """
    used = np.arange(words.shape[1]) < counts[:, None]
    flat = words[used]
    ends = np.cumsum(counts)
    flat[ends - 1] += VOCABULARY_WORDS
    gathered = written_words().take(pa.array(flat))
    borders = np.frombuffer(gathered.buffers()[1], dtype=np.int64)[np.concatenate([[0], ends])]
    return pa.LargeStringArray.from_buffers(len(counts), pa.py_buffer(borders), gathered.buffers()[2])
