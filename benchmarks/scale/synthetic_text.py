"""Synthetic text from document keys, generated with NumPy and Arrow.

Every choice is a hash of the key of the document and the position in the text, never the next number of a generator. A
document is therefore the same in any shard and for any number of documents, and a copy can be generated from the key of
its original without the original.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

VOCABULARY_WORDS = 50_000
SHORT_WORDS = 100  # the most frequent words are short, as in real languages; they are 45 % of all text
# 54 on average, which is 300 bytes. With at least 50, one replaced word leaves a similarity of 41/51 or more.
MIN_WORDS, MAX_WORDS = 50, 58
ZIPF_BITS = 20  # the rarest word has a share of 1.8 in 2**20, so every word is in the table
SEED = 1

Keys = NDArray[np.uint64]
WordNumbers = NDArray[np.int32]

# Purposes of hashes; different purposes give independent values.
LENGTH, WORD, CHANGES, POSITION, REPLACEMENT = range(5)


def draw(keys: Keys, purpose: int, positions: int | Keys = 0) -> Keys:
    """Return 64 pseudo-random bits for each key, purpose and position: the finaliser of splitmix64 over a counter."""
    counter = keys * np.uint64(0x9E3779B97F4A7C15) + np.asarray(positions, dtype=np.uint64) * np.uint64(
        0xD1B54A32D192ED03
    )
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
    """Return the words, the most frequent first: 100 of one syllable, then a mixture of two and three."""
    syllables = ["".join(letters) for letters in product("bdfgklmnprstvz", "aeiou")]
    short = ["".join(letters) for letters in product("bdfgklmnprstvz", "aeiou", "nrs")]
    longer = ["".join(parts) for count in (2, 3) for parts in product(syllables, repeat=count)]
    order = np.random.default_rng(SEED)
    few = [short[index] for index in order.permutation(len(short))[:SHORT_WORDS]]
    many = [longer[index] for index in order.permutation(len(longer))[: VOCABULARY_WORDS - SHORT_WORDS]]
    return (*few, *many)


@cache
def written_words() -> pa.Array:
    """Return the vocabulary twice: each word followed by a space, then each as the last word of a text."""
    return pa.array([f"{word} " for word in vocabulary()] + list(vocabulary()), type=pa.large_string())


@cache
def zipf_table() -> WordNumbers:
    """Return 2**20 word numbers in which the word of rank i has a share of about 1/i (Zipf's law)."""
    shares = np.cumsum(1 / np.arange(1, VOCABULARY_WORDS + 1))
    quantiles = (np.arange(2**ZIPF_BITS) + 0.5) / 2**ZIPF_BITS
    ranks: WordNumbers = np.searchsorted(shares / shares[-1], quantiles).astype(np.int32)
    return ranks


def lengths(keys: Keys) -> NDArray[np.int64]:
    """Return the number of words of each document."""
    return MIN_WORDS + below(draw(keys, LENGTH), MAX_WORDS - MIN_WORDS + 1)


def word_table(keys: Keys, width: int = MAX_WORDS) -> WordNumbers:
    """Return word numbers, one row per document; a row may be longer than the document."""
    bits = draw(keys[:, None], WORD, np.arange(width, dtype=np.uint64)[None, :])
    drawn: WordNumbers = zipf_table()[bits >> np.uint64(64 - ZIPF_BITS)]
    return drawn


def write_texts(words: WordNumbers, counts: NDArray[np.int64]) -> pa.Array:
    """Return the first ``counts[i]`` words of each row as text.

    The words of all documents are gathered at once. Each includes its space, so their bytes are already the
    concatenated texts, and only the offsets have to be computed: half a million documents per second on one core.
    """
    used = np.arange(words.shape[1]) < counts[:, None]
    flat = words[used]
    ends = np.cumsum(counts)
    flat[ends - 1] += VOCABULARY_WORDS
    gathered = written_words().take(pa.array(flat))
    offsets = np.frombuffer(gathered.buffers()[1], dtype=np.int64)[np.concatenate([[0], ends])]
    return pa.LargeStringArray.from_buffers(len(counts), pa.py_buffer(offsets), gathered.buffers()[2])
