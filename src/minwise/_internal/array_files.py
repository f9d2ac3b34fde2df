"""Array files: a header that says everything, then plain arrays, each part with its CRC-32C.

::

    magic        8 bytes   which kind of file this is
    version      u32       of that kind
    length       u32       of the header
    crc          u32       CRC-32C of version, length and header
    header       JSON      what the writer adds, Unicode version, and name, dtype, shape, position and crc of each array
    arrays       each at a multiple of 64 bytes, little-endian, back to back but for zero padding

No pickle, nothing that runs code. The length of the file is part of the header, so a cut or a tail is noticed.
"""

import io
import json
import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.atomic import atomic_writer
from minwise.errors import FormatError, MinwiseError, MismatchError

__all__ = ["ArrayFile", "Arrays", "FileKind", "read_array_file", "write_array_file"]

PREFIX = struct.Struct("<8sIII")
ALIGNMENT = 64
MAX_HEADER_BYTES = 1 << 24
DTYPES = {"u1": np.uint8, "u4": np.uint32, "u8": np.uint64, "b1": np.bool_, "f8": np.float64}

Arrays = dict[str, NDArray[Any]]


class FileKind(NamedTuple):
    """One use of the layout.

    Attributes:
        magic: The first eight bytes.
        version: Changes with the layout or with the meaning of the arrays.
        noun: What a message calls such a file.
        remedy: What a message advises when one is damaged.
    """

    magic: bytes
    version: int
    noun: str
    remedy: str


def write_array_file(
    path: str | PathLike[str], kind: FileKind, header: dict[str, Any], arrays: Arrays, *, sync: bool = True
) -> None:
    """Writes header and arrays to ``path``; the file appears whole or not at all, and on disk if ``sync``."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    encoded = _encode_header(kind, header, parts)
    with atomic_writer(Path(path), sync=sync) as file:
        file.write(encoded)
        for array in parts.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(_bytes_of(array).data)


def read_array_file(path: str | PathLike[str], kind: FileKind) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays, and checks every byte of both.

    Raises:
        FormatError: If anything is not as it was written.
    """
    with Path(path).open("rb") as file:
        header = _decode_header(file, path, kind)
        with _naming_nonsense(path):
            return header, _read_arrays(file, path, header, kind)


class ArrayFile:
    """An array file of which only some arrays are read; the header is checked at once, an array when it is read."""

    def __init__(self, path: str | PathLike[str], kind: FileKind) -> None:
        self.path = path
        self._kind = kind
        with Path(path).open("rb") as file, _naming_nonsense(path):
            self.header = _decode_header(file, path, kind)
            self._entries = {entry["name"]: entry for entry in self.header["arrays"]}
            _check_length(file, path, self.header)

    def read(self, name: str) -> NDArray[Any]:
        """One array, checked."""
        entry = self._entries[name]
        with Path(self.path).open("rb") as file, _naming_nonsense(self.path):
            file.seek(entry["position"])
            return _read_array(file, self.path, entry, self.header["file_bytes"], self._kind)

    def map(self, name: str) -> NDArray[Any]:
        """One array as a view of the file, not checked; for reading parts of what :meth:`read` has checked before."""
        entry = self._entries[name]
        dtype = np.dtype(DTYPES[entry["dtype"]])
        shape = tuple(entry["shape"])
        if not math.prod(shape):
            return np.empty(shape, dtype=dtype)
        return np.memmap(self.path, dtype=dtype, mode="r", offset=entry["position"], shape=shape)

    def length(self, name: str) -> int:
        """How many rows an array has."""
        return int(self._entries[name]["shape"][0])

    def position(self, name: str) -> int:
        """Where an array starts in the file."""
        return int(self._entries[name]["position"])


@contextmanager
def _naming_nonsense(path: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, MemoryError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, MinwiseError):
            raise
        raise FormatError(f"{path}: the header must describe arrays: {type(error).__name__} {error}") from None


def _encode_header(kind: FileKind, header: dict[str, Any], arrays: Arrays) -> bytes:
    """The prefix and the header, whose own length decides where the arrays start."""
    described = {**header, "unicode_version": _kernel.UNICODE_VERSION, "written_by": f"minwise {_kernel.VERSION}"}
    checksums = {name: _checksum(array) for name, array in arrays.items()}
    reserved = 0
    while True:
        position, entries = PREFIX.size + reserved, []
        for name, array in arrays.items():
            position += -position % ALIGNMENT
            entry = {"name": name, "dtype": array.dtype.str[1:], "shape": array.shape, "position": position}
            entries.append({**entry, "crc32c": checksums[name]})
            position += array.nbytes
        encoded = json.dumps({**described, "arrays": entries, "file_bytes": position}).encode()
        if len(encoded) <= reserved:
            encoded = encoded.ljust(reserved)
            crc = _kernel.crc32c(_bytes(struct.pack("<II", kind.version, reserved) + encoded), 0)
            return PREFIX.pack(kind.magic, kind.version, reserved, crc) + encoded
        reserved = len(encoded) + ALIGNMENT


def _decode_header(file: BinaryIO, path: str | PathLike[str], kind: FileKind) -> dict[str, Any]:
    prefix = file.read(PREFIX.size)
    if len(prefix) < PREFIX.size or not prefix.startswith(kind.magic):
        raise FormatError(f"{path}: not a {kind.noun}; it must start with {kind.magic!r}, got {prefix[:8]!r}")
    _, version, length, crc = PREFIX.unpack(prefix)
    if version != kind.version:
        raise FormatError(f"{path}: the format version must be {kind.version}, got {version}; {kind.remedy}")
    encoded = file.read(min(length, MAX_HEADER_BYTES))
    if len(encoded) != length or _kernel.crc32c(_bytes(struct.pack("<II", version, length) + encoded), 0) != crc:
        raise FormatError(f"{path}: the header is damaged or cut short; restore the file or {kind.remedy}")
    try:
        header = json.loads(encoded)
        written_with = header["unicode_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise FormatError(f"{path}: the header must be a JSON object with unicode_version") from None
    if written_with != _kernel.UNICODE_VERSION:
        here = _kernel.UNICODE_VERSION
        raise MismatchError(f"{path}: texts must be cut by the same Unicode version: {written_with} there, {here} here")
    return dict(header)


def _check_length(file: BinaryIO, path: str | PathLike[str], header: dict[str, Any]) -> None:
    length = os.fstat(file.fileno()).st_size
    if length != header["file_bytes"]:
        raise FormatError(f"{path}: the file must have {header['file_bytes']} bytes, got {length}: cut or added to")


def _read_arrays(file: io.BufferedReader, path: str | PathLike[str], header: dict[str, Any], kind: FileKind) -> Arrays:
    _check_length(file, path, header)
    arrays: Arrays = {}
    for entry in header["arrays"]:
        padding = file.read(-file.tell() % ALIGNMENT)
        if any(padding) or file.tell() != entry["position"]:
            raise FormatError(f"{path}: {entry['name']} must start at byte {entry['position']} behind zeros")
        arrays[entry["name"]] = _read_array(file, path, entry, header["file_bytes"], kind)
    return arrays


def _read_array(
    file: io.BufferedReader, path: str | PathLike[str], entry: dict[str, Any], most: int, kind: FileKind
) -> NDArray[Any]:
    dtype = np.dtype(DTYPES[entry["dtype"]])
    if math.prod(entry["shape"]) * dtype.itemsize > most:
        raise FormatError(f"{path}: {entry['name']} must fit the file of {most} bytes, got shape {entry['shape']}")
    array = np.empty(entry["shape"], dtype=dtype)
    read = file.readinto(_bytes_of(array).data)
    if read != array.nbytes or _checksum(array) != entry["crc32c"]:
        name, position = entry["name"], entry["position"]
        raise FormatError(f"{path}: {name} at byte {position} is damaged; restore the file or {kind.remedy}")
    return array


def _checksum(array: NDArray[Any]) -> int:
    return _kernel.crc32c(_bytes_of(array), 0)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
