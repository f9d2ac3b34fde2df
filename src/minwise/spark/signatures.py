"""Signatures: texts in; what the first pass keeps of each, as columns of a table, out.

The same kernel as the local engine's, in one pass over each Arrow batch.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, validity_bitmap
from minwise.search.bands import FILLED, Bander, KeyBlock, element_arrays
from minwise.search.first_pass import text_lengths
from minwise.settings import FindSettings

__all__ = ["byte_values", "ddl", "elements_column", "key_matrix", "signature_columns", "signature_fields"]

bander_of = lru_cache(maxsize=4)(Bander)


# What Spark calls the types that stages come in.
NAMES = {
    pa.int8(): "byte",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
}


def ddl(fields: Iterable[pa.Field]) -> str:
    """The fields as Spark takes them.

    >>> ddl(pa.schema([("place", pa.int64()), ("keys", pa.binary())]))
    'place long, keys binary'
    """
    return ", ".join(f"{field.name} {NAMES[field.type]}" for field in fields)


def signature_fields(settings: FindSettings) -> list[pa.Field]:
    """The columns that :func:`signature_columns` gives."""
    fields = [
        ("state", pa.int8()),
        ("text_bytes", pa.int64()),
        ("content_high", pa.int64()),
        ("content_low", pa.int64()),
        ("keys", pa.binary()),
        ("fault", pa.string()),
    ]
    packed = [("packed", pa.binary())] if settings.verify == "signature" else []
    return [pa.field(name, kind) for name, kind in (*fields, *packed)]


def signature_columns(
    texts: pa.Array, settings: FindSettings, faults: Mapping[int, str] = MappingProxyType({})
) -> dict[str, pa.Array]:
    """State, length, content hash and band keys of each text; what is wrong with those that are not text.

    Keys are eight bytes per band, and null for a document that is in no bucket.

    Args:
        texts: As a batch of a source has them; null where there is no usable text.
        settings: What decides the result.
        faults: Why there is none, by place.
    """
    block = KeyBlock.of(settings, len(texts))
    found = dict(bander_of(settings).band(texts, block, 1))
    filled = block.states == FILLED
    columns = {
        "state": from_numpy(block.states.view(np.int8)),
        "text_bytes": from_numpy(text_lengths(texts).astype(np.int64)),
        "content_high": from_numpy(np.ascontiguousarray(block.contents[:, 0]).view(np.int64)),
        "content_low": from_numpy(np.ascontiguousarray(block.contents[:, 1]).view(np.int64)),
        "keys": _binary_column(np.ascontiguousarray(block.keys.T).view(np.uint8), filled),
        "fault": _sparse_strings({**faults, **found}, len(texts)),
    }
    if block.packed is not None:
        columns["packed"] = _binary_column(block.packed, filled)
    return columns


def _sparse_strings(values: dict[int, str], length: int) -> pa.Array:
    """A column of strings that is null but for a few places."""
    if not values:
        return pa.nulls(length, pa.string())
    return pa.array([values.get(place) for place in range(length)], pa.string())


def _binary_column(rows: NDArray[np.uint8], present: NDArray[np.bool_]) -> pa.Array:
    """The rows of a matrix as a column of bytes; null where a row is not present."""
    chosen = np.ascontiguousarray(rows[present])
    offsets = np.concatenate([[0], np.cumsum(np.where(present, rows.shape[1], 0))]).astype(np.int32)
    buffers = [validity_bitmap(present), pa.py_buffer(offsets), pa.py_buffer(chosen)]
    return pa.Array.from_buffers(pa.binary(), len(present), buffers)


def key_matrix(keys: pa.Array) -> NDArray[np.uint64]:
    """Columns of eight-byte numbers of equal width, none of them null, as a matrix with a row each."""
    flat = byte_values(keys).view(np.uint64)
    return flat.reshape(len(keys), -1) if len(keys) else flat.reshape(0, 0)


def byte_values(column: pa.Array) -> NDArray[np.uint8]:
    """The bytes of all values of a binary column, back to back."""
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return np.empty(0, dtype=np.uint8)
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    ends = np.frombuffer(offsets, dtype=width)
    return np.frombuffer(data, dtype=np.uint8)[ends[column.offset] : ends[column.offset + len(column)]]


def elements_column(texts: pa.Array, settings: FindSettings) -> pa.Array:
    """The distinct shingles of each text, ascending, eight bytes each."""
    offsets, elements = element_arrays(texts, settings.shingler, 1)
    buffers = [None, pa.py_buffer(8 * offsets), pa.py_buffer(np.ascontiguousarray(elements).view(np.uint8))]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
