"""A server over a small index that stores texts: fresh for every test, or shared by those of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.running import Server, new_index, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new index that stores texts and takes pairs of words."""
    return new_index(tmp_path)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    """The usual server, which lets everybody on this machine do everything."""
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new index that stores texts, for all tests of a file."""
    return new_index(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def shared_server(shared_folder: Path) -> Iterator[Server]:
    """One server for all tests of a file."""
    with serving(shared_folder) as running:
        yield running


@pytest.fixture
def emptied_server(shared_server: Server) -> Iterator[Server]:
    """The same server with an empty index; whatever a test leaves goes."""
    yield shared_server
    while left := shared_server.get("/v1/documents?limit=100").json["documents"]:
        shared_server.ask("DELETE", "/v1/documents", {"ids": [one["id"] for one in left]})
