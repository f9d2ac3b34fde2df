"""Matrix: the pipeline on the blackboard. Sets are columns of a boolean matrix, and a minhash can be followed by hand.

Nothing here is fast or used by the pipeline; it is here to teach, and to check the theory on universes small enough
to see (Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, chapter 3).
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.errors import ConfigError

__all__ = [
    "BooleanMatrix",
    "RowCounts",
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
    """Sets as columns: ``cells[i, j]`` says whether set j holds ``rows[i]``."""

    rows: tuple[Hashable, ...]
    cells: Bools


class RowCounts(NamedTuple):
    """How many rows of two columns are of type a (1 1), b (1 0), c (0 1) and d (0 0)."""

    a: int
    b: int
    c: int
    d: int


def boolean_matrix(sets: Sequence[Iterable[Hashable]], rows: Iterable[Hashable] | None = None) -> BooleanMatrix:
    """The boolean matrix of some sets. Rows are the members in order of first appearance, unless given.

    >>> boolean_matrix([{1, 4}, {2, 3, 4}], rows=[1, 2, 3, 4]).cells.astype(int).tolist()
    [[1, 0], [0, 1], [0, 1], [1, 1]]
    """
    columns = [list(members) for members in sets]
    names = tuple(dict.fromkeys(member for members in columns for member in members) if rows is None else rows)
    place = {name: i for i, name in enumerate(names)}
    cells = np.zeros((len(names), len(columns)), dtype=np.bool_)
    for j, members in enumerate(columns):
        cells[[place[member] for member in members], j] = True
    return BooleanMatrix(names, cells)


def count_row_types(left: ArrayLike, right: ArrayLike) -> RowCounts:
    """The four row counts of two columns.

    >>> count_row_types([0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 1, 1])
    RowCounts(a=2, b=1, c=2, d=1)
    """
    x, y = _as_column(left), _as_column(right)
    if x.shape != y.shape:
        raise ConfigError(f"two columns must have the same rows, got {len(x)} and {len(y)}")
    kinds = (x & y, x & ~y, ~x & y, ~x & ~y)
    return RowCounts(*(int(np.count_nonzero(kind)) for kind in kinds))


def column_similarity(left: ArrayLike, right: ArrayLike) -> float:
    """Jaccard similarity of two columns, a/(a+b+c); 0 for two empty ones."""
    a, b, c, _ = count_row_types(left, right)
    return a / (a + b + c) if a + b + c else 0.0


def minhash_by_order(cells: ArrayLike, order: Sequence[int]) -> list[int | None]:
    """For each column the first row, in the given order of rows, that holds a 1; None for an empty column."""
    matrix = _as_matrix(cells)
    _check_permutation(order, range(len(matrix)))
    return [next((row for row in order if column[row]), None) for column in matrix.T]


def minhash_by_position(cells: ArrayLike, positions: Sequence[int]) -> list[int | None]:
    """For each column the least permuted position among its rows; ``positions[i]`` is where row i goes.

    Positions may count from 0 or from 1. P[two minhashes agree] over random permutations is the Jaccard similarity:
    both look at the first row of type a, b or c, and agree when it is of type a (Broder, 1997).

    >>> minhash_by_position([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]], [4, 1, 5, 3, 2])
    [3, 1, 2]
    """
    matrix = _as_matrix(cells)
    first = min(positions, default=0)
    _check_permutation(positions, range(first, first + len(matrix)))
    where = np.asarray(positions)
    return [int(where[column].min()) if column.any() else None for column in matrix.T]


def permutation_signature(cells: ArrayLike, permutations: Iterable[Sequence[int]]) -> list[list[int | None]]:
    """The signature matrix: one row per permutation, one column per set."""
    return [minhash_by_position(cells, positions) for positions in permutations]


def agreement(left: Sequence[object], right: Sequence[object]) -> float:
    """The share of components in which two signatures agree, an unbiased estimate of their sets' similarity.

    >>> agreement([2, 1, 2], [1, 1, 2]) == 2 / 3
    True
    """
    if len(left) != len(right) or not left:
        raise ConfigError(f"two signatures must have the same number of slots, got {len(left)} and {len(right)}")
    return sum(x == y for x, y in zip(left, right, strict=True)) / len(left)


def one_permutation_bins(positions: Iterable[int], universe: int, bins: int) -> list[int | None]:
    """The least position inside each of t equal bins of 0 … D−1; None, printed ``*`` in papers, for an empty bin.

    Args:
        positions: Where the members of a set stand after one permutation of the universe.
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
    """N_mat/(t − N_emp): bins that agree, over bins not empty on both sides (Li, Owen & Zhang, 2012); 0 if all are.

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
