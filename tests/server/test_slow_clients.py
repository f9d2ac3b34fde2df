"""Clients that take their time: each is cut when the time is over, and nobody else notices.

A limit of time is a promise in one direction: by then it is over. What a busy machine adds to it is measured meanwhile.
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
from server.running import Server, serving
from server.wires import Hiccups, Wire, answers_in, message, wait_until

# Of the server of most tests, and of one without settings.
SECONDS, DEFAULT_SECONDS = 1.0, 10.0
# The share of its time that a client has at least; clocks are a little apart.
LEAST = 0.94
# For what is no promise to the second, on a machine that is busy with something else.
SLACK_SECONDS = 15.0
# Answers that are too many for what the kernel keeps for both sides: it is 6 MB and 4 MB at most, usually.
LARGE_BYTES, LARGE_ANSWERS = 900_000, 16

TRICKLERS = 200
THREADS, REQUESTS, TRIES = 4, 250, 3
CROWDED_SECONDS = 2.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with one large document and some small ones."""
    folder = tmp_path_factory.mktemp("slow") / "news.mw"
    with mw.Index.create(folder, threshold=0.5, shingle="word:2", store="text") as index:
        index.add(["large"], ["word " * (LARGE_BYTES // 5)])
        draw = random.Random(5)
        index.add(list(map(str, range(200))), [prose(draw) for _ in range(200)])
    return folder


def prose(draw: random.Random) -> str:
    """A text of 2 KB."""
    return " ".join(f"w{draw.randrange(2000)}" for _ in range(350))


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    """A server that does not wait long."""
    with serving(path, "--receive-timeout", str(SECONDS), "--read-only") as running:
        yield running


@dataclass(frozen=True)
class Trickle:
    """What is sent at once, and what is then sent bit by bit, for ever.

    Attributes:
        first: Sent at once.
        drop: Sent again and again.
        heard: What the server says before it hangs up: the codes of errors.
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
    """Sends until the server has hung up and does not listen either; how long that took, in seconds."""
    started = time.monotonic()
    with Wire(server) as wire:
        wire.send(what.first)
        answers = answers_in(wire.rest(what.drop, seconds / 50))
        told = time.monotonic() - started
        while not wire.is_cut(what.drop or b"a"):
            time.sleep(seconds / 500)
        ended = time.monotonic() - started
    assert tuple(answer.error for answer in answers) == what.heard, what
    assert told >= LEAST * seconds, what
    return ended


def assert_cut(server: Server, seconds: float) -> None:
    """Whatever trickles is told that it is too slow, unless it has its answer already, and is gone within its time."""
    with Hiccups(server) as hiccups, ThreadPoolExecutor(len(TRICKLES)) as pool:
        trickling = {kind: pool.submit(trickle, server, what, seconds) for kind, what in TRICKLES.items()}
        times = {kind: future.result() for kind, future in trickling.items()}
    late = seconds + hiccups.slack_seconds
    assert {kind: time for kind, time in times.items() if time > late} == {}, late


def test_requests_that_trickle_are_cut(server: Server) -> None:
    """Of every kind, at the same time."""
    assert_cut(server, SECONDS)


def test_the_usual_time_is_ten_seconds(path: Path) -> None:
    """Without settings."""
    with serving(path, "--read-only") as server:
        assert server.get("/v1/stats").json["limits"]["receive_timeout"] == DEFAULT_SECONDS
        assert_cut(server, DEFAULT_SECONDS)


def test_a_connection_without_requests_is_closed(server: Server) -> None:
    """After an answer the client may ask again for a while; then the server hangs up without a word."""
    with Wire(server) as wire:
        wire.send(message("GET", "/healthz"))
        assert wire.hear().status == 200
        answered = time.monotonic()
        assert wire.hung_up()
        assert LEAST * SECONDS <= time.monotonic() - answered <= SECONDS + SLACK_SECONDS


def test_blank_lines_do_not_keep_a_connection(server: Server) -> None:
    """Such as some clients send after a body: they are no request, and no reason to wait for ever."""
    with Wire(server) as wire:
        wire.send(message("GET", "/healthz"))
        assert wire.hear().status == 200
        wire.send(b"\r\n")
        answered = time.monotonic()
        assert [answer.error for answer in answers_in(wire.rest())] in ([], ["too_slow"])
        assert time.monotonic() - answered <= SECONDS + SLACK_SECONDS


def test_an_answer_that_nobody_takes(server: Server) -> None:
    """The server does not keep it: it hangs up, with the rest unsaid."""
    with Wire(server, receive_buffer_bytes=4096) as wire:
        wire.send(message("GET", "/v1/documents/large") * LARGE_ANSWERS)
        started = time.monotonic()
        assert wait_until(wire.is_held)
        assert wait_until(lambda: not wire.is_held(), SECONDS + SLACK_SECONDS)
        assert time.monotonic() - started >= LEAST * SECONDS
        assert len(wire.rest()) < LARGE_BYTES * LARGE_ANSWERS


def test_an_answer_that_is_taken_slowly_but_in_time(server: Server) -> None:
    """A client may look elsewhere for a while."""
    with Wire(server, receive_buffer_bytes=4096) as wire:
        wire.send(message("GET", "/v1/documents/large"))
        time.sleep(SECONDS / 4)
        assert len(wire.hear().json["text"]) == LARGE_BYTES


def test_a_body_that_comes_slowly_but_in_time(server: Server) -> None:
    """Half of the time is enough."""
    body = b'{"text": "a b c"}'
    with Wire(server) as wire:
        wire.send(message("POST", "/v1/query", length=len(body)))
        for place in range(len(body)):
            wire.send(body[place : place + 1])
            time.sleep(SECONDS / 2 / len(body))
        assert wire.hear().json["hits"] == []


class Crowd:
    """Clients that trickle, of all kinds; whoever is cut comes again."""

    def __init__(self, server: Server, count: int) -> None:
        self._server, self._draw = server, random.Random(3)
        self._wires = [self._come() for _ in range(count)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._trickle)

    def __enter__(self) -> "Crowd":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        self._thread.join()
        for wire, _ in self._wires:
            wire.close()

    def _come(self) -> tuple[Wire, Trickle]:
        wire, what = Wire(self._server), self._draw.choice(list(TRICKLES.values()))
        wire.send(what.first)
        return wire, what

    def _trickle(self) -> None:
        """Each says something once in a second."""
        for place in cycle(range(len(self._wires))):
            if self._over.wait(1 / len(self._wires)):
                return
            wire, what = self._wires[place]
            wire.send(what.drop)
            if wire.is_over():
                wire.close()
                self._wires[place] = self._come()


class Honest:
    """A client that asks again and again on one connection, and remembers how long it waited for answers."""

    def __init__(self, server: Server) -> None:
        self._server, self._connection = server, server.connect()
        self._asked = time.monotonic()
        self.seconds: list[float] = []

    def ask(self, text: str) -> None:
        """Asks once; only if it was silent for long itself, since it asked before, it may have been hung up on."""
        started = time.monotonic()
        try:
            self._hear(text)
        except ConnectionError:
            assert time.monotonic() - self._asked >= CROWDED_SECONDS / 10, "not idle, and hung up on"
            self._connection.close()
            self._connection = self._server.connect()
            self._hear(text)
        self._asked = started
        self.seconds.append(time.monotonic() - started)

    def _hear(self, text: str) -> None:
        answer = self._server.post("/v1/query", {"text": text}, connection=self._connection)
        assert answer.status == 200, answer

    def close(self) -> None:
        """Hangs up."""
        self._connection.close()


def p99s(servers: list[Server], texts: list[str]) -> list[float]:
    """How long 99 of 100 requests of honest clients take at most, in seconds; each asks all servers by turns."""

    def ask(share: list[str]) -> list[list[float]]:
        with ExitStack() as stack:
            clients = [stack.enter_context(closing(Honest(server))) for server in servers]
            for text in share:
                for client in clients:
                    client.ask(text)
        return [client.seconds for client in clients]

    with ThreadPoolExecutor(THREADS) as pool:
        shares = list(pool.map(ask, [texts[number::THREADS] for number in range(THREADS)]))
    return [statistics.quantiles(list(chain(*of_server)), n=100)[-1] for of_server in zip(*shares, strict=True)]


@pytest.mark.parametrize("most", [1000, TRICKLERS // 2])
def test_honest_clients_do_not_notice(path: Path, most: int) -> None:
    """While 200 connections trickle, whoever is cut coming again, nobody is refused and p99 is at most twice as long.

    Also if there is room for half of them only, so that all the while some have to go for others. The same clients ask
    a second server by turns, to which nobody trickles: what else runs on the machine slows down both.
    """
    draw = random.Random(4)
    texts = [prose(draw) for _ in range(THREADS * REQUESTS)]
    options = ("--read-only", "--receive-timeout", str(CROWDED_SECONDS), "--max-connections", str(most))
    with serving(path, *options) as quiet, serving(path, *options) as crowded, Crowd(crowded, TRICKLERS):
        ratios: list[float] = []
        while len(ratios) < TRIES and min(ratios, default=3) > 2:
            alone, among = p99s([quiet, crowded], texts)
            ratios.append(among / alone)
        assert min(ratios) <= 2, ratios
