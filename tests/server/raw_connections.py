"""Raw TCP connections, for requests that no client library would send."""

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

__all__ = ["DelayMeter", "RawConnection", "answers_in", "message", "wait_until"]


class RawConnection:
    """A raw connection to the server."""

    def __init__(self, server: Server, *, receive_buffer_bytes: int | None = None) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small packets are sent at once
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            self._socket.connect((server.host, server.port))
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")
        # Ports in the notation of /proc/net/tcp, that of the server first.
        self._ends = tuple(f":{port:04X}" for port in (server.port, self._socket.getsockname()[1]))

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def is_held(self) -> bool:
        """Return whether the process of the server still has the connection open."""
        return self._row()[9] != "0"

    def unsent(self) -> int:
        """Return the bytes that the kernel cannot deliver from the server."""
        return int(self._row()[4].partition(":")[0], 16)

    def _row(self) -> list[str]:
        """Return the entry of the server's end in the kernel table."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            row = line.split()
            if (row[1][8:], row[2][8:]) == self._ends:
                return row
        return ["0"] * 10

    def send(self, data: bytes) -> None:
        """Send bytes; a closed connection is no error."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def is_reset(self, drop: bytes) -> bool:
        """Return whether sending fails, because the server has closed the connection."""
        try:
            self._socket.sendall(drop)
        except ConnectionError:
            return True
        return False

    def close_sending(self) -> None:
        """Close the sending side."""
        self._socket.shutdown(socket.SHUT_WR)

    def read_response(self) -> Answer:
        """Read the next response."""
        return read_answer(self._file)

    def read_to_end(self, drop: bytes = b"", pause_seconds: float = PATIENCE_SECONDS) -> bytes:
        """Read until the server closes the connection; meanwhile send bytes repeatedly."""
        heard = b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with suppress(ConnectionResetError):
            while True:
                while drop and not select.select([self._socket], [], [], pause_seconds)[0]:
                    self.send(drop)
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the server has not closed the connection for {PATIENCE_SECONDS} s")
                piece = self._file.read1(1 << 16)
                if not piece:
                    break
                heard += piece
        return heard

    def has_input(self) -> bool:
        """Return whether the server has sent something or closed the connection."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def is_closed_silently(self) -> bool:
        """Wait until the server closes the connection; return whether it sent nothing."""
        return self.read_to_end() == b""


class DelayMeter:
    """Measures the worst delay of this machine during a test, which a time limit has to allow for.

    Repeatedly waits for a short time and sends a request, if there is a server. The additional time is that for which
    this process or that of the server may not have run.
    """

    def __init__(self, server: Server | None = None) -> None:
        self._server, self._worst = server, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> "DelayMeter":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def slack_seconds(self) -> float:
        """Twice the worst delay, since each side may have been late once."""
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
    """Read the next response."""
    line = file.readline()
    if not line:
        raise EOFError("the server has closed the connection")
    version, status, _ = line.split(b" ", 2)
    assert version == b"HTTP/1.1", line
    headers = {}
    while (field := file.readline()) != b"\r\n":
        name, value = field.decode("latin-1").split(":", 1)
        headers[name.lower()] = value.strip()
    return Answer(int(status), headers, file.read(int(headers.get("content-length", 0))))


def answers_in(heard: bytes) -> list[Answer]:
    """Return all responses in received bytes."""
    file = io.BytesIO(heard)
    found = []
    while file.tell() < len(heard):
        found.append(read_answer(file))
    return found


def message(method: str, path: str, body: bytes = b"", *fields: str, length: int | None = None) -> bytes:
    """Return the bytes of a request, with a JSON body if there is one.

    Args:
        method: Such as ``GET``.
        path: The target.
        body: Bytes after the headers.
        fields: Additional header lines.
        length: Value of Content-Length, if it is not that of the body.
    """
    said = len(body) if length is None else length
    usual = ["Host: localhost", *([f"Content-Length: {said}", "Content-Type: application/json"] if said else [])]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *usual, *fields, "", ""]).encode("latin-1") + body


def wait_until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait until a condition holds; return whether it did."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
