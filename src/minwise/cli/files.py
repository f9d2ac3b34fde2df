"""Files that commands read whole or write line by line, and standard input and output."""

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from glob import iglob
from pathlib import Path
from typing import BinaryIO

from minwise.errors import ConfigError, InputError
from minwise.results.output import refuse_existing_file

__all__ = ["LineWriter", "open_lines", "read_bytes", "read_ids"]


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file; of standard input for ``-``."""
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    return sys.stdin.buffer.read()


def read_ids(path: str) -> Iterator[str]:
    """Yield the ids in a file, one per line; blank lines are ignored."""
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
        raise InputError(f"{where} is not valid UTF-8") from None
    except ValueError as error:
        raise InputError(f"{where} begins with a quotation mark, so it must be a JSON string: {error}") from None


class LineWriter:
    """Output file of lines, opened at the first line so that a glob of inputs does not match it.

    ``-`` is standard output. Every error names the file.
    """

    def __init__(self, path: str, *, overwrite: bool = True) -> None:
        self._path, self._overwrite = path, overwrite
        self._file: BinaryIO | None = None
        if path != "-" and not Path(path).absolute().parent.is_dir():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(Path(path).parent))

    def write(self, data: bytes) -> None:
        """Write bytes."""
        with self._named() as file:
            file.write(data)

    def flush(self) -> None:
        """Flush what was written."""
        with self._named() as file:
            file.flush()

    def close(self) -> None:
        """Close the file; it exists even if nothing was written."""
        self.flush()
        if self._file is not None and self._path != "-":
            self._file.close()

    @contextmanager
    def _named(self) -> Iterator[BinaryIO]:
        name = "standard output" if self._path == "-" else self._path
        try:
            if self._file is None:
                self._file = _open(self._path, overwrite=self._overwrite)
            yield self._file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from None


def _open(path: str, *, overwrite: bool) -> BinaryIO:
    if path != "-":
        if not overwrite:
            refuse_existing_file(path)  # written since the command began
        return Path(path).open("wb")
    if sys.stdout is None:
        raise OSError(errno.EBADF, "is closed")
    return sys.stdout.buffer


@contextmanager
def open_lines(path: str, inputs: tuple[str, ...] = (), *, overwrite: bool = True) -> Iterator[LineWriter]:
    """Open an output file of lines that is not one of the inputs; refuse one with content without ``overwrite``."""
    _refuse_inputs(path, inputs)
    lines = LineWriter(path, overwrite=overwrite)
    yield lines
    lines.close()


def _refuse_inputs(path: str, inputs: tuple[str, ...]) -> None:
    """Raise if the output is one of the inputs, or lies in one."""
    if path == "-":
        return
    if not path:
        raise ConfigError("output must be a file or - for standard output, got ''")
    output = os.path.realpath(path)
    for name in inputs:
        given = os.path.realpath(name)
        within = Path(given).is_dir() and Path(given) in Path(output).parents
        matches = iglob(name, recursive=True)  # noqa: PTH207 - a pattern may start anywhere
        if given == output or within or any(os.path.realpath(found) == output for found in matches):
            raise ConfigError(f"output must not be one of the inputs or lie in one, got {path} with input {name}")
