"""Process that has imported the command and forks a child for each run of it; started by `commands.py`.

A child can be killed, stopped or interrupted by a real signal exactly where a file is synced, renamed or deleted, or in
the middle of a stage. It exits like the interpreter, but without the deletion of all modules, which takes longer than a
small run. Jobs are JSON lines from the socket whose descriptor is the only argument. The replies to each are the
process id of the child, and then its status when it has ended or is stopped.
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

import pandas  # noqa: F401 - imported lazily by a run; here, so that not every child imports it
import pyarrow.csv
import pyarrow.parquet  # noqa: F401 - as above

import minwise.api
import minwise.cli.command
import minwise.cli.session
import minwise.progress
from minwise._internal import atomic
from minwise.cli import main

__all__: list[str] = []

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT, "end": signal.SIGTERM}


class Trap:
    """Counter of file operations that logs them and sends this process a signal at a chosen one.

    Attributes:
        log: Descriptor of the log, which has a line for each event, or None.
        point: Number of the event at which to send the signal, from 0; None sends none.
        after: Whether to send it after the event rather than before it.
    """

    def __init__(self, *, log: str | None = None, point: int | None = None, after: bool = False, act: str) -> None:
        self.log = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.point, self.after, self.signal = point, after, SIGNALS[act]
        self.seen = 0

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call as an event."""

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
        """Make events of all calls that change durable files."""
        for owner, name in (
            (os, "fsync"), (Path, "replace"), (Path, "rename"), (Path, "unlink"), (shutil, "rmtree"),
            (atomic, "rename_new"), (atomic, "exchange"),
        ):  # fmt: skip
            setattr(owner, name, self.around(name, getattr(owner, name)))


def tear(file: int) -> None:
    """Truncate a file to half, as if the process ended while it wrote."""
    with suppress(OSError):  # a directory, or a file that is open for reading
        os.ftruncate(file, os.fstat(file).st_size // 2)


class StageTrap:
    """Progress receiver that sends this process a signal at the first advance of a stage."""

    def __init__(self, name: str, act: str) -> None:
        self.name, self.signal = name, SIGNALS[act]
        self.sent = False

    def set(self) -> None:
        """Replace the stages of the receivers of a run without a terminal."""

        def stage(_: object, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Any]:
            return nullcontext(self if name == self.name else minwise.progress.NullProgress())

        for receiver in (minwise.progress.NullProgress, minwise.cli.session.StageLog):
            setattr(receiver, "stage", stage)  # noqa: B010 - an assignment is what mypy objects to

    def advance(self, amount: int) -> None:
        """Send the signal, once."""
        if not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.signal)

    advance_to = advance


def serve(jobs: socket.socket) -> list[str]:
    """Run jobs until the socket is closed; in a child, return its arguments."""
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
        reply = {"stopped": stopped, "status": None if stopped else os.waitstatus_to_exitcode(status)}
        jobs.sendall(json.dumps(reply).encode() + b"\n")
    os._exit(0)


def prepare(job: dict[str, Any]) -> list[str]:
    """Set up a new child for its job; return the arguments of the command."""
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


def run_and_exit(command: Callable[[], object]) -> None:
    """Run the command and the exit handlers, and end the process with the command's exit code."""
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
    run_and_exit(main)
