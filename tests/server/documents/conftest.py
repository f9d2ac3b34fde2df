"""One server for the tests of a file: each has ids and words of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import minwise as mw
from server.running import Server

topics = itertools.count()


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Server:
    """One server for the tests of a file: each has ids and words of its own."""
    return shared_server


@pytest.fixture
def reader(shared_folder: Path) -> Iterator[mw.Index]:
    """The same index, opened by another process than the server: this one."""
    with mw.Index.open(shared_folder) as index:
        yield index


@pytest.fixture
def topic() -> str:
    """A word that no other test has."""
    return f"topic{next(topics)}x"
