"""SQLite connections, translation of their errors, and the commit head and writer lock files."""

import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import apsw
import numpy as np

from minwise import _kernel
from minwise._internal.atomic import sync_path
from minwise._internal.locks import lock_file
from minwise.errors import ConfigError, FormatError

__all__ = [
    "DATABASE",
    "HEAD",
    "LOCK",
    "REMEDY",
    "HeadFile",
    "SyncError",
    "add_file_name",
    "check_files",
    "check_regular",
    "close_unchanged",
    "connect",
    "create_database",
    "create_private",
    "file_mode",
    "lock_for_writing",
    "roll_back",
    "sync",
    "transaction",
    "translate_errors",
]

DATABASE = "index.db"
HEAD, LOCK = "head", "writer.lock"
# Mode of new files: the database holds the seed, which may be secret.
PRIVATE = 0o600
REMEDY = "restore a backup"
FAILED_SYNCS = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)
PERMISSION_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS)


class SyncError(OSError):
    """A failed sync: the data may be lost, and a second attempt would report success without writing it."""


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk.

    Raises:
        SyncError: If the sync fails.
    """
    try:
        sync_path(path)
    except OSError as error:
        if error.filename is not None:  # it could not be opened
            raise
        raise SyncError(error.errno, error.strerror, str(path)) from None


@contextmanager
def add_file_name(path: Path) -> Iterator[None]:
    """Add the file name to an ``OSError`` without one, as reads and writes of an open file raise."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def check_regular(path: Path) -> None:
    """Check that a file is a regular one, if it exists: a link would lead out of the index directory.

    Raises:
        FormatError: If it is a link, a directory or a device.
    """
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            kind = "symbolic link" if stat.S_ISLNK(mode) else "directory" if stat.S_ISDIR(mode) else "special file"
            raise FormatError(f"{path}: the files of an index must be regular files, got a {kind}; {REMEDY}")


def check_files(folder: Path) -> None:
    """Check that every fixed name in an index directory is a regular file or missing.

    A rollback journal must be missing: an index has a write-ahead log, and SQLite deletes the file that a journal
    names.

    Raises:
        FormatError: If a name is another kind of file, or there is a rollback journal.
    """
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", HEAD, LOCK):
        check_regular(folder / name)
    journal = folder / f"{DATABASE}-journal"
    if os.path.lexists(journal):
        raise FormatError(f"{journal}: an index has no rollback journal; delete it, or {REMEDY}")


def create_private(path: Path, mode: int = PRIVATE) -> int:
    """Create a file with this mode, whatever the umask, and return its descriptor; by default only the owner reads it.

    Raises:
        FileExistsError: If the file exists.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE)
    path.chmod(mode)
    return descriptor


def file_mode(folder: Path) -> int:
    """Return the mode of new files of an index: that of its database, as SQLite chooses it for the log."""
    return stat.S_IMODE((folder / DATABASE).stat().st_mode) & 0o666


def connect(path: Path, flags: int, uri: str | None = None) -> apsw.Connection:
    """Return a connection, which the caller closes; ``uri`` replaces the path as the name passed to SQLite."""
    with translate_errors(path, None):
        return apsw.Connection(uri or str(path), flags=flags)


def close_unchanged(connection: apsw.Connection) -> None:
    """Close a connection without a checkpoint: no file is written."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


@contextmanager
def create_database(path: Path) -> Iterator[apsw.Connection]:
    """Yield a connection to a new, private database, and close it; without a checkpoint on failure."""
    os.close(create_private(path))
    connection = connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        with translate_errors(path, connection):
            yield connection
            connection.close()
    except BaseException:
        close_unchanged(connection)
        raise


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit the writes of the block at its end, or roll them back on an exception."""
    roll_back(connection)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: apsw.Connection) -> None:
    """Roll back an open transaction, such as one whose owner was interrupted.

    SQLite itself rolls back after some errors, so there may be none.
    """
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


@contextmanager
def translate_errors(path: Path, connection: apsw.Connection | None) -> Iterator[None]:
    """Translate SQLite errors into ``OSError`` and ``FormatError`` with the file name."""
    try:
        yield
    except apsw.Error as error:
        _raise_for(error, path, connection.system_errno if connection is not None else 0)
    except UnicodeDecodeError:
        raise FormatError(f"{path}: damaged: a text is not UTF-8; {REMEDY}") from None


def _raise_for(error: apsw.Error, path: Path, system_errno: int) -> NoReturn:
    """Raise the equivalent error; ``system_errno`` is the last error of the system, 0 if unknown."""
    message, result = " ".join(str(error).split()), getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.FullError):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
    if isinstance(error, apsw.IOError) and result != apsw.SQLITE_IOERR_SHORT_READ:  # which means a truncated file
        kind, number = SyncError if result in FAILED_SYNCS else OSError, system_errno or errno.EIO
        raise kind(number, f"{os.strerror(number)} ({message})", str(path)) from None
    if isinstance(error, (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError)):
        number = system_errno or errno.EACCES
        hint = f"; readers also write {DATABASE}-shm" if number in PERMISSION_ERRORS else ""
        raise OSError(number, f"{os.strerror(number)} ({message}){hint}", str(path)) from None
    if isinstance(error, (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)):
        raise OSError(errno.EBUSY, f"is busy ({message})", str(path)) from None
    if isinstance(error, (apsw.NoMemError, apsw.TooBigError)):
        raise OSError(errno.ENOMEM, message, str(path)) from None
    raise FormatError(f"{path}: damaged: {message}; {REMEDY}") from None


COMMIT_NUMBER = struct.Struct("<QI")


class HeadFile:
    """File with the number of the last commit, which reveals a log that lost its end.

    Attributes:
        path: The path of the file.
        last_commit: The number that the file held when it was opened; 0 if it held none.
    """

    def __init__(self, folder: Path, *, writable: bool) -> None:
        self.path = folder / HEAD
        self.last_commit = self._read()
        self._file = _open_or_create(self.path) if writable else None

    def _read(self) -> int:
        with suppress(OSError, struct.error):
            commit, checksum = COMMIT_NUMBER.unpack(self.path.read_bytes())
            if checksum == _checksum(commit):
                return int(commit)
        return 0

    def write(self, commit: int) -> None:
        """Store the number of a commit. It is not synced, and a failed write is ignored."""
        with suppress(OSError):
            self._file.seek(0)  # type: ignore[union-attr]
            self._file.write(COMMIT_NUMBER.pack(commit, _checksum(commit)))  # type: ignore[union-attr]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _checksum(commit: int) -> int:
    return _kernel.crc32c(np.frombuffer(struct.pack("<Q", commit), dtype=np.uint8), 0)


def _open_or_create(path: Path) -> BinaryIO:
    """Open a file for reading and writing, without truncation; it is closed on garbage collection."""
    with suppress(FileExistsError):
        return os.fdopen(create_private(path, file_mode(path.parent)), "r+b", buffering=0)
    return path.open("r+b", buffering=0)


def lock_for_writing(folder: Path) -> BinaryIO:
    """Lock an index for one writer, and return the lock file, which holds the process id of its owner.

    Raises:
        ConfigError: If another process has the lock.
    """
    lock = _open_or_create(folder / LOCK)
    try:
        lock_file(lock)
    except BlockingIOError:
        owner = lock.read(32).decode(errors="replace").strip() or "unknown"
        lock.close()
        raise ConfigError(
            f"index {folder} is open for writing in process {owner}; one process writes at a time"
        ) from None
    with suppress(OSError):  # documents can be removed when the disk is full
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n".encode())
    return lock
