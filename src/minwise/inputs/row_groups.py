"""Regroup: kept rows in pieces of any size in, tables out whose sizes follow from the rows alone.

A copy must not show in how large pieces its rows were read, so a group ends after ``GROUP_ROWS`` rows, or before the
row with which it would exceed ``GROUP_BYTES``.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.inputs.columns import filtered, is_text, lengths, numbers

__all__ = ["GROUP_BYTES", "GROUP_ROWS", "kept_rows", "regroup", "row_bytes"]

GROUP_ROWS = 65_536
GROUP_BYTES = 1 << 24
# What a value of fixed width counts.
VALUE_BYTES = 8

Sizes = NDArray[np.int64]


def kept_rows(pieces: Iterator[tuple[int, pa.RecordBatch]], keep: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """The kept rows of each piece, up to the last row of which ``keep`` knows."""
    if not keep.any():
        return
    for first, rows in pieces:
        kept = keep[first : first + len(rows)]
        if kept.any():
            yield filtered(rows[: len(kept)], kept)
        if first + len(rows) >= len(keep):
            return


def regroup(pieces: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields the rows of all pieces as tables of one chunk each, none of them empty."""
    group: list[pa.RecordBatch] = []
    rows = held = 0
    for piece in pieces:
        ends = np.concatenate([[0], np.cumsum(_bytes_of_rows(piece))])
        start = 0
        while start < len(piece):
            fitting = int(np.searchsorted(ends, ends[start] + GROUP_BYTES - held, side="right")) - 1
            stop = min(max(fitting, start if rows else start + 1), start + GROUP_ROWS - rows)
            group.append(piece[start:stop])
            rows, held = rows + stop - start, held + int(ends[stop] - ends[start])
            start = stop
            if start < len(piece):
                full, group, rows, held = _table(group, schema), [], 0, 0
                yield full
    if rows:
        yield _table(group, schema)


def _table(group: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(group)
    for place, field in enumerate(schema):
        column = table.column(place)
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, column.cast(column.type.value_type))
    return table.cast(schema).combine_chunks()


def _bytes_of_rows(rows: pa.RecordBatch) -> Sizes:
    return sum((row_bytes(column) for column in rows.columns), np.zeros(len(rows), dtype=np.int64))


def row_bytes(array: Any) -> Sizes:  # noqa: ANN401 - pyarrow has no types
    """About the bytes that each value takes; it follows from the value, not from the array that holds it."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(array.storage)
    if is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
        return lengths(array)
    if pa.types.is_struct(kind):
        return sum((row_bytes(field) for field in array.flatten()), _same(array, 0))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _bytes_of_lists(array)
    return _same(array, VALUE_BYTES * (kind.list_size if pa.types.is_fixed_size_list(kind) else 1))


def _bytes_of_lists(array: Any) -> Sizes:  # noqa: ANN401 - as above
    ends = np.concatenate([[0], np.cumsum(row_bytes(array.items if pa.types.is_map(array.type) else array.values))])
    return np.diff(ends[numbers(array.offsets, missing=0)])


def _same(array: pa.Array, size: int) -> Sizes:
    return np.full(len(array), size, dtype=np.int64)
