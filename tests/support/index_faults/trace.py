"""Trace written by `shim.c`: the calls of a process that change files of one directory, in order."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

__all__ = ["Kind", "Operation", "read_trace"]

HEAD = struct.Struct("<IiIIIIQQ")


class Kind(IntEnum):
    """Kind of a call; the same numbers as in shim.c."""

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
        kind: The kind of the call.
        path: The file, relative to the watched directory; the text of a mark.
        other: The new path of a rename or link.
        number: The offset of a write, the size of a truncation.
        payload: The bytes written, which may be fewer than requested.
        error: The errno; 0 on success.
        injected: Whether the error or the short write was injected.
    """

    kind: Kind
    path: str = ""
    other: str = ""
    number: int = 0
    payload: bytes = b""
    error: int = 0
    injected: bool = False

    def __str__(self) -> str:
        injected = " (injected)" if self.injected else ""
        end = f" failed{injected}: {os.strerror(self.error)}" if self.error else injected
        return " ".join(filter(None, [self.kind.name.lower(), self.path, self.other, str(self.number)])) + end


def read_trace(trace: Path, folder: Path) -> list[Operation]:
    """Return every operation of the trace of a directory."""
    return list(_operations(memoryview(trace.read_bytes()), folder.resolve()))


def _operations(data: memoryview, folder: Path) -> Iterator[Operation]:
    offset = 0
    while offset < len(data):
        kind, error, injected, path_bytes, other_bytes, _, number, payload_bytes = HEAD.unpack_from(data, offset)
        offset += HEAD.size
        parts = []
        for size in (path_bytes, other_bytes, payload_bytes):
            parts.append(bytes(data[offset : offset + size]))
            offset += size
        path, other = (os.fsdecode(part) for part in parts[:2])
        if kind != Kind.MARK:
            path, other = _relative(path, folder), _relative(other, folder)
        yield Operation(Kind(kind), path, other, number, parts[2], error, bool(injected))


def _relative(path: str, folder: Path) -> str:
    """Return the path relative to the directory, "." for the directory itself; paths outside are unchanged."""
    if path == str(folder):
        return "."
    return path.removeprefix(f"{folder}/")
