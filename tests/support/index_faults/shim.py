"""Python interface of `shim.c`, which traces every write, sync and rename of a process and can make one fail.

A process started with the shim has imported minwise; each child is a fork of it, and controls the shim on its own.
"""

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from support.index_faults.children import Channel, Forker

__all__ = ["COMPILER", "NO_COMPILER", "Fault", "Manner", "Shim", "ask"]

COMPILER = shutil.which("cc")
NO_COMPILER = "needs cc to compile the library that traces and fails system calls"


class Manner(IntEnum):
    """How a call fails; the same numbers as in shim.c."""

    ONCE = 0
    SHORT = 1
    SHORT_THEN_ONCE = 2
    ONWARD = 3


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The call that fails, and how.

    Attributes:
        kinds: The kinds of calls that are counted.
        nth: The number of the call that fails, counted from 1.
        error: The errno.
        manner: Whether that call fails, writes only half, or it and all later calls fail.
    """

    kinds: Collection[int]
    nth: int
    error: int
    manner: int = Manner.ONCE


class Shim:
    """Control of the shim in this process; only in a child started by `ask`."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def watch(self, folder: Path, trace: Path) -> None:
        """Trace a directory from now on, to a file outside of it."""
        assert self._library.shim_watch(os.fsencode(folder), os.fsencode(trace)) == 0, (folder, trace)

    def mark(self, text: str) -> None:
        """Add a mark to the trace."""
        self._library.shim_mark(text.encode())

    def fail(self, fault: Fault) -> None:
        """Make a call fail; counting starts now."""
        mask = sum(1 << kind for kind in fault.kinds)
        self._library.shim_fail(mask, ctypes.c_long(fault.nth), fault.error, int(fault.manner))

    def seen(self) -> int:
        """Return the number of counted calls since `fail`."""
        self._library.shim_seen.restype = ctypes.c_long
        return int(self._library.shim_seen())

    def release(self) -> None:
        """Stop failing calls."""
        self.fail(Fault(kinds=[], nth=0, error=0))


@cache
def _library() -> Path:
    """Compile the shim."""
    assert COMPILER is not None, NO_COMPILER
    folder = Path(tempfile.mkdtemp(prefix="minwise-shim-"))
    atexit.register(shutil.rmtree, folder)
    source = Path(__file__).with_name("shim.c")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *options, "-o", str(folder / "shim.so"), str(source)], check=True)
    return folder / "shim.so"


@cache
def _forker() -> Forker:
    return Forker("support.index_faults.shim_forker", LD_PRELOAD=str(_library()))


def ask(function: Callable[[Channel], None], job: object) -> Any:  # noqa: ANN401
    """Run a function of a module in a child with the shim, and return the value that it sends."""
    child = _forker().fork(function, job)
    try:
        answer = child.receive()
    except EOFError:
        answer = None
    child.close()
    status = _forker().wait(child.pid)
    assert status == 0, f"the child ended with {status}: {job}"
    return answer
