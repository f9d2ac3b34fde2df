"""Syncing on systems that need another call than fsync."""

import errno
import os
import runpy
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minwise._internal import atomic


def _on_macos(
    monkeypatch: pytest.MonkeyPatch, control: Callable[[int, int], object]
) -> tuple[dict[str, Any], list[int]]:
    """Return the names of the module as macOS would see it, and the descriptors that were passed to fsync."""
    synced: list[int] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "fcntl", types.SimpleNamespace(F_FULLFSYNC=51, fcntl=control))
    monkeypatch.setattr(os, "fsync", synced.append)
    return runpy.run_path(atomic.__file__), synced


@pytest.mark.posix
def test_macos_empties_the_cache_of_the_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    module, synced = _on_macos(monkeypatch, lambda descriptor, command: calls.append(command))
    with module["atomic_writer"](tmp_path / "file") as file:
        file.write(b"content")
    module["sync_path"](tmp_path / "file")
    assert calls == [51] * 3  # the file, its directory, and the file again
    assert synced == []


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_macos_uses_fsync_where_the_file_system_has_no_other_call(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(descriptor: int, command: int) -> None:
        raise OSError(number, "refused")

    module, synced = _on_macos(monkeypatch, refuse)
    module["sync_file"](7)
    assert synced == [7]


def test_failed_sync_on_macos_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, command: int) -> None:
        raise OSError(errno.EIO, "failed")

    module, synced = _on_macos(monkeypatch, fail)
    with pytest.raises(OSError, match="failed"):
        module["sync_file"](7)
    assert synced == []
