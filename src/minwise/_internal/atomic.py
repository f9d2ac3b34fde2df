"""Atomic and durable file writes.

``fsync`` of macOS leaves data in the cache of the drive; ``F_FULLFSYNC`` empties that, too. Windows flushes only a file
that is open for writing, and cannot flush a directory: its file systems log changes of names.
"""

import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_writer", "rename_directory", "sync_directory", "sync_file", "sync_path"]


@contextmanager
def atomic_writer(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends without an exception.

    On an exception the temporary file is deleted and ``path`` stays as it was.

    Args:
        path: Target file. A symbolic link is followed, so the link itself stays.
        sync: Flush the file and its directory entry to disk before returning.
    """
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            if sync:
                sync_file(file.fileno())
        temporary.replace(path)
        if sync:
            sync_directory(path.parent)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name that the user gave, not the temporary one
        raise


def rename_directory(folder: Path, target: Path) -> None:
    """Rename a directory; ``target`` must not exist or be an empty directory."""
    if sys.platform == "win32" and target.is_dir():
        target.rmdir()  # which Windows cannot replace
    os.replace(folder, target)  # noqa: PTH105 - documented for directories, unlike Path.replace


if sys.platform == "darwin":
    import fcntl

    # Errors of file systems without F_FULLFSYNC, such as those of a network.
    NOT_SUPPORTED = (errno.EINVAL, errno.ENODEV, errno.ENOTSUP, errno.ENOTTY)

    def sync_file(descriptor: int) -> None:
        """Flush an open file to disk."""
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
            os.fsync(descriptor)

else:

    def sync_file(descriptor: int) -> None:
        """Flush an open file to disk; on Windows it must be open for writing."""
        os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    if path.is_dir():
        sync_directory(path)
    else:
        _sync_opened(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)


def sync_directory(folder: Path) -> None:
    """Flush the directory entries of ``folder`` to disk; does nothing on Windows."""
    if sys.platform != "win32":
        _sync_opened(folder, os.O_RDONLY)


def _sync_opened(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
