"""Atomic and durable file writes."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_writer", "sync_directory"]


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
                os.fsync(file.fileno())
        temporary.replace(path)
        if sync and os.name == "posix":  # other systems cannot open a directory and do not need this
            sync_directory(path.parent)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name that the user gave, not the temporary one
        raise


def sync_directory(folder: Path) -> None:
    """Flush the directory entries of ``folder`` to disk."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
