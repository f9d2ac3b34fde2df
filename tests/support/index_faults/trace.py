"""The trace that `shim.c` writes: what a process did to the files of one directory, in order."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

__all__ = ["Kind", "Operation", "read_trace"]

HEAD = struct.Struct("<IiIIIIQQ")


class Kind(IntEnum):
    """What was done; the same numbers as in shim.c."""

    CREATE = 0
    MKDIR = 1
    WRITE = 2
    TRUNCATE = 3
    EXTEND = 4
    SYNC = 5
    RENAME = 6
    UNLINK = 7
    RMDIR = 8
    LINK = 9
    MARK = 10
    READ = 11
    UNKNOWN = 12


@dataclass(frozen=True, slots=True)
class Operation:
    """One call.

    Attributes:
        kind: What was done.
        path: To which file, relative to the watched directory; the text of a mark.
        other: The new path of a rename or link.
        number: The offset of a write, the size of a truncation.
        payload: What was written; shorter than what was to be written if the call wrote less.
        error: The number of the error, 0 if there was none.
        injected: Whether the error, or that less was written, was asked for.
    """

    kind: Kind
    path: str = ""
    other: str = ""
    number: int = 0
    payload: bytes = b""
    error: int = 0
    injected: bool = False

    def __str__(self) -> str:
        told = " told to" if self.injected else ""
        end = f" failed{told}: {os.strerror(self.error)}" if self.error else told
        return " ".join(filter(None, [self.kind.name.lower(), self.path, self.other, str(self.number)])) + end


def read_trace(trace: Path, folder: Path) -> list[Operation]:
    """Every operation of a trace of a directory."""
    return list(_operations(memoryview(trace.read_bytes()), folder.resolve()))


def _operations(data: memoryview, folder: Path) -> Iterator[Operation]:
    at = 0
    while at < len(data):
        kind, error, injected, path_bytes, other_bytes, _, number, payload_bytes = HEAD.unpack_from(data, at)
        at += HEAD.size
        pieces = []
        for size in (path_bytes, other_bytes, payload_bytes):
            pieces.append(bytes(data[at : at + size]))
            at += size
        path, other = (os.fsdecode(piece) for piece in pieces[:2])
        if kind != Kind.MARK:
            path, other = _relative(path, folder), _relative(other, folder)
        yield Operation(Kind(kind), path, other, number, pieces[2], error, bool(injected))


def _relative(path: str, folder: Path) -> str:
    """The path as seen from the directory, "." for itself; one outside stays as it is."""
    if path == str(folder):
        return "."
    return path.removeprefix(f"{folder}/")
