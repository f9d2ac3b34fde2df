"""Running the command: as the installed executable, or quickly as a fork of a process that has imported it already."""

import atexit
import hashlib
import json
import os
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
]

MINWISE = str(Path(sys.executable).with_name("minwise"))
OK, FAILURE, USAGE, INPUT_OUTPUT, INTERRUPTED = 0, 1, 2, 74, 130
TIMEOUT_SECONDS = 120
# `make torture` sets it: more kills, more points, larger bombs. No result depends on it.
TORTURE = os.environ.get("MINWISE_TORTURE") == "1"


@dataclass(frozen=True)
class Done:
    """How a run ended.

    Attributes:
        status: The exit code; a signal's number, negative, if one ended it; None if it is only stopped.
        out: Standard output.
        err: Standard error.
        child: The number of the process.
    """

    status: int | None
    out: str
    err: str
    child: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a run is given beside its arguments.

    Attributes:
        stdin: What is read from standard input.
        environment: Variables beside those of this process.
        constants: Constants of modules, by their full names, so that little data makes many pieces.
        file_bytes: The largest file it may write.
        trap: Where among what happens to files it gets a signal; see `forks.Trap`.
        stage_trap: The name of a stage in whose middle it gets a signal, and which.
    """

    stdin: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    file_bytes: int | None = None
    trap: dict[str, Any] | None = None
    stage_trap: tuple[str, str] | None = None


class _Forks:
    """The process that forks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            script = str(Path(__file__).with_name("forks.py"))
            self._server = subprocess.Popen(
                [sys.executable, script, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._socket = ours
        self._socket.settimeout(TIMEOUT_SECONDS)
        self._answers = ours.makefile("rb")
        self._folder = tempfile.TemporaryDirectory(prefix="minwise-forks-")
        self._outputs: dict[int, tuple[Path, Path]] = {}
        self._runs = 0

    def close(self) -> None:
        """Ends the process."""
        self._answers.close()
        self._socket.close()
        self._server.wait(timeout=TIMEOUT_SECONDS)
        self._folder.cleanup()

    def start(self, folder: Path, arguments: tuple[str, ...], job: Job) -> Done:
        """Runs a child until it ends or is stopped."""
        self._runs += 1
        out, err = (Path(self._folder.name) / f"{self._runs}.{name}" for name in ("out", "err"))
        for path in (out, err):
            path.touch()
        question = {
            "folder": str(folder), "arguments": arguments, "stdin": job.stdin or os.devnull, "stdout": str(out),
            "stderr": str(err), "environment": job.environment, "constants": job.constants,
            "file_bytes": job.file_bytes, "trap": job.trap, "stage_trap": job.stage_trap,
        }  # fmt: skip
        self._ask(question)
        child = int(self._answer()["child"])
        self._outputs[child] = (out, err)
        return self._done(child)

    def wait(self, child: int) -> Done:
        """Waits for a child that was stopped."""
        self._ask({"wait": child})
        return self._done(child)

    def _done(self, child: int) -> Done:
        try:
            answer = self._answer()
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise
        out, err = self._outputs[child]
        return Done(answer["status"], out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"), child)

    def _ask(self, question: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(question).encode() + b"\n")

    def _answer(self) -> dict[str, Any]:
        return dict(json.loads(self._answers.readline()))


@cache
def _forks() -> _Forks:
    forks = _Forks()
    atexit.register(forks.close)
    return forks


def run(folder: Path, *arguments: str, job: Job | None = None) -> Done:
    """The command in a folder, until it ends or stops itself; whatever happens, there is no traceback."""
    done = _forks().start(folder, arguments, job or Job())
    assert "Traceback" not in done.err, done.err
    return done


def resume(child: int, *signals: signal.Signals) -> Done:
    """Sends a stopped child signals, lets it go on, and waits for its end."""
    for one in (*signals, signal.SIGCONT):
        os.kill(child, one)
    return _forks().wait(child)


def execute(
    folder: Path,
    *arguments: str | bytes,
    stdin: bytes | None = None,
    **options: Any,  # noqa: ANN401
) -> subprocess.CompletedProcess[bytes]:
    """The installed executable in a folder; no traceback either."""
    done = subprocess.run(
        [MINWISE, *arguments], cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
        **options,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def one_line(done: Done, status: int) -> str:
    """The one line that a failed run leaves on standard error, and nothing on standard output."""
    assert (done.status, done.out) == (status, ""), done
    assert done.err.startswith("minwise: "), done.err
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1, done.err
    return done.err


def digest(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder, by its path; empty folders too."""
    return {
        path.relative_to(folder).as_posix(): _fingerprint(path) if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def _fingerprint(path: Path) -> str:
    """The SHA-256 of a file; of one that tells how long a run took, which is never the same, only that it is whole."""
    data = path.read_bytes()
    if path.name == "run.json":
        return " ".join(json.loads(data))
    if path.name == "report.html" and data.endswith(b"</html>\n"):
        return "a page"
    return hashlib.sha256(data).hexdigest()


def hidden(folder: Path) -> list[str]:
    """What a run might leave behind beside its output."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".") or ".minwise" in path.name)
