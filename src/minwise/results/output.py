"""Output directories: checks before a run, and publishing that leaves a complete directory or none.

A local directory is filled in a hidden one and then renamed, in one step and never onto a directory that another
process has filled meanwhile. At a URL nothing can be renamed: a marker file, which names the run, is there until the
directory is complete. With a durable work directory, a note about the published directory lets a repeated run
recognise its own output.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any

from minwise._internal import atomic
from minwise._internal.atomic import sync_directory, sync_path
from minwise._internal.temporary import TemporaryFolder, publish_new, sweep
from minwise.checks import check_path
from minwise.errors import ConfigError, MinwiseError
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.source import Source
from minwise.inputs.table_writer import not_empty_error, refuse_existing_file
from minwise.search.engine import StagingDirectory
from minwise.search.workdir import WorkDirectory

__all__ = [
    "Output",
    "RemoteOutput",
    "check_output",
    "is_published",
    "output_of",
    "publish",
    "refuse_existing_file",
    "refuse_inputs",
]

# Marker at a URL, written before the first file and deleted after the last: the files next to it may be incomplete.
UNFINISHED = "_unfinished"
STAGING = ".staging-"
# Files that ``minwise report`` writes into a finished directory; they do not change its identity.
WRITTEN_LATER = ("report.html", "report-with-texts.html", "audit.json")


# What distinguishes results of one work directory.
Note = Mapping[str, Any]
NO_NOTE: Note = MappingProxyType({})


class RemoteOutput:
    """Output directory that fsspec reaches.

    Attributes:
        url: The URL as the user gave it, without a trailing slash.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        filesystem, path = url_filesystem(self.url)
        self._filesystem: Any = filesystem
        self._path = str(path).rstrip("/")
        self._marker = f"This directory is not whole yet. Run {secrets.token_hex(8)} writes it.\n".encode()

    def __str__(self) -> str:
        return self.url

    def check(self, sources: list[Source], *, overwrite: bool) -> None:
        """Raise ConfigError if the output would replace existing files, or contains an input."""
        for path in (path for source in sources for path in source.paths()):
            if f"{path}/".startswith(f"{self.url}/"):
                raise ConfigError(
                    f"output must not be or hold an input, got {self.url} with {path}; give another output"
                )
        if not overwrite:
            self._refuse_files()

    def _refuse_files(self) -> None:
        """Raise ConfigError if there are files, unless an interrupted run left them."""
        if self._list_files() and not self._has(UNFINISHED):
            raise not_empty_error(self.url, "files in it")

    def is_published(self, work: WorkDirectory, note: Note) -> bool:
        """Return whether the result of this work directory is already here, with this note."""
        if not work.has("publishing") or work.read_json("publishing") != {"url": self.url, **note}:
            return False
        return self._has("report.json") and not self._has(UNFINISHED)

    @contextmanager
    def publish(
        self, work: WorkDirectory, *, overwrite: bool = False, note: Note | None = NO_NOTE
    ) -> Iterator[StagingDirectory]:
        """Yield a directory to fill, and send its files on success; after an error, delete the files at the URL.

        Nothing can be locked at a URL: a second run takes the output over, and the first one fails before it sends
        another file.
        """
        for leftover in work.folder.glob(f"{STAGING}*"):  # of an interrupted run
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(mkdtemp(prefix=STAGING, dir=work.folder))
        try:
            if not overwrite:
                self._refuse_files()  # written during the run
            self._clear()
            self._filesystem.pipe_file(f"{self._path}/{UNFINISHED}", self._marker)
            try:
                yield StagingDirectory(folder, self.url)
                self._send(folder)
                self._refuse_other_run()
                self._filesystem.rm_file(f"{self._path}/{UNFINISHED}")
            except BaseException:
                if self._is_own():
                    self._clear()
                raise
            if note is not None:
                work.write_json("publishing", {"url": self.url, **note})
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _send(self, folder: Path) -> None:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            self._refuse_other_run()
            target = f"{self._path}/{path.relative_to(folder).as_posix()}"
            self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._filesystem.put_file(str(path), target)

    def _is_own(self) -> bool:
        """Return whether the marker is that of this run."""
        marker = f"{self._path}/{UNFINISHED}"
        return self._has(UNFINISHED) and bool(self._filesystem.cat_file(marker) == self._marker)

    def _refuse_other_run(self) -> None:
        if not self._is_own():
            raise MinwiseError(f"output {self.url} was taken over by another run, which continues; give another output")

    def _clear(self) -> None:
        if self._list_files():
            self._filesystem.rm(self._path, recursive=True)
        self._filesystem.makedirs(self._path, exist_ok=True)

    def _list_files(self) -> list[str]:
        self._filesystem.invalidate_cache()  # another process may have written here
        return list(self._filesystem.find(self._path))

    def _has(self, name: str) -> bool:
        self._filesystem.invalidate_cache()
        return bool(self._filesystem.exists(f"{self._path}/{name}"))


Output = Path | RemoteOutput


def output_of(given: object) -> Output:
    """Return the output directory of a path or URL."""
    path = check_path("output", given)
    return RemoteOutput(str(given)) if is_url(given) else path


def check_output(output: Output, sources: list[Source], *, overwrite: bool) -> None:
    """Raise ConfigError if the output would replace existing files, cannot be renamed, or contains an input."""
    if isinstance(output, RemoteOutput):
        output.check(sources, overwrite=overwrite)
        return
    refuse_inputs(output, sources)
    if output.is_symlink() or os.path.ismount(output):
        kind = "link" if output.is_symlink() else "mount point"
        raise ConfigError(
            f"output must be a directory that can be renamed, got the {kind} {output}; give {output}/NAME"
        )
    if output.exists() and not output.is_dir():
        raise ConfigError(f"output must be a directory, got the file {output}")
    if not overwrite and output.exists() and any(output.iterdir()):
        raise not_empty_error(str(output), "files in it")


def refuse_inputs(output: Path, sources: list[Source]) -> None:
    """Raise ConfigError if the output is an input, or a directory that contains one."""
    target = os.path.realpath(output)
    for path in (path for source in sources for path in source.paths()):
        real_path = os.path.realpath(path)
        if "://" not in path and path and (real_path == target or real_path.startswith(f"{target}{os.sep}")):
            raise ConfigError(f"output must not be or hold an input, got {output} with {path}; give another output")


def is_published(work: WorkDirectory, output: Output, note: Note = NO_NOTE) -> bool:
    """Return whether the result of this work directory is already at ``output``, with the note of :func:`publish`.

    Also True if the run was killed right after it renamed the directory.
    """
    if isinstance(output, RemoteOutput):
        return output.is_published(work, note)
    if not work.has("publishing") or not output.is_dir():
        return False
    if work.read_json("publishing") != {**_identity(output), **note}:
        return False
    _settle_replaced(output)
    sweep(output.absolute().parent)  # the run may have been killed before it deleted its temporary directory
    return True


def _identity(folder: Path) -> dict[str, int]:
    """Return values that distinguish a directory and its content from another, without reading its files."""
    sizes = [
        (Path(directory) / name).stat().st_size
        for directory, _, names in os.walk(folder)
        for name in names
        if directory != str(folder) or name not in WRITTEN_LATER
    ]
    status = folder.stat()
    return {"device": status.st_dev, "inode": status.st_ino, "files": len(sizes), "bytes": sum(sizes)}


@contextmanager
def publish(
    output: Output, work: WorkDirectory, *, overwrite: bool = False, note: Note | None = NO_NOTE
) -> Iterator[StagingDirectory]:
    """Yield a directory to fill, which becomes ``output`` on success and is deleted otherwise.

    Args:
        output: The output directory.
        work: The work directory of the run.
        overwrite: Whether to replace an output that is not empty by then.
        note: What distinguishes the result from others of the work directory, so that a repeated run finds it in
            ``output``; None if no run must find it.

    Raises:
        MinwiseError: If another process filled the output meanwhile, without ``overwrite``; the result is kept.
    """
    if isinstance(output, RemoteOutput):
        with output.publish(work, overwrite=overwrite, note=note) as remote:
            yield remote
        return
    output = output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    _settle_replaced(output)
    with TemporaryFolder(output.parent, mode=0o777) as folder:  # executors of Spark may run as another user
        staging = folder / output.name
        staging.mkdir()
        yield StagingDirectory(staging)
        if work.durable:
            _sync_tree(staging)
            if note is not None:
                work.write_json("publishing", {**_identity(staging), **note})
        _rename(staging, output, overwrite=overwrite)
        sync_directory(output.parent)


def _rename(staging: Path, output: Path, *, overwrite: bool) -> None:
    """Give the directory its final name; an existing output that is replaced gets the name of the staging directory."""
    try:
        if overwrite:
            atomic.rename_new(staging, output)
        else:
            publish_new(staging, output)
    except FileExistsError:
        atomic.exchange(staging, output)


def _settle_replaced(output: Path) -> None:
    """Complete what a run left that was killed while it exchanged directories by several renames."""
    replaced = atomic.replaced_path(output.absolute())
    if replaced.exists() and not output.exists():
        replaced.rename(output)
    shutil.rmtree(replaced, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for directory, _, names in os.walk(folder):
        for name in names:
            sync_path(Path(directory) / name)
        sync_directory(Path(directory))
