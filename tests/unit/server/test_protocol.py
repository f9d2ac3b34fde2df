"""Protocol with a slow application: deadlines count only while the server waits for the client."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from minwise.server.connection_tracker import ConnectionTracker
from minwise.server.protocol import MAX_PIPELINED, HttpProtocol, HttpRequest, HttpResponse, HttpServer
from minwise.server.run import run_event_loop
from minwise.server.settings import ServerSettings

PATIENCE_SECONDS = 60
SECONDS = 0.4
# Longer than the timeout of a client.
LONG_SECONDS = 3 * SECONDS
# More than is buffered before the application reads.
BODY = b"x" * (1 << 20)


async def application(request: HttpRequest) -> HttpResponse:
    """Wait or block the event loop, as the path says; read the body, wait again, and return the length of the body."""
    _, before, after = request.path.split("/")
    if before == "wait":
        await asyncio.sleep(LONG_SECONDS)
    if before == "block":
        time.sleep(LONG_SECONDS)
    size = 0
    while part := await request.read_part():
        size += len(part)
    if after == "wait":
        await asyncio.sleep(LONG_SECONDS)
    if after == "fail":
        raise RuntimeError("a bug in the application")
    body = str(size).encode()
    return HttpResponse(200, body, [(b"content-length", str(len(body)).encode())])


@dataclass
class Running:
    """A server in this process, and the codes of what it has refused."""

    port: int
    tracker: ConnectionTracker[HttpProtocol]
    refused: list[str]


def with_server(client: Callable[[Running], Awaitable[bytes]], **settings: Any) -> bytes:  # noqa: ANN401
    """Return the result of a client that runs beside a server."""

    async def both() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refused: list[str] = []
            limits = ServerSettings(index=Path("none"), **{"receive_timeout": SECONDS, **settings})
            server = HttpServer(application, limits, refused.append)
            listening = await asyncio.get_running_loop().create_server(server.connect, sock=listener)
            try:
                running = Running(listener.getsockname()[1], server.tracker, refused)
                return await asyncio.wait_for(client(running), PATIENCE_SECONDS)
            finally:
                listening.close()
                server.stop()
                await server.drain(PATIENCE_SECONDS)

    return run_event_loop(both())


def talk(*parts: bytes, refused: Sequence[str] = ()) -> bytes:
    """Return everything a server sends until it closes the connection; each part is sent after a response.

    Args:
        parts: What the client sends.
        refused: The expected codes of refusals.
    """

    async def client(running: Running) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        heard = b""
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                heard += await reader.read(1 << 16)
            heard += await reader.read()
        writer.close()
        assert running.refused == list(refused)
        return heard

    return with_server(client)


def request(path: str, body: bytes = b"", *fields: str, length: int | None = None) -> bytes:
    """Return the bytes of a request."""
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize("before", ["wait", "block"])
def test_time_without_reading_does_not_count(before: str) -> None:
    """Neither while the application waits nor while the event loop is blocked."""
    heard = talk(request(f"/{before}/", BODY))
    assert heard.startswith(b"HTTP/1.1 200 ")
    assert heard.endswith(str(len(BODY)).encode())


def test_a_blocked_event_loop_does_not_count_for_other_clients() -> None:
    async def clients(running: Running) -> bytes:
        whole = request("//", b"abc")
        (slow, slow_writer), (other, other_writer) = [
            await asyncio.open_connection("127.0.0.1", running.port) for _ in range(2)
        ]
        slow_writer.write(whole[:-1])
        other_writer.write(request("/block/"))
        assert (await other.read(1 << 16)).startswith(b"HTTP/1.1 200 ")
        slow_writer.write(whole[-1:])
        heard = await slow.read(1 << 16)
        for writer in (slow_writer, other_writer):
            writer.close()
        return heard

    assert with_server(clients).startswith(b"HTTP/1.1 200 ")


def test_a_pipelined_request_may_wait_for_the_previous_one() -> None:
    heard = talk(request("//wait") + request("//", BODY))
    assert heard.count(b"HTTP/1.1 200 ") == 2
    assert heard.endswith(str(len(BODY)).encode())


def test_a_client_may_wait_for_100_continue() -> None:
    heard = talk(request("/wait/", b"", "Expect: 100-continue", length=3), b"abc")
    assert heard.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


def test_a_slow_response_does_not_count() -> None:
    assert talk(request("//wait", b"abc")).endswith(b"3")


def test_a_silent_client_is_refused() -> None:
    assert talk(request("//", b"a", length=3), refused=["too_slow"]).startswith(b"HTTP/1.1 408 ")
    assert talk(b"", refused=["too_slow"]).startswith(b"HTTP/1.1 408 ")


def test_pipelined_requests_are_limited() -> None:
    """Those beyond the limit are dropped, and the connection closes after the last response."""
    heard = talk(request("//wait") + request("//", b"abc") * (MAX_PIPELINED + 5), refused=["busy"])
    assert heard.count(b"HTTP/1.1 200 ") == 1 + MAX_PIPELINED
    assert heard.count(b"connection: close") == 1


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"what do you have?\r\n\r\n", "bad_http"),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", "bad_http"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", "headers_too_large"),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 200_000, "headers_too_large"),
    ],
)
def test_refusals_are_counted_by_code(said: bytes, code: str) -> None:
    assert json.loads(talk(said, refused=[code]).partition(b"\r\n\r\n")[2])["error"]["code"] == code


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds; the timeout is that of the whole test."""
    while not holds():
        await asyncio.sleep(0.001)


def test_a_responding_connection_is_not_evicted() -> None:
    """A new one is refused while all are responding; later it evicts an idle one."""

    async def clients(running: Running) -> bytes:
        tracker, port = running.tracker, running.port
        inside = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in inside:
            writer.write(request("//wait", b"abc"))
        await until(lambda: len(tracker.responding) == 3)
        late, late_writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await late.read()).startswith(b"HTTP/1.1 503 ")
        assert running.refused == ["busy"]
        assert len(tracker) == 3
        await until(lambda: len(tracker.idle) > 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("//", b"abcd"))
        heard = await reader.read(1 << 16)
        answers = [await one.read() for one, _ in inside]
        assert [answer.count(b"HTTP/1.1 200 ") for answer in answers] == [1, 1, 1]
        for one in (late_writer, writer, *(writer for _, writer in inside)):
            one.close()
        return heard

    assert with_server(clients, max_connections=3).endswith(b"4")


def test_lingering_connections_do_not_count() -> None:
    """At most as many linger as may be open."""

    async def clients(running: Running) -> bytes:
        wires = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(9)]
        await until(lambda: len(running.refused) == 7)
        assert len(running.tracker.receiving) == len(running.tracker.lingering) == 2
        refusals = [await reader.read() for reader, _ in wires[:7]]
        assert all(refusal.startswith(b"HTTP/1.1 503 ") for refusal in refusals)
        _, writer = wires[-1]
        writer.write(request("//", b"ab"))
        heard = await wires[-1][0].read(1 << 16)
        for _, writer in wires:
            writer.close()
        return heard

    assert with_server(clients, max_connections=2, receive_timeout=PATIENCE_SECONDS).endswith(b"2")


def test_a_failing_application_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    """The client gets an error of the usual shape, the log the exception, and the connection is closed."""
    head, _, body = talk(request("//fail", b"abc") + request("//", b"abc")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    assert b"connection: close" in head
    assert json.loads(body)["error"]["code"] == "internal"
    assert "a bug in the application" in caplog.text


def test_every_response_has_a_date() -> None:
    """Also an error that the application does not see."""
    for sent in (request("//", b"abc"), b"\0\r\n\r\n"):
        before = time.time()
        fields = dict(
            line.split(b": ", 1)
            for line in talk(sent, refused=[] if b"POST" in sent else ["bad_http"])
            .partition(b"\r\n\r\n")[0]
            .split(b"\r\n")[1:]
        )
        assert int(before) <= parsedate_to_datetime(fields[b"date"].decode()).timestamp() <= time.time()
