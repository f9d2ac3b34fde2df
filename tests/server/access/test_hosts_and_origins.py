"""Host, Origin and Content-Type: a page of another site cannot send requests."""

import json

import pytest

from server.access.token_servers import DOCUMENT, REQUESTS, TokenServer, named, raw, real


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:{port}", "localhost", "localhost:{port}", "LocalHost:{port}", "[::1]", "[::1]:{port}",
     "127.0.0.1:1",
     "news.example.org", "news.example.org:443", "NEWS.example.org"],
)  # fmt: skip
def test_own_hosts_are_accepted(token_server: TokenServer, host: str) -> None:
    """Names of the loopback and of --allow-host, with any port: a proxy may have another one."""
    assert (
        token_server.server.get("/healthz", headers={"Host": host.format(port=token_server.server.port)}).status == 200
    )


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
def test_other_hosts_are_refused(token_server: TokenServer, host: str) -> None:
    """A page whose host name resolves to the loopback (DNS rebinding) sends its own name."""
    sent = {
        "Host": host.format(port=token_server.server.port),
        "Authorization": f"Bearer {token_server.tokens['editor']}",
    }
    for path in ("/", "/healthz", "/v1/stats", "/static/{name}", "/nowhere"):
        answer = token_server.server.get(real(path), headers=sent)
        assert (answer.status, answer.error) == (421, "wrong_host"), path


@pytest.mark.parametrize(
    "lines", [[], ["Host:"], ["Host: "], ["Host: 127.0.0.1", "Host: evil.example"], ["Host: 127.0.0.1"] * 2]
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_has_one_host(token_server: TokenServer, lines: list[str], version: str) -> None:
    """None, an empty one and two are refused."""
    answer = raw(token_server.server, f"GET /healthz HTTP/{version}", *lines)
    assert (answer.status, answer.error) in ((400, "bad_http"), (421, "wrong_host"))


@pytest.mark.parametrize(
    "target", ["http://evil.example/healthz", "//evil.example/healthz", "evil.example:80", "*", "healthz"]
)
def test_the_target_is_a_path(token_server: TokenServer, target: str) -> None:
    """A target with a host does not bypass the check of the Host field."""
    answer = raw(token_server.server, f"GET {target} HTTP/1.1", "Host: 127.0.0.1")
    assert answer.status in (400, 404, 421)
    assert answer.error in ("bad_http", "not_found", "wrong_host")


@pytest.mark.parametrize(
    ("origin", "host"),
    [("http://127.0.0.1:{port}", "127.0.0.1:{port}"), ("http://localhost:{port}", "localhost:{port}"),
     ("http://[::1]:{port}", "[::1]:{port}"),
     ("https://news.example.org", "news.example.org"), ("https://news.example.org:8443", "news.example.org:8443"),
     ("https://NEWS.example.org", "news.example.org")],
)  # fmt: skip
def test_own_origins_are_accepted(there: TokenServer, origin: str, host: str) -> None:
    """Also behind a proxy with TLS."""
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
def test_other_origins_are_refused(there: TokenServer, origin: str) -> None:
    """Another site, another port, a file or a sandbox, with or without a token."""
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
def test_content_types_of_forms_are_refused(there: TokenServer, kind: str) -> None:
    """A page of another site can send these without a preflight."""
    headers = {"Content-Type": kind, "Authorization": f"Bearer {there.tokens['editor']}"}
    for one in (asked for asked in REQUESTS if asked.body is not None):
        answer = there.server.ask(one.method, one.path, json.dumps(one.body).encode(), headers=headers)
        assert (answer.status, answer.error) == (415, "unsupported_media_type"), str(one)
    assert named(there) == {"there"}


def test_a_body_without_a_type_is_refused(there: TokenServer) -> None:
    """A page can send a blob without a type."""
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
def test_json_is_accepted(there: TokenServer, kind: str) -> None:
    """With or without a charset."""
    headers = {"Content-Type": kind, "Authorization": f"Bearer {there.tokens['editor']}"}
    assert there.server.post("/v1/documents", DOCUMENT, headers=headers).status == 200


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
def test_preflights_are_not_granted(token_server: TokenServer, method: str) -> None:
    """And no response has CORS headers."""
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    for origin in ("http://evil.example", "null"):
        answer = token_server.server.ask(method, "/v1/query", headers={"Origin": origin, **asks})
        assert answer.status in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_forwarding_headers_are_ignored(token_server: TokenServer) -> None:
    """They allow neither a host nor an origin."""
    forwarded = {
        "X-Forwarded-Host": "news.example.org",
        "Forwarded": "host=news.example.org",
        "X-Forwarded-For": "127.0.0.1",
    }
    assert token_server.server.get("/healthz", headers={"Host": "evil.example", **forwarded}).error == "wrong_host"
    assert token_server.server.get("/v1/stats", headers=forwarded).error == "unauthorized"
    override = {"X-HTTP-Method-Override": "DELETE", "Authorization": f"Bearer {token_server.tokens['reader']}"}
    assert token_server.server.post("/v1/documents/there", {}, headers=override).status in (403, 405)
