"""Texts of about 2 kB, composed of pieces of real passages.

Words and shared phrases are therefore those of real texts. One in ten is a near-copy of the text before it. The random
numbers have fixed seeds, so the texts are the same on every machine with the corpus.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

TEXT_BYTES = 2_000
# Stored texts have 0.5 to 1.5 times `TEXT_BYTES`.
LEAST_SHARE, MOST_SHARE = 0.5, 1.5
# Words of a piece, and changed words of a near-copy: a similarity of about 0.9 with word:5.
PIECE_WORDS = 25
CHANGED_WORDS = 3
COPY_EVERY = 10
# Passages of the corpus that are divided; they give half a million pieces.
PASSAGES = 40_000


def cut_pieces(path: Path) -> list[str]:
    """Return the pieces of the first passages of a corpus."""
    table = next(pq.ParquetFile(path).iter_batches(PASSAGES, columns=["text"]))
    passages = table.column(0).to_pylist()
    return [piece for passage in passages for piece in cut(passage)]


def cut(passage: str) -> Iterator[str]:
    """Yield the complete pieces of a passage."""
    words = passage.split(" ")
    for first in range(0, len(words) - PIECE_WORDS + 1, PIECE_WORDS):
        yield " ".join(words[first : first + PIECE_WORDS])


def stored_texts(pieces: list[str], documents: int) -> Iterator[str]:
    """Yield the texts of an index."""
    draw, text = random.Random(1), ""
    for number in range(documents):
        if number % COPY_EVERY == COPY_EVERY - 1:
            text = near_copy(text, draw)
        else:
            text = compose(pieces, round(TEXT_BYTES * draw.uniform(LEAST_SHARE, MOST_SHARE)), draw)
        yield text


def questions(pieces: list[str], stored: list[str], count: int) -> list[str]:
    """Return query texts of about `TEXT_BYTES`: near-copies of stored texts and new ones alternate."""
    draw = random.Random(2)
    alike = [text for text in stored if abs(len(text.encode()) - TEXT_BYTES) <= TEXT_BYTES // 10]
    texts = []
    for _ in range(count // 2):
        texts.append(near_copy(draw.choice(alike), draw))
        texts.append(compose(pieces, TEXT_BYTES, draw))
    return texts


def compose(pieces: list[str], size: int, draw: random.Random) -> str:
    """Return a text of about `size` bytes."""
    chosen, total = [], 0
    while total < size:
        piece = pieces[int(draw.random() * len(pieces))]
        chosen.append(piece)
        total += len(piece) + 1
    return " ".join(chosen)


def near_copy(text: str, draw: random.Random) -> str:
    """Return a text with a few words changed."""
    words = text.split(" ")
    for _ in range(CHANGED_WORDS):
        words[int(draw.random() * len(words))] = f"changed{draw.randrange(10**6)}"
    return " ".join(words)
