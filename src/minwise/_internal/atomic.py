"""Durable: what makes new files appear whole or not at all, and makes their names last."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_writer", "sync_directory"]


@contextmanager
def atomic_writer(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A file beside ``path`` that takes its place once it is complete, and on disk if ``sync``."""
    path = path.resolve()  # a link keeps pointing where it points
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
        if sync and os.name == "posix":  # elsewhere a directory can not be opened, nor needs it
            sync_directory(path.parent)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the user knows this name, not the temporary one
        raise


def sync_directory(folder: Path) -> None:
    """Makes the names in a directory last."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
