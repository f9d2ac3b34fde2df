"""Table of `make bench`: growth, ratios and skipped tools, from synthetic measurements."""

import pytest

from benchmarks.peers.engines import ENGINES, MINWISE, READING, REMOVING, SIGNING, TASKS, Job, all_jobs
from benchmarks.peers.markdown_table import faster_tools, largest_common_size, show_removed
from benchmarks.peers.measure import Measurement, growth, may_finish
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts

GAOYA = next(engine for engine in ENGINES if engine.name == "gaoya")
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
    assert may_finish(THEIRS, MEASUREMENTS[:4], bound=161)
    assert not may_finish(THEIRS, MEASUREMENTS[:4], bound=159)
    assert not may_finish(THEIRS, MEASUREMENTS, bound=1e9)
    assert may_finish(OURS, [], bound=1)


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
    assert {job.cores for job in jobs if job.engine is MINWISE and job.task == SIGNING} == {1, 2}


def test_faster_tools_and_removed_shares_come_from_the_record() -> None:
    """Sizes that a tool did not finish are not counted."""

    def row(engine: str, *sizes: tuple[int, float, bool]) -> dict[str, object]:
        measurements = [
            {"documents": documents, "seconds": [9.0, seconds], "finished": finished, "kept": documents // 4 * 3}
            for documents, seconds, finished in sizes
        ]
        return {"task": REMOVING, "engine": engine, "cores": 2, "sizes": measurements}

    ours, theirs = (
        row("minwise", (1000, 2.0, True), (10_000, 3.0, True)),
        row("gaoya", (1000, 1.0, True), (10_000, 1.0, False)),
    )
    record = {"rows": [ours, row("copy", (1000, 0.1, True)), theirs]}
    assert faster_tools(record) == f"Faster than minwise: gaoya with 1,000 on two cores ({REMOVING})."
    assert faster_tools({"rows": [ours]}) == "No other tool was faster at any size."
    assert largest_common_size(record) == 1000
    assert show_removed(theirs, 1000) == "25.0%"
