"""Security headers, and ids that look like paths or URLs."""

import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from server.access.token_servers import REQUESTS, TokenServer, raw
from server.running import Server

SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def test_security_headers_are_on_every_response(there: TokenServer) -> None:
    """Pages, data and each kind of error; responses below /v1 are never cached."""
    server, editor = there.server, {"Authorization": f"Bearer {there.tokens['editor']}"}
    host = f"Host: {server.host}"
    answers = {str(one): there.ask(one, "editor") for one in REQUESTS}
    answers |= {f"{one}, no token": there.ask(one) for one in REQUESTS}
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


def test_security_headers_do_not_depend_on_tokens(server: Server) -> None:
    """Nor on --read-only."""
    for answer in (server.get("/"), server.get("/v1/stats"), server.get("/v1/documents/x"), server.add("a", "a text")):
        assert {field: answer.headers.get(field) for field in SECURITY} == SECURITY


PLACES = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "file:///etc/passwd", "http://127.0.0.1:1/x", "a/b", "a//b", "/",
    "%2e%2e%2fetc%2fpasswd", "..\\..\\windows", "~root", "$HOME", "`id`", "; ls", "a?b=c", "a#b", "a b", "ünï",
    "news.mw", "tokens.txt", "\u202e",
]  # fmt: skip


def test_an_id_that_looks_like_a_path_touches_no_file(server: Server, shared_folder: Path) -> None:
    (shared_folder.parent / "outside.txt").write_text("not yours")
    before = sorted(path.name for path in shared_folder.parent.iterdir())
    for name in PLACES:
        assert server.add(name, f"the text of {name}").json["results"][0]["fate"] == "added", name
        path = "/v1/documents/" + quote(name, safe="")
        found = server.get(path).json
        assert (found["id"], found["text"]) == (name, f"the text of {name}")
        assert server.ask("DELETE", path).json == {"removed": 1}, name
        assert server.get(path).error == "not_found", name
    assert sorted(path.name for path in shared_folder.parent.iterdir()) == before


@pytest.mark.parametrize(
    "path",
    ["/static/../settings.py", "/static/..%2fsettings.py", "/static/%2e%2e/settings.py",
     "/static/%2e%2e%2fsettings.py", "/static//etc/passwd",
     "/static/%2fetc%2fpasswd", "/static/..\\settings.py", "/static/", "/static", "/static/.",
     "/static/index.html/..", "/static/%00", "/static/index.html%00.js",
     "/etc/passwd", "//etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/../static/x",
     "/docs/../v1/stats"],
)  # fmt: skip
def test_static_paths_cannot_leave_the_page_folder(token_server: TokenServer, path: str) -> None:
    answer = raw(token_server.server, f"GET {path} HTTP/1.1", "Host: 127.0.0.1")
    assert (answer.status, answer.error) in ((404, "not_found"), (400, "bad_http"))
    assert b"root:" not in answer.body


def test_urls_and_paths_in_documents_are_not_opened(server: Server, shared_folder: Path) -> None:
    secret = shared_folder.parent / "secret.txt"
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
