"""Virtual environments of the peers, one each, in the cache, so that dependencies cannot conflict."""

from __future__ import annotations

import re
import subprocess
import venv
from importlib.metadata import requires
from pathlib import Path

from benchmarks.speed.corpus import cache_dir

# Peers that the `bench` extra does not name, with the releases this was written for.
FURTHER_PEERS = {
    "gaoya": ["gaoya>=0.2,<0.3"],
    "text-dedup": ["text-dedup>=0.4,<0.5"],
    # Its MinHash steps import these, but its package does not require them. They do not work with xxhash 4.
    "datatrove": ["datatrove>=0.10,<0.11", "orjson", "regex", "spacy>=3.8,<3.9", "tokenizers", "xxhash>=3,<4"],
    "SetSimilaritySearch": ["SetSimilaritySearch>=1.0,<2", "numpy"],
    "faiss": ["faiss-cpu>=1.8,<2", "numpy"],
}


def peer_python(package: str) -> Path:
    """Return the interpreter of a peer's environment, which is created once per set of requirements."""
    wanted = [*requirements(package), "pyarrow"]
    folder = cache_dir() / f"peer-{package}"
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != "\n".join(wanted):
        print(f"installing {package}: {', '.join(wanted)}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    return python


def requirements(package: str) -> list[str]:
    """Return the requirements of a peer: those of the ``bench`` extra, otherwise those of `FURTHER_PEERS`."""
    extra = [line.split(";")[0].strip() for line in requires("minwise") or [] if "bench" in line.partition(";")[2]]
    named = {re.split(r"[<>=!~ \[]", line)[0]: [line] for line in extra}
    return {**FURTHER_PEERS, **named}[package]
