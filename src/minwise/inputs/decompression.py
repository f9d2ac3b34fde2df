"""Decompression that yields every byte before the first damaged one, whatever the size of reads and chunks.

A decompressor that meets damage drops what the same call has decompressed before it. The file is therefore read a
second time: as before up to the last read, and from there byte by byte. It costs nothing unless a file is damaged.

gzip and bz2 use the standard library: Arrow fails on bz2 of several streams and on gzip padded with zeros.
"""

import bz2
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from minwise.inputs.source import UnreadableError

__all__ = ["COMPRESSIONS", "decompress"]

# By the suffix of the file name.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# First bytes; zstd may begin with a skippable frame.
MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + kind]) + b"\x2a\x4d\x18" for kind in range(16))),
}
# Bytes per read of gzip and bz2, the same as those of Arrow for zstd.
READ_BYTES = 1 << 16


def decompress(open_file: Callable[[], BinaryIO], compression: str, chunk_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in chunks of at most ``chunk_bytes``.

    Args:
        open_file: Opens the file; called a second time if it is damaged.
        compression: One of the values of ``COMPRESSIONS``.
        chunk_bytes: Size of chunks. No byte depends on it.

    Raises:
        UnreadableError: At the first damaged byte, or if the file is truncated.
    """
    done = 0
    with open_file() as raw:
        stored = _StoredBytes(raw)
        try:
            for chunk in _decompressed(stored, compression, lambda done: chunk_bytes):
                done += len(chunk)
                yield chunk
            return
        except UnreadableError:
            if not any(magic.startswith(stored.head[: len(magic)]) for magic in MAGIC[compression]):
                raise UnreadableError(_other_content(compression)) from None
    rest, damage = _before_damage(open_file, compression, done, stored.last_read)
    yield from filter(None, [rest])
    if damage is not None:
        raise damage


def _before_damage(
    open_file: Callable[[], BinaryIO], compression: str, done: int, damaged: int
) -> tuple[bytes, UnreadableError | None]:
    """Return the decompressed bytes from ``done`` on, and the error after them; they end in the read at ``damaged``."""
    size = 0
    rest: list[bytes] = []
    with open_file() as raw:
        stored = _StoredBytes(raw, single_from=damaged)
        try:
            for chunk in _decompressed(stored, compression, lambda size: max(1, min(READ_BYTES, done - size))):
                rest += [chunk] if size >= done else []
                size += len(chunk)
        except UnreadableError as error:
            return b"".join(rest), error
    return b"".join(rest), None


class _StoredBytes:
    """Compressed bytes of a file, from an offset on one at a time.

    Attributes:
        head: The bytes of the first read.
        offset: Number of bytes read.
        last_read: Offset of the last read that returned bytes.
    """

    closed = False

    def __init__(self, raw: BinaryIO, single_from: int | None = None) -> None:
        self._raw = raw
        self._single_from = single_from
        self.head = b""
        self.offset = self.last_read = 0

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        if self._single_from is not None:
            size = max(1, min(size, self._single_from - self.offset))
        data = self._raw.read(size)
        self.head = self.head or data
        if data:
            self.last_read, self.offset = self.offset, self.offset + len(data)
        return data

    def close(self) -> None:
        """Do nothing: the file is closed where it was opened."""


def _decompressed(stored: _StoredBytes, compression: str, size_of: Callable[[int], int]) -> Iterator[bytes]:
    """Yield chunks of at most the size that ``size_of`` returns for the number of bytes so far."""
    done = 0
    with _translate_errors(stored, compression):
        stream: Any = (
            pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd")
            if compression == "zstd"
            else _Members(stored, _GzipMember if compression == "gzip" else bz2.BZ2Decompressor)
        )
        while chunk := stream.read(size_of(done)):
            done += len(chunk)
            yield chunk


class _GzipMember:
    """Decompressor of one gzip member, with the methods of ``bz2.BZ2Decompressor``."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the end of the member was read."""
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the member."""
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes."""
        chunk = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self.needs_input = not self._inflate.unconsumed_tail and len(chunk) < max_length
        return chunk


class _Members:
    """Reads the members of a gzip file, or the streams of a bz2 file; zeros between and after them are padding."""

    def __init__(self, stored: _StoredBytes, new_member: Callable[[], Any]) -> None:
        self._stored = stored
        self._new_member = new_member
        self._member = new_member()
        self._held = b""

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, none at the end.

        Raises:
            EOFError: If the file is truncated.
        """
        while not self._member.eof or self._next_member():
            needs_input = self._member.needs_input
            data = self._next_bytes() if needs_input else b""
            if needs_input and not data:
                raise EOFError
            chunk: bytes = self._member.decompress(data, size)
            if chunk:
                return chunk
        return b""

    def _next_bytes(self) -> bytes:
        data, self._held = self._held or self._stored.read(READ_BYTES), b""
        return data

    def _next_member(self) -> bool:
        """Return whether another member follows, after padding."""
        self._held = self._member.unused_data
        while not self._held.lstrip(b"\0"):
            self._held = self._stored.read(READ_BYTES)
            if not self._held:
                return False
        self._held = self._held.lstrip(b"\0")
        self._member = self._new_member()
        return True


@contextmanager
def _translate_errors(stored: _StoredBytes, compression: str) -> Iterator[None]:
    """Translate errors of decompressors to ``UnreadableError``; an error of the system has a number."""
    try:
        yield
    except EOFError:
        raise UnreadableError(_truncated(compression)) from None
    except (pa.ArrowException, zlib.error, OSError) as error:
        if isinstance(error, pa.ArrowMemoryError) or getattr(error, "errno", None) is not None:
            raise
        if "Truncated" in str(error):
            raise UnreadableError(_truncated(compression)) from None
        reason = " ".join(str(error).split()).rpartition(": ")[2]
        raise UnreadableError(f"damaged {compression} at byte {max(0, stored.offset - 1)}: {reason}") from None


def _truncated(compression: str) -> str:
    return f"truncated {compression}: it ends before its end marker"


def _other_content(compression: str) -> str:
    suffix = next(suffix for suffix, name in COMPRESSIONS.items() if name == compression)
    return f"is not compressed with {compression}, although its name ends in {suffix}; rename it"
