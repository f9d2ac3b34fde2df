"""A server with tokens and one without, shared by the tests of a file."""

from collections.abc import Iterator

import pytest

from minwise.server.tokens import make_token
from server.access.token_servers import HOLDERS, TokenServer
from server.running import Server, new_index, serving


@pytest.fixture(scope="module")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """Serve with tokens."""
    folder = tmp_path_factory.mktemp("token_server")
    tokens: dict[str, str | None] = {"no token": None, "unknown token": "mw_" + "A" * 43}
    for name, rights in HOLDERS.items():
        if rights:
            tokens[name] = make_token(folder / "tokens.txt", rights, name)
    options = ("--token-file", str(folder / "tokens.txt"), "--allow-host", "news.example.org")
    with serving(new_index(folder), *options) as server:
        yield TokenServer(server, tokens)


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Server:
    """Serve without tokens; every test uses its own ids."""
    return shared_server


@pytest.fixture
def there(token_server: TokenServer) -> TokenServer:
    """Provide the document that requests name, and remove the one that they add."""
    editor = {"Authorization": f"Bearer {token_server.tokens['editor']}"}
    assert token_server.server.ask("DELETE", "/v1/documents", {"ids": ["new"]}, headers=editor).status == 200
    assert token_server.server.add("there", "the ferry leaves at six in the morning", headers=editor).status == 200
    return token_server
