"""Exclusive locks of files and directories, which the system releases when the process ends.

POSIX systems lock a whole file with ``flock``. Windows locks one byte of it and denies reading that byte, so the locked
byte is one that no lock file has.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

__all__ = ["lock_file", "locked_directory"]

HELD = "is locked by another process"


class _OpenFile(Protocol):
    def fileno(self) -> int: ...


def lock_file(file: int | _OpenFile, *, wait: bool = False) -> None:
    """Lock an open file until it is closed.

    Args:
        file: A file that is open for writing, or its descriptor.
        wait: Whether to wait for another process that holds the lock.

    Raises:
        BlockingIOError: If another process holds the lock, without ``wait``.
        OSError: If the file system has no locks.
    """
    _lock(file if isinstance(file, int) else file.fileno(), wait=wait)


if sys.platform == "win32":
    import msvcrt

    # The C runtime keeps offsets in 31 bits.
    LOCKED_BYTE = 2**31 - 2
    # Another process holds the lock: the error of the first attempt, and that of the last of ten attempts.
    LOCK_ERRORS = (errno.EACCES, errno.EDEADLK)

    def _lock(descriptor: int, *, wait: bool) -> None:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            while not _try_lock(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK):
                if not wait:
                    raise BlockingIOError(errno.EAGAIN, HELD)
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)

    def _try_lock(descriptor: int, mode: int) -> bool:
        try:
            msvcrt.locking(descriptor, mode, 1)
        except OSError as error:
            if error.errno in LOCK_ERRORS:
                return False
            raise
        return True

    @contextmanager
    def locked_directory(folder: Path) -> Iterator[None]:
        """Lock a directory for the duration of the block, in which it may be renamed or deleted.

        Windows cannot rename a directory that contains an open file, so the lock is a file next to it.

        Raises:
            BlockingIOError: If another process holds the lock.
        """
        beside = folder.with_name(f"{folder.name}.lock")
        try:
            with beside.open("ab") as file:
                lock_file(file)
                yield
        finally:
            with suppress(OSError):  # another process has it open
                beside.unlink()

else:
    import fcntl

    def _lock(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    @contextmanager
    def locked_directory(folder: Path) -> Iterator[None]:
        """Lock a directory for the duration of the block, in which it may be renamed or deleted.

        Raises:
            BlockingIOError: If another process holds the lock.
        """
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            lock_file(descriptor)
            yield
        finally:
            os.close(descriptor)
