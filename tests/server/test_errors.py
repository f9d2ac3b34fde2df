"""Every error code is provoked over HTTP, and has its status and shape."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import minwise as mw
from minwise.server.errors import CODES
from minwise.server.openapi import MEANINGS, error_codes
from minwise.server.routes import ROUTES
from minwise.server.settings import SIZES
from minwise.server.tokens import make_token
from server.raw_connections import RawConnection, message, wait_until
from server.running import Answer, Server, serving

# Faults that no request can cause are injected before the server starts. Responses must not contain the secrets.
FAULTS = """
import errno
import os

import minwise as mw
from minwise.errors import FormatError
from minwise.server.service import Service


def no_room(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/secret/place")


def damage(*_, **__):
    raise FormatError("/a/secret/place: damaged")


def bug(*_, **__):
    raise ZeroDivisionError("a secret detail")


mw.Index.add_each, mw.Index.query_many, Service.compare = no_room, damage, bug
"""
# Size of a request to the server with a small buffer: more than is always accepted; four of them fill the buffer.
LARGEST = 100_000


def sizes(most: int) -> list[str]:
    """Return options by which all sizes are at most that of a request."""
    return [option for name in SIZES for option in (f"--{name.replace('_', '-')}", str(most))]


OPTIONS = {
    "usual": [*sizes(10_000), "--max-document", "100", "--max-documents", "2", "--max-depth", "3"],
    "narrow": sizes(LARGEST),
    "impatient": ["--receive-timeout", "1"],
    "fixed": ["--read-only"],
    "guarded": ["--token-file", "tokens"],
    "faulty": [],
}


class Servers:
    """A server of each kind with its own index, started on first use."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._running: dict[str, Server] = {}

    def __getitem__(self, kind: str) -> Server:
        if kind not in self._running:
            self._running[kind] = self._start(kind, self._folder / kind)
        return self._running[kind]

    def _start(self, kind: str, folder: Path) -> Server:
        path = folder / "news.mw"
        folder.mkdir()
        with mw.Index.create(path, shingle="word:2") as index:
            index.add(["a"], ["the cat sat on the mat"])
        token = make_token(folder / "tokens", ["read"], "reader")
        (folder / "sitecustomize.py").write_text(FAULTS if kind == "faulty" else "")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            server = self._stack.enter_context(serving(path, *OPTIONS[kind], environment={"PYTHONPATH": str(folder)}))
        server.token = token if kind == "guarded" else None
        return server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Provide the servers, which must all exit with code 0."""
    with ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp("servers"), stack)


def say(server: Server, data: bytes) -> Answer:
    """Return the response to raw bytes."""
    with RawConnection(server) as wire:
        wire.send(data)
        return wire.read_response()


def come_last(server: Server) -> Answer:
    """Return the response to the last of five requests that together exceed the buffer and do not end."""
    with ExitStack() as stack:
        wires = [stack.enter_context(RawConnection(server)) for _ in range(5)]
        for wire in wires:
            wire.send(message("POST", "/v1/query", b" " * (LARGEST - 1), length=LARGEST))
        assert wait_until(lambda: any(wire.has_input() for wire in wires))
        return next(wire.read_response() for wire in wires if wire.has_input())


def documents(*names: str) -> dict[str, object]:
    """Return several documents."""
    return {"documents": [{"id": name, "text": "a text"} for name in names]}


PROVOKED: dict[str, tuple[str, Callable[[Server], Answer]]] = {
    "bad_json": ("usual", lambda server: server.post("/v1/query", b'{"text": ')),
    "bad_http": ("usual", lambda server: say(server, b"what do you have?\r\n\r\n")),
    "unauthorized": ("guarded", lambda server: server.get("/v1/stats", headers={"Authorization": "Bearer guessed"})),
    "forbidden": ("guarded", lambda server: server.add("b", "a text")),
    "wrong_origin": ("usual", lambda server: server.get("/v1/stats", headers={"Origin": "http://evil.example"})),
    "read_only": ("fixed", lambda server: server.add("b", "a text")),
    "not_found": ("usual", lambda server: server.get("/v1/documents/missing")),
    "method_not_allowed": ("usual", lambda server: server.ask("PUT", "/v1/documents/a", {})),
    "too_slow": ("impatient", lambda server: say(server, message("POST", "/v1/query", b"{", length=100))),
    "id_taken": ("usual", lambda server: server.add("a", "another text")),
    "request_too_large": ("usual", lambda server: server.add("b", "x" * 10_001)),
    "document_too_large": ("usual", lambda server: server.add("b", "x" * 101)),
    "too_many_documents": ("usual", lambda server: server.post("/v1/documents", documents("b", "c", "d"))),
    "unsupported_media_type": (
        "usual",
        lambda server: server.post(
            "/v1/query", b"text=a", headers={"Content-Type": "application/x-www-form-urlencoded"}
        ),
    ),
    "wrong_host": ("usual", lambda server: server.get("/v1/stats", headers={"Host": "evil.example"})),
    "bad_value": ("usual", lambda server: server.post("/v1/query", {"text": "a text", "top": 0})),
    "too_deep": ("usual", lambda server: server.add("b", "a text", {"a": {"b": {"c": {}}}})),
    "headers_too_large": (
        "usual",
        lambda server: say(server, message("GET", "/healthz", b"", f"X-Much: {'x' * 40_000}")),
    ),
    "internal": ("faulty", lambda server: server.post("/v1/compare", {"left": "a", "right": "b"})),
    "busy": ("narrow", come_last),
    "index_failed": ("faulty", lambda server: server.post("/v1/query", {"text": "a text"})),
    "disk_full": ("faulty", lambda server: server.add("b", "a text")),
}
# Headers of a code.
HEADERS = {
    "unauthorized": ("www-authenticate", "Bearer"),
    "method_not_allowed": ("allow", "DELETE, GET, HEAD"),
    "busy": ("retry-after", "1"),
}


def test_every_code_is_tested_and_documented() -> None:
    assert set(PROVOKED) == set(CODES)
    assert set(MEANINGS) == set(CODES)


def test_every_code_belongs_to_a_route() -> None:
    """Except for the one of an unsupported method."""
    listed = {code for route in ROUTES for code in error_codes(route)}
    assert listed == set(CODES) - {"method_not_allowed"}


@pytest.mark.parametrize("code", PROVOKED)
def test_error_has_status_shape_and_headers(servers: Servers, code: str) -> None:
    """And reveals nothing secret."""
    kind, provoke = PROVOKED[code]
    answer = provoke(servers[kind])
    assert answer.error == code
    assert answer.status == CODES[code]
    assert answer.json["error"]["message"].strip()
    assert "secret" not in answer.body.decode()
    assert answer.headers["x-content-type-options"] == "nosniff"
    if code in HEADERS:
        name, value = HEADERS[code]
        assert answer.headers[name] == value
