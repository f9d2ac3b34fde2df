"""Files by path or URL: opening, decompression, and the paths and compression of copies.

A system error (no permission, disk full) stays an ``OSError`` and names the file. A content error (truncated file,
wrong format) becomes ``UnreadableError``, which a source reports as a fault.
"""

import bz2
import errno
import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.errors import ConfigError, InputError
from minwise.inputs.content import refuse_binary
from minwise.inputs.decompression import COMPRESSIONS, decompress
from minwise.inputs.encodings import Encoding, choose_encoding
from minwise.inputs.row_edits import RowEditor, kept_bytes
from minwise.inputs.source import CopyError, RowMask, Source, UnreadableError

__all__ = [
    "BOM",
    "COMPRESSIONS",
    "HEAD_BYTES",
    "File",
    "FileSource",
    "FileVersions",
    "TextFileSource",
    "is_url",
    "open_output",
    "output_path",
    "read_first",
    "strip_bom",
    "translate_errors",
    "url_filesystem",
]

# The defaults of the tools of the same names; Arrow writes zstd at level 1 and accepts no other level.
LEVELS = {"gzip": 6, "bz2": 9}
# Bytes of a chunk: 128 KiB, a block of zstd.
CHUNK_BYTES = 1 << 17
# Bytes that decide how a file is read.
HEAD_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")
# Characters that a file name of Windows cannot have, and names of devices.
WINDOWS_FORBIDDEN = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]$')
WINDOWS_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
DRIVERS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "az": "adlfs"}
# Keys under which fsspec file systems store the version of a file.
VERSION_KEYS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")

# Requests at a time for the versions of files at URLs.
REQUESTS = 16
# Largest number that a column of versions holds; an inode of Windows may be larger.
LARGEST = 2**63 - 1

Item = TypeVar("Item")


def is_url(path: object) -> bool:
    """Return whether fsspec opens a path; False for None.

    >>> is_url("s3://bucket/key"), is_url("a/b")
    (True, False)
    """
    return SCHEME.match(str(path)) is not None


@dataclass(frozen=True, slots=True)
class File:
    """One file.

    Attributes:
        path: Path or URL as the user gave it.
        encoding: The encoding of its text, which is converted to UTF-8; None if its bytes are read unchanged.
    """

    path: str
    encoding: Encoding | None = None

    @property
    def name(self) -> str:
        """The path as valid UTF-8: other bytes are escaped."""
        return self.path.encode("utf-8", "backslashreplace").decode()

    @property
    def complete(self) -> bool:
        """Whether it is read to its end."""
        return True

    @property
    def is_url(self) -> bool:
        """Whether fsspec opens it."""
        return is_url(self.path)

    @property
    def compression(self) -> str | None:
        """The compression, by the suffix of the name."""
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())  # noqa: PTH122 - a path may be a URL

    def size_bytes(self) -> int:
        """Return the bytes of the file, compressed if it is."""
        return int(self._info()["size"] or 0) if self.is_url else Path(self.path).stat().st_size

    def fingerprint(self) -> dict[str, object]:
        """Return name, bytes and modification time, or the version that a server gives instead."""
        if self.is_url:
            info = self._info()
            version = next((str(info[key]) for key in VERSION_KEYS if info.get(key) is not None), None)
            return {"name": self.name, "bytes": info["size"], "modified": version}
        status = Path(self.path).stat()
        return {"name": self.name, "bytes": status.st_size, "modified": status.st_mtime_ns}

    def version(self) -> tuple[int, int, int]:
        """Return bytes, modification time and inode as of now; at a URL, bytes and a hash of the server's version."""
        if self.is_url:
            url_filesystem(self.path)[0].invalidate_cache()  # another process may have written here
            now = self.fingerprint()
            return int(str(now["bytes"] or 0)), hash(now["modified"]), 0
        status = Path(self.path).stat()
        return status.st_size, status.st_mtime_ns, status.st_ino & LARGEST

    def _info(self) -> dict[str, Any]:
        filesystem, path = url_filesystem(self.path)
        with translate_errors(self):
            return dict(filesystem.info(path))

    def open(self) -> BinaryIO:
        """Open the file for reading, without decompression."""
        if not self.is_url:
            return Path(self.path).open("rb")
        filesystem, path = url_filesystem(self.path)
        with translate_errors(self):
            return filesystem.open(path, "rb")  # type: ignore[no-any-return]

    def open_arrow(self) -> pa.NativeFile:
        """Open the file as an Arrow file, without decompression."""
        if self.is_url:
            return pa.PythonFile(self.open(), mode="r")
        return pa.OSFile(self.path, "rb")

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in chunks, as UTF-8 if the file has another encoding.

        Raises:
            UnreadableError: If they are not text, or cannot be decompressed or decoded to the end.
        """
        stored = self.stored_chunks()
        return refuse_binary(stored) if self.encoding is None else self.encoding.decode(stored)

    def head(self) -> tuple[bytes, bool]:
        """Return the first decompressed bytes, and whether they are all; those before damaged ones are not all."""
        head = b""
        try:
            for chunk in self.stored_chunks():
                head += chunk
                if len(head) > HEAD_BYTES:
                    return head[:HEAD_BYTES], False
        except UnreadableError:
            return head, False
        return head, True

    def stored_chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in chunks, in the encoding of the file, whatever they are.

        Raises:
            UnreadableError: If they cannot be decompressed to the end.
        """
        if self.compression and not self.size_bytes():
            raise UnreadableError(f"truncated {self.compression}: it is empty")
        with translate_errors(self):
            if self.compression is not None:
                yield from decompress(self.open, self.compression, CHUNK_BYTES)
                return
            with self.open() as raw:
                read = getattr(raw, "read1", raw.read)
                yield from iter(lambda: read(CHUNK_BYTES), b"")


class FileVersions:
    """Size, modification time and inode of files when a run began, 24 bytes for each file.

    The rows of a file are read up to three times: to sketch, to compare and to copy them. A decision about the rows of
    the first pass is wrong for other rows, so a run whose input changes meanwhile must not publish its result.
    """

    def __init__(self, files: Sequence[File]) -> None:
        """Note what the files are now."""
        self._files = files
        self._noted = _versions(files)

    def change(self, *, remote: bool = True) -> InputError | None:
        """Return an error about the first file that is no longer what it was; with ``remote``, also at a URL."""
        if not remote and any(file.is_url for file in self._files):
            return None
        now = _versions(self._files)
        for index in np.flatnonzero((now != self._noted).any(axis=1))[:1].tolist():
            what = _describe_change(self._noted[index].tolist(), now[index].tolist())
            rule = "an input must stay the same during a run"
            return InputError(f"{self._files[index].name}: {rule}, {what}; run again when it is complete")
        return None


def _versions(files: Sequence[File]) -> NDArray[np.int64]:
    """Return the version of each file as a row of three numbers; -1 for a file that does not exist."""
    if any(file.is_url for file in files):
        with ThreadPoolExecutor(REQUESTS) as pool:
            versions = list(pool.map(_version_or_none, files))
    else:
        versions = [_version_or_none(file) for file in files]
    return np.array(versions, dtype=np.int64).reshape(-1, 3)


def _version_or_none(file: File) -> tuple[int, int, int]:
    try:
        return file.version()
    except FileNotFoundError:
        return (-1, -1, -1)


def _describe_change(before: list[int], now: list[int]) -> str:
    if now[0] != before[0]:
        return "got one that was deleted" if now[0] < 0 else f"got {before[0]:,} bytes at first and {now[0]:,} now"
    return "got another modification time" if now[1] != before[1] else "got another file of the same name"


class FileSource(Source):
    """A source that is one file."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.name = file.name

    def fingerprint(self) -> dict[str, object]:
        """Return name, bytes and modification time of the file."""
        return {**self.file.fingerprint(), "name": self.name}

    def size_bytes(self) -> int:
        """Return the bytes of the file, compressed if it is."""
        return self.file.size_bytes()

    def stored_files(self) -> Sequence[File]:
        """Return the file."""
        return [self.file]

    @contextmanager
    def _copying(self, keep: RowMask) -> Iterator[None]:
        """Skip an unreadable file when none of its rows are kept.

        Raises:
            CopyError: If rows are kept: they would be lost.
        """
        try:
            yield
        except UnreadableError as error:
            if keep.any():
                raise CopyError(f"{self.name}: kept rows cannot be copied: {error}") from None


class RemoteFilesystem:
    """An fsspec file system whose methods raise only OSErrors that name the URL.

    Drivers raise errors of their own packages, such as those of missing credentials or a refused connection.

    Attributes:
        url: The URL that errors name.
    """

    def __init__(self, filesystem: Any, url: str) -> None:  # noqa: ANN401 - fsspec is not typed
        self._filesystem = filesystem
        self.url = url

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the file system has
        member = getattr(self._filesystem, name)
        return partial(self._call, member) if callable(member) else member

    def _call(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - of any method
        try:
            return method(*arguments, **options)
        except Exception as error:
            raise _remote_error(error, self.url) from None


def _remote_error(error: Exception, url: str) -> Exception:
    """Return an OSError that names the URL, with the first line of a driver's message."""
    if isinstance(error, FileNotFoundError | PermissionError) and error.errno is None:
        number = errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EACCES
        return type(error)(number, os.strerror(number), url)
    if isinstance(error, OSError) and error.filename is not None:
        return error
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if isinstance(error, OSError):
        return OSError(error.errno or errno.EIO, error.strerror or reason, url)
    return OSError(errno.EIO, reason, url)


class TextFileSource(FileSource):
    """A source that is one text file, in UTF-8 or in another encoding.

    Attributes:
        encoding: The encoding that the user has named; None to detect it from the first bytes.
    """

    text_settings: tuple[str, ...] = ("encoding",)
    # JSON is UTF-8 by its standard: bytes that are not are faults, unless the user decides or the file has a mark.
    may_be_cp1252 = True

    def __init__(self, file: File, encoding: str | None = None) -> None:
        super().__init__(file)
        self.encoding = encoding

    @cached_property
    def dialect(self) -> tuple[Encoding | None, str | None]:
        """The encoding of the file, None for UTF-8, and the delimiter of its fields, if it has any.

        Raises:
            UnreadableError: If they cannot be decided.
        """
        return self._detect(*self.file.head())

    def _detect(self, head: bytes, complete: bool) -> tuple[Encoding | None, str | None]:
        return choose_encoding(self.encoding, head, complete, guess=self.may_be_cp1252), None

    def reading(self) -> str | None:
        """Return the name of an encoding other than UTF-8."""
        try:
            encoding, _ = self.dialect
        except UnreadableError:
            return None
        return None if encoding is None else encoding.name

    def chunks(self) -> Iterator[bytes]:
        """Yield the text as UTF-8; its encoding is detected with the first chunk."""
        yield from replace(self.file, encoding=self.dialect[0]).chunks()

    def _open_copy(self, folder: Path, root: str) -> AbstractContextManager[Any]:
        """Open the file of kept rows, which converts UTF-8 to the encoding of the original."""
        return open_output(output_path(self.file.path, folder, root), self.file.compression, self.dialect[0])

    def _copy_lines(
        self, lines: Iterator[object], keep: RowMask, folder: Path, root: str, editor: RowEditor[bytes] | None = None
    ) -> int:
        """Write the kept lines, unchanged without an editor; the last one gets a line feed if it has none."""
        written = 0
        with self._copying(keep):
            rows = read_first(lines)
            with self._open_copy(folder, root) as copy:
                for line in kept_bytes(rows, keep, editor):
                    copy.write(line)
                    if not line.endswith(b"\n"):
                        copy.write(b"\n")
                    written += 1
                    del line  # before the next one, as both may be large
        return written


def url_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path within it.

    Raises:
        ConfigError: If the packages that open such URLs are not installed.
    """
    scheme = url.split("://")[0]
    try:
        import fsspec  # type: ignore[import-untyped]

        filesystem, path = fsspec.core.url_to_fs(url)
        return RemoteFilesystem(filesystem, url), path
    except ImportError as error:
        package = " ".join(dict.fromkeys(["fsspec", DRIVERS.get(scheme, "fsspec")]))
        why = " ".join(str(error).split())
        raise ConfigError(f"{url}: {scheme}:// requires another package ({why}): pip install {package}") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {scheme}:// cannot be read: {error}") from None


@contextmanager
def translate_errors(file: File) -> Iterator[None]:
    """Translate read errors: system errors name the file, content errors become ``UnreadableError``."""
    try:
        yield
    except (pa.ArrowMemoryError, UnreadableError):
        raise
    except OSError as error:
        if error.errno is None and type(error) is OSError:  # of Arrow; that of a network has a number or another type
            raise UnreadableError(_content_reason(error)) from None
        raise (_remote_error if file.is_url else _with_path)(error, file.path) from None
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:  # the last, of a name that pyarrow decodes
        raise UnreadableError(_content_reason(error)) from None
    except Exception as error:
        if not file.is_url:
            raise
        raise _remote_error(error, file.path) from None  # of a driver, while bytes are read


def _content_reason(error: Exception) -> str:
    if isinstance(error, EOFError) or "Truncated" in str(error):
        return "truncated file: it ends before its end marker"
    return f"cannot be read: {' '.join(str(error).split())}"


def _with_path(error: OSError, path: str) -> OSError:
    """Return the error with the path of the file if it has none, and without the message that Arrow wraps around it."""
    if error.filename is not None or error.errno is None:
        return error
    return OSError(error.errno, os.strerror(error.errno), path)


def read_first(items: Iterator[Item]) -> Iterator[Item]:
    """Return the same items after reading the first, so that its error is raised now."""
    return chain(list(islice(items, 1)), items)


def strip_bom(data: bytes) -> bytes:
    """Return the bytes without a leading byte order mark."""
    return data.removeprefix(BOM)


def output_path(name: str, folder: Path, root: str) -> Path:
    """Return the path of the copy of a file: its name relative to ``root``, always inside ``folder``."""
    parts = name.split("/")
    if root:
        parts = parts[len(root.rstrip("/").split("/")) :]
    safe = ["_up" if part == ".." else part.rstrip(":") for part in parts if part not in ("", ".")]
    return folder.joinpath(*(map(_windows_name, safe) if sys.platform == "win32" else safe))


def _windows_name(name: str) -> str:
    """Return a name that Windows can store; a URL may have others, and a colon would name a hidden stream of a file.

    >>> [_windows_name(name) for name in ("part-00:30?.csv", "nul.txt", "notes. ", "docs.jsonl")]
    ['part-00_30_.csv', '_nul.txt', 'notes._', 'docs.jsonl']
    """
    name = WINDOWS_FORBIDDEN.sub("_", name)
    return f"_{name}" if WINDOWS_RESERVED.match(name) else name


@contextmanager
def open_output(path: Path, compression: str | None = None, encoding: Encoding | None = None) -> Iterator[Any]:
    """Open a new file for writing, with compression; an error names the file. UTF-8 is converted to ``encoding``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("wb") as raw, _compress(raw, compression) as stream:
            yield stream if encoding is None else _EncodedOutput(stream, encoding)
    except OSError as error:
        raise _with_path(error, str(path)) from None


class _EncodedOutput:
    """File that converts UTF-8 to another encoding."""

    def __init__(self, stream: Any, encoding: Encoding) -> None:  # noqa: ANN401 - of any compression
        self._stream, self._encode = stream, encoding.encoder()

    def write(self, text: bytes) -> None:
        """Write UTF-8 text in the encoding."""
        self._stream.write(self._encode(text))


@contextmanager
def _compress(raw: io.BufferedWriter, compression: str | None) -> Iterator[Any]:
    """Open the compressing stream; gzip has neither name nor time, so equal rows give equal bytes."""
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
