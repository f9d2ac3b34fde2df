"""Faults that no request can cause, injected into a running server: blocked work, a failing index, a full disk."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FaultSwitches"]

# Runs in the server before anything else. A fault is active while a file with its name exists.
PROGRAM = """
import errno
import os
import time
from pathlib import Path

import minwise as mw
from minwise.errors import FormatError
from minwise.server.service import Service

FOLDER = Path(__file__).parent


def struck(name, work):
    def call(*given, **options):
        while (FOLDER / f"hold {name}").exists():
            time.sleep(0.005)
        if (FOLDER / f"damage {name}").exists():
            raise FormatError(f"{FOLDER}: damaged")
        if (FOLDER / f"fill {name}").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(FOLDER))
        return work(*given, **options)

    return call


mw.Index.add_each = struck("add", mw.Index.add_each)
mw.Index.query_many = struck("query", mw.Index.query_many)
Service.compare = struck("compare", Service.compare)
"""


class FaultSwitches:
    """Switches for the faults of a server that is started with their environment."""

    def __init__(self, folder: Path) -> None:
        """Create the folder of the switches."""
        self._folder = folder
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(PROGRAM)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables for the server."""
        return {"PYTHONPATH": os.pathsep.join([str(self._folder), os.environ.get("PYTHONPATH", "")])}

    @contextmanager
    def strike(self, kind: str, what: str) -> Iterator[None]:
        """Activate a fault within a ``with`` block.

        Args:
            kind: ``hold`` (the work blocks), ``damage`` (the index fails) or ``fill`` (the disk is full).
            what: ``add``, ``query`` or ``compare``.
        """
        file = self._folder / f"{kind} {what}"
        file.touch()
        try:
            yield
        finally:
            file.unlink()
