"""Repeated passages, defined by a dictionary of all L-grams.

The kernel selects k-grams and never holds all L-grams; it must find exactly these rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Passage", "repeated_passages"]


class Passage(NamedTuple):
    """Run of tokens whose L-grams stand at an earlier position of the corpus, at a constant displacement.

    Attributes:
        document: Number of the document.
        start: Index of its first token.
        other: Number of the document of the first occurrence.
        other_start: Index of its first token there.
        tokens: Number of tokens, at least L.
    """

    document: int
    start: int
    other: int
    other_start: int
    tokens: int


def repeated_passages(
    documents: Sequence[Sequence[str]], size: int, *, order: Sequence[int] | None = None, references: int | None = None
) -> list[Passage]:
    """Return every repeated passage, by document and start.

    Args:
        documents: The tokens of each document.
        size: Tokens of an L-gram.
        order: The documents in keep order; as given if None.
        references: Number of documents, the first in keep order, that alone can be the other side.

    >>> repeated_passages(["a b c d".split(), "x a b c".split()], 2)
    [Passage(document=1, start=1, other=0, other_start=0, tokens=3)]
    """
    ranked = list(range(len(documents)) if order is None else order)
    first: dict[tuple[str, ...], tuple[int, int]] = {}
    repeats: list[tuple[int, int, int, int]] = []
    for rank, number in enumerate(ranked):
        tokens = documents[number]
        for start in range(len(tokens) - size + 1):
            gram = tuple(tokens[start : start + size])
            if gram in first and (references is None or rank >= references):
                repeats.append((number, start, *first[gram]))
            elif gram not in first and (references is None or rank < references):
                first[gram] = (number, start)
    return _merge(sorted(repeats), size)


def _merge(repeats: list[tuple[int, int, int, int]], size: int) -> list[Passage]:
    """Merge L-grams at consecutive starts whose first occurrences are consecutive, too."""
    merged: list[Passage] = []
    for number, start, other, other_start in repeats:
        last = merged[-1] if merged else None
        grams = 0 if last is None else last.tokens - size + 1
        if last and (number, start, other, other_start) == (
            last.document,
            last.start + grams,
            last.other,
            last.other_start + grams,
        ):
            merged[-1] = last._replace(tokens=last.tokens + 1)
        else:
            merged.append(Passage(number, start, other, other_start, size))
    return merged
