"""Arrays: Python values in, Arrow arrays out, without pandas, which ``pyarrow.array`` would import."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

__all__ = ["from_bytes", "from_numbers", "invalid_at"]


def from_bytes(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """An array of ``kind``, large_string or large_binary; the bytes of strings are not checked."""
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([0 if value is None else len(value) for value in values], out=offsets[1:])
    data = b"".join([value for value in values if value is not None])
    valid, nulls = _validity([value is not None for value in values])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(data)], nulls)


def from_numbers(values: Sequence[int | float | None], kind: type[np.int64] | type[np.float64]) -> pa.Array:
    """An int64 or float64 array."""
    numbers = np.array([0 if value is None else value for value in values], dtype=kind)
    valid, nulls = _validity([value is not None for value in values])
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(values), [valid, pa.py_buffer(numbers)], nulls)


def _validity(present: list[bool]) -> tuple[pa.Buffer | None, int]:
    """The bitmap of what is there, and how many are not."""
    nulls = len(present) - sum(present)
    return (pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None), nulls


def invalid_at(data: bytes) -> int | None:
    """The first byte that is no UTF-8, if there is one."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None
