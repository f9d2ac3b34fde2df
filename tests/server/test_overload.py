"""More than can be served: the rest is told to come again, memory does not grow, and afterwards all is as before."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import minwise as mw
from server.running import Answer, Server, serving
from server.wires import Wire, message, wait_until

MB = 10**6
# What every crowd below is at least: so many clients at a time.
CLIENTS = 100
# So many are worked on at a time, and so many of the crowd come at a time.
IN_FLIGHT = 4
# The largest request; four of these are held at a time, as bodies and as answers.
LARGEST = 2 * MB
HELD = 4 * LARGEST
# What a connection may hold beside: as much as is buffered before reading or writing pauses.
PER_CLIENT = 2 * 64 * 1024
# What Python and its allocator may do with all that: a copy of each, and pieces of pages.
COPIES, LOOSE = 2, 40 * MB


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An index with one large document."""
    folder = tmp_path / "news.mw"
    with mw.Index.create(folder, threshold=0.5, shingle="word:2", store="text") as index:
        index.add(["large"], ["word " * (MB // 5)])
    return folder


def assert_busy(answer: Answer) -> None:
    """The client is told to come again, and when."""
    assert (answer.status, answer.error) == (503, "busy")
    assert answer.headers["retry-after"] == "1"


def assert_works(server: Server) -> None:
    """It answers as if nothing had been."""
    assert server.add("afterwards", "one two three").status == 200
    assert [hit["id"] for hit in server.post("/v1/query", {"text": "one two three"}).json["hits"]] == ["afterwards"]
    assert server.get("/readyz").status == 200


def test_more_requests_than_are_worked_on(path: Path) -> None:
    """Some are answered, the others are told to come again, at once; and probes are always answered."""
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


def test_more_connections_than_are_kept(path: Path) -> None:
    """Whoever comes is let in, and whoever has been idle for longest is hung up on, without a word."""
    with serving(path, "--max-connections", "20", "--receive-timeout", "60") as server, ExitStack() as crowd:
        wires = [crowd.enter_context(Wire(server)) for _ in range(20)]
        for wire in wires:
            wire.send(message("GET", "/healthz"))
            assert wire.hear().status == 200
        for _ in range(3):
            wires.append(crowd.enter_context(Wire(server)))
            wires[-1].send(message("GET", "/healthz"))
            assert wires[-1].hear().status == 200
        for wire in wires[:3]:
            assert wire.hung_up()
        for wire in wires[3:]:
            wire.send(message("GET", "/healthz"))
            assert wire.hear().status == 200
        assert counted(server, "minwise_connections") == 20
        assert_works(server)


def test_many_more_connections_than_are_kept(path: Path) -> None:
    """Ten times as many, who say nothing: whoever comes and asks is answered all the while, and they are told to go."""
    with serving(path, "--max-connections", "20", "--receive-timeout", "60") as server, ExitStack() as crowd:
        silent = []
        for number in range(200):
            silent.append(crowd.enter_context(Wire(server)))
            silent[-1].send(message("POST", "/v1/query", b"{", length=100)[: 10 * (number % 20)])
            if number % 10 == 0:
                assert server.post("/v1/query", {"text": "a b c"}).status == 200
        for wire in silent[:180]:
            assert_busy(wire.hear())
            assert wire.hung_up()
        assert not any(wire.is_over() for wire in silent[-19:])  # one went for the metrics, at most
        assert 180 <= counted(server, 'minwise_refused_total{code="busy"}') <= 181
        crowd.close()
        assert wait_until(lambda: counted(server, "minwise_connections") == 1)
        assert_works(server)


def counted(server: Server, name: str) -> float:
    """A number of the metrics."""
    lines = server.get("/metrics").body.decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def growth(server: Server, overload: Callable[[], None]) -> int:
    """By how many bytes memory grows at most, above what it was before."""
    before = server.memory("VmRSS")
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    overload()
    return server.memory("VmHWM") - before


def test_refused_requests_leave_nothing(path: Path) -> None:
    """One after another, each as large as may be: the bodies of those that were refused are not kept."""

    def overload() -> None:
        for _ in range(CLIENTS):
            assert server.post("/v1/query", body).error == "document_too_large"

    with serving(path, "--max-request", str(LARGEST)) as server:
        body = json.dumps({"text": "a" * (LARGEST - 20)}).encode()
        assert server.post("/v1/query", body).error == "document_too_large"
        grown = growth(server, overload)
        assert grown <= CLIENTS * LARGEST / 4, f"{grown / MB:.0f} MB"


def unfinished(wire: Wire) -> None:
    """Sends the largest body but for its end, which may take until somebody listens."""
    wire.send(message("POST", "/v1/query", b'{"text": "a"'.ljust(LARGEST - 1), length=LARGEST))


def unfinished_chunks(wire: Wire) -> None:
    """The same in small chunks, without a length."""
    head = message("POST", "/v1/query", b"", "Transfer-Encoding: chunked", "Content-Type: application/json")
    wire.send(head + (b"400\r\n" + b" " * 1024 + b"\r\n") * (LARGEST // 1024))


def many_at_once(wire: Wire) -> None:
    """Requests upon requests, without a look at the answers."""
    wire.send(message("POST", "/v1/query", b'{"text": "a b"}') * 5000)


def unheard(wire: Wire) -> None:
    """Asks for more than the kernel can keep, and does not look at it; waits until the kernel is full."""
    wire.send(message("GET", "/v1/documents/large") * 16)
    before = -1
    while wire.is_held() and ((unsent := wire.unsent()) == 0 or unsent != before):
        before = unsent
        time.sleep(0.05)


def headers(wire: Wire) -> None:
    """As many headers as are allowed, but for the end."""
    wire.send(b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 20_000 + b"\r\n" + b"C: d\r\n" * 98)


@pytest.mark.parametrize("crowd", [unfinished, unfinished_chunks, unheard, many_at_once, headers])
def test_memory_does_not_grow_with_the_crowd(path: Path, crowd: Callable[[Wire], None]) -> None:
    """What is held is bounded by settings and not by what comes; afterwards it is served as before.

    Of bodies and of answers so much is held as settings say, and of each connection what is read at a time. If nobody
    counted, there would be a whole body of each, or an answer of half its size.
    """
    bound = COPIES * HELD + CLIENTS * PER_CLIENT + LOOSE
    assert 2 * bound < CLIENTS * LARGEST

    def overload() -> None:
        with ExitStack() as stack, ThreadPoolExecutor(IN_FLIGHT) as pool:
            wires = [stack.enter_context(Wire(server, receive_buffer_bytes=4096)) for _ in range(CLIENTS)]
            list(pool.map(crowd, wires))
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
