"""Tokens and their rights: what each route asks for, what is no token, and that none is ever told."""

from hashlib import sha256
from pathlib import Path

import pytest

from minwise.server.tokens import make_token
from server.access.doors import HOLDERS, REQUESTS, WRITING, Door, Request, named, raw, real
from server.running import serving


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
