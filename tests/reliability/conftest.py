"""Corpora and folders that several reliability tests share."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fault_corpora import write_corpus


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a corpus that takes a second or two; runs may leave their directories in its folder."""
    return write_corpus(tmp_path_factory.mktemp("large"), 20_000)


@pytest.fixture(scope="session")
def small() -> Iterator[Path]:
    """Yield a folder with a corpus of 600 documents, in memory if possible: there a sync costs nothing."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="minwise-test-", dir=parent))
    yield write_corpus(folder, 600)
    shutil.rmtree(folder)


@pytest.fixture
def folder(small: Path) -> Iterator[Path]:
    """Yield a new folder with a copy of the small corpus."""
    folder = Path(tempfile.mkdtemp(dir=small))
    for path in small.iterdir():
        if path.is_file():
            shutil.copy2(path, folder)
    yield folder
    shutil.rmtree(folder)
