"""Results at a URL: all files or a mark that there are not all yet; nothing of others is replaced."""

from collections.abc import Iterator
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from support.expect import complaint

import minwise as mw
from minwise.results.output import UNFINISHED
from minwise.search.local_engine import LocalEngine

TEXTS = ["one two three four five six", "One two three four five six", "seven eight nine"]
URL = "memory://bucket/clean"


@pytest.fixture(autouse=True)
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """A file system of fsspec's own, empty before and after."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield filesystem
    filesystem.store.clear()


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A file of three lines of text."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS))
    return str(path)


def names(filesystem: fsspec.AbstractFileSystem) -> list[str]:
    """All files there are."""
    return sorted(path.removeprefix("/bucket/clean/") for path in filesystem.store)


def test_a_result_is_what_a_directory_would_have(
    source: str, tmp_path: Path, memory: fsspec.AbstractFileSystem
) -> None:
    """The same files with the same bytes, and no mark beside them."""
    mw.dedup([source], tmp_path / "here")
    mw.dedup([source], URL)
    here = {path.relative_to(tmp_path / "here").as_posix(): path for path in (tmp_path / "here").rglob("*.*")}
    assert names(memory) == sorted(here)
    for name in ("kept/a.jsonl", "removed.parquet", "clusters.parquet", "report.json"):
        assert memory.cat_file(f"/bucket/clean/{name}") == here[name].read_bytes()


def test_it_is_not_replaced_unless_that_is_wanted(source: str, memory: fsspec.AbstractFileSystem) -> None:
    """As with directories."""
    memory.pipe_file("/bucket/clean/mine.txt", b"x")
    told = complaint(mw.ConfigError, lambda: mw.dedup([source], URL))
    assert told == f"output must be new or empty, got {URL} with files in it; give another -o or --overwrite"
    mw.dedup([source], URL, overwrite=True)
    assert "mine.txt" not in names(memory)


def test_what_fails_leaves_nothing(
    source: str, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is written there is a mark; after an error there is nothing."""
    seen: list[list[str]] = []

    def fail(*_: object) -> int:
        seen.append(names(memory))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalEngine, "copy_kept", fail)
    with pytest.raises(OSError, match="No space"):
        mw.dedup([source], URL)
    assert seen == [[UNFINISHED]]
    assert names(memory) == []


def test_what_a_killed_run_left_is_cleared(source: str, memory: fsspec.AbstractFileSystem) -> None:
    """It bears the mark, so nobody has to say overwrite."""
    for name in (UNFINISHED, "kept/old.jsonl"):
        memory.pipe_file(f"/bucket/clean/{name}", b"x")
    mw.dedup([source], URL)
    assert {UNFINISHED, "kept/old.jsonl"}.isdisjoint(names(memory))


def test_a_finished_run_is_not_done_again(source: str, tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    """With a work directory, that is known."""
    assert not mw.dedup([source], URL, work=tmp_path / "work").published
    assert mw.dedup([source], URL, work=tmp_path / "work").published
    memory.rm_file("/bucket/clean/report.json")
    told = complaint(mw.ConfigError, lambda: mw.dedup([source], URL, work=tmp_path / "work"))
    assert "must be new or empty" in told


def test_an_input_is_never_swallowed(memory: fsspec.AbstractFileSystem) -> None:
    """Neither as the output nor inside it."""
    memory.pipe_file("/bucket/clean/a.jsonl", b'{"text": "one"}\n')
    told = complaint(mw.ConfigError, lambda: mw.dedup([f"{URL}/a.jsonl"], URL, overwrite=True))
    assert told.startswith(f"output must not be or hold an input, got {URL} with {URL}/a.jsonl")
    above = complaint(mw.ConfigError, lambda: mw.dedup([f"{URL}/a.jsonl"], "memory://bucket", overwrite=True))
    assert above.startswith("output must not be or hold an input")


def test_pairs_go_to_a_url_too(source: str, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    """One file, with the bytes it would have here."""
    mw.pairs([source], "memory://bucket/pairs.parquet")
    mw.pairs([source], tmp_path / "pairs.parquet")
    assert memory.cat_file("/bucket/pairs.parquet") == (tmp_path / "pairs.parquet").read_bytes()
    assert pq.read_table(tmp_path / "pairs.parquet").num_rows == 1
