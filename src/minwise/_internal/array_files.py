"""Reader and writer of files that hold a JSON header and named arrays, each with a CRC-32C.

::

    magic        8 bytes   file kind
    version      u32       version of the file kind
    length       u32       length of the header
    crc          u32       CRC-32C of version, length and header
    header       JSON      fields of the writer, Unicode version, and name, dtype, shape, position and crc of each array
    arrays       each at a multiple of 64 bytes, little-endian, separated only by zero padding

Other content, such as an Arrow table, is sealed: a trailer of 20 bytes has a magic number, length and CRC-32C of all
bytes before it.

There is no pickle and nothing else that runs code. The header contains the length of the file, so truncation and
appended bytes are detected.
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
from minwise.checks import show
from minwise.errors import FormatError, MinwiseError, MismatchError

__all__ = [
    "ArrayFile",
    "Arrays",
    "FileKind",
    "read_array_file",
    "sealed_writer",
    "stream_checksum",
    "verify_seal",
    "write_array_file",
]

PREFIX = struct.Struct("<8sIII")
SEAL, SEAL_MAGIC = struct.Struct("<8sQI"), b"MINSEAL\n"
# Bytes of which a checksum is computed at a time, so that a file of any size needs no more memory.
CHECKED_BYTES = 1 << 20
ALIGNMENT = 64
MAX_HEADER_BYTES = 1 << 24
DTYPES = {"u1": np.uint8, "u4": np.uint32, "u8": np.uint64, "b1": np.bool_, "f8": np.float64}

Arrays = dict[str, NDArray[Any]]


class FileKind(NamedTuple):
    """File kind.

    Attributes:
        magic: First eight bytes of the file.
        version: Version number; changes with the layout or with the meaning of the arrays.
        noun: Name of the file kind in error messages.
        remedy: Advice in error messages about a damaged file.
    """

    magic: bytes
    version: int
    noun: str
    remedy: str


def write_array_file(
    path: str | PathLike[str], kind: FileKind, header: dict[str, Any], arrays: Arrays, *, sync: bool = True
) -> None:
    """Write header and arrays to ``path`` atomically; with ``sync``, flush them to disk before returning."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    encoded = _encode_header(kind, header, parts)
    with atomic_writer(Path(path), sync=sync) as file:
        file.write(encoded)
        for array in parts.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(_byte_view(array).data)


def read_array_file(path: str | PathLike[str], kind: FileKind) -> tuple[dict[str, Any], Arrays]:
    """Read header and arrays and verify every checksum.

    Raises:
        FormatError: If the file is damaged, truncated, extended or of another kind or version.
        MismatchError: If the file was written with another version of Unicode.
    """
    with Path(path).open("rb") as file:
        header = _decode_header(file, path, kind)
        with _header_errors(path):
            return header, _read_arrays(file, path, header, kind)


class ArrayFile:
    """Array file that is read one array at a time.

    The header is verified on opening, an array when it is read.

    Attributes:
        path: The file.
        header: The decoded header.
    """

    def __init__(self, path: str | PathLike[str], kind: FileKind) -> None:
        self.path = path
        self._kind = kind
        self._verified: set[str] = set()
        with Path(path).open("rb") as file, _header_errors(path):
            self.header = _decode_header(file, path, kind)
            self._entries = {entry["name"]: entry for entry in self.header["arrays"]}
            _check_length(file, path, self.header, kind)

    def read(self, name: str) -> NDArray[Any]:
        """Read an array and verify its checksum."""
        entry = self._entries[name]
        with Path(self.path).open("rb") as file, _header_errors(self.path):
            file.seek(entry["position"])
            return _read_array(file, self.path, entry, self.header["file_bytes"], self._kind)

    def verify(self, name: str) -> None:
        """Verify the checksum of an array without holding it in memory; only the first call reads the array."""
        if name in self._verified:
            return
        entry = self._entries[name]
        with Path(self.path).open("rb") as file, _header_errors(self.path):
            file.seek(entry["position"])
            size = math.prod(entry["shape"]) * np.dtype(DTYPES[entry["dtype"]]).itemsize
            if stream_checksum(file, size) != entry["crc32c"]:
                raise _damaged(self.path, entry, self._kind)
        self._verified.add(name)

    def map(self, name: str) -> NDArray[Any]:
        """Verify the checksum of an array and return it as a memory map."""
        self.verify(name)
        return self.view(name)

    def view(self, name: str) -> NDArray[Any]:
        """Return an array as a memory map, for a caller that verifies the rows that it uses."""
        entry = self._entries[name]
        dtype = np.dtype(DTYPES[entry["dtype"]])
        shape = tuple(entry["shape"])
        if not math.prod(shape):
            return np.empty(shape, dtype=dtype)
        return np.memmap(self.path, dtype=dtype, mode="r", offset=entry["position"], shape=shape)

    def read_rows(self, name: str, rows: slice) -> NDArray[Any]:
        """Verify the checksum of an array and read the rows from ``rows.start`` to ``rows.stop``."""
        position, entry = self.position(name), self._entries[name]
        dtype, inner = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"][1:])
        width, count = dtype.itemsize * math.prod(inner), rows.stop - rows.start
        if not count:
            return np.empty((0, *inner), dtype=dtype)
        offset = position + rows.start * width
        return np.fromfile(self.path, dtype, count * math.prod(inner), offset=offset).reshape(-1, *inner)

    def length(self, name: str) -> int:
        """Return the number of rows of an array."""
        return int(self._entries[name]["shape"][0])

    def position(self, name: str) -> int:
        """Verify the checksum of an array and return its offset in the file, for a reader of parts of it."""
        self.verify(name)
        return int(self._entries[name]["position"])


@contextmanager
def _header_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn errors about the contents of a header into a FormatError."""
    try:
        yield
    except (AttributeError, KeyError, MemoryError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, MinwiseError):
            raise
        raise FormatError(f"{path}: the header must describe arrays: {type(error).__name__} {error}") from None


def _encode_header(kind: FileKind, header: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the prefix and the header.

    The positions of the arrays depend on the length of the header, which contains them: reserve space until it fits.
    """
    described = {**header, "unicode_version": _kernel.UNICODE_VERSION, "written_by": f"minwise {_kernel.__version__}"}
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
        raise FormatError(f"{path}: the header is damaged or truncated; restore the file or {kind.remedy}")
    try:
        header = json.loads(encoded)
        written_with = header["unicode_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise FormatError(f"{path}: the header must be a JSON object with unicode_version") from None
    if written_with != _kernel.UNICODE_VERSION:
        here = _kernel.UNICODE_VERSION
        raise MismatchError(f"{path}: the Unicode version must be the same: {show(written_with)} there, {here!r} here")
    return dict(header)


def _check_length(file: BinaryIO, path: str | PathLike[str], header: dict[str, Any], kind: FileKind) -> None:
    length = os.fstat(file.fileno()).st_size
    if length != header["file_bytes"]:
        rule = f"the file must have {header['file_bytes']!r} bytes"
        raise FormatError(f"{path}: {rule}, got {length}; restore the file or {kind.remedy}")


def _read_arrays(file: io.BufferedReader, path: str | PathLike[str], header: dict[str, Any], kind: FileKind) -> Arrays:
    _check_length(file, path, header, kind)
    arrays: Arrays = {}
    for entry in header["arrays"]:
        padding = file.read(-file.tell() % ALIGNMENT)
        if any(padding) or file.tell() != entry["position"]:
            raise FormatError(f"{path}: {entry['name']!r} must start at byte {entry['position']!r} behind zeros")
        arrays[entry["name"]] = _read_array(file, path, entry, header["file_bytes"], kind)
    return arrays


def _read_array(
    file: io.BufferedReader, path: str | PathLike[str], entry: dict[str, Any], file_bytes: int, kind: FileKind
) -> NDArray[Any]:
    dtype = np.dtype(DTYPES[entry["dtype"]])
    if math.prod(entry["shape"]) * dtype.itemsize > file_bytes:
        raise FormatError(
            f"{path}: {entry['name']!r} must fit the file of {file_bytes} bytes, got shape {entry['shape']}"
        )
    array = np.empty(entry["shape"], dtype=dtype)
    read = file.readinto(_byte_view(array).data)
    if read != array.nbytes or _checksum(array) != entry["crc32c"]:
        raise _damaged(path, entry, kind)
    return array


def _damaged(path: str | PathLike[str], entry: dict[str, Any], kind: FileKind) -> FormatError:
    name, position = " ".join(str(entry["name"]).split()), entry["position"]
    return FormatError(f"{path}: {name} at byte {position!r} is damaged; restore the file or {kind.remedy}")


class _ChecksummedFile(io.BufferedIOBase):
    """File that computes the checksum of what is written to it.

    Attributes:
        length: Number of bytes written.
        crc: Their CRC-32C.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.length, self.crc = file, 0, 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.length

    def write(self, data: Any) -> int:  # noqa: ANN401 - anything with a buffer
        """Write the bytes."""
        content = np.frombuffer(data, dtype=np.uint8)
        self.crc = _kernel.crc32c(content, self.crc)
        self.length += len(content)
        return self._file.write(content.data)


@contextmanager
def sealed_writer(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` atomically, with a seal at its end."""
    with atomic_writer(path, sync=sync) as file:
        content = _ChecksummedFile(file)
        yield content  # type: ignore[misc] # it only writes
        file.write(SEAL.pack(SEAL_MAGIC, content.length, content.crc))


def verify_seal(path: Path, kind: FileKind) -> int:
    """Verify the checksum of a sealed file; return the number of bytes before the seal.

    Raises:
        FormatError: If the file is damaged, truncated, or has no seal.
    """
    with path.open("rb") as file:
        length = os.fstat(file.fileno()).st_size - SEAL.size
        crc = stream_checksum(file, max(0, length))
        if length < 0 or file.read(SEAL.size) != SEAL.pack(SEAL_MAGIC, length, crc):
            raise FormatError(f"{path}: the file is damaged or truncated; restore the file or {kind.remedy}")
    return length


def stream_checksum(file: BinaryIO, length: int) -> int:
    """Return the checksum of the next bytes of a file; fewer if it ends before."""
    buffer, crc = np.empty(min(CHECKED_BYTES, length), dtype=np.uint8), 0
    while length > 0:
        read = file.readinto(buffer[:length].data)  # type: ignore[attr-defined] # a buffered file
        if not read:
            break
        crc = _kernel.crc32c(buffer[:read], crc)
        length -= read
    return crc


def _checksum(array: NDArray[Any]) -> int:
    return _kernel.crc32c(_byte_view(array), 0)


def _byte_view(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
