"""Endings of a deduplication, written to be read: copies, no document of a cluster, marks, votes and a target.

A cluster is a kept document with the documents that are removed for it. Documents are numbers.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Mark", "Removed", "choose_threshold", "count_votes", "drop_clusters", "keep_copies", "mark_documents"]


class Removed(NamedTuple):
    """The kept document that a removed one is a near-duplicate of, and their similarity; None if it is unknown."""

    witness: int
    similarity: float | None


class Mark(NamedTuple):
    """Columns of a marked row."""

    cluster: int
    size: int
    rank: int
    similarity: float | None


Removals = Mapping[int, Removed]


def members_of(clusters: Removals, rank_of: Sequence[int]) -> dict[int, list[int]]:
    """Return the documents of each cluster: the kept one, then the others in keep order."""
    members: dict[int, list[int]] = {}
    for document in sorted(clusters, key=rank_of.__getitem__):
        kept = clusters[document].witness
        members.setdefault(kept, [kept]).append(document)
    return members


def keep_copies(clusters: Removals, rank_of: Sequence[int], copies: int) -> dict[int, Removed]:
    """Return what is removed if the first documents of each cluster are kept.

    >>> keep_copies({1: Removed(0, 0.9), 2: Removed(0, 1.0)}, [0, 1, 2], copies=2)
    {2: Removed(witness=0, similarity=1.0)}
    """
    kept = {document for members in members_of(clusters, rank_of).values() for document in members[:copies]}
    return {document: removed for document, removed in clusters.items() if document not in kept}


def drop_clusters(clusters: Removals, rank_of: Sequence[int], protected: int = 0) -> dict[int, Removed]:
    """Return what is removed if no document of a cluster is kept, but those of the first ``protected`` ranks.

    >>> drop_clusters({1: Removed(0, 0.9), 2: Removed(0, 1.0)}, [0, 1, 2])[0]
    Removed(witness=2, similarity=1.0)
    """
    removed = dict(clusters)
    for kept, (_, *others) in members_of(clusters, rank_of).items():
        if rank_of[kept] >= protected:
            nearest = max(others, key=lambda one: _known(clusters[one].similarity))  # the first of equals
            removed[kept] = Removed(nearest, clusters[nearest].similarity)
    return removed


def _known(similarity: float | None) -> float:
    return -1.0 if similarity is None else similarity


def mark_documents(clusters: Removals, rank_of: Sequence[int]) -> list[Mark]:
    """Return the marks of all documents."""
    marks = [Mark(document, 1, 1, None) for document in range(len(rank_of))]
    for kept, members in members_of(clusters, rank_of).items():
        for position, document in enumerate(members, 1):
            similarity = clusters[document].similarity if position > 1 else None
            marks[document] = Mark(kept, len(members), position, similarity)
    return marks


def count_votes(marks: Sequence[Mark], values: Sequence[Hashable]) -> list[int]:
    """Return the number of distinct values in the cluster of each document; None is no value.

    >>> count_votes([Mark(0, 2, 1, None), Mark(0, 2, 2, 0.9)], ["a", None])
    [1, 1]
    """
    distinct: dict[int, set[Hashable]] = {}
    for mark, value in zip(marks, values, strict=True):
        distinct.setdefault(mark.cluster, set()).update([] if value is None else [value])
    return [len(distinct[mark.cluster]) for mark in marks]


def choose_threshold(kept: Mapping[float, int], wanted: int) -> float:
    """Return the threshold that keeps the number of documents nearest to the wanted one; the lower one of equals.

    >>> choose_threshold({0.8: 10, 0.9: 14, 1.0: 20}, wanted=12)
    0.8
    """
    return min(sorted(kept), key=lambda threshold: abs(kept[threshold] - wanted))
