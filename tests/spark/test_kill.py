"""SIGKILL of an executor in the middle of a shuffle, and of the driver in and between stages: the output is the same.

One of each by default; `make torture` kills executors ten times, and the driver in and after every stage.
"""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.expect import error_message
from support.fault_corpora import NAMES, write_corpus
from support.spark.arrangement import Arrangement, differing_files
from support.spark.cluster import FAST_JAVA, FAST_PLANS
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
MANY_TASKS = Arrangement(partitions=12, task_bytes=1 << 17, adaptive=False)
SEARCH: dict[str, Any] = {"threshold": 0.7, "bands": 10, "rows": 4, "on_error": "quarantine-rows"}
TESTS = str(Path(__file__).parents[1])
LISTING = "_files.json"
STAGES = ("signatures", "buckets", "verified-buckets")
EXECUTOR_KILLS = 10 if TORTURE else 1
DRIVER = """
import os, signal, sys
from pathlib import Path
from minwise.cli import main
from minwise.spark.stage_store import StageStore
from support.spark.paused_stage import PausedStage

inside, after, folder = sys.argv[1:4]
finish = StageStore._finish

def finish_and_kill(self, name, listing):
    finish(self, name, listing)
    if name == after:
        os.kill(os.getpid(), signal.SIGKILL)

StageStore._finish = finish_and_kill
StageStore.run_tasks = PausedStage(inside, Path(folder)).run_tasks()
sys.argv[:4] = ["minwise"]
main()
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
    return {path.parent.name: path for path in work.glob(f"spark/*/{LISTING}")}


def made(work: Path) -> dict[str, tuple[int, int]]:
    """Return inode and modification time of the files of finished stages."""
    files = [path for listing in listings(work).values() for path in sorted(listing.parent.iterdir())]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files if path.is_file()}


@pytest.mark.parametrize("number", range(EXECUTOR_KILLS))
def test_a_killed_executor_changes_nothing(
    number: int, spark: "SparkSession", events: EventLog, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed in the middle of a shuffle; its tasks and its shuffle files are made again."""
    name = f"executor{number}"
    paused = PausedStage("buckets", folder / f"{name}.paused", passing=1 + number)
    monkeypatch.setattr(StageStore, "run_tasks", paused.run_tasks())
    wait_for("two executors", lambda: len(executors()) == 2)
    before = events.now()
    with MANY_TASKS.on(spark), ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: mw.dedup(Files(NAMES), name, work=f"{name}.work", engine="spark", **SEARCH))
        wait_for("a task on each executor", lambda: running.done() or paused.paused == 2)
        os.kill(executors()[0], signal.SIGKILL)
        paused.resume()
        running.result()
    seen = events.since(before)
    lost = {stage for stage, reason in seen.failed if reason in ("ExecutorLostFailure", "FetchFailed")}
    assert lost & seen.shuffling
    assert seen.lost_executors == 1
    assert differing_files(folder / "whole", folder / name) == []


class Driver:
    """Command in a separate process that is killed inside a stage or kills itself after one."""

    def __init__(self, folder: Path, name: str, *, inside: str = "", after: str = "") -> None:
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
        arguments = ["dedup", *NAMES, "-o", name, "--work", str(self.work), "--engine", "spark", "--master", "local[2]"]
        arguments += ["--threshold", "0.7", "--bands", "10", "--rows", "4", "--quiet"]
        for key, value in conf.items():
            arguments += ["--spark-conf", f"{key}={value}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, inside, after, str(self.paused.folder), *arguments],
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


KILLS = [(inside, after) for inside in STAGES for after in STAGES] if TORTURE else [("buckets", "verified-buckets")]


@pytest.mark.parametrize(("inside", "after"), KILLS)
def test_a_driver_killed_in_a_stage_and_after_one_is_resumed(
    inside: str, after: str, spark: "SparkSession", folder: Path
) -> None:
    """Finished stages stay unchanged, and the last of three runs writes the same bytes."""
    name = f"driver-{inside}-{after}"
    first = Driver(folder, name, inside=inside)
    first.kill_inside()
    kept = made(first.work)
    assert listings(first.work).keys() & set(STAGES) == set(STAGES[: STAGES.index(inside)])
    second = Driver(folder, name, after=after)
    second.wait_for_kill()
    again = made(second.work)
    assert kept.items() <= again.items()
    assert after in listings(second.work) or inside == after
    assert not (folder / name).exists()
    mw.dedup(Files(NAMES), name, work=second.work, engine="spark", **SEARCH)
    assert again.items() <= made(second.work).items()
    assert differing_files(folder / "whole", folder / name) == []
    for driver in (first, second):
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
