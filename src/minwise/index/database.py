"""Database: SQLite connections, and what goes wrong with them as our errors; syncs whose failure is told apart."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import apsw
import numpy as np

from minwise import _kernel
from minwise.errors import ConfigError, FormatError

__all__ = [
    "DATABASE",
    "HEAD",
    "LOCK",
    "REMEDY",
    "Head",
    "SyncError",
    "connect",
    "connected",
    "drop",
    "naming",
    "naming_file",
    "sync",
    "take_back",
    "take_lock",
    "transaction",
]

DATABASE = "index.db"
REMEDY = "restore a backup"
FAILED_SYNCS = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


class SyncError(OSError):
    """A sync failed: what it was to make durable may be lost, and asking again would hide that."""


def sync(path: Path) -> None:
    """Makes a file or the names in a directory last.

    Raises:
        SyncError: If that fails.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Adds the name of a file to what reading and writing raise without one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def connect(path: Path, flags: int, name: str | None = None) -> apsw.Connection:
    """A connection that somebody will close or drop; ``name`` is what SQLite is told in place of the path."""
    with naming(path, None):
        return apsw.Connection(name or str(path), flags=flags)


def drop(connection: apsw.Connection) -> None:
    """Closes a connection without another write: whatever the log holds stays there."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


@contextmanager
def connected(path: Path) -> Iterator[apsw.Connection]:
    """A connection to a new database, closed afterwards; dropped if something fails."""
    connection = connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        with naming(path, connection):
            yield connection
            connection.close()
    except BaseException:
        drop(connection)
        raise


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """What is written inside is committed at its end, or taken back; SQLite itself takes back after some errors."""
    take_back(connection)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        take_back(connection)
        raise


def take_back(connection: apsw.Connection) -> None:
    """Ends a transaction that is open, perhaps because somebody was interrupted who would have ended it."""
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


@contextmanager
def naming(path: Path, connection: apsw.Connection | None) -> Iterator[None]:
    """Turns what SQLite raises into our errors, with the file's name."""
    try:
        yield
    except apsw.Error as error:
        _raise_for(error, path, connection.system_errno if connection is not None else 0)
    except UnicodeDecodeError:
        raise FormatError(f"{path}: damaged: a text is not UTF-8; {REMEDY}") from None


def _raise_for(error: apsw.Error, path: Path, number: int) -> NoReturn:
    """Raises the error that says the same; ``number`` is what the system said last, 0 if that is unknown."""
    told, result = " ".join(str(error).split()), getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.FullError):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
    if isinstance(error, apsw.IOError) and result != apsw.SQLITE_IOERR_SHORT_READ:  # which a file that was cut gives
        kind = SyncError if result in FAILED_SYNCS else OSError
        raise kind(number or errno.EIO, f"{os.strerror(number or errno.EIO)} ({told})", str(path)) from None
    if isinstance(error, (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError)):
        number = number or errno.EACCES
        hint = f"; readers too write {DATABASE}-shm" if number in NO_RIGHT else ""
        raise OSError(number, f"{os.strerror(number)} ({told}){hint}", str(path)) from None
    if isinstance(error, (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)):
        raise OSError(errno.EBUSY, f"is busy ({told})", str(path)) from None
    if isinstance(error, (apsw.NoMemError, apsw.TooBigError)):
        raise OSError(errno.ENOMEM, told, str(path)) from None
    raise FormatError(f"{path}: damaged: {told}; {REMEDY}") from None


HEAD, LOCK = "head", "writer.lock"
COMMIT_NUMBER = struct.Struct("<QI")


class Head:
    """The number of the last commit, by which a log that lost its end is noticed.

    Attributes:
        path: The file.
        last_commit: What it said when it was opened; 0 if it said nothing.
    """

    def __init__(self, folder: Path, *, writable: bool) -> None:
        self.path = folder / HEAD
        self.last_commit = self._read()
        self._file = _opened(self.path) if writable else None

    def _read(self) -> int:
        with suppress(OSError, struct.error):
            commit, checksum = COMMIT_NUMBER.unpack(self.path.read_bytes())
            if checksum == _checksum(commit):
                return int(commit)
        return 0

    def write(self, commit: int) -> None:
        """Notes a commit; needs no sync, and may fail."""
        with suppress(OSError):
            os.pwrite(self._file.fileno(), COMMIT_NUMBER.pack(commit, _checksum(commit)), 0)  # type: ignore[union-attr]

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()


def _checksum(commit: int) -> int:
    return _kernel.crc32c(np.frombuffer(struct.pack("<Q", commit), dtype=np.uint8), 0)


def _opened(path: Path) -> BinaryIO:
    """A file to read and write, made if it is not there; closed when nobody knows it any more."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)


def take_lock(folder: Path) -> BinaryIO:
    """The lock file, which says who holds it."""
    lock = _opened(folder / LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = lock.read(32).decode(errors="replace").strip() or "unknown"
        lock.close()
        raise ConfigError(
            f"index {folder} is open for writing in process {holder}; one process writes at a time"
        ) from None
    with suppress(OSError):  # a full disk must not keep anybody from removing something
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n".encode())
    return lock
