"""Children whose every write, sync and rename goes through `shim.c`, which watches them and can let one fail.

A process that was started with the shim has imported minwise already; each child is a fork of it and arms the shim on
its own.
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

from support.index_faults.children import Forker, Line

__all__ = ["COMPILER", "NO_COMPILER", "Fault", "Manner", "Shim", "ask"]

COMPILER = shutil.which("cc")
NO_COMPILER = "needs cc to compile the library that watches and fails system calls"


class Manner(IntEnum):
    """How a call fails; the same numbers as in shim.c."""

    ONCE = 0
    SHORT = 1
    SHORT_THEN_ONCE = 2
    ONWARD = 3


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Which call fails, and how.

    Attributes:
        kinds: The kinds of calls that are counted.
        nth: Which of them fails, counted from 1.
        error: The number of the error.
        manner: Whether only that one, only half of it, or every one from there on.
    """

    kinds: Collection[int]
    nth: int
    error: int
    manner: int = Manner.ONCE


class Shim:
    """What the shim of this process can be told; only in a child that `ask` started."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def watch(self, folder: Path, trace: Path) -> None:
        """Watches a directory from now on, and writes what happens to its files to a trace outside of it."""
        assert self._library.shim_watch(os.fsencode(folder), os.fsencode(trace)) == 0, (folder, trace)

    def mark(self, text: str) -> None:
        """Puts a mark into the trace."""
        self._library.shim_mark(text.encode())

    def fail(self, fault: Fault) -> None:
        """Lets a call fail; counting starts now."""
        mask = sum(1 << kind for kind in fault.kinds)
        self._library.shim_fail(mask, ctypes.c_long(fault.nth), fault.error, int(fault.manner))

    def seen(self) -> int:
        """How many calls that might have failed there were since."""
        self._library.shim_seen.restype = ctypes.c_long
        return int(self._library.shim_seen())

    def release(self) -> None:
        """From now on nothing fails."""
        self.fail(Fault(kinds=[], nth=0, error=0))


@cache
def _library() -> Path:
    """The compiled shim."""
    assert COMPILER is not None, NO_COMPILER
    folder = Path(tempfile.mkdtemp(prefix="minwise-shim-"))
    atexit.register(shutil.rmtree, folder)
    source = Path(__file__).with_name("shim.c")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *options, "-o", str(folder / "shim.so"), str(source)], check=True)
    return folder / "shim.so"


@cache
def _forker() -> Forker:
    return Forker("support.index_faults.shimmed", LD_PRELOAD=str(_library()))


def ask(function: Callable[[Line], None], job: object) -> Any:  # noqa: ANN401
    """What a function of a module answers in a child with the shim, in which the first value on the line is the job."""
    child = _forker().fork(function, job)
    try:
        answer = child.receive()
    except EOFError:
        answer = None
    child.close()
    status = _forker().wait(child.pid)
    assert status == 0, f"the child ended with {status}: {job}"
    return answer
