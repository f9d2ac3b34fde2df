"""Slow clients: each is disconnected when its time is over, and others are not affected.

A time limit is an upper bound. The delays that a busy machine adds are measured during the test.
"""

import random
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path

import pytest

import minwise as mw
from server.raw_connections import DelayMeter, RawConnection, answers_in, message, wait_until
from server.running import Server, serving

# Timeout of the server of most tests, and the default.
SECONDS, DEFAULT_SECONDS = 1.0, 10.0
# Minimum share of the timeout that a client has; clocks differ slightly.
LEAST = 0.94
# For a busy machine, where the exact time is not guaranteed.
SLACK_SECONDS = 15.0
# More responses than the kernel buffers for both sides, usually at most 6 MB and 4 MB.
LARGE_BYTES, LARGE_ANSWERS = 900_000, 16

TRICKLERS = 200
THREADS, REQUESTS, TRIES = 4, 250, 3
CROWDED_SECONDS = 2.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an index with one large document and some small ones."""
    folder = tmp_path_factory.mktemp("slow") / "news.mw"
    with mw.Index.create(folder, threshold=0.5, shingle="word:2", store_text=True) as index:
        index.add(["large"], ["word " * (LARGE_BYTES // 5)])
        draw = random.Random(5)
        index.add(list(map(str, range(200))), [prose(draw) for _ in range(200)])
    return folder


def prose(draw: random.Random) -> str:
    """Return a text of 2 KB."""
    return " ".join(f"w{draw.randrange(2000)}" for _ in range(350))


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    """Serve with a short timeout."""
    with serving(path, "--receive-timeout", str(SECONDS), "--read-only") as running:
        yield running


@dataclass(frozen=True)
class Trickle:
    """What a slow client sends.

    Attributes:
        first: Sent at once.
        drop: Sent repeatedly.
        heard: Error codes of the responses before the connection is closed.
    """

    first: bytes
    drop: bytes
    heard: tuple[str, ...] = ("too_slow",)


CHUNKS = message("POST", "/v1/query", b"", "Transfer-Encoding: chunked", "Content-Type: application/json")
TRICKLES = {
    "nothing": Trickle(b"", b""),
    "a request line": Trickle(b"GET /", b"a"),
    "headers": Trickle(b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"A: b\r\n"),
    "one header": Trickle(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ", b"b"),
    "blank lines": Trickle(b"", b"\r\n"),
    "a body": Trickle(message("POST", "/v1/query", b"{", length=10**6), b" "),
    "chunks": Trickle(CHUNKS, b"1\r\n \r\n"),
    "one chunk": Trickle(CHUNKS + b"ffff\r\n", b" "),
    "an extension of a chunk": Trickle(CHUNKS + b"1;", b"a"),
    "trailers": Trickle(CHUNKS + b"2\r\n{}\r\n0\r\n", b"A: b\r\n"),
    "a body that is refused": Trickle(message("POST", "/v1/query", b"{", length=10**9), b" ", ("request_too_large",)),
    "a body for no one": Trickle(message("POST", "/nowhere", b"{", length=10**6), b" ", ("not_found",)),
    "an upgrade, then a body": Trickle(
        message("POST", "/v1/query", b"{", "Connection: upgrade", "Upgrade: h2c", length=10**6), b" "
    ),
    "the next request": Trickle(message("GET", "/nowhere") + b"GET /", b"a", ("not_found", "too_slow")),
}


def trickle(server: Server, what: Trickle, seconds: float) -> float:
    """Send until the server has closed the connection; return the seconds."""
    started = time.monotonic()
    with RawConnection(server) as wire:
        wire.send(what.first)
        answers = answers_in(wire.read_to_end(what.drop, seconds / 50))
        answered_after = time.monotonic() - started
        while not wire.is_reset(what.drop or b"a"):
            time.sleep(seconds / 500)
        ended = time.monotonic() - started
    assert tuple(answer.error for answer in answers) == what.heard, what
    assert answered_after >= LEAST * seconds, what
    return ended


def assert_cut(server: Server, seconds: float) -> None:
    """Check that every slow client is refused, unless it was answered, and disconnected in time."""
    with DelayMeter(server) as delays, ThreadPoolExecutor(len(TRICKLES)) as pool:
        trickling = {kind: pool.submit(trickle, server, what, seconds) for kind, what in TRICKLES.items()}
        times = {kind: future.result() for kind, future in trickling.items()}
    late = seconds + delays.slack_seconds
    assert {kind: time for kind, time in times.items() if time > late} == {}, late


def test_slow_requests_are_refused(server: Server) -> None:
    """Of every kind, at the same time."""
    assert_cut(server, SECONDS)


def test_the_default_timeout_is_ten_seconds(path: Path) -> None:
    with serving(path, "--read-only") as server:
        assert server.get("/v1/stats").json["limits"]["receive_timeout"] == DEFAULT_SECONDS
        assert_cut(server, DEFAULT_SECONDS)


def test_an_idle_connection_is_closed(server: Server) -> None:
    """After the timeout, without an error message."""
    with RawConnection(server) as wire:
        wire.send(message("GET", "/healthz"))
        assert wire.read_response().status == 200
        answered = time.monotonic()
        assert wire.is_closed_silently()
        assert LEAST * SECONDS <= time.monotonic() - answered <= SECONDS + SLACK_SECONDS


def test_blank_lines_do_not_keep_a_connection(server: Server) -> None:
    """Some clients send them after a body."""
    with RawConnection(server) as wire:
        wire.send(message("GET", "/healthz"))
        assert wire.read_response().status == 200
        wire.send(b"\r\n")
        answered = time.monotonic()
        assert [answer.error for answer in answers_in(wire.read_to_end())] in ([], ["too_slow"])
        assert time.monotonic() - answered <= SECONDS + SLACK_SECONDS


def test_a_response_that_is_not_read_closes_the_connection(server: Server) -> None:
    with RawConnection(server, receive_buffer_bytes=4096) as wire:
        wire.send(message("GET", "/v1/documents/large") * LARGE_ANSWERS)
        started = time.monotonic()
        assert wait_until(wire.is_held)
        assert wait_until(lambda: not wire.is_held(), SECONDS + SLACK_SECONDS)
        assert time.monotonic() - started >= LEAST * SECONDS
        assert len(wire.read_to_end()) < LARGE_BYTES * LARGE_ANSWERS


def test_a_response_may_be_read_slowly(server: Server) -> None:
    with RawConnection(server, receive_buffer_bytes=4096) as wire:
        wire.send(message("GET", "/v1/documents/large"))
        time.sleep(SECONDS / 4)
        assert len(wire.read_response().json["text"]) == LARGE_BYTES


def test_a_body_may_arrive_slowly(server: Server) -> None:
    body = b'{"text": "a b c"}'
    with RawConnection(server) as wire:
        wire.send(message("POST", "/v1/query", length=len(body)))
        for place in range(len(body)):
            wire.send(body[place : place + 1])
            time.sleep(SECONDS / 2 / len(body))
        assert wire.read_response().json["hits"] == []


class SlowClients:
    """Slow clients of all kinds, which reconnect when they are disconnected."""

    def __init__(self, server: Server, count: int) -> None:
        self._server, self._draw = server, random.Random(3)
        self._wires = [self._come() for _ in range(count)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._trickle)

    def __enter__(self) -> "SlowClients":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        self._thread.join()
        for wire, _ in self._wires:
            wire.close()

    def _come(self) -> tuple[RawConnection, Trickle]:
        wire, what = RawConnection(self._server), self._draw.choice(list(TRICKLES.values()))
        wire.send(what.first)
        return wire, what

    def _trickle(self) -> None:
        """Send something on each connection once a second."""
        for place in cycle(range(len(self._wires))):
            if self._over.wait(1 / len(self._wires)):
                return
            wire, what = self._wires[place]
            wire.send(what.drop)
            if wire.has_input():
                wire.close()
                self._wires[place] = self._come()


class NormalClient:
    """A client that sends queries on one connection and records response times."""

    def __init__(self, server: Server) -> None:
        self._server, self._connection = server, server.connect()
        self._asked = time.monotonic()
        self.seconds: list[float] = []

    def ask(self, text: str) -> None:
        """Send a query; the connection may be closed only if it was idle for long."""
        started = time.monotonic()
        try:
            self._hear(text)
        except ConnectionError:
            assert time.monotonic() - self._asked >= CROWDED_SECONDS / 10, "closed although not idle"
            self._connection.close()
            self._connection = self._server.connect()
            self._hear(text)
        self._asked = started
        self.seconds.append(time.monotonic() - started)

    def _hear(self, text: str) -> None:
        answer = self._server.post("/v1/query", {"text": text}, connection=self._connection)
        assert answer.status == 200, answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def p99s(servers: list[Server], texts: list[str]) -> list[float]:
    """Return the 99th percentile of the response times of each server; clients alternate between servers."""

    def ask(share: list[str]) -> list[list[float]]:
        with ExitStack() as stack:
            clients = [stack.enter_context(closing(NormalClient(server))) for server in servers]
            for text in share:
                for client in clients:
                    client.ask(text)
        return [client.seconds for client in clients]

    with ThreadPoolExecutor(THREADS) as pool:
        shares = list(pool.map(ask, [texts[number::THREADS] for number in range(THREADS)]))
    return [statistics.quantiles(list(chain(*of_server)), n=100)[-1] for of_server in zip(*shares, strict=True)]


@pytest.mark.parametrize("most", [1000, TRICKLERS // 2])
def test_slow_clients_do_not_affect_others(path: Path, most: int) -> None:
    """With 200 slow connections no other client is refused, and p99 is at most twice as long.

    Also with a maximum of half as many connections, so that some are evicted all the time. The same clients alternate
    with a second server without slow clients, since other processes of the machine slow down both.
    """
    draw = random.Random(4)
    texts = [prose(draw) for _ in range(THREADS * REQUESTS)]
    options = ("--read-only", "--receive-timeout", str(CROWDED_SECONDS), "--max-connections", str(most))
    with serving(path, *options) as quiet, serving(path, *options) as crowded, SlowClients(crowded, TRICKLERS):
        ratios: list[float] = []
        while len(ratios) < TRIES and min(ratios, default=3) > 2:
            alone, among = p99s([quiet, crowded], texts)
            ratios.append(among / alone)
        assert min(ratios) <= 2, ratios
