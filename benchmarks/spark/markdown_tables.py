"""Markdown tables of a record of the Spark benchmark: times, and an extrapolation to large corpora."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import Record, machine_and_date, table
from benchmarks.spark.figures import (
    LOCAL,
    SPARK,
    WORKERS,
    Run,
    band_entries,
    best,
    differing_outputs,
    seconds,
    with_session,
)

NAMES = {
    "dedup": "`minwise dedup`",
    "pairs": "`minwise pairs`",
    "frame dedup": "`minwise.spark.dedup` of a DataFrame",
    "frame pairs": "`minwise.spark.pairs` of a DataFrame",
    "mllib": "MLlib, `approxSimilarityJoin`",
}
DOCUMENTS = {"many": "synthetic documents"}
CORES = 2  # of every measured run on Spark
# Numbers of documents of the extrapolation, with cores that process them in hours.
CLUSTERS = {"10⁸": (10**8, 8), "10⁹": (10**9, 32), "10¹⁰": (10**10, 256)}
# Most documents of files. More are a DataFrame, which takes longer.
MOST_OF_FILES = 2**32 - 2
# Bytes of a band entry in a block.
ENTRY_BYTES = 9
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))


def engines_table(record: Record) -> str:
    """Return the times of both engines on the same files, and those of all other methods on Spark."""
    columns = ["documents", "command", "local engine, s", "Spark, s", "ratio", "with session, s", "ratio"]
    columns += ["CPU seconds", "peak MB"]
    others = table(["documents", "method", "master", "seconds", "pairs or kept rows"], list(other_rows(record)))
    notes = ["Threshold 0.8, word:5", "CPU seconds and peak MB of the local engine / of Spark", *notes_of(record)]
    notes += [f"Spark {record['versions']['pyspark']}, {SPARK}", f"{machine_and_date(record)}."]
    return f"{table(columns, list(engine_rows(record)))}\n\n{others}\n\n{'; '.join(notes)}"


def engine_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each corpus and command that both engines have run with equal outputs."""
    unequal, figures = differing_outputs(record), record["figures"]
    for corpus, method in ((corpus, method) for corpus in record["corpora"] for method in ("dedup", "pairs")):
        name, local, spark = f"{method}, {corpus}", *(best(record, corpus, method, one) for one in (LOCAL, SPARK))
        if not (local and spark) or name in unequal:
            continue
        ratio, whole = (figures[f"{name}: {figure}"] for figure in ("Spark / local", "Spark with session / local"))
        cells = [f"{seconds(local):.1f}", f"{seconds(spark):.1f}", f"{ratio:.2f}"]
        cells += [f"{whole * seconds(local):.1f}", f"{whole:.2f}"]
        cells += [" / ".join(f"{run['cpu_seconds']:.0f}" for run in (local, spark))]
        cells += [" / ".join(f"{run['peak_bytes'] / 1e6:,.0f}" for run in (local, spark))]
        yield [describe(record, corpus), NAMES[method], *cells]


def other_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each method on DataFrames, on a local cluster and of MLlib."""
    for corpus in record["corpora"]:
        for method, engine in (("frame pairs", SPARK), ("frame dedup", SPARK), ("mllib", SPARK)):
            run = best(record, corpus, method, engine)
            if run:
                yield [describe(record, corpus), NAMES[method], engine, *measured(run)]
        for engine in WORKERS:
            run = best(record, corpus, "dedup", engine)
            if run:
                yield [describe(record, corpus), NAMES["dedup"], engine, *measured(run)]


def measured(run: Run) -> list[str]:
    """Return the seconds of a run, a lower bound if it did not finish, and its rows."""
    if not run["finished"]:
        return [f"more than {run['seconds']:.0f}", ""]
    return [f"{run['seconds']:.1f}", f"{run['rows']:,}"]


def describe(record: Record, corpus: str) -> str:
    """Return the number and kind of the documents of a corpus."""
    return f"{record['corpora'][corpus]['documents']:,} {DOCUMENTS.get(corpus, 'passages')}"


def notes_of(record: Record) -> Iterator[str]:
    """Yield the figures that have no column."""
    for name, value in record["figures"].items():
        corpus = name.partition(":")[0].rpartition(", ")[2]
        if name.endswith("speedup of two workers"):
            yield f"two workers are {value:.2f} times as fast as one with {describe(record, corpus)}"
        elif name.endswith("MLlib"):
            theirs = best(record, corpus, "mllib", SPARK)
            least = "" if theirs and theirs["finished"] else "at least "
            yield f"{least}{value:.1f} times as fast as MLlib with {describe(record, corpus)}, sessions included"


def sizing_tables(record: Record) -> dict[str, str]:
    """Return the table of the guide by its name; empty if the record lacks the run that it is computed from."""
    run = best(record, "passages", "dedup", SPARK) if "figures" in record else None
    return {"cluster size": sizing_table(record, run)} if run else {}


def sizing_table(record: Record, run: Run) -> str:
    """Return disk space and time for large corpora, in proportion to a measured run."""
    per_document = {"text": record["corpora"]["passages"]["text_bytes"] / run["documents"]}
    with_stages = best(record, "passages", "dedup", WORKERS[1]) or run
    per_document["signatures"] = stage_bytes(with_stages, "signatures") / run["documents"]
    # Blocks are exchanged through files, which are deleted: 9 bytes per band entry (tests/unit/spark/test_blocks.py).
    per_document["entries"] = ENTRY_BYTES * band_entries(record, "passages") / run["documents"]
    of_frame, rows = best(record, "passages", "frame dedup", SPARK), []
    for name, (documents, cores) in CLUSTERS.items():
        measured_run = run if documents <= MOST_OF_FILES else of_frame
        if measured_run:
            sizes = [show_bytes(documents * per_document[part]) for part in ("text", "signatures", "entries")]
            hours = documents * core_seconds(measured_run) / 3600 / measured_run["documents"]
            rows.append([name, *sizes, f"{hours:,.0f}", f"{cores:,}", f"{60 * hours / cores:.0f}"])
    columns = ["documents", "text", "`signatures`", "band entries", "core hours", "cores", "minutes"]
    return f"{table(columns, rows)}\n\n{sizing_note(record, run)}"


def sizing_note(record: Record, run: Run) -> str:
    """Return how the table was computed, and the core hours per terabyte of each corpus."""
    rates = []
    for corpus, method, how in (
        ("passages", "dedup", ""),
        ("many", "dedup", ""),
        ("passages", "frame dedup", " as a DataFrame"),
    ):
        measured_run = best(record, corpus, method, SPARK)
        if measured_run:
            rate = core_seconds(measured_run) / 3600 / (record["corpora"][corpus]["text_bytes"] / 1e12)
            mean = record["corpora"][corpus]["text_bytes"] / measured_run["documents"]
            rates.append(f"{rate:,.0f} core hours per terabyte of documents of {mean:,.0f} bytes{how}")
    of_frame = best(record, "passages", "frame dedup", SPARK)
    beyond = f", and beyond {MOST_OF_FILES:,} documents, the limit of files, to the same passages as a DataFrame"
    frames = f"{beyond} in {seconds(of_frame):.0f} s" if of_frame else ""
    return (
        f"In proportion to {run['documents']:,} passages on {CORES} cores in {seconds(run):.0f} s without the session "
        f"({with_session(run):.0f} s with it){frames}; no row has been run. "
        f"Core hours are those of occupied cores; minutes "
        f"assume that time is inversely proportional to cores, and that storage is as fast as a local disk. "
        f"{'; '.join(rates)}; {machine_and_date(record)}."
    )


def core_seconds(run: Run) -> float:
    """Return the seconds of a run times the cores that it occupied."""
    return seconds(run) * CORES


def stage_bytes(run: Run, stage: str) -> int:
    """Return the bytes of a stage in the work directory.

    Raises:
        KeyError: If the run has no such stage.
    """
    found = [size for name, size in run["stages"].items() if f"/{name}/".find(f"/{stage}/") >= 0]
    if not found:
        raise KeyError(f"no stage {stage} in {', '.join(run['stages'])}")
    return sum(found)


def show_bytes(count: float) -> str:
    """Return a size with two digits and its unit.

    >>> show_bytes(2.46e12)
    '2.5 TB'
    """
    value, unit = next(((count / size, unit) for size, unit in UNITS if count >= size), (count, "bytes"))
    return f"{float(f'{value:.2g}'):,g} {unit}"
