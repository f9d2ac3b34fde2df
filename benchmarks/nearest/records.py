"""Two tables of records of persons: made names and places of uneven popularity, and typos. The same for a seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["FIELDS", "make_tables"]

FIELDS = "name:char:3 surname:char:3 address:char:3 suburb:char:3"
# Distinct values of each field, and the exponent of their popularity.
NAMES, SURNAMES, STREETS, SUBURBS, EXPONENT = 2_000, 20_000, 5_000, 3_000, 0.7
ONSETS = "b br c ch cl d dr f fl g gr h j k kl l m n p pr qu r s sch st t tr v w z"
VOWELS = "a e i o u ai ea ee ie ou"
CODAS = ["", "", "", "l", "n", "r", "s", "t", "ck", "nd", "ng", "rt"]
SYLLABLE = (ONSETS.split(), VOWELS.split(), CODAS)
KINDS = ["street", "road", "avenue", "lane", "drive", "court", "place", "close"]
# Share of the records of the second table that are records of the first one with typos, and typos of each.
SHARED, MOST_TYPOS = 0.5, 4
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
Random = np.random.Generator


def make_tables(rows: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return two tables of so many records each."""
    random = np.random.default_rng(seed)
    values = [
        make_words(random, NAMES, (1, 3)),
        make_words(random, SURNAMES, (2, 3)),
        make_words(random, STREETS, (2, 3)),
        make_words(random, SUBURBS, (2, 4)),
    ]
    first = [make_record(random, values) for _ in range(rows)]
    copied = random.permutation(rows)[: int(SHARED * rows)].tolist()
    second = [with_typos(random, first[row]) for row in copied]
    second += [make_record(random, values) for _ in range(rows - len(copied))]
    order = random.permutation(rows).tolist()
    return make_table(first), make_table([second[row] for row in order])


def make_words(random: Random, count: int, syllables: tuple[int, int]) -> list[str]:
    """Return distinct words of so many syllables, the most popular first."""
    words: dict[str, None] = {}
    while len(words) < count:
        size = int(random.integers(syllables[0], syllables[1], endpoint=True))
        words["".join(make_syllable(random) for _ in range(size))] = None
    return list(words)


def make_syllable(random: Random) -> str:
    """Return a syllable."""
    return "".join(parts[int(random.integers(len(parts)))] for parts in SYLLABLE)


def make_record(random: Random, values: list[list[str]]) -> list[str]:
    """Return name, surname, address and suburb."""
    name, surname, street, suburb = (choose(random, words) for words in values)
    return [name, surname, f"{random.integers(1, 300)} {street} {choose(random, KINDS)}", suburb]


def choose(random: Random, words: list[str]) -> str:
    """Return one of the words; the first ones are the most popular."""
    position = random.random() ** (1 / (1 - EXPONENT)) * len(words)
    return words[int(position)]


def with_typos(random: Random, record: list[str]) -> list[str]:
    """Return a record with up to ``MOST_TYPOS`` typos."""
    changed = list(record)
    for _ in range(int(random.integers(0, MOST_TYPOS, endpoint=True))):
        field = int(random.integers(len(changed)))
        changed[field] = with_typo(random, changed[field])
    return changed


def with_typo(random: Random, text: str) -> str:
    """Return a text with a letter added, left out or replaced, or two exchanged."""
    if len(text) < 2:
        return text
    at, letter = int(random.integers(len(text) - 1)), ALPHABET[int(random.integers(len(ALPHABET)))]
    head, tail = text[:at], text[at:]
    return head + [letter + tail, tail[1:], letter + tail[1:], tail[1] + tail[0] + tail[2:]][int(random.integers(4))]


def make_table(records: list[list[str]]) -> pa.Table:
    """Return records as a table."""
    columns: NDArray[np.object_] = np.array(records, dtype=object).T
    return pa.table(dict(zip(("name", "surname", "address", "suburb"), columns, strict=True)))
