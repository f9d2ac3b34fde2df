"""Figures of a record: ratios of the best runs, and their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import minwise as mw
from benchmarks.spark.methods import THRESHOLD
from benchmarks.targets import Target

Record = dict[str, Any]
Run = dict[str, Any]

# Mean bytes of a row that is a block; the rows of other shuffles of DataFrames have a few hundred.
BLOCK_ROW_BYTES = 10_000

LOCAL, SPARK, WORKERS = "local", "local[2]", ("local-cluster[1,1,2048]", "local-cluster[2,1,2048]")
TARGETS = {
    "dedup, passages: Spark / local": Target(figure="ratio", wanted=1.75, at_most=True),
    "dedup, passages: Spark with session / local": Target(figure="ratio", wanted=2.25, at_most=True),
    "pairs, passages: Spark / local": Target(figure="ratio", wanted=2, at_most=True),
    "dedup, many: Spark / local": Target(figure="ratio", wanted=1.5, at_most=True),
    "dedup, passages: shuffled bytes per band entry": Target(figure="bytes", wanted=12, at_most=True),
    "dedup, many: shuffled bytes per band entry": Target(figure="bytes", wanted=12, at_most=True),
    "frame dedup, passages: shuffled bytes per band entry": Target(figure="bytes", wanted=12, at_most=True),
    "frame pairs, passages: shuffled bytes per band entry": Target(figure="bytes", wanted=12, at_most=True),
    "dedup, passages: peak GB": Target(figure="GB", wanted=3, at_most=True),
    "dedup, many: speedup of two workers": Target(figure="speedup", wanted=1.6),
}


def seconds(run: Run) -> float:
    """Return the time of a run without that of its session."""
    return float(run["seconds"])


def with_session(run: Run) -> float:
    """Return the time of a run with the start and the end of its session."""
    return float(run["seconds"] + run["session_seconds"] + run["stop_seconds"])


def runs_of(record: Record, corpus: str, method: str, engine: str) -> list[Run]:
    """Return the runs of a method that did not fail; those that were killed after the time limit included."""
    wanted = (corpus, method, engine)
    return [run for run in record["runs"] if key_of(run) == wanted and "failed" not in run]


def key_of(run: Run) -> tuple[str, str, str]:
    """Return corpus, method and engine of a run."""
    return run["corpus"], run["method"], run["engine"]


def best(record: Record, corpus: str, method: str, engine: str, time: Callable[[Run], float] = seconds) -> Run | None:
    """Return the fastest run; None if there is none."""
    return min(runs_of(record, corpus, method, engine), key=time, default=None)


def differing_outputs(record: Record) -> dict[str, list[str]]:
    """Return the files that differ between the runs of a method on the same corpus, by method and corpus."""
    outputs: dict[str, list[dict[str, str]]] = {}
    for run in record["runs"]:
        if "outputs" in run:
            outputs.setdefault(f"{run['method']}, {run['corpus']}", []).append(run["outputs"])
    found = {name: sorted({file for one in all_ for file in differing(one, all_[0])}) for name, all_ in outputs.items()}
    return {name: files for name, files in found.items() if files}


def differing(first: dict[str, str], second: dict[str, str]) -> set[str]:
    """Return the names of files that are not equal."""
    return {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}


def figures(record: Record) -> dict[str, float]:
    """Return all figures that the runs of a record give; none of runs whose outputs differ."""
    unequal = differing_outputs(record)
    found: dict[str, float] = {}
    for corpus in record["corpora"]:
        for method in ("dedup", "pairs"):
            name = f"{method}, {corpus}"
            if name not in unequal:
                found.update((f"{name}: {figure}", value) for figure, value in ratios(record, corpus, method))
        for method in ("frame dedup", "frame pairs"):
            found.update(
                (f"{method}, {corpus}: {figure}", value) for figure, value in of_frames(record, corpus, method)
            )
        theirs, ours = (best(record, corpus, method, SPARK, with_session) for method in ("mllib", "frame pairs"))
        if theirs and ours:
            found[f"{corpus}: times as fast as MLlib"] = with_session(theirs) / with_session(ours)
    return found


def ratios(record: Record, corpus: str, method: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a method on a corpus."""
    local, spark = (best(record, corpus, method, engine) for engine in (LOCAL, SPARK))
    one, two = (best(record, corpus, method, engine) for engine in WORKERS)
    if local and spark:
        yield "Spark / local", seconds(spark) / seconds(local)
        whole = min(map(with_session, runs_of(record, corpus, method, SPARK)))
        yield "Spark with session / local", whole / seconds(local)
    if spark:
        yield "shuffled bytes per band entry", band_bytes(spark) / band_entries(record, corpus)
        yield "shuffled bytes per document", spark["totals"]["shuffled_bytes"] / record["corpora"][corpus]["documents"]
        yield "peak GB", max(run["peak_bytes"] for run in runs_of(record, corpus, method, SPARK)) / 1e9
    if one and two:
        yield "speedup of two workers", seconds(one) / seconds(two)


def of_frames(record: Record, corpus: str, method: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a method on DataFrames."""
    run = best(record, corpus, method, SPARK)
    if run:
        yield "shuffled bytes per band entry", frame_band_bytes(run) / band_entries(record, corpus)
        yield "peak GB", max(one["peak_bytes"] for one in runs_of(record, corpus, method, SPARK)) / 1e9


def band_bytes(run: Run) -> float:
    """Return the bytes shuffled for buckets: the second of the three stages that write files.

    These are next to none where blocks are in files of a shared directory: the rows say only where they are.
    """
    _, bands, *_ = [totals for job, totals in run["jobs"].items() if "stage_store" in job]
    return float(bands["shuffled_bytes"])


def frame_band_bytes(run: Run) -> float:
    """Return the bytes shuffled for buckets of a DataFrame: the first exchange of blocks that Python workers send.

    Spark describes the jobs of all stages alike, and its Bloom filters are large rows that no Python worker makes.
    """
    return next(
        float(totals["shuffled_bytes"])
        for totals in run["jobs"].values()
        if totals["python_seconds"] and totals["shuffled_bytes"] > BLOCK_ROW_BYTES * totals["shuffled_records"]
    )


def band_entries(record: Record, corpus: str) -> int:
    """Return the number of documents times the number of bands."""
    return int(record["corpora"][corpus]["documents"]) * mw.plan(threshold=THRESHOLD).bands
