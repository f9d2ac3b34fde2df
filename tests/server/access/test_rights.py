"""Tokens and their rights: what each route requires, invalid tokens, and that tokens are never revealed."""

from hashlib import sha256
from pathlib import Path

import pytest

from minwise.server.tokens import make_token
from server.access.token_servers import HOLDERS, REQUESTS, WRITING, Request, TokenServer, named, raw, real
from server.running import serving


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_every_route_requires_its_rights(there: TokenServer, request_: Request, holder: str) -> None:
    """A missing or wrong token is 401, a missing right 403, and nothing is changed."""
    before = named(there)
    answer = there.ask(request_, holder)
    rights = HOLDERS[holder]
    if request_.rights <= (rights or frozenset()):
        assert answer.status == 200
        return
    assert (answer.status, answer.error) == ((403, "forbidden") if rights else (401, "unauthorized"))
    assert answer.headers.get("www-authenticate") == (None if rights else "Bearer")
    assert named(there) == before == {"there"}


def test_stats_contain_the_rights_of_the_client(token_server: TokenServer) -> None:
    for holder, rights in HOLDERS.items():
        if rights is not None and "read" in rights:
            assert token_server.ask(Request("GET", "/v1/stats"), holder).json["rights"] == sorted(rights)


def test_every_route_is_in_the_table(token_server: TokenServer) -> None:
    """The table above has all routes of the schema."""
    paths = token_server.server.get("/openapi.json").json["paths"]
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
def test_other_credentials_are_refused(token_server: TokenServer, header: str) -> None:
    """Other schemes, the hash, and the token with additional characters."""
    token = str(token_server.tokens["editor"])
    sent = header.format(token=token, hash=sha256(token.encode()).hexdigest())
    answer = token_server.server.get("/v1/stats", headers={"Authorization": sent})
    assert (answer.status, answer.error) == (401, "unauthorized")
    assert token not in answer.body.decode()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_case_insensitive(token_server: TokenServer, scheme: str) -> None:
    """RFC 9110, section 11.1."""
    assert (
        token_server.server.get(
            "/v1/stats", headers={"Authorization": f"{scheme} {token_server.tokens['reader']}"}
        ).status
        == 200
    )


def test_two_authorization_fields_are_refused(token_server: TokenServer) -> None:
    """A proxy and the server could read different ones."""
    tokens = [f"Bearer {token_server.tokens[name]}" for name in ("unknown token", "editor")]
    for pair in (tokens, tokens[::-1]):
        answer = raw(
            token_server.server,
            "GET /v1/stats HTTP/1.1",
            f"Host: {token_server.server.host}",
            *(f"Authorization: {one}" for one in pair),
        )
        assert answer.status in (400, 401)


@pytest.mark.parametrize("place", ["?token={token}", "?access_token={token}", "?authorization=Bearer%20{token}"])
def test_a_token_in_the_url_is_ignored(token_server: TokenServer, place: str) -> None:
    """It would appear in logs and histories."""
    assert token_server.server.get("/v1/stats" + place.format(token=token_server.tokens["editor"])).status == 401


def test_cookies_are_ignored_and_never_set(token_server: TokenServer) -> None:
    """Browsers send them automatically, which makes CSRF possible."""
    answer = token_server.server.get("/v1/stats", headers={"Cookie": f"token={token_server.tokens['editor']}"})
    assert answer.status == 401
    assert all("set-cookie" not in token_server.ask(one, "editor").headers for one in REQUESTS[:10])


def test_read_only_refuses_every_token(folder: Path) -> None:
    token = make_token(folder.parent / "tokens.txt", ["read", "write"])
    with serving(folder, "--read-only", "--token-file", str(folder.parent / "tokens.txt")) as server:
        server.token = token
        for one in WRITING:
            answer = server.ask(one.method, one.path, one.body)
            assert (answer.status, answer.error) == (403, "read_only"), str(one)
        assert server.get("/v1/stats").json["read_only"] is True


def test_output_and_metrics_contain_no_token(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither a valid nor a wrong one, nor a hash."""
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
