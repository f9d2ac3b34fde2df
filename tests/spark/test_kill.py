"""Kill -9 of an executor in the middle of a shuffle, and of the driver in and between stages: the same bytes.

By default one of each; `make torture` kills executors ten times, and the driver in and after every stage.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from expect import complaint
from reliability.corpora import NAMES, write_corpus

import minwise as mw

from .arranged import Arrangement, unlike
from .conftest import QUICK_JAVA
from .events import Events
from .processes import executors, frozen, group_members, send, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TORTURE = bool(os.environ.get("MINWISE_TORTURE"))
# Many tasks that get their rows in small batches: they take a while, and there is always one that has ended.
CUT = Arrangement(partitions=12, task_bytes=1 << 17, batch_rows=2, adaptive=False)
SEARCH: dict[str, Any] = {"threshold": 0.7, "bands": 10, "rows": 4, "on_error": "quarantine"}
LISTING = "_files.json"
STAGES = ("signatures", "candidates", "sets", "verified")
EXECUTOR_KILLS = 10 if TORTURE else 1
# How long executors may work between two looks at them.
RUN_SECONDS = 0.03
TRIES = 3
DRIVER = """
import os, signal, sys
from minwise.cli import main
from minwise.spark.stages import Stages

finish, last = Stages._finish, sys.argv[1]

def trap(self, name):
    finish(self, name)
    if name == last:
        os.kill(os.getpid(), signal.SIGKILL)

Stages._finish = trap
sys.argv[:2] = ["minwise"]
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and with what a run that nobody interrupts makes of it."""
    folder = write_corpus(tmp_path_factory.mktemp("kill"), 3000)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mw.dedup(mw.Files(NAMES), "whole", **SEARCH)
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


def in_the_shuffle(spark: "SparkSession", work: Path) -> bool:
    """Whether candidates are being made, both executors are busy, and a task of the same stage has ended."""
    done = listings(work).keys()
    if "signatures" not in done or "candidates" in done:
        return False
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return any(one is not None and one.numActiveTasks == 2 and one.numCompletedTasks >= 1 for one in stages)


@pytest.mark.parametrize("number", range(EXECUTOR_KILLS))
def test_an_executor_is_killed_in_the_middle_of_the_shuffle(
    number: int, spark: "SparkSession", events: Events, place: Path
) -> None:
    """Its tasks and the shuffle files it held are made again by others. A run that ends before it is met is none."""
    tries = (Killing(spark, events, place, f"executor{number}-{attempt}") for attempt in range(TRIES))
    met = next(one for one in tries if one.run())
    lost = {stage for stage, reason in met.seen.failed if reason in ("ExecutorLostFailure", "FetchFailed")}
    assert lost & met.seen.shuffling
    assert met.seen.lost_executors == 1
    assert unlike(place / "whole", met.out) == []


class Killing:
    """A run one of whose executors is killed in the middle of the shuffle."""

    def __init__(self, spark: "SparkSession", events: Events, place: Path, name: str) -> None:
        self.spark, self.events = spark, events
        self.work, self.out = place / f"{name}.work", place / name

    def run(self) -> bool:
        """Whether the moment was met; the run goes on to its end."""
        wait_for("two executors", lambda: len(executors(self.spark)) == 2)
        before, victims = self.events.now(), executors(self.spark)
        with CUT.on(self.spark), ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._dedup)
            wait_for("tasks in the shuffle", lambda: running.done() or self._caught(victims))
            met = not running.done()
            if met:
                killed, other = victims
                os.kill(killed, signal.SIGKILL)
                os.kill(other, signal.SIGCONT)
            running.result()
        self.seen = self.events.since(before)
        return met

    def _dedup(self) -> None:
        mw.dedup(mw.Files(NAMES), self.out, work=self.work, engine="spark", **SEARCH)

    def _caught(self, victims: list[int]) -> bool:
        """Looks while nobody moves, a few dozen times a second, so that looking may take as long as it likes."""
        time.sleep(RUN_SECONDS)
        return "signatures" in listings(self.work) and frozen(victims, lambda: in_the_shuffle(self.spark, self.work))


class Driver:
    """A command of its own, with its own Java process."""

    def __init__(self, place: Path, name: str, trap: str) -> None:
        self.local = place / f"{name}.local"
        self.local.mkdir(exist_ok=True)
        self.work = place / f"{name}.work"
        conf = {
            "spark.local.dir": self.local,
            "spark.sql.shuffle.partitions": 6,
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
        }
        arguments = ["dedup", *NAMES, "-o", name, "--work", str(self.work), "--engine", "spark", "--master", "local[2]"]
        arguments += ["--threshold", "0.7", "--bands", "10", "--rows", "4", "--quiet"]
        for key, value in conf.items():
            arguments += ["--spark-conf", f"{key}={value}"]
        command = [sys.executable, "-c", DRIVER, trap, *arguments]
        self.process = subprocess.Popen(
            command, cwd=place, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    def is_in(self, stage: str) -> bool:
        """Whether a stage has begun to make files, and those before it are finished."""
        done = listings(self.work).keys()
        before = STAGES[: STAGES.index(stage)]
        if stage in done or not set(before) <= done:
            return False
        shuffled = stage == "candidates" and any(self.local.rglob("shuffle_*.data"))
        return shuffled or any(path.parent.name == stage for path in self.work.glob("spark/*/_temporary"))

    def killed_in(self, stage: str) -> None:
        """Ends the process in the middle of a stage. Its Java process is left to find out."""

        def caught() -> bool:
            assert self.process.poll() is None, self.errors()
            members = group_members(self.process.pid)
            return self.is_in(stage) and frozen(members, lambda: self.is_in(stage))

        wait_for(f"a driver in {stage}", caught)
        self.process.kill()
        send(group_members(self.process.pid), signal.SIGCONT)
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
    first = Driver(place, name, trap="")
    first.killed_in(inside)
    kept = made(first.work)
    assert set(STAGES[: STAGES.index(inside)]) <= listings(first.work).keys()
    second = Driver(place, name, trap=after)
    second.ends_by_itself()
    again = made(second.work)
    assert kept.items() <= again.items()
    assert after in listings(second.work) or inside == after
    assert not (place / name).exists()
    mw.dedup(mw.Files(NAMES), name, work=second.work, engine="spark", **SEARCH)
    assert again.items() <= made(second.work).items()
    assert unlike(place / "whole", place / name) == []
    for driver in (first, second):
        driver.leaves_nobody()
        shutil.rmtree(driver.local, ignore_errors=True)


def refusal(**options: Any) -> str:  # noqa: ANN401 - settings of all kinds
    """Why pairs are not found on in a work directory."""
    return complaint(mw.MismatchError, lambda: mw.pairs(mw.Files(NAMES), "refused.csv", **{**SEARCH, **options}))


def test_a_work_directory_of_another_run_is_refused_with_both_values(spark: "SparkSession", place: Path) -> None:
    """Other settings, other columns and another engine. How the cluster is cut is none of them: that goes on."""
    of_spark: dict[str, Any] = {"engine": "spark", "work": "spark.work"}
    mw.pairs(mw.Files(NAMES), "spark.csv", **SEARCH, **of_spark)
    mw.pairs(mw.Files(NAMES), "local.csv", **SEARCH, work="local.work")
    before = made(place / "spark.work")
    with CUT.on(spark):
        mw.pairs(mw.Files(NAMES), "again.csv", **SEARCH, **of_spark)
    assert made(place / "spark.work") == before
    assert {Path(name).read_bytes() for name in ("again.csv", "local.csv")} == {Path("spark.csv").read_bytes()}
    for told, values in (
        (refusal(**of_spark, threshold=0.75), ("0.7", "0.75")),
        (refusal(**of_spark, text_column="id"), ("text", "id")),
        (refusal(work="spark.work"), ("spark", "local")),
        (refusal(engine="spark", work="local.work"), ("local", "spark")),
    ):
        assert all(value in told.replace(".work", "") for value in values), told
