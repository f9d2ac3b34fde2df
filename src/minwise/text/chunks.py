"""Reader of texts in any supported form, as chunks of offsets and bytes. Arrow columns are not copied."""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import FLAT_TYPES, flatten_texts, join_bytes, valid_mask
from minwise.errors import InputError, MinwiseError

__all__ = [
    "ArrowArray",
    "ArrowStream",
    "TextChunk",
    "Texts",
    "read_texts",
    "text_chunk",
    "to_bytes",
    "translate_kernel_errors",
]


class ArrowStream(Protocol):
    """Column that implements the Arrow C stream interface, such as a polars Series."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the column."""


class ArrowArray(Protocol):
    """Column that implements the Arrow C data interface, such as a pyarrow array."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        """Export the column."""


# A list of str or bytes; a pyarrow Array or ChunkedArray; a pandas or polars Series; any column with the Arrow C
# interface.
Texts = Iterable[str | bytes] | ArrowStream | ArrowArray

# Limits of a chunk that is made of single Python objects.
BATCH_DOCUMENTS = 4096
BATCH_BYTES = 1 << 25
# Chunks of an Arrow column are joined if they hold fewer texts than this on average.
SMALL_CHUNK = 256


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Consecutive texts in one buffer: text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Attributes:
        first: Document number of the first text.
        offsets: Offset of each text in ``data``, and the end of the last.
        data: UTF-8 bytes of all texts.
    """

    first: int
    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_texts(texts: Texts) -> Iterator[TextChunk]:
    """Yield the texts in chunks, in order.

    Raises:
        InputError: If a text is null or neither ``str`` nor ``bytes``; the message contains its document number.
    """
    column = _as_arrow(texts)
    return _chunks_of_objects(texts) if column is None else _chunks_of_column(column)


def _as_arrow(texts: Any) -> pa.Array | pa.ChunkedArray | None:  # noqa: ANN401 - the caller may pass any object
    """Return the texts as an Arrow column if they are in a form that converts without a copy, else None."""
    if isinstance(texts, (str, bytes, bytearray)):
        raise InputError(f"texts must be a list of documents, got one {type(texts).__name__}; write [text]")
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        return texts
    if isinstance(texts, (Mapping, Set)) or hasattr(type(texts), "columns"):
        raise InputError(f"texts must be one ordered column of documents, got {type(texts).__name__}; pass a column")
    if hasattr(texts, "to_arrow"):  # polars
        return texts.to_arrow()
    for name, convert in (("__arrow_c_stream__", pa.chunked_array), ("__arrow_c_array__", pa.array)):
        if hasattr(texts, name):
            try:
                return convert(texts)
            except (pa.ArrowException, ValueError, TypeError):  # such as a pandas column of mixed objects
                return None
    return None


def _chunks_of_column(column: pa.Array | pa.ChunkedArray) -> Iterator[TextChunk]:
    first = 0
    for piece in _pieces(column):
        array = _flatten(piece)
        if array.null_count:
            row = int(np.argmin(valid_mask(array)))
            to_bytes(None, f"document {first + row}")
        yield text_chunk(array, first)
        first += len(array)


def _pieces(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return the chunks of a column, joined if they are so small that a chunk costs more than its texts."""
    if isinstance(column, pa.Array):
        return [column]
    small = column.num_chunks > 1 and len(column) < SMALL_CHUNK * column.num_chunks
    if small and column.type in (pa.string(), pa.large_string()):
        return [pa.concat_arrays(column.cast(pa.large_string()).chunks)]
    return list(column.chunks)


def _flatten(array: pa.Array) -> pa.Array:
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if kind not in (*FLAT_TYPES, pa.string_view(), pa.binary_view(), pa.null()):
        raise InputError(f"texts must be strings or bytes, got an Arrow column of {kind}; cast it to string")
    return flatten_texts(array)


def text_chunk(array: pa.Array, first: int = 0) -> TextChunk:
    """Return an Arrow column of texts as a chunk, without a copy; values at null positions are undefined."""
    array = _flatten(array)
    _, offsets, data = array.buffers()
    width: Any = np.int64 if array.type in (pa.large_string(), pa.large_binary()) else np.int32
    if len(array) == 0 or offsets is None:
        return TextChunk(first, np.zeros(1, dtype=width), np.empty(0, dtype=np.uint8))
    begin = array.offset * np.dtype(width).itemsize
    # With a count: the buffer of a file may have a few bytes more than its offsets.
    starts = np.frombuffer(offsets, dtype=width, count=len(array) + 1, offset=begin)
    return TextChunk(first, starts, np.frombuffer(data if data is not None else b"", dtype=np.uint8))


def _chunks_of_objects(texts: Any) -> Iterator[TextChunk]:  # noqa: ANN401 - as above
    """Yield chunks of Python objects. Arrow could convert them too, but would import pandas to do so."""
    try:
        documents = enumerate(iter(texts))
    except TypeError:
        raise InputError(f"texts must be a list or column of documents, got {type(texts).__name__}") from None
    batch: list[bytes] = []
    first = size = 0
    for number, text in documents:
        batch.append(to_bytes(text, f"document {number}"))
        size += len(batch[-1])
        if len(batch) == BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield _join(batch, first)
            batch, first, size = [], number + 1, 0
    if batch:
        yield _join(batch, first)


def _join(batch: list[bytes], first: int) -> TextChunk:
    offsets, data = join_bytes(batch)
    return TextChunk(first, offsets, np.frombuffer(data, dtype=np.uint8))


def to_bytes(text: object, name: str = "the text") -> bytes:
    """Return a text as UTF-8 bytes; ``bytes`` are returned as they are.

    Args:
        text: The text.
        name: Name of the text in error messages.

    Raises:
        InputError: If the text is None, neither ``str`` nor ``bytes``, or contains a lone surrogate.
    """
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} is not valid Unicode: {error.reason} at {error.start}") from None
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    if text is None:
        raise InputError(f"{name} is null; give '' for an empty document, or leave it out")
    raise InputError(f"{name} must be str or bytes, got {type(text).__name__}")


@contextmanager
def translate_kernel_errors(first: int = 0, name: str = "the text") -> Iterator[None]:
    """Turn kernel errors into an InputError that names the document.

    Args:
        first: Document number of the first text of the chunk.
        name: Name of the text in the message where the kernel reports no number.
    """
    try:
        yield
    except _kernel.DocumentError as error:
        document, fault = error.args
        raise InputError(f"{name if document is None else f'document {first + document}'} {fault}") from None
    except MinwiseError:
        raise
    except ValueError as error:
        raise InputError(f"texts cannot be read: {error}") from None
