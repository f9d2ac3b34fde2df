"""Engines: who deduplicates, in which environment, by which command."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.peers import environment_python, peer_requirements

THRESHOLD = 0.8
SHINGLES = "word:5"
SLOTS = 256
MINWISE = (sys.executable, "-m", "minwise", "dedup")
# What the `bench` extra does not name: the releases this was written for.
FURTHER_PEERS = {"gaoya": "gaoya>=0.2,<0.3", "text-dedup": "text-dedup>=0.4,<0.5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A way to deduplicate a file.

    Attributes:
        name: Shown in the table.
        package: The peer's package, which has an environment of its own; None for ours.
        scheme: Which of the peer's sketches.
        wanted: How many times our time it should need at least; None for no target.
    """

    name: str
    package: str | None = None
    scheme: str = "minhash"
    wanted: float | None = None

    @property
    def runner(self) -> str:
        """Name of the module that runs it."""
        return f"benchmarks.endtoend.runners.run_{(self.package or self.name).replace('-', '_')}"


ENGINES = (
    Engine(name="minwise"),
    Engine(name="copy"),
    Engine(name="rensa rminhash", package="rensa", scheme="rminhash", wanted=10),
    Engine(name="rensa cminhash", package="rensa", scheme="cminhash", wanted=10),
    Engine(name="gaoya", package="gaoya", wanted=10),
    Engine(name="text-dedup", package="text-dedup", wanted=50),
    Engine(name="datasketch", package="datasketch", wanted=50),
)


def command(engine: Engine, source: Path, output: Path, *, threads: int, minwise: Sequence[str] = MINWISE) -> list[str]:
    """Return the command that deduplicates ``source`` into the folder ``output``."""
    if engine.name == "minwise":
        settings = [
            "--threshold",
            str(THRESHOLD),
            "--shingle",
            SHINGLES,
            "--threads",
            str(threads),
            "--quiet",
            "--json",
        ]
        return [*minwise, str(source), "-o", str(output), *settings]
    options = ["--scheme", engine.scheme, "--threshold", str(THRESHOLD)]
    options += ["--slots", str(SLOTS), "--threads", str(threads)]
    return [str(python(engine)), "-m", engine.runner, str(source), str(output), *options]


def python(engine: Engine) -> Path:
    """Return the interpreter an engine runs in, its environment made if the cache has none."""
    if engine.package is None:
        return Path(sys.executable)
    return environment_python(f"peer-{engine.package}", [requirement(engine.package), "pyarrow"])


def requirement(package: str) -> str:
    """Return which releases of a peer are measured: what the ``bench`` extra says, else what is said here."""
    named = {re.split(r"[<>=!~ \[]", line)[0]: line for line in peer_requirements()}
    return {**FURTHER_PEERS, **named}[package]
