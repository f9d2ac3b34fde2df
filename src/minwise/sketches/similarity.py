"""Verify: two sets in, their exact similarity out."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise import _kernel
from minwise.checks import check_pairs, check_type
from minwise.errors import InputError
from minwise.sketches import estimates as estimate
from minwise.text.shingling import ShingleSets

__all__ = ["RowCounts", "containment", "hamming", "jaccard", "jaccard_distance", "row_counts", "similarities"]

Members = Iterable[Hashable]


class RowCounts(NamedTuple):
    """The rows of two boolean columns by what they hold: ``a`` 1 1, ``b`` 1 0, ``c`` 0 1, ``d`` 0 0."""

    a: int
    b: int
    c: int
    d: int


def jaccard(left: Members, right: Members) -> float:
    """The Jaccard similarity |X ∩ Y| / |X ∪ Y| of two sets; 0.0 if both are empty.

    >>> jaccard({"a", "b", "c"}, {"b", "c", "d"})
    0.5
    """
    x, y, shared = _count(left, right)
    return shared / (x + y - shared) if shared else 0.0


def jaccard_distance(left: Members, right: Members) -> float:
    """One minus the Jaccard similarity; a metric."""
    return 1.0 - jaccard(left, right)


def containment(left: Members, right: Members) -> float:
    """The share of ``left`` that is also in ``right``, |X ∩ Y| / |X|; 0.0 if ``left`` is empty."""
    x, _, shared = _count(left, right)
    return shared / x if x else 0.0


def hamming(left: Members, right: Members) -> int:
    """How many elements are in one of the sets but not in the other, |X| + |Y| − 2|X ∩ Y|."""
    x, y, shared = _count(left, right)
    return x + y - 2 * shared


def row_counts(left: ArrayLike, right: ArrayLike) -> RowCounts:
    """How many rows of two boolean columns hold 1 1, 1 0, 0 1 and 0 0; the similarity is a / (a + b + c).

    >>> row_counts([0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 1, 1])
    RowCounts(a=2, b=1, c=2, d=1)
    """
    x, y = np.asarray(left), np.asarray(right)
    if x.ndim != 1 or x.shape != y.shape or any(column.size and column.dtype.kind not in "biuf" for column in (x, y)):
        raise InputError(f"columns must be equally long and boolean, got shapes {x.shape} and {y.shape}")
    x, y = x.astype(bool), y.astype(bool)
    return RowCounts(*(int(np.count_nonzero(rows)) for rows in (x & y, x & ~y, ~x & y, ~x & ~y)))


def similarities(sets: ShingleSets, pairs: ArrayLike) -> NDArray[np.float64]:
    """The Jaccard similarity of every pair of documents, in the kernel."""
    check_type("sets", sets, ShingleSets)
    numbers = check_pairs(pairs)
    try:
        shared = _kernel.intersection_sizes(sets.offsets, sets.hashes, numbers).astype(np.float64)
    except IndexError as error:
        raise InputError(f"pairs: {error}") from None
    sizes = sets.sizes.astype(np.float64)
    union = sizes[numbers[:, 0]] + sizes[numbers[:, 1]] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def packed_similarities(packed: NDArray[np.uint8], pairs: NDArray[np.int64], slots: int) -> NDArray[np.float64]:
    """The estimated similarity of pairs of documents, from the low 16 bits of each of their slots."""
    share = _kernel.count_packed_matches(packed, packed, pairs, slots, 16) / slots
    c1, c2 = estimate.bbit_constants(1, 1, None, 16)
    return np.clip(estimate.bbit_estimate(share, c1, c2), 0.0, 1.0)


def _count(left: Members, right: Members) -> tuple[int, int, int]:
    """The sizes of both sets and of their intersection."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        x, y = np.unique(left), np.unique(right)
        return len(x), len(y), len(np.intersect1d(x, y, assume_unique=True))
    one, other = _set(left), _set(right)
    return len(one), len(other), len(one & other)


def _set(members: Members) -> set[Hashable]:
    if isinstance(members, (str, bytes)):
        raise InputError(f"a set must be a collection of elements, got {type(members).__name__}; shingle it first")
    try:
        return set(members.tolist() if isinstance(members, np.ndarray) else members)
    except TypeError as error:
        raise InputError(f"a set must be a collection of hashable elements: {error}") from None
