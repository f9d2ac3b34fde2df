"""Temporary directories of a run, and output files that are written in one and then renamed.

A directory holds a locked file while its process lives, and the system releases the lock however the process ends. So
the next run recognises and deletes what a killed one has left, and never what another run still uses.
"""

import errno
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, BinaryIO
from weakref import WeakSet, finalize

from minwise._internal import atomic
from minwise._internal.locks import lock_file
from minwise.errors import MinwiseError

__all__ = ["TemporaryFolder", "delete_folders", "output_writer", "publish_new", "sweep"]

PREFIX = ".minwise-"
LOCK = ".lock"
# Age at which a directory without a named owner was left by a process that was killed while it created the directory.
UNOWNED_SECONDS = 3600
# Those of this process.
LIVE: "WeakSet[TemporaryFolder]" = WeakSet()


class TemporaryFolder:
    """Directory that is deleted on :meth:`close`, on garbage collection and at exit, or by the next run after a kill.

    Args:
        parent: Where to create it; None for the temporary directory of the system.
        mode: Permissions, of which those of the umask are removed.

    Attributes:
        path: The directory.
    """

    def __init__(self, parent: Path | None = None, *, mode: int = 0o700) -> None:
        folder = Path(tempfile.gettempdir()) if parent is None else parent
        for swept in (Path(tempfile.gettempdir()), folder.absolute()):
            _sweep_once(swept)
        self.path = folder / f"{PREFIX}{secrets.token_hex(8)}"
        self.path.mkdir(mode)
        self._delete = finalize(self, _delete, self.path, self._own(), os.getpid())
        LIVE.add(self)

    def _own(self) -> IO[bytes]:
        """Lock a file and write the name of this machine to it; where no file can be locked, only write."""
        try:
            lock = (self.path / LOCK).open("wb", buffering=0)
            with suppress(OSError):
                lock_file(lock, wait=True)  # another run may look whether it is locked
            _write_owner(lock)
        except OSError as error:  # the disk is full
            shutil.rmtree(self.path, ignore_errors=True)
            raise OSError(error.errno, error.strerror, str(self.path.parent)) from None
        return lock

    def close(self) -> None:
        """Delete the directory; a second call does nothing."""
        self._delete()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()


def _write_owner(lock: IO[bytes]) -> None:
    try:
        lock.write(socket.gethostname().encode())
    except OSError:
        lock.close()
        raise


def _delete(folder: Path, lock: IO[bytes], process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        lock.close()  # Windows deletes no open file
        shutil.rmtree(folder, ignore_errors=True)


def delete_folders() -> None:
    """Delete the temporary directories of this process, before an exit that runs no exit handlers."""
    for folder in list(LIVE):
        folder.close()


@cache
def _sweep_once(parent: Path) -> None:
    sweep(parent)


def sweep(parent: Path) -> None:
    """Delete the temporary directories in ``parent`` whose processes, of this user and machine, have ended."""
    for entry in _leftovers(parent):
        with suppress(OSError):
            if _is_abandoned(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _leftovers(parent: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(parent) as entries:
            named = [entry for entry in entries if entry.name.startswith(PREFIX)]
        return [entry for entry in named if entry.is_dir(follow_symlinks=False)]
    except OSError:  # no such directory, or one that cannot be read
        return []


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    status = entry.stat(follow_symlinks=False)
    if sys.platform != "win32" and status.st_uid != os.getuid():
        return False
    try:
        with (Path(entry.path) / LOCK).open("r+", encoding="utf-8") as lock:
            lock_file(lock)
            owner = lock.read()
    except FileNotFoundError:
        owner = ""
    return owner == socket.gethostname() or (not owner and time.time() - status.st_mtime > UNOWNED_SECONDS)


@contextmanager
def output_writer(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Open a file that gets the name ``path`` when the block ends without an exception, synced to disk.

    Args:
        path: Target file. A symbolic link is followed, so the link itself stays.
        overwrite: Whether a file with content that has the name by then is replaced.

    Raises:
        IsADirectoryError: If ``path`` is a directory.
        MinwiseError: If there is one and ``overwrite`` is False; the file is then kept next to it.
    """
    path = path.resolve()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with TemporaryFolder(path.parent) as folder:
            with (folder / path.name).open("wb") as file:
                yield file
                file.flush()
                atomic.sync_file(file.fileno())
            if overwrite:
                (folder / path.name).replace(path)
            else:
                publish_new(folder / path.name, path)
            atomic.sync_directory(path.parent)
    except OSError as error:
        if error.filename in (None, str(path.parent)) or PREFIX in str(error.filename):
            error.filename, error.filename2 = str(path), None  # the name that the user gave, not the temporary one
        raise


def publish_new(complete: Path, target: Path) -> None:
    """Rename a complete file or directory; an empty one of that name is replaced, one with content is not.

    Raises:
        MinwiseError: If there is one with content; the complete file or directory is then kept next to it.
    """
    try:
        atomic.rename_new(complete, target)
    except FileExistsError:
        if not (_is_empty(target) and _exchange_empty(complete, target)):
            kept = _keep_beside(complete, target)
            raise MinwiseError(
                f"output must be new or empty, got {target}, which another process wrote during the run; "
                f"the complete result is {kept}: rename or delete it"
            ) from None


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def _exchange_empty(complete: Path, target: Path) -> bool:
    """Exchange a file with an empty one; return False, and exchange them back, if that has content after all."""
    atomic.exchange(complete, target)
    if _is_empty(complete):
        return True
    atomic.exchange(complete, target)
    return False


def _keep_beside(complete: Path, target: Path) -> Path:
    """Rename a result that cannot have its name to the first free one like it."""
    suffix = "" if complete.is_dir() else target.suffix
    number = 1
    while True:
        kept = target.with_name(f"{target.name.removesuffix(suffix)}.result-{number}{suffix}")
        try:
            atomic.rename_new(complete, kept)
        except FileExistsError:
            number += 1
        else:
            return kept
