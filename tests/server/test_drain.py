"""Shutdown: requests in progress are answered, acknowledged changes are stored, and no client delays it."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import minwise as mw
from server.raw_connections import DelayMeter, RawConnection, message, wait_until
from server.running import Server, start
from server.writers import Writer

INTERRUPTED = 130
# For a busy machine.
SLACK_SECONDS = 20.0
# Longer than any test: slow clients are not disconnected for being slow.
NO_TIMEOUT = ("--receive-timeout", "600")
# A text with a slow query, and as many of them as fit into the buffer of request bodies.
LONG_WORDS, MOST_WAITING = 50_000, 200
BODY = b'{"id": "late", "text": "one two three"}'


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Server]:
    """Run a server that the test stops."""
    server = start(folder, *NO_TIMEOUT, *options)
    try:
        yield server
    finally:
        server.end()


def half_sent(server: Server) -> RawConnection:
    """Send a part of a request that the server has started to read."""
    wire = RawConnection(server)
    wire.send(message("POST", "/v1/documents", b"", "Expect: 100-continue", length=len(BODY)))
    assert wire.read_response().status == 100
    wire.send(BODY[:10])
    return wire


def is_refusing(server: Server) -> bool:
    """Return whether connections are refused."""
    try:
        RawConnection(server).close()
    except (ConnectionRefusedError, ConnectionResetError):  # a reset: between connecting and accepting
        return True
    return False


def contains(folder: Path, *names: str) -> bool:
    """Return whether the index is undamaged and has these documents with their texts."""
    with mw.Index.open(folder) as index:
        assert index.verify() == []
        return all(index.get(name).text for name in names)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, INTERRUPTED)])
def test_requests_in_progress_are_answered(folder: Path, number: int, code: int) -> None:
    """Also if the rest arrives after the signal; new connections are refused."""
    with running(folder) as server, half_sent(server) as wire:
        server.process.send_signal(number)
        assert wait_until(lambda: is_refusing(server))
        wire.send(BODY[10:])
        answer = wire.read_response()
        assert answer.json["results"][0]["fate"] == "added"
        assert answer.headers["connection"] == "close"
        assert server.process.wait(SLACK_SECONDS) == code
    assert contains(folder, "late")


def test_a_second_sigterm_changes_nothing(folder: Path) -> None:
    with running(folder) as server, half_sent(server) as wire:
        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: is_refusing(server))
        for _ in range(3):
            server.process.send_signal(signal.SIGTERM)
        wire.send(BODY[10:])
        assert wire.read_response().status == 200
        assert server.process.wait(SLACK_SECONDS) == 0
    assert contains(folder, "late")


def test_a_second_ctrl_c_stops_immediately(folder: Path) -> None:
    """Without waiting for incomplete requests; the index is closed properly."""
    with running(folder, "--drain-timeout", "600") as server, half_sent(server) as wire:
        assert server.add("before", "one two").status == 200
        server.process.send_signal(signal.SIGINT)
        assert wait_until(lambda: is_refusing(server))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(SLACK_SECONDS) == INTERRUPTED
        assert b" 200 " not in wire.read_to_end()
    assert contains(folder, "before")


def test_idle_clients_do_not_delay_shutdown(folder: Path) -> None:
    with (
        running(folder, "--drain-timeout", "600") as server,
        RawConnection(server) as idle,
        RawConnection(server) as silent,
    ):
        idle.send(message("GET", "/healthz"))
        assert idle.read_response().status == 200
        silent.send(b"GET / HT")
        assert wait_until(silent.is_held)
        assert server.stop() == 0
        assert idle.is_closed_silently()
        assert silent.is_closed_silently()


def ending(server: Server) -> float:
    """Return the seconds from SIGTERM to the exit, minus the measured delays of the machine."""
    with DelayMeter() as delays:
        started = time.monotonic()
        assert server.stop() == 0
        taken = time.monotonic() - started
    return taken - delays.slack_seconds


def test_slow_clients_do_not_delay_shutdown(folder: Path) -> None:
    """Neither slow senders nor clients that do not read; those that can be reached get an error."""
    with mw.Index.open(folder, "w") as index:
        index.add(["large"], ["word " * 180_000])
    with (
        running(folder, "--drain-timeout", "3") as server,
        half_sent(server) as wire,
        RawConnection(server) as headers,
        RawConnection(server, receive_buffer_bytes=4096) as unheard,
    ):
        headers.send(b"GET / HTTP/1.1\r\nA: ")
        unheard.send(message("GET", "/v1/documents/large") * 16)
        assert wait_until(lambda: unheard.unsent() > 0)
        assert ending(server) <= 3
        answer = wire.read_response()
        assert (answer.status, answer.error, answer.headers["retry-after"]) == (503, "busy", "1")
    assert contains(folder, "large")
    with mw.Index.open(folder) as index:
        assert "late" not in index


def test_queued_work_does_not_delay_shutdown(folder: Path) -> None:
    """Waiting requests are refused when the time is over; finished ones are answered.

    A query of a tenth of a second is sent often enough to take three times the drain timeout. Only the one in progress
    has to finish before the process exits.
    """
    text = " ".join(f"w{number * number % 9973}" for number in range(LONG_WORDS))
    with mw.Index.open(folder, "w") as index:
        index.add(list("abcde"), [f"{text} {letter}" for letter in "abcde"])
    question = message("POST", "/v1/query", json.dumps({"text": text}).encode())
    with running(folder, "--drain-timeout", "3", "--max-in-flight", "10000") as server, ExitStack() as stack:
        with RawConnection(server) as first:
            started = time.monotonic()
            first.send(question)
            assert first.read_response().status == 200
            one = time.monotonic() - started
        wires = [stack.enter_context(RawConnection(server)) for _ in range(min(MOST_WAITING, 1 + int(9 / one)))]
        for wire in wires:
            wire.send(question)
        assert wires[0].read_response().status == 200
        # Half way between the drain timeout and the time of all that waits; a busy machine is late by milliseconds.
        assert ending(server) <= (3 + len(wires) * one) / 2
        answers = [wire.read_response() for wire in wires[1:]]
        stopped = [answer.json["error"]["message"] for answer in answers if answer.status != 200]
        assert {answer.status for answer in answers} == {200, 503}
        assert set(stopped) == {"the server stopped before this was done; try again in a second"}
    assert contains(folder, *"abcde")


def test_nothing_acknowledged_is_lost(folder: Path) -> None:
    """Several clients write while another one sends slowly."""
    with running(folder, "--drain-timeout", "4") as server, half_sent(server):
        writers = [Writer(server, letter) for letter in "abcd"]
        for writer in writers:
            writer.start()
        assert wait_until(lambda: all(len(writer.there) >= 20 and writer.gone for writer in writers))
        assert server.stop() == 0
        for writer in writers:
            writer.join()
    assert contains(folder, *(name for writer in writers for name in writer.there))
    with mw.Index.open(folder) as index:
        assert [name for writer in writers for name in writer.gone if name in index] == []
