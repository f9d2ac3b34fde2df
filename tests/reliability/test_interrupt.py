"""Ctrl-C and SIGTERM in every stage: one line, no output, no leftovers; the same command then completes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.commands import INTERRUPTED, MINWISE, OK, Job, digest, hidden, resume, run, without_stages
from support.fault_corpora import NAMES

STAGES = ("read and sketch", "band", "shingle candidates", "verify", "write")
DEDUP = ("dedup", *NAMES, "-o", "out")
KEPT = "run the same command again to continue from work"
NOT_KEPT = "nothing was kept; give --work DIR to make a run resumable"


def hint(options: list[str]) -> str:
    """Return how to continue a run with these options."""
    return KEPT if options else NOT_KEPT


@pytest.fixture(scope="module")
def complete(small: Path) -> dict[str, str]:
    """Return the output of an uninterrupted run."""
    assert run(small, "dedup", *NAMES, "-o", "quiet", "--quiet").status == OK
    return digest(small / "quiet")


@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
@pytest.mark.parametrize("stage", STAGES)
def test_run_resumes_after_an_interrupt(folder: Path, complete: dict[str, str], stage: str, options: list[str]) -> None:
    """The run is stopped in the middle of a stage, then interrupted."""
    (folder / "tmp").mkdir()
    job = Job(stage_trap=(stage, "stop"), environment={"TMPDIR": str(folder / "tmp")})
    stopped = run(folder, *DEDUP, *options, job=job)
    assert stopped.status is None, f"there is no stage {stage!r}"
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", f"minwise: interrupted; {hint(options)}\n")
    assert not (folder / "out").exists()
    assert hidden(folder) == []
    assert list((folder / "tmp").iterdir()) == []
    again = run(folder, *DEDUP, *options)
    assert (again.status, again.err) == (OK, "")
    assert digest(folder / "out") == complete


@pytest.mark.parametrize(
    ("command", "stage"), [("pairs", "band"), ("pairs", "verify"), ("clusters", "shingle candidates")]
)
def test_interrupted_search_leaves_no_partial_table(folder: Path, command: str, stage: str) -> None:
    stopped = run(folder, command, *NAMES, "-o", "found.csv", job=Job(stage_trap=(stage, "stop")))
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", f"minwise: interrupted; {NOT_KEPT}\n")
    assert {path.name for path in folder.iterdir()} == set(NAMES)


@pytest.mark.parametrize("stage", ["band", "write"])
def test_run_resumes_after_sigterm(folder: Path, complete: dict[str, str], stage: str) -> None:
    """A shutdown sends SIGTERM."""
    stopped = run(folder, *DEDUP, "--work", "work", job=Job(stage_trap=(stage, "stop")))
    done = resume(stopped.child, signal.SIGTERM)
    assert (done.status, done.err) == (128 + signal.SIGTERM, f"minwise: terminated; {KEPT}\n")
    assert not (folder / "out").exists()
    assert run(folder, *DEDUP, "--work", "work").status == OK
    assert digest(folder / "out") == complete
    assert hidden(folder) == []


@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
def test_interrupt_during_parallel_copies_leaves_nothing(tmp_path: Path, options: list[str]) -> None:
    """All copying threads end before the partial directory is deleted; a later copy would create it again."""
    (tmp_path / "a.jsonl").write_text('{"text": "one line is soon copied"}\n')
    (tmp_path / "texts").mkdir()
    for number in range(500):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"text {number} of its own {number} kind {number * 7} " * 100)
    arguments = ("dedup", "a.jsonl", "texts", "-o", "out", "--threads", "4", *options)
    slow_copies = {"minwise.inputs.text_files.COPY_BYTES": 1}
    for _ in range(4):
        stopped = run(tmp_path, *arguments, job=Job(stage_trap=("write", "stop"), constants=slow_copies))
        done = resume(stopped.child, signal.SIGINT)
        assert (done.status, done.out, done.err) == (INTERRUPTED, "", f"minwise: interrupted; {hint(options)}\n")
        assert hidden(tmp_path) == []
        assert not (tmp_path / "out").exists()


def test_interrupted_executable_ends_within_seconds(large: Path) -> None:
    """The interrupt is sent at several times after the work directory was locked."""
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
        if process.returncode == OK or out:  # it had printed its summary: the run was complete
            break
        assert (process.returncode, out) == (INTERRUPTED, b"")
        assert without_stages(err.decode()) == f"minwise: interrupted; {KEPT.replace('work', 'interrupted.work')}\n"
        assert not (large / "interrupted").exists()
        assert not [name for name in hidden(large) if "interrupted" in name]
    else:
        assert run(large, *arguments).status == OK
    counts = json.loads((large / "interrupted/report.json").read_text())["counts"]
    assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"] == 20_000


def is_locked(path: Path, process: int) -> bool:
    """Return whether a process has a file open."""
    try:
        return any(entry.readlink() == path.resolve() for entry in Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:
        return False
