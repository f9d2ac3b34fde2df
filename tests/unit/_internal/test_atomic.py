"""Renames that never replace, and exchanges: with the calls of the system, and without them."""

import ctypes
import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from minwise._internal import atomic


def refuse(*_: object) -> NoReturn:
    raise OSError(errno.EPERM, "not on this file system")


@pytest.fixture(params=["system call", "hard links", "lock", pytest.param("flags refused", marks=pytest.mark.posix)])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory, on a system that has fewer calls from one parameter to the next."""
    if request.param == "flags refused":  # as on NFS
        monkeypatch.setattr(atomic, "_flagged_rename", lambda: lambda *_: -1)
        monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EINVAL)
    elif request.param != "system call":
        monkeypatch.setattr(atomic, "_flagged_rename", lambda: None)
    if request.param == "lock":
        monkeypatch.setattr(os, "link", refuse)
    return tmp_path


def test_file_gets_a_free_name(folder: Path) -> None:
    (folder / "a").write_text("a")
    atomic.rename_new(folder / "a", folder / "b")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"b": "a"}


@pytest.mark.parametrize("kind", ["file", "empty file", "directory", "broken link"])
def test_file_never_replaces(folder: Path, kind: str) -> None:
    (folder / "a").write_text("a")
    if kind == "directory":
        (folder / "b").mkdir()
    elif kind == "broken link":
        (folder / "b").symlink_to("nowhere")
    else:
        (folder / "b").write_text("b" * (kind == "file"))
    before = (folder / "b").lstat()
    with pytest.raises(FileExistsError) as caught:
        atomic.rename_new(folder / "a", folder / "b")
    assert caught.value.filename == str(folder / "b")
    assert (folder / "b").lstat() == before
    assert (folder / "a").read_text() == "a"


def test_directory_replaces_only_an_empty_one(folder: Path) -> None:
    for name in ("a", "b", "full"):
        (folder / name).mkdir()
    (folder / "a/row").touch()
    (folder / "full/row").touch()
    (folder / "file").touch()
    for taken in ("full", "file"):
        with pytest.raises(FileExistsError):
            atomic.rename_new(folder / "a", folder / taken)
    atomic.rename_new(folder / "a", folder / "b")
    assert (folder / "b/row").exists()
    assert not (folder / "a").exists()


def test_exchange_keeps_both(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / name).touch()
    atomic.exchange(folder / "a", folder / "b")
    assert (folder / "a/b").exists()
    assert (folder / "b/a").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_failed_exchange_changes_nothing(folder: Path) -> None:
    (folder / "b").write_text("b")
    with pytest.raises(FileNotFoundError):
        atomic.exchange(folder / "a", folder / "b")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"b": "b"}


def test_error_of_the_system_names_both_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic.rename_new(tmp_path / "a", tmp_path / "b")
    assert str(tmp_path / "a") in str(caught.value)
