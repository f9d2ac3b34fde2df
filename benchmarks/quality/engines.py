"""Engines: who is asked, in which environment, and in what way."""

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
from benchmarks.environments import peer_python
from benchmarks.processes import run_measured
from benchmarks.quality.corpora import Corpus
from benchmarks.quality.runners.harness import Answer, Job

SLOTS = 256
SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A tool and a way to use it.

    Attributes:
        name: Shown in the table.
        package: Its package, which has an environment of its own; None for ours.
        way: Passed to its runner.
        candidates: What it does with the candidates of the bands.
        takes_seed: Whether its hashes can be others; who takes none is asked once.
    """

    name: str
    package: str | None
    way: str = ""
    candidates: str
    takes_seed: bool = True

    @property
    def runner(self) -> str:
        """Name of the module that runs it."""
        return f"benchmarks.quality.runners.run_{(self.package or 'minwise').replace('-', '_')}"


ENGINES = (
    Engine(name="minwise", package=None, way="fast exact", candidates="compares their sets"),
    Engine(name="minwise, minhash", package=None, way="minhash exact", candidates="compares their sets"),
    Engine(name="minwise, by signature", package=None, way="fast signature", candidates="compares signatures"),
    Engine(name="minwise, clusters", package=None, way="fast exact components", candidates="compares their sets"),
    Engine(name="minwise, stars", package=None, way="fast exact star", candidates="compares their sets"),
    Engine(name="datasketch", package="datasketch", candidates="takes them"),
    Engine(name="datasketch, checked", package="datasketch", way="checked", candidates="compares signatures"),
    Engine(name="rensa", package="rensa", candidates="compares signatures"),
    Engine(name="gaoya", package="gaoya", candidates="compares signatures", takes_seed=False),
    # It has an option --seed, and draws its hashes from a constant.
    Engine(name="text-dedup", package="text-dedup", candidates="takes them, and what they connect", takes_seed=False),
    Engine(name="datatrove", package="datatrove", candidates="takes them, and what they connect"),
)
# What there is beside, and why it is not asked.
LEFT_OUT = {
    "rensa CMinHash": "no index that lists pairs, only a deduplicator",
    "rensa rho": "says that a document has a partner, not which",
    "minwise OnePermutation": "pairs does not offer it: a bin that is empty in a small set costs its whole band",
}


def job_of(corpus: Corpus) -> Job:
    """Return a corpus as a job: its sets as texts of which every word is an element."""
    return make_job(corpus.texts, words=1, threshold=corpus.threshold, plain=True)


def make_job(texts: list[str], *, words: int, threshold: float, plain: bool = False) -> Job:
    """Return a job, still without the layout and the way of an engine."""
    return Job(texts=texts, words=words, plain=plain, threshold=threshold, slots=SLOTS, bands=SLOTS, rows=1)


def job_for(engine: Engine, job: Job) -> Job:
    """Return a job with the way of an engine, and with bands and rows in case it has none of its own.

    Who checks candidates gets as many rows as our plan, rounded down to a power of two so that bands of them fill all
    slots: as rensa demands, and so it finds at least what we promise. Who takes candidates as they are gets the
    layout of the least area of both errors, which datasketch and text-dedup choose for themselves.
    """
    if engine.candidates.startswith("takes"):
        plan = mw.plan_by_area(threshold=job.threshold, slots=SLOTS)
        return replace(job, way=engine.way, bands=plan.bands, rows=plan.rows)
    rows = 1 << (mw.plan(threshold=job.threshold, slots=SLOTS).rows.bit_length() - 1)
    return replace(job, way=engine.way, bands=SLOTS // rows, rows=rows)


def python(engine: Engine) -> Path:
    """Return the interpreter an engine runs in, its environment made if the cache has none."""
    return Path(sys.executable) if engine.package is None else peer_python(engine.package)


def ask(engine: Engine, jobs: Sequence[Job]) -> tuple[list[Answer], dict[str, str], float]:
    """Return an engine's answers, its versions, and how long it took; a failure is an answer too."""
    try:
        interpreter = python(engine)
    except subprocess.CalledProcessError as error:
        return [Answer(error=f"can not be installed: {error}")] * len(jobs), {}, 0.0
    with tempfile.TemporaryDirectory() as name:
        given, said = Path(name) / "jobs.json", Path(name) / "answers.json"
        given.write_text(json.dumps([asdict(job_for(engine, job)) for job in jobs]), encoding="utf-8")
        run = run_measured([str(interpreter), "-m", engine.runner, str(given), str(said)])
        if run.code != 0:
            reason = f"ended with {run.code}: {run.errors.splitlines()[-1] if run.errors else 'no words'}"
            return [Answer(error=reason)] * len(jobs), {}, run.seconds
        content: dict[str, Any] = json.loads(said.read_text(encoding="utf-8"))
    return [Answer(**one) for one in content["answers"]], content["versions"], run.seconds
