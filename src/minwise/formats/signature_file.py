"""The signature file: a header that says everything, then plain arrays, each part with its CRC-32C.

::

    magic        8 bytes   MINWSIG + LF
    version      u32       FORMAT_VERSION
    length       u32       of the header
    crc          u32       CRC-32C of version, length and header
    header       JSON      settings, Unicode version, and name, dtype, shape, position and crc of each array
    arrays       each at a multiple of 64 bytes, little-endian, back to back but for zero padding

No pickle, nothing that runs code. The length of the file is part of the header, so a cut or a tail is noticed.
"""

import io
import json
import math
import os
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import FormatError, MismatchError

__all__ = ["FORMAT_VERSION", "read_signature_file", "write_signature_file"]

MAGIC = b"MINWSIG\n"
# Changes with the layout of the file or with any bit of DESIGN §3.
FORMAT_VERSION = 1
PREFIX = struct.Struct("<8sIII")
ALIGNMENT = 64
MAX_HEADER_BYTES = 1 << 24
DTYPES = {"u1": np.uint8, "u4": np.uint32, "u8": np.uint64, "b1": np.bool_}

Arrays = dict[str, NDArray[Any]]


def write_signature_file(path: str | PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Writes header and arrays to ``path``; the file appears whole or not at all."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    encoded = _encode_header(header, parts)
    with _atomic_writer(Path(path)) as file:
        file.write(encoded)
        for array in parts.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(_bytes_of(array).data)


def read_signature_file(path: str | PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays, and checks every byte of both.

    Raises:
        FormatError: If anything is not as it was written.
    """
    with Path(path).open("rb") as file:
        header = _decode_header(file, path)
        try:
            return header, _read_arrays(file, path, header)
        except (AttributeError, KeyError, MemoryError, OverflowError, TypeError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{path}: the header must describe arrays: {type(error).__name__} {error}") from None


def _encode_header(header: dict[str, Any], arrays: Arrays) -> bytes:
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
            crc = _kernel.crc32c(_bytes(struct.pack("<II", FORMAT_VERSION, reserved) + encoded), 0)
            return PREFIX.pack(MAGIC, FORMAT_VERSION, reserved, crc) + encoded
        reserved = len(encoded) + ALIGNMENT


def _decode_header(file: BinaryIO, path: str | PathLike[str]) -> dict[str, Any]:
    prefix = file.read(PREFIX.size)
    if len(prefix) < PREFIX.size or not prefix.startswith(MAGIC):
        raise FormatError(f"{path}: not a signature file; it must start with {MAGIC!r}, got {prefix[:8]!r}")
    _, version, length, crc = PREFIX.unpack(prefix)
    if version != FORMAT_VERSION:
        raise FormatError(f"{path}: the format version must be {FORMAT_VERSION}, got {version}; sketch the texts again")
    encoded = file.read(min(length, MAX_HEADER_BYTES))
    if len(encoded) != length or _kernel.crc32c(_bytes(struct.pack("<II", version, length) + encoded), 0) != crc:
        raise FormatError(f"{path}: the header is damaged or cut short; restore the file or sketch the texts again")
    try:
        header = json.loads(encoded)
        written_with = header["unicode_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise FormatError(f"{path}: the header must be a JSON object with unicode_version") from None
    if written_with != _kernel.UNICODE_VERSION:
        here = _kernel.UNICODE_VERSION
        raise MismatchError(f"{path}: texts must be cut by the same Unicode version: {written_with} there, {here} here")
    return dict(header)


def _read_arrays(file: io.BufferedReader, path: str | PathLike[str], header: dict[str, Any]) -> Arrays:
    length = os.fstat(file.fileno()).st_size
    if length != header["file_bytes"]:
        raise FormatError(f"{path}: the file must have {header['file_bytes']} bytes, got {length}: cut or added to")
    arrays: Arrays = {}
    for entry in header["arrays"]:
        padding = file.read(-file.tell() % ALIGNMENT)
        if any(padding) or file.tell() != entry["position"]:
            raise FormatError(f"{path}: {entry['name']} must start at byte {entry['position']} behind zeros")
        arrays[entry["name"]] = _read_array(file, path, entry, length)
    return arrays


def _read_array(file: io.BufferedReader, path: str | PathLike[str], entry: dict[str, Any], most: int) -> NDArray[Any]:
    dtype = np.dtype(DTYPES[entry["dtype"]])
    if math.prod(entry["shape"]) * dtype.itemsize > most:
        raise FormatError(f"{path}: {entry['name']} must fit the file of {most} bytes, got shape {entry['shape']}")
    array = np.empty(entry["shape"], dtype=dtype)
    read = file.readinto(_bytes_of(array).data)
    if read != array.nbytes or _checksum(array) != entry["crc32c"]:
        name, position = entry["name"], entry["position"]
        raise FormatError(f"{path}: {name} at byte {position} is damaged; restore the file or sketch the texts again")
    return array


def _checksum(array: NDArray[Any]) -> int:
    return _kernel.crc32c(_bytes_of(array), 0)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


@contextmanager
def _atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """A file beside ``path`` that takes its place once it is complete and on disk."""
    path = path.resolve()  # a link keeps pointing where it points
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        if os.name == "posix":  # elsewhere a directory can not be opened, nor needs it
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = str(path)  # the user knows this name, not the temporary one
        raise
