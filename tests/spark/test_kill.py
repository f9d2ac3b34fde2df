"""SIGKILL of an executor in the middle of a shuffle, and of the driver in and between stages: the output is the same.

By default an executor is killed once, and a driver in a stage of files and after one of DataFrames; `make torture`
kills executors ten times, and the driver in and after every stage.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.expect import error_message
from support.fault_corpora import NAMES, write_corpus
from support.spark.arrangement import Arrangement, differing_files
from support.spark.cluster import FAST_JAVA, FAST_PLANS, working_executors
from support.spark.engine_results import IDS, dataframe_answer, documents, frame, local_answer, table
from support.spark.event_log import EventLog
from support.spark.paused_stage import PausedStage
from support.spark.processes import executors, group_members, wait_for

import minwise as mw
from minwise.errors import MismatchError
from minwise.inputs import Files
from minwise.spark.stage_store import StageStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TORTURE = bool(os.environ.get("MINWISE_TORTURE"))
# Many tasks: some have ended when an executor is killed, and others have not begun.
MANY_TASKS = Arrangement(partitions=12, task_bytes=1 << 17)
SEARCH: dict[str, Any] = {"threshold": 0.7, "bands": 10, "rows": 4, "on_error": "quarantine-rows"}
TESTS = str(Path(__file__).parents[1])
FRAME_SEARCH: dict[str, Any] = {
    "threshold": 0.7,
    "shingle": "word:2",
    "bands": 14,
    "rows": 3,
    "on_error": "quarantine",
}
LISTING = "_files.json"
STAGES = ("signatures", "buckets", "verified-buckets")
EXECUTOR_KILLS = 10 if TORTURE else 1
KILLED_AFTER = """
import os, signal, sys
from pathlib import Path
from minwise.spark.stage_store import StageStore

inside, after, folder = sys.argv[1:4]
finish = StageStore._finish

def finish_and_kill(self, name, listing):
    finish(self, name, listing)
    if name == after:
        os.kill(os.getpid(), signal.SIGKILL)

StageStore._finish = finish_and_kill
"""
DRIVER = f"""{KILLED_AFTER}
from minwise.cli import main
from support.spark.paused_stage import PausedStage

StageStore.run_tasks = PausedStage(inside, Path(folder)).run_tasks()
sys.argv[:4] = ["minwise"]
main()
"""
FRAME_DRIVER = f"""{KILLED_AFTER}
from pyspark.sql import SparkSession
from minwise.spark import dedup
from support.spark.engine_results import documents, frame

builder = SparkSession.builder.master("local[2]")
for setting in sys.argv[4:]:
    builder = builder.config(*setting.split("=", 1))
dedup(frame(builder.getOrCreate(), documents()), text="body", work=folder, **{FRAME_SEARCH!r}).report
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus and the output of a run that is not interrupted."""
    folder = write_corpus(tmp_path_factory.mktemp("kill"), 1500)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mw.dedup(Files(NAMES), "whole", **SEARCH)
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the folder of the corpus."""
    monkeypatch.chdir(folder)


def listings(work: Path) -> dict[str, Path]:
    """Return the file lists of finished stages, by name of the stage."""
    return {path.parent.name: path for path in work.rglob(LISTING)}


def made(work: Path) -> dict[str, tuple[int, int]]:
    """Return inode and modification time of the files of finished stages."""
    files = [path for listing in listings(work).values() for path in sorted(listing.parent.iterdir())]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files if path.is_file()}


@contextmanager
def one_executor_killed(
    spark: "SparkSession", events: EventLog, paused: PausedStage
) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Yield a function that runs a search and kills an executor in its paused stage; check what was lost."""

    def run(search: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the search returns
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(search)
            wait_for("a task on each executor", lambda: running.done() or paused.paused == 2)
            os.kill(executors()[0], signal.SIGKILL)
            paused.resume()
            return running.result()

    wait_for("two executors", lambda: working_executors(spark) == 2)
    before = events.now()
    yield run
    seen = events.since(before)
    lost = {stage for stage, reason in seen.failed if reason in ("ExecutorLostFailure", "FetchFailed")}
    assert lost & seen.shuffling
    assert seen.lost_executors == 1


@pytest.mark.parametrize("number", range(EXECUTOR_KILLS))
def test_a_killed_executor_changes_nothing(
    number: int, spark: "SparkSession", events: EventLog, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed in the middle of a shuffle; its tasks and its shuffle files are made again."""
    name = f"executor{number}"
    paused = PausedStage("buckets", folder / f"{name}.paused", passing=1 + number)
    monkeypatch.setattr(StageStore, "run_tasks", paused.run_tasks())
    with MANY_TASKS.on(spark), one_executor_killed(spark, events, paused) as run:
        run(lambda: mw.dedup(Files(NAMES), name, work=f"{name}.work", engine="spark", **SEARCH))
    assert differing_files(folder / "whole", folder / name) == []


@pytest.mark.parametrize("number", range(EXECUTOR_KILLS))
def test_an_executor_killed_in_a_search_over_dataframes_changes_nothing(
    number: int, spark: "SparkSession", events: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a work directory: its blocks were in rows of a shuffle, and its stages are on the other one, too."""
    from minwise.spark import dedup

    expected = local_answer(table(documents()), IDS["long"], text_column="body", **FRAME_SEARCH)
    paused = PausedStage("buckets", tmp_path / "paused", passing=1 + number)
    monkeypatch.setattr(StageStore, "run", paused.run())
    monkeypatch.setattr("minwise.spark.dataframe_search.part_count", lambda entries: 6 * EXECUTOR_KILLS)
    df = frame(spark, documents())
    with Arrangement().on(spark), one_executor_killed(spark, events, paused) as run:
        assert run(lambda: dataframe_answer(dedup(df, text="body", **FRAME_SEARCH))) == expected


class Driver:
    """Search in a separate process that is killed inside a stage or kills itself after one.

    It is a command on files, or ``dedup`` of a DataFrame.
    """

    def __init__(self, folder: Path, name: str, *, inside: str = "", after: str = "", of_frame: bool = False) -> None:
        self.local = folder / f"{name}.local"
        self.local.mkdir(exist_ok=True)
        self.work = folder / f"{name}.work"
        self.paused = PausedStage(inside, folder / f"{name}.paused")
        conf = {
            **FAST_PLANS,
            "spark.local.dir": self.local,
            "spark.sql.shuffle.partitions": 3,
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": FAST_JAVA,
        }
        settings = [f"{key}={value}" for key, value in conf.items()]
        arguments = ["dedup", *NAMES, "-o", name, "--work", str(self.work), "--engine", "spark", "--master", "local[2]"]
        arguments += ["--threshold", "0.7", "--bands", "10", "--rows", "4", "--quiet"]
        for setting in settings:
            arguments += ["--spark-conf", setting]
        command = [DRIVER, inside, after, str(self.paused.folder), *arguments]
        if of_frame:
            command = [FRAME_DRIVER, inside, after, str(self.work), *settings]
        self.process = subprocess.Popen(
            [sys.executable, "-c", *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": TESTS},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def kill_inside(self) -> None:
        """Kill the process in the middle of a stage, but not its Java process."""

        def is_inside() -> bool:
            assert self.process.poll() is None, self.errors()
            return self.paused.paused > 0

        wait_for(f"a driver in {self.paused.stage}", is_inside)
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL

    def wait_for_kill(self) -> None:
        """Wait until the process has killed itself."""
        assert self.process.wait() == -signal.SIGKILL, self.errors()

    def errors(self) -> str:
        """Return its standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")

    def wait_for_processes(self) -> None:
        """Wait until all processes that it started have ended."""
        wait_for("the end of the Java process", lambda: group_members(self.process.pid) == [])
        assert self.process.stderr is not None
        self.process.stderr.close()


KILLS = [(inside, after) for inside in STAGES for after in STAGES] if TORTURE else [("buckets", "")]


@pytest.mark.parametrize(("inside", "after"), KILLS)
def test_a_driver_killed_in_a_stage_and_after_one_is_resumed(
    inside: str, after: str, spark: "SparkSession", folder: Path
) -> None:
    """Finished stages stay unchanged, and the last run writes the same bytes."""
    name = f"driver-{inside}-{after}"
    drivers = [Driver(folder, name, inside=inside)]
    drivers[0].kill_inside()
    work = drivers[0].work
    kept = made(work)
    assert listings(work).keys() & set(STAGES) == set(STAGES[: STAGES.index(inside)])
    if after:
        drivers.append(Driver(folder, name, after=after))
        drivers[1].wait_for_kill()
        again = made(work)
        assert kept.items() <= again.items()
        assert after in listings(work) or inside == after
        kept = again
    assert not (folder / name).exists()
    mw.dedup(Files(NAMES), name, work=work, engine="spark", **SEARCH)
    assert kept.items() <= made(work).items()
    assert differing_files(folder / "whole", folder / name) == []
    for driver in drivers:
        driver.wait_for_processes()
        shutil.rmtree(driver.local, ignore_errors=True)


def test_a_search_over_dataframes_is_resumed_after_its_driver_was_killed(spark: "SparkSession", folder: Path) -> None:
    """Finished stages stay unchanged, and the result is that of the local engine."""
    from minwise.spark import dedup

    driver = Driver(folder, "frame [b]", after="buckets", of_frame=True)
    driver.wait_for_kill()
    kept = made(driver.work)
    assert {"signatures", "ordered", "buckets"} <= listings(driver.work).keys()
    assert "found-star" not in listings(driver.work)
    resumed = dedup(frame(spark, documents()), text="body", work=driver.work, **FRAME_SEARCH)
    assert dataframe_answer(resumed) == local_answer(
        table(documents()), IDS["long"], text_column="body", **FRAME_SEARCH
    )
    assert kept.items() < made(driver.work).items()
    driver.wait_for_processes()
    shutil.rmtree(driver.local, ignore_errors=True)


def refusal(**options: Any) -> str:  # noqa: ANN401 - settings of all kinds
    """Return the message with which a work directory is refused."""
    return error_message(MismatchError, lambda: mw.write_pairs(Files(NAMES), "refused.csv", **{**SEARCH, **options}))


def test_a_work_directory_of_another_run_is_refused_with_both_values(spark: "SparkSession", folder: Path) -> None:
    """Other settings, columns and engine are refused; another arrangement of the cluster is not."""
    of_spark: dict[str, Any] = {"engine": "spark", "work": "spark.work"}
    mw.write_pairs(Files(NAMES), "spark.csv", **SEARCH, **of_spark)
    mw.write_pairs(Files(NAMES), "local.csv", **SEARCH, work="local.work")
    before = made(folder / "spark.work")
    with MANY_TASKS.on(spark):
        mw.write_pairs(Files(NAMES), "again.csv", **SEARCH, **of_spark)
    assert made(folder / "spark.work") == before
    assert {Path(name).read_bytes() for name in ("again.csv", "local.csv")} == {Path("spark.csv").read_bytes()}
    for message, values in (
        (refusal(**of_spark, threshold=0.75), ("0.7", "0.75")),
        (refusal(**of_spark, text_column="id"), ("text", "id")),
        (refusal(work="spark.work"), ("spark", "local")),
        (refusal(engine="spark", work="local.work"), ("local", "spark")),
    ):
        assert all(value in message.replace(".work", "") for value in values), message
