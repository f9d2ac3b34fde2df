"""Environments of the peers: which interpreter creates them."""

import sys
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import PeerUnavailableError, interpreter, requirements


def write_program(path: Path, code: int) -> Path:
    """Write a program that ends with an exit code."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of PATH and pyenv, without any program; the peer needs Python 3.98."""
    monkeypatch.setattr(environments, "MIN_PYTHON", {"peer": (3, 98)})
    monkeypatch.setattr(environments, "NEWEST_PYTHON", (3, 99))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


@pytest.mark.usefixtures("homes")
def test_peer_without_a_newer_python_says_what_it_needs() -> None:
    """Other peers use the current interpreter."""
    assert interpreter("gaoya") == Path(sys.executable)
    with pytest.raises(PeerUnavailableError, match=r"peer needs Python 3\.98 or newer"):
        interpreter("peer")


def test_newer_python_is_found_in_path_and_in_pyenv(homes: Path) -> None:
    """A program that fails, such as the shim of an inactive version, is passed over."""
    write_program(homes / "bin" / "python3.98", 127)
    newest = write_program(homes / "pyenv" / "versions" / "3.99.0" / "bin" / "python3.99", 0)
    assert interpreter("peer") == newest
    wanted = write_program(homes / "pyenv" / "versions" / "3.98.1" / "bin" / "python3.98", 0)
    assert interpreter("peer") == wanted


def test_both_releases_of_text_dedup_are_named() -> None:
    """The release with the check has its own environment, because the command of the other differs."""
    assert requirements("text-dedup") == ["text-dedup>=0.4,<0.4.1"]
    assert requirements("text-dedup-checked") == ["text-dedup>=0.4.1,<0.5"]
    assert requirements("rensa") == ["rensa>=0.5,<0.6"]
