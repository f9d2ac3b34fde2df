"""Fixtures: a server over a small index with texts, new for every test or shared by those of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.running import Server, new_index, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create an index that stores texts, with shingles of two words."""
    return new_index(tmp_path)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    """Serve without tokens."""
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an index that stores texts, for all tests of a file."""
    return new_index(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def shared_server(shared_folder: Path) -> Iterator[Server]:
    """Serve for all tests of a file."""
    with serving(shared_folder) as running:
        yield running


@pytest.fixture
def emptied_server(shared_server: Server) -> Iterator[Server]:
    """Return the shared server, and remove all documents after the test."""
    yield shared_server
    while left := shared_server.get("/v1/documents?limit=100").json["documents"]:
        shared_server.ask("DELETE", "/v1/documents", {"ids": [one["id"] for one in left]})
