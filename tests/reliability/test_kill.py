"""Kill -9 of a dedup run with a work directory: the same command again gives the same bytes.

By default there are 10 kills at random times, and one at every write of a small run. `make torture` makes it 50 kills,
and one before and one after every file operation, syncs of directories included.
"""

import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.commands import MINWISE, OK, TORTURE, Done, Job, digest, execute, hidden, run
from support.fault_corpora import NAMES

KILLS = 50 if TORTURE else 10
# Small sizes, so that a small run has several parts, ranges of keys, files of sets and chunks of pairs.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.candidates.CHUNK_PAIRS": 40,
    "minwise.search.verification.SPILL_ELEMENTS": 2000,
    "minwise.search.candidates.SORTED_BYTES": 2 * 10**6,
}
LAYOUT = ("--bands", "4", "--rows", "8")
ONE_BAND = ("--bands", "1", "--rows", "4")


@dataclass(frozen=True)
class CompleteRun:
    """Output digest and duration of an uninterrupted run."""

    output: dict[str, str]
    seconds: float


@pytest.fixture(scope="module")
def complete(large: Path) -> CompleteRun:
    """Run a dedup of the large corpus without interruption."""
    started = time.monotonic()
    assert execute(large, *dedup("whole")).returncode == OK
    seconds = time.monotonic() - started
    output = digest(large / "whole")
    assert {"kept/a.jsonl", "kept/b.jsonl.gz", "kept/c.parquet", "removed.parquet", "report.json"} <= output.keys()
    return CompleteRun(output, seconds)


def dedup(name: str, *options: str) -> list[str]:
    """Return the arguments of a run with its own output and work directory."""
    return ["dedup", *NAMES, "-o", name, "--work", f"{name}.work", "--quiet", *options]


def killed_after(seconds: float, folder: Path, arguments: list[str]) -> bool:
    """Run the command and kill it after some seconds; return whether it was still running."""
    with subprocess.Popen([MINWISE, *arguments], cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
        assert errors == b""
        assert process.returncode in (OK, -signal.SIGKILL)
    return process.returncode != OK


@pytest.mark.timeout(1200)
def test_run_resumes_after_kills_at_random_times(large: Path, complete: CompleteRun) -> None:
    """One to four kills per run, spread over its duration; the output appears complete or not at all."""
    draw = random.Random(7)
    delays = [(number + draw.random()) / KILLS * complete.seconds for number in range(KILLS)]
    draw.shuffle(delays)
    hits = chain = 0
    while delays:
        chain += 1
        arguments = dedup(f"chain{chain}")
        for _ in range(min(len(delays), 1 + chain % 4)):
            if not killed_after(delays.pop(), large, arguments):
                break
            hits += 1
            assert_complete_or_missing(large / f"chain{chain}", complete.output)
        assert execute(large, *arguments).returncode == OK
        assert digest(large / f"chain{chain}") == complete.output
        assert not [name for name in hidden(large) if f"chain{chain}" in name]
        shutil.rmtree(large / f"chain{chain}.work")
    assert hits >= KILLS / 2


def assert_complete_or_missing(output: Path, expected: dict[str, str]) -> None:
    """Check that a killed run has published everything or nothing."""
    assert not output.exists() or digest(output) == expected


def test_run_resumes_with_other_limits(large: Path, complete: CompleteRun) -> None:
    """Memory and threads do not change the result, so a run may resume with other limits."""
    killed_after(complete.seconds * 0.7, large, dedup("limits", "--memory", "256MB", "--threads", "1"))
    assert execute(large, *dedup("limits", "--memory", "8GB", "--threads", "3")).returncode == OK
    assert digest(large / "limits") == complete.output


@pytest.fixture(scope="module")
def expected(small: Path) -> dict[str, str]:
    """Run a dedup of the small corpus with the usual sizes, which do not change the result."""
    done = run(small, "dedup", *NAMES, "-o", "whole", "--quiet", *LAYOUT)
    assert (done.status, done.err) == (OK, "")
    return digest(small / "whole")


def start(folder: Path, name: str, *options: str, trap: dict[str, object] | None = None) -> Done:
    """Run a dedup of the small corpus with small sizes."""
    return run(folder, *dedup(name, *LAYOUT, *options), job=Job(constants=SMALL_SIZES, trap=trap))


def events(folder: Path, *options: str) -> list[str]:
    """Return the file operations of a run, in order."""
    assert start(folder, "events", *options, trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    shutil.rmtree(folder / "events.work")
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def points(seen: list[str]) -> list[tuple[int, bool]]:
    """Return the kill points: the number of an event, and whether to kill after it."""
    everything = [(number, after) for number in range(len(seen)) for after in (False, True)]
    # After one event is before the next. The kill before a sync truncates the file; a rename of it follows.
    torn = {number for number, line in enumerate(seen[1:]) if line.startswith("replace")}
    others = {number for number, line in enumerate(seen) if not line.startswith(("fsync", "replace"))}
    return everything if TORTURE else [(number, False) for number in sorted(torn | others)]


@pytest.mark.timeout(1200)
def test_run_resumes_after_a_kill_at_every_file_operation(folder: Path, expected: dict[str, str]) -> None:
    """Kills in every write and before every rename and deletion; the run writes several files of each kind."""
    seen = events(folder)
    kinds = {"part-000001", "columns-000001", "faults-000001", "candidates-00003", "sets-000001", "verified-000001"}
    assert all(any(kind in line for line in seen) for kind in kinds), "a kind of work file is written only once"
    wrong = {}
    for number, after in points(seen):
        name = f"out{number}{'after' if after else 'before'}"
        assert start(folder, name, trap={"point": number, "after": after, "act": "kill"}).status == -signal.SIGKILL
        partial = (folder / name).exists() and digest(folder / name) != expected
        again = start(folder, name)
        if partial or again.status != OK or digest(folder / name) != expected or hidden(folder):
            wrong[f"{seen[number]} ({'after' if after else 'before'})"] = (partial, again, hidden(folder))
        for left in (name, f"{name}.work"):
            shutil.rmtree(folder / left, ignore_errors=True)
    assert not wrong


def test_run_completes_although_it_is_killed_repeatedly(folder: Path, expected: dict[str, str]) -> None:
    """Finished work is not repeated. Only publishing starts again, so each run lasts a little longer than that."""
    seen = events(folder)
    last = next(number for number, line in enumerate(seen) if line.startswith("rmtree"))
    lifetime = len(seen) - last + 1
    runs = 0
    while (done := start(folder, "out", trap={"point": lifetime, "after": True, "act": "kill"})).status != OK:
        runs += 1
        assert done.status == -signal.SIGKILL
        assert runs <= len(seen)
        assert_complete_or_missing(folder / "out", expected)
    assert runs >= 3
    assert digest(folder / "out") == expected


def test_run_killed_after_publishing_is_not_repeated(folder: Path, expected: dict[str, str]) -> None:
    """The next run reports that the output is published already, and writes nothing."""
    seen = events(folder)
    last = next(number for number, line in enumerate(seen) if line.startswith("rename_new"))
    assert start(folder, "out", trap={"point": last, "after": True, "act": "kill"}).status == -signal.SIGKILL
    assert digest(folder / "out") == expected
    before = inodes(folder / "out")
    again = run(folder, "dedup", *NAMES, "-o", "out", "--work", "out.work", *LAYOUT)
    assert (again.status, again.err) == (OK, "")
    assert "published" in again.out.splitlines()[0]
    assert "already" in again.out.splitlines()[0]
    assert inodes(folder / "out") == before
    assert hidden(folder) == []


def inodes(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inodes and times, which change when a file is rewritten; without the lock, which every run writes."""
    paths = [folder, *sorted(path for path in folder.rglob("*") if path.name != ".lock")]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def test_replaced_output_is_old_or_new_after_a_kill(folder: Path, expected: dict[str, str]) -> None:
    """With --overwrite the output is the old one, the new one, or briefly missing; the next run completes it."""
    (folder / "events").mkdir()
    (folder / "events" / "old").touch()
    seen = events(folder, "--overwrite")
    publishing = next(number for number, line in enumerate(seen) if "/publishing" in line)
    assert sum(line.startswith("exchange") for line in seen) == 1
    wrong = {}
    for number in range(publishing, len(seen)):
        name = f"over{number}"
        (folder / name).mkdir()
        (folder / name / "old").touch()
        old = digest(folder / name)
        trap = {"point": number, "after": False, "act": "kill"}
        assert start(folder, name, "--overwrite", trap=trap).status == -signal.SIGKILL
        left = digest(folder / name) if (folder / name).exists() else {}
        again = start(folder, name, "--overwrite")
        if left not in ({}, old, expected) or again.status != OK or digest(folder / name) != expected or hidden(folder):
            wrong[seen[number]] = (left, again, hidden(folder))
        for leftover in hidden(folder):
            shutil.rmtree(folder / leftover)
    assert not wrong


@pytest.fixture(scope="module")
def one_band(small: Path) -> dict[str, str]:
    """Run a dedup with one band, where a missing range of keys means missing pairs."""
    assert run(small, "dedup", *NAMES, "-o", "one_band", "--quiet", *ONE_BAND).status == OK
    return digest(small / "one_band")


@pytest.mark.parametrize("work_file", ["part-000002", "candidates-00000-00001", "sets-000001", "verified-000001"])
@pytest.mark.parametrize(("first", "then"), [("256MB", "4GB"), ("4GB", "256MB")])
def test_run_resumes_with_other_memory(
    folder: Path, one_band: dict[str, str], work_file: str, first: str, then: str
) -> None:
    """Another limit divides keys into other ranges; candidates of the old ranges are not used."""
    seen = events(folder, "--memory", first, *ONE_BAND)
    point = next(number for number, line in enumerate(seen) if line.startswith("replace") and work_file in line)
    trap = {"point": point, "act": "kill"}
    killed = start(folder, "out", "--memory", first, "--threads", "1", *ONE_BAND, trap=trap)
    assert killed.status == -signal.SIGKILL
    assert start(folder, "out", "--memory", then, "--threads", "3", *ONE_BAND).status == OK
    assert digest(folder / "out") == one_band


def test_truncated_file_is_quarantined_once(folder: Path) -> None:
    """It has one entry in quarantine.jsonl, also if the run was killed after it was read."""
    cut = (folder / "b.jsonl.gz").read_bytes()[:4000]
    (folder / "b.jsonl.gz").write_bytes(cut)
    arguments = ["dedup", "a.jsonl", "b.jsonl.gz", "-o", "out", "--work", "work", "--quiet"]
    assert run(folder, *arguments[:4], "whole", "--quiet").status == OK
    trap = {"log": str(folder / "log"), "act": "kill"}
    assert run(folder, *arguments, job=Job(trap=trap)).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    point = next(number for number, line in enumerate(seen) if line.startswith("replace") and "/documents" in line)
    for left in ("out", "work"):
        shutil.rmtree(folder / left)
    killed = run(folder, *arguments, job=Job(trap={"point": point, "act": "kill"}))
    assert killed.status == -signal.SIGKILL
    assert run(folder, *arguments).status == OK
    assert digest(folder / "out") == digest(folder / "whole")
