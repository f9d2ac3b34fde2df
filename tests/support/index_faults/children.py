"""Cheap child processes: a process that has imported minwise forks them, each with a channel to its parent.

A child runs one function, which receives the child's end of the channel: JSON values in both directions, one per line.
A child can be killed at any moment; values that it sent before still arrive, followed by the end of the stream.
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

__all__ = ["Channel", "Child", "Forker", "fast_folder", "start"]

TIMEOUT_SECONDS = 120
# An abandoned child ends after this time.
MAX_SECONDS = 3000
ADDRESS_BYTES = 4096


class Channel:
    """One end of a channel of JSON values between two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._rest = b""

    def send(self, value: object) -> None:
        """Send a value; after this returns, the value arrives even if this process is killed."""
        self._end.sendall(json.dumps(value).encode() + b"\n")

    def receive(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:  # noqa: ANN401
        """Return the next value.

        Raises:
            EOFError: If the other process has ended.
            TimeoutError: If no value arrives in time.
        """
        deadline = time.monotonic() + timeout_seconds
        while b"\n" not in self._rest:
            if not select.select([self._end], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no value for {timeout_seconds} s")
            chunk = b""
            with suppress(ConnectionResetError):  # it ended before it read everything
                chunk = self._end.recv(1 << 16)
            if not chunk:
                raise EOFError("the other process has ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class Child(Channel):
    """A child process, and the parent's end of its channel.

    Attributes:
        pid: The process id.
    """

    def __init__(self, end: socket.socket, pid: int) -> None:
        super().__init__(end)
        self.pid = pid

    def receive(self, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:  # noqa: ANN401
        """Return the next value; raise AssertionError if the function of the child failed."""
        value = super().receive(timeout_seconds)
        if isinstance(value, dict) and "traceback" in value:
            raise AssertionError(f"child {self.pid} failed: {value['traceback']}")
        return value

    def kill(self) -> None:
        """Kill the child with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end of the child, and return its exit code or the negative number of its signal."""
        self.close()
        _running.discard(self)
        return _forker().wait(self.pid)


# Started children that have not been waited for.
_running: set[Child] = set()


class Forker:
    """A process that runs a module, which imports what children need, and forks children on request."""

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

    def fork(self, function: Callable[[Channel], None], job: object) -> Child:
        """Start a child that runs a function of a module; the first value on its channel is the job."""
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._ask({"function": f"{function.__module__}:{function.__qualname__}"}, theirs.fileno())
        child = Child(ours, pid)
        child.send(job)
        return child

    def wait(self, pid: int) -> int:
        """Wait for the end of a child, and return its exit code or the negative number of its signal."""
        return self._ask({"wait": pid})

    def _ask(self, request: dict[str, Any], *files: int) -> int:
        """Send a request, optionally with the child's end of a channel, and return the answer."""
        socket.send_fds(self._line, [json.dumps(request).encode()], list(files))
        return int(json.loads(self._line.recv(ADDRESS_BYTES)))

    def _close(self) -> None:
        self._line.close()
        self._process.wait(timeout=TIMEOUT_SECONDS)


@cache
def _forker() -> Forker:
    return Forker("support.index_faults.children")


def start(function: Callable[[Channel], None], job: object = None) -> Child:
    """Start a child that runs a function of a module; the first value on its channel is the job."""
    child = _forker().fork(function, job)
    _running.add(child)
    return child


@contextmanager
def fast_folder() -> Iterator[Path]:
    """Yield a temporary directory, in memory if possible, and kill the children that were started meanwhile."""
    earlier = set(_running)
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="minwise-index-", dir=parent))
    try:
        yield folder
    finally:
        for child in _running - earlier:
            child.kill()
            child.wait()
        shutil.rmtree(folder)


def serve(requests: socket.socket) -> None:
    """Fork and wait on request, until the channel of requests is closed."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, ADDRESS_BYTES, 1)
        if not message:
            return
        request = json.loads(message)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        elif answer := os.fork():
            os.close(files[0])
        else:
            requests.close()
            run_child(request["function"], Channel(socket.socket(fileno=files[0])))
        requests.sendall(json.dumps(answer).encode())


def run_child(function: str, channel: Channel) -> None:
    """Run a function in a child, and exit."""
    signal.alarm(MAX_SECONDS)
    module, _, name = function.partition(":")
    status = 1
    try:
        getattr(importlib.import_module(module), name)(channel)
        status = 0
    except BaseException:
        with suppress(OSError):  # the parent has closed the channel
            channel.send({"traceback": traceback.format_exc()})
    os._exit(status)


if __name__ == "__main__":
    for module in ("concurrent_use", "damage", "worker"):
        importlib.import_module(f"support.index_faults.{module}")
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
