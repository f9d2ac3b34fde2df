"""The table of `make bench`: growth, ratios and who is asked, from made-up measurements."""

import pytest

from benchmarks.peers.engines import ENGINES, MINWISE, READING, REMOVING, SIGNING, TASKS, Job, all_jobs
from benchmarks.peers.markdown_table import faster_tools, largest_common_size, show_removed
from benchmarks.peers.measure import Measurement, growth, may_finish
from benchmarks.peers.report import table, times_minwise, times_reading, verdicts

GAOYA = next(engine for engine in ENGINES if engine.name == "gaoya")
OURS, THEIRS = (Job(task=REMOVING, engine=engine, cores=2) for engine in (MINWISE, GAOYA))
READ = Job(task=READING, engine=ENGINES[0], cores=2)


def measured(job: Job, documents: int, *seconds: float, finished: bool = True) -> Measurement:
    """A measurement with these rounds."""
    return Measurement(job, documents, list(seconds), [10**8] * len(seconds), [0.5] * len(seconds), finished)


EVERY = [
    measured(READ, 1000, 0.1),
    measured(READ, 10_000, 0.5),
    measured(OURS, 1000, 1.0),
    measured(THEIRS, 1000, 20.0),
    measured(OURS, 10_000, 12.0, 10.0),
    measured(THEIRS, 10_000, 400.0, finished=False),
]


def test_growth_is_the_exponent_of_the_best_rounds() -> None:
    """Ten times the documents in ten times the time; and nothing can be said from one size."""
    assert growth(EVERY, OURS) == pytest.approx(1.0)
    assert growth(EVERY, READ) == pytest.approx(0.69897, abs=1e-5)
    assert growth(EVERY, THEIRS) is None


def test_ratios_are_at_the_largest_size_of_both() -> None:
    """Who has not finished took at least so many times as long."""
    assert times_minwise(THEIRS, EVERY) == (40.0, False)
    assert times_minwise(THEIRS, EVERY[:4]) == (20.0, True)
    assert times_minwise(OURS, EVERY) is None
    assert times_reading(OURS, EVERY) == (20.0, True)
    assert verdicts(THEIRS, EVERY) == ["x minwise >= 10 met"]


def test_who_can_not_finish_is_not_asked() -> None:
    """Ten times the documents take at least eight times as long."""
    assert may_finish(THEIRS, EVERY[:4], bound=161)
    assert not may_finish(THEIRS, EVERY[:4], bound=159)
    assert not may_finish(THEIRS, EVERY, bound=1e9)
    assert may_finish(OURS, [], bound=1)


def test_the_table_has_a_row_for_each_job() -> None:
    """With a sign where a peer did not finish, and a hyphen where it was not asked."""
    lines = table([one for one in EVERY if one.job != THEIRS or one.documents == 1000]).splitlines()
    assert len(lines) == 1 + 3
    assert lines[3].split()[5:9] == ["2", "20.0", "-", "100"]
    assert ">400" in table(EVERY)


def test_every_engine_does_every_task_that_it_says() -> None:
    """Each job has a command; jobs come task by task."""
    jobs = list(all_jobs(ENGINES))
    assert [job.task for job in jobs] == sorted((job.task for job in jobs), key=TASKS.index)
    assert {job.engine for job in jobs} == set(ENGINES)
    assert {job.cores for job in jobs if job.engine is MINWISE and job.task == SIGNING} == {1, 2}


def test_who_was_faster_and_who_removed_how_much_come_from_the_record() -> None:
    """Sizes that a tool did not finish count for neither."""

    def row(engine: str, *sizes: tuple[int, float, bool]) -> dict[str, object]:
        told = [
            {"documents": documents, "seconds": [9.0, seconds], "finished": finished, "kept": documents // 4 * 3}
            for documents, seconds, finished in sizes
        ]
        return {"task": REMOVING, "engine": engine, "cores": 2, "sizes": told}

    ours, theirs = (
        row("minwise", (1000, 2.0, True), (10_000, 3.0, True)),
        row("gaoya", (1000, 1.0, True), (10_000, 1.0, False)),
    )
    record = {"rows": [ours, row("copy", (1000, 0.1, True)), theirs]}
    assert faster_tools(record) == f"Faster than minwise: gaoya with 1,000 on two cores ({REMOVING})."
    assert faster_tools({"rows": [ours]}) == "No other tool was faster at any size."
    assert largest_common_size(record) == 1000
    assert show_removed(theirs, 1000) == "25.0%"
