"""Output at a URL: all files, or a marker that they are incomplete; other files are not replaced."""

from collections.abc import Iterator
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError, MinwiseError
from minwise.inputs import Files
from minwise.results.output import UNFINISHED
from minwise.search.engine import LocalEngine

TEXTS = ["one two three four five six", "One two three four five six", "seven eight nine"]
URL = "memory://bucket/clean"


@pytest.fixture(autouse=True)
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """Return the in-memory file system of fsspec, empty before and after."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield filesystem
    filesystem.store.clear()


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Write a file of three documents."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS))
    return str(path)


def names(filesystem: fsspec.AbstractFileSystem) -> list[str]:
    """Return the names of all files."""
    return sorted(path.removeprefix("/bucket/clean/") for path in filesystem.store)


def test_a_remote_output_has_the_files_of_a_local_one(
    source: str, tmp_path: Path, memory: fsspec.AbstractFileSystem
) -> None:
    """The same files with the same bytes, and no marker."""
    mw.dedup([source], tmp_path / "here")
    mw.dedup([source], URL)
    here = {path.relative_to(tmp_path / "here").as_posix(): path for path in (tmp_path / "here").rglob("*.*")}
    assert names(memory) == sorted(here)
    for name in ("kept/a.jsonl", "removed.parquet", "clusters.parquet", "report.json"):
        assert memory.cat_file(f"/bucket/clean/{name}") == here[name].read_bytes()


def test_an_output_is_only_replaced_with_overwrite(source: str, memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe_file("/bucket/clean/mine.txt", b"x")
    message = error_message(ConfigError, lambda: mw.dedup([source], URL))
    assert message == f"output must be new or empty, got {URL} with files in it; give another output or overwrite=True"
    mw.dedup([source], URL, overwrite=True)
    assert "mine.txt" not in names(memory)


def test_a_failed_run_leaves_no_files(
    source: str, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker is there during the write; after an error there is nothing."""
    during: list[list[str]] = []

    def fail(*_: object) -> int:
        during.append(names(memory))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalEngine, "copy_kept", fail)
    with pytest.raises(OSError, match="No space"):
        mw.dedup([source], URL)
    assert during == [[UNFINISHED]]
    assert names(memory) == []


def test_files_with_the_marker_of_a_killed_run_are_replaced(source: str, memory: fsspec.AbstractFileSystem) -> None:
    for name in (UNFINISHED, "kept/old.jsonl"):
        memory.pipe_file(f"/bucket/clean/{name}", b"x")
    mw.dedup([source], URL)
    assert {UNFINISHED, "kept/old.jsonl"}.isdisjoint(names(memory))


def test_a_finished_run_is_not_done_again(source: str, tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    """The work directory has a note of the published output."""
    assert not mw.dedup([source], URL, work=tmp_path / "work").published
    assert mw.dedup([source], URL, work=tmp_path / "work").published
    memory.rm_file("/bucket/clean/report.json")
    message = error_message(ConfigError, lambda: mw.dedup([source], URL, work=tmp_path / "work"))
    assert "must be new or empty" in message


def test_an_output_that_is_or_contains_an_input_is_refused(memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe_file("/bucket/clean/a.jsonl", b'{"text": "one"}\n')
    message = error_message(ConfigError, lambda: mw.dedup([f"{URL}/a.jsonl"], URL, overwrite=True))
    assert message.startswith(f"output must not be or hold an input, got {URL} with {URL}/a.jsonl")
    above = error_message(ConfigError, lambda: mw.dedup([f"{URL}/a.jsonl"], "memory://bucket", overwrite=True))
    assert above.startswith("output must not be or hold an input")


def test_pairs_can_be_written_to_a_url(source: str, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    mw.write_pairs([source], "memory://bucket/pairs.parquet")
    mw.write_pairs([source], tmp_path / "pairs.parquet")
    assert memory.cat_file("/bucket/pairs.parquet") == (tmp_path / "pairs.parquet").read_bytes()
    assert pq.read_table(tmp_path / "pairs.parquet").num_rows == 1


def test_files_that_appear_during_a_run_stay(source: str, memory: fsspec.AbstractFileSystem) -> None:
    def progress(stage: str, *_: object) -> None:
        memory.pipe_file("/bucket/clean/mine.txt", stage.encode())

    message = error_message(ConfigError, lambda: mw.dedup([source], URL, progress=progress))
    assert message.startswith(f"output must be new or empty, got {URL} with files in it; ")
    assert names(memory) == ["mine.txt"]


def test_a_second_run_takes_an_output_over(source: str, memory: fsspec.AbstractFileSystem) -> None:
    """The first run sends no other file, and deletes none of the second."""
    others: list[object] = []

    def progress(stage: str, *_: object) -> None:
        if stage == "write" and not others:
            others.append(mw.dedup([source], URL))

    message = error_message(MinwiseError, lambda: mw.dedup([source], URL, progress=progress))
    assert message == f"output {URL} was taken over by another run, which continues; give another output"
    assert {"kept/a.jsonl", "report.json", "removed.parquet"} <= set(names(memory))
    assert UNFINISHED not in names(memory)


def test_an_input_at_a_url_must_stay_the_same(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe_file("/bucket/in.jsonl", b'{"text": "one two three four five six"}\n')

    def progress(stage: str, *_: object) -> None:
        if stage == "write":
            memory.pipe_file("/bucket/in.jsonl", b'{"text": "six five four three two one"}\n')

    call = lambda: mw.dedup(Files(["memory://bucket/in.jsonl"]), tmp_path / "out", progress=progress)  # noqa: E731
    assert "memory://bucket/in.jsonl: an input must stay the same" in error_message(InputError, call)
    assert not (tmp_path / "out").exists()
