"""What a power cut leaves: replays a trace and builds the directory that a disk may hold after the cut.

The model of a disk:

- What was written to a file is certain to survive once the file has been synced; until then each write may survive,
  vanish, or survive in some of its sectors.
- When a sync fails, Linux takes what it was to write for written: it can be read until the power fails, and no later
  sync makes it durable (https://lwn.net/Articles/752063).
- A name that was made, given to another file or deleted is certain to be so once its directory has been synced; until
  then each change may survive or not. A rename survives whole or not at all.
- ext4, XFS and btrfs do a little more than POSIX asks for: syncing a new file or directory makes the name durable too
  under which it was made, though no rename and no deletion. ``Disk(names_follow=True)`` counts on that.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.index_faults.trace import Kind, Operation

__all__ = ["Disk", "File", "Folder", "Survival", "Tree", "cuts", "read_tree", "write_tree"]

SECTOR_BYTES = 512
# A name and what it stands for, None if it stands for nothing any more.
Name = tuple[str, "File | Folder | None"]
Tree = dict[str, "bytes | Tree"]


@dataclass(eq=False)
class File:
    """A file's bytes.

    Attributes:
        data: What a process reads.
        durable: What survives for certain.
        unsynced: The writes and truncations since the last sync, in order, which the next one makes durable.
    """

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[Operation] = field(default_factory=list)

    def change(self, operation: Operation) -> None:
        """Does what a process did to it."""
        _change(self.data, operation)
        self.unsynced.append(operation)

    def sync(self) -> None:
        """Makes what was written since the last sync durable."""
        durable = bytearray(self.durable)
        for operation in self.unsynced:
            _change(durable, operation)
        self.durable, self.unsynced = bytes(durable), []

    def fail_to_sync(self) -> None:
        """Loses what was written since the last sync: a process still reads it, but no later sync writes it."""
        self.unsynced = []


@dataclass(eq=False)
class Folder:
    """A directory's names.

    Attributes:
        names: What a process sees.
        durable: What survives for certain.
        unsynced: What changed since the last sync, in order; changes in one list are one change.
    """

    names: "dict[str, File | Folder]" = field(default_factory=dict)
    durable: "dict[str, File | Folder]" = field(default_factory=dict)
    unsynced: list[list[Name]] = field(default_factory=list)

    def change(self, *change: Name) -> None:
        """Does what a process did to it."""
        _rename(self.names, change)
        self.unsynced.append(list(change))

    def sync(self) -> None:
        """Makes all names durable, but nothing of what is in the files."""
        self.durable = dict(self.names)
        self.unsynced = []

    def fail_to_sync(self) -> None:
        """Leaves open what becomes of the changes: a later sync still makes them durable."""

    def sync_new(self, made: "File | Folder") -> None:
        """Makes the name durable under which something was made here."""
        for change in [one for one in self.unsynced if len(one) == 1 and one[0][1] is made]:
            _rename(self.durable, change)
            self.unsynced.remove(change)


@dataclass(frozen=True, kw_only=True)
class Survival:
    """What survives beyond that which is certain.

    Attributes:
        writes: Every unsynced write survives.
        names: Every unsynced change of a name survives.
        seed: If given, chance decides instead, for each of them.
    """

    writes: bool = False
    names: bool = False
    seed: str | None = None

    def file(self, file: File, draw: random.Random | None) -> bytes:
        """What is in a file after the cut."""
        if draw is None:
            return bytes(file.data) if self.writes else file.durable
        data = bytearray(file.durable)
        for operation in file.unsynced:
            _change_in_part(data, operation, draw)
        return bytes(data)

    def folder(self, folder: Folder, draw: random.Random | None) -> "dict[str, File | Folder]":
        """What is in a directory after the cut."""
        if draw is None:
            return folder.names if self.names else folder.durable
        names = dict(folder.durable)
        for change in folder.unsynced:
            if draw.random() < 0.5:
                _rename(names, change)
        return names


class Disk:
    """A directory on a disk, and what of it is durable.

    Attributes:
        root: The watched directory, which is itself durable.
    """

    def __init__(self, *, names_follow: bool = False) -> None:
        self.root = Folder()
        self._names_follow = names_follow

    @classmethod
    def holding(cls, folder: Path, *, names_follow: bool = False) -> "Disk":
        """A disk on which everything below a directory is durable."""
        disk = cls(names_follow=names_follow)
        _load(folder, disk.root)
        return disk

    def apply(self, operation: Operation) -> None:
        """Does what a process did; what failed did nothing, but for a sync."""
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
            self._above(path)[0].sync_new(found)

    def _rename(self, operation: Operation) -> None:
        folder, name = self._above(operation.path)
        if operation.kind in (Kind.CREATE, Kind.MKDIR):
            folder.change((name, File() if operation.kind == Kind.CREATE else Folder()))
        elif operation.kind in (Kind.UNLINK, Kind.RMDIR):
            folder.change((name, None))
        elif operation.kind in (Kind.RENAME, Kind.LINK):
            target, new = self._above(operation.other)
            found, gone = folder.names[name], [(name, None)] if operation.kind == Kind.RENAME else []
            if target is folder:
                folder.change(*gone, (new, found))
            else:
                target.change((new, found))
                folder.change(*gone)
        else:
            raise NotImplementedError(f"no model of {operation}")

    def find(self, path: str) -> "File | Folder":
        """What a path leads to for a process."""
        found: File | Folder = self.root
        for name in Path(path).parts:
            assert isinstance(found, Folder), path
            found = found.names[name]
        return found

    def _above(self, path: str) -> tuple[Folder, str]:
        folder = self.find(str(Path(path).parent))
        assert isinstance(folder, Folder), path
        return folder, Path(path).name

    def after_cut(self, survival: Survival) -> Tree:
        """Every file by its name and every directory as another such dictionary, after a power cut right now."""
        draw = None if survival.seed is None else random.Random(survival.seed)
        return _tree(self.root, survival, draw)


def write_tree(tree: Tree, folder: Path) -> None:
    """Writes a tree into an empty or new directory."""
    folder.mkdir(exist_ok=True)
    for name, content in tree.items():
        if isinstance(content, dict):
            write_tree(content, folder / name)
        else:
            (folder / name).write_bytes(content)


def read_tree(folder: Path) -> Tree:
    """The tree that a directory holds."""
    return {path.name: read_tree(path) if path.is_dir() else path.read_bytes() for path in sorted(folder.iterdir())}


def cuts(disk: Disk, operations: Sequence[Operation]) -> Iterator[int]:
    """Plays operations; before each, and after the last, the disk can be asked what a cut right there leaves."""
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
            made = Folder()
            _load(path, made)
            folder.names[path.name] = made
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
    """Does a write, truncation or extension to a file's bytes."""
    start, size = operation.number, len(operation.payload)
    if operation.kind == Kind.TRUNCATE:
        del data[start:]
    if len(data) < start:
        data.extend(bytes(start - len(data)))
    if operation.kind == Kind.WRITE:
        data[start : start + size] = operation.payload


def _change_in_part(data: bytearray, operation: Operation, draw: random.Random) -> None:
    """Does it, or not, or a write only in some of the disk's sectors; where a file only grew, there are zeros."""
    fate = draw.choice(["whole", "nothing", "torn"])
    if fate == "whole" or (fate == "torn" and operation.kind != Kind.WRITE):
        _change(data, operation)
    if fate != "torn" or operation.kind != Kind.WRITE:
        return
    start, end = operation.number, operation.number + len(operation.payload)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    at = start
    while at < end:
        stop = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if draw.random() < 0.5:
            data[at:stop] = operation.payload[at - start : stop - start]
        at = stop
