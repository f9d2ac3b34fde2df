"""Expensive requests: they neither delay other clients nor use unbounded memory."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import minwise as mw
from server.faults import FaultSwitches
from server.raw_connections import RawConnection, message, wait_until
from server.running import Answer, Server, serving

MB = 10**6
LARGEST = 16 * MB
IN_FLIGHT, COMPARED = 64, 8
# Metadata of up to sixteen times the largest object is decoded; and the memory of a list, which is three bytes of JSON.
DECODED, PER_OBJECT, SHORTEST = 16 * 64_000, 88, 3
# Additional memory of a body: its growth while it arrives, and a copy of one of its objects.
COPIES, LOOSE = 3, 25 * MB
BOUND = COPIES * LARGEST + DECODED // SHORTEST * PER_OBJECT + LOOSE
TRIES = 3
# The same amount of white space takes a third of the time of skipping lists, and a fortieth of that of decoding them.
LONGER = 12


@dataclass(frozen=True)
class Pressed:
    """A server, its fault switches, and its memory when idle."""

    server: Server
    faults: FaultSwitches
    idle_bytes: int


@contextmanager
def pressing(folder: Path) -> Iterator[Pressed]:
    """Run a server with the default limits and a longer receive timeout."""
    with mw.Index.create(folder / "news.mw", threshold=0.5, shingle="word:2", store_text=True) as index:
        index.add(["a"], ["one two three four"])
    faults = FaultSwitches(folder / "faults")
    options = ("--receive-timeout", "60")
    with serving(folder / "news.mw", *options, environment=faults.environment) as server:
        assert server.post("/v1/query", {"text": "one two three four"}).status == 200
        yield Pressed(server, faults, server.memory("VmRSS"))


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pressed]:
    """Serve the tests of concurrency limits."""
    with pressing(tmp_path_factory.mktemp("pressed")) as running:
        yield running


@pytest.fixture(scope="module")
def weighed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pressed]:
    """Serve the tests that measure memory."""
    with pressing(tmp_path_factory.mktemp("weighed")) as running:
        yield running


def assert_answers(server: Server) -> None:
    """Check that a small query is answered."""
    answer = server.post("/v1/query", {"text": "one two three four"})
    assert (answer.status, [hit["id"] for hit in answer.json["hits"]]) == (200, ["a"])


def assert_busy(answer: Answer) -> None:
    """Check a 503 with Retry-After."""
    assert (answer.status, answer.error, answer.headers["retry-after"]) == (503, "busy", "1")


def filled(start: bytes, piece: bytes, end: bytes) -> bytes:
    """Return a body of the largest size, made of repeated pieces."""
    count = (LARGEST - len(start + end)) // (len(piece) + 1)
    return (start + (b"," + piece) * count).replace(b"[,", b"[", 1).replace(b"{,", b"{", 1).ljust(
        LARGEST - len(end)
    ) + end


# Requests of the largest size that would be hundreds of megabytes of Python objects: path, parts of the body, and
# expected statuses.
LISTS = b'{"a":[%b[]]}' % (b"[]," * 21_000)
HEAVY: dict[str, tuple[str, tuple[bytes, bytes, bytes], tuple[int, ...]]] = {
    "lists in where": ("/v1/query", (b'{"text":"a","where":{"a":[', b"[]", b"]}}"), (413,)),
    "names in where": ("/v1/query", (b'{"text":"a","where":{', b'"":0', b"}}"), (413,)),
    "objects in metadata": ("/v1/documents", (b'{"id":1,"text":"","metadata":{"a":[', b"{}", b"]}}"), (413,)),
    "lists in many documents": (
        "/v1/documents",
        (b'{"documents":[', b'{"id":1,"text":"","metadata":%b}' % LISTS, b"]}"),
        (413,),
    ),
    "a list where there should be a text": ("/v1/query", (b'{"text":[', b"[]", b"]}"), (422,)),
    "documents that are lists": ("/v1/documents", (b'{"documents":[', b"[]", b"]}"), (422,)),
}


class Pulse(threading.Thread):
    """A thread that sends health checks.

    Attributes:
        worst: The longest response time.
    """

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server, self._over = server, threading.Event()
        self.worst = 0.0

    def __enter__(self) -> "Pulse":
        self.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Send health checks until the end."""
        connection = self._server.connect()
        while not self._over.wait(0.002):
            started = time.monotonic()
            assert self._server.get("/healthz", connection=connection).status == 200
            self.worst = max(self.worst, time.monotonic() - started)
        connection.close()


@pytest.mark.parametrize("kind", HEAVY)
def test_expensive_json_is_refused_before_decoding(weighed: Pressed, kind: str) -> None:
    """Memory is bounded by the bytes of the request and by what may be decoded."""
    path, parts, statuses = HEAVY[kind]
    body = filled(*parts)
    Path(f"/proc/{weighed.server.process.pid}/clear_refs").write_text("5")
    answer = weighed.server.post(path, body)
    assert answer.status in statuses, answer
    assert answer.error in ("document_too_large", "request_too_large", "too_deep", "bad_value")
    grown = weighed.server.memory("VmHWM") - weighed.idle_bytes
    assert grown <= BOUND, f"{grown / MB:.0f} MB"
    assert_answers(weighed.server)


def test_deep_nesting_does_not_overflow_the_stack(weighed: Pressed) -> None:
    brackets = LARGEST // 2 - 20
    body = b'{"id":1,"text":"","metadata":{"a":' + b"[" * brackets + b"]" * brackets + b"}}"
    answer = weighed.server.post("/v1/documents", body)
    assert (answer.status, answer.error) in ((413, "document_too_large"), (422, "too_deep"))
    assert_answers(weighed.server)


def held_up(server: Server, path: str, body: bytes) -> float:
    """Return how long a request delays others, the minimum of several tries."""
    worst = []
    for _ in range(TRIES):
        with Pulse(server) as pulse:
            assert server.post(path, body).status in (200, 413, 422)
        worst.append(pulse.worst)
    return min(worst)


@pytest.mark.parametrize("kind", HEAVY)
def test_expensive_json_does_not_delay_others(weighed: Pressed, kind: str) -> None:
    """Not much longer than the same amount of white space."""
    path, parts, _ = HEAVY[kind]
    plain = held_up(weighed.server, "/v1/query", b'{"text":"a"}'.ljust(LARGEST))
    assert held_up(weighed.server, path, filled(*parts)) < LONGER * plain


def test_writes_do_not_keep_out_reads_and_vice_versa(pressed: Pressed) -> None:
    """Requests beyond the limit are refused; the other kind is answered."""
    clients = IN_FLIGHT + 26
    batch = {"documents": [{"id": f"many {number}", "text": f"{number}"} for number in range(3)]}
    write = message("POST", "/v1/documents?on_duplicate_id=skip", json.dumps(batch).encode())
    read = message("POST", "/v1/query", json.dumps({"text": "one two three four"}).encode())
    for held, blocked, other in (("add", write, read), ("query", read, write)):
        with ExitStack() as stack:
            with pressed.faults.strike("hold", held):
                wires = [stack.enter_context(RawConnection(pressed.server)) for _ in range(clients)]
                for wire in wires:
                    wire.send(blocked)
                assert wait_until(lambda wires=wires: sum(wire.has_input() for wire in wires) == clients - IN_FLIGHT)  # type: ignore[misc]
                for _ in range(5):
                    with RawConnection(pressed.server) as client:
                        client.send(other)
                        assert client.read_response().status == 200
                assert sum(wire.has_input() for wire in wires) == clients - IN_FLIGHT
            answers = [wire.read_response() for wire in wires]
        refused = [answer for answer in answers if answer.status != 200]
        assert len(refused) == clients - IN_FLIGHT
        for answer in refused:
            assert_busy(answer)


def test_endless_large_requests_do_not_keep_out_small_ones(pressed: Pressed) -> None:
    large = json.dumps({"text": "one two three four".ljust(100_000)}).encode()
    small = json.dumps({"text": "one two three four".ljust(60_000)}).encode()
    with ExitStack() as stack:
        for _ in range(4):
            wire = stack.enter_context(RawConnection(pressed.server))
            wire.send(message("POST", "/v1/query", b" " * (LARGEST - 1), length=LARGEST))
        assert wait_until(pressed.server.is_idle)
        assert_busy(pressed.server.post("/v1/query", large))
        for _ in range(20):
            assert pressed.server.post("/v1/query", small).status == 200
            assert_answers(pressed.server)
        assert pressed.server.add("small", "a text").status == 200
    assert wait_until(lambda: pressed.server.post("/v1/query", large).status == 200)


def test_waiting_comparisons_are_limited(pressed: Pressed) -> None:
    """And delay no other request."""
    compare = message("POST", "/v1/compare", b'{"left": "a b", "right": "a b"}')
    with ExitStack() as stack:
        with pressed.faults.strike("hold", "compare"):
            wires = [stack.enter_context(RawConnection(pressed.server)) for _ in range(COMPARED + 3)]
            for wire in wires:
                wire.send(compare)
            assert wait_until(lambda: sum(wire.has_input() for wire in wires) == 3)
            assert_answers(pressed.server)
            assert pressed.server.get("/v1/plan?threshold=0.7").status == 200
            assert pressed.server.add("beside", "a text").status == 200
            refused = [wire for wire in wires if wire.has_input()]
            assert len(refused) == 3
            for wire in refused:
                assert_busy(wire.read_response())
        assert [wire.read_response().status for wire in wires if wire not in refused] == [200] * COMPARED
    assert pressed.server.post("/v1/compare", {"left": "a b", "right": "a b"}).json["similarity"] == 1


def test_comparisons_of_disconnected_clients_are_cancelled(pressed: Pressed) -> None:
    compare = message("POST", "/v1/compare", b'{"left": "a b", "right": "a b"}')
    with ExitStack() as stack:
        with pressed.faults.strike("hold", "compare"):
            with ExitStack() as leaving:
                for _ in range(COMPARED):
                    leaving.enter_context(RawConnection(pressed.server)).send(compare)
                assert wait_until(lambda: pressed.server.post("/v1/compare", {"left": "a", "right": "a"}).status == 503)
            assert wait_until(pressed.server.is_idle)
            wires = [stack.enter_context(RawConnection(pressed.server)) for _ in range(COMPARED)]
            for wire in wires:
                wire.send(compare)
            assert wait_until(pressed.server.is_idle)
            assert not any(wire.has_input() for wire in wires)
        assert [wire.read_response().status for wire in wires] == [200] * COMPARED
