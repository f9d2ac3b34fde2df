"""Outputs that other processes write during a run: none is lost. Leftovers of dead runs are swept."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, MINWISE, OK, Job, digest, hidden, one_line, resume, run

import minwise as mw
from minwise._internal import atomic
from minwise.errors import MinwiseError

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
DEDUP = ("dedup", "in.jsonl", "-o", "out")


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with an input of three documents."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": number, "text": FERRY if number < 2 else "alone"} for number in range(3)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def filling(path: Path, stage: str = "write") -> Callable[..., None]:
    """Return a progress function that writes a file in the output when a stage starts."""

    def progress(name: str, *_: object) -> None:
        if name == stage:
            path.parent.mkdir(exist_ok=True)
            path.write_text("precious")

    return progress


@pytest.fixture(params=["system calls", "no system calls"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rename with the flags of the system, and without them."""
    if request.param == "no system calls":
        monkeypatch.setattr(atomic, "_flagged_rename", lambda: None)


@pytest.mark.usefixtures("calls")
def test_files_that_appear_in_the_output_stay(workdir: Path) -> None:
    with pytest.raises(MinwiseError) as caught:
        mw.dedup("in.jsonl", "out", progress=filling(workdir / "out/new"))
    kept = workdir / "out.result-1"
    assert str(caught.value) == (
        f"output must be new or empty, got {workdir / 'out'}, which another process wrote during the run; "
        f"the complete result is {kept}: rename or delete it"
    )
    assert digest(workdir / "out").keys() == {"new"}
    assert (kept / "report.json").exists()
    assert hidden(workdir) == []


@pytest.mark.usefixtures("calls")
def test_overwrite_replaces_what_appeared(workdir: Path) -> None:
    mw.dedup("in.jsonl", "out", overwrite=True, progress=filling(workdir / "out/new"))
    assert "new" not in digest(workdir / "out")
    assert (workdir / "out/report.json").exists()
    assert hidden(workdir) == []


def test_directory_that_appears_empty_is_filled(workdir: Path) -> None:
    def progress(name: str, *_: object) -> None:
        (workdir / "out").mkdir(exist_ok=True)

    mw.dedup("in.jsonl", "out", progress=progress)
    assert (workdir / "out/report.json").exists()


def test_restored_rows_do_not_replace_files_that_appear(workdir: Path) -> None:
    mw.dedup("in.jsonl", "out")
    with pytest.raises(MinwiseError, match="which another process wrote"):
        mw.restore("out", "all", progress=filling(workdir / "all/new", "restore"))
    assert digest(workdir / "all").keys() == {"new"}
    assert (workdir / "all.result-1/kept/in.jsonl").exists()


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)], ids=["new", "overwrite"])
def test_one_of_several_runs_gets_the_name(workdir: Path, overwrite: tuple[str, ...]) -> None:
    """Without --overwrite the others fail, and keep their results under the names in their messages."""
    count = 4
    stopped = [run(workdir, *DEDUP, *overwrite, job=Job(stage_trap=("write", "stop"))) for _ in range(count)]
    for one in stopped:
        os.kill(one.child, signal.SIGCONT)
    done = [resume(one.child) for one in stopped]
    losers = [one for one in done if one.status != OK]
    assert len(losers) == (0 if overwrite else count - 1)
    results = ["out", *(f"out.result-{number + 1}" for number in range(len(losers)))]
    assert sorted(path.name for path in workdir.iterdir()) == sorted(["in.jsonl", *results])
    assert all(digest(workdir / name) == digest(workdir / "out") for name in results)
    messages = [one_line(one, FAILURE) for one in losers]
    for name in results[1:]:
        assert sum(f"the complete result is {workdir / name}: " in message for message in messages) == 1


@pytest.mark.parametrize(
    ("command", "output"), [("pairs", "out.csv"), ("clusters", "out.jsonl"), ("audit", "out.json")]
)
def test_file_that_appears_during_a_run_stays(workdir: Path, command: str, output: str) -> None:
    stopped = run(workdir, command, "in.jsonl", "-o", output, job=Job(stage_trap=("band", "stop")))
    assert stopped.status is None
    (workdir / output).write_text("precious")
    message = one_line(resume(stopped.child), FAILURE)
    kept = workdir / f"out.result-1{Path(output).suffix}"
    assert f"which another process wrote during the run; the complete result is {kept}: " in message
    assert (workdir / output).read_text() == "precious"
    assert kept.stat().st_size
    assert hidden(workdir) == []


@pytest.mark.parametrize("stage", ["read and sketch", "band", "write"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=["SIGHUP", "SIGTERM"])
def test_signal_leaves_nothing(workdir: Path, stage: str, number: signal.Signals) -> None:
    (workdir / "tmp").mkdir()
    environment = {"TMPDIR": str(workdir / "tmp")}
    job = Job(stage_trap=(stage, "stop"), stdin="in.jsonl", environment=environment)
    stopped = run(workdir, "dedup", "-", "-o", "out", job=job)
    assert stopped.status is None
    done = resume(stopped.child, number)
    assert done.status == 128 + number
    assert done.err.startswith("minwise: terminated; ")
    assert sorted(path.name for path in workdir.iterdir()) == ["in.jsonl", "tmp"]
    assert list((workdir / "tmp").iterdir()) == []


def test_ignored_hangup_does_not_end_a_run(workdir: Path) -> None:
    """``nohup`` starts a command with SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits it
    try:
        process = subprocess.Popen([MINWISE, "dedup", "-", "-o", "out"], stdin=subprocess.PIPE, cwd=workdir)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert process.stdin is not None
        process.stdin.write((workdir / "in.jsonl").read_bytes())
        process.stdin.flush()
        process.send_signal(signal.SIGHUP)
        process.stdin.close()
        assert process.wait(timeout=120) == OK


@pytest.mark.parametrize("stage", ["read and sketch", "write"])
@pytest.mark.parametrize("work", [(), ("--work", "work")], ids=["temporary", "work"])
def test_next_run_sweeps_what_a_killed_one_left(workdir: Path, stage: str, work: tuple[str, ...]) -> None:
    """Next to the output and in the temporary directory, but nothing of a run that is only stopped."""
    (workdir / "tmp").mkdir()
    environment = {"TMPDIR": str(workdir / "tmp")}
    piped = {"arguments": ("dedup", "-", "-o", "out"), "stdin": "in.jsonl"}
    given: dict[str, Any] = {"arguments": (*DEDUP, *work), "stdin": None} if work else piped
    job = Job(stage_trap=(stage, "stop"), stdin=given["stdin"], environment=environment)
    live, dead = (run(workdir, *given["arguments"][:3], name, *work[:1], *([f"{name}.work"] if work else []), job=job)
                  for name in ("live", "dead"))  # fmt: skip
    assert resume(dead.child, signal.SIGKILL).status == -signal.SIGKILL
    before = len(hidden(workdir)) + len(list((workdir / "tmp").iterdir()))
    assert run(workdir, *DEDUP, job=Job(environment=environment)).status == OK
    left = len(hidden(workdir)) + len(list((workdir / "tmp").iterdir()))
    assert left * 2 == before, "half of them are those of the dead run"
    assert resume(live.child).status == OK
    assert hidden(workdir) == []
    assert list((workdir / "tmp").iterdir()) == []
    assert digest(workdir / "live").keys() >= {"report.json", "removed.parquet"}
