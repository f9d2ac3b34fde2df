"""Engines: their environments, modes and runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import minwise as mw
from benchmarks.environments import PeerUnavailableError, peer_python
from benchmarks.processes import run_measured
from benchmarks.quality.corpora import Corpus
from benchmarks.quality.runners.harness import Answer, Job
from minwise.sketches import plan_by_area

SLOTS = 256
SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A tool and a mode of using it.

    Attributes:
        name: Shown in the table.
        package: Its package, which has its own environment; None for minwise.
        mode: Passed to its runner.
        candidates: What it does with the candidates of the bands.
        takes_seed: Whether it accepts a seed; a tool that does not is run once.
    """

    name: str
    package: str | None
    mode: str = ""
    candidates: str
    takes_seed: bool = True

    @property
    def runner(self) -> str:
        """Name of its runner module."""
        return f"benchmarks.quality.runners.run_{(self.package or 'minwise').replace('-', '_').lower()}"


ENGINES = (
    Engine(name="minwise", package=None, mode="fast exact", candidates="verified by sets"),
    Engine(name="minwise, minhash", package=None, mode="minhash exact", candidates="verified by sets"),
    Engine(name="minwise, by signature", package=None, mode="fast signature", candidates="verified by signatures"),
    Engine(name="minwise, clusters", package=None, mode="fast exact components", candidates="verified by sets"),
    Engine(name="minwise, stars", package=None, mode="fast exact star", candidates="verified by sets"),
    Engine(name="datasketch", package="datasketch", candidates="not verified"),
    Engine(name="datasketch, checked", package="datasketch", mode="checked", candidates="verified by signatures"),
    Engine(name="rensa", package="rensa", candidates="verified by signatures"),
    Engine(name="gaoya", package="gaoya", candidates="verified by signatures", takes_seed=False),
    # It has an option --seed, but draws its hashes from a constant.
    Engine(name="text-dedup", package="text-dedup", candidates="not verified, connected components", takes_seed=False),
    Engine(name="datatrove", package="datatrove", candidates="not verified, connected components"),
    Engine(name="FastSketchLSH", package="FastSketchLSH", candidates="not verified"),
)
# Engines that are not measured, and why.
EXCLUDED = {
    "text-dedup, checked": "joins all pairs of a connected component with their texts, on febrl4 more than 30 million",
    "rensa CMinHash": "no index that lists pairs, only a deduplicator",
    "rensa rho": "reports that a document has a similar one, not which",
    "minwise OnePermutation": "not offered by pairs: an empty bin of a small set invalidates its whole band",
}


def corpus_job(corpus: Corpus) -> Job:
    """Return the job of a corpus: its sets as texts in which every word is an element."""
    return make_job(corpus.texts, words=1, threshold=corpus.threshold, plain=True)


def make_job(texts: list[str], *, words: int, threshold: float, plain: bool = False) -> Job:
    """Return a job without the layout and the mode of an engine."""
    return Job(texts=texts, words=words, plain=plain, threshold=threshold, slots=SLOTS, bands=SLOTS, rows=1)


def job_for(engine: Engine, job: Job) -> Job:
    """Return a job with the mode of an engine, and with bands and rows for engines that do not choose them.

    An engine that verifies candidates gets as many rows as the plan of minwise, rounded down to a power of two so that
    the bands fill all slots, as rensa requires; it then finds at least as many pairs as the plan guarantees. An engine
    that does not verify candidates gets the layout with the smallest sum of both error areas, which datasketch and
    text-dedup choose themselves.
    """
    if engine.candidates.startswith("not verified"):
        plan = plan_by_area(threshold=job.threshold, slots=SLOTS)
        return replace(job, mode=engine.mode, bands=plan.bands, rows=plan.rows)
    rows = 1 << (mw.plan(threshold=job.threshold, slots=SLOTS).rows.bit_length() - 1)
    return replace(job, mode=engine.mode, bands=SLOTS // rows, rows=rows)


def python(engine: Engine) -> Path:
    """Return the interpreter of an engine; its environment is created if the cache has none."""
    return Path(sys.executable) if engine.package is None else peer_python(engine.package)


def run_engine(engine: Engine, jobs: Sequence[Job]) -> tuple[list[Answer], dict[str, str], float]:
    """Return the answers of an engine, its versions and its time; a failure is returned as an answer."""
    try:
        interpreter = python(engine)
    except (subprocess.CalledProcessError, PeerUnavailableError) as error:
        return [Answer(error=f"cannot be installed: {error}")] * len(jobs), {}, 0.0
    with tempfile.TemporaryDirectory() as name:
        jobs_file, answers_file = Path(name) / "jobs.json", Path(name) / "answers.json"
        jobs_file.write_text(json.dumps([asdict(job_for(engine, job)) for job in jobs]), encoding="utf-8")
        run = run_measured([str(interpreter), "-m", engine.runner, str(jobs_file), str(answers_file)])
        if run.code != 0:
            reason = f"ended with {run.code}: {run.errors.splitlines()[-1] if run.errors else 'no message'}"
            return [Answer(error=reason)] * len(jobs), {}, run.seconds
        content: dict[str, Any] = json.loads(answers_file.read_text(encoding="utf-8"))
    return [Answer(**answer) for answer in content["answers"]], content["versions"], run.seconds
