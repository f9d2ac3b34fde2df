"""Files: paths and URLs in, open streams out, decompressed on the way; and the other way round for copies.

An error of the system (no permission, disk full) stays an ``OSError`` and names the file. An error of the content
(truncated, not what its name says) becomes ``Unreadable``, which a source reports as a fault.
"""

import bz2
import errno
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.errors import ConfigError, InputError
from minwise.inputs.source import Source, Unreadable

__all__ = [
    "BOM",
    "COMPRESSIONS",
    "File",
    "FileSource",
    "is_url",
    "output_path",
    "reading",
    "started",
    "strip_bom",
    "url_filesystem",
    "writing",
]

# By the last part of a file's name.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# As the tools of the same names set it; Arrow writes zstd at level 1 and takes no other.
LEVELS = {"gzip": 6, "bz2": 9}
# What is read at a time: with 128 KiB, a block of zstd, hardly anything before a damaged place is lost.
CHUNK_BYTES = 1 << 17
BOM = b"\xef\xbb\xbf"
SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")
DRIVERS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "az": "adlfs"}
# Where a file system of fsspec says that a file is another one than before.
VERSION_KEYS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")

# OSErrors that decompression raises about the bytes; a network error is of a type of its own or has a number.
CONTENT_ERRORS = (OSError, gzip.BadGzipFile)

Item = TypeVar("Item")


def is_url(place: object) -> bool:
    """Whether a path is one that fsspec opens; None is not.

    >>> is_url("s3://bucket/key"), is_url("a/b")
    (True, False)
    """
    return SCHEME.match(str(place)) is not None


@dataclass(frozen=True, slots=True)
class File:
    """One file, by its path or URL as the user gave it.

    Attributes:
        path: What opens it.
    """

    path: str

    @property
    def name(self) -> str:
        """The path as anything can show it: bytes that are no UTF-8 are escaped."""
        return self.path.encode("utf-8", "backslashreplace").decode()

    @property
    def is_url(self) -> bool:
        """Whether fsspec opens it."""
        return is_url(self.path)

    @property
    def compression(self) -> str | None:
        """How it is compressed, by its name."""
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())  # noqa: PTH122 - a path may be a URL

    def size_bytes(self) -> int:
        """Bytes of the file as it lies there."""
        return int(self._info()["size"] or 0) if self.is_url else Path(self.path).stat().st_size

    def fingerprint(self) -> dict[str, object]:
        """Name, bytes and when it was modified, or the version that a server gives instead."""
        if self.is_url:
            info = self._info()
            version = next((str(info[key]) for key in VERSION_KEYS if info.get(key) is not None), None)
            return {"name": self.name, "bytes": info["size"], "modified": version}
        status = Path(self.path).stat()
        return {"name": self.name, "bytes": status.st_size, "modified": status.st_mtime_ns}

    def _info(self) -> dict[str, Any]:
        filesystem, path = url_filesystem(self.path)
        with reading(self):
            return dict(filesystem.info(path))

    def open(self) -> BinaryIO:
        """The bytes of the file as they lie there."""
        if not self.is_url:
            return Path(self.path).open("rb")
        filesystem, path = url_filesystem(self.path)
        with reading(self):
            return filesystem.open(path, "rb")  # type: ignore[no-any-return]

    def open_arrow(self, *, memory_map: bool = False) -> pa.NativeFile:
        """The bytes of the file as Arrow reads them."""
        if self.is_url:
            return pa.PythonFile(self.open(), mode="r")
        return pa.memory_map(self.path, "r") if memory_map else pa.OSFile(self.path, "rb")

    def chunks(self) -> Iterator[bytes]:
        """The bytes, decompressed, a piece at a time.

        Raises:
            Unreadable: If they can not be decompressed, or not to the end.
        """
        if self.compression and not self.size_bytes():
            raise Unreadable(f"truncated {self.compression}: it is empty")
        with self.open() as raw, reading(self), _decompressed(raw, self.compression) as stream:
            # read1 gives what there is before it meets what is damaged; Arrow's streams have no such thing.
            read = getattr(stream, "read1", stream.read)
            while chunk := read(CHUNK_BYTES):
                yield chunk


class FileSource(Source):
    """A source that is one file."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.name = file.name

    def fingerprint(self) -> dict[str, object]:
        """Name, bytes and time of the file."""
        return {**self.file.fingerprint(), "name": self.name}

    def size_bytes(self) -> int:
        """Bytes of the file as it lies there."""
        return self.file.size_bytes()

    def paths(self) -> list[str]:
        """The file."""
        return [self.file.path]

    @contextmanager
    def _copying(self, keep: NDArray[np.bool_]) -> Iterator[None]:
        """Lets a file be that can not be read and of which nothing is kept; anything else would lose rows."""
        try:
            yield
        except Unreadable as error:
            if keep.any():
                raise InputError(f"{self.name}: kept rows can not be copied: {error}") from None


def url_filesystem(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path within it.

    Raises:
        ConfigError: If the packages that open such URLs are not installed.
    """
    scheme = url.split("://")[0]
    try:
        import fsspec  # type: ignore[import-untyped]

        filesystem, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        package = " ".join(dict.fromkeys(["fsspec", DRIVERS.get(scheme, "fsspec")]))
        why = " ".join(str(error).split())
        raise ConfigError(f"{url}: {scheme}:// takes another package ({why}): pip install {package}") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {scheme}:// can not be read: {error}") from None
    return filesystem, path


@contextmanager
def _decompressed(raw: BinaryIO, compression: str | None) -> Iterator[Any]:
    """The stream within.

    gzip and bz2 by the standard library: Arrow stumbles over bz2 of several streams and over gzip padded with zeros,
    and loses what it has read of a chunk when the next byte is bad.
    """
    if compression == "gzip":
        with gzip.GzipFile(fileobj=raw) as stream:
            yield stream
    elif compression == "bz2":
        with bz2.BZ2File(raw) as stream:
            yield stream
    elif compression == "zstd":
        with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd") as stream:
            yield stream
    else:
        yield raw


@contextmanager
def reading(file: File) -> Iterator[None]:
    """Sorts the errors of reading: those of the system name the file, those of its content are ``Unreadable``."""
    try:
        yield
    except (pa.ArrowMemoryError, Unreadable):
        raise
    except OSError as error:
        if error.errno is None and type(error) in CONTENT_ERRORS:
            raise Unreadable(_reason(file, error)) from None
        raise _named(error, file.path) from None
    except (pa.ArrowException, EOFError, zlib.error) as error:
        raise Unreadable(_reason(file, error)) from None


def _reason(file: File, error: Exception) -> str:
    if isinstance(error, EOFError) or "Truncated" in str(error):
        return f"truncated {file.compression or 'file'}: it ends before its end marker"
    kind = f"damaged {file.compression}" if file.compression else "can not be read"
    return f"{kind}: {' '.join(str(error).split())}"


def _named(error: OSError, path: str) -> OSError:
    """The same error, with the name of the file if it has none, and without Arrow's wrapping around the message."""
    if isinstance(error, FileNotFoundError) and error.errno is None:  # as fsspec raises it
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if error.filename is not None or error.errno is None:
        return error
    return OSError(error.errno, os.strerror(error.errno), path)


def started(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; what goes wrong with the first goes wrong now."""
    return chain(list(islice(items, 1)), items)


def strip_bom(data: bytes) -> bytes:
    """The bytes without a byte order mark at their start."""
    return data.removeprefix(BOM)


def output_path(name: str, folder: Path, root: str) -> Path:
    """Where the copy of a file goes: its name relative to ``root``, and never outside ``folder``."""
    parts = name.split("/")
    if root:
        parts = parts[len(root.rstrip("/").split("/")) :]
    safe = ["_up" if part == ".." else part.rstrip(":") for part in parts if part not in ("", ".")]
    return folder.joinpath(*safe)


@contextmanager
def writing(path: Path, compression: str | None = None) -> Iterator[Any]:
    """A new file to write to, compressed on the way; an error names it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("wb") as raw, _compressed(raw, compression) as stream:
            yield stream
    except OSError as error:
        raise _named(error, str(path)) from None


@contextmanager
def _compressed(raw: io.BufferedWriter, compression: str | None) -> Iterator[Any]:
    """The stream that compresses; gzip without name and time, so that the same rows are the same bytes."""
    if compression == "gzip":
        with gzip.GzipFile("", "wb", LEVELS["gzip"], raw, mtime=0) as stream:
            yield stream
    elif compression == "bz2":
        with bz2.BZ2File(raw, "wb", compresslevel=LEVELS["bz2"]) as stream:
            yield stream
    elif compression == "zstd":
        with pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd") as stream:
            yield stream
    else:
        yield raw
