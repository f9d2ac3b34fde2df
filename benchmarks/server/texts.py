"""Texts: passages of the corpus in, as many texts of about 2 kB as are wanted out.

A text is put together from pieces of real passages, so words, lengths and what many texts share are those of real ones.
One in ten is a near-copy of the text before it. Numbers decide the texts: the same on every machine with the corpus.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

TEXT_BYTES = 2_000
# Stored texts have from half of `TEXT_BYTES` to half as much again.
LEAST_SHARE, MOST_SHARE = 0.5, 1.5
# Words of a piece, and of those of a near-copy that are other ones: a similarity of about 0.9 with word:5.
PIECE_WORDS = 25
CHANGED_WORDS = 3
COPY_EVERY = 10
# Passages of the corpus that are cut up; they give half a million pieces.
PASSAGES = 40_000


def cut_pieces(path: Path) -> list[str]:
    """Return the pieces of the first passages of a corpus."""
    table = next(pq.ParquetFile(path).iter_batches(PASSAGES, columns=["text"]))
    passages = table.column(0).to_pylist()
    return [piece for passage in passages for piece in cut(passage)]


def cut(passage: str) -> Iterator[str]:
    """Yield the whole pieces of a passage."""
    words = passage.split(" ")
    for first in range(0, len(words) - PIECE_WORDS + 1, PIECE_WORDS):
        yield " ".join(words[first : first + PIECE_WORDS])


def stored_texts(pieces: list[str], documents: int) -> Iterator[str]:
    """Yield the texts of an index."""
    chance, text = random.Random(1), ""
    for number in range(documents):
        if number % COPY_EVERY == COPY_EVERY - 1:
            text = near_copy(text, chance)
        else:
            text = put_together(pieces, round(TEXT_BYTES * chance.uniform(LEAST_SHARE, MOST_SHARE)), chance)
        yield text


def questions(pieces: list[str], stored: list[str], count: int) -> list[str]:
    """Return texts of about `TEXT_BYTES` to ask for: near-copies of stored ones and new ones, in turn."""
    chance = random.Random(2)
    alike = [text for text in stored if abs(len(text.encode()) - TEXT_BYTES) <= TEXT_BYTES // 10]
    asked = []
    for _ in range(count // 2):
        asked.append(near_copy(chance.choice(alike), chance))
        asked.append(put_together(pieces, TEXT_BYTES, chance))
    return asked


def put_together(pieces: list[str], size: int, chance: random.Random) -> str:
    """Return a text of about so many bytes."""
    chosen, total = [], 0
    while total < size:
        piece = pieces[int(chance.random() * len(pieces))]
        chosen.append(piece)
        total += len(piece) + 1
    return " ".join(chosen)


def near_copy(text: str, chance: random.Random) -> str:
    """Return a text with a few other words."""
    words = text.split(" ")
    for _ in range(CHANGED_WORDS):
        words[int(chance.random() * len(words))] = f"changed{chance.randrange(10**6)}"
    return " ".join(words)
