"""Table of `make bench`: rounds, time limits, growth and ratios, from synthetic measurements."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import measure as measure_module
from benchmarks.peers.__main__ import content, earlier_record, with_earlier_rows
from benchmarks.peers.engines import ENGINES, MINWISE, READING, REMOVING, SIGNING, TASKS, Job, all_jobs
from benchmarks.peers.markdown_table import faster_tools, peers_table, ratio_rows, show_removed
from benchmarks.peers.measure import Measurement, growth, may_finish, measure, repeated, store_run
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts
from benchmarks.processes import Run
from benchmarks.speed.corpus import Corpus

BY_NAME = {engine.name: engine for engine in ENGINES}
GAOYA = BY_NAME["gaoya"]
OURS, THEIRS = (Job(task=REMOVING, engine=engine, cores=2) for engine in (MINWISE, GAOYA))
READ = Job(task=READING, engine=ENGINES[0], cores=2)


def measured(job: Job, documents: int, *seconds: float, finished: bool = True) -> Measurement:
    """Return a measurement with these rounds."""
    return Measurement(job, documents, list(seconds), [10**8] * len(seconds), [0.5] * len(seconds), finished)


MEASUREMENTS = [
    measured(READ, 1000, 0.1),
    measured(READ, 10_000, 0.5),
    measured(OURS, 1000, 1.0),
    measured(THEIRS, 1000, 20.0),
    measured(OURS, 10_000, 12.0, 10.0),
    measured(THEIRS, 10_000, 400.0, finished=False),
]


def test_growth_is_the_exponent_of_the_best_rounds() -> None:
    """Ten times the documents in ten times the time is 1; one size gives no exponent."""
    assert growth(MEASUREMENTS, OURS) == pytest.approx(1.0)
    assert growth(MEASUREMENTS, READ) == pytest.approx(0.69897, abs=1e-5)
    assert growth(MEASUREMENTS, THEIRS) is None


def test_ratios_are_at_the_largest_common_size() -> None:
    """The ratio of an unfinished run is a lower bound."""
    assert times_minwise(THEIRS, MEASUREMENTS) == (40.0, False)
    assert times_minwise(THEIRS, MEASUREMENTS[:4]) == (20.0, True)
    assert times_minwise(OURS, MEASUREMENTS) is None
    assert times_reading(OURS, MEASUREMENTS) == (20.0, True)
    assert verdicts(THEIRS, MEASUREMENTS) == ["x minwise >= 10 met"]


def test_job_that_cannot_finish_is_skipped() -> None:
    """Ten times the documents are assumed to take at least eight times as long."""
    assert may_finish(THEIRS, 10_000, MEASUREMENTS[:4], bound=161)
    assert not may_finish(THEIRS, 10_000, MEASUREMENTS[:4], bound=159)
    assert not may_finish(THEIRS, 100_000, MEASUREMENTS, bound=1e9)
    assert may_finish(OURS, 1000, [], bound=1)


def test_job_that_did_not_finish_with_two_cores_is_not_run_with_one() -> None:
    """A run with two cores that finished, or one of another size, says nothing against it."""
    alone = Job(task=REMOVING, engine=GAOYA, cores=1)
    assert not may_finish(alone, 10_000, MEASUREMENTS, bound=1e9)
    assert may_finish(alone, 1000, MEASUREMENTS, bound=1e9)
    assert may_finish(alone, 100_000, MEASUREMENTS, bound=1e9)


def removing(name: str, cores: int, *seconds: float, documents: int = 1000, finished: bool = True) -> Measurement:
    """Return a measurement of an engine from file to file."""
    job = Job(task=REMOVING, engine=BY_NAME[name], cores=cores)
    found = measured(job, documents, *seconds, finished=finished)
    found.kept = documents // 4 * 3
    return found


# As they are measured: two cores first.
ONE_SIZE = [
    removing("minwise", 2, 2.0),
    removing("minwise", 1, 3.0),
    removing("copy", 2, 1.0),
    removing("copy", 1, 1.5),
    removing("rensa rminhash", 1, 8.0),
    removing("rensa cminhash", 1, 9.0),
    removing("gaoya", 2, 7.0),
    removing("gaoya", 1, 12.0),
    removing("datatrove", 2, 1.0, finished=False),
]


def test_minwise_the_copy_and_the_two_fastest_tools_are_repeated() -> None:
    """A peer with the most cores that it was run with; not one that did not finish, and no task in memory."""
    in_memory = measured(Job(task=SIGNING, engine=MINWISE, cores=2), 1000, 0.1)
    assert repeated([in_memory, *ONE_SIZE]) == [*ONE_SIZE[:4], ONE_SIZE[6], ONE_SIZE[4]]


def test_minwise_is_judged_by_the_copy_the_fastest_tool_and_its_growth() -> None:
    """With the same number of cores; a tool that uses one core counts on two, one that did not finish on none."""
    assert verdicts(ONE_SIZE[0].job, ONE_SIZE) == ["x copy <= 2.5 met", "fastest peer x >= 6 MISSED"]
    slower = [*ONE_SIZE[:4], removing("rensa rminhash", 1, 12.0), removing("gaoya", 2, 13.0), ONE_SIZE[-1]]
    assert verdicts(slower[0].job, slower) == ["x copy <= 2.5 met", "fastest peer x >= 6 met"]
    assert verdicts(slower[1].job, slower) == ["x copy <= 2.5 met", "fastest peer x >= 6 MISSED"]
    single = [*slower[:4], removing("rensa rminhash", 1, 11.0), *slower[5:]]
    assert verdicts(single[0].job, single) == ["x copy <= 2.5 met", "fastest peer x >= 6 MISSED"]
    larger = [*slower, removing("minwise", 2, 30.0, documents=10_000), removing("copy", 2, 10.0, documents=10_000)]
    assert verdicts(slower[0].job, larger) == ["x copy <= 2.5 MISSED", "growth <= 1.1 MISSED"]


def test_repeated_jobs_alternate_and_others_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round has all jobs, the others the repeated ones, each in the same order."""
    seconds = {(one.job.engine.name, one.job.cores): one.best for one in ONE_SIZE}
    order: list[tuple[str, int]] = []

    def run(measurement: Measurement, source: Path, bound: float) -> None:
        order.append((measurement.job.engine.name, measurement.job.cores))
        measurement.seconds.append(seconds[order[-1]])

    monkeypatch.setattr(measure_module, "add_run", run)
    found = measure([one.job for one in ONE_SIZE[:-1]], [corpus(1000)], rounds=3, bound=100)
    first, repeats = order[: len(found)], order[len(found) :]
    chosen = [("minwise", 2), ("minwise", 1), ("copy", 2), ("copy", 1), ("gaoya", 2), ("rensa rminhash", 1)]
    assert first == list(seconds)[:-1]
    assert repeats == chosen * 2
    assert [len(one.seconds) for one in found] == [3 if pair in chosen else 1 for pair in first]


def test_timeout_of_a_later_round_does_not_discard_the_first() -> None:
    """The best round counts."""
    job = Job(task=SIGNING, engine=MINWISE, cores=2)
    for before, finished in ([], False), ([3.0], True):
        measurement = Measurement(job, 1000, list(before))
        late = Run(seconds=120, peak_bytes=1, code=-9, output="", errors="", load=0, limited=False, finished=False)
        store_run(measurement, late, Path())
        assert measurement.finished == finished
        assert measurement.best == min([*before, 120])


def corpus(documents: int) -> Corpus:
    """Return the description of a corpus."""
    return Corpus(name="passages", file="none", documents=documents, text_bytes=10**9, sha256=str(documents), note="")


def make_record(measurements: Sequence[Measurement], *sizes: int) -> dict[str, Any]:
    """Return a record as it is written."""
    added = {"finished": "2026-01-02T03:04:05", "machine": {"processor": "A", "cores": 2}}
    settings = Namespace(rounds=3, bound=120.0)
    return {**content(measurements, [corpus(size) for size in sizes], settings), **added}


def test_ratio_rows_compare_the_same_cores_and_name_the_fastest_tool() -> None:
    """A tool that uses one core takes as long on two. One that did not finish is not the fastest."""
    record = make_record([*ONE_SIZE, removing("minwise", 2, 5.0, documents=10_000)], 1000, 10_000)
    assert ratio_rows(record) == {
        "minwise / reading and writing the file": ["2.0 / 2.0", ""],
        "fastest other tool / minwise": ["2.7 (rensa rminhash) / 3.5 (gaoya)", ""],
    }
    without_gaoya = make_record([one for one in ONE_SIZE if one.job.engine is not GAOYA], 1000)
    assert ratio_rows(without_gaoya)["fastest other tool / minwise"] == ["2.7 / 4.0 (rensa rminhash)"]


def test_markdown_table_shows_limits_rounds_and_ratios() -> None:
    """Rows are ordered by cores, ">" marks a time limit and a dash a job that was not run."""
    lines = peers_table(make_record([*ONE_SIZE, removing("minwise", 2, 5.0, documents=10_000)], 1000, 10_000))
    rows = {
        cells[2]: cells[3:] for cells in ([c.strip() for c in line.split("|")] for line in lines.splitlines()[2:-2])
    }
    assert rows["**minwise**"][:2] == ["3.00 / 2.00", "– / 5.00"]
    assert rows["rensa rminhash"] == ["8.00", "–", "", "100", "2.7 / 4.0", "25.0 / –", ""]
    assert rows["datatrove"][:6] == [">1", "–", "", "", ">0.5", "– / –"]
    assert rows["*minwise / reading and writing the file*"][:2] == ["2.0 / 2.0", ""]
    assert "best of 3 rounds for minwise, the copy and the two fastest other tools, one round for the rest" in lines
    assert "ended after 120 s" in lines


def test_rows_of_an_earlier_run_are_dated_and_not_compared() -> None:
    """Times of different runs give no ratio. Rows keep the order of the engines."""
    earlier = make_record(ONE_SIZE, 1000)
    now = make_record([one for one in ONE_SIZE if one.job.engine is not GAOYA], 1000)
    merged = {**make_record([], 1000), **with_earlier_rows(now, earlier)}
    assert [row["engine"] for row in merged["rows"]][-3:] == ["gaoya", "gaoya", "datatrove"]
    lines = peers_table(merged)
    assert "From an earlier run, and not compared: gaoya (2026-01-02)." in lines
    assert "| gaoya | 12 / 7.00 |  | 100 |  | 25.0 |" in lines
    assert ratio_rows(merged)["fastest other tool / minwise"] == ["2.7 / 4.0 (rensa rminhash)"]
    assert with_earlier_rows(now, None) is now


def test_rows_of_another_processor_or_corpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only runs of the same work on the same machine can share a table."""
    monkeypatch.setattr("benchmarks.peers.__main__.newest_record", lambda name: make_record(ONE_SIZE, 1000))
    monkeypatch.setattr("benchmarks.peers.__main__.processor", lambda: "A")
    assert earlier_record([corpus(1000)])["machine"]["processor"] == "A"
    with pytest.raises(SystemExit, match="these corpora"):
        earlier_record([corpus(1001)])
    monkeypatch.setattr("benchmarks.peers.__main__.processor", lambda: "B")
    with pytest.raises(SystemExit, match="this processor"):
        earlier_record([corpus(1000)])


def test_table_has_a_row_for_each_job() -> None:
    """It shows ">" where a tool did not finish, and "-" where it was not measured."""
    chosen = [entry for entry in MEASUREMENTS if entry.job != THEIRS or entry.documents == 1000]
    lines = table(chosen).splitlines()
    assert len(lines) == 1 + 3
    assert lines[3].split()[5:9] == ["2", "20.0", "-", "100"]
    assert ">400" in table(MEASUREMENTS)


def test_jobs_cover_all_engines_in_the_order_of_tasks() -> None:
    """Each engine has a job, and jobs are ordered by task."""
    jobs = list(all_jobs(ENGINES))
    assert [job.task for job in jobs] == sorted((job.task for job in jobs), key=TASKS.index)
    assert {job.engine for job in jobs} == set(ENGINES)
    assert [job.cores for job in jobs if job.engine is MINWISE and job.task == SIGNING] == [2, 1]


def test_faster_tools_and_removed_shares_come_from_the_record() -> None:
    """Sizes that a tool did not finish are not counted; one that uses one core is compared on two, too."""
    theirs = [removing("gaoya", 2, 1.0), removing("gaoya", 2, 1.0, documents=10_000, finished=False)]
    larger = removing("minwise", 2, 5.0, documents=10_000)
    record = make_record([*ONE_SIZE[:4], larger, *theirs], 1000, 10_000)
    assert faster_tools(record) == f"Faster than minwise: gaoya with 1,000 on two cores ({REMOVING})."
    assert faster_tools(make_record(ONE_SIZE, 1000)) == "No other tool was faster at any size."
    single = make_record([*ONE_SIZE[:4], removing("rensa rminhash", 1, 2.5)], 1000)
    assert faster_tools(single) == f"Faster than minwise: rensa rminhash with 1,000 on one core ({REMOVING})."
    fastest = make_record([*ONE_SIZE[:4], removing("rensa rminhash", 1, 1.5)], 1000)
    assert faster_tools(fastest).count("rensa rminhash") == 2
    assert show_removed(record["rows"][-1], [1000, 10_000]) == "25.0 / –"
