"""MinHash and one permutation hashing with explicit permutations of a boolean matrix whose columns are sets.

These algorithms are slow and not part of the pipeline. They serve for teaching and for testing the theory on small
universes (Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, chapter 3). `reference.universal` replaces the
permutations by hash functions; `reference.sketch` is what the kernel computes.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.errors import ConfigError
from minwise.sketches.similarity import RowCounts

__all__ = [
    "BooleanMatrix",
    "agreement",
    "boolean_matrix",
    "column_similarity",
    "count_row_types",
    "minhash_by_order",
    "minhash_by_position",
    "one_permutation_bins",
    "one_permutation_estimate",
    "permutation_signature",
]

Bools = NDArray[np.bool_]


class BooleanMatrix(NamedTuple):
    """Matrix whose columns are sets: ``cells[i, j]`` is True if set j contains ``rows[i]``."""

    rows: tuple[Hashable, ...]
    cells: Bools


def boolean_matrix(sets: Sequence[Iterable[Hashable]], rows: Iterable[Hashable] | None = None) -> BooleanMatrix:
    """Return the boolean matrix of sets; the rows are, by default, the members in order of first occurrence.

    >>> boolean_matrix([{1, 4}, {2, 3, 4}], rows=[1, 2, 3, 4]).cells.astype(int).tolist()
    [[1, 0], [0, 1], [0, 1], [1, 1]]
    """
    columns = [list(members) for members in sets]
    names = tuple(dict.fromkeys(member for members in columns for member in members) if rows is None else rows)
    row_of = {name: i for i, name in enumerate(names)}
    cells = np.zeros((len(names), len(columns)), dtype=np.bool_)
    for j, members in enumerate(columns):
        cells[[row_of[member] for member in members], j] = True
    return BooleanMatrix(names, cells)


def count_row_types(left: ArrayLike, right: ArrayLike) -> RowCounts:
    """Return the four row counts of two columns.

    >>> count_row_types([0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 1, 1])
    RowCounts(a=2, b=1, c=2, d=1)
    """
    x, y = _as_column(left), _as_column(right)
    if x.shape != y.shape:
        raise ConfigError(f"two columns must have the same rows, got {len(x)} and {len(y)}")
    kinds = (x & y, x & ~y, ~x & y, ~x & ~y)
    return RowCounts(*(int(np.count_nonzero(kind)) for kind in kinds))


def column_similarity(left: ArrayLike, right: ArrayLike) -> float:
    """Return the Jaccard similarity of two columns, a/(a+b+c); 0 for two empty ones."""
    a, b, c, _ = count_row_types(left, right)
    return a / (a + b + c) if a + b + c else 0.0


def minhash_by_order(cells: ArrayLike, order: Sequence[int]) -> list[int | None]:
    """Return the first row of each column, in the given order of rows, that is 1; None for an empty column."""
    matrix = _as_matrix(cells)
    _check_permutation(order, range(len(matrix)))
    return [next((row for row in order if column[row]), None) for column in matrix.T]


def minhash_by_position(cells: ArrayLike, positions: Sequence[int]) -> list[int | None]:
    """Return the smallest permuted position among the rows of each column that are 1; None for an empty column.

    P[two minhashes agree] over random permutations is the Jaccard similarity: both are decided by the first row of type
    a, b or c, and agree if it is of type a (Broder, 1997).

    Args:
        cells: Boolean matrix.
        positions: Permutation: ``positions[i]`` is the position of row i, counted from 0 or from 1.

    >>> minhash_by_position([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]], [4, 1, 5, 3, 2])
    [3, 1, 2]
    """
    matrix = _as_matrix(cells)
    first = min(positions, default=0)
    _check_permutation(positions, range(first, first + len(matrix)))
    permuted = np.asarray(positions)
    return [int(permuted[column].min()) if column.any() else None for column in matrix.T]


def permutation_signature(cells: ArrayLike, permutations: Iterable[Sequence[int]]) -> list[list[int | None]]:
    """Return the signature matrix: one row per permutation, one column per set."""
    return [minhash_by_position(cells, positions) for positions in permutations]


def agreement(left: Sequence[object], right: Sequence[object]) -> float:
    """Return the share of slots in which two signatures agree, an unbiased estimate of the similarity of their sets.

    >>> agreement([2, 1, 2], [1, 1, 2]) == 2 / 3
    True
    """
    if len(left) != len(right) or not left:
        raise ConfigError(f"two signatures must have the same number of slots, got {len(left)} and {len(right)}")
    return sum(x == y for x, y in zip(left, right, strict=True)) / len(left)


def one_permutation_bins(positions: Iterable[int], universe: int, bins: int) -> list[int | None]:
    """Return the smallest position inside each of t equal bins of 0 … D−1; None, ``*`` in papers, for an empty bin.

    Args:
        positions: Positions of the members of a set after one permutation of the universe.
        universe: Size of the universe, D, a multiple of the bins.
        bins: Number of bins, t.

    >>> one_permutation_bins({2, 4, 7, 13}, universe=16, bins=4)
    [2, 0, None, 1]
    """
    if bins < 1 or universe % bins:
        raise ConfigError(f"universe must be a multiple of bins, got {universe} and {bins}")
    width = universe // bins
    slots: list[int | None] = [None] * bins
    for number, members in groupby(sorted(positions), lambda position: position // width):
        slots[_checked_bin(number, bins)] = next(members) % width
    return slots


def one_permutation_estimate(left: Sequence[int | None], right: Sequence[int | None]) -> float:
    """Return N_mat/(t − N_emp): matching bins divided by bins not empty in both (Li, Owen & Zhang, 2012).

    The estimate is 0 if all bins are empty in both.

    >>> one_permutation_estimate([2, 0, None, 1], [0, 2, None, 1]) == 1 / 3
    True
    """
    used = [(x, y) for x, y in zip(left, right, strict=True) if not (x is None and y is None)]
    return sum(x == y for x, y in used) / len(used) if used else 0.0


def _as_column(values: ArrayLike) -> Bools:
    column = np.asarray(values)
    if column.ndim != 1:
        raise ConfigError(f"a column must have one dimension, got {column.ndim}")
    return column.astype(np.bool_)


def _as_matrix(cells: ArrayLike) -> Bools:
    matrix = np.asarray(cells)
    if matrix.ndim != 2:
        raise ConfigError(f"a matrix must have two dimensions, got {matrix.ndim}")
    return matrix.astype(np.bool_)


def _check_permutation(given: Sequence[int], expected: range) -> None:
    if sorted(given) != list(expected):
        raise ConfigError(f"a permutation must hold each of {list(expected)} once, got {list(given)}")


def _checked_bin(number: int, bins: int) -> int:
    if not 0 <= number < bins:
        raise ConfigError("a position must be inside the universe: one lies outside of every bin")
    return number
