"""Nearest documents: a killed run resumes with the same bytes, also with other memory, and memory is bounded."""

import random
import shutil
import signal
from pathlib import Path

import pytest
from support.commands import OK, TORTURE, Done, Job, digest, hidden, run
from support.fault_corpora import NAMES
from support.peak_memory import PROMISED_BYTES, run_measured

# Small sizes, so that a small run has several indexes, calls, and runs of rows.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.nearest.ELEMENT_BYTES": 3 * 10**5,
    "minwise.search.nearest.ROW_BYTES": 3 * 10**5,
}
# Kill points of a run; every file operation with `make torture`.
POINTS = 10**6 if TORTURE else 40
OPTIONS = ("--shingle", "word:1", "--top", "3", "--mutual", "--one-to-one", "--on-error", "quarantine", "--quiet")


def nearest(folder: Path, name: str, *, trap: dict[str, object] | None = None) -> Done:
    """Run the command on the small corpus with small sizes."""
    (folder / name).mkdir(exist_ok=True)
    among = ("--among", NAMES[1], "--among", NAMES[2])
    arguments = (NAMES[0], *among, "-o", f"{name}/found.csv", "--work", f"{name}.work", *OPTIONS)
    return run(folder, "nearest", *arguments, "--overwrite", job=Job(constants=SMALL_SIZES, trap=trap))


@pytest.mark.timeout(1200)
def test_run_resumes_after_a_kill_at_any_file_operation(folder: Path) -> None:
    (folder / "whole").mkdir()
    among = ("--among", NAMES[1], "--among", NAMES[2])
    assert run(folder, "nearest", NAMES[0], *among, "-o", "whole/found.csv", *OPTIONS).status == OK
    expected = digest(folder / "whole")
    assert (folder / "whole/found.csv").read_text(encoding="utf-8").count("\n") > 50
    assert nearest(folder, "events", trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    kinds = ("near-to-00001-000001", "near-back-00001-000001", "chosen-000001", "by-similarity-000001", "partners")
    assert [kind for kind in kinds if not any(kind in line for line in seen)] == []
    draw = random.Random(3)
    for number in sorted(draw.sample(range(len(seen)), min(POINTS, len(seen)))):
        trap = {"point": number, "after": draw.random() < 0.5, "act": "kill"}
        assert nearest(folder, "out", trap=trap).status == -signal.SIGKILL, seen[number]
        assert nearest(folder, "out").status == OK, seen[number]
        assert digest(folder / "out") == expected, seen[number]
        assert not hidden(folder), seen[number]
        shutil.rmtree(folder / "out")
        shutil.rmtree(folder / "out.work")


def test_run_resumes_with_another_memory_limit(folder: Path) -> None:
    """The files of the indexes of the first run do not fit those of the second one."""
    (folder / "whole").mkdir()
    options = (*NAMES, "--work", "work", *OPTIONS)
    assert run(folder, "nearest", *NAMES, "-o", "whole/found.csv", *OPTIONS).status == OK
    failing = {"point": 60, "after": True, "act": "kill"}
    job = Job(constants=SMALL_SIZES, trap=failing)
    assert run(folder, "nearest", *options, "-o", "found.csv", job=job).status == -signal.SIGKILL
    assert list((folder / "work").glob("near-to-0*"))
    assert run(folder, "nearest", *options, "-o", "found.csv", "--memory", "1GB").status == OK
    assert (folder / "found.csv").read_bytes() == (folder / "whole/found.csv").read_bytes()


@pytest.mark.timeout(900)
def test_many_identical_records_stay_within_the_memory_limit(tmp_path: Path) -> None:
    """Every record has as many copies as there are rows; held, their pairs would take gigabytes."""
    lines = "".join(f"w{number % 3} w{number % 7}\n" for number in range(600_000))
    (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
    options = ("--shingle", "word:1", "--top", "20", "-o", "found.parquet", "--memory", "256MB", "--quiet")
    done = run_measured(tmp_path, "nearest", "lines.txt", "--format", "lines", *options)
    assert (done.status, done.error) == (OK, "")
    assert done.peak < PROMISED_BYTES
