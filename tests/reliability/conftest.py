"""Corpora and places that several reliability tests share."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fault_corpora import write_corpus


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus that takes a second or two; runs may leave their directories beside it."""
    return write_corpus(tmp_path_factory.mktemp("large"), 20_000)


@pytest.fixture(scope="session")
def small() -> Iterator[Path]:
    """A folder with a corpus of 600 documents, where syncing costs nothing if there is such a place."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="minwise-test-", dir=place))
    yield write_corpus(folder, 600)
    shutil.rmtree(folder)


@pytest.fixture
def place(small: Path) -> Iterator[Path]:
    """A folder of its own with the small corpus in it."""
    folder = Path(tempfile.mkdtemp(dir=small))
    for path in small.iterdir():
        if path.is_file():
            shutil.copy2(path, folder)
    yield folder
    shutil.rmtree(folder)
