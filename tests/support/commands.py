"""Runs of the command: of the installed executable, or of a fork of a process that has already imported it."""

import atexit
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "FAILURE",
    "INPUT_OUTPUT",
    "INTERRUPTED",
    "MINWISE",
    "OK",
    "TORTURE",
    "USAGE",
    "Done",
    "Job",
    "digest",
    "execute",
    "hidden",
    "one_line",
    "resume",
    "run",
    "without_stages",
]

MINWISE = str(Path(sys.executable).with_name("minwise"))
OK, FAILURE, USAGE, INPUT_OUTPUT, INTERRUPTED = 0, 1, 2, 74, 130
TIMEOUT_SECONDS = 120
# Line that a run without a terminal logs at the end of a stage.
STAGE_LINE = re.compile(r"^minwise: [a-z ]+: (?:[\d,]+ [a-z]+ in )?\d+\.\d s\n", re.MULTILINE)
# `make torture` sets it: more kills, more kill points, larger bombs. No result depends on it.
TORTURE = os.environ.get("MINWISE_TORTURE") == "1"


@dataclass(frozen=True)
class Done:
    """Result of a run.

    Attributes:
        status: Exit code; the negative number of the signal that ended it; None if it is only stopped.
        out: Standard output.
        err: Standard error, without the lines of stages.
        stages: The lines of stages on standard error.
        child: Process id.
    """

    status: int | None
    out: str
    err: str
    child: int = 0
    stages: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Job:
    """Conditions of a run, in addition to its arguments.

    Attributes:
        stdin: Path of the file that is its standard input.
        environment: Additional environment variables.
        constants: Values for constants of modules, by full name, so that small data exercise limits.
        file_bytes: Largest file that it may write.
        trap: File operation at which it gets a signal; see `forks.Trap`.
        stage_trap: Name of a stage in which it gets a signal, and name of the signal.
    """

    stdin: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    file_bytes: int | None = None
    trap: dict[str, Any] | None = None
    stage_trap: tuple[str, str] | None = None


class _ForkServer:
    """Client of the process that forks a child for each run."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            script = str(Path(__file__).with_name("forks.py"))
            self._server = subprocess.Popen(
                [sys.executable, script, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._socket = ours
        self._socket.settimeout(TIMEOUT_SECONDS)
        self._replies = ours.makefile("rb")
        self._folder = tempfile.TemporaryDirectory(prefix="minwise-forks-")
        self._outputs: dict[int, tuple[Path, Path]] = {}
        self._runs = 0

    def close(self) -> None:
        """End the process."""
        self._replies.close()
        self._socket.close()
        self._server.wait(timeout=TIMEOUT_SECONDS)
        self._folder.cleanup()

    def start(self, folder: Path, arguments: tuple[str, ...], job: Job) -> Done:
        """Run a child until it ends or is stopped."""
        self._runs += 1
        out, err = (Path(self._folder.name) / f"{self._runs}.{name}" for name in ("out", "err"))
        for path in (out, err):
            path.touch()
        request = {
            "folder": str(folder), "arguments": arguments, "stdin": job.stdin or os.devnull, "stdout": str(out),
            "stderr": str(err), "environment": job.environment, "constants": job.constants,
            "file_bytes": job.file_bytes, "trap": job.trap, "stage_trap": job.stage_trap,
        }  # fmt: skip
        self._send(request)
        child = int(self._receive()["child"])
        self._outputs[child] = (out, err)
        return self._done(child)

    def wait(self, child: int) -> Done:
        """Wait until a child that was stopped ends or is stopped again."""
        self._send({"wait": child})
        return self._done(child)

    def _done(self, child: int) -> Done:
        try:
            reply = self._receive()
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise
        out, err = (path.read_text(encoding="utf-8") for path in self._outputs[child])
        return Done(reply["status"], out, without_stages(err), child, tuple(STAGE_LINE.findall(err)))

    def _send(self, request: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def _receive(self) -> dict[str, Any]:
        return dict(json.loads(self._replies.readline()))


@cache
def _fork_server() -> _ForkServer:
    server = _ForkServer()
    atexit.register(server.close)
    return server


def run(folder: Path, *arguments: str, job: Job | None = None) -> Done:
    """Run the command in a folder until it ends or is stopped; check that it prints no traceback."""
    done = _fork_server().start(folder, arguments, job or Job())
    assert "Traceback" not in done.err, done.err
    return done


def resume(child: int, *signals: signal.Signals) -> Done:
    """Send signals to a stopped child, continue it, and wait for its end."""
    for number in (*signals, signal.SIGCONT):
        os.kill(child, number)
    return _fork_server().wait(child)


def execute(
    folder: Path,
    *arguments: str | bytes,
    stdin: bytes | None = None,
    **options: Any,  # noqa: ANN401
) -> subprocess.CompletedProcess[bytes]:
    """Run the installed executable in a folder; check that it prints no traceback, and leave out lines of stages."""
    done = subprocess.run(
        [MINWISE, *arguments], cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
        **options,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr
    done.stderr = without_stages(done.stderr.decode()).encode()
    return done


def without_stages(err: str) -> str:
    """Return what a run printed to standard error, without the line that it logs for each stage."""
    return STAGE_LINE.sub("", err)


def one_line(done: Done, status: int) -> str:
    """Return the line that a failed run prints to standard error; check that standard output is empty."""
    assert (done.status, done.out) == (status, ""), done
    assert done.err.startswith("minwise: "), done.err
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1, done.err
    return done.err


def digest(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder by its path, and an empty string for every folder."""
    return {
        path.relative_to(folder).as_posix(): _fingerprint(path) if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def _fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file; of a file with durations, which differ from run to run, only its structure."""
    data = path.read_bytes()
    if path.name == "run.json":
        return " ".join(json.loads(data))
    if path.name == "report.html" and data.endswith(b"</html>\n"):
        return "a page"
    return hashlib.sha256(data).hexdigest()


def hidden(folder: Path) -> list[str]:
    """Return the names of hidden and temporary files in a folder, which a run must not leave."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".") or ".minwise" in path.name)
