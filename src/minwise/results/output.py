"""Remote output: a directory by URL, where nothing can be renamed; a file in it says as long as it is not whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from minwise._internal.atomic import sync_directory
from minwise.checks import check_path
from minwise.errors import ConfigError
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.source import Source
from minwise.search.engine import Staging
from minwise.search.workdir import Work

__all__ = ["Output", "RemoteOutput", "check_output", "is_published", "output_of", "publish", "refuse_inputs"]

# There from before the first file to after the last: what lies beside it is of a run that has not ended.
UNFINISHED = "_unfinished"
STAGING = ".staging-"


class RemoteOutput:
    """A directory that fsspec reaches.

    Attributes:
        url: What a user calls it.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        filesystem, path = url_filesystem(self.url)
        self._files: Any = filesystem
        self._path = str(path).rstrip("/")

    def __str__(self) -> str:
        return self.url

    def check(self, sources: list[Source], *, overwrite: bool) -> None:
        """Raises if the output would replace something, or would swallow an input."""
        for path in (path for source in sources for path in source.paths()):
            if f"{path}/".startswith(f"{self.url}/"):
                raise ConfigError(f"output must not be or hold an input, got {self.url} with {path}; give another -o")
        if not overwrite and self._files_there() and not self._has(UNFINISHED):
            raise ConfigError(
                f"output must be new or empty, got {self.url} with files in it; give another -o or --overwrite"
            )

    def is_published(self, work: Work) -> bool:
        """Whether the result of this work directory already stands here."""
        if not work.has("publishing") or work.read_note("publishing") != {"url": self.url}:
            return False
        return self._has("report.json") and not self._has(UNFINISHED)

    @contextmanager
    def publish(self, work: Work) -> Iterator[Staging]:
        """A directory to fill, whose files are sent when all went well; on an error, what was sent is deleted."""
        for leftover in work.folder.glob(f"{STAGING}*"):  # of a run that was cut short here
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(mkdtemp(prefix=STAGING, dir=work.folder))
        try:
            self._clear()
            self._files.pipe_file(f"{self._path}/{UNFINISHED}", b"This directory is not whole yet.\n")
            try:
                yield Staging(folder, self.url)
                self._send(folder)
                self._files.rm_file(f"{self._path}/{UNFINISHED}")
            except BaseException:
                self._clear()
                raise
            work.note("publishing", {"url": self.url})
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _send(self, folder: Path) -> None:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = f"{self._path}/{path.relative_to(folder).as_posix()}"
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(path), target)

    def _clear(self) -> None:
        if self._files_there():
            self._files.rm(self._path, recursive=True)
        self._files.makedirs(self._path, exist_ok=True)

    def _files_there(self) -> list[str]:
        self._files.invalidate_cache()  # somebody else may have been here
        return list(self._files.find(self._path))

    def _has(self, name: str) -> bool:
        self._files.invalidate_cache()
        return bool(self._files.exists(f"{self._path}/{name}"))


Output = Path | RemoteOutput

# What ``minwise report`` writes anew into a directory, which does not make it another.
WRITTEN_LATER = ("report.html", "report-with-texts.html", "audit.json")


def output_of(given: object) -> Output:
    """A directory by its path or URL."""
    path = check_path("output", given)
    return RemoteOutput(str(given)) if is_url(given) else path


def check_output(output: Output, sources: list[Source], *, overwrite: bool) -> None:
    """Raises if the output would replace something, or would swallow an input."""
    if isinstance(output, RemoteOutput):
        output.check(sources, overwrite=overwrite)
        return
    refuse_inputs(output, sources)
    if output.is_symlink() or output.is_mount():
        kind = "link" if output.is_symlink() else "mount point"
        raise ConfigError(
            f"output must be a directory that can be renamed, got the {kind} {output}; give {output}/NAME"
        )
    if output.exists() and not output.is_dir():
        raise ConfigError(f"output must be a directory, got the file {output}")
    if not overwrite and output.exists() and any(output.iterdir()):
        raise ConfigError(f"output must be new or empty, got {output} with files in it; give another -o or --overwrite")


def refuse_inputs(output: Path, sources: list[Source]) -> None:
    """Raises if the output is an input, or a directory that holds one."""
    target = os.path.realpath(output)
    for path in (path for source in sources for path in source.paths()):
        place = os.path.realpath(path)
        if "://" not in path and path and (place == target or place.startswith(f"{target}{os.sep}")):
            raise ConfigError(f"output must not be or hold an input, got {output} with {path}; give another -o")


def is_published(work: Work, output: Output) -> bool:
    """Whether this work's result already stands at ``output``, also if the run died right after putting it there."""
    if isinstance(output, RemoteOutput):
        return output.is_published(work)
    if not work.has("publishing") or not output.is_dir() or work.read_note("publishing") != _identity(output):
        return False
    shutil.rmtree(_old(output), ignore_errors=True)  # what it replaced, if the run died before it was gone
    return True


def _identity(folder: Path) -> dict[str, int]:
    """What tells a directory and its content from another, without reading its files."""
    sizes = [
        (Path(place) / name).stat().st_size
        for place, _, names in os.walk(folder)
        for name in names
        if place != str(folder) or name not in WRITTEN_LATER
    ]
    here = folder.stat()
    return {"device": here.st_dev, "inode": here.st_ino, "files": len(sizes), "bytes": sum(sizes)}


def _old(output: Path) -> Path:
    """Where an output waits while another takes its place."""
    return output.absolute().parent / f".{output.name}.minwise-old"


@contextmanager
def publish(output: Output, work: Work) -> Iterator[Staging]:
    """A directory to fill, which becomes ``output`` when all went well and is gone otherwise."""
    if isinstance(output, RemoteOutput):
        with output.publish(work) as remote:
            yield remote
        return
    output = output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    token = sha256(bytes(work.folder.resolve())).hexdigest()[:8]
    staging = output.parent / f".{output.name}.minwise-{token}"
    shutil.rmtree(staging, ignore_errors=True)  # of a run on this work directory that was cut short here
    if _old(output).exists() and not output.exists():  # of one that was cut short between its two renames
        _old(output).rename(output)
    shutil.rmtree(_old(output), ignore_errors=True)
    staging.mkdir()
    try:
        yield Staging(staging)
        if work.durable:
            _sync_tree(staging)
            work.note("publishing", dict(_identity(staging)))
        _replace(staging, output)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _replace(staging: Path, output: Path) -> None:
    """Puts the directory in place; one that was there is gone only after that."""
    if not output.exists() or not any(output.iterdir()):
        staging.rename(output)
    else:
        old = _old(output)
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
