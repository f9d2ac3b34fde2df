"""Addresses: the loopback requires no token, all others do."""

import socket
from pathlib import Path

import pytest
from support.commands import USAGE, one_line, run

from minwise.server.tokens import make_token
from server.running import PATIENCE_SECONDS, Server, serving


def test_without_tokens_local_clients_have_all_rights(server: Server) -> None:
    """A token that is sent anyway is ignored."""
    assert server.add("ferry", "the ferry leaves at six").status == 200
    assert server.get("/v1/stats", headers={"Authorization": "Bearer mw_unknown"}).status == 200
    assert server.ask("DELETE", "/v1/documents/ferry").json == {"removed": 1}


def test_the_loopback_is_the_default(server: Server) -> None:
    """Other addresses of this machine are not listened on, not even others of the loopback."""
    assert server.url == f"http://127.0.0.1:{server.port}/"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "news.example.org"])
def test_any_other_address_needs_tokens(folder: Path, host: str) -> None:
    """The error is one line with the remedy."""
    line = one_line(run(folder.parent, "serve", "--index", "news.mw", "--port", "0", "--host", host), USAGE)
    assert f"got '{host}'" in line
    assert "minwise token FILE --read --write" in line


def test_other_addresses_work_with_tokens(folder: Path) -> None:
    """With allowed host names only."""
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
def test_the_ipv6_loopback_works(folder: Path) -> None:
    """Its address is in brackets."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no ::1 here")
    with serving(folder, "--host", "::1") as server:
        assert server.url == f"http://[::1]:{server.port}/"
        assert server.get("/v1/stats").status == 200
        assert server.get("/v1/stats", headers={"Origin": f"http://[::1]:{server.port}"}).status == 200
