"""Signatures and shingle sets as Arrow columns, which Spark stores and shuffles.

The kernel is that of the local engine, in one pass over each Arrow batch.
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
from minwise.settings import SearchSettings

__all__ = [
    "SKETCH_FIELDS",
    "SPARK_TYPES",
    "Int64s",
    "byte_values",
    "bytes_per_text_byte",
    "ddl",
    "elements_column",
    "key_matrix",
    "signature_columns",
    "signature_fields",
    "sketch",
]

Int64s = NDArray[np.int64]

cached_bander = lru_cache(maxsize=4)(Bander)

# Spark's names of the Arrow types that stages consist of.
SPARK_TYPES = {
    pa.int8(): "byte",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
}


def ddl(fields: Iterable[pa.Field]) -> str:
    """Return an Arrow schema in Spark's schema language.

    >>> ddl(pa.schema([("place", pa.int64()), ("keys", pa.binary())]))
    'place long, keys binary'
    """
    return ", ".join(f"{field.name} {SPARK_TYPES[field.type]}" for field in fields)


# Columns of :func:`sketch`.
SKETCH_FIELDS = [
    pa.field(name, kind)
    for name, kind in (
        ("state", pa.int8()),
        ("text_bytes", pa.int64()),
        ("content_high", pa.int64()),
        ("content_low", pa.int64()),
        ("fault", pa.string()),
    )
]


def sketch(
    texts: pa.Array, settings: SearchSettings, faults: Mapping[int, str] = MappingProxyType({})
) -> tuple[KeyBlock, dict[str, pa.Array]]:
    """Return the band keys of texts, and their state, length, content hash and fault as columns.

    Args:
        texts: Texts or sets of one batch; null where there is no usable text.
        settings: Settings of the search.
        faults: Reason of each null, by row.
    """
    block = KeyBlock.allocate(settings, len(texts))
    found = dict(cached_bander(settings).band(texts, block, 1))
    return block, {
        "state": from_numpy(block.states.view(np.int8)),
        "text_bytes": from_numpy(text_lengths(texts).astype(np.int64)),
        "content_high": from_numpy(np.ascontiguousarray(block.contents[:, 0]).view(np.int64)),
        "content_low": from_numpy(np.ascontiguousarray(block.contents[:, 1]).view(np.int64)),
        "fault": _sparse_strings({**faults, **found}, len(texts)),
    }


def signature_fields(settings: SearchSettings) -> list[pa.Field]:
    """Return the fields of :func:`signature_columns`."""
    packed = [pa.field("packed", pa.binary())] if settings.verify == "signature" else []
    *others, fault = SKETCH_FIELDS
    return [*others, pa.field("keys", pa.binary()), fault, *packed]


def signature_columns(
    texts: pa.Array, settings: SearchSettings, faults: Mapping[int, str] = MappingProxyType({})
) -> dict[str, pa.Array]:
    """Return the columns of :func:`sketch`, and the band keys of each text: eight bytes per band, null if it has none.

    Args:
        texts: Texts or sets of one batch; null where there is no usable text.
        settings: Settings of the search.
        faults: Reason of each null, by row.
    """
    block, columns = sketch(texts, settings, faults)
    filled = block.states == FILLED
    columns["keys"] = _binary_column(np.ascontiguousarray(block.keys.T).view(np.uint8), filled)
    if block.packed is not None:
        columns["packed"] = _binary_column(block.packed, filled)
    return {field.name: columns[field.name] for field in signature_fields(settings)}


def _sparse_strings(values: dict[int, str], length: int) -> pa.Array:
    """Return a column of strings that is null except at a few rows."""
    if not values:
        return pa.nulls(length, pa.string())
    return pa.array([values.get(row) for row in range(length)], pa.string())


def _binary_column(rows: NDArray[np.uint8], present: NDArray[np.bool_]) -> pa.Array:
    """Return the rows of a matrix as a binary column, null where a row is not present."""
    chosen = np.ascontiguousarray(rows[present])
    offsets = np.concatenate([[0], np.cumsum(np.where(present, rows.shape[1], 0))]).astype(np.int32)
    buffers = [validity_bitmap(present), pa.py_buffer(offsets), pa.py_buffer(chosen)]
    return pa.Array.from_buffers(pa.binary(), len(present), buffers)


def bytes_per_text_byte(settings: SearchSettings) -> float:
    """Return the approximate bytes of the set of a document per unit of its length: 8 per shingle or element.

    A text has a shingle per word, of about five bytes, or per character.
    """
    return 1.5 if settings.shingler is not None and settings.shingler.kind == "word" else 8.0


def key_matrix(keys: pa.Array) -> NDArray[np.uint64]:
    """Return a binary column of eight-byte numbers, equally many per row and none null, as a matrix."""
    flat = byte_values(keys).view(np.uint64)
    return flat.reshape(len(keys), -1) if len(keys) else flat.reshape(0, 0)


def byte_values(column: pa.Array) -> NDArray[np.uint8]:
    """Return a view of the concatenated values of a binary column."""
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return np.empty(0, dtype=np.uint8)
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    ends = np.frombuffer(offsets, dtype=width)
    return np.frombuffer(data, dtype=np.uint8)[ends[column.offset] : ends[column.offset + len(column)]]


def elements_column(texts: pa.Array, settings: SearchSettings) -> pa.Array:
    """Return the distinct shingles of each text, ascending, eight bytes each."""
    offsets, elements = element_arrays(texts, settings.shingler, 1)
    buffers = [None, pa.py_buffer(8 * offsets), pa.py_buffer(np.ascontiguousarray(elements).view(np.uint8))]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
