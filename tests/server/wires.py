"""Connections byte by byte, for what no client library would send."""

import io
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from server.running import PATIENCE_SECONDS, Answer, Server

__all__ = ["Hiccups", "Wire", "answers_in", "message", "wait_until"]


class Wire:
    """A connection on which anything can be said."""

    def __init__(self, server: Server, *, receive_buffer_bytes: int | None = None) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a drop does not wait for another
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            self._socket.connect((server.host, server.port))
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")
        # As the kernel writes them: the server's end first.
        self._ends = tuple(f":{port:04X}" for port in (server.port, self._socket.getsockname()[1]))

    def __enter__(self) -> "Wire":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        self._file.close()
        self._socket.close()

    def is_held(self) -> bool:
        """Whether the server's process still has its end; what the kernel may still have to deliver does not count."""
        return self._row()[9] != "0"

    def unsent(self) -> int:
        """Bytes that the kernel has from the server and can not deliver."""
        return int(self._row()[4].partition(":")[0], 16)

    def _row(self) -> list[str]:
        """What the kernel knows about the server's end."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            row = line.split()
            if (row[1][8:], row[2][8:]) == self._ends:
                return row
        return ["0"] * 10

    def send(self, data: bytes) -> None:
        """Says something; that nobody listens any more is no error."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def is_cut(self, drop: bytes) -> bool:
        """Whether nobody is there any more who could take a drop; the first one that falls into the void tells."""
        try:
            self._socket.sendall(drop)
        except ConnectionError:
            return True
        return False

    def say_no_more(self) -> None:
        """Ends what this side says, and goes on to listen."""
        self._socket.shutdown(socket.SHUT_WR)

    def hear(self) -> Answer:
        """The next answer."""
        return read_answer(self._file)

    def rest(self, drop: bytes = b"", pause_seconds: float = PATIENCE_SECONDS) -> bytes:
        """All that comes until the server hangs up; meanwhile something is said again and again."""
        heard = b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with suppress(ConnectionResetError):
            while True:
                while drop and not select.select([self._socket], [], [], pause_seconds)[0]:
                    self.send(drop)
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the server has not hung up for {PATIENCE_SECONDS} s")
                piece = self._file.read1(1 << 16)
                if not piece:
                    break
                heard += piece
        return heard

    def is_over(self) -> bool:
        """Whether the server has said something or hung up."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def hung_up(self) -> bool:
        """Whether the server says nothing more and hangs up, when it has done so."""
        return self.rest() == b""


class Hiccups:
    """How late this machine is at worst, while something else is measured on it: what a limit of time has to allow.

    Again and again a short while is waited for and a request made, if there is a server that takes any. Whatever that
    takes is a time for which this process or that of the server may not have run, when it had to.
    """

    def __init__(self, server: Server | None = None) -> None:
        self._server, self._worst = server, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> "Hiccups":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def slack_seconds(self) -> float:
        """The longest of these times twice: each side may have been late once."""
        return 2 * self._worst

    def _measure(self) -> None:
        connection = None if self._server is None else self._server.connect()
        started = time.monotonic()
        while not self._over.wait(0.005):
            if self._server is not None:
                assert self._server.get("/healthz", connection=connection).status == 200
            before, started = started, time.monotonic()
            self._worst = max(self._worst, started - before)
        if connection is not None:
            connection.close()


def read_answer(file: io.BufferedIOBase) -> Answer:
    """The next answer in what was said."""
    line = file.readline()
    if not line:
        raise EOFError("the server has hung up")
    version, status, _ = line.split(b" ", 2)
    assert version == b"HTTP/1.1", line
    headers = {}
    while (field := file.readline()) != b"\r\n":
        name, value = field.decode("latin-1").split(":", 1)
        headers[name.lower()] = value.strip()
    return Answer(int(status), headers, file.read(int(headers.get("content-length", 0))))


def answers_in(heard: bytes) -> list[Answer]:
    """All answers in what was said."""
    file = io.BytesIO(heard)
    found = []
    while file.tell() < len(heard):
        found.append(read_answer(file))
    return found


def message(method: str, path: str, body: bytes = b"", *fields: str, length: int | None = None) -> bytes:
    """A request as it is sent, with a body of JSON if there is one.

    Args:
        method: Such as ``GET``.
        path: The target.
        body: What is sent after the headers.
        fields: Headers beside the usual ones.
        length: What the Content-Length says, if that is not the truth.
    """
    said = len(body) if length is None else length
    usual = ["Host: localhost", *([f"Content-Length: {said}", "Content-Type: application/json"] if said else [])]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *usual, *fields, "", ""]).encode("latin-1") + body


def wait_until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Waits until something holds, looking again and again; whether it did."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
