"""Limits: each has its own status and code, and its own border, on both sides of which it is tried."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.running import Server, new_index, serving
from server.wires import Wire, message

# What the parser takes of headers at most, which is no setting.
HEADER_BYTES, HEADER_FIELDS = 32 * 1024, 100
DEEP = 100_000


@dataclass(frozen=True)
class Limited:
    """A server and its limits."""

    server: Server
    document: int
    metadata: int
    compare: int
    request: int
    documents: int
    depth: int

    def add(self, *texts: str, **metadata: object) -> str:
        """Adds documents in one request; `added`, or the code of the error."""
        documents = [{"id": number, "text": text, **metadata} for number, text in enumerate(texts)]
        return self.fate(json.dumps({"documents": documents}, ensure_ascii=False).encode())

    def fate(self, body: bytes, path: str = "/v1/documents?on_duplicate_id=replace") -> str:
        """What becomes of a request: `done`, or the code of the error."""
        answer = self.server.post(path, body)
        return "done" if answer.status == 200 else f"{answer.status} {answer.error}"


USUAL = {
    "document": 10**6, "metadata": 64_000, "compare": 200_000, "request": 16 * 10**6, "documents": 1000, "depth": 32,
}  # fmt: skip
SMALL = {"document": 500, "metadata": 100, "compare": 200, "request": 3000, "documents": 18, "depth": 3}


@pytest.fixture(scope="module", params=[USUAL, SMALL], ids=["usual", "small"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """A server with the usual limits, and one with other ones."""
    path = new_index(tmp_path_factory.mktemp("limits"))
    limits: dict[str, int] = request.param
    options = [option for name, value in limits.items() for option in (f"--max-{name}", str(value))]
    with serving(path, *(options if limits is SMALL else [])) as server:
        yield Limited(server, **limits)
        assert server.get("/readyz").status == 200


def test_clients_can_ask_for_the_limits(limited: Limited) -> None:
    """They are in the statistics, under their names."""
    told = limited.server.get("/v1/stats").json["limits"]
    assert {name: told[f"max_{name}"] for name in USUAL} == {name: getattr(limited, name) for name in USUAL}


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_a_document(limited: Limited, letter: str) -> None:
    """Its bytes are counted, not its letters; one too large keeps out all that came with it."""
    size = len(letter.encode())
    fitting = letter * (limited.document // size)
    assert limited.add(fitting) == "done"
    assert limited.add("a b", fitting + letter) == "413 document_too_large"
    assert limited.server.get("/v1/documents/0").json["text"] == fitting


def test_the_metadata_of_a_document(limited: Limited) -> None:
    """As the JSON that was sent, of each document, which is named; and of what a query asks for."""
    fitting, over = (b'{"a": "%b"}' % (b"x" * (limited.metadata - 9 + more)) for more in (0, 1))
    assert len(fitting) == limited.metadata
    for body, path, name in (
        (b'{"id": "one", "text": "a b", "metadata": %b}', "/v1/documents?on_duplicate_id=replace", "metadata of 'one'"),
        (b'{"text": "a b", "where": %b}', "/v1/query", "where"),
    ):
        assert limited.fate(body % fitting, path) == "done"
        answer = limited.server.post(path, body % over)
        assert (answer.status, answer.error) == (413, "document_too_large")
        assert f"{name} must have at most {limited.metadata} bytes" in answer.json["error"]["message"]


def test_the_metadata_of_a_request(limited: Limited) -> None:
    """All together may be as much as sixteen largest ones."""
    largest = b"{%b}" % (b" " * (limited.metadata - 2))
    for count, expected in ((16, "done"), (17, "413 request_too_large")):
        documents = b",".join(b'{"id": %d, "text": "", "metadata": %b}' % (one, largest) for one in range(count))
        assert limited.fate(b'{"documents": [%b]}' % documents) == expected


def test_a_text_that_is_asked_for(limited: Limited) -> None:
    """The limit of a document."""
    fitting = ("ab " * limited.document)[: limited.document]
    assert limited.fate(json.dumps({"text": fitting}).encode(), "/v1/query") == "done"
    assert limited.fate(json.dumps({"text": fitting + "c"}).encode(), "/v1/query") == "413 document_too_large"


def test_texts_that_are_compared(limited: Limited) -> None:
    """Each has a limit of its own."""
    fitting = " ".join(map(str, range(limited.compare)))[: limited.compare]
    assert limited.fate(json.dumps({"left": fitting, "right": fitting}).encode(), "/v1/compare") == "done"
    for name in ("left", "right"):
        texts = {"left": "a b", "right": "a b"} | {name: fitting + "c"}
        assert limited.fate(json.dumps(texts).encode(), "/v1/compare") == "413 document_too_large"


def padded(size: int) -> bytes:
    """A query of a certain size."""
    return b'{"text": "a b c"}'.ljust(size)


def test_a_request_with_its_length(limited: Limited) -> None:
    """One byte more is refused before it is sent, and the connection can be used again."""
    assert limited.fate(padded(limited.request), "/v1/query") == "done"
    assert limited.fate(padded(limited.request + 1), "/v1/query") == "413 request_too_large"
    with Wire(limited.server) as wire:
        wire.send(message("POST", "/v1/query", length=limited.request + 1))
        assert wire.hear().error == "request_too_large"
        wire.send(padded(limited.request + 1) + message("GET", "/healthz"))
        assert wire.hear().json == {"status": "ok"}


def in_chunks(body: bytes, size: int) -> bytes:
    """A body as chunks of a size."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


CHUNKED = message("POST", "/v1/query", b"", "Transfer-Encoding: chunked", "Content-Type: application/json")


def test_a_request_in_chunks(limited: Limited) -> None:
    """Nobody says how long it will be; it is counted."""
    for size, expected in ((limited.request, 200), (limited.request + 1, 413)):
        with Wire(limited.server) as wire:
            wire.send(CHUNKED + in_chunks(padded(size), 10_007) + b"0\r\n\r\n" + message("GET", "/healthz"))
            answer = wire.hear()
            assert answer.status == expected
            assert answer.status == 200 or answer.error == "request_too_large"
            assert wire.hear().json == {"status": "ok"}


def test_a_request_without_end(limited: Limited) -> None:
    """It is refused as soon as it is too long, whatever more may come."""
    with Wire(limited.server) as wire:
        wire.send(CHUNKED + in_chunks(padded(limited.request + 1), 65_536))
        assert wire.hear().error == "request_too_large"


def test_a_request_that_is_longer_than_it_says(limited: Limited) -> None:
    """What comes after the end is no part of it: it is the next request, and here none."""
    with Wire(limited.server) as wire:
        wire.send(message("POST", "/v1/query", padded(100)) + b" " * limited.request)
        assert wire.hear().status == 200
        assert b" 200 OK" not in wire.rest()


def test_documents_of_a_request(limited: Limited) -> None:
    """Too many are refused, all of them, also those that fit."""
    assert limited.add(*["a b"] * limited.documents) == "done"
    count = limited.server.get("/v1/stats").json["documents"]
    body = {"documents": [{"id": f"new {number}", "text": ""} for number in range(limited.documents + 1)]}
    assert limited.fate(json.dumps(body).encode()) == "413 too_many_documents"
    assert limited.server.get("/v1/stats").json["documents"] == count


def test_ids_of_a_request(limited: Limited) -> None:
    """As many as documents."""
    for more, expected in ((0, 200), (1, 413)):
        ids = [f"no {number}" for number in range(limited.documents + more)]
        answer = limited.server.ask("DELETE", "/v1/documents", {"ids": ids})
        assert answer.status == expected
        assert answer.status == 200 or answer.error == "too_many_documents"


def nested(depth: int, opening: str = '{"a":', closing: str = "}", inside: str = "1") -> str:
    """JSON of a depth."""
    return opening * depth + inside + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ('{"a":[', "]}")], ids=["objects", "lists"])
def test_depth(limited: Limited, opening: str, closing: str) -> None:
    """Levels of objects and lists are counted, in the metadata and in what it is asked for."""
    step = len(closing)
    fitting, over = (nested(limited.depth // step + more, opening, closing) for more in (0, 1))
    for path, body in (
        ("/v1/documents?on_duplicate_id=replace", '{"id": 1, "text": "a b", "metadata": %s}'),
        ("/v1/query", '{"text": "a b", "where": %s}'),
    ):
        assert limited.fate((body % over).encode(), path) == "422 too_deep"
        assert limited.fate((body % fitting).encode(), path) in ("done", "422 bad_value")
    assert limited.fate(b'{"id": 1, "text": "a b", "metadata": %b}' % fitting.encode()) == "done"


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/query", "/v1/compare"])
@pytest.mark.parametrize(
    "place", ["%s", '{"id": 1, "text": "a", "metadata": {"a": %s}}', '{"text": "a", "where": {"a": %s}}', '{"b": %s}']
)
def test_a_hundred_thousand_brackets(limited: Limited, path: str, place: str) -> None:
    """Closed or not, they are refused, and no stack overflows."""
    for body in (
        place % nested(DEEP, "[", "]", ""),
        place % nested(DEEP),
        place % ("[" * DEEP),
        place % ('{"":' * DEEP),
    ):
        answer = limited.server.post(path, body.encode())
        assert answer.status in (400, 413, 422), answer
        assert answer.error in ("bad_json", "request_too_large", "bad_value", "too_deep")


def test_headers(limited: Limited) -> None:
    """Request line and headers have room for 32 KiB and for 100 fields."""
    bare = len("/healthz" + "Host: localhost\r\n" + "A: \r\n")
    for value, fields, expected in (
        (HEADER_BYTES - bare, 2, 200),
        (HEADER_BYTES - bare + 1, 2, 431),
        (10 * HEADER_BYTES, 2, 431),
        (1, HEADER_FIELDS, 200),
        (1, HEADER_FIELDS + 1, 431),
    ):
        with Wire(limited.server) as wire:
            wire.send(message("GET", "/healthz", b"", "A: " + "x" * value, *["B: c"] * (fields - 2)))
            answer = wire.hear()
            assert answer.status == expected, (value, fields)
            if expected == 431:
                assert answer.error == "headers_too_large"
                assert wire.hung_up()


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * 200_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 40_000,
        b"GET / HTTP/1.1\r\n" + b"A" * 200_000,
        b"\r\n" * 100_000,
        CHUNKED + b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 40_000,
        CHUNKED + b"2\r\n{}\r\n0\r\nA: " + b"b" * 200_000,
        CHUNKED + b"2;" + b"a" * 200_000,
    ],
    ids=["target", "fields", "name", "blank lines", "trailers", "trailer", "extension of a chunk"],
)
def test_headers_without_end(limited: Limited, endless: bytes) -> None:
    """They are refused before they are complete, wherever they stand."""
    with Wire(limited.server) as wire:
        wire.send(endless)
        answer = wire.hear()
        assert (answer.status, answer.error) == (431, "headers_too_large")
        assert wire.hung_up()
