"""Overload: excess clients are refused, memory stays bounded, and the server recovers."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import minwise as mw
from server.raw_connections import RawConnection, message, wait_until
from server.running import Answer, Server, serving

MB = 10**6
# Number of concurrent clients of every test below.
CLIENTS = 100
# Requests in progress, and clients that connect at the same time.
IN_FLIGHT = 4
# The largest request; the bodies of four of these are buffered at a time, and as many bytes of responses.
LARGEST = 2 * MB
HELD = 4 * LARGEST
# Additional memory of a connection: what is buffered before reading or writing pauses.
PER_CLIENT = 2 * 64 * 1024
# Overhead of Python and its allocator: a copy of each, and fragmentation.
COPIES, LOOSE = 2, 40 * MB


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Create an index with one large document."""
    folder = tmp_path / "news.mw"
    with mw.Index.create(folder, threshold=0.5, shingle="word:2", store_text=True) as index:
        index.add(["large"], ["word " * (MB // 5)])
    return folder


def assert_busy(answer: Answer) -> None:
    """Check a 503 with Retry-After."""
    assert (answer.status, answer.error) == (503, "busy")
    assert answer.headers["retry-after"] == "1"


def assert_works(server: Server) -> None:
    """Check that the server works normally."""
    assert server.add("afterwards", "one two three").status == 200
    assert [hit["id"] for hit in server.post("/v1/query", {"text": "one two three"}).json["hits"]] == ["afterwards"]
    assert server.get("/readyz").status == 200


def test_requests_beyond_max_in_flight_are_refused(path: Path) -> None:
    """At once; health checks are always answered."""
    together = threading.Barrier(12)
    text = " ".join(map(str, range(30_000)))

    def ask(server: Server) -> Answer:
        together.wait()
        return server.post("/v1/compare", {"left": text, "right": text})

    with serving(path, "--max-in-flight", "2") as server:
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(ask, server) for _ in range(12)]
            assert server.get("/healthz").status == 200
            answers = [one.result() for one in asked]
        refused = [answer for answer in answers if answer.status != 200]
        assert 0 < len(refused) <= 10
        for answer in refused:
            assert_busy(answer)
        assert_works(server)


def test_new_connections_evict_the_longest_idle(path: Path) -> None:
    """Without an error message."""
    with serving(path, "--max-connections", "20", "--receive-timeout", "60") as server, ExitStack() as stack:
        wires = [stack.enter_context(RawConnection(server)) for _ in range(20)]
        for wire in wires:
            wire.send(message("GET", "/healthz"))
            assert wire.read_response().status == 200
        for _ in range(3):
            wires.append(stack.enter_context(RawConnection(server)))
            wires[-1].send(message("GET", "/healthz"))
            assert wires[-1].read_response().status == 200
        for wire in wires[:3]:
            assert wire.is_closed_silently()
        for wire in wires[3:]:
            wire.send(message("GET", "/healthz"))
            assert wire.read_response().status == 200
        assert counted(server, "minwise_connections") == 20
        assert_works(server)


def test_silent_connections_do_not_keep_out_others(path: Path) -> None:
    """Ten times the maximum; they are refused while other clients are served."""
    with serving(path, "--max-connections", "20", "--receive-timeout", "60") as server, ExitStack() as stack:
        silent = []
        for number in range(200):
            silent.append(stack.enter_context(RawConnection(server)))
            silent[-1].send(message("POST", "/v1/query", b"{", length=100)[: 10 * (number % 20)])
            if number % 10 == 0:
                assert server.post("/v1/query", {"text": "a b c"}).status == 200
        for wire in silent[:180]:
            assert_busy(wire.read_response())
            assert wire.is_closed_silently()
        assert not any(wire.has_input() for wire in silent[-19:])  # one at most was evicted for the metrics
        assert 180 <= counted(server, 'minwise_refused_total{code="busy"}') <= 181
        stack.close()
        assert wait_until(lambda: counted(server, "minwise_connections") == 1)
        assert_works(server)


def counted(server: Server, name: str) -> float:
    """Return a value of the metrics."""
    lines = server.get("/metrics").body.decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def growth(server: Server, overload: Callable[[], None]) -> int:
    """Return the maximum growth of memory in bytes."""
    before = server.memory("VmRSS")
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    overload()
    return server.memory("VmHWM") - before


def test_refused_bodies_are_not_kept(path: Path) -> None:
    def overload() -> None:
        for _ in range(CLIENTS):
            assert server.post("/v1/query", body).error == "document_too_large"

    with serving(path, "--max-request", str(LARGEST)) as server:
        body = json.dumps({"text": "a" * (LARGEST - 20)}).encode()
        assert server.post("/v1/query", body).error == "document_too_large"
        grown = growth(server, overload)
        assert grown <= CLIENTS * LARGEST / 4, f"{grown / MB:.0f} MB"


def unfinished(wire: RawConnection) -> None:
    """Send the largest body except its end; blocks until the server reads it."""
    wire.send(message("POST", "/v1/query", b'{"text": "a"'.ljust(LARGEST - 1), length=LARGEST))


def unfinished_chunks(wire: RawConnection) -> None:
    """Send the same in small chunks."""
    head = message("POST", "/v1/query", b"", "Transfer-Encoding: chunked", "Content-Type: application/json")
    wire.send(head + (b"400\r\n" + b" " * 1024 + b"\r\n") * (LARGEST // 1024))


def many_at_once(wire: RawConnection) -> None:
    """Send many pipelined requests without reading."""
    wire.send(message("POST", "/v1/query", b'{"text": "a b"}') * 5000)


def unheard(wire: RawConnection) -> None:
    """Request more than the kernel buffers without reading, and wait until its buffer is full."""
    wire.send(message("GET", "/v1/documents/large") * 16)
    before = -1
    while wire.is_held() and ((unsent := wire.unsent()) == 0 or unsent != before):
        before = unsent
        time.sleep(0.05)


def headers(wire: RawConnection) -> None:
    """Send as many headers as allowed, without their end."""
    wire.send(b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 20_000 + b"\r\n" + b"C: d\r\n" * 98)


@pytest.mark.parametrize("misbehave", [unfinished, unfinished_chunks, unheard, many_at_once, headers])
def test_memory_is_bounded_by_the_settings(path: Path, misbehave: Callable[[RawConnection], None]) -> None:
    """Not by the number of clients; afterwards the server works normally.

    Request bodies and responses are bounded by settings, and each connection by its read buffer. Without these limits,
    each connection would hold a whole body, or a response of half its size.
    """
    bound = COPIES * HELD + CLIENTS * PER_CLIENT + LOOSE
    assert 2 * bound < CLIENTS * LARGEST

    def overload() -> None:
        with ExitStack() as stack, ThreadPoolExecutor(IN_FLIGHT) as pool:
            wires = [stack.enter_context(RawConnection(server, receive_buffer_bytes=4096)) for _ in range(CLIENTS)]
            list(pool.map(misbehave, wires))
            assert wait_until(server.is_idle)
            assert server.get("/healthz").status == 200

    options = ("--max-request", str(LARGEST), "--max-in-flight", str(IN_FLIGHT), "--receive-timeout", "5")
    with serving(path, *options) as server:
        text = json.dumps({"text": "word " * (MB // 6)}).encode()
        for _ in range(5):
            assert server.post("/v1/query", text).status == 200
        grown = growth(server, overload)
        assert grown <= bound, f"{grown / MB:.0f} MB"
        assert wait_until(lambda: server.get("/v1/stats").status == 200)
        assert_works(server)
