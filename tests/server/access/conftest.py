"""A server that asks for tokens and one that does not, each for the tests of a file."""

from collections.abc import Iterator

import pytest

from minwise.server.tokens import make_token
from server.access.doors import HOLDERS, Door
from server.running import Server, new_index, serving


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One server for all who only knock."""
    folder = tmp_path_factory.mktemp("door")
    tokens: dict[str, str | None] = {"nobody": None, "a stranger": "mw_" + "A" * 43}
    for name, rights in HOLDERS.items():
        if rights:
            tokens[name] = make_token(folder / "tokens.txt", rights, name)
    options = ("--token-file", str(folder / "tokens.txt"), "--allow-host", "news.example.org")
    with serving(new_index(folder), *options) as server:
        yield Door(server, tokens)


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Server:
    """One server without tokens for all tests; each has ids of its own."""
    return shared_server


@pytest.fixture
def there(door: Door) -> Door:
    """The same, with the one document that requests name, and not the one that they add."""
    editor = {"Authorization": f"Bearer {door.tokens['editor']}"}
    assert door.server.ask("DELETE", "/v1/documents", {"ids": ["new"]}, headers=editor).status == 200
    assert door.server.add("there", "the ferry leaves at six in the morning", headers=editor).status == 200
    return door
