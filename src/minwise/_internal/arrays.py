"""Arrays: Python values and NumPy arrays in, Arrow arrays out, and back.

PyArrow has functions for all of it, but they import pandas where it is installed, which takes a third of a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = [
    "bitmap",
    "flags",
    "from_bytes",
    "from_lists",
    "from_matrix",
    "from_numbers",
    "from_numpy",
    "from_strings",
    "invalid_at",
    "matrix_of",
    "present",
    "repeat_string",
    "to_numpy",
]


def from_bytes(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """An array of ``kind``, large_string or large_binary; the bytes of strings are not checked."""
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([0 if value is None else len(value) for value in values], out=offsets[1:])
    data = b"".join([value for value in values if value is not None])
    valid = bitmap([value is not None for value in values])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])


def from_numbers(values: Sequence[int | float | None], kind: type[np.int64] | type[np.float64]) -> pa.Array:
    """An int64 or float64 array."""
    numbers = np.array([0 if value is None else value for value in values], dtype=kind)
    valid = bitmap([value is not None for value in values])
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(values), [valid, pa.py_buffer(numbers)])


def from_numpy(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """An array over the memory of numbers; null where ``valid`` is not set."""
    values = np.ascontiguousarray(values)
    bits = None if valid is None else bitmap(valid)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(values)])


def from_strings(values: Sequence[str]) -> pa.Array:
    """A large_string array."""
    return from_bytes([value.encode() for value in values], pa.large_string())


def repeat_string(value: str, count: int) -> pa.Array:
    """A large_string array of one value so many times."""
    return from_strings([value]).take(from_numpy(np.zeros(count, dtype=np.int64)))


def from_lists(offsets: NDArray[Any], items: pa.Array, valid: NDArray[np.bool_]) -> pa.Array:
    """A column of lists of items, list i being those from offset i up to the next; null where ``valid`` is not set."""
    starts = pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64))
    return pa.Array.from_buffers(pa.large_list(items.type), len(valid), [bitmap(valid), starts], children=[items])


def from_matrix(rows: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of lists of one length over the memory of a matrix; null where ``valid`` is not set."""
    values = from_numpy(rows.reshape(-1))
    kind = pa.list_(values.type, max(1, rows.shape[1]))
    return pa.Array.from_buffers(kind, len(rows), [None if valid is None else bitmap(valid)], children=[values])


def bitmap(valid: Sequence[bool] | NDArray[np.bool_]) -> pa.Buffer | None:
    """What says which values of an array are there; None if all of them are."""
    return None if np.all(valid) else pa.py_buffer(np.packbits(valid, bitorder="little"))


def present(array: pa.Array) -> NDArray[np.bool_]:
    """A flag for each value that is not null."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    bits = np.frombuffer(array.is_valid().buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, count=len(array), bitorder="little").view(np.bool_)


def flags(values: NDArray[np.bool_]) -> pa.Array:
    """The same flags as an Arrow array; ``pyarrow.array`` would import pandas."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """The memory of numbers; what stands there for a null is anything."""
    kind = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0:
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def matrix_of(column: pa.Array) -> NDArray[Any]:
    """The rows of a column of lists of one length, as a view of its memory; what a null has there is anything."""
    dims = column.type.list_size
    values = to_numpy(column.values)
    return values[column.offset * dims : (column.offset + len(column)) * dims].reshape(len(column), dims)


def invalid_at(data: bytes) -> int | None:
    """The first byte that is no UTF-8, if there is one."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None
