"""Keep order: which of several documents is kept, as plain sorts of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["keep_order"]

Row = Mapping[str, Any]


def keep_order(
    rows: Sequence[Row],
    keep: str = "first",
    prefer: tuple[str, Sequence[str]] | None = None,
    protect: Sequence[tuple[str, str]] = (),
) -> tuple[list[int], int]:
    """Return the numbers of rows in keep order, and how many of the first are never removed.

    Args:
        rows: The rows, with the columns that the rules name; the length of a row is that of its ``text`` in UTF-8.
        keep: Keys separated by commas, of which each decides where those before are equal.
        prefer: A column and its values that come first, in their order.
        protect: Columns and values of rows that are never removed.

    >>> rows = [{"site": "crawl", "year": 2020}, {"site": "wiki", "year": None}, {"site": "books", "year": 2019}]
    >>> keep_order(rows, "min:year,last")
    ([2, 0, 1], 0)
    >>> keep_order(rows, prefer=("site", ["books", "wiki"]), protect=[("site", "crawl")])
    ([0, 2, 1], 1)
    """
    order = list(range(len(rows)))
    for key in reversed(keep.split(",")):
        order = _sorted(order, rows, *key.partition(":")[::2])
    if prefer is not None:
        column, values = prefer
        places = {value: place for place, value in enumerate(values)}
        order.sort(key=lambda number: places.get(str(rows[number][column]), len(places)))
    never = {number for number in order if any(str(rows[number][column]) == value for column, value in protect)}
    return sorted(order, key=lambda number: number not in never), len(never)


def _sorted(order: list[int], rows: Sequence[Row], policy: str, column: str) -> list[int]:
    """Return numbers of rows sorted by one key; equal ones stay in their order, rows without a value come last."""
    if policy in ("first", "last"):
        return sorted(order, reverse=policy == "last")
    if policy in ("longest", "shortest"):
        sizes = [len(row["text"].encode()) for row in rows]
        return sorted(order, key=lambda number: -sizes[number] if policy == "longest" else sizes[number])
    known = [number for number in order if rows[number][column] is not None]
    ranks = {value: rank for rank, value in enumerate(sorted({rows[number][column] for number in known}))}
    sign = -1 if policy == "max" else 1
    known.sort(key=lambda number: sign * ranks[rows[number][column]])
    return known + [number for number in order if rows[number][column] is None]
