"""Backup: an index in, a copy of one of its states in a new directory out. New indexes appear in the same way."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from minwise.errors import ConfigError
from minwise.index.database import DATABASE, naming_file, sync
from minwise.index.store import Store

__all__ = ["back_up", "new_directory"]


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A directory beside ``path`` that takes its place once it is complete and on disk."""
    path = path.resolve()  # a link keeps pointing where it points
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} must be a new or an empty directory, got one that holds something; delete it first")
    _make_lasting(path.parent)
    _forget_unfinished(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    unfinished.mkdir()
    with _held(unfinished):
        try:
            yield unfinished
            sync(unfinished)
            os.replace(unfinished, path)  # noqa: PTH105 - what Path.replace says of files, this says of directories too
            sync(path.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _forget_unfinished(path: Path) -> None:
    """Deletes what others began in the same place and were kept from finishing; not what somebody is at."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.tmp")
    for unfinished in (one for one in path.parent.iterdir() if ours.fullmatch(one.name)):
        with suppress(OSError), _held(unfinished):
            shutil.rmtree(unfinished)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Holds a directory, as long as the process lives at most.

    Raises:
        BlockingIOError: If another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _make_lasting(folder: Path) -> None:
    """Makes a directory and its parents, those that are not there, and their names last."""
    if not folder.exists():
        _make_lasting(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def back_up(store: Store, segments: Sequence[Path], path: Path) -> None:
    """Copies the database that a snapshot shows, and the segments of its state; all of it is durable before it appears.

    Raises:
        FileNotFoundError: If a segment has been merged away since the snapshot was taken: take another.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(segment.open("rb")) for segment in segments]  # from now on they can be read
        with new_directory(path) as unfinished:
            store.copy_to(unfinished / DATABASE)
            for file, segment in zip(opened, segments, strict=True):
                _copy(file, unfinished / segment.name)


def _copy(file: BinaryIO, path: Path) -> None:
    with naming_file(path), path.open("xb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    sync(path)
