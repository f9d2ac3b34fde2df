"""Who comes in: tokens and their rights, addresses, hosts, origins, and that nothing of a client is ever opened."""

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
from reliability.commands import USAGE, one_line, run

import minwise as mw
import minwise.server
from minwise.server.tokens import make_token
from server.running import PATIENCE_SECONDS, Answer, Server, serving

PAGE = Path(str(minwise.server.__file__)).parent / "page"
DOCUMENT = {"id": "new", "text": "a text that nobody has sent before"}
SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Request:
    """A request, and the rights that it needs."""

    method: str
    path: str
    body: object = None
    rights: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


READ, WRITE = frozenset({"read"}), frozenset({"write"})
BOTH = READ | WRITE
# Every route; a test below sees that none is missing.
REQUESTS = [
    Request("GET", "/"),
    Request("GET", "/docs"),
    Request("GET", "/static/{name}"),
    Request("GET", "/openapi.json"),
    Request("GET", "/healthz"),
    Request("GET", "/readyz"),
    Request("GET", "/metrics", None, READ),
    Request("GET", "/v1/stats", None, READ),
    Request("GET", "/v1/plan", None, READ),
    Request("GET", "/v1/documents", None, READ),
    Request("GET", "/v1/documents/there", None, READ),
    Request("POST", "/v1/query", {"text": "a text"}, READ),
    Request("POST", "/v1/compare", {"left": "a text", "right": "a text"}, READ),
    Request("POST", "/v1/documents", DOCUMENT, WRITE),
    Request("POST", "/v1/documents?unique=false", {"documents": [DOCUMENT]}, WRITE),
    Request("POST", "/v1/documents?unique=true", DOCUMENT, BOTH),
    Request("DELETE", "/v1/documents/there", None, WRITE),
    Request("DELETE", "/v1/documents", {"ids": ["there"]}, WRITE),
]
WRITING = [one for one in REQUESTS if "write" in one.rights]
HOLDERS = {"nobody": None, "a stranger": frozenset(), "reader": READ, "writer": WRITE, "editor": BOTH}


@dataclass
class Door:
    """A server that asks for tokens.

    Attributes:
        server: The server, without a token.
        tokens: Tokens by who has them.
    """

    server: Server
    tokens: dict[str, str | None]

    def ask(self, request: Request, holder: str = "nobody") -> Answer:
        """Sends a request as somebody; the document that it may remove is there."""
        token = self.tokens[holder]
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self.server.ask(request.method, real(request.path), request.body, headers=headers)


def real(path: str) -> str:
    """The path of a route with something in place of its names."""
    return path.replace("{name}", next(one.name for one in sorted(PAGE.iterdir()) if one.suffix == ".js"))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One server for all who only knock."""
    folder = tmp_path_factory.mktemp("door")
    mw.Index.create(folder / "news.mw", threshold=0.5, shingle="word:2", store="text").close()
    tokens: dict[str, str | None] = {"nobody": None, "a stranger": "mw_" + "A" * 43}
    for name, rights in HOLDERS.items():
        if rights:
            tokens[name] = make_token(folder / "tokens.txt", rights, name)
    options = ("--token-file", str(folder / "tokens.txt"), "--allow-host", "news.example.org")
    with serving(folder / "news.mw", *options) as server:
        yield Door(server, tokens)


@pytest.fixture(scope="module")
def open_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the server without tokens."""
    path = tmp_path_factory.mktemp("open") / "news.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store="text").close()
    return path


@pytest.fixture(scope="module")
def server(open_index: Path) -> Iterator[Server]:
    """One server without tokens for all tests; each has ids of its own."""
    with serving(open_index) as running:
        yield running


@pytest.fixture
def there(door: Door) -> Door:
    """The same, with the one document that requests name, and not the one that they add."""
    editor = {"Authorization": f"Bearer {door.tokens['editor']}"}
    assert door.server.ask("DELETE", "/v1/documents", {"ids": ["new"]}, headers=editor).status == 200
    assert door.server.add("there", "the ferry leaves at six in the morning", headers=editor).status == 200
    return door


def named(door: Door) -> set[str]:
    """The ids of the index."""
    answer = door.ask(Request("GET", "/v1/documents"), "editor")
    return {str(one["id"]) for one in answer.json["documents"]}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_every_route_asks_for_its_rights(there: Door, request_: Request, holder: str) -> None:
    """A token that is missing or wrong is 401, one that lacks a right 403, and then nothing has happened."""
    before = named(there)
    answer = there.ask(request_, holder)
    rights = HOLDERS[holder]
    if request_.rights <= (rights or frozenset()):
        assert answer.status == 200
        return
    assert (answer.status, answer.error) == ((403, "forbidden") if rights else (401, "unauthorized"))
    assert answer.headers.get("www-authenticate") == (None if rights else "Bearer")
    assert named(there) == before == {"there"}


def test_who_asks_is_told_what_it_may_do(door: Door) -> None:
    """By its own token, and of no other."""
    for holder, rights in HOLDERS.items():
        if rights is not None and "read" in rights:
            assert door.ask(Request("GET", "/v1/stats"), holder).json["rights"] == sorted(rights)


def test_every_route_is_in_the_table(door: Door) -> None:
    """What the schema names, the table above has."""
    paths = door.server.get("/openapi.json").json["paths"]
    described = {f"{method.upper()} {path}" for path, operations in paths.items() for method in operations}
    asked = {str(one).partition("?")[0].replace("/there", "/{id}") for one in REQUESTS}
    assert described <= asked
    assert {one for one in asked if "/v1/" in one} <= described


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "{token}", "Basic {token}", "Token {token}", "Bearer{token}", "Bearer {token}x",
     "Bearer x {token}",
     "Bearer {token} {token}", "Bearer {token},x", "Bearer sha256:{hash}", "Bearer {hash}", "Bearer ÿþ", "Bearer null"],
)  # fmt: skip
def test_what_is_no_bearer_token(door: Door, header: str) -> None:
    """Other schemes, the hash, the token with something around it."""
    token = str(door.tokens["editor"])
    sent = header.format(token=token, hash=sha256(token.encode()).hexdigest())
    answer = door.server.get("/v1/stats", headers={"Authorization": sent})
    assert (answer.status, answer.error) == (401, "unauthorized")
    assert token not in answer.body.decode()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_name_of_the_scheme_has_no_case(door: Door, scheme: str) -> None:
    """As RFC 9110 (11.1) has it."""
    assert door.server.get("/v1/stats", headers={"Authorization": f"{scheme} {door.tokens['reader']}"}).status == 200


def test_two_authorizations_are_none(door: Door) -> None:
    """Else a proxy and the server could read different ones."""
    tokens = [f"Bearer {door.tokens[name]}" for name in ("a stranger", "editor")]
    for pair in (tokens, tokens[::-1]):
        answer = raw(
            door.server,
            "GET /v1/stats HTTP/1.1",
            f"Host: {door.server.host}",
            *(f"Authorization: {one}" for one in pair),
        )
        assert answer.status in (400, 401)


@pytest.mark.parametrize("place", ["?token={token}", "?access_token={token}", "?authorization=Bearer%20{token}"])
def test_a_token_in_the_address_counts_for_nothing(door: Door, place: str) -> None:
    """It would stand in logs and histories."""
    assert door.server.get("/v1/stats" + place.format(token=door.tokens["editor"])).status == 401


def test_a_cookie_counts_for_nothing(door: Door) -> None:
    """Browsers send them on their own, which is what CSRF lives on; and none is ever set."""
    answer = door.server.get("/v1/stats", headers={"Cookie": f"token={door.tokens['editor']}"})
    assert answer.status == 401
    assert all("set-cookie" not in door.ask(one, "editor").headers for one in REQUESTS[:10])


def raw(server: Server, *lines: str, body: bytes = b"") -> Answer:
    """The answer to header lines as they are."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:{port}", "localhost", "localhost:{port}", "LocalHost:{port}", "[::1]", "[::1]:{port}",
     "127.0.0.1:1",
     "news.example.org", "news.example.org:443", "NEWS.example.org"],
)  # fmt: skip
def test_hosts_that_are_ours(door: Door, host: str) -> None:
    """The loopback's names, and what --allow-host says, with any port or none: a proxy may have another."""
    assert door.server.get("/healthz", headers={"Host": host.format(port=door.server.port)}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "evil-localhost",
     "xnews.example.org",
     "news.example.org.evil.example", "a.news.example.org", "127.0.0.1@evil.example", "evil.example@127.0.0.1",
     "127.0.0.1,evil.example",
     "127.0.0.1 evil.example", "127.0.0.1#evil.example", "127.0.0.1/evil.example", "0.0.0.0", "0.0.0.0:{port}",
     "[::]", "[::1", "::1]",
     "169.254.169.254", "127.0.0.1:port", "127.0.0.1:1:1", "[::1]evil.example", "[::1]:1:1", ":{port}", "*", "ÿ"],
)  # fmt: skip
def test_hosts_that_are_not(door: Door, host: str) -> None:
    """A page of evil.example whose name now leads here (rebinding) still sends its own name; nothing answers to it."""
    sent = {"Host": host.format(port=door.server.port), "Authorization": f"Bearer {door.tokens['editor']}"}
    for path in ("/", "/healthz", "/v1/stats", "/static/{name}", "/nowhere"):
        answer = door.server.get(real(path), headers=sent)
        assert (answer.status, answer.error) == (421, "wrong_host"), path


@pytest.mark.parametrize(
    "lines", [[], ["Host:"], ["Host: "], ["Host: 127.0.0.1", "Host: evil.example"], ["Host: 127.0.0.1"] * 2]
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_has_one_host(door: Door, lines: list[str], version: str) -> None:
    """None, an empty one or two of them are refused, whatever they say."""
    answer = raw(door.server, f"GET /healthz HTTP/{version}", *lines)
    assert (answer.status, answer.error) in ((400, "bad_http"), (421, "wrong_host"))


@pytest.mark.parametrize(
    "target", ["http://evil.example/healthz", "//evil.example/healthz", "evil.example:80", "*", "healthz"]
)
def test_the_target_is_a_path(door: Door, target: str) -> None:
    """A target with a host of its own does not get past the check of the Host field."""
    answer = raw(door.server, f"GET {target} HTTP/1.1", "Host: 127.0.0.1")
    assert answer.status in (400, 404, 421)
    assert answer.error in ("bad_http", "not_found", "wrong_host")


@pytest.mark.parametrize(
    ("origin", "host"),
    [("http://127.0.0.1:{port}", "127.0.0.1:{port}"), ("http://localhost:{port}", "localhost:{port}"),
     ("http://[::1]:{port}", "[::1]:{port}"),
     ("https://news.example.org", "news.example.org"), ("https://news.example.org:8443", "news.example.org:8443"),
     ("https://NEWS.example.org", "news.example.org")],
)  # fmt: skip
def test_origins_that_are_ours(there: Door, origin: str, host: str) -> None:
    """The page itself, directly or behind a proxy that speaks TLS."""
    port = there.server.port
    headers = {
        "Origin": origin.format(port=port),
        "Host": host.format(port=port),
        "Authorization": f"Bearer {there.tokens['editor']}",
    }
    assert there.server.post("/v1/query", {"text": "a text"}, headers=headers).status == 200
    assert there.server.post("/v1/documents", DOCUMENT, headers=headers).status == 200


WRONG_ORIGINS = [
    "null", "http://evil.example", "https://evil.example:{port}", "http://127.0.0.1.evil.example:{port}",
    "http://localhost:{port}", "http://127.0.0.1",
    "http://127.0.0.1:1", "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}@evil.example",
    "http://evil.example/127.0.0.1:{port}", "file://", "", "127.0.0.1:{port}",
    "http://127.0.0.1:{port} http://evil.example", "chrome-extension://abcdef", "http://127.0.0.1:{port}/", "ÿ",
]  # fmt: skip


@pytest.mark.parametrize("origin", WRONG_ORIGINS)
def test_origins_that_are_not(there: Door, origin: str) -> None:
    """Another site, another port of this machine, a file, a sandbox: refused before anything happens, token or not."""
    headers = {"Origin": origin.format(port=there.server.port), "Authorization": f"Bearer {there.tokens['editor']}"}
    for one in REQUESTS:
        answer = there.server.ask(one.method, real(one.path), one.body, headers=headers)
        assert (answer.status, answer.error) == (403, "wrong_origin"), str(one)
    assert named(there) == {"there"}


KINDS = [
    "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "", "text/json", "application/jsonx", "application/json-patch+json", "application/xml", "application/octet-stream",
    "text/plain; a=application/json",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_form_can_send_is_refused(there: Door, kind: str) -> None:
    """A page elsewhere can send these without asking first; JSON in them is still no JSON."""
    headers = {"Content-Type": kind, "Authorization": f"Bearer {there.tokens['editor']}"}
    for one in (asked for asked in REQUESTS if asked.body is not None):
        answer = there.server.ask(one.method, one.path, json.dumps(one.body).encode(), headers=headers)
        assert (answer.status, answer.error) == (415, "unsupported_media_type"), str(one)
    assert named(there) == {"there"}


def test_a_body_without_a_type_is_refused(there: Door) -> None:
    """It is what a page sends of a blob that has none."""
    body = json.dumps(DOCUMENT).encode()
    lines = [
        f"Host: {there.server.host}",
        f"Content-Length: {len(body)}",
        f"Authorization: Bearer {there.tokens['editor']}",
    ]
    answer = raw(there.server, "POST /v1/documents HTTP/1.1", *lines, body=body)
    assert (answer.status, answer.error) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"],
)
def test_json_is_taken(there: Door, kind: str) -> None:
    """With or without the one encoding that it has."""
    headers = {"Content-Type": kind, "Authorization": f"Bearer {there.tokens['editor']}"}
    assert there.server.post("/v1/documents", DOCUMENT, headers=headers).status == 200


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
def test_no_other_site_is_let_in(door: Door, method: str) -> None:
    """A preflight is answered without leave, and no answer ever grants any."""
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    for origin in ("http://evil.example", "null"):
        answer = door.server.ask(method, "/v1/query", headers={"Origin": origin, **asks})
        assert answer.status in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_headers_that_protect_are_on_every_answer(there: Door) -> None:
    """Pages, data, and each kind of error; what is under /v1 is never kept by anybody."""
    server, editor = there.server, {"Authorization": f"Bearer {there.tokens['editor']}"}
    host = f"Host: {server.host}"
    answers = {str(one): there.ask(one, "editor") for one in REQUESTS}
    answers |= {f"{one}, nobody": there.ask(one) for one in REQUESTS}
    answers |= {
        "404": server.get("/nowhere"),
        "404 of v1": server.get("/v1/documents/nothing", headers=editor),
        "405": server.ask("PUT", "/v1/query", headers=editor),
        "bad JSON": server.post("/v1/query", b"{", headers=editor),
        "bad value": server.post("/v1/query", {"text": 5}, headers=editor),
        "bad parameter": server.get("/v1/plan?bands=x", headers=editor),
        "text": server.post("/v1/query", b"x", headers={**editor, "Content-Type": "text/plain"}),
        "wrong host": server.get("/", headers={"Host": "evil.example"}),
        "wrong origin": server.get("/", headers={"Origin": "http://evil.example"}),
        "too large": server.post("/v1/query", {"text": "x" * 1_000_001}, headers=editor),
        "too many": server.ask("DELETE", "/v1/documents", {"ids": list(range(1001))}, headers=editor),
        "long header": raw(server, "GET / HTTP/1.1", host, "X: " + "x" * 200_000),
        "no HTTP": raw(server, "nonsense"),
        "bad length": raw(server, "POST /v1/query HTTP/1.1", host, "Content-Length: x"),
    }  # fmt: skip
    kinds = {answer.status for answer in answers.values()}
    assert {200, 400, 401, 403, 404, 405, 413, 415, 421, 422, 431} <= kinds
    for name, answer in answers.items():
        assert {field: answer.headers.get(field) for field in SECURITY} == SECURITY, name
        if "/v1/" in name:
            assert answer.headers.get("cache-control") == "no-store", name


def test_headers_that_protect_are_there_without_tokens_too(server: Server) -> None:
    """And when nothing may be changed."""
    for answer in (server.get("/"), server.get("/v1/stats"), server.get("/v1/documents/x"), server.add("a", "a text")):
        assert {field: answer.headers.get(field) for field in SECURITY} == SECURITY


def test_without_tokens_everybody_on_this_machine_may_do_everything(server: Server) -> None:
    """A token that is sent anyway does no harm."""
    assert server.add("ferry", "the ferry leaves at six").status == 200
    assert server.get("/v1/stats", headers={"Authorization": "Bearer mw_unknown"}).status == 200
    assert server.ask("DELETE", "/v1/documents/ferry").json == {"removed": 1}


def test_the_loopback_is_the_default(server: Server) -> None:
    """Only 127.0.0.1 is listened at: another address of this machine, here another of the loopback, is not."""
    assert server.url == f"http://127.0.0.1:{server.port}/"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "news.example.org"])
def test_any_other_address_needs_tokens(folder: Path, host: str) -> None:
    """It is refused in one line, with the command that helps."""
    line = one_line(run(folder.parent, "serve", "--index", "news.mw", "--port", "0", "--host", host), USAGE)
    assert f"got '{host}'" in line
    assert "minwise token FILE --read --write" in line


def test_every_address_with_tokens(folder: Path) -> None:
    """Works, under the names that are allowed, and for nobody without a token."""
    token = make_token(folder.parent / "tokens.txt", ["read"])
    options = (
        "--host",
        "0.0.0.0",
        "--token-file",
        str(folder.parent / "tokens.txt"),
        "--allow-host",
        "news.example.org",
    )
    with serving(folder, *options) as server:
        assert server.host == "0.0.0.0"
        for address in ("127.0.0.1", "127.0.0.2"):
            near = Server(server.process, f"http://{address}:{server.port}/")
            name = {"Host": f"127.0.0.1:{server.port}"}
            assert near.get("/v1/stats", headers=name).status == 401
            assert near.get("/v1/stats", headers={**name, "Authorization": f"Bearer {token}"}).status == 200
        assert near.get("/healthz", headers={"Host": "news.example.org"}).status == 200
        assert near.get("/healthz", headers={"Host": "evil.example"}).error == "wrong_host"


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 here")
def test_the_other_loopback(folder: Path) -> None:
    """Is one too: its address stands in brackets."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no ::1 here")
    with serving(folder, "--host", "::1") as server:
        assert server.url == f"http://[::1]:{server.port}/"
        assert server.get("/v1/stats").status == 200
        assert server.get("/v1/stats", headers={"Origin": f"http://[::1]:{server.port}"}).status == 200


def test_read_only_wins_over_every_token(folder: Path) -> None:
    """Even one that may write is told that nothing can be changed here."""
    token = make_token(folder.parent / "tokens.txt", ["read", "write"])
    with serving(folder, "--read-only", "--token-file", str(folder.parent / "tokens.txt")) as server:
        server.token = token
        for one in WRITING:
            answer = server.ask(one.method, one.path, one.body)
            assert (answer.status, answer.error) == (403, "read_only"), str(one)
        assert server.get("/v1/stats").json["read_only"] is True


def test_a_token_is_told_to_nobody(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither in what the server prints nor in its metrics: not the token, not a wrong one, not a hash."""
    file = folder.parent / "tokens.txt"
    token, wrong = make_token(file, ["read"]), "mw_" + "B" * 43
    with serving(folder, "--token-file", str(file)) as server:
        for one in (token, wrong):
            bearer = {"Authorization": f"Bearer {one}"}
            for asked in REQUESTS:
                server.ask(asked.method, real(asked.path), asked.body, headers=bearer)
            server.get(f"/v1/stats?token={one}", headers=bearer)
            server.get(f"/v1/documents/{one}", headers=bearer)
            server.get(f"/{one}", headers=bearer)
            server.get("/", headers={"Host": f"{one}.example"})
            raw(server, f"{one} / HTTP/1.1", f"Host: {server.host}", f"Authorization: Bearer {one}")
            raw(server, f"GET /{one}", f"Authorization: Bearer {one}")
        metrics = server.get("/metrics", headers={"Authorization": f"Bearer {token}"})
        assert metrics.status == 200
        assert server.stop() == 0
        assert server.process.stdout is not None
        rest = server.process.stdout.read()
    shown = "".join([metrics.body.decode(), rest.decode(), *capfd.readouterr()])
    for one in (token, wrong):
        assert one not in shown
        assert one.removeprefix("mw_")[:12] not in shown
        assert sha256(one.encode()).hexdigest()[:12] not in shown
    assert "minwise_requests" in shown


PLACES = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "file:///etc/passwd", "http://127.0.0.1:1/x", "a/b", "a//b", "/",
    "%2e%2e%2fetc%2fpasswd", "..\\..\\windows", "~root", "$HOME", "`id`", "; ls", "a?b=c", "a#b", "a b", "ünï",
    "news.mw", "tokens.txt", "\u202e",
]  # fmt: skip


def test_an_id_is_only_an_id(server: Server, open_index: Path) -> None:
    """Whatever it looks like: it comes back with its own text, and no file is touched."""
    (open_index.parent / "outside.txt").write_text("not yours")
    before = sorted(path.name for path in open_index.parent.iterdir())
    for name in PLACES:
        assert server.add(name, f"the text of {name}").json["results"][0]["fate"] == "added", name
        path = "/v1/documents/" + quote(name, safe="")
        found = server.get(path).json
        assert (found["id"], found["text"]) == (name, f"the text of {name}")
        assert server.ask("DELETE", path).json == {"removed": 1}, name
        assert server.get(path).error == "not_found", name
    assert sorted(path.name for path in open_index.parent.iterdir()) == before


@pytest.mark.parametrize(
    "path",
    ["/static/../settings.py", "/static/..%2fsettings.py", "/static/%2e%2e/settings.py",
     "/static/%2e%2e%2fsettings.py", "/static//etc/passwd",
     "/static/%2fetc%2fpasswd", "/static/..\\settings.py", "/static/", "/static", "/static/.",
     "/static/index.html/..", "/static/%00", "/static/index.html%00.js",
     "/etc/passwd", "//etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/../static/x",
     "/docs/../v1/stats"],
)  # fmt: skip
def test_no_path_leads_out_of_the_page(door: Door, path: str) -> None:
    """Only what was there at the start is there."""
    answer = raw(door.server, f"GET {path} HTTP/1.1", "Host: 127.0.0.1")
    assert (answer.status, answer.error) in ((404, "not_found"), (400, "bad_http"))
    assert b"root:" not in answer.body


def test_an_address_is_only_a_text(server: Server, open_index: Path) -> None:
    """Nobody connects to it, and a path is not read, wherever it stands."""
    secret = open_index.parent / "secret.txt"
    secret.write_text("xyzzy plugh plover")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/page"
        for number, place in enumerate((url, str(secret), f"file://{secret}", f"@{secret}")):
            metadata = {"url": place, "$ref": place, place: place}
            answers = [
                server.add(place, place, metadata),
                server.add(number, place, metadata),
                server.post("/v1/documents?unique=true", {"id": f"u{number}", "text": place, "metadata": metadata}),
                server.post("/v1/query", {"text": place, "where": {"url": place}}),
                server.post("/v1/compare", {"left": place, "right": place, "rows": True}),
                server.get("/v1/documents/" + quote(place, safe="")),
                server.get("/v1/documents"),
            ]
            assert {answer.status for answer in answers} == {200}
            assert not any(b"plugh" in answer.body for answer in answers)
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_client_can_not_say_where_it_comes_from(door: Door) -> None:
    """Header fields of proxies are not believed: they neither allow a host nor an origin."""
    forwarded = {
        "X-Forwarded-Host": "news.example.org",
        "Forwarded": "host=news.example.org",
        "X-Forwarded-For": "127.0.0.1",
    }
    assert door.server.get("/healthz", headers={"Host": "evil.example", **forwarded}).error == "wrong_host"
    assert door.server.get("/v1/stats", headers=forwarded).error == "unauthorized"
    override = {"X-HTTP-Method-Override": "DELETE", "Authorization": f"Bearer {door.tokens['reader']}"}
    assert door.server.post("/v1/documents/there", {}, headers=override).status in (403, 405)
