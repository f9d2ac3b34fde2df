"""Cuts of repeated passages: a killed run resumes with the same bytes."""

import random
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from support.commands import OK, TORTURE, Done, Job, digest, hidden, run
from support.fault_corpora import NAMES
from support.peak_memory import PROMISED_BYTES, run_measured

# Small sizes, so that a small run has several files of each kind.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.passages.MERGED_COVERS": 100,
    "minwise.search.cuts.WAITING_SHARE": 10**6,
}
# Kill points of a run; every file operation with `make torture`.
POINTS = 10**6 if TORTURE else 8
SETTINGS = ("--passages", "--min-tokens", "8", "--min-left", "5", "--on-error", "quarantine", "--quiet")
# Files that differ from run to run.
VARYING = ("run.json", "report.html")


def cut(folder: Path, name: str, *, trap: dict[str, object] | None = None) -> Done:
    """Run the command on the small corpus with small sizes."""
    job = Job(constants=SMALL_SIZES, trap=trap)
    return run(folder, "dedup", *NAMES, "-o", name, "--work", f"{name}.work", *SETTINGS, job=job)


def content(folder: Path) -> object:
    for name in VARYING:
        (folder / name).unlink(missing_ok=True)
    return digest(folder)


@pytest.mark.timeout(1200)
def test_run_resumes_after_a_kill_at_any_file_operation(folder: Path) -> None:
    assert run(folder, "dedup", *NAMES, "-o", "whole", *SETTINGS).status == OK
    expected = content(folder / "whole")
    assert cut(folder, "events", trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    written = set(re.findall(r"(covered|cuts|cut-texts|rests)-(\d+)", "\n".join(seen)))
    assert min(Counter(kind for kind, _ in written).values()) > 1, "a kind of work file is written only once"
    draw = random.Random(4)
    for number in sorted(draw.sample(range(len(seen)), min(POINTS, len(seen)))):
        trap = {"point": number, "after": draw.random() < 0.5, "act": "kill"}
        assert cut(folder, "out", trap=trap).status == -signal.SIGKILL, seen[number]
        assert cut(folder, "out").status == OK, seen[number]
        assert content(folder / "out") == expected, seen[number]
        assert not hidden(folder), seen[number]
        shutil.rmtree(folder / "out")
        shutil.rmtree(folder / "out.work")


@pytest.mark.timeout(900)
def test_one_long_document_with_many_cuts_stays_within_the_memory_limit(tmp_path: Path) -> None:
    """Every second token repeats, so there are half a million cuts."""
    words = " ".join(f"the w{number}" for number in range(500_000))
    (tmp_path / "long.txt").write_text(words, encoding="utf-8")
    options = ("--passages", "--min-tokens", "1", "-o", "out", "--memory", "256MB", "--quiet")
    done = run_measured(tmp_path, "dedup", "long.txt", *options)
    assert (done.status, done.error) == (OK, "")
    assert done.peak < PROMISED_BYTES
    kept = (tmp_path / "out" / "kept" / "long.txt").read_text(encoding="utf-8")
    assert kept == "the " + " ".join(f"w{number}" for number in range(500_000))
