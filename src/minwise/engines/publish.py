"""Publish: a directory is filled out of sight and takes its place whole."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from minwise.engines.work import Work, sync_directory
from minwise.errors import ConfigError
from minwise.formats.source import Source

__all__ = ["check_output", "is_published", "publish"]


def check_output(output: Path, sources: list[Source], *, overwrite: bool) -> None:
    """Raises if the output would replace something, or would swallow an input."""
    target = Path(os.path.realpath(output))
    for source in sources:
        if "://" in source.name or not source.name:
            continue
        place = Path(os.path.realpath(source.name))
        if place == target or target in place.parents:
            raise ConfigError(f"output must not be or hold an input, got {output} with {source.name}; give another -o")
    if output.exists() and not output.is_dir():
        raise ConfigError(f"output must be a directory, got the file {output}")
    if not overwrite and output.exists() and any(output.iterdir()):
        raise ConfigError(f"output must be new or empty, got {output} with files in it; give another -o or --overwrite")


def is_published(work: Work, output: Path) -> bool:
    """Whether this work's result already stands at ``output``, also if the run died right after putting it there."""
    if not work.has("publishing") or not output.is_dir():
        return False
    now = output.stat()
    return work.read_note("publishing") == {"device": now.st_dev, "inode": now.st_ino}


@contextmanager
def publish(output: Path, work: Work) -> Iterator[Path]:
    """A directory to fill, which becomes ``output`` when all went well and is gone otherwise."""
    output = output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    token = sha256(bytes(work.folder.resolve())).hexdigest()[:8]
    staging = output.parent / f".{output.name}.minwise-{token}"
    shutil.rmtree(staging, ignore_errors=True)  # of a run on this work directory that was cut short here
    staging.mkdir()
    try:
        yield staging
        if work.durable:
            _sync_tree(staging)
            here = staging.stat()
            work.note("publishing", {"device": here.st_dev, "inode": here.st_ino})
        _replace(staging, output)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _replace(staging: Path, output: Path) -> None:
    """Puts the directory in place; one that was there is gone only after that."""
    if not output.exists() or not any(output.iterdir()):
        staging.rename(output)
    else:
        old = output.parent / f".{output.name}.minwise-old-{secrets.token_hex(4)}"
        output.rename(old)
        try:
            staging.rename(output)
        except BaseException:
            old.rename(output)
            raise
        shutil.rmtree(old)
    sync_directory(output.parent)


def _sync_tree(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            file = os.open(Path(place) / name, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        sync_directory(Path(place))
