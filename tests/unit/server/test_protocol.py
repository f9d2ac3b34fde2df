"""What is held against a client, and what is not: the protocol under an application that takes its time."""

import ast
import asyncio
import dis
import inspect
import json
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from minwise.server.crowd import Crowd
from minwise.server.protocol import PIPELINED, BoundedProtocol, protocol_for
from minwise.server.settings import ServerSettings

PATIENCE_SECONDS = 60
SECONDS = 0.4
# Longer than a client may take for its part.
LONG_SECONDS = 3 * SECONDS
# More than is read before anybody asks for it.
BODY = b"x" * (1 << 20)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Waits or stands still, as the path says; then reads the body, waits again, and tells how long the body was."""
    _, before, after = scope["path"].split("/")
    if before == "wait":
        await asyncio.sleep(LONG_SECONDS)
    if before == "stand":
        time.sleep(LONG_SECONDS)
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message["body"])
        more = message["more_body"]
    if after == "wait":
        await asyncio.sleep(LONG_SECONDS)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Running:
    """The protocol of a server in this process, and what it has refused."""

    port: int
    crowd: Crowd[BoundedProtocol]
    refused: list[str]


def with_server(client: Callable[[Running], Awaitable[bytes]], **settings: Any) -> bytes:  # noqa: ANN401
    """What somebody brings back who was with a server."""

    async def both() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refused: list[str] = []
            limits = ServerSettings(index=Path("none"), **{"receive_timeout": SECONDS, **settings})
            protocol = protocol_for(limits, refused.append)
            options: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_config": None}
            options["timeout_keep_alive"] = limits.receive_timeout
            server = uvicorn.Server(uvicorn.Config(application, http=protocol, **options))
            serving = asyncio.ensure_future(server.serve(sockets=[listener]))
            try:
                running = Running(listener.getsockname()[1], protocol.crowd, refused)
                return await asyncio.wait_for(client(running), PATIENCE_SECONDS)
            finally:
                server.should_exit = True
                await serving

    return uvloop.run(both())


def talk(*parts: bytes, refused: Sequence[str] = ()) -> bytes:
    """What a server says to a client until it hangs up; each part is sent when something was said to the one before.

    Args:
        parts: What the client says.
        refused: The codes of what the server has refused in the end.
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
    """A request to the application."""
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize("before", ["wait", "stand"])
def test_time_in_which_nobody_reads_is_not_held_against_a_client(before: str) -> None:
    """Neither while the application waits and the body with it, nor while the whole loop stands still."""
    heard = talk(request(f"/{before}/", BODY))
    assert heard.startswith(b"HTTP/1.1 200 ")
    assert heard.endswith(str(len(BODY)).encode())


def test_a_standstill_is_not_held_against_others() -> None:
    """Somebody else's request holds up the loop, which can not read meanwhile; a client may go on after that."""

    async def clients(running: Running) -> bytes:
        whole = request("//", b"abc")
        (slow, slow_writer), (other, other_writer) = [
            await asyncio.open_connection("127.0.0.1", running.port) for _ in range(2)
        ]
        slow_writer.write(whole[:-1])
        other_writer.write(request("/stand/"))
        assert (await other.read(1 << 16)).startswith(b"HTTP/1.1 200 ")
        slow_writer.write(whole[-1:])
        heard = await slow.read(1 << 16)
        for writer in (slow_writer, other_writer):
            writer.close()
        return heard

    assert with_server(clients).startswith(b"HTTP/1.1 200 ")


def test_a_request_may_wait_for_the_one_before_it() -> None:
    """However long that takes."""
    heard = talk(request("//wait") + request("//", BODY))
    assert heard.count(b"HTTP/1.1 200 ") == 2
    assert heard.endswith(str(len(BODY)).encode())


def test_a_client_may_wait_until_it_is_told_to_continue() -> None:
    """Its time is not over before it was told to."""
    heard = talk(request("/wait/", b"", "Expect: 100-continue", length=3), b"abc")
    assert heard.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


def test_a_long_answer_is_not_held_against_a_client() -> None:
    """The request has arrived; what takes long after that is the server's."""
    assert talk(request("//wait", b"abc")).endswith(b"3")


def test_who_sends_nothing_is_cut() -> None:
    """The other side of all this."""
    assert talk(request("//", b"a", length=3), refused=["too_slow"]).startswith(b"HTTP/1.1 408 ")
    assert talk(b"", refused=["too_slow"]).startswith(b"HTTP/1.1 408 ")


def test_requests_that_wait_are_counted() -> None:
    """The first is worked on, some wait; those above are not taken, and the client is hung up on after the last."""
    heard = talk(request("//wait") + request("//", b"abc") * (PIPELINED + 5), refused=["busy"])
    assert heard.count(b"HTTP/1.1 200 ") == 1 + PIPELINED
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
def test_what_is_refused_is_counted(said: bytes, code: str) -> None:
    """By its code, once."""
    assert json.loads(talk(said, refused=[code]).partition(b"\r\n\r\n")[2])["error"]["code"] == code


async def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds; whoever waits for all of this has the patience."""
    while not holds():
        await asyncio.sleep(0.001)


def test_nobody_is_pushed_out_who_is_answered() -> None:
    """If all are, who comes is told to come again; when one has its answer, it gives way."""

    async def clients(running: Running) -> bytes:
        crowd, port = running.crowd, running.port
        inside = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in inside:
            writer.write(request("//wait", b"abc"))
        await until(lambda: len(crowd.answered) == 3)
        late, late_writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await late.read()).startswith(b"HTTP/1.1 503 ")
        assert running.refused == ["busy"]
        assert len(crowd) == 3
        await until(lambda: len(crowd.idle) > 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("//", b"abcd"))
        heard = await reader.read(1 << 16)
        answers = [await one.read() for one, _ in inside]
        assert [answer.count(b"HTTP/1.1 200 ") for answer in answers] == [1, 1, 1]
        for one in (late_writer, writer, *(writer for _, writer in inside)):
            one.close()
        return heard

    assert with_server(clients, max_connections=3).endswith(b"4")


def test_who_is_told_to_go_does_not_take_a_place() -> None:
    """It may linger, but others come in, and as many linger as may be open."""

    async def clients(running: Running) -> bytes:
        wires = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(9)]
        await until(lambda: len(running.refused) == 7)
        assert len(running.crowd.unfinished) == len(running.crowd.leaving) == 2
        told = [await reader.read() for reader, _ in wires[:7]]
        assert all(one.startswith(b"HTTP/1.1 503 ") for one in told)
        _, writer = wires[-1]
        writer.write(request("//", b"ab"))
        heard = await wires[-1][0].read(1 << 16)
        for _, writer in wires:
            writer.close()
        return heard

    assert with_server(clients, max_connections=2, receive_timeout=PATIENCE_SECONDS).endswith(b"2")


# What the protocol takes from uvicorn beside what it overrides, none of which uvicorn promises to keep.
OF_CYCLES = {
    "disconnected", "keep_alive", "message_event", "more_body", "response_complete", "response_started",
    "waiting_for_100_continue",
}  # fmt: skip
OF_FLOW = {"pause_reading", "read_paused", "write_paused"}


def names_after(*owners: str) -> set[str]:
    """What the protocol uses of things that it calls so."""
    tree = ast.parse(Path(inspect.getfile(BoundedProtocol)).read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if ast.unparse(node.value) in owners}


def test_uvicorn_has_what_the_protocol_rests_on() -> None:
    """Each method that is overridden and each attribute that is used: another version may have renamed them."""

    async def parts() -> tuple[HttpToolsProtocol, RequestResponseCycle]:
        config = uvicorn.Config(application, ws="none", lifespan="off", log_config=None)
        plain = HttpToolsProtocol(config, ServerState(), {})
        plain.connection_made(Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None)))
        plain.data_received(request("//"))
        await asyncio.gather(*plain.tasks)
        return plain, plain.cycle

    plain, cycle = asyncio.run(parts())
    own = {*vars(BoundedProtocol), *BoundedProtocol.__annotations__}
    made = {name for name in vars_made_by(BoundedProtocol.__init__) if not hasattr(plain, name)}
    inherited = {name for name in own if name in dir(HttpToolsProtocol) and not name.startswith("__")}
    overridden = {
        "connection_made", "connection_lost", "eof_received", "data_received", "on_message_begin", "on_url",
        "on_header", "on_headers_complete", "_start_asgi_task", "on_body", "on_message_complete", "pause_writing",
        "resume_writing", "on_response_complete", "shutdown",
    }  # fmt: skip
    assert inherited == overridden
    assert [name for name in names_after("self", "super()") - own - made if not hasattr(plain, name)] == []
    assert [name for name in OF_CYCLES if not hasattr(cycle, name)] == []
    assert names_after("self.cycle", "cycle", "broken", "whole[-1]", "unanswered[-1]") == OF_CYCLES
    assert [name for name in OF_FLOW if not hasattr(plain.flow, name)] == []
    assert names_after("self.flow") == OF_FLOW
    assert isinstance(plain.pipeline, deque)
    assert isinstance(plain.server_state.default_headers, list)


def vars_made_by(method: Callable[..., None]) -> set[str]:
    """The attributes that a method gives to ``self``."""
    return {one.argval for one in dis.get_instructions(method) if one.opname == "STORE_ATTR"}


def test_uvicorn_calls_what_is_overridden_for_it() -> None:
    """It could go another way without these; all others are called by the parser or the loop."""
    for method in (HttpToolsProtocol.on_headers_complete, HttpToolsProtocol.on_response_complete):
        assert "_start_asgi_task" in method.__code__.co_names
    assert "on_response_complete" in HttpToolsProtocol.on_headers_complete.__code__.co_names
    assert "shutdown" in uvicorn.Server.shutdown.__code__.co_names
