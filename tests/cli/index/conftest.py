"""Fixtures: directories with an index."""

from pathlib import Path

import pytest
from support.small_corpus import ROWS, write

import minwise as mw


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with five documents, two of which are near-duplicates of others, and an empty index."""
    write(tmp_path / "in.jsonl", ROWS)
    mw.Index.create(tmp_path / "news.mw", seed=1).close()
    return tmp_path


@pytest.fixture
def filled(folder: Path) -> Path:
    """Return the same directory, with the documents in the index."""
    with mw.Index.open(folder / "news.mw", "w") as index:
        index.add_from(folder / "in.jsonl", metadata_columns=["year", "note"])
    return folder
