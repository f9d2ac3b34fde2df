"""Work: a directory of finished pieces, so that an interrupted run goes on where it stopped."""

import fcntl
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from minwise._internal.array_files import ArrayFile, Arrays, FileKind, write_array_file
from minwise._internal.atomic import atomic_writer
from minwise.checks import check_path
from minwise.errors import ConfigError, FormatError, MismatchError

__all__ = ["Work", "choose_work", "open_work", "refuse_other_run", "temporary_work"]

KIND = FileKind(b"MINWORK\n", 3, "work file", "delete the work directory and start again")
MANIFEST = "manifest.json"


class Work:
    """A directory of pieces, each a file that is there whole or not at all.

    Attributes:
        folder: The directory.
        durable: Whether pieces are synced to disk, because somebody may want to resume.
        resumed: Whether there was something to resume when it was opened.
    """

    def __init__(self, folder: Path, *, durable: bool, resumed: bool = False) -> None:
        self.folder = folder
        self.durable = durable
        self.resumed = resumed

    def has(self, name: str) -> bool:
        """Whether a piece is finished."""
        return (self.folder / name).exists()

    def names(self, prefix: str) -> list[str]:
        """The finished pieces whose name starts so, in order."""
        found = (path.name for path in self.folder.iterdir() if not path.name.startswith("."))
        return sorted(name for name in found if name.startswith(prefix))

    def write(self, name: str, arrays: Arrays, **header: object) -> None:
        """Finishes a piece made of arrays."""
        write_array_file(self.folder / name, KIND, header, arrays, sync=self.durable)

    def open(self, name: str) -> ArrayFile:
        """A finished piece made of arrays."""
        return ArrayFile(self.folder / name, KIND)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Finishes a piece that is an Arrow table."""
        with atomic_writer(self.folder / name, sync=self.durable) as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)

    def read_table(self, name: str) -> pa.Table:
        """A finished Arrow table, as a view of its file."""
        with pa.memory_map(str(self.folder / name)) as file:
            return pa.ipc.open_file(file).read_all()

    def note(self, name: str, facts: dict[str, Any]) -> None:
        """Finishes a piece that is a handful of facts."""
        with atomic_writer(self.folder / name, sync=self.durable) as file:
            file.write(json.dumps(facts, indent=1).encode())

    def read_note(self, name: str) -> dict[str, Any]:
        """A finished piece of facts."""
        path = self.folder / name
        try:
            return dict(json.loads(path.read_bytes()))
        except (TypeError, ValueError) as error:
            raise FormatError(f"{path}: must be JSON: {error}; {KIND.remedy}") from None

    def forget(self, prefix: str) -> None:
        """Deletes the pieces whose name starts so."""
        for name in self.names(prefix):
            (self.folder / name).unlink()


def choose_work(
    given: str | PathLike[str] | None, manifest: dict[str, Any], output: Path | None
) -> AbstractContextManager[Work]:
    """The directory for the pieces of a run: that which was given, or one beside the output that is gone afterwards."""
    if given is None:
        return temporary_work(None if output is None else output.absolute().parent)
    return open_work(check_path("work", given), manifest)


@contextmanager
def temporary_work(beside: Path | None) -> Iterator[Work]:
    """A directory that is gone afterwards: beside the output, where there is room for it, or where the system says."""
    try:
        if beside is not None:
            beside.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".minwise-", dir=beside))
    except OSError as error:  # the user knows the place, not our name in it
        raise OSError(error.errno, error.strerror, str(beside)) from None
    try:
        yield Work(folder, durable=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def open_work(folder: Path, manifest: dict[str, Any]) -> Iterator[Work]:
    """A directory that stays; ours alone while it is open, and of one run only.

    Raises:
        MismatchError: If it belongs to a run with another manifest; the message shows the first difference.
        ConfigError: If another process works in it, or if it holds something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        _lock(lock, folder)
        work = Work(folder, durable=True, resumed=(folder / MANIFEST).exists())
        if work.resumed:
            refuse_other_run(folder, work.read_note(MANIFEST), manifest)
        elif any(path.name != ".lock" and not path.name.endswith(".tmp") for path in folder.iterdir()):
            raise ConfigError(f"work must be a new or an earlier work directory, got {folder} with other files in it")
        else:
            work.note(MANIFEST, manifest)
        for leftover in folder.glob(".*.tmp"):  # of a write that was cut short
            leftover.unlink()
        yield work


def _lock(lock: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ConfigError(f"work {folder} is in use by another process; wait for it, or give another --work") from None


def refuse_other_run(folder: Path | str, earlier: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raises if an earlier run in a work directory had another manifest; shows the first difference."""
    now = json.loads(json.dumps(manifest))
    for name, before, after in _differences(earlier, now):
        raise MismatchError(
            f"work {folder} belongs to a run with {name} {before!r}, this one has {after!r}; "
            "give another --work, or delete it to start again"
        )


def _differences(before: Any, after: Any, name: str = "") -> Iterator[tuple[str, object, object]]:  # noqa: ANN401 - JSON
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key), after.get(key), f"{name}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and all(isinstance(one, dict) for one in before + after):
        one, other = ({item["name"]: item for item in items} for items in (before, after))
        gone, new = ([key for key in keys if key not in rest] for keys, rest in ((one, other), (other, one)))
        if gone or new:
            yield name, gone, new
        yield from _differences(one, other, name)
    elif before != after:
        yield name, before, after
