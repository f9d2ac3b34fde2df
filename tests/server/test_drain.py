"""The end of a server: what has begun is answered, what was acknowledged is there, and nobody can hold it up."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import minwise as mw
from server.running import Server, start
from server.wires import Hiccups, Wire, message, wait_until
from server.writers import Writer

INTERRUPTED = 130
# For a machine that is busy with something else.
SLACK_SECONDS = 20.0
# Longer than any test waits: whoever trickles is not cut for being slow.
FOR_EVER = ("--receive-timeout", "600")
# A text that takes long, and so many of these as fit into the memory for requests.
LONG_WORDS, MOST_WAITING = 50_000, 200
BODY = b'{"id": "late", "text": "one two three"}'


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Server]:
    """A server that the test ends itself."""
    server = start(folder, *FOR_EVER, *options)
    try:
        yield server
    finally:
        server.end()


def half_sent(server: Server) -> Wire:
    """A request that the server has begun to read."""
    wire = Wire(server)
    wire.send(message("POST", "/v1/documents", b"", "Expect: 100-continue", length=len(BODY)))
    assert wire.hear().status == 100
    wire.send(BODY[:10])
    return wire


def is_deaf(server: Server) -> bool:
    """Whether nobody listens any more."""
    try:
        Wire(server).close()
    except ConnectionRefusedError:
        return True
    return False


def holds(folder: Path, *names: str) -> bool:
    """Whether the index is whole and has these documents, with their texts."""
    with mw.Index.open(folder) as index:
        assert index.verify() == []
        return all(index.get(name).text for name in names)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, INTERRUPTED)])
def test_what_has_begun_is_answered(folder: Path, number: int, code: int) -> None:
    """A request whose other half comes after the signal is stored and answered; new ones are not let in."""
    with running(folder) as server, half_sent(server) as wire:
        server.process.send_signal(number)
        assert wait_until(lambda: is_deaf(server))
        wire.send(BODY[10:])
        answer = wire.hear()
        assert answer.json["results"][0]["fate"] == "added"
        assert answer.headers["connection"] == "close"
        assert server.process.wait(SLACK_SECONDS) == code
    assert holds(folder, "late")


def test_a_second_sigterm_changes_nothing(folder: Path) -> None:
    """Nor a third: what has begun is answered all the same."""
    with running(folder) as server, half_sent(server) as wire:
        server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: is_deaf(server))
        for _ in range(3):
            server.process.send_signal(signal.SIGTERM)
        wire.send(BODY[10:])
        assert wire.hear().status == 200
        assert server.process.wait(SLACK_SECONDS) == 0
    assert holds(folder, "late")


def test_a_second_ctrl_c_ends_at_once(folder: Path) -> None:
    """Without waiting for those who have not sent all; the index is closed in good order."""
    with running(folder, "--drain-timeout", "600") as server, half_sent(server) as wire:
        assert server.add("before", "one two").status == 200
        server.process.send_signal(signal.SIGINT)
        assert wait_until(lambda: is_deaf(server))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(SLACK_SECONDS) == INTERRUPTED
        assert b" 200 " not in wire.rest()
    assert holds(folder, "before")


def test_idle_clients_do_not_hold_it_up(folder: Path) -> None:
    """They are hung up on at once, long before anybody's time is over."""
    with running(folder, "--drain-timeout", "600") as server, Wire(server) as idle, Wire(server) as silent:
        idle.send(message("GET", "/healthz"))
        assert idle.hear().status == 200
        silent.send(b"GET / HT")
        assert wait_until(silent.is_held)
        assert server.stop() == 0
        assert idle.hung_up()
        assert silent.hung_up()


def ending(server: Server) -> float:
    """How long it takes from SIGTERM to the end of the process, in seconds, less what a busy machine adds to it."""
    with Hiccups() as hiccups:
        started = time.monotonic()
        assert server.stop() == 0
        taken = time.monotonic() - started
    return taken - hiccups.slack_seconds


def test_who_trickles_does_not_hold_it_up(folder: Path) -> None:
    """Nor who does not take an answer: when the time to drain is over, so is the server. Who can hear is told."""
    with mw.Index.open(folder, "w") as index:
        index.add(["large"], ["word " * 180_000])
    with (
        running(folder, "--drain-timeout", "3") as server,
        half_sent(server) as wire,
        Wire(server) as headers,
        Wire(server, receive_buffer_bytes=4096) as unheard,
    ):
        headers.send(b"GET / HTTP/1.1\r\nA: ")
        unheard.send(message("GET", "/v1/documents/large") * 16)
        assert wait_until(lambda: unheard.unsent() > 0)
        assert ending(server) <= 3
        answer = wire.hear()
        assert (answer.status, answer.error, answer.headers["retry-after"]) == (503, "busy", "1")
    assert holds(folder, "large")
    with mw.Index.open(folder) as index:
        assert "late" not in index


def test_work_that_would_take_longer_does_not_hold_it_up(folder: Path) -> None:
    """What waits when the time is over is not begun any more, and each client is told so; what was done is answered.

    A query that takes a tenth of a second here stands for long work: it is asked as often as would take three times as
    long as there is. Only the one that is worked on when the time is over has to end, and the process after it.
    """
    text = " ".join(f"w{number * number % 9973}" for number in range(LONG_WORDS))
    with mw.Index.open(folder, "w") as index:
        index.add(list("abcde"), [f"{text} {letter}" for letter in "abcde"])
    question = message("POST", "/v1/query", json.dumps({"text": text}).encode())
    with running(folder, "--drain-timeout", "3", "--max-in-flight", "10000") as server, ExitStack() as stack:
        with Wire(server) as first:
            started = time.monotonic()
            first.send(question)
            assert first.hear().status == 200
            one = time.monotonic() - started
        wires = [stack.enter_context(Wire(server)) for _ in range(min(MOST_WAITING, 1 + int(9 / one)))]
        for wire in wires:
            wire.send(question)
        assert wires[0].hear().status == 200
        assert ending(server) <= 3 + max(0, one - 3 / 10)
        answers = [wire.hear() for wire in wires[1:]]
        stopped = [answer.json["error"]["message"] for answer in answers if answer.status != 200]
        assert {answer.status for answer in answers} == {200, 503}
        assert set(stopped) == {"the server stopped before this was done; try again in a second"}
    assert holds(folder, *"abcde")


def test_nothing_acknowledged_is_lost(folder: Path) -> None:
    """Some write all the while, others trickle: at the end everything is there that a client was told is there."""
    with running(folder, "--drain-timeout", "4") as server, half_sent(server):
        writers = [Writer(server, letter) for letter in "abcd"]
        for writer in writers:
            writer.start()
        assert wait_until(lambda: all(len(writer.there) >= 20 and writer.gone for writer in writers))
        assert server.stop() == 0
        for writer in writers:
            writer.join()
    assert holds(folder, *(name for writer in writers for name in writer.there))
    with mw.Index.open(folder) as index:
        assert [name for writer in writers for name in writer.gone if name in index] == []
