"""Beside the database: the lock that one writer holds, and the head, which knows the last commit outside of the log."""

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from minwise import _kernel
from minwise.errors import ConfigError

__all__ = ["HEAD", "LOCK", "Head", "take_lock"]

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
