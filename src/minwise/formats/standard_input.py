"""Standard input: JSON lines that come once, kept in a temporary file so that they can be read again."""

import errno
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minwise.formats.files import File
from minwise.formats.jsonl import JsonLinesFile

__all__ = ["StandardInput"]


class StandardInput(JsonLinesFile):
    """All that standard input gives; the copy is gone when this is."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "is closed", "standard input")
        self._folder = tempfile.TemporaryDirectory(prefix=".minwise-")
        place = Path(self._folder.name) / "stdin.jsonl"
        with place.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        super().__init__(File(str(place)))
        self.name = "-"

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Writes the kept lines to ``stdin.jsonl``."""
        return super().copy_kept(keep, folder, self._folder.name)
