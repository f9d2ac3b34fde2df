"""What a command reads whole: a file, or standard input."""

import errno
import sys
from pathlib import Path

__all__ = ["read_bytes"]


def read_bytes(path: str) -> bytes:
    """The bytes of a file; of standard input for ``-``."""
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    return sys.stdin.buffer.read()
