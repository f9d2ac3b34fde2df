"""Child processes that cost little: a process that has imported minwise already forks them, each on a line of its own.

A child runs one function, which gets the child's end of the line: JSON values, one per line of text, in both ways.
It can be killed at any moment; what it wrote before arrives all the same, and then the end of the line.
"""

import atexit
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Child", "Forker", "Line", "quick_folder", "start"]

TIMEOUT_SECONDS = 120
# A child that nobody waits for any more ends by itself.
LIFE_SECONDS = 3000
ADDRESS_BYTES = 4096


class Line:
    """One end of a line between two processes, which carries JSON values."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._rest = b""

    def send(self, value: object) -> None:
        """Sends a value; when this returns, the value arrives even if this process is killed."""
        self._end.sendall(json.dumps(value).encode() + b"\n")

    def receive(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:  # noqa: ANN401
        """The next value; EOFError at the end of the line, TimeoutError if nothing comes in time."""
        deadline = time.monotonic() + timeout_seconds
        while b"\n" not in self._rest:
            if not select.select([self._end], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no word for {timeout_seconds} s")
            chunk = b""
            with suppress(ConnectionResetError):  # it ended before it had read all that was sent to it
                chunk = self._end.recv(1 << 16)
            if not chunk:
                raise EOFError("the other process has ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        """Hangs up."""
        self._end.close()


class Child(Line):
    """A child process, and this process's end of its line.

    Attributes:
        pid: The number of the process.
    """

    def __init__(self, end: socket.socket, pid: int) -> None:
        super().__init__(end)
        self.pid = pid

    def receive(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:  # noqa: ANN401
        """As on any line; if the child's function failed, that failure as an AssertionError."""
        value = super().receive(timeout_seconds)
        if isinstance(value, dict) and "traceback" in value:
            raise AssertionError(f"child {self.pid} failed: {value['traceback']}")
        return value

    def kill(self) -> None:
        """Ends it as ``kill -9`` does."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, or the negative number of the signal that ended it, when it has ended."""
        self.close()
        _living.discard(self)
        return _forker().wait(self.pid)


# Children that nobody has waited for.
_living: set[Child] = set()


class Forker:
    """The process that forks: a module that imports what children need, and then serves."""

    def __init__(self, module: str, **environment: str) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=Path(__file__).parents[2],
                env={**os.environ, **environment},
            )  # fmt: skip
        self._line.settimeout(TIMEOUT_SECONDS)
        atexit.register(self._close)

    def fork(self, function: Callable[[Line], None], job: object) -> Child:
        """A child that runs a function of a module; the first value on its line is the job."""
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._ask({"function": f"{function.__module__}:{function.__qualname__}"}, theirs.fileno())
        child = Child(ours, pid)
        child.send(job)
        return child

    def wait(self, pid: int) -> int:
        """The exit code of a child, or the negative number of the signal that ended it, when it has ended."""
        return self._ask({"wait": pid})

    def _ask(self, question: dict[str, Any], *files: int) -> int:
        """The answer to a question, with which the child's end of a line may go."""
        socket.send_fds(self._line, [json.dumps(question).encode()], list(files))
        return int(json.loads(self._line.recv(ADDRESS_BYTES)))

    def _close(self) -> None:
        self._line.close()
        self._process.wait(timeout=TIMEOUT_SECONDS)


@cache
def _forker() -> Forker:
    return Forker("support.index_faults.children")


def start(function: Callable[[Line], None], job: object = None) -> Child:
    """A child that runs a function of a module; the first value on its line is the job."""
    child = _forker().fork(function, job)
    _living.add(child)
    return child


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder of its own, where syncing costs nothing if there is such a place; with it end those who use it."""
    others = set(_living)
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="minwise-index-", dir=place))
    try:
        yield folder
    finally:
        for child in _living - others:
            child.kill()
            child.wait()
        shutil.rmtree(folder)


def serve(questions: socket.socket) -> None:
    """Forks and waits as it is asked to, until nobody asks any more."""
    while True:
        message, files, _, _ = socket.recv_fds(questions, ADDRESS_BYTES, 1)
        if not message:
            return
        question = json.loads(message)
        if "wait" in question:
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        elif answer := os.fork():
            os.close(files[0])
        else:
            questions.close()
            live(question["function"], Line(socket.socket(fileno=files[0])))
        questions.sendall(json.dumps(answer).encode())


def live(function: str, line: Line) -> None:
    """The whole life of a child."""
    signal.alarm(LIFE_SECONDS)
    module, _, name = function.partition(":")
    status = 1
    try:
        getattr(importlib.import_module(module), name)(line)
        status = 0
    except BaseException:
        with suppress(OSError):  # nobody listens any more
            line.send({"traceback": traceback.format_exc()})
    os._exit(status)


if __name__ == "__main__":
    for module in ("crowd", "damage", "worker"):
        importlib.import_module(f"support.index_faults.{module}")
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
