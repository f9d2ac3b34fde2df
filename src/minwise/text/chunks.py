"""Read: whatever a user calls texts in, chunks of offsets and bytes out, without copying what is Arrow already."""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import present
from minwise.errors import InputError, MinwiseError

__all__ = ["TextChunk", "Texts", "naming_documents", "read_texts", "text_chunk", "to_bytes"]

# A list of str or bytes; a pyarrow (Chunked)Array; a pandas or polars Series; anything with the Arrow C interface.
Texts = Any

# What is gathered into one chunk when documents come as Python objects one by one.
BATCH_DOCUMENTS = 4096
BATCH_BYTES = 1 << 25
# Chunks of an Arrow column with fewer texts than this on average are joined.
SMALL_CHUNK = 256


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Texts back to back: text ``i`` is ``data[offsets[i]:offsets[i + 1]]``; ``first`` is the number of the first."""

    first: int
    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_texts(texts: Texts) -> Iterator[TextChunk]:
    """Yields the texts in chunks, in order.

    Raises:
        InputError: If a text is null or neither ``str`` nor ``bytes``; the message names its number.
    """
    column = _as_arrow(texts)
    return _from_objects(texts) if column is None else _from_arrow(column)


def _as_arrow(texts: Texts) -> pa.Array | pa.ChunkedArray | None:
    """The texts as an Arrow column, if that is what they are."""
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


def _from_arrow(column: pa.Array | pa.ChunkedArray) -> Iterator[TextChunk]:
    first = 0
    for piece in _pieces(column):
        array = _with_one_buffer(piece)
        if array.null_count:
            row = int(np.argmin(present(array)))
            to_bytes(None, f"document {first + row}")
        yield text_chunk(array, first)
        first += len(array)


def _pieces(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The chunks of a column; joined first if they are so small that each would cost more than its texts."""
    if isinstance(column, pa.Array):
        return [column]
    small = column.num_chunks > 1 and len(column) < SMALL_CHUNK * column.num_chunks
    if small and column.type in (pa.string(), pa.large_string()):
        return [pa.concat_arrays(column.cast(pa.large_string()).chunks)]
    return list(column.chunks)


def _with_one_buffer(array: pa.Array) -> pa.Array:
    """The array with its texts in one buffer, which dictionaries and views do not have."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return array
    if kind in (pa.string_view(), pa.null()):
        return array.cast(pa.large_string())
    if kind == pa.binary_view():
        return array.cast(pa.large_binary())
    raise InputError(f"texts must be strings or bytes, got an Arrow column of {kind}; cast it to string")


def text_chunk(array: pa.Array, first: int = 0) -> TextChunk:
    """One Arrow column of texts as the kernel takes it; nulls are not looked at."""
    array = _with_one_buffer(array)
    _, offsets, data = array.buffers()
    width: Any = np.int64 if array.type in (pa.large_string(), pa.large_binary()) else np.int32
    if len(array) == 0 or offsets is None:
        return TextChunk(first, np.zeros(1, dtype=width), np.empty(0, dtype=np.uint8))
    starts = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    return TextChunk(first, starts, np.frombuffer(data if data is not None else b"", dtype=np.uint8))


def _from_objects(texts: Iterable[object]) -> Iterator[TextChunk]:
    """Chunks of Python objects. Arrow could convert them too, but would import pandas to do so."""
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
            yield _joined(batch, first)
            batch, first, size = [], number + 1, 0
    if batch:
        yield _joined(batch, first)


def _joined(batch: list[bytes], first: int) -> TextChunk:
    offsets = np.zeros(len(batch) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in batch], out=offsets[1:])
    return TextChunk(first, offsets, np.frombuffer(b"".join(batch), dtype=np.uint8))


def to_bytes(text: object, name: str = "the text") -> bytes:
    """One document as the kernel takes it; ``name`` is what an error calls it."""
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
def naming_documents(first: int = 0, name: str = "the text") -> Iterator[None]:
    """Turns the kernel's complaint about a document into one that names it: by its number among all, or ``name``."""
    try:
        yield
    except _kernel.DocumentError as error:
        document, fault = error.args
        raise InputError(f"{name if document is None else f'document {first + document}'} {fault}") from None
    except MinwiseError:
        raise
    except ValueError as error:
        raise InputError(f"texts can not be read: {error}") from None
