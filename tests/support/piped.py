"""The command with pipes at its ends."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.commands import MINWISE

__all__ = ["DEADLINE_SECONDS", "next_line", "run_for_nobody", "running"]

DEADLINE_SECONDS = 30


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command; it is gone afterwards."""
    with subprocess.Popen(
        [MINWISE, *arguments],
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


def run_for_nobody(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """The command with an output whose reader has gone, as in ``| true``."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [MINWISE, *arguments], cwd=folder, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
