"""Arriving: an open stream of JSON lines in, groups of lines out, each handed on before more is waited for."""

import io
import select
from collections.abc import Iterator
from typing import BinaryIO

from minwise.formats.jsonl import Line, numbered_by_chunk

__all__ = ["arriving_lines"]

READ_BYTES = 1 << 20
# Lines that are handed on together when they come faster than that.
MOST_LINES = 8192


def arriving_lines(source: BinaryIO, most_bytes: int) -> Iterator[list[Line]]:
    """Yields what has come, at the latest before waiting for more, and in groups of about ``most_bytes`` at most.

    Args:
        source: A pipe, a terminal, a file: whatever can be read.
        most_bytes: Bytes of lines after which a group is full.
    """
    waiting: list[Line] = []
    size = 0
    for lines in numbered_by_chunk(_chunks(source)):
        for line in lines:
            waiting.append(line)
            size += len(line[1]) if isinstance(line[1], bytes) else 0
            if len(waiting) == MOST_LINES or size >= most_bytes:
                yield waiting
                waiting, size = [], 0
        if waiting and not _has_more(source):
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    read = getattr(source, "read1", source.read)
    while chunk := read(READ_BYTES):
        yield chunk


def _has_more(source: BinaryIO) -> bool:
    """Whether reading would give something, or an end, without waiting."""
    try:
        return bool(select.select([source], [], [], 0)[0])
    except (AttributeError, OSError, TypeError, ValueError, io.UnsupportedOperation):  # not a pipe, terminal or socket
        return True
