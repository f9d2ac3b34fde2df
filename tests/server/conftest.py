"""A server over a small index that stores texts, fresh for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import minwise as mw
from server.running import Server, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new index that stores texts and takes pairs of words."""
    path = tmp_path / "news.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store="text").close()
    return path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    """The usual server, which lets everybody on this machine do everything."""
    with serving(folder) as running:
        yield running
