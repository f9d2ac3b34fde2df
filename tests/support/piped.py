"""The command with pipes as standard input and output."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.commands import MINWISE

__all__ = ["DEADLINE_SECONDS", "next_line", "run_with_closed_output", "running"]

DEADLINE_SECONDS = 30


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command; it is killed on exit."""
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
    """Return the next line of standard output; fail after the deadline."""
    assert process.stdout
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], DEADLINE_SECONDS)[0], f"no output; so far {line!r}"
        piece = os.read(process.stdout.fileno(), 1)
        assert piece, f"output ended after {line!r}"
        line += piece
    return line


def run_with_closed_output(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the command with a closed reader of its output, as in ``| true``."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        return subprocess.run(
            [MINWISE, *arguments], cwd=folder, stdout=write_end, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(write_end)
