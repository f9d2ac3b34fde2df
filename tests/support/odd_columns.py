"""Columns of types and values that few tables have: each is valid Arrow."""

from typing import Any

import pyarrow as pa

__all__ = ["ODD_COLUMNS", "TEXTS"]

TEXTS = [
    "the ferry leaves the harbour at six in the morning",
    "the ferry leaves the harbour at six in the morning",
    "the bakery opens its ovens long before the sun is up",
    "something different altogether, about bread and butter",
]
ROWS = len(TEXTS)


def raw_values(kind: Any, value: int, width: int = 8) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a column of one stored value that ``pa.array`` would reject."""
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(value.to_bytes(width, "little") * ROWS)])


def nested(levels: int) -> Any:  # noqa: ANN401 - as above
    """Return structs within structs."""
    column = pa.array(TEXTS)
    for _ in range(levels):
        column = pa.StructArray.from_arrays([column], ["a"])
    return column


CODES = pa.array([0] * ROWS, pa.int8())
ODD_COLUMNS = {
    "unknown time zone": raw_values(pa.timestamp("s", "No/Where"), 1),
    "impossible offset": raw_values(pa.timestamp("us", "+99:99"), 1),
    "time after the year 9999": raw_values(pa.timestamp("s"), 2**62),
    "nanoseconds": raw_values(pa.timestamp("ns"), 1),
    "duration": raw_values(pa.duration("ns"), 1),
    "long duration": raw_values(pa.duration("s"), 2**62),
    "interval": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
    "date after the year 9999": raw_values(pa.date64(), 2**62),
    "decimal": pa.array(range(ROWS), pa.decimal256(60, 2)),
    "decimal of too many digits": raw_values(pa.decimal128(3, 1), 2**61, 16),
    "equal names in a struct": pa.StructArray.from_arrays([pa.array(TEXTS), pa.array(TEXTS)], ["a", "a"]),
    "map": pa.array([[(1, "v")]] * ROWS, pa.map_(pa.int8(), pa.string())),
    "dense union": pa.UnionArray.from_dense(CODES, pa.array(range(ROWS), pa.int32()), [pa.array(TEXTS)]),
    "union in a struct": pa.StructArray.from_arrays([pa.UnionArray.from_sparse(CODES, [pa.array(TEXTS)])], ["a"]),
    "uuid": pa.array([bytes([200 + row]) * 16 for row in range(ROWS)], pa.uuid()),
    "null": pa.nulls(ROWS),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, ROWS], pa.int32()), pa.array(TEXTS[:2])),
    "list view": pa.array([[text] for text in TEXTS], pa.list_view(pa.string())),
    "not UTF-8": pa.array([b"\xff\xfe"] * ROWS).view(pa.string()),
    "bytes": pa.array([b"\xff\xfe"] * ROWS),
    "struct without fields": pa.array([{}] * ROWS, pa.struct([])),
    "lists of no values": pa.array([[]] * ROWS, pa.list_(pa.int8(), 0)),
    "60 levels": nested(60),
    "990 levels": nested(990),
}
