"""Read: whatever a user calls texts in, Arrow string buffers out, without copying what is Arrow already."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import InputError

__all__ = ["TextChunk", "Texts", "naming_documents", "read_texts", "to_bytes"]

# A list of str or bytes; a pyarrow (Chunked)Array; a pandas or polars Series; anything with the Arrow C interface.
Texts = Any

# Documents converted to Arrow at once when they come as Python objects one by one.
BATCH_DOCUMENTS = 4096


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Texts back to back: text ``i`` is ``data[offsets[i]:offsets[i + 1]]``; ``first`` is the number of the first."""

    first: int
    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_texts(texts: Texts) -> Iterator[TextChunk]:
    """Yields the texts as chunks of Arrow buffers, in order.

    Raises:
        InputError: If a text is null or neither ``str`` nor ``bytes``; the message names its number.
    """
    first = 0
    for array in _arrow_arrays(texts):
        if array.null_count:
            row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(f"document {first + row} is null; give '' for an empty document, or leave it out")
        yield _chunk(array, first)
        first += len(array)


def _arrow_arrays(texts: Texts) -> Iterator[pa.Array]:
    if isinstance(texts, (str, bytes, bytearray)):
        raise InputError(f"texts must be a list of documents, got one {type(texts).__name__}; write [text]")
    if isinstance(texts, pa.ChunkedArray):
        yield from (_strings(chunk) for chunk in texts.chunks)
    elif isinstance(texts, pa.Array):
        yield _strings(texts)
    elif hasattr(texts, "to_arrow"):  # polars
        yield from _arrow_arrays(texts.to_arrow())
    elif hasattr(texts, "__arrow_c_stream__"):  # pandas since 3, nanoarrow, …
        yield from _arrow_arrays(pa.chunked_array(texts))
    elif hasattr(texts, "__arrow_c_array__"):
        yield from _arrow_arrays(pa.array(texts))
    elif isinstance(texts, Iterable):
        yield from _converted(texts)
    else:
        raise InputError(f"texts must be a list or column of documents, got {type(texts).__name__}")


def _strings(array: pa.Array) -> pa.Array:
    """The array with its texts in one buffer, which views, dictionaries and nulls-only arrays do not have."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return array
    if kind in (pa.string_view(), pa.null()):
        return array.cast(pa.large_string())
    if kind == pa.binary_view():
        return array.cast(pa.large_binary())
    raise InputError(f"texts must be strings or bytes, got an Arrow column of {kind}; cast it to string")


def _converted(texts: Iterable[object]) -> Iterator[pa.Array]:
    """Python objects as Arrow arrays, a batch at a time."""
    batch: list[object] = []
    first = 0
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH_DOCUMENTS:
            yield _from_objects(batch, first)
            first += len(batch)
            batch = []
    if batch:
        yield _from_objects(batch, first)


def _from_objects(batch: list[object], first: int) -> pa.Array:
    kind = pa.large_binary() if any(isinstance(text, bytes) for text in batch) else pa.large_string()
    try:
        return pa.array(batch, type=kind)
    except (pa.ArrowException, TypeError, ValueError):
        _refuse(batch, first)


def _refuse(batch: list[object], first: int) -> NoReturn:
    for number, text in enumerate(batch, first):
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"document {number} is not valid Unicode: {error.reason} at {error.start}") from None
        elif text is not None and not isinstance(text, bytes):
            raise InputError(f"document {number} must be str or bytes, got {type(text).__name__}")
    raise InputError(f"documents {first} to {first + len(batch) - 1} can not be read as text")


def _chunk(array: pa.Array, first: int) -> TextChunk:
    _, offsets, data = array.buffers()
    wide = array.type in (pa.large_string(), pa.large_binary())
    width: Any = np.int64 if wide else np.int32
    if len(array) == 0 or offsets is None:
        return TextChunk(first, np.zeros(1, dtype=width), np.empty(0, dtype=np.uint8))
    starts = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    return TextChunk(first, starts, np.frombuffer(data if data is not None else b"", dtype=np.uint8))


def to_bytes(text: object) -> bytes:
    """One document as the kernel takes it."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the text is not valid Unicode: {error.reason} at {error.start}") from None
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise InputError(f"a text must be str or bytes, got {type(text).__name__}")


@contextmanager
def naming_documents(first: int = 0) -> Iterator[None]:
    """Turns the kernel's complaint about a document into one that names the document by its number among all."""
    try:
        yield
    except _kernel.DocumentError as error:
        document, fault = error.args
        name = "the text" if document is None else f"document {first + document}"
        raise InputError(f"{name} {fault}") from None
