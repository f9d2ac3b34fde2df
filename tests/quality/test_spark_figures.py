"""Figures of `python -m benchmarks.spark` from synthetic runs and events, and the measurement of process families."""

import sys
from argparse import Namespace
from typing import Any

import pytest

from benchmarks.processes import run_measured
from benchmarks.spark.__main__ import GROUPS, new_content
from benchmarks.spark.corpora import SparkCorpus
from benchmarks.spark.events import group_events, sum_totals
from benchmarks.spark.figures import LOCAL, SPARK, TARGETS, WORKERS, differing_outputs, figures
from benchmarks.spark.markdown_tables import engines_table, show_bytes, sizing_tables

EQUAL = {"kept/part-0.parquet": "a", "removed.parquet": "b"}
DOCUMENTS = 1_000_000


def run_of(method: str, engine: str, seconds: float, corpus: str = "passages", **facts: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a run of a million documents with equal outputs."""
    session = 0 if engine == LOCAL else 4
    run = {"method": method, "corpus": corpus, "engine": engine, "seconds": seconds, "documents": DOCUMENTS}
    run |= {"session_seconds": session, "stop_seconds": session / 4, "finished": True, "rows": 9, "outputs": EQUAL}
    run |= {"peak_bytes": 2 * 10**9, "cpu_seconds": 2 * seconds, "totals": {"shuffled_bytes": 260 * DOCUMENTS}}
    shuffled = {"toArrow at stage_store.py:9 1": 0, "toArrow at stage_store.py:9 2": 26 * 9, "write 1": 26}
    per_job = {"shuffled_records": 300, "python_seconds": 1}
    run["jobs"] = {job: {"shuffled_bytes": size * DOCUMENTS, **per_job} for job, size in shuffled.items()}
    return {**run, "stages": {"spark/signatures": 250 * DOCUMENTS}, **facts}


def record_of(*runs: dict[str, Any]) -> dict[str, Any]:
    """Return a record of these runs with its figures."""
    names = dict.fromkeys(run["corpus"] for run in runs)
    record: dict[str, Any] = {
        "finished": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "CPU", "cores": 2},
        "versions": {"pyspark": "4.0"},
        "corpora": {name: {"documents": DOCUMENTS, "text_bytes": 10**9, "sha256": name} for name in names},
        "runs": list(runs),
    }
    return {**record, "figures": figures(record)}


FILES = [run_of("dedup", LOCAL, 22), run_of("dedup", LOCAL, 20), run_of("dedup", SPARK, 36), run_of("dedup", SPARK, 30)]


def test_ratios_are_of_the_best_runs_without_and_with_the_session() -> None:
    found = record_of(*FILES)["figures"]
    assert found["dedup, passages: Spark / local"] == 1.5
    assert found["dedup, passages: Spark with session / local"] == 1.75
    assert found["dedup, passages: shuffled bytes per band entry"] == 9
    assert found["dedup, passages: shuffled bytes per document"] == 260
    assert found["dedup, passages: peak GB"] == 2


def test_band_entries_of_dataframes_are_the_first_blocks_that_python_sends() -> None:
    """Rows of documents, and the large rows of a Bloom filter, which Java makes, are no blocks."""
    jobs = {
        "other 1": {"shuffled_bytes": 250 * DOCUMENTS, "shuffled_records": DOCUMENTS, "python_seconds": 1},
        "other 2": {"shuffled_bytes": 2 * DOCUMENTS, "shuffled_records": 16, "python_seconds": 0},
        "other 3": {"shuffled_bytes": 26 * 8 * DOCUMENTS, "shuffled_records": 112, "python_seconds": 1},
        "other 4": {"shuffled_bytes": 26 * 7 * DOCUMENTS, "shuffled_records": 600, "python_seconds": 1},
    }
    found = record_of(run_of("frame dedup", SPARK, 40, jobs=jobs, peak_bytes=3 * 10**9))["figures"]
    assert found["frame dedup, passages: shuffled bytes per band entry"] == 8
    assert found["frame dedup, passages: peak GB"] == 3


def test_unequal_outputs_give_no_figure() -> None:
    other = run_of("dedup", SPARK, 30, outputs={**EQUAL, "removed.parquet": "c"})
    record = record_of(*FILES[:2], other, run_of("pairs", LOCAL, 1), run_of("pairs", SPARK, 2))
    assert differing_outputs(record) == {"dedup, passages": ["removed.parquet"]}
    assert not [name for name in record["figures"] if name.startswith("dedup")]
    assert record["figures"]["pairs, passages: Spark / local"] == 2
    assert "`minwise dedup`" not in engines_table(record)


def test_an_output_that_lacks_a_file_is_unequal() -> None:
    record = record_of(*FILES, run_of("dedup", WORKERS[0], 50, outputs={"removed.parquet": "b"}))
    assert differing_outputs(record) == {"dedup, passages": ["kept/part-0.parquet"]}
    record = record_of(*FILES[:2], run_of("dedup", SPARK, 30, outputs={}))
    assert differing_outputs(record) == {"dedup, passages": sorted(EQUAL)}


def test_failed_runs_count_nowhere_and_killed_ones_are_lower_bounds() -> None:
    failed = {"method": "dedup", "corpus": "passages", "engine": SPARK, "failed": "exit code 1"}
    killed = run_of("mllib", SPARK, 400, session_seconds=0, stop_seconds=0, finished=False, outputs={})
    record = record_of(*FILES, failed, killed, run_of("frame pairs", SPARK, 15, outputs={}))
    assert record["figures"]["dedup, passages: Spark / local"] == 1.5
    assert record["figures"]["passages: times as fast as MLlib"] == 20
    assert "more than 400" in engines_table(record)
    assert "at least 20.0 times as fast as MLlib with 1,000,000 passages" in engines_table(record)


def test_every_target_belongs_to_a_figure_of_the_jobs() -> None:
    jobs = {(job.method, job.corpus, job.engine) for group in GROUPS.values() for job in group}
    record = record_of(*(run_of(method, engine, 10, corpus) for method, corpus, engine in sorted(jobs)))
    assert TARGETS.keys() <= record["figures"].keys()


def test_sizing_is_in_proportion_to_the_best_run() -> None:
    """A million documents of 1 kB in 30 s on two cores: 16.7 core hours per terabyte, and as many for 10⁹ documents."""
    shown = sizing_tables(record_of(*FILES))["cluster size"]
    assert "| 10⁹ | 1 TB | 250 GB | 230 GB | 17 | 32 | 31 |" in shown
    assert "17 core hours per terabyte of documents of 1,000 bytes" in shown
    assert "10¹⁰" not in shown  # more documents than files can have
    of_frame = run_of("frame dedup", SPARK, 90, outputs={})
    shown = sizing_tables(record_of(*FILES, of_frame))["cluster size"]
    assert "| 10⁹ | 1 TB | 250 GB | 230 GB | 17 | 32 | 31 |" in shown
    assert "| 10¹⁰ | 10 TB | 2.5 TB | 2.3 TB | 500 | 256 | 117 |" in shown
    assert "50 core hours per terabyte of documents of 1,000 bytes as a DataFrame" in shown
    assert sizing_tables(record_of(*FILES[:2])) == {}
    assert sizing_tables({"runs": [], "ratios": {}}) == {}
    with pytest.raises(KeyError, match="no stage signatures"):
        sizing_tables(record_of(run_of("dedup", SPARK, 30, stages={"spark/other": 1})))


def test_sizes_have_two_digits() -> None:
    assert [show_bytes(size) for size in (2.46e12, 35.4e9, 999e9, 5e3)] == [
        "2.5 TB",
        "35 GB",
        "1,000 GB",
        "5,000 bytes",
    ]


def test_a_partial_run_keeps_the_other_runs_on_the_same_corpora() -> None:
    earlier = record_of(*FILES, run_of("dedup", LOCAL, 200, "many"))
    same, other = (
        SparkCorpus(folder="x", documents=DOCUMENTS, text_bytes=10**9, sha256=sha256, note="")
        for sha256 in ("passages", "another")
    )
    settings = Namespace(bound=400, warm_up=False)
    assert len(new_content(settings, {"passages": same}, earlier)["runs"]) == 5
    kept = new_content(settings, {"passages": other}, earlier)["runs"]
    assert [run["corpus"] for run in kept] == ["many"]
    assert new_content(settings, {"passages": same}, {})["runs"] == []


def job_start(stage: int, milliseconds: int, **properties: str) -> dict[str, Any]:
    """Return the event of a job of one stage."""
    event = {"Event": "SparkListenerJobStart", "Submission Time": milliseconds, "Stage IDs": [stage]}
    return {**event, "Properties": {name.replace("_", "."): value for name, value in properties.items()}}


def task_end(stage: int, shuffled: int, reason: str = "Success") -> dict[str, Any]:
    """Return the event of a task that ran for two seconds, one of them in Python."""
    metrics = {"Executor Run Time": 2000, "Executor CPU Time": 10**9, "JVM GC Time": 0, "Disk Bytes Spilled": 0}
    metrics |= {"Result Size": 10}
    written = {"Shuffle Bytes Written": shuffled, "Shuffle Records Written": 3}
    python = [{"Name": "time to run Python workers", "Update": "1000"}, {"Name": "another", "Update": "5"}]
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Accumulables": python},
        "Task Metrics": {**metrics, "Shuffle Write Metrics": written},
    }


def test_tasks_are_added_up_by_the_description_of_their_job() -> None:
    """Without one the call site names a job; jobs before the start and failed tasks do not count."""
    events = [
        job_start(0, 900, spark_job_description="session"),
        task_end(0, 1000),
        job_start(1, 1000, spark_job_description="band"),
        task_end(1, 70),
        task_end(1, 5, reason="ExceptionFailure"),
        job_start(2, 1500, callSite_short="collect at /a/b/engine.py:3"),
        task_end(2, 7),
        task_end(1, 1),
    ]
    found = group_events(events, began=1.0)
    assert {name: (one["tasks"], one["shuffled_bytes"]) for name, one in found.items()} == {
        "band 1": (2, 71),
        "collect at engine.py:3 1": (1, 7),
    }
    total = sum_totals(found.values())
    assert (total["shuffled_bytes"], total["shuffled_records"], total["python_seconds"]) == (78, 9, 3)


GRANDCHILD = "x = bytearray(200_000_000); end = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
CHILD = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', 'import time\\n' + {GRANDCHILD!r}])"
STARTING = "import subprocess\nx = bytearray(400_000_000)\nfor _ in range(300): subprocess.run(['/bin/true'])"


def test_memory_and_processor_time_include_all_descendants() -> None:
    """The process itself uses 10 MB and hardly any time; its grandchild 200 MB and 0.6 s."""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"
    run = run_measured([sys.executable, "-c", nested])
    assert run.code == 0, run.errors
    assert run.peak_bytes > 200_000_000
    assert 0.5 < run.cpu_seconds < 3


def test_memory_of_a_process_that_starts_others_counts_once() -> None:
    run = run_measured([sys.executable, "-c", STARTING])
    assert run.code == 0, run.errors
    assert 400_000_000 < run.peak_bytes < 600_000_000
