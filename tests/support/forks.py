"""A process that has imported the command already and forks a child for each run of it; started by `commands.py`.

The child is a process of its own, and can be told to be killed, stopped or interrupted by a real signal exactly where a
file is about to be synced, renamed or deleted, or in the middle of a stage. It leaves as the interpreter does, except
that it does not take down every module first, which costs more than a small run does.
Jobs come as JSON lines from the socket whose number is the only argument; each is answered by the child's number, and
then by how it ended or that it was stopped.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 - what a run imports only when it needs it, so that not every child has to
import pyarrow.csv
import pyarrow.parquet  # noqa: F401 - as above

import minwise.api
import minwise.progress
from minwise.cli import main

__all__: list[str] = []

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT, "end": signal.SIGTERM}


class Trap:
    """Counts what happens to files, writes it to a log, and sends this process a signal when a number is reached.

    Attributes:
        log: Where each event goes as a line, or None.
        point: The event at which to act, counted from 0; None never acts.
        after: Whether to act after the event rather than before it.
    """

    def __init__(self, *, log: str | None = None, point: int | None = None, after: bool = False, act: str) -> None:
        self.log = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.point, self.after, self.signal = point, after, SIGNALS[act]
        self.seen = 0

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call as an event."""

        def trapped(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            here = self.seen == self.point
            self.seen += 1
            if self.log is not None:
                os.write(self.log, f"{name} {' '.join(map(str, arguments))}\n".encode())
            if here and not self.after:
                if name == "fsync":
                    tear(arguments[0])
                os.kill(os.getpid(), self.signal)
            result = call(*arguments, **options)
            if here and self.after:
                os.kill(os.getpid(), self.signal)
            return result

        return trapped

    def set(self) -> None:
        """Puts the trap around everything that makes a difference to what lies on the disk."""
        for owner, name in (
            (os, "fsync"), (Path, "replace"), (Path, "rename"), (Path, "unlink"), (shutil, "rmtree"),
        ):  # fmt: skip
            setattr(owner, name, self.around(name, getattr(owner, name)))


def tear(file: int) -> None:
    """Leaves of a file what a process leaves that dies while it writes: half of it."""
    with suppress(OSError):  # a directory, or a file that is open for reading
        os.ftruncate(file, os.fstat(file).st_size // 2)


class StageTrap:
    """Sends this process a signal when a stage has done its first piece."""

    def __init__(self, name: str, act: str) -> None:
        self.name, self.signal = name, SIGNALS[act]
        self.sent = False

    def set(self) -> None:
        """Takes the place of whoever watches in silence."""

        def stage(_: object, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Any]:
            return nullcontext(self if name == self.name else minwise.progress.Silence())

        setattr(minwise.progress.Silence, "stage", stage)  # noqa: B010 - an assignment is what mypy objects to

    def advance(self, amount: int) -> None:
        """Acts, once."""
        if not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.signal)

    reach = advance


def serve(jobs: socket.socket) -> list[str]:
    """Answers jobs until there are no more; in a child, returns its arguments."""
    lines = jobs.makefile("rb")
    for line in lines:
        job = json.loads(line)
        child = job["wait"] if "wait" in job else os.fork()
        if child == 0:
            lines.close()
            jobs.close()
            return prepare(job)
        if "wait" not in job:
            jobs.sendall(json.dumps({"child": child}).encode() + b"\n")
        _, status = os.waitpid(child, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        answer = {"stopped": stopped, "status": None if stopped else os.waitstatus_to_exitcode(status)}
        jobs.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)


def prepare(job: dict[str, Any]) -> list[str]:
    """Turns a fresh child into what the job asks for."""
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    for number, (path, flags) in enumerate(
        [(job["stdin"], os.O_RDONLY), (job["stdout"], os.O_WRONLY), (job["stderr"], os.O_WRONLY)]
    ):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    for name, value in job["constants"].items():
        module, _, constant = name.rpartition(".")
        owner = importlib.import_module(module)
        assert isinstance(getattr(owner, constant), int), name
        setattr(owner, constant, value)
    if job["file_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_bytes"], resource.RLIM_INFINITY))
    if job["trap"] is not None:
        Trap(**job["trap"]).set()
    if job["stage_trap"] is not None:
        StageTrap(*job["stage_trap"]).set()
    return list(job["arguments"])


def leave(command: Callable[[], object]) -> None:
    """Runs the command, then what is to be done at exit, and ends the process with the command's exit code."""
    status = 1
    try:
        command()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    formats = [f"inputs.{name}" for name in ("arrow_ipc", "delimited", "jsonl", "parquet", "text_files")]
    for name in (*formats, "index"):
        importlib.import_module(f"minwise.{name}")
    gc.freeze()
    sys.argv = ["minwise", *serve(socket.socket(fileno=int(sys.argv[1])))]
    leave(main)
