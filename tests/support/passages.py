"""Oracles of repeated passages."""

from collections.abc import Sequence

__all__ = ["covered_starts"]


def covered_starts(documents: Sequence[Sequence[str]], size: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the first occurrence of every repeated L-gram by its position, by dynamic programming without hashes.

    The common prefix of two suffixes is one token longer than that of the suffixes after them if their first tokens
    are equal.
    """
    positions = [(number, start) for number, tokens in enumerate(documents) for start in range(len(tokens))]
    common: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for later in reversed(range(len(positions))):
        number, start = positions[later]
        for earlier in reversed(range(later)):
            other, other_start = positions[earlier]
            after = common.get(((number, start + 1), (other, other_start + 1)), 0)
            equal = documents[number][start] == documents[other][other_start]
            common[positions[later], positions[earlier]] = after + 1 if equal else 0
            if equal and after + 1 >= size:
                found[positions[later]] = positions[earlier]  # the last assignment is the earliest
    return found
