"""Runs of the command in a pipe and in a pseudo-terminal of a given width."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

from support.commands import MINWISE, without_stages

__all__ = ["environment", "in_pipe", "in_terminal", "plain"]

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(**changes: str) -> dict[str, str]:
    """Return an environment in which only the terminal decides about width and colours."""
    overrides = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    kept = {name: value for name, value in os.environ.items() if name not in overrides}
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **changes}


def in_pipe(folder: Path, *arguments: str, **changes: str) -> str:
    """Return the output of the command in a pipe."""
    done = subprocess.run(
        [MINWISE, *arguments], cwd=folder, env=environment(**changes), capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, without_stages(done.stderr.decode())) == (0, "")
    return done.stdout.decode()


def in_terminal(folder: Path, *arguments: str, columns: int = 100, **changes: str) -> str:
    """Return the output of the command in a terminal of a given width."""
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        [MINWISE, *arguments], cwd=folder, env=environment(**changes), stdin=writing, stdout=writing, stderr=writing
    ) as process:
        os.close(writing)
        written = b"".join(iter(lambda: _read(reading), b""))
        os.close(reading)
        assert process.wait(timeout=60) == 0, written
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports a closed terminal like this
        return b""


def plain(shown: str) -> list[str]:
    """Return the lines without their styles."""
    return STYLE.sub("", shown).splitlines()
