"""Work directory: the finished files of a run, from which an interrupted run resumes.

Every stage of the search writes its output here and reads the output of the stages before it. A file is complete or
absent, and has checksums that are verified before its content is used. A directory that the user names is synced to
disk, locked against other processes and bound to one run by its manifest; without one, a temporary directory is used
and nothing is synced. A URL is mirrored: files are read and written in a temporary directory of this machine, and each
finished one is sent.
"""

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from minwise import _kernel
from minwise._internal.array_files import ArrayFile, Arrays, FileKind, sealed_writer, verify_seal, write_array_file
from minwise._internal.atomic import atomic_writer
from minwise._internal.locks import lock_file
from minwise._internal.temporary import TemporaryFolder, sweep
from minwise.checks import check_path
from minwise.errors import ConfigError, FormatError, MinwiseError, MismatchError
from minwise.inputs.files import is_url, url_filesystem

__all__ = [
    "WorkDirectory",
    "choose_workdir",
    "damaged_file",
    "decode_json",
    "encode_json",
    "open_workdir",
    "refuse_other_run",
    "temporary_workdir",
]

KIND = FileKind(b"MINWORK\n", 5, "work file", "delete the work directory and start again")
MANIFEST = "manifest.json"
# Key of the checksum in a JSON file.
CHECKSUM = "crc32c"
# Files whose presence says that a stage is finished.
FINISHED_STAGES = ("verified", "star", "components", "documents")
# File at a URL that names the run which uses the work directory.
OWNER = "owner.json"


def encode_json(values: dict[str, Any]) -> bytes:
    """Return values as JSON with their checksum."""
    return json.dumps({**values, CHECKSUM: _json_checksum(values)}, indent=1).encode()


def decode_json(data: bytes, path: Path | str) -> dict[str, Any]:
    """Return the values that :func:`encode_json` encoded.

    Raises:
        FormatError: If they are damaged; the message names ``path``.
    """
    try:
        values = dict(json.loads(data))
    except (RecursionError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: must be JSON: {error}; {KIND.remedy}") from None
    if values.pop(CHECKSUM, None) != _json_checksum(values):
        raise damaged_file(path)
    return values


def damaged_file(path: Path | str) -> FormatError:
    """Return the error of a work file whose checksum is wrong."""
    return FormatError(f"{path}: the file is damaged; restore the file or {KIND.remedy}")


def _json_checksum(values: dict[str, Any]) -> int:
    """Return the CRC-32C of JSON values; it does not depend on white space."""
    return _kernel.crc32c(np.frombuffer(json.dumps(values).encode(), dtype=np.uint8), 0)


class WorkDirectory:
    """Directory of files that are each complete or absent.

    Attributes:
        folder: The directory.
        durable: Whether files are synced to disk, so that a later run can resume.
        resumed: Whether the directory held an earlier run when it was opened.
        temporary: Whether the directory is deleted when it is closed.
        kind: Kind of its files.
    """

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool,
        resumed: bool = False,
        temporary: bool = False,
        kind: FileKind | None = None,
    ) -> None:
        self.folder, self.kind = folder, kind or KIND
        self.temporary = temporary
        self.durable = durable
        self.resumed = resumed

    def has(self, name: str) -> bool:
        """Return whether a file is finished."""
        return (self.folder / name).exists()

    def names(self, prefix: str) -> list[str]:
        """Return the names of the finished files that start with ``prefix``, sorted."""
        visible = (path.name for path in self.folder.iterdir() if not path.name.startswith("."))
        return sorted(name for name in visible if name.startswith(prefix))

    def write(self, name: str, arrays: Arrays, **header: object) -> None:
        """Write a file of arrays, with ``header`` as its JSON header."""
        write_array_file(self.folder / name, self.kind, header, arrays, sync=self.durable)
        self._finished(name)

    def open(self, name: str) -> ArrayFile:
        """Open a finished file of arrays."""
        return ArrayFile(self.folder / name, self.kind)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a file that is an Arrow table."""
        with self.sealed(name) as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)

    def read_table(self, name: str) -> pa.Table:
        """Return a finished Arrow table as a view of its file."""
        path, length = self.verified(name)
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(pa.BufferReader(file.read_buffer(length))).read_all()

    @contextmanager
    def sealed(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of any content that is finished, with a checksum, when the block ends."""
        with sealed_writer(self.folder / name, sync=self.durable) as file:
            yield file
        self._finished(name)

    def verified(self, name: str) -> tuple[Path, int]:
        """Verify the checksum of a file that :meth:`sealed` wrote; return its path and the bytes of its content.

        Raises:
            FormatError: If the file is damaged.
        """
        path = self.folder / name
        return path, verify_seal(path, self.kind)

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write a file of a few JSON values."""
        with atomic_writer(self.folder / name, sync=self.durable) as file:
            file.write(encode_json(values))
        self._finished(name)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the values of a finished JSON file.

        Raises:
            FormatError: If the file is damaged.
        """
        path = self.folder / name
        return decode_json(path.read_bytes(), path)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock of the directory again after the run that opened it has ended.

        Raises:
            ConfigError: If another process uses it.
        """
        return nullcontext() if self.temporary else _locked(self.folder)

    def delete(self, prefix: str) -> None:
        """Delete the files whose name starts with ``prefix``."""
        for name in self.names(prefix):
            (self.folder / name).unlink()

    def delete_unfinished(self, prefixes: tuple[str, ...], finished: int) -> None:
        """Delete the numbered files of parts from ``finished`` on: the run ended before these parts were complete."""
        for name in (name for prefix in prefixes for name in self.names(prefix)):
            if int(name.rpartition("-")[2]) >= finished:
                self.delete(name)

    def restart(self) -> None:
        """Delete all files but the manifest, those first that mark a stage as finished."""
        for name in [*FINISHED_STAGES, *reversed(self.names(""))]:
            if (self.folder / name).is_dir():
                shutil.rmtree(self.folder / name)  # of Spark
            elif name != MANIFEST:
                self.delete(name)

    def take_over(self) -> None:
        """Become the run that uses the directory; a local one is locked already."""

    def _finished(self, name: str) -> None:
        """Handle that a file is complete."""


class RemoteWorkDirectory(WorkDirectory):
    """Work directory at a URL, mirrored in a local directory.

    Nothing can be locked at a URL: a second run on the same work directory takes it over, and the first one fails
    before it sends another file.

    Attributes:
        url: The URL as the user gave it, without a trailing slash.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self._filesystem, path = url_filesystem(self.url)
        self._path = str(path).rstrip("/")
        self._token = secrets.token_hex(8).encode()
        self._fetch(folder)
        super().__init__(folder, durable=True, resumed=(folder / MANIFEST).exists(), temporary=True)

    def take_over(self) -> None:
        """Become the run that uses the work directory."""
        self._filesystem.makedirs(self._path, exist_ok=True)
        self._filesystem.pipe_file(f"{self._path}/{OWNER}", self._token)

    def delete(self, prefix: str) -> None:
        """Delete the files whose name starts with ``prefix``, here and at the URL."""
        for name in self.names(prefix):
            self._check_owner()
            (self.folder / name).unlink()
            self._filesystem.rm_file(f"{self._path}/{name}")

    def _fetch(self, folder: Path) -> None:
        self._filesystem.invalidate_cache()  # another process may have written here
        for path in self._filesystem.find(self._path):
            name = path.rpartition("/")[2]
            if name != OWNER:
                self._filesystem.get_file(path, str(folder / name))

    def _finished(self, name: str) -> None:
        self._check_owner()
        self._filesystem.put_file(str(self.folder / name), f"{self._path}/{name}")

    def _check_owner(self) -> None:
        if self._filesystem.cat_file(f"{self._path}/{OWNER}") != self._token:
            raise MinwiseError(f"work {self.url} was taken over by another run, which continues; this one ends")


def choose_workdir(
    given: str | PathLike[str] | None, manifest: dict[str, Any], output: Path | None
) -> AbstractContextManager[WorkDirectory]:
    """Return the given work directory, or a temporary one next to the output."""
    parent = None if output is None else output.absolute().parent
    if given is None:
        return temporary_workdir(parent)
    if parent is not None:
        sweep(parent)
    if is_url(given):
        return open_remote_workdir(str(given), manifest, parent)
    return open_workdir(check_path("work", given), manifest)


@contextmanager
def temporary_workdir(parent: Path | None) -> Iterator[WorkDirectory]:
    """Create a work directory that is deleted on exit.

    Args:
        parent: Where to create it, usually next to the output, where there is disk space; None for the temporary
            directory of the system.
    """
    try:
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        folder = TemporaryFolder(parent)
    except OSError as error:  # name the parent, which the user gave, not the generated directory
        raise OSError(error.errno, error.strerror, str(parent)) from None
    with folder as path:
        yield WorkDirectory(path, durable=False, temporary=True)


@contextmanager
def open_workdir(folder: Path, manifest: dict[str, Any]) -> Iterator[WorkDirectory]:
    """Open a durable work directory with an exclusive lock.

    Raises:
        MismatchError: If it belongs to a run with another manifest; the message shows the first difference.
        ConfigError: If another process uses it, or if it holds other files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        work = WorkDirectory(folder, durable=True, resumed=(folder / MANIFEST).exists())
        _bind(work, manifest, folder)
        for leftover in folder.glob(".*.tmp"):  # of an interrupted write
            leftover.unlink()
        yield work


@contextmanager
def open_remote_workdir(url: str, manifest: dict[str, Any], parent: Path | None) -> Iterator[RemoteWorkDirectory]:
    """Open a work directory at a URL, and fetch the files of an earlier run.

    Args:
        url: The URL.
        manifest: What identifies the run.
        parent: Where to mirror it; None for the temporary directory of the system.

    Raises:
        MismatchError: If it belongs to a run with another manifest; the message shows the first difference.
        ConfigError: If it holds other files.
    """
    with temporary_workdir(parent) as mirror:
        work = RemoteWorkDirectory(url, mirror.folder)
        _bind(work, manifest, work.url)
        yield work


def _bind(work: WorkDirectory, manifest: dict[str, Any], name: Path | str) -> None:
    """Bind a work directory to a run, or raise if it belongs to another one or holds other files."""
    if work.resumed:
        refuse_other_run(name, work.read_json(MANIFEST), manifest)
    elif any(path.name != ".lock" and not path.name.endswith(".tmp") for path in work.folder.iterdir()):
        raise ConfigError(f"work must be a new or an earlier work directory, got {name} with other files in it")
    work.take_over()
    if not work.resumed:
        work.write_json(MANIFEST, manifest)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a work directory."""
    with (folder / ".lock").open("w") as lock:
        try:
            lock_file(lock)
        except BlockingIOError:
            remedy = "wait for it, or give another work"
            raise ConfigError(f"work {folder} is in use by another process; {remedy}") from None
        yield


def refuse_other_run(folder: Path | str, earlier: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raise MismatchError with the first difference if two manifests differ."""
    current = json.loads(json.dumps(manifest))
    for name, before, after in _differences(earlier, current):
        raise MismatchError(
            f"work {folder} belongs to a run with {name} {before!r}, this one has {after!r}; "
            "give another work, or delete it to start again"
        )


def _differences(before: Any, after: Any, name: str = "") -> Iterator[tuple[str, object, object]]:  # noqa: ANN401 - JSON
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key), after.get(key), f"{name}.{key}".lstrip("."))
    elif _are_objects(before) and _are_objects(after):
        old, new = ({item["name"]: item for item in items} for items in (before, after))
        deleted, added = ([key for key in keys if key not in other] for keys, other in ((old, new), (new, old)))
        if deleted or added:
            yield name, deleted, added
        yield from _differences(old, new, name)
    elif before != after:
        yield name, before, after


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
