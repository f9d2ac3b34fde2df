"""Invalid and unusual HTTP: refused with the usual error or understood, without side effects."""

import random
from collections.abc import Iterator

import pytest

from server.raw_connections import RawConnection, answers_in, message
from server.running import Server, new_index, serving

GET = message("GET", "/healthz")
POST = "POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
QUERY = b'{"text": "a b c"}'
HEADERS = (
    "content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy",
    "cross-origin-opener-policy", "cross-origin-resource-policy",
)  # fmt: skip
MUTANTS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve all tests of this file, and check that the server works at the end."""
    path = new_index(tmp_path_factory.mktemp("malformed"))
    with serving(path, "--receive-timeout", "2") as running:
        yield running
        assert running.get("/healthz").status == 200
        assert running.post("/v1/query", {"text": "a b c"}).json["hits"] == []


def chunked(body: str, *fields: str) -> bytes:
    """Return a query with a chunked body, which may be invalid."""
    head = [POST + "Transfer-Encoding: chunked", *fields, "", body]
    return "\r\n".join(head).encode("latin-1")


def with_fields(*fields: str) -> bytes:
    """Return a query of 17 bytes with these headers."""
    return (POST + "".join(f"{field}\r\n" for field in fields) + "\r\n").encode("latin-1") + QUERY


REFUSED = {
    "bytes": b"\x00\x01\x02\x03\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100a5010000a10303"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "HTTP/2.0 in words": b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "HTTP/1.7": b"GET /healthz HTTP/1.7\r\nHost: localhost\r\n\r\n",
    "an unknown method": b"FETCH /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a lower-case method": b"get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a target with bytes": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a target with a space": b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a target without a path": b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a whole URL": b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "the URL of another host": b"GET http://a.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "CONNECT to a path": b"CONNECT /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "lines that end in LF": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "a CR in a header": message("GET", "/healthz", b"", "A: b\rc"),
    "a NUL in a header": message("GET", "/healthz", b"", "A: b\0c"),
    "a header without a name": message("GET", "/healthz", b"", ": b"),
    "a space before the colon": message("GET", "/healthz", b"", "A : b"),
    "a folded header": message("GET", "/healthz", b"", "A: b\r\n c"),
    "CONNECT": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" + GET,
    "a length and chunks": with_fields("Content-Length: 17", "Transfer-Encoding: chunked"),
    "chunks and a length": with_fields("Transfer-Encoding: chunked", "Content-Length: 17"),
    "two lengths": with_fields("Content-Length: 17", "Content-Length: 3"),
    "the same length twice": with_fields("Content-Length: 17", "Content-Length: 17"),
    "a list of lengths": with_fields("Content-Length: 17, 17"),
    "a negative length": with_fields("Content-Length: -17"),
    "a length with a sign": with_fields("Content-Length: +17"),
    "a length in hex": with_fields("Content-Length: 0x11"),
    "an empty length": with_fields("Content-Length:"),
    "a length beyond 64 bits": with_fields("Content-Length: 99999999999999999999"),
    "another encoding": with_fields("Transfer-Encoding: gzip"),
    "an encoding before chunks": with_fields("Transfer-Encoding: gzip, chunked"),
    "an encoding after chunks": with_fields("Transfer-Encoding: chunked, identity"),
    "almost chunked": with_fields("Transfer-Encoding: xchunked"),
    "quite chunked": with_fields("Transfer-Encoding: chunked\x0b"),
    "chunked in two headers": with_fields("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    "a chunk without a size": chunked("\r\n"),
    "a chunk of size zz": chunked("zz\r\n"),
    "a chunk of negative size": chunked("-1\r\n"),
    "a chunk of size 0x3": chunked("0x3\r\nabc\r\n0\r\n\r\n"),
    "a chunk beyond 64 bits": chunked("ffffffffffffffffff\r\n"),
    "a chunk that is longer than it says": chunked("3\r\nabcd\r\n0\r\n\r\n"),
    "chunks whose lines end in LF": chunked("3\nabc\n0\n\n"),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_invalid_http_is_refused(server: Server, shape: str) -> None:
    """With 400, and the connection is closed; later data is not parsed as a request."""
    with RawConnection(server) as wire:
        wire.send(REFUSED[shape] + GET)
        answer = wire.read_response()
        assert (answer.status, answer.error) == (400, "bad_http")
        assert answer.headers["connection"] == "close"
        assert [name for name in HEADERS if name not in answer.headers] == []
        assert wire.is_closed_silently()


UNUSUAL = {
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", [200]),
    "blank lines first": (b"\r\n\r\n" + GET, [200]),
    "two at once": (GET + message("GET", "/v1/stats"), [200, 200]),
    "a body in chunks": (chunked("11\r\n" + QUERY.decode() + "\r\n0\r\n\r\n") + GET, [200, 200]),
    "many chunks": (chunked("".join(f"1\r\n{one}\r\n" for one in QUERY.decode()) + "0\r\n\r\n") + GET, [200, 200]),
    "a chunk with an extension": (chunked("11;a=b\r\n" + QUERY.decode() + "\r\n0\r\n\r\n"), [200]),
    "trailers": (chunked("11\r\n" + QUERY.decode() + "\r\n0\r\nHost: a.example\r\nA: b\r\n\r\n") + GET, [200, 200]),
    "a websocket": (message("GET", "/", b"", "Connection: Upgrade", "Upgrade: websocket") + GET, [200, 200]),
    "an upgrade with a body": (
        message("POST", "/v1/query", QUERY, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c") + GET, [200, 200]
    ),
    "an upgrade in HTTP/1.0": (b"GET / HTTP/1.0\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade:\r\n\r\n", [200]),
    "an unexpected body": (message("GET", "/healthz", QUERY) + GET, [200, 200]),
    "a target that is no UTF-8": (message("GET", "/v1/documents/%ff%00"), [422]),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n" + GET, [421, 200]),
}  # fmt: skip


@pytest.mark.parametrize("shape", UNUSUAL)
def test_unusual_http_is_understood(server: Server, shape: str) -> None:
    """Each request is answered once, also after the client has closed its sending side."""
    sent, expected = UNUSUAL[shape]
    with RawConnection(server) as wire:
        wire.send(sent)
        wire.close_sending()
        assert [wire.read_response().status for _ in expected] == expected
        assert wire.is_closed_silently()


def test_two_hosts_are_refused(server: Server) -> None:
    """A proxy might use the other one."""
    with RawConnection(server) as wire:
        wire.send(message("GET", "/healthz", b"", "Host: a.example"))
        assert wire.read_response().error == "bad_http"


def test_requests_before_garbage_are_answered(server: Server) -> None:
    """Then the connection is closed."""
    with RawConnection(server) as wire:
        wire.send(message("POST", "/v1/query", QUERY) * 3 + b"\0\0\0\0")
        assert [wire.read_response().status for _ in range(3)] == [200, 200, 200]
        wire.read_to_end()


def test_requests_before_a_broken_body_are_answered(server: Server) -> None:
    with RawConnection(server) as wire:
        wire.send(message("POST", "/v1/query", QUERY) * 2 + chunked("zz\r\n"))
        assert [wire.read_response().status for _ in range(2)] == [200, 200]
        rest = wire.read_to_end()
        assert rest == b"" or rest.startswith(b"HTTP/1.1 400 ")


def test_too_many_pipelined_requests(server: Server) -> None:
    """Some are answered in order; then the connection is closed."""
    with RawConnection(server) as wire:
        wire.send(message("POST", "/v1/query", QUERY) * 2000)
        heard = wire.read_to_end()
        assert 0 < heard.count(b"HTTP/1.1 200 OK") < 2000
        assert heard.count(b"HTTP/1.1 ") - heard.count(b"HTTP/1.1 200 OK") <= 1


def test_a_client_that_disconnects_early(server: Server) -> None:
    for sent in (b"GET", message("POST", "/v1/query", b"{", length=100), message("POST", "/v1/query", QUERY), GET * 3):
        for _ in range(5):
            with RawConnection(server) as wire:
                wire.send(sent)
    assert server.get("/healthz").status == 200


def test_expect_continue(server: Server) -> None:
    """The client gets 100 Continue once, or the error."""
    with RawConnection(server) as wire:
        wire.send(message("POST", "/v1/query", b"", "Expect: 100-continue", length=len(QUERY)))
        assert wire.read_response().status == 100
        wire.send(QUERY)
        assert wire.read_response().status == 200
        wire.send(message("POST", "/v1/query", b"", "Expect: 100-continue", length=10**9))
        assert wire.read_response().error == "request_too_large"


def test_mutated_requests(server: Server) -> None:
    """Bytes are changed, deleted, repeated and inserted; the responses are valid HTTP and never 5xx."""
    draw = random.Random(23)
    originals = [sent for sent, _ in UNUSUAL.values()] + list(REFUSED.values())
    statuses: set[int] = set()
    for _ in range(MUTANTS):
        with RawConnection(server) as wire:
            wire.send(mutant(draw, draw.choice(originals)))
            wire.close_sending()
            statuses.update(answer.status for answer in answers_in(wire.read_to_end()))
    assert {200, 400} <= statuses
    assert [status for status in statuses if status >= 500] == []


def mutant(draw: random.Random, original: bytes) -> bytes:
    """Return a mutated request."""
    data = bytearray(original)
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data[place : place + 1] = draw.randbytes(1)
            case 1:
                del data[place : place + draw.randrange(1, 10)]
            case 2:
                data[place:place] = data[place : place + draw.randrange(1, 20)]
            case 3:
                data[place:place] = draw.choice([b"\r\n", b" ", b"0", b":", b"\0", b"\r\n\r\n"])
    return bytes(data) or b"x"
