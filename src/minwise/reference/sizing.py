"""Sizing: numbers of documents in, bytes, pairs and days out. It says why the pipeline has its stages."""

__all__ = ["comparison_days", "false_candidates", "pair_count", "permutation_bytes", "signature_bytes"]


def signature_bytes(documents: int, slots: int, slot_bytes: int) -> int:
    """Bytes of the signatures of that many documents.

    >>> signature_bytes(documents=100_000, slots=100, slot_bytes=4)
    40000000
    """
    return documents * slots * slot_bytes


def permutation_bytes(universe: int, item_bytes: int = 4) -> int:
    """Bytes of one explicit permutation of the universe: why nobody stores k of them.

    >>> permutation_bytes(10**9)
    4000000000
    """
    return universe * item_bytes


def pair_count(documents: int) -> int:
    """n(n−1)/2, the comparisons of each document with each other.

    >>> pair_count(10**6)
    499999500000
    """
    return documents * (documents - 1) // 2


def comparison_days(documents: int, comparisons_per_second: float, seconds_per_day: float = 86_400) -> float:
    """Days to compare each document with each other."""
    return pair_count(documents) / comparisons_per_second / seconds_per_day


def false_candidates(pairs: float, probability: float) -> float:
    """Pairs below the threshold that banding proposes all the same, on average."""
    return pairs * probability
