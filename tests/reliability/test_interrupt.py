"""Ctrl-C and SIGTERM in the middle of every stage: one line, nothing at OUT, nothing left over, and a way to go on."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.commands import INTERRUPTED, MINWISE, OK, Job, digest, hidden, resume, run
from support.fault_corpora import NAMES

STAGES = ("read and sketch", "band", "shingle candidates", "verify", "write")
DEDUP = ("dedup", *NAMES, "-o", "out")


@pytest.fixture(scope="module")
def whole(small: Path) -> dict[str, str]:
    """The output of a run that nobody interrupts."""
    assert run(small, "dedup", *NAMES, "-o", "quiet", "--quiet").status == OK
    return digest(small / "quiet")


@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt(place: Path, whole: dict[str, str], stage: str, options: list[str]) -> None:
    """While the run stands still in the middle of a stage; it goes on with the same command."""
    (place / "tmp").mkdir()
    job = Job(stage_trap=(stage, "stop"), environment={"TMPDIR": str(place / "tmp")})
    stopped = run(place, *DEDUP, *options, job=job)
    assert stopped.status is None, f"there is no stage {stage!r}"
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", "minwise: interrupted\n")
    assert not (place / "out").exists()
    assert hidden(place) == []
    assert list((place / "tmp").iterdir()) == []
    again = run(place, *DEDUP, *options)
    assert (again.status, again.err) == (OK, "")
    assert digest(place / "out") == whole


@pytest.mark.parametrize(
    ("command", "stage"), [("pairs", "band"), ("pairs", "verify"), ("clusters", "shingle candidates")]
)
def test_an_interrupt_of_a_search(place: Path, command: str, stage: str) -> None:
    """No half of a table."""
    stopped = run(place, command, *NAMES, "-o", "found.csv", job=Job(stage_trap=(stage, "stop")))
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", "minwise: interrupted\n")
    assert {path.name for path in place.iterdir()} == set(NAMES)


@pytest.mark.parametrize("stage", ["band", "write"])
def test_an_end_by_signal(place: Path, whole: dict[str, str], stage: str) -> None:
    """SIGTERM, as at shutdown: nothing at OUT, and the run goes on."""
    stopped = run(place, *DEDUP, "--work", "work", job=Job(stage_trap=(stage, "stop")))
    done = resume(stopped.child, signal.SIGTERM)
    assert done.status in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert not (place / "out").exists()
    assert run(place, *DEDUP, "--work", "work").status == OK
    assert digest(place / "out") == whole
    assert hidden(place) == []


@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
def test_an_interrupt_while_other_files_are_still_being_copied(tmp_path: Path, options: list[str]) -> None:
    """Whoever copies them has stopped before the half-filled directory is deleted, or it would come back."""
    (tmp_path / "a.jsonl").write_text('{"text": "one line is soon copied"}\n')
    (tmp_path / "texts").mkdir()
    for number in range(500):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"text {number} of its own {number} kind {number * 7} " * 100)
    arguments = ("dedup", "a.jsonl", "texts", "-o", "out", "--threads", "4", *options)
    slowly = {"minwise.inputs.text_files.COPY_BYTES": 1}
    for _ in range(4):
        stopped = run(tmp_path, *arguments, job=Job(stage_trap=("write", "stop"), constants=slowly))
        done = resume(stopped.child, signal.SIGINT)
        assert (done.status, done.out, done.err) == (INTERRUPTED, "", "minwise: interrupted\n")
        assert hidden(tmp_path) == []
        assert not (tmp_path / "out").exists()


def test_interrupts_of_the_executable(large: Path) -> None:
    """From outside, at moments spread over the run, once its work directory is there; it ends within seconds."""
    arguments = ["dedup", *NAMES, "-o", "interrupted", "--work", "interrupted.work"]
    for seconds in (0.05, 0.5):
        with subprocess.Popen(
            [MINWISE, *arguments], cwd=large, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
        ) as process:
            deadline = time.monotonic() + 30
            while not is_locked(large / "interrupted.work/.lock", process.pid):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.005)
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        if process.returncode == OK:
            break
        assert (process.returncode, out, err) == (INTERRUPTED, b"", b"minwise: interrupted\n")
        assert not (large / "interrupted").exists()
        assert not [name for name in hidden(large) if "interrupted" in name]
    else:
        assert run(large, *arguments).status == OK
    counts = json.loads((large / "interrupted/report.json").read_text())["counts"]
    assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"] == 20_000


def is_locked(path: Path, process: int) -> bool:
    """Whether a process has a file open."""
    try:
        return any(entry.readlink() == path.resolve() for entry in Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:
        return False
