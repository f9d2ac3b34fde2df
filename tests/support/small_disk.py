"""Small disks for tests of full disks."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Disk", "mounted"]


@dataclass(frozen=True)
class Disk:
    """A mounted disk.

    Attributes:
        folder: Mount point.
    """

    folder: Path

    def resize(self, size: str) -> None:
        """Change its size."""
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    """Mount a disk of a given size in a new directory; skip the test if that is not permitted."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    except subprocess.CalledProcessError:
        pytest.skip("this machine does not let root mount a disk, as in a container")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
