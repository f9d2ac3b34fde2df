"""Engines: their tasks, environments and commands."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import peer_python

THRESHOLD = 0.8
SHINGLES = "word:5"
SLOTS = 256
READING, SIGNING, REMOVING = "reading the file", "text → signatures", "Parquet → deduplicated Parquet"
TASKS = (READING, SIGNING, REMOVING)
ONE, EITHER = (1,), (2, 1)  # more cores first: a job that cannot finish with them is not run with fewer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine:
    """A tool and its tasks.

    Attributes:
        name: Shown in the table.
        package: Package of the peer, which has its own environment; None for engines that run in the current one.
        scheme: Sketching scheme.
        tasks: Tasks, each with numbers of cores; an engine that uses one core is not run with two.
        min_ratio: Target by task: the least multiple of the time of minwise.
    """

    name: str
    package: str | None = None
    scheme: str = "minhash"
    tasks: Mapping[str, tuple[int, ...]]
    min_ratio: Mapping[str, float] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        """Interpreter of the engine; its environment is created if the cache has none."""
        return Path(sys.executable) if self.package is None else peer_python(self.package)

    @property
    def module(self) -> str:
        """Suffix of the names of its runner modules."""
        return (self.package or self.name).replace("-", "_").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A row of the table: a task, its engine and the number of cores."""

    task: str
    engine: Engine
    cores: int

    def __str__(self) -> str:
        """Return a description of the job."""
        return f"{self.task}: {self.engine.name}, {self.cores} core{'s' * (self.cores > 1)}"

    def command(self, source: Path, output: Path) -> list[str]:
        """Return the command that processes the file ``source`` and writes its files to ``output``."""
        if self.task != REMOVING:
            return self.run("speed", source, shingles=SHINGLES, scheme=self.engine.scheme, slots=SLOTS)
        if self.engine is not MINWISE:
            return self.run("peers", source, output, threshold=THRESHOLD, scheme=self.engine.scheme, slots=SLOTS)
        words = options(threshold=THRESHOLD, shingle=SHINGLES, threads=self.cores)
        return [sys.executable, "-m", "minwise", "dedup", str(source), "-o", str(output), "--quiet", *words]

    def run(self, benchmark: str, *paths: Path, **settings: object) -> list[str]:
        """Return the command that calls the runner of the engine in a benchmark."""
        module = f"benchmarks.{benchmark}.runners.run_{self.engine.module}"
        words = options(**settings, threads=self.cores)
        return [str(self.engine.python), "-m", module, *map(str, paths), *words]


def options(**settings: object) -> list[str]:
    """Return settings as command-line options."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


MINWISE = Engine(name="minwise", scheme="fast", tasks={SIGNING: EITHER, REMOVING: EITHER})
# The fastest peers follow minwise and the copy, so that they run under the same conditions.
ENGINES = (
    Engine(name="parquet", tasks={READING: EITHER}),
    MINWISE,
    Engine(name="copy", tasks={REMOVING: EITHER}),
    Engine(name="FastSketchLSH", package="FastSketchLSH", tasks={SIGNING: ONE, REMOVING: ONE}),
    *(
        Engine(
            name=f"rensa {scheme}",
            package="rensa",
            scheme=scheme,
            tasks={SIGNING: ONE, REMOVING: ONE},
            min_ratio={SIGNING: 20},
        )
        for scheme in ("rminhash", "cminhash")
    ),
    Engine(name="gaoya", package="gaoya", tasks={REMOVING: EITHER}, min_ratio={REMOVING: 10}),
    Engine(
        name="datasketch",
        package="datasketch",
        tasks={SIGNING: ONE, REMOVING: ONE},
        min_ratio={SIGNING: 200, REMOVING: 50},
    ),
    Engine(name="text-dedup", package="text-dedup", tasks={SIGNING: ONE, REMOVING: EITHER}, min_ratio={REMOVING: 50}),
    Engine(name="text-dedup checked", package="text-dedup-checked", tasks={REMOVING: EITHER}),
    Engine(name="datatrove", package="datatrove", tasks={SIGNING: ONE, REMOVING: EITHER}),
)
BASELINES = ("parquet", "minwise", "copy")  # the others are peers


def all_jobs(engines: Iterable[Engine]) -> Iterator[Job]:
    """Yield every job, task by task."""
    chosen = list(engines)
    for task in TASKS:
        for engine in chosen:
            yield from (Job(task=task, engine=engine, cores=cores) for cores in engine.tasks.get(task, ()))
