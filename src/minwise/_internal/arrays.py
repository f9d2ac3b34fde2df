"""Conversions between Python values, NumPy arrays and Arrow arrays.

PyArrow has functions for all of them, but those import pandas where it is installed, which takes a third of a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = [
    "FLAT_TYPES",
    "flatten_texts",
    "from_bools",
    "from_bytes",
    "from_lists",
    "from_matrix",
    "from_numbers",
    "from_numpy",
    "from_strings",
    "index_ranges",
    "invalid_utf8_offset",
    "join_bytes",
    "repeat_string",
    "struct_field",
    "to_matrix",
    "to_numpy",
    "valid_mask",
    "validity_bitmap",
]

# Arrow types that store their values in one buffer, with an offset for each.
FLAT_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def from_bytes(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return an array of ``kind``, large_string or large_binary; the bytes of strings are not validated."""
    offsets, data = join_bytes([b"" if value is None else value for value in values])
    valid = validity_bitmap([value is not None for value in values])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])


def join_bytes(values: Sequence[bytes]) -> tuple[NDArray[np.int64], bytes]:
    """Return the values joined into one buffer, and the offset of each with the total length at the end."""
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return offsets, b"".join(values)


def from_numbers(values: Sequence[int | float | None], kind: type[np.int64] | type[np.float64]) -> pa.Array:
    """Return an int64 or float64 array; None becomes null."""
    numbers = np.array([0 if value is None else value for value in values], dtype=kind)
    valid = validity_bitmap([value is not None for value in values])
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(values), [valid, pa.py_buffer(numbers)])


def from_numpy(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a zero-copy array of numbers; null where ``valid`` is False."""
    values = np.ascontiguousarray(values)
    bits = None if valid is None else validity_bitmap(valid)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(values)])


def from_bools(values: NDArray[np.bool_]) -> pa.Array:
    """Return a boolean array."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def from_strings(values: Sequence[str]) -> pa.Array:
    """Return a large_string array."""
    return from_bytes([value.encode() for value in values], pa.large_string())


def repeat_string(value: str, count: int) -> pa.Array:
    """Return a large_string array that repeats ``value`` ``count`` times."""
    return from_strings([value]).take(from_numpy(np.zeros(count, dtype=np.int64)))


def from_lists(offsets: NDArray[Any], items: pa.Array, valid: NDArray[np.bool_]) -> pa.Array:
    """Return a list array whose list i is ``items[offsets[i]:offsets[i + 1]]``; null where ``valid`` is False."""
    starts = pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64))
    buffers = [validity_bitmap(valid), starts]
    return pa.Array.from_buffers(pa.large_list(items.type), len(valid), buffers, children=[items])


def from_matrix(rows: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a zero-copy fixed-size list array of the rows of a matrix; null where ``valid`` is False."""
    values = from_numpy(rows.reshape(-1))
    kind = pa.list_(values.type, max(1, rows.shape[1]))
    bits = None if valid is None else validity_bitmap(valid)
    return pa.Array.from_buffers(kind, len(rows), [bits], children=[values])


def struct_field(structs: pa.Array, number: int) -> pa.Array:
    """Return a field of structs, null where a struct is.

    A union has no nulls of its own: of structs that are null it has any value. Arrow ends the process instead.
    """
    field = structs.field(number)
    return field if pa.types.is_union(field.type) else pc.struct_field(structs, [number])


def validity_bitmap(valid: Sequence[bool] | NDArray[np.bool_]) -> pa.Buffer | None:
    """Return the Arrow validity buffer; None if all values are valid."""
    return None if np.all(valid) else pa.py_buffer(np.packbits(valid, bitorder="little"))


def index_ranges(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated index ranges ``begin, begin + 1, …, begin + size - 1``."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)


def valid_mask(array: pa.Array) -> NDArray[np.bool_]:
    """Return a mask that is True where a value is not null."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    bits = np.frombuffer(array.is_valid().buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, count=len(array), bitorder="little").view(np.bool_)


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """Return a zero-copy view of an array of numbers; values at null positions are undefined."""
    kind = _number_type(array.type)
    if len(array) == 0:
        return np.empty(0, dtype=kind)
    # With a count: the buffer of a file may have a few bytes more than its values.
    return np.frombuffer(array.buffers()[1], dtype=kind, count=len(array), offset=array.offset * kind.itemsize)


def _number_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return the type of NumPy. Arrow's own conversion imports pandas in the last version for Python 3.10."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        sign = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
        return np.dtype(f"{sign}{kind.bit_width // 8}")
    found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return found


def to_matrix(column: pa.Array) -> NDArray[Any]:
    """Return a zero-copy matrix view of a fixed-size list array; rows at null positions are undefined."""
    dims = column.type.list_size
    values = to_numpy(column.values)
    return values[column.offset * dims : (column.offset + len(column)) * dims].reshape(len(column), dims)


def flatten_texts(array: pa.Array) -> pa.Array:
    """Return texts as one of :data:`FLAT_TYPES`: dictionaries are decoded, views and nulls cast to a large type."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type in FLAT_TYPES:
        return array
    return array.cast(pa.large_binary() if array.type == pa.binary_view() else pa.large_string())


def invalid_utf8_offset(data: bytes) -> int | None:
    """Return the offset of the first byte that is not valid UTF-8; None if there is none."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None
