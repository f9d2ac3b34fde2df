"""Kill -9 at any moment of a dedup with a work directory, then the same command again: the same bytes.

By default 10 kills at random moments, and one in the middle of every write of a small run; `make torture` makes it 50
kills, and one before and one after everything that happens to a file, syncs of directories included.
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
# Little data in many pieces: several parts of the first pass, ranges of keys, files of sets and chunks of pairs.
PIECES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.candidates.CHUNK_PAIRS": 40,
    "minwise.search.verification.SPILL_ELEMENTS": 2000,
    "minwise.search.candidates.SORTED_BYTES": 2 * 10**6,
}
LAYOUT = ("--bands", "4", "--rows", "8")
ONE_BAND = ("--bands", "1", "--rows", "4")


@dataclass(frozen=True)
class Whole:
    """What a run that nobody interrupts leaves, and how long it takes."""

    output: dict[str, str]
    seconds: float


@pytest.fixture(scope="module")
def whole(large: Path) -> Whole:
    """The large corpus, deduplicated in one go."""
    started = time.monotonic()
    assert execute(large, *dedup("whole")).returncode == OK
    seconds = time.monotonic() - started
    output = digest(large / "whole")
    assert {"kept/a.jsonl", "kept/b.jsonl.gz", "kept/c.parquet", "removed.parquet", "report.json"} <= output.keys()
    return Whole(output, seconds)


def dedup(name: str, *options: str) -> list[str]:
    """The arguments of a run with its own output and work directory."""
    return ["dedup", *NAMES, "-o", name, "--work", f"{name}.work", "--quiet", *options]


def killed_after(seconds: float, folder: Path, arguments: list[str]) -> bool:
    """Runs the command and kills it then; whether it was still there."""
    with subprocess.Popen([MINWISE, *arguments], cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            _, complaints = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            _, complaints = process.communicate()
        assert complaints == b""
        assert process.returncode in (OK, -signal.SIGKILL)
    return process.returncode != OK


@pytest.mark.timeout(1200)
def test_kills_at_random_moments(large: Path, whole: Whole) -> None:
    """Spread over the whole run, one to four in a row; nothing is at OUT until all is, and then it is the same."""
    draw = random.Random(7)
    moments = [(number + draw.random()) / KILLS * whole.seconds for number in range(KILLS)]
    draw.shuffle(moments)
    hits = chain = 0
    while moments:
        chain += 1
        arguments = dedup(f"chain{chain}")
        for _ in range(min(len(moments), 1 + chain % 4)):
            moment = moments.pop()
            if not killed_after(moment, large, arguments):
                break
            hits += 1
            assert_whole_or_nothing(large / f"chain{chain}", whole.output)
        assert execute(large, *arguments).returncode == OK
        assert digest(large / f"chain{chain}") == whole.output
        assert not [name for name in hidden(large) if f"chain{chain}" in name]
        shutil.rmtree(large / f"chain{chain}.work")
    assert hits >= KILLS / 2


def assert_whole_or_nothing(output: Path, expected: dict[str, str]) -> None:
    """A run that was killed has published everything or nothing."""
    assert not output.exists() or digest(output) == expected


def test_other_limits_after_a_kill(large: Path, whole: Whole) -> None:
    """Memory and threads are no settings of the result: a run may go on with others."""
    killed_after(whole.seconds * 0.7, large, dedup("limits", "--memory", "256MB", "--threads", "1"))
    assert execute(large, *dedup("limits", "--memory", "8GB", "--threads", "3")).returncode == OK
    assert digest(large / "limits") == whole.output


@pytest.fixture(scope="module")
def expected(small: Path) -> dict[str, str]:
    """The small corpus in one piece: how it is cut makes no difference."""
    done = run(small, "dedup", *NAMES, "-o", "whole", "--quiet", *LAYOUT)
    assert (done.status, done.err) == (OK, "")
    return digest(small / "whole")


def start(folder: Path, name: str, *options: str, trap: dict[str, object] | None = None) -> Done:
    """A run on the small corpus, cut into many pieces."""
    return run(folder, *dedup(name, *LAYOUT, *options), job=Job(constants=PIECES, trap=trap))


def events(folder: Path, *options: str) -> list[str]:
    """What happens to files in a run, in order."""
    assert start(folder, "events", *options, trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    shutil.rmtree(folder / "events.work")
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def points(seen: list[str]) -> list[tuple[int, bool]]:
    """Where to kill: the number of the event, and whether after it."""
    everything = [(number, after) for number in range(len(seen)) for after in (False, True)]
    # After one event is before the next. A file is torn before it is synced; that it then has another name follows.
    torn = {number for number, line in enumerate(seen[1:]) if line.startswith("replace")}
    others = {number for number, line in enumerate(seen) if not line.startswith(("fsync", "replace"))}
    return everything if TORTURE else [(number, False) for number in sorted(torn | others)]


@pytest.mark.timeout(1200)
def test_a_kill_at_every_file(place: Path, expected: dict[str, str]) -> None:
    """In the middle of every write, and before every rename and deletion; several pieces of each kind are made."""
    seen = events(place)
    kinds = {"part-000001", "columns-000001", "faults-000001", "candidates-00003", "sets-000001", "verified-000001"}
    assert all(any(kind in line for line in seen) for kind in kinds), "a piece of some kind is made only once"
    wrong = {}
    for number, after in points(seen):
        name = f"out{number}{'after' if after else 'before'}"
        assert start(place, name, trap={"point": number, "after": after, "act": "kill"}).status == -signal.SIGKILL
        partial = (place / name).exists() and digest(place / name) != expected
        again = start(place, name)
        if partial or again.status != OK or digest(place / name) != expected or hidden(place):
            wrong[f"{seen[number]} ({'after' if after else 'before'})"] = (partial, again, hidden(place))
        for left in (name, f"{name}.work"):
            shutil.rmtree(place / left, ignore_errors=True)
    assert not wrong


def test_killed_again_and_again_it_still_comes_to_an_end(place: Path, expected: dict[str, str]) -> None:
    """What was finished is not done again; only publishing starts anew, so each run lives a little longer than that."""
    seen = events(place)
    last = next(number for number, line in enumerate(seen) if line.startswith("rmtree"))
    life = len(seen) - last + 1
    runs = 0
    while (done := start(place, "out", trap={"point": life, "after": True, "act": "kill"})).status != OK:
        runs += 1
        assert done.status == -signal.SIGKILL
        assert runs <= len(seen)
        assert_whole_or_nothing(place / "out", expected)
    assert runs >= 3
    assert digest(place / "out") == expected


def test_killed_right_after_publishing(place: Path, expected: dict[str, str]) -> None:
    """The next run sees that all is there, says so, and touches nothing."""
    seen = events(place)
    last = max(number for number, line in enumerate(seen) if line.startswith("rename"))
    assert start(place, "out", trap={"point": last, "after": True, "act": "kill"}).status == -signal.SIGKILL
    assert digest(place / "out") == expected
    before = inodes(place / "out")
    again = run(place, "dedup", *NAMES, "-o", "out", "--work", "out.work", *LAYOUT)
    assert (again.status, again.err) == (OK, "")
    assert "published" in again.out.splitlines()[0]
    assert "already" in again.out.splitlines()[0]
    assert inodes(place / "out") == before
    assert hidden(place) == []


def inodes(folder: Path) -> dict[str, tuple[int, int]]:
    """What changes when a file is written again; not of the lock, which everybody touches who wants to have it."""
    paths = [folder, *sorted(path for path in folder.rglob("*") if path.name != ".lock")]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def test_a_kill_at_every_file_while_an_output_is_replaced(place: Path, expected: dict[str, str]) -> None:
    """With --overwrite OUT is the old one, the new one, or for a moment nothing; then the new one, and no leftovers."""
    (place / "events").mkdir()
    (place / "events" / "old").touch()
    seen = events(place, "--overwrite")
    publishing = next(number for number, line in enumerate(seen) if "/publishing" in line)
    assert sum(line.startswith("rename") for line in seen) == 2
    wrong = {}
    for number in range(publishing, len(seen)):
        name = f"over{number}"
        (place / name).mkdir()
        (place / name / "old").touch()
        old = digest(place / name)
        trap = {"point": number, "after": False, "act": "kill"}
        assert start(place, name, "--overwrite", trap=trap).status == -signal.SIGKILL
        left = digest(place / name) if (place / name).exists() else {}
        again = start(place, name, "--overwrite")
        if left not in ({}, old, expected) or again.status != OK or digest(place / name) != expected or hidden(place):
            wrong[seen[number]] = (left, again, hidden(place))
        for rest in hidden(place):
            shutil.rmtree(place / rest)
    assert not wrong


@pytest.fixture(scope="module")
def one_band(small: Path) -> dict[str, str]:
    """The small corpus with one band, in which a range of keys that is left out leaves out pairs."""
    assert run(small, "dedup", *NAMES, "-o", "one_band", "--quiet", *ONE_BAND).status == OK
    return digest(small / "one_band")


@pytest.mark.parametrize("piece", ["part-000002", "candidates-00000-00001", "sets-000001", "verified-000001"])
@pytest.mark.parametrize(("first", "then"), [("256MB", "4GB"), ("4GB", "256MB")])
def test_other_memory_after_a_kill(place: Path, one_band: dict[str, str], piece: str, first: str, then: str) -> None:
    """Another limit cuts keys into other ranges: what was proposed with the old ones is not mixed in."""
    seen = events(place, "--memory", first, *ONE_BAND)
    point = next(number for number, line in enumerate(seen) if line.startswith("replace") and piece in line)
    trap = {"point": point, "act": "kill"}
    killed = start(place, "out", "--memory", first, "--threads", "1", *ONE_BAND, trap=trap)
    assert killed.status == -signal.SIGKILL
    assert start(place, "out", "--memory", then, "--threads", "3", *ONE_BAND).status == OK
    assert digest(place / "out") == one_band


def test_a_damaged_file_is_named_once_however_often_it_is_read(place: Path) -> None:
    """A file that can not be read to its end is named once in quarantine.jsonl, also if the run was killed after it."""
    cut = (place / "b.jsonl.gz").read_bytes()[:4000]
    (place / "b.jsonl.gz").write_bytes(cut)
    arguments = ["dedup", "a.jsonl", "b.jsonl.gz", "-o", "out", "--work", "work", "--quiet"]
    assert run(place, *arguments[:4], "whole", "--quiet").status == OK
    trap = {"log": str(place / "log"), "act": "kill"}
    assert run(place, *arguments, job=Job(trap=trap)).status == OK
    seen = (place / "log").read_text(encoding="utf-8").splitlines()
    point = next(number for number, line in enumerate(seen) if line.startswith("replace") and "/documents" in line)
    for left in ("out", "work"):
        shutil.rmtree(place / left)
    killed = run(place, *arguments, job=Job(trap={"point": point, "act": "kill"}))
    assert killed.status == -signal.SIGKILL
    assert run(place, *arguments).status == OK
    assert digest(place / "out") == digest(place / "whole")
