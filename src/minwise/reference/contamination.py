"""Contaminated documents, defined by a dictionary of the n-grams of evaluation items.

The kernel probes a bitmap and a hash table; it must find exactly these hits.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Contamination", "contaminated_documents", "item_ngrams", "rare_ngrams"]

# Tokens of the shortest item that can be found.
MIN_TOKENS = 5
Gram = tuple[str, ...]


class Contamination(NamedTuple):
    """What a document has of an item.

    Attributes:
        document: Number of the document.
        item: Number of the item.
        matched: Number of distinct rare n-grams of the item in the document.
        rare: Number of distinct rare n-grams of the item.
        covered: Number of tokens of the item that are in one of them.
        runs: First token and number of tokens of each run in the document, and its first token in the item.
    """

    document: int
    item: int
    matched: int
    rare: int
    covered: int
    runs: list[tuple[int, int, int]]


def item_ngrams(item: Sequence[str], size: int) -> list[Gram]:
    """Return the n-grams of an item in its order: itself if it is shorter, none if it has fewer than five tokens.

    >>> item_ngrams("one two three four five six".split(), 5)
    [('one', 'two', 'three', 'four', 'five'), ('two', 'three', 'four', 'five', 'six')]
    """
    length = min(size, len(item))
    if length < MIN_TOKENS:
        return []
    return [tuple(item[start : start + length]) for start in range(len(item) - length + 1)]


def rare_ngrams(
    documents: Sequence[Sequence[str]], items: Sequence[Sequence[str]], size: int, share: float, count: int
) -> set[Gram]:
    """Return the n-grams of items that are in at most ``count`` documents, or a share of them; copies count once."""
    distinct = {tuple(tokens) for tokens in documents if tokens}
    grams = {gram for item in items for gram in item_ngrams(item, size)}
    frequency = {gram: sum(gram in _ngrams(tokens, len(gram)) for tokens in distinct) for gram in grams}
    return {gram for gram in grams if frequency[gram] <= max(count, share * len(distinct))}


def contaminated_documents(
    documents: Sequence[Sequence[str]],
    items: Sequence[Sequence[str]],
    size: int,
    *,
    min_share: float,
    common_share: float = 1.0,
    common_count: int = 0,
) -> list[Contamination]:
    """Return every item of which a document has at least a share of the rare n-grams, by document and item.

    >>> text = "he wrote one two three four five six on the wall".split()
    >>> contaminated_documents([text], ["one two three four five six".split()], 5, min_share=0.5)
    [Contamination(document=0, item=0, matched=2, rare=2, covered=6, runs=[(2, 6, 0)])]
    """
    rare = rare_ngrams(documents, items, size, common_share, common_count)
    found = []
    for number, tokens in enumerate(documents):
        for item, words in enumerate(items):
            grams = [gram if gram in rare else None for gram in item_ngrams(words, size)]
            wanted = {gram for gram in grams if gram is not None}
            length = min(size, len(words))
            matched = wanted & _ngrams(tokens, length)
            if matched and len(matched) / len(wanted) >= min_share:
                places = {
                    start + offset for start, gram in enumerate(grams) if gram in matched for offset in range(length)
                }
                runs = _runs(tokens, grams, length)
                found.append(Contamination(number, item, len(matched), len(wanted), len(places), runs))
    return found


def _ngrams(tokens: Sequence[str], length: int) -> set[Gram]:
    return {tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)}


def _runs(tokens: Sequence[str], grams: list[Gram | None], length: int) -> list[tuple[int, int, int]]:
    """Return the runs of a document: an n-gram continues the run before it if it can, else it starts at its first."""
    runs: list[tuple[int, int, int]] = []
    for start in range(len(tokens) - length + 1):
        gram = tuple(tokens[start : start + length])
        if gram not in grams:
            continue
        first, count, place = runs[-1] if runs else (0, 0, 0)
        after = count - length + 1
        if runs and start == first + after and grams[place + after : place + after + 1] == [gram]:
            runs[-1] = (first, count + 1, place)
        else:
            runs.append((start, length, grams.index(gram)))
    return runs
