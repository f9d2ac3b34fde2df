"""Peers: an environment of their own in the cache, so that they never meet our dependencies."""

from __future__ import annotations

import subprocess
import venv
from importlib.metadata import requires
from pathlib import Path

from benchmarks.speed.corpus import cache_dir


def peer_requirements() -> list[str]:
    """Return what the ``bench`` extra asks for, and pyarrow to read the texts with."""
    extra = [line.split(";")[0].strip() for line in requires("minwise") or [] if "bench" in line.partition(";")[2]]
    return [*extra, "pyarrow"]


def peer_python() -> Path:
    """Return the interpreter of the environment that all peers of this benchmark share."""
    return environment_python("peers", peer_requirements())


def environment_python(name: str, requirements: list[str]) -> Path:
    """Return the interpreter of an environment in the cache, made once per set of requirements."""
    wanted = "\n".join(requirements)
    folder = cache_dir() / name
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {name}: {', '.join(requirements)}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python
