"""What a command reads whole: a file, or standard input."""

import errno
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import minwise as mw

__all__ = ["read_bytes", "read_ids"]


def read_bytes(path: str) -> bytes:
    """The bytes of a file; of standard input for ``-``."""
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    return sys.stdin.buffer.read()


def read_ids(path: str) -> Iterator[str]:
    """The ids of a file, a line each; blank lines are none."""
    name = "standard input" if path == "-" else path
    for number, line in enumerate(read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        found = _id_of(line, f"{name}: line {number}")
        if found is not None:
            yield found


def _id_of(line: bytes, where: str) -> str | None:
    try:
        text = line.decode().strip(" \t\r")
        return str(json.loads(text)) if text.startswith('"') else text or None
    except UnicodeDecodeError:
        raise mw.InputError(f"{where} is not valid UTF-8") from None
    except ValueError as error:
        raise mw.InputError(f"{where} begins with a quotation mark, so it must be a JSON string: {error}") from None
