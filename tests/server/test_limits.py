"""Limits: each has its status and code, and is tested on both sides."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.raw_connections import RawConnection, message
from server.running import Server, new_index, serving

# Limits of headers, which are not settings.
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
        """Add documents in one request; return `added` or the error code."""
        documents = [{"id": number, "text": text, **metadata} for number, text in enumerate(texts)]
        return self.fate(json.dumps({"documents": documents}, ensure_ascii=False).encode())

    def fate(self, body: bytes, path: str = "/v1/documents?on_duplicate_id=replace") -> str:
        """Return `done` or the error code of a request."""
        answer = self.server.post(path, body)
        return "done" if answer.status == 200 else f"{answer.status} {answer.error}"


USUAL = {
    "document": 10**6, "metadata": 64_000, "compare": 200_000, "request": 16 * 10**6, "documents": 1000, "depth": 32,
}  # fmt: skip
SMALL = {"document": 500, "metadata": 100, "compare": 200, "request": 3000, "documents": 18, "depth": 3}


@pytest.fixture(scope="module", params=[USUAL, SMALL], ids=["usual", "small"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """Serve with the default limits, and with others."""
    path = new_index(tmp_path_factory.mktemp("limits"))
    limits: dict[str, int] = request.param
    options = [option for name, value in limits.items() for option in (f"--max-{name}", str(value))]
    with serving(path, *(options if limits is SMALL else [])) as server:
        yield Limited(server, **limits)
        assert server.get("/readyz").status == 200


def test_stats_contain_the_limits(limited: Limited) -> None:
    shown = limited.server.get("/v1/stats").json["limits"]
    assert {name: shown[f"max_{name}"] for name in USUAL} == {name: getattr(limited, name) for name in USUAL}


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_document_size(limited: Limited, letter: str) -> None:
    """In bytes; one that is too large refuses the whole request."""
    size = len(letter.encode())
    fitting = letter * (limited.document // size)
    assert limited.add(fitting) == "done"
    assert limited.add("a b", fitting + letter) == "413 document_too_large"
    assert limited.server.get("/v1/documents/0").json["text"] == fitting


def test_metadata_size(limited: Limited) -> None:
    """As sent, of each document, which is named; and of a filter."""
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


def test_total_metadata_size(limited: Limited) -> None:
    """Sixteen times the limit of one document."""
    largest = b"{%b}" % (b" " * (limited.metadata - 2))
    for count, expected in ((16, "done"), (17, "413 request_too_large")):
        documents = b",".join(b'{"id": %d, "text": "", "metadata": %b}' % (one, largest) for one in range(count))
        assert limited.fate(b'{"documents": [%b]}' % documents) == expected


def test_query_text_size(limited: Limited) -> None:
    fitting = ("ab " * limited.document)[: limited.document]
    assert limited.fate(json.dumps({"text": fitting}).encode(), "/v1/query") == "done"
    assert limited.fate(json.dumps({"text": fitting + "c"}).encode(), "/v1/query") == "413 document_too_large"


def test_compared_text_size(limited: Limited) -> None:
    fitting = " ".join(map(str, range(limited.compare)))[: limited.compare]
    assert limited.fate(json.dumps({"left": fitting, "right": fitting}).encode(), "/v1/compare") == "done"
    for name in ("left", "right"):
        texts = {"left": "a b", "right": "a b"} | {name: fitting + "c"}
        assert limited.fate(json.dumps(texts).encode(), "/v1/compare") == "413 document_too_large"


def padded(size: int) -> bytes:
    """Return a query of a given size."""
    return b'{"text": "a b c"}'.ljust(size)


def test_request_size_with_content_length(limited: Limited) -> None:
    """Refused before the body is sent, and the connection stays usable."""
    assert limited.fate(padded(limited.request), "/v1/query") == "done"
    assert limited.fate(padded(limited.request + 1), "/v1/query") == "413 request_too_large"
    with RawConnection(limited.server) as wire:
        wire.send(message("POST", "/v1/query", length=limited.request + 1))
        assert wire.read_response().error == "request_too_large"
        wire.send(padded(limited.request + 1) + message("GET", "/healthz"))
        assert wire.read_response().json == {"status": "ok"}


def in_chunks(body: bytes, size: int) -> bytes:
    """Return a body in chunks of a given size."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


CHUNKED = message("POST", "/v1/query", b"", "Transfer-Encoding: chunked", "Content-Type: application/json")


def test_request_size_in_chunks(limited: Limited) -> None:
    for size, expected in ((limited.request, 200), (limited.request + 1, 413)):
        with RawConnection(limited.server) as wire:
            wire.send(CHUNKED + in_chunks(padded(size), 10_007) + b"0\r\n\r\n" + message("GET", "/healthz"))
            answer = wire.read_response()
            assert answer.status == expected
            assert answer.status == 200 or answer.error == "request_too_large"
            assert wire.read_response().json == {"status": "ok"}


def test_endless_request_is_refused_early(limited: Limited) -> None:
    with RawConnection(limited.server) as wire:
        wire.send(CHUNKED + in_chunks(padded(limited.request + 1), 65_536))
        assert wire.read_response().error == "request_too_large"


def test_bytes_after_the_body_are_the_next_request(limited: Limited) -> None:
    with RawConnection(limited.server) as wire:
        wire.send(message("POST", "/v1/query", padded(100)) + b" " * limited.request)
        assert wire.read_response().status == 200
        assert b" 200 OK" not in wire.read_to_end()


def test_document_count(limited: Limited) -> None:
    """Too many are all refused."""
    assert limited.add(*["a b"] * limited.documents) == "done"
    count = limited.server.get("/v1/stats").json["documents"]
    body = {"documents": [{"id": f"new {number}", "text": ""} for number in range(limited.documents + 1)]}
    assert limited.fate(json.dumps(body).encode()) == "413 too_many_documents"
    assert limited.server.get("/v1/stats").json["documents"] == count


def test_id_count(limited: Limited) -> None:
    for more, expected in ((0, 200), (1, 413)):
        ids = [f"no {number}" for number in range(limited.documents + more)]
        answer = limited.server.ask("DELETE", "/v1/documents", {"ids": ids})
        assert answer.status == expected
        assert answer.status == 200 or answer.error == "too_many_documents"


def nested(depth: int, opening: str = '{"a":', closing: str = "}", inside: str = "1") -> str:
    """Return JSON of a given depth."""
    return opening * depth + inside + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ('{"a":[', "]}")], ids=["objects", "lists"])
def test_nesting_depth(limited: Limited, opening: str, closing: str) -> None:
    """Of metadata and of filters."""
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
def test_a_hundred_thousand_brackets_are_refused(limited: Limited, path: str, place: str) -> None:
    """Closed or not, without a stack overflow."""
    for body in (
        place % nested(DEEP, "[", "]", ""),
        place % nested(DEEP),
        place % ("[" * DEEP),
        place % ('{"":' * DEEP),
    ):
        answer = limited.server.post(path, body.encode())
        assert answer.status in (400, 413, 422), answer
        assert answer.error in ("bad_json", "request_too_large", "bad_value", "too_deep")


def test_header_size_and_count(limited: Limited) -> None:
    """32 KiB and 100 fields."""
    bare = len("/healthz" + "Host: localhost\r\n" + "A: \r\n")
    for value, fields, expected in (
        (HEADER_BYTES - bare, 2, 200),
        (HEADER_BYTES - bare + 1, 2, 431),
        (10 * HEADER_BYTES, 2, 431),
        (1, HEADER_FIELDS, 200),
        (1, HEADER_FIELDS + 1, 431),
    ):
        with RawConnection(limited.server) as wire:
            wire.send(message("GET", "/healthz", b"", "A: " + "x" * value, *["B: c"] * (fields - 2)))
            answer = wire.read_response()
            assert answer.status == expected, (value, fields)
            if expected == 431:
                assert answer.error == "headers_too_large"
                assert wire.is_closed_silently()


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
def test_endless_headers_are_refused_early(limited: Limited, endless: bytes) -> None:
    with RawConnection(limited.server) as wire:
        wire.send(endless)
        answer = wire.read_response()
        assert (answer.status, answer.error) == (431, "headers_too_large")
        assert wire.is_closed_silently()
