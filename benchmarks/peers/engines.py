"""Engines: who does what, in which environment, by which command."""

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
ONE, EITHER = (1,), (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine:
    """A tool and what it can do.

    Attributes:
        name: Shown in the table.
        package: The peer's package, which has an environment of its own; None for what runs in ours.
        scheme: Which of its sketches.
        tasks: What it is asked to do, each with how many cores; who uses only one is not asked twice.
        wanted: How many times our time it should need at least, by task.
    """

    name: str
    package: str | None = None
    scheme: str = "minhash"
    tasks: Mapping[str, tuple[int, ...]]
    wanted: Mapping[str, float] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        """The interpreter it runs in; its environment is made if the cache has none."""
        return Path(sys.executable) if self.package is None else peer_python(self.package)

    @property
    def module(self) -> str:
        """The end of the name of the modules that run it."""
        return (self.package or self.name).replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A row of the table: a task, who does it, and with how many cores."""

    task: str
    engine: Engine
    cores: int

    def __str__(self) -> str:
        """The job in words."""
        return f"{self.task}: {self.engine.name}, {self.cores} core{'s' * (self.cores > 1)}"

    def command(self, source: Path, output: Path) -> list[str]:
        """Return the command that does it with the file ``source``; files that it leaves are left in ``output``."""
        if self.task != REMOVING:
            return self.run("speed", source, shingles=SHINGLES, scheme=self.engine.scheme, slots=SLOTS)
        if self.engine is not MINWISE:
            return self.run("peers", source, output, threshold=THRESHOLD, scheme=self.engine.scheme, slots=SLOTS)
        words = options(threshold=THRESHOLD, shingle=SHINGLES, threads=self.cores)
        return [sys.executable, "-m", "minwise", "dedup", str(source), "-o", str(output), "--quiet", *words]

    def run(self, benchmark: str, *places: Path, **settings: object) -> list[str]:
        """Return the command that calls the engine's runner of a benchmark."""
        module = f"benchmarks.{benchmark}.runners.run_{self.engine.module}"
        words = options(**settings, threads=self.cores)
        return [str(self.engine.python), "-m", module, *map(str, places), *words]


def options(**settings: object) -> list[str]:
    """Return settings as words of a command line."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


MINWISE = Engine(name="minwise", scheme="fast", tasks={SIGNING: EITHER, REMOVING: EITHER})
ENGINES = (
    Engine(name="parquet", tasks={READING: EITHER}),
    MINWISE,
    Engine(name="copy", tasks={REMOVING: EITHER}),
    *(
        Engine(
            name=f"rensa {scheme}",
            package="rensa",
            scheme=scheme,
            tasks={SIGNING: EITHER, REMOVING: EITHER},
            wanted={SIGNING: 20, REMOVING: 10},
        )
        for scheme in ("rminhash", "cminhash")
    ),
    Engine(name="gaoya", package="gaoya", tasks={REMOVING: EITHER}, wanted={REMOVING: 10}),
    Engine(
        name="datasketch",
        package="datasketch",
        tasks={SIGNING: ONE, REMOVING: ONE},
        wanted={SIGNING: 200, REMOVING: 50},
    ),
    Engine(name="text-dedup", package="text-dedup", tasks={SIGNING: ONE, REMOVING: EITHER}, wanted={REMOVING: 50}),
    Engine(name="datatrove", package="datatrove", tasks={SIGNING: ONE, REMOVING: EITHER}),
)


def all_jobs(engines: Iterable[Engine]) -> Iterator[Job]:
    """Yield every job, task by task."""
    chosen = list(engines)
    for task in TASKS:
        for engine in chosen:
            yield from (Job(task=task, engine=engine, cores=cores) for cores in engine.tasks.get(task, ()))
