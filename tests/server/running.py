"""A real ``minwise serve`` in its own process, and an HTTP client for it."""

import ctypes
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import minwise as mw

__all__ = ["Answer", "Server", "new_index", "serving", "start"]

# Long enough for a busy machine.
PATIENCE_SECONDS = 60
# Option of prctl: a signal for this process when its parent exits.
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def new_index(folder: Path) -> Path:
    """Create an empty index that stores texts, with shingles of two words."""
    path = folder / "news.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True).close()
    return path


@dataclass(frozen=True)
class Answer:
    """An HTTP response.

    Attributes:
        status: The HTTP status.
        headers: Header fields by lower-case name.
        body: The body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The error code, after checking the shape of the error."""
        assert self.headers["content-type"] == "application/json"
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"code", "message"}
        assert "\n" not in self.json["error"]["message"]
        return str(self.json["error"]["code"])


@dataclass
class Server:
    """A running server.

    Attributes:
        process: Its process.
        url: Its URL, such as ``http://127.0.0.1:41523/``.
        token: The token of every request, if there is one.
    """

    process: "subprocess.Popen[bytes]"
    url: str
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The address of the server."""
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(urlsplit(self.url).port or 0)

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection."""
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Answer:
        """Send a request.

        Args:
            method: Such as ``GET``.
            path: The target with the query string.
            body: Bytes are sent unchanged, other values as JSON.
            headers: Additional header fields, which override the usual ones.
            connection: An open connection; by default a new one.
        """
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent |= {**self.headers, **(headers or {})}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        used = connection or self.connect()
        try:
            used.request(method, path, content, sent)
            answer = used.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            if connection is None:
                used.close()

    def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401 - options of ask
        """Send a GET request."""
        return self.ask("GET", path, **options)

    def post(self, path: str, body: object, **options: Any) -> Answer:  # noqa: ANN401 - options of ask
        """Send a POST request."""
        return self.ask("POST", path, body, **options)

    def add(self, name: str | int, text: str, metadata: object = None, **options: Any) -> Answer:  # noqa: ANN401
        """Add a document."""
        return self.post("/v1/documents", {"id": name, "text": text, "metadata": metadata}, **options)

    def memory(self, name: str) -> int:
        """Return a value of ``/proc/PID/status``, such as ``VmRSS``, in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

    def is_idle(self) -> bool:
        """Return whether the process uses no processor time for a while."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        before = stat.read_text().split()[13:15]
        time.sleep(0.2)
        return stat.read_text().split()[13:15] == before

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Kill the process, if it is still running, and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def start(index: Path, *options: str, environment: Mapping[str, str] | None = None, log: Path | None = None) -> Server:
    """Start ``minwise serve`` on a free port of the loopback, and wait until it listens.

    Args:
        index: Directory of the index.
        options: Options of the command.
        environment: Additional environment variables.
        log: File for its standard error.
    """
    command = [sys.executable, "-m", "minwise", "serve", "--index", str(index), "--port", "0", *options]
    with nullcontext() if log is None else log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(environment or {})},
            preexec_fn=_end_with_the_parent if sys.platform == "linux" else None,
        )
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line:
        status = process.wait(PATIENCE_SECONDS)
        process.stdout.close()
        raise RuntimeError(f"the server did not start: exit code {status}")
    return Server(process, line.split()[-1])


def _end_with_the_parent() -> None:
    """Have the kernel kill this process with its parent, so that no server outlives killed tests."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def serving(
    index: Path, *options: str, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[Server]:
    """Run a server within a ``with`` block; it must exit with code 0."""
    server = start(index, *options, environment=environment, log=log)
    try:
        yield server
        assert server.stop() == 0
    finally:
        server.end()
