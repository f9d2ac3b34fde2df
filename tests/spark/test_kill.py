"""Kill -9 of an executor in the middle of a shuffle, and of the driver in and between stages: the same bytes.

By default one of each; `make torture` kills executors ten times, and the driver in and after every stage.
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
from support.expect import complaint
from support.fault_corpora import NAMES, write_corpus
from support.spark.arrangement import Arrangement, unlike
from support.spark.event_log import Events
from support.spark.paused_stage import PausedStage
from support.spark.processes import executors, group_members, wait_for

import minwise as mw
from minwise.errors import MismatchError
from minwise.inputs import Files
from minwise.spark.stage_store import StageStore

from .conftest import QUICK_JAVA, QUICK_PLANS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TORTURE = bool(os.environ.get("MINWISE_TORTURE"))
# Many tasks: some have ended when an executor is killed, and others have yet to begin.
CUT = Arrangement(partitions=12, task_bytes=1 << 17, adaptive=False)
SEARCH: dict[str, Any] = {"threshold": 0.7, "bands": 10, "rows": 4, "on_error": "quarantine"}
TESTS = str(Path(__file__).parents[1])
LISTING = "_files.json"
STAGES = ("signatures", "candidates", "sets", "verified")
EXECUTOR_KILLS = 10 if TORTURE else 1
DRIVER = """
import os, signal, sys
from pathlib import Path
from minwise.cli import main
from minwise.spark.stage_store import StageStore
from support.spark.paused_stage import PausedStage

inside, after, folder = sys.argv[1:4]
finish = StageStore._finish

def finish_and_die(self, name):
    finish(self, name)
    if name == after:
        os.kill(os.getpid(), signal.SIGKILL)

StageStore._finish = finish_and_die
StageStore.run = PausedStage(inside, Path(folder)).run()
sys.argv[:4] = ["minwise"]
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and with what a run that nobody interrupts makes of it."""
    folder = write_corpus(tmp_path_factory.mktemp("kill"), 1500)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mw.dedup(Files(NAMES), "whole", **SEARCH)
    return folder


@pytest.fixture(autouse=True)
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything runs where the corpus is."""
    monkeypatch.chdir(place)


def listings(work: Path) -> dict[str, Path]:
    """The finished stages, by name."""
    return {path.parent.name: path for path in work.glob(f"spark/*/{LISTING}")}


def made(work: Path) -> dict[str, tuple[int, int]]:
    """What changes when a file of a finished stage is written again."""
    files = [path for listing in listings(work).values() for path in sorted(listing.parent.iterdir())]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files if path.is_file()}


@pytest.mark.parametrize("number", range(EXECUTOR_KILLS))
def test_an_executor_is_killed_in_the_middle_of_the_shuffle(
    number: int, spark: "SparkSession", events: Events, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks and the shuffle files it held are made again by others."""
    name = f"executor{number}"
    held = PausedStage("candidates", place / f"{name}.held", passing=1 + number)
    monkeypatch.setattr(StageStore, "run", held.run())
    wait_for("two executors", lambda: len(executors()) == 2)
    before = events.now()
    with CUT.on(spark), ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: mw.dedup(Files(NAMES), name, work=f"{name}.work", engine="spark", **SEARCH))
        wait_for("a task on each executor", lambda: running.done() or held.waiting == 2)
        os.kill(executors()[0], signal.SIGKILL)
        held.go()
        running.result()
    seen = events.since(before)
    lost = {stage for stage, reason in seen.failed if reason in ("ExecutorLostFailure", "FetchFailed")}
    assert lost & seen.shuffling
    assert seen.lost_executors == 1
    assert unlike(place / "whole", place / name) == []


class Driver:
    """A command of its own, with its own Java process, that is killed inside a stage or kills itself after one."""

    def __init__(self, place: Path, name: str, *, inside: str = "", after: str = "") -> None:
        self.local = place / f"{name}.local"
        self.local.mkdir(exist_ok=True)
        self.work = place / f"{name}.work"
        self.held = PausedStage(inside, place / f"{name}.held")
        conf = {
            **QUICK_PLANS,
            "spark.local.dir": self.local,
            "spark.sql.shuffle.partitions": 3,
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
        }
        arguments = ["dedup", *NAMES, "-o", name, "--work", str(self.work), "--engine", "spark", "--master", "local[2]"]
        arguments += ["--threshold", "0.7", "--bands", "10", "--rows", "4", "--quiet"]
        for key, value in conf.items():
            arguments += ["--spark-conf", f"{key}={value}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, inside, after, str(self.held.folder), *arguments],
            cwd=place,
            env={**os.environ, "PYTHONPATH": TESTS},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def is_killed_inside(self) -> None:
        """Ends the process in the middle of a stage. Its Java process is left to find out."""

        def is_inside() -> bool:
            assert self.process.poll() is None, self.errors()
            return self.held.waiting > 0

        wait_for(f"a driver in {self.held.stage}", is_inside)
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL

    def ends_by_itself(self) -> None:
        """Waits until the trap was met."""
        assert self.process.wait() == -signal.SIGKILL, self.errors()

    def errors(self) -> str:
        """What it complained of."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")

    def leaves_nobody(self) -> None:
        """Waits until all processes that it started are gone."""
        wait_for("the end of the Java process", lambda: group_members(self.process.pid) == [])
        assert self.process.stderr is not None
        self.process.stderr.close()


KILLS = [(inside, after) for inside in STAGES for after in STAGES] if TORTURE else [("candidates", "sets")]


@pytest.mark.parametrize(("inside", "after"), KILLS)
def test_the_driver_is_killed_in_a_stage_and_after_one(
    inside: str, after: str, spark: "SparkSession", place: Path
) -> None:
    """What was finished stays as it is, and the last of three runs leaves the same bytes."""
    name = f"driver-{inside}-{after}"
    first = Driver(place, name, inside=inside)
    first.is_killed_inside()
    kept = made(first.work)
    assert listings(first.work).keys() & set(STAGES) == set(STAGES[: STAGES.index(inside)])
    second = Driver(place, name, after=after)
    second.ends_by_itself()
    again = made(second.work)
    assert kept.items() <= again.items()
    assert after in listings(second.work) or inside == after
    assert not (place / name).exists()
    mw.dedup(Files(NAMES), name, work=second.work, engine="spark", **SEARCH)
    assert again.items() <= made(second.work).items()
    assert unlike(place / "whole", place / name) == []
    for driver in (first, second):
        driver.leaves_nobody()
        shutil.rmtree(driver.local, ignore_errors=True)


def refusal(**options: Any) -> str:  # noqa: ANN401 - settings of all kinds
    """Why pairs are not found on in a work directory."""
    return complaint(MismatchError, lambda: mw.write_pairs(Files(NAMES), "refused.csv", **{**SEARCH, **options}))


def test_a_work_directory_of_another_run_is_refused_with_both_values(spark: "SparkSession", place: Path) -> None:
    """Other settings, other columns and another engine. How the cluster is cut is none of them: that goes on."""
    of_spark: dict[str, Any] = {"engine": "spark", "work": "spark.work"}
    mw.write_pairs(Files(NAMES), "spark.csv", **SEARCH, **of_spark)
    mw.write_pairs(Files(NAMES), "local.csv", **SEARCH, work="local.work")
    before = made(place / "spark.work")
    with CUT.on(spark):
        mw.write_pairs(Files(NAMES), "again.csv", **SEARCH, **of_spark)
    assert made(place / "spark.work") == before
    assert {Path(name).read_bytes() for name in ("again.csv", "local.csv")} == {Path("spark.csv").read_bytes()}
    for told, values in (
        (refusal(**of_spark, threshold=0.75), ("0.7", "0.75")),
        (refusal(**of_spark, text_column="id"), ("text", "id")),
        (refusal(work="spark.work"), ("spark", "local")),
        (refusal(engine="spark", work="local.work"), ("local", "spark")),
    ):
        assert all(value in told.replace(".work", "") for value in values), told
