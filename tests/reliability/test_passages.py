"""Repeated passages: a killed run resumes with the same bytes, and memory is bounded for any corpus."""

import random
import shutil
import signal
from pathlib import Path

import pytest
from support.commands import OK, TORTURE, Done, Job, digest, hidden, run
from support.fault_corpora import NAMES
from support.peak_memory import PROMISED_BYTES, run_measured

# Small sizes, so that a small run has several parts, files of entries, ranges, and files of covers.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.passages.WAITING_SHARE": 10**5,
    "minwise.search.passages.GROUPED_SHARE": 10**5,
    "minwise.search.passages.COVER_SHARE": 10**6,
    "minwise.search.passages.MERGED_COVERS": 100,
}
# Kill points of a run; every file operation with `make torture`.
POINTS = 10**6 if TORTURE else 40
WORDS = 2_000_000


def passages(folder: Path, name: str, *, trap: dict[str, object] | None = None) -> Done:
    """Run the command on the small corpus with small sizes."""
    arguments = (*NAMES, "-o", f"{name}/found.csv", "--work", f"{name}.work", "--quiet", "--on-error", "quarantine")
    (folder / name).mkdir(exist_ok=True)
    job = Job(constants=SMALL_SIZES, trap=trap)
    return run(folder, "passages", *arguments, "--min-tokens", "8", "--overwrite", job=job)


@pytest.mark.timeout(1200)
def test_run_resumes_after_a_kill_at_any_file_operation(folder: Path) -> None:
    whole = ("--min-tokens", "8", "--on-error", "quarantine", "--quiet")
    (folder / "whole").mkdir()
    assert run(folder, "passages", *NAMES, "-o", "whole/found.csv", *whole).status == OK
    expected = digest(folder / "whole")
    assert (folder / "whole/found.csv").read_text(encoding="utf-8").count("\n") > 100
    assert passages(folder, "events", trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    kinds = ("part-000001", "entries-000001", "resolved-segments-00001", "resolved-grams-00001", "grams-000001")
    assert all(any(kind in line for line in seen) for kind in kinds), "a kind of work file is written only once"
    draw = random.Random(3)
    for number in sorted(draw.sample(range(len(seen)), min(POINTS, len(seen)))):
        trap = {"point": number, "after": draw.random() < 0.5, "act": "kill"}
        assert passages(folder, "out", trap=trap).status == -signal.SIGKILL, seen[number]
        assert passages(folder, "out").status == OK, seen[number]
        assert digest(folder / "out") == expected, seen[number]
        assert not hidden(folder), seen[number]
        shutil.rmtree(folder / "out")
        shutil.rmtree(folder / "out.work")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "tokens"), [("periodic", 5), ("words", 1), ("words", 3)])
def test_one_long_document_of_repeats_stays_within_the_memory_limit(tmp_path: Path, kind: str, tokens: int) -> None:
    """Every token is an entry, and most are in one group: held, the further 6 million would take 204 MB."""
    draw = random.Random(5)
    words = [f"w{number}" for number in range(1000)]
    peaks = []
    for factor in (1, 4):
        text = "a b " * (factor * WORDS // 2) if kind == "periodic" else " ".join(draw.choices(words, k=factor * WORDS))
        (tmp_path / "long.txt").write_text(text, encoding="utf-8")
        options = ("--min-tokens", str(tokens), "-o", "found.parquet", "--overwrite", "--memory", "256MB", "--quiet")
        done = run_measured(tmp_path, "passages", "long.txt", *options)
        assert (done.status, done.error) == (OK, "")
        peaks.append(done.peak)
    assert max(peaks) < PROMISED_BYTES
    assert peaks[1] < peaks[0] + 180 * 10**6
