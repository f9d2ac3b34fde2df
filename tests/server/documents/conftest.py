"""One server for the tests of a file; every test uses its own ids and words."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import minwise as mw
from server.running import Server

topics = itertools.count()


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Server:
    """Serve for all tests of a file."""
    return shared_server


@pytest.fixture
def reader(shared_folder: Path) -> Iterator[mw.Index]:
    """Open the same index in this process."""
    with mw.Index.open(shared_folder) as index:
        yield index


@pytest.fixture
def topic() -> str:
    """Return a word that no other test uses."""
    return f"topic{next(topics)}x"
