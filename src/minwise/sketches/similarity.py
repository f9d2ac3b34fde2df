"""Exact similarity measures of sets, and estimates of packed signatures."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise import _kernel
from minwise.checks import check_pairs, check_type
from minwise.errors import InputError
from minwise.sketches import estimates
from minwise.text.shingling import ShingleSets

__all__ = [
    "RowCounts",
    "containment",
    "estimate_packed_similarities",
    "hamming",
    "jaccard",
    "jaccard_distance",
    "row_counts",
    "similarities",
]

Members = Iterable[Hashable]


class RowCounts(NamedTuple):
    """Number of rows of two boolean columns by their values.

    Attributes:
        a: Rows that are 1 in both columns.
        b: Rows that are 1 in the left column only.
        c: Rows that are 1 in the right column only.
        d: Rows that are 0 in both columns.
    """

    a: int
    b: int
    c: int
    d: int


def jaccard(left: Members, right: Members) -> float:
    """Return the Jaccard similarity |X ∩ Y| / |X ∪ Y| of two sets; 0.0 if both are empty.

    Args:
        left: Elements of a set, as any collection or NumPy array; repetitions count once.
        right: Elements of the other set.

    Raises:
        InputError: If an argument is a string or has unhashable elements.

    >>> jaccard({"a", "b", "c"}, {"b", "c", "d"})
    0.5
    """
    x, y, shared = _count(left, right)
    return shared / (x + y - shared) if shared else 0.0


def jaccard_distance(left: Members, right: Members) -> float:
    """Return the Jaccard distance of two sets: one minus their similarity. It is a metric.

    Args:
        left: Elements of a set, as any collection or NumPy array; repetitions count once.
        right: Elements of the other set.

    >>> jaccard_distance({1, 2, 3}, {2, 3, 4})
    0.5
    """
    return 1.0 - jaccard(left, right)


def containment(left: Members, right: Members) -> float:
    """Return the share of ``left`` that is also in ``right``, |X ∩ Y| / |X|; 0.0 if ``left`` is empty.

    Args:
        left: Elements of a set, as any collection or NumPy array; repetitions count once.
        right: Elements of the other set.

    >>> containment({1, 2}, {2, 3, 4})
    0.5
    """
    x, _, shared = _count(left, right)
    return shared / x if x else 0.0


def hamming(left: Members, right: Members) -> int:
    """Return the number of elements of exactly one of the sets, |X| + |Y| − 2|X ∩ Y|.

    Args:
        left: Elements of a set, as any collection or NumPy array; repetitions count once.
        right: Elements of the other set.

    >>> hamming({1, 2}, {2, 3, 4})
    3
    """
    x, y, shared = _count(left, right)
    return x + y - 2 * shared


def row_counts(left: ArrayLike, right: ArrayLike) -> RowCounts:
    """Count the rows of two boolean columns by their values; the Jaccard similarity is a / (a + b + c).

    Args:
        left: A column of booleans or numbers.
        right: A column of the same length.

    Raises:
        InputError: If the columns differ in length or are not numeric.

    >>> row_counts([0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 1, 1])
    RowCounts(a=2, b=1, c=2, d=1)
    """
    x, y = np.asarray(left), np.asarray(right)
    if x.ndim != 1 or x.shape != y.shape or any(column.size and column.dtype.kind not in "biuf" for column in (x, y)):
        raise InputError(f"columns must be equally long and boolean, got shapes {x.shape} and {y.shape}")
    x, y = x.astype(bool), y.astype(bool)
    return RowCounts(*(int(np.count_nonzero(rows)) for rows in (x & y, x & ~y, ~x & y, ~x & ~y)))


def similarities(sets: ShingleSets, pairs: ArrayLike) -> NDArray[np.float64]:
    """Return the Jaccard similarity of every pair of documents.

    Args:
        sets: The shingle sets.
        pairs: Document numbers, in two columns.

    Raises:
        InputError: If a document number is out of range.

    >>> import minwise as mw
    >>> sets = mw.ShingleSets.from_sets([[1, 2, 3], [2, 3, 4], [5]])
    >>> similarities(sets, [(0, 1), (0, 2)]).tolist()
    [0.5, 0.0]
    """
    check_type("sets", sets, ShingleSets)
    numbers = check_pairs(pairs)
    try:
        shared = _kernel.intersection_sizes(sets.offsets, sets.hashes, numbers).astype(np.float64)
    except IndexError as error:
        raise InputError(f"pairs: {error}") from None
    sizes = sets.sizes.astype(np.float64)
    union = sizes[numbers[:, 0]] + sizes[numbers[:, 1]] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def estimate_packed_similarities(
    packed: NDArray[np.uint8], pairs: NDArray[np.int64], slots: int
) -> NDArray[np.float64]:
    """Return the estimated similarity of pairs of packed signatures.

    Args:
        packed: Signatures, one row each, with the low 16 bits of every slot.
        pairs: Row numbers, in two columns.
        slots: Slots per signature.
    """
    share = _kernel.count_packed_matches(packed, packed, pairs, slots, 16) / slots
    c1, c2 = estimates.bbit_constants(1, 1, None, 16)
    return np.clip(estimates.bbit_estimate(share, c1, c2), 0.0, 1.0)


def _count(left: Members, right: Members) -> tuple[int, int, int]:
    """Return the sizes of both sets and of their intersection."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        x, y = np.unique(left), np.unique(right)
        return len(x), len(y), len(np.intersect1d(x, y, assume_unique=True))
    first, second = _set(left), _set(right)
    return len(first), len(second), len(first & second)


def _set(members: Members) -> set[Hashable]:
    if isinstance(members, (str, bytes)):
        raise InputError(f"a set must be a collection of elements, got {type(members).__name__}; shingle it first")
    try:
        return set(members.tolist() if isinstance(members, np.ndarray) else members)
    except TypeError as error:
        raise InputError(f"a set must be a collection of hashable elements: {error}") from None
