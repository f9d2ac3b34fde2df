"""Messages of Arrow IPC: the rows and sizes that they promise, checked before Arrow allocates memory for them.

Arrow verifies the structure of a message, but allocates the bytes that it names, whatever they are: a damaged length
ends in an allocation of terabytes, and a few kilobytes of zstd in one of gigabytes. The metadata is a FlatBuffers table
(``format/Message.fbs`` and ``format/File.fbs`` of Arrow), of which a few fields are read here.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.inputs.source import UnreadableError

__all__ = ["FILE_MAGIC", "RECORD_BATCH", "Message", "read_file_messages", "read_stream_messages"]

# A compressed record batch is decompressed as a whole: beyond this size, it may be at most MAX_RATIO times as large as
# its compressed bytes. lz4 cannot exceed a ratio of 255; texts compressed with zstd have one of 2 to 20.
MAX_INFLATED_BYTES = 1 << 28
MAX_RATIO = 256
# Rows without any bytes, such as those of columns of the null type; others have at least a bit each.
MAX_EMPTY_ROWS = 1 << 16

CONTINUATION = 0xFFFFFFFF
FILE_MAGIC = b"ARROW1"
# Bytes behind the footer of a file: its length and the magic number.
TRAILER = struct.Struct("<i6s")
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
BLOCK = np.dtype([("offset", "<i8"), ("metadata_bytes", "<i4"), ("padding", "<i4"), ("body_bytes", "<i8")])
BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
# Errors of reading a table at offsets that are damaged.
DAMAGE_ERRORS = (struct.error, ValueError, OverflowError, AttributeError)


class Message(NamedTuple):
    """What the metadata of a message promises.

    Attributes:
        kind: Type of its content.
        rows: Rows of a record batch; None if it is none, or damaged.
        body_bytes: Bytes of its buffers, compressed if they are.
        end: Offset of the first byte behind it.
        problem: Why it must not be read; None if it can be.
        is_plausible: Whether its bytes can hold the rows, so that they count even if they cannot be read.
    """

    kind: int
    rows: int | None
    body_bytes: int
    end: int
    problem: str | None = None
    is_plausible: bool = False


def read_stream_messages(raw: pa.NativeFile, size: int) -> Iterator[Message]:
    """Yield the messages of a stream of ``size`` bytes, up to the first that cannot be read."""
    message = _read_message(raw, 0, size)
    while message is not None:
        yield message
        message = None if message.problem else _read_message(raw, message.end, size)


def read_file_messages(raw: pa.NativeFile, size: int) -> tuple[list[Message], list[Message]]:
    """Return the messages of the dictionaries and of the record batches of a file of ``size`` bytes.

    Raises:
        UnreadableError: If its footer is damaged.
    """
    raw.seek(max(0, size - TRAILER.size))
    try:
        length, magic = TRAILER.unpack(raw.read(TRAILER.size))
        if magic != FILE_MAGIC:
            raise UnreadableError("truncated file: it ends before its end marker")
        raw.seek(max(0, size - TRAILER.size - length))
        footer = _Table.root(raw.read(max(0, length)))
        blocks = [footer.vector(2, BLOCK), footer.vector(3, BLOCK)]
    except DAMAGE_ERRORS:
        raise UnreadableError("cannot be read: its footer is damaged") from None
    dictionaries, batches = ([_block_message(raw, block, size) for block in part] for part in blocks)
    return dictionaries, batches


def _block_message(raw: pa.NativeFile, block: Any, size: int) -> Message:  # noqa: ANN401 - a record of NumPy
    """Return the message of a block of the footer."""
    offset, length = int(block["offset"]), int(block["metadata_bytes"])
    message = _read_message(raw, offset, size) if 0 <= offset < size else None
    if message is None or not 0 <= length <= size - offset:
        return Message(0, None, 0, offset, f"cannot be read: its footer names a message at byte {offset}")
    return message


def _read_message(raw: pa.NativeFile, offset: int, size: int) -> Message | None:
    """Return the message at an offset; None at the end of a stream."""
    raw.seek(offset)
    start, length = _metadata_range(raw.read(8), offset)
    if not length:
        return None
    if length > size - start:
        return Message(0, None, 0, size, f"truncated file: the message at byte {offset} is incomplete")
    try:
        return _parse_message(raw, start, raw.read(length) if raw.seek(start) == start else b"", size)
    except DAMAGE_ERRORS:
        return Message(0, None, 0, size, f"cannot be read: the message at byte {offset} is damaged")


def _metadata_range(prefix: bytes, offset: int) -> tuple[int, int]:
    """Return offset and length of the metadata; before Arrow 0.15 there was no continuation marker."""
    words = [int.from_bytes(prefix[at : at + 4], "little") for at in (0, 4)]
    return (offset + 8, words[1]) if words[0] == CONTINUATION else (offset + 4, words[0])


def _parse_message(raw: pa.NativeFile, start: int, metadata: bytes, size: int) -> Message:
    message = _Table.root(metadata)
    kind, body_bytes, body = message.number(1, "<B"), message.number(3, "<q"), start + len(metadata)
    if not 0 <= body_bytes <= size - body:
        problem = f"truncated file: the message at byte {start} has a body of {body_bytes} bytes, beyond the end"
        return Message(kind, None, 0, size, problem)
    end = body + body_bytes
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH):
        return Message(kind, None, body_bytes, end)
    batch = message.table(2) if kind == RECORD_BATCH else message.table(2).table(1)
    inflated = _inflated_bytes(raw, batch, body, end) if batch.has(3) else body_bytes
    rows = batch.number(0, "<q")
    plausible = 0 <= rows <= MAX_EMPTY_ROWS + 8 * min(inflated, MAX_RATIO * body_bytes)
    return Message(kind, rows, body_bytes, end, _size_problem(rows, body_bytes, inflated), plausible)


def _size_problem(rows: int, body_bytes: int, inflated: int) -> str | None:
    """Return why a record batch must not be read: it has too many rows for its bytes, or decompresses to too many."""
    if not 0 <= rows <= MAX_EMPTY_ROWS + 8 * inflated:
        return f"cannot be read: {inflated} bytes cannot hold {rows} rows"
    if inflated > max(MAX_INFLATED_BYTES, MAX_RATIO * body_bytes):
        much = f"has {body_bytes} bytes that decompress to {inflated}, more than {MAX_RATIO} times as many"
        return f"{much}; write smaller record batches"
    return None


def _inflated_bytes(raw: pa.NativeFile, batch: "_Table", body: int, end: int) -> int:
    """Return the bytes of all buffers after decompression: each begins with its length, or -1 if it is stored."""
    total = 0
    for offset, length in batch.vector(2, BUFFER).tolist():
        if length < 8 or not body <= body + offset <= end - 8:
            continue  # empty, or outside the body, which Arrow rejects
        raw.seek(body + offset)
        inflated = int.from_bytes(raw.read(8), "little", signed=True)
        total += length if inflated < 0 else inflated
    return total


class _Table:
    """Table of FlatBuffers, whose fields are found by their number."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._vtable = position - self._unpack("<i", position)
        self._vtable_bytes = self._unpack("<H", self._vtable)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        """Return the outermost table of a message."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def _unpack(self, layout: str, position: int) -> int:
        if position < 0:
            raise ValueError("an offset before the start")
        return int(struct.unpack_from(layout, self._data, position)[0])

    def _field(self, number: int) -> int | None:
        """Return the position of a field; None if it has its default value."""
        entry = 4 + 2 * number
        offset = self._unpack("<H", self._vtable + entry) if entry < self._vtable_bytes else 0
        return self._position + offset if offset else None

    def has(self, number: int) -> bool:
        """Return whether a field is present."""
        return self._field(number) is not None

    def number(self, number: int, layout: str) -> int:
        """Return a field that is a whole number."""
        position = self._field(number)
        return 0 if position is None else self._unpack(layout, position)

    def _target(self, number: int) -> int:
        """Return the position that a field refers to."""
        position = self._field(number)
        if position is None:
            raise ValueError("a required field is missing")
        return position + self._unpack("<I", position)

    def table(self, number: int) -> "_Table":
        """Return a field that is a table."""
        return _Table(self._data, self._target(number))

    def vector(self, number: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """Return a field that is a vector of structs."""
        if not self.has(number):
            return np.empty(0, dtype=kind)
        start = self._target(number)
        return np.frombuffer(self._data, kind, self._unpack("<I", start), start + 4)
