"""Spark benchmark: ``python -m benchmarks.spark`` measures all groups of jobs and writes the record after every job.

A part of the groups is measured with ``--only`` or ``--skip``; its runs replace those of the same jobs in the newest
record of this processor.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from hashlib import sha256
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark

from benchmarks.processes import run_measured
from benchmarks.record_files import FOLDER, command_line, processor, write_json
from benchmarks.spark.corpora import SparkCorpus, mixed, passages
from benchmarks.spark.events import read_totals, sum_totals
from benchmarks.spark.figures import LOCAL, SPARK, TARGETS, WORKERS, differing_outputs, figures, key_of
from benchmarks.spark.methods import PARTITIONS, SHINGLES, TABLES, THREADS, THRESHOLD
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import align_rows

FILE_METHODS = ("dedup", "pairs")
# Files that must be the same bytes with every engine.
ALL_FILES = ("kept/*", "removed.parquet", "clusters.parquet", "pairs.parquet")
# Tables whose rows are counted: of files and of DataFrames.
TABLES_OUT = ("kept/*.parquet", "pairs.parquet", "pairs/*.parquet")
WARM_UP_DOCUMENTS = 1000
# More than a run needs; a virtual machine waits for memory that it has returned to its host.
WARM_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A method, its corpus, and the engine or master that runs it."""

    method: str
    corpus: str
    engine: str

    def __str__(self) -> str:
        """Return a description of the job."""
        return f"{self.method}, {self.corpus}, {self.engine}"


def files_of(corpus: str, methods: tuple[str, ...] = FILE_METHODS) -> list[Job]:
    """Return the jobs from files to files, with both engines in turn."""
    return [Job(method=method, corpus=corpus, engine=engine) for method in methods for engine in (LOCAL, SPARK)]


def frames_of(*corpora: str, methods: tuple[str, ...]) -> list[Job]:
    """Return the jobs on DataFrames."""
    return [Job(method=method, corpus=corpus, engine=SPARK) for corpus in corpora for method in methods]


GROUPS = {
    "passages": files_of("passages"),
    "small": files_of("small"),
    "many": files_of("many", ("dedup",)),
    "frames": frames_of("small", "passages", methods=("frame pairs", "frame dedup")),
    "cluster": [Job(method="dedup", corpus="passages", engine=workers) for workers in WORKERS],
    "workers": [Job(method="dedup", corpus="many", engine=workers) for workers in WORKERS],
    "mllib": frames_of("fewest", "few", methods=("mllib", "frame pairs")),
}


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    groups = [name for name in settings.only if name not in settings.skip]
    jobs = [job for name in groups for job in GROUPS[name] * (1 if name == "mllib" else settings.rounds)]
    corpora = {job.corpus: prepare(job.corpus, getattr(settings, job.corpus)) for job in jobs}
    content = new_content(settings, corpora, {} if len(groups) == len(GROUPS) else earlier_content())
    measured = {(job.corpus, job.method, job.engine) for job in jobs}
    content["runs"] = [run for run in content["runs"] if key_of(run) not in measured]
    for job in jobs:
        content["runs"].append(measure(job, corpora[job.corpus], settings))
        content |= {"figures": figures(content), "unequal": differing_outputs(content)}
        if settings.record:  # after every job, so that a failure does not lose hours of measurements
            write_json(content, benchmark="spark")
    print_figures(content)
    if content["unequal"] or any("failed" in run for run in content["runs"]):
        raise SystemExit(1)


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("spark", __doc__)
    parser.add_argument("--passages", type=int, default=1_000_000, help="passages of the large corpus")
    parser.add_argument("--small", type=int, default=100_000, help="passages of the small corpus")
    parser.add_argument("--many", type=int, default=10_000_000, help="synthetic documents")
    parser.add_argument("--fewest", type=int, default=5_000, help="passages on which MLlib is expected to finish")
    parser.add_argument("--few", type=int, default=30_000, help="passages on which MLlib may not finish")
    parser.add_argument("--bound", type=float, default=400, help="maximum seconds of MLlib, with its session")
    parser.add_argument("--rounds", type=int, default=3, help="runs of every job, of which the best counts")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups of jobs to measure")
    parser.add_argument("--skip", nargs="+", choices=GROUPS, default=[], help="groups of jobs not to measure")
    parser.add_argument("--warm-up", action="store_true", help="process some passages first in the same session")
    return parser.parse_args()


def prepare(corpus: str, documents: int) -> SparkCorpus:
    """Return a corpus by its name in the record."""
    return mixed(documents) if corpus == "many" else passages(documents)


def earlier_content() -> dict[str, Any]:
    """Return the newest record of this processor that has the present form; empty if there is none."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("spark-*.json")]
    fitting = [record for record in records if "figures" in record and record["machine"]["processor"] == processor()]
    return max(fitting, key=itemgetter("finished"), default={})


def new_content(
    settings: argparse.Namespace, corpora: dict[str, SparkCorpus], earlier: dict[str, Any]
) -> dict[str, Any]:
    """Return a record with the runs of an earlier one on the same corpora."""
    known = earlier.get("corpora", {})
    described = {name: {**asdict(corpus), "folder": Path(corpus.folder).name} for name, corpus in corpora.items()}
    changed = {name for name, corpus in described.items() if known.get(name, corpus)["sha256"] != corpus["sha256"]}
    search = {"threshold": THRESHOLD, "shingles": SHINGLES, "mllib_tables": TABLES, "threads": THREADS}
    return {
        "settings": {**search, "partitions": PARTITIONS, "bound": settings.bound, "warm_up": settings.warm_up},
        "versions": {"pyspark": version("pyspark")},
        "corpora": {**known, **described},
        "runs": [run for run in earlier.get("runs", []) if run["corpus"] not in changed],
    }


def measure(job: Job, corpus: SparkCorpus, settings: argparse.Namespace) -> dict[str, Any]:
    """Run a job in a separate process; return its times, memory, shuffled bytes and digests of its output."""
    # Workers of a method that was killed may still be writing.
    with tempfile.TemporaryDirectory(prefix="spark-", dir=cache_dir(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        words = [job.method, corpus.folder, name, *([] if job.engine == LOCAL else ["--master", job.engine])]
        words += ["--warm-up", passages(WARM_UP_DOCUMENTS).folder] if settings.warm_up else []
        run = run_measured(
            [sys.executable, "-m", "benchmarks.spark.run", *words],
            environment=spark_environment(folder),
            bound_seconds=settings.bound if job.method == "mllib" else float("inf"),
            warm_bytes=WARM_BYTES,
        )
        facts = {**asdict(job), "documents": corpus.documents, "measured": now(), "finished": run.finished}
        facts |= {"peak_bytes": run.peak_bytes, "cpu_seconds": run.cpu_seconds, "load": run.load}
        if not run.finished:
            facts |= {"seconds": settings.bound, "session_seconds": 0, "stop_seconds": 0}
        elif run.code:
            facts["failed"] = f"exit code {run.code}: {run.errors.splitlines()[-1:]}"
            print(run.errors)
        else:
            facts |= run.result(str(job))
            facts |= results(folder, job, facts["began"])
    print(f"{job!s:50} {facts.get('failed', facts.get('seconds'))}", flush=True)
    return facts


def spark_environment(folder: Path) -> dict[str, str]:
    """Return variables that keep the files of Spark in a folder; a local cluster writes to the home of Spark."""
    home, local = folder / "home", folder / "local"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (home / path.name).symlink_to(path)
    return {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(local), "PYSPARK_PYTHON": sys.executable}


def now() -> str:
    """Return the current time."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def results(folder: Path, job: Job, began: float) -> dict[str, Any]:
    """Return the number of rows that a run has written, their digests, its stages and its totals from the event log."""
    out = folder / "out"
    rows = sum(pq.read_metadata(path).num_rows for pattern in TABLES_OUT for path in out.glob(pattern))
    found: dict[str, Any] = {"rows": rows}
    if job.method in FILE_METHODS:
        files = sorted(path for pattern in ALL_FILES for path in out.glob(pattern))
        found["outputs"] = {f"{path.relative_to(out)}": sha256(path.read_bytes()).hexdigest() for path in files}
    if job.engine != LOCAL:
        jobs = read_totals(folder / "events", began)
        found |= {"stages": dict(stage_bytes(folder / "work")), "jobs": jobs, "totals": sum_totals(jobs.values())}
    return found


def stage_bytes(work: Path) -> Iterator[tuple[str, int]]:
    """Yield the folders of a work directory with the bytes of their files."""
    for folder in sorted({path.parent for path in work.rglob("*") if path.is_file()}):
        name = folder.relative_to(work).as_posix()
        yield name, sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def print_figures(content: dict[str, Any]) -> None:
    """Print the figures with their targets, and the outputs that differ."""
    rows = [[name, f"{value:,.2f}", verdict(name, value)] for name, value in content["figures"].items()]
    print("\n" + align_rows([["figure", "measured", "target"], *rows], text_columns=1))
    for name, files in content["unequal"].items():
        print(f"{name}: no ratio, because the engines wrote different bytes to {', '.join(files)}")


def verdict(name: str, value: float) -> str:
    """Return whether a figure meets its target, if it has one."""
    return TARGETS[name].verdict(value) if name in TARGETS else ""


if __name__ == "__main__":
    main()
