"""Measure: engines in, their runs and one table out."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.endtoend.engines import MINWISE, Engine, command
from benchmarks.processes import Run, run_measured
from benchmarks.speed.corpus import cache_dir
from benchmarks.speed.sketching import environment
from benchmarks.targets import Target, align_rows

COPY_TIMES = 3  # how many times the time of copying the file we may need
COLUMNS = ("engine", "seconds", "kept", "peak MB", "x minwise", "targets")


@dataclass(slots=True)
class EngineRuns:
    """All runs of an engine.

    Attributes:
        engine: Who ran.
        runs: One per round.
        kept: Documents in the output of the last round.
        versions: Of the engine's packages.
    """

    engine: Engine
    runs: list[Run] = field(default_factory=list)
    kept: int = 0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether any run ended with an error."""
        return any(run.code for run in self.runs)

    @property
    def seconds(self) -> float:
        """The best round: what is above it is the machine's noise."""
        return min(run.seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """Most memory of any round."""
        return max(run.peak_bytes for run in self.runs)


def measure(
    engines: Sequence[Engine], source: Path, *, rounds: int, threads: int, minwise: Sequence[str] = MINWISE
) -> list[EngineRuns]:
    """Run every engine once per round, in turn, and return their runs."""
    every = [EngineRuns(engine) for engine in engines]
    for turn in range(rounds):
        for one in every:
            run_engine(one, source, threads, minwise)
            said = f"FAILED: {one.runs[-1].errors}" if one.failed else f"kept {one.kept:,}"
            print(f"round {turn + 1}/{rounds} {one.runs[-1].seconds:8.2f} s  {one.engine.name}: {said}", flush=True)
    return every


def run_engine(one: EngineRuns, source: Path, threads: int, minwise: Sequence[str]) -> None:
    """Run an engine once into a folder of its own, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="endtoend-", dir=cache_dir()))
    try:
        words = command(one.engine, source, folder / "out", threads=threads, minwise=minwise)
        run = run_measured(words, environment=environment(threads))
        one.runs.append(run)
        if not run.code:
            one.kept = sum(pq.read_metadata(path).num_rows for path in (folder / "out" / "kept").glob("*.parquet"))
            one.versions = engine_versions(one.engine, run.output)
    finally:
        shutil.rmtree(folder)


def engine_versions(engine: Engine, output: str) -> dict[str, str]:
    """Return what a peer printed about itself, or what is installed here."""
    if engine.name == "minwise":
        return {name: version(name) for name in ("minwise", "numpy", "pyarrow")}
    return dict(json.loads(output.splitlines()[-1]))


def ratios(every: Sequence[EngineRuns]) -> dict[str, float]:
    """Return each engine's time by ours."""
    ours = [one.seconds for one in every if one.engine.name == "minwise" and not one.failed]
    return {one.engine.name: one.seconds / ours[0] for one in every if ours and not one.failed}


def verdicts(one: EngineRuns, every: Sequence[EngineRuns]) -> list[str]:
    """Return the verdict on the targets of an engine; ours is held against copying the file."""
    if one.failed:
        return ["FAILED"]
    found = ratios(every)
    if one.engine.name == "minwise" and found.get("copy"):
        return [Target(figure="x copy", wanted=COPY_TIMES, at_most=True).verdict(1 / found["copy"])]
    if one.engine.wanted is None or one.engine.name not in found:
        return []
    return [Target(figure="x minwise", wanted=one.engine.wanted).verdict(found[one.engine.name])]


def row(one: EngineRuns, every: Sequence[EngineRuns]) -> list[str]:
    """Return the cells of an engine."""
    ratio = ratios(every).get(one.engine.name)
    sizes = [f"{one.seconds:.2f}", f"{one.kept:,}", f"{one.peak_bytes / 1e6:,.0f}"]
    return [one.engine.name, *sizes, "" if ratio is None else f"{ratio:.2f}", "; ".join(verdicts(one, every))]


def table(every: Sequence[EngineRuns]) -> str:
    """Return all engines as aligned plain text, the fastest first."""
    order = sorted(every, key=lambda one: one.seconds)
    return align_rows([COLUMNS, *(row(one, every) for one in order)], words=1)
