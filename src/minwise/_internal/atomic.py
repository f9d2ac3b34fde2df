"""Atomic and durable file writes.

``fsync`` of macOS leaves data in the cache of the drive; ``F_FULLFSYNC`` empties that, too. Windows flushes only a file
that is open for writing, and cannot flush a directory: its file systems log changes of names.
"""

import ctypes
import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from minwise._internal.locks import lock_file

__all__ = [
    "atomic_writer",
    "exchange",
    "rename_directory",
    "rename_new",
    "replaced_path",
    "sync_directory",
    "sync_file",
    "sync_path",
]

# Flags of ``renameat2`` of Linux and of ``renamex_np`` of macOS.
NO_REPLACE, EXCHANGE = {"linux": 1, "darwin": 4}, {"linux": 2, "darwin": 2}
# Errors of a kernel or file system without these flags, and of one without hard links.
NO_FLAGS = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
# Errors of ``rename`` where the target is a directory with content, or a file.
EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
AT_FDCWD = -100


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


def rename_new(path: Path, target: Path) -> None:
    """Rename a file or directory in one step unless the name is taken; a directory may replace an empty one.

    Where the system has no such call, a file gets a second name and loses its first; where there are no hard links, a
    lock of the parent directory excludes other processes of minwise, but no other program.

    Raises:
        FileExistsError: If the name is taken.
    """
    try:
        if path.is_dir():
            rename_directory(path, target)  # no system replaces a directory with content
        elif sys.platform == "win32":
            path.rename(target)  # never replaces
        elif not _rename_flagged(path, target, NO_REPLACE):
            _link_new(path, target)
    except OSError as error:
        if error.errno in EXISTS:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        raise


def _link_new(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _rename_locked(path, target)
    else:
        path.unlink()


def _rename_locked(path: Path, target: Path) -> None:
    parent = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            lock_file(parent, wait=True)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        path.rename(target)
    finally:
        os.close(parent)


def exchange(path: Path, target: Path) -> None:
    """Exchange the names of two files or directories, in one step where the system has a call for it.

    Elsewhere the target is missing between two renames. :func:`replaced_path` is the name of its content meanwhile.
    """
    if _rename_flagged(path, target, EXCHANGE):
        return
    replaced = replaced_path(target)
    target.rename(replaced)
    try:
        path.rename(target)
    except BaseException:
        replaced.rename(target)
        raise
    replaced.rename(path)


def replaced_path(target: Path) -> Path:
    """Return the name of a file or directory while another takes its place."""
    return target.with_name(f".{target.name}.minwise-old")


@cache
def _flagged_rename() -> Any:  # noqa: ANN401 - a function of the C library
    """Return the rename of the C library that takes flags; None if it has none."""
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    return None if name is None else getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _rename_flagged(path: Path, target: Path, flags: dict[str, int]) -> bool:
    """Rename with a flag of this system; return False if the system or the file system has none."""
    call = _flagged_rename()
    if call is None:
        return False
    names, flag = (os.fsencode(path), os.fsencode(target)), ctypes.c_uint(flags[sys.platform])
    arguments = (AT_FDCWD, names[0], AT_FDCWD, names[1]) if sys.platform == "linux" else names
    if call(*arguments, flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in NO_FLAGS:
        return False
    raise OSError(number, os.strerror(number), str(path), None, str(target))


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
