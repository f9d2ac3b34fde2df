"""Power-cut simulator: replays a trace, and builds the directory that a disk may hold after the cut.

The model of a disk:

- Bytes written to a file certainly survive once the file has been synced; until then each write may survive, be lost,
  or survive in some of its sectors.
- When a sync fails, Linux marks the pages as written: they can be read until the power fails, and no later sync makes
  them durable (https://lwn.net/Articles/752063).
- A created, renamed or deleted name is certainly durable once its directory has been synced; until then each change may
  survive or not. A rename survives completely or not at all.
- ext4, XFS and btrfs do more than POSIX requires: syncing a new file or directory also makes the name durable under
  which it was created, but no rename or deletion. ``Disk(names_follow=True)`` models that.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.index_faults.trace import Kind, Operation

__all__ = ["Disk", "File", "Folder", "Survival", "Tree", "cuts", "read_tree", "write_tree"]

SECTOR_BYTES = 512
# A name and its file or directory; None if the name is deleted.
Name = tuple[str, "File | Folder | None"]
Tree = dict[str, "bytes | Tree"]


@dataclass(eq=False)
class File:
    """The bytes of a file.

    Attributes:
        data: The bytes that a process reads.
        durable: The bytes that certainly survive.
        unsynced: The writes and truncations since the last sync, in order.
    """

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[Operation] = field(default_factory=list)

    def change(self, operation: Operation) -> None:
        """Apply a write or truncation."""
        _change(self.data, operation)
        self.unsynced.append(operation)

    def sync(self) -> None:
        """Make all writes durable."""
        durable = bytearray(self.durable)
        for operation in self.unsynced:
            _change(durable, operation)
        self.durable, self.unsynced = bytes(durable), []

    def fail_to_sync(self) -> None:
        """Lose the writes since the last sync: a process still reads them, but no later sync writes them."""
        self.unsynced = []


@dataclass(eq=False)
class Folder:
    """The names in a directory.

    Attributes:
        names: The names that a process sees.
        durable: The names that certainly survive.
        unsynced: The changes since the last sync, in order; the names in one list change together.
    """

    names: "dict[str, File | Folder]" = field(default_factory=dict)
    durable: "dict[str, File | Folder]" = field(default_factory=dict)
    unsynced: list[list[Name]] = field(default_factory=list)

    def change(self, *change: Name) -> None:
        """Apply a change of names."""
        _rename(self.names, change)
        self.unsynced.append(list(change))

    def sync(self) -> None:
        """Make all names durable, but not the content of the files."""
        self.durable = dict(self.names)
        self.unsynced = []

    def fail_to_sync(self) -> None:
        """Leave the changes unsynced: a later sync still makes them durable."""

    def sync_new(self, created: "File | Folder") -> None:
        """Make the name durable under which a file or directory was created here."""
        for change in [change for change in self.unsynced if len(change) == 1 and change[0][1] is created]:
            _rename(self.durable, change)
            self.unsynced.remove(change)


@dataclass(frozen=True, kw_only=True)
class Survival:
    """What survives in addition to durable data.

    Attributes:
        writes: Every unsynced write survives.
        names: Every unsynced change of a name survives.
        seed: If given, chance decides for each of them instead.
    """

    writes: bool = False
    names: bool = False
    seed: str | None = None

    def file(self, file: File, draw: random.Random | None) -> bytes:
        """Return the bytes of a file after the cut."""
        if draw is None:
            return bytes(file.data) if self.writes else file.durable
        data = bytearray(file.durable)
        for operation in file.unsynced:
            _change_in_part(data, operation, draw)
        return bytes(data)

    def folder(self, folder: Folder, draw: random.Random | None) -> "dict[str, File | Folder]":
        """Return the names of a directory after the cut."""
        if draw is None:
            return folder.names if self.names else folder.durable
        names = dict(folder.durable)
        for change in folder.unsynced:
            if draw.random() < 0.5:
                _rename(names, change)
        return names


class Disk:
    """A directory on a disk, with its durable content.

    Attributes:
        root: The watched directory, which is itself durable.
    """

    def __init__(self, *, names_follow: bool = False) -> None:
        self.root = Folder()
        self._names_follow = names_follow

    @classmethod
    def holding(cls, folder: Path, *, names_follow: bool = False) -> "Disk":
        """Return a disk on which everything below a directory is durable."""
        disk = cls(names_follow=names_follow)
        _load(folder, disk.root)
        return disk

    def apply(self, operation: Operation) -> None:
        """Apply an operation of a process; failed operations have no effect, except a failed sync."""
        if operation.kind == Kind.SYNC and operation.error:
            self.find(operation.path).fail_to_sync()
        if operation.error or operation.kind in (Kind.MARK, Kind.READ):
            return
        if operation.kind in (Kind.WRITE, Kind.TRUNCATE, Kind.EXTEND):
            file = self.find(operation.path)
            assert isinstance(file, File), operation
            file.change(operation)
        elif operation.kind == Kind.SYNC:
            self._sync(operation.path)
        else:
            self._rename(operation)

    def _sync(self, path: str) -> None:
        found = self.find(path)
        found.sync()
        if self._names_follow and path != ".":
            self._parent(path)[0].sync_new(found)

    def _rename(self, operation: Operation) -> None:
        folder, name = self._parent(operation.path)
        if operation.kind in (Kind.CREATE, Kind.MKDIR):
            folder.change((name, File() if operation.kind == Kind.CREATE else Folder()))
        elif operation.kind in (Kind.UNLINK, Kind.RMDIR):
            folder.change((name, None))
        elif operation.kind in (Kind.RENAME, Kind.LINK):
            target, new = self._parent(operation.other)
            entry, deleted = folder.names[name], [(name, None)] if operation.kind == Kind.RENAME else []
            if target is folder:
                folder.change(*deleted, (new, entry))
            else:
                target.change((new, entry))
                folder.change(*deleted)
        else:
            raise NotImplementedError(f"no model of {operation}")

    def find(self, path: str) -> "File | Folder":
        """Return the file or directory at a path, as a process sees it."""
        found: File | Folder = self.root
        for name in Path(path).parts:
            assert isinstance(found, Folder), path
            found = found.names[name]
        return found

    def _parent(self, path: str) -> tuple[Folder, str]:
        folder = self.find(str(Path(path).parent))
        assert isinstance(folder, Folder), path
        return folder, Path(path).name

    def after_cut(self, survival: Survival) -> Tree:
        """Return the files and directories after a power cut now, as nested dictionaries."""
        draw = None if survival.seed is None else random.Random(survival.seed)
        return _tree(self.root, survival, draw)


def write_tree(tree: Tree, folder: Path) -> None:
    """Write a tree into an empty or new directory."""
    folder.mkdir(exist_ok=True)
    for name, content in tree.items():
        if isinstance(content, dict):
            write_tree(content, folder / name)
        else:
            (folder / name).write_bytes(content)


def read_tree(folder: Path) -> Tree:
    """Return the tree of a directory."""
    return {path.name: read_tree(path) if path.is_dir() else path.read_bytes() for path in sorted(folder.iterdir())}


def cuts(disk: Disk, operations: Sequence[Operation]) -> Iterator[int]:
    """Apply operations; yield the number of applied operations before each and after the last."""
    for number, operation in enumerate(operations):
        yield number
        disk.apply(operation)
    yield len(operations)


def _tree(folder: Folder, survival: Survival, draw: random.Random | None) -> Tree:
    return {
        name: _tree(found, survival, draw) if isinstance(found, Folder) else survival.file(found, draw)
        for name, found in sorted(survival.folder(folder, draw).items())
    }


def _load(source: Path, folder: Folder) -> None:
    for path in source.iterdir():
        if path.is_dir():
            child = Folder()
            _load(path, child)
            folder.names[path.name] = child
        else:
            data = path.read_bytes()
            folder.names[path.name] = File(bytearray(data), data)
    folder.sync()


def _rename(names: "dict[str, File | Folder]", change: Sequence[Name]) -> None:
    for name, found in change:
        if found is None:
            names.pop(name, None)
        else:
            names[name] = found


def _change(data: bytearray, operation: Operation) -> None:
    """Apply a write, truncation or extension to bytes."""
    start, size = operation.number, len(operation.payload)
    if operation.kind == Kind.TRUNCATE:
        del data[start:]
    if len(data) < start:
        data.extend(bytes(start - len(data)))
    if operation.kind == Kind.WRITE:
        data[start : start + size] = operation.payload


def _change_in_part(data: bytearray, operation: Operation, draw: random.Random) -> None:
    """Apply an operation completely, not at all, or a write in some sectors; other new bytes are zeros."""
    outcome = draw.choice(["complete", "lost", "torn"])
    if outcome == "complete" or (outcome == "torn" and operation.kind != Kind.WRITE):
        _change(data, operation)
    if outcome != "torn" or operation.kind != Kind.WRITE:
        return
    start, end = operation.number, operation.number + len(operation.payload)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    offset = start
    while offset < end:
        stop = min(end, (offset // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if draw.random() < 0.5:
            data[offset:stop] = operation.payload[offset - start : stop - start]
        offset = stop
