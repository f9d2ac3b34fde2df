"""A real ``minwise serve`` in a process of its own, and how to talk to it."""

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

# Long enough for a busy machine; nothing waits so long unless it hangs.
PATIENCE_SECONDS = 60
# With which a process asks the kernel for a signal when its parent ends.
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def new_index(folder: Path) -> Path:
    """An empty index in a folder, which stores texts and takes pairs of words."""
    path = folder / "news.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store="text").close()
    return path


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: The HTTP status.
        headers: Header fields, with names in lower case.
        body: The body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The code of an error, which has the one shape that errors have."""
        assert self.headers["content-type"] == "application/json"
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"code", "message"}
        assert "\n" not in self.json["error"]["message"]
        return str(self.json["error"]["code"])


@dataclass
class Server:
    """A server that runs.

    Attributes:
        process: Its process.
        url: Where it is, such as ``http://127.0.0.1:41523/``.
        token: Sent with every request, if there is one.
    """

    process: "subprocess.Popen[bytes]"
    url: str
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The address it listens at."""
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        """The port it listens at."""
        return int(urlsplit(self.url).port or 0)

    def connect(self) -> http.client.HTTPConnection:
        """A connection of its own."""
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
        """Sends one request; a body that is not bytes goes as JSON.

        Args:
            method: Such as ``GET``.
            path: With the query string, as it stands in the request line.
            body: Bytes as they are, anything else as JSON.
            headers: Sent too; they win over those that are sent anyway.
            connection: An open one; otherwise one is made for this request.
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

    def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401 - those of ask
        """What is at a path."""
        return self.ask("GET", path, **options)

    def post(self, path: str, body: object, **options: Any) -> Answer:  # noqa: ANN401 - those of ask
        """What becomes of something that is sent."""
        return self.ask("POST", path, body, **options)

    def add(self, name: str | int, text: str, metadata: object = None, **options: Any) -> Answer:  # noqa: ANN401
        """Adds one document."""
        return self.post("/v1/documents", {"id": name, "text": text, "metadata": metadata}, **options)

    def memory(self, name: str) -> int:
        """A line of what the kernel says about the process, such as ``VmRSS``, in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

    def is_idle(self) -> bool:
        """Whether the process does nothing for a while: it has taken all that it takes."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        before = stat.read_text().split()[13:15]
        time.sleep(0.2)
        return stat.read_text().split()[13:15] == before

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits for the end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Ends it at once, if it has not ended yet, and lets go of it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def start(index: Path, *options: str, environment: Mapping[str, str] | None = None, log: Path | None = None) -> Server:
    """Starts ``minwise serve`` on a free port of the loopback, and waits until it listens.

    Args:
        index: The directory of the index.
        options: Those of the command.
        environment: Variables beside those that there are.
        log: A file for what it says on standard error.
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
    """Has the kernel end this process with its parent, so that no server outlives tests that were killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def serving(
    index: Path, *options: str, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[Server]:
    """A server for a while, started as by :func:`start`; it has to end well."""
    server = start(index, *options, environment=environment, log=log)
    try:
        yield server
        assert server.stop() == 0
    finally:
        server.end()
