"""A command of an index with pipes at its ends, and lines of JSON."""

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reliability.commands import MINWISE

__all__ = ["DEADLINE_SECONDS", "next_line", "objects", "running"]

DEADLINE_SECONDS = 30


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command; it is gone afterwards."""
    with subprocess.Popen(
        [MINWISE, "index", *arguments],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line of standard output, if it comes in time."""
    assert process.stdout
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], DEADLINE_SECONDS)[0], f"nothing came; so far {line!r}"
        piece = os.read(process.stdout.fileno(), 1)
        assert piece, f"it ended after {line!r}"
        line += piece
    return line


def objects(lines: str) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in lines.splitlines()]
