"""Virtual environments of the peers, one each, in the cache, so that dependencies cannot conflict."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from benchmarks.speed.corpus import cache_dir

# Peers that the `bench` extra does not name, with the releases this was written for.
FURTHER_PEERS = {
    "FastSketchLSH": ["FastSketchLSH>=1.0,<2"],
    "gaoya": ["gaoya>=0.2,<0.3"],
    # Release 0.4.1 without its check keeps the documents whose number happens to be that of their cluster, a known bug:
    # of 41 documents in 20 clusters it removed 39, not 21.
    "text-dedup": ["text-dedup>=0.4,<0.4.1"],
    "text-dedup-checked": ["text-dedup>=0.4.1,<0.5"],
    # Its MinHash steps import these, but its package does not require them. They do not work with xxhash 4.
    "datatrove": ["datatrove>=0.10,<0.11", "orjson", "regex", "spacy>=3.8,<3.9", "tokenizers", "xxhash>=3,<4"],
    "SetSimilaritySearch": ["SetSimilaritySearch>=1.0,<2", "numpy"],
    "pydivsufsort": ["pydivsufsort>=0.0.20,<0.1", "numpy"],
    "scikit-learn": ["scikit-learn>=1.5,<2", "numpy"],
    "sparse_dot_topn": ["sparse_dot_topn>=1.1,<2", "numpy"],
    "faiss": ["faiss-cpu>=1.8,<2", "numpy"],
}
# Peers that need a newer Python than minwise does.
MIN_PYTHON = {"FastSketchLSH": (3, 11), "text-dedup-checked": (3, 12)}
NEWEST_PYTHON = (3, 14)


class PeerUnavailableError(RuntimeError):
    """Raised when a peer cannot be installed on this machine."""


def peer_python(package: str) -> Path:
    """Return the interpreter of a peer's environment, which is created once per set of requirements."""
    wanted = [*requirements(package), "pyarrow"]
    folder = cache_dir() / f"peer-{package}"
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != "\n".join(wanted):
        print(f"installing {package}: {', '.join(wanted)}", flush=True)
        subprocess.run([str(interpreter(package)), "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    return python


def interpreter(package: str) -> Path:
    """Return the current interpreter, or the first newer one on this machine if the peer needs it.

    Raises:
        PeerUnavailableError: If the peer needs a newer Python than this machine has.
    """
    major, minor = MIN_PYTHON.get(package, (3, 0))
    if sys.version_info[:2] >= (major, minor):
        return Path(sys.executable)
    names = [f"python{major}.{number}" for number in range(minor, NEWEST_PYTHON[1] + 1)]
    for path in (path for name in names for path in installed(name)):
        # The shim of a version that pyenv has not activated exists, but fails.
        if subprocess.run([str(path), "--version"], capture_output=True, check=False).returncode == 0:
            return path
    raise PeerUnavailableError(
        f"{package} needs Python {major}.{minor} or newer, which is not installed; install it, or omit the engine"
    )


def installed(name: str) -> Iterator[Path]:
    """Yield the programs called ``name`` in PATH and among the versions of pyenv."""
    found = shutil.which(name)
    if found:
        yield Path(found)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob(f"versions/*/bin/{name}"))


def requirements(package: str) -> list[str]:
    """Return the requirements of a peer: those of the ``bench`` extra, otherwise those of `FURTHER_PEERS`."""
    extra = [line.split(";")[0].strip() for line in requires("minwise") or [] if "bench" in line.partition(";")[2]]
    named = {re.split(r"[<>=!~ \[]", line)[0]: [line] for line in extra}
    return {**FURTHER_PEERS, **named}[package]
