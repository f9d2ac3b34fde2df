"""Runs that a work directory or an output rejects: one line that shows the difference, and no change of any file."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from support.commands import FAILURE, OK, USAGE, Job, digest, hidden, one_line, resume, run
from support.fault_corpora import NAMES

from reliability.test_kill import inodes

DEDUP = ("dedup", *NAMES, "-o", "out", "--work", "work", "--quiet")


@pytest.fixture
def killed_run(folder: Path) -> Path:
    """Return a folder with the work directory of a killed run."""
    killed = run(folder, *DEDUP, job=Job(stage_trap=("band", "kill")))
    assert killed.status == -signal.SIGKILL
    assert (folder / "work" / "documents").exists()
    return folder


@pytest.fixture(scope="module")
def shared_killed_run(small: Path) -> Path:
    """Return the same for tests that do not change it."""
    for name in NAMES:
        (small / "killed").mkdir(exist_ok=True)
        shutil.copy2(small / name, small / "killed")
    assert run(small / "killed", *DEDUP, job=Job(stage_trap=("band", "kill"))).status == -signal.SIGKILL
    return small / "killed"


def rejection(folder: Path, *arguments: str) -> str:
    """Return the error line of a run; check that the work directory is unchanged and that there is no output."""
    before = inodes(folder / "work")
    done = run(folder, *arguments)
    line = one_line(done, FAILURE if done.status == FAILURE else USAGE)
    assert inodes(folder / "work") == before
    assert not (folder / "out").exists()
    assert hidden(folder) == []
    return line


@pytest.mark.parametrize(
    ("options", "name", "before", "now"),
    [
        (["--threshold", "0.7"], "threshold", "0.8", "0.7"),
        (["--bands", "20", "--rows", "5"], "bands", "26", "20"),
        (["--bands", "26", "--rows", "5"], "rows", "8", "5"),
        (["--shingle", "char:9"], "shingle", "'word:5'", "'char:9'"),
        (["--bag"], "bag", "False", "True"),
        (["--scheme", "minhash"], "scheme", "'fast'", "'minhash'"),
        (["--seed", "7"], "seed", "1", "7"),
        (["--verify", "signature"], "verify", "'exact'", "'signature'"),
        (["--group", "components"], "group", "'star'", "'components'"),
        (["--keep", "longest"], "keep", "'first'", "'longest'"),
        (["--max-bucket", "100"], "--max-bucket", "2000", "100"),
        (["--text-column", "number"], "text", "['text']", "['number']"),
        (["--id-column", "number"], "id", "None", "'number'"),
        (["--on-error", "skip"], "--on-error", "'quarantine-rows'", "'skip'"),
        (["--against", "a.jsonl"], "against", "[]", "['a.jsonl']"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_changed_setting_is_named_with_both_values_and_the_remedy(
    shared_killed_run: Path, options: list[str], name: str, before: str, now: str
) -> None:
    line = rejection(shared_killed_run, *DEDUP, *options)
    assert re.search(rf"(?<!\w){name}\b", line), line
    assert f" {before}," in line
    assert f" {now};" in line
    assert "work" in line
    assert "--work" in line


def test_input_with_another_modification_time_is_named(killed_run: Path) -> None:
    later = (killed_run / "b.jsonl.gz").stat().st_mtime_ns + 1
    os.utime(killed_run / "b.jsonl.gz", ns=(later, later))
    line = rejection(killed_run, *DEDUP)
    assert "modified" in line
    assert str(later) in line
    assert str(later - 1) in line
    assert "b.jsonl.gz" in line


def test_input_of_another_size_is_named_although_its_time_was_reset(killed_run: Path) -> None:
    before = (killed_run / "a.jsonl").stat()
    with (killed_run / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "new", "text": "one more line"}\n')
    os.utime(killed_run / "a.jsonl", ns=(before.st_mtime_ns, before.st_mtime_ns))
    line = rejection(killed_run, *DEDUP)
    assert str(before.st_size) in line
    assert str((killed_run / "a.jsonl").stat().st_size) in line
    assert "a.jsonl" in line


def test_additional_input_is_named(killed_run: Path) -> None:
    shutil.copy(killed_run / "a.jsonl", killed_run / "more.jsonl")
    assert "inputs [], this one has ['more.jsonl']" in rejection(killed_run, *DEDUP, "more.jsonl")


def test_renamed_input_is_rejected(killed_run: Path) -> None:
    """Ids may contain file names, so a renamed file is another input."""
    (killed_run / "a.jsonl").rename(killed_run / "a2.jsonl")
    line = rejection(killed_run, "dedup", "a2.jsonl", *DEDUP[2:])
    assert "a.jsonl" in line
    assert "a2.jsonl" in line


def test_work_directory_of_another_command_is_rejected(killed_run: Path) -> None:
    before = inodes(killed_run / "work")
    line = one_line(run(killed_run, "pairs", *NAMES, "-o", "pairs.csv", "--work", "work"), FAILURE)
    assert "'dedup'" in line
    assert "'pairs'" in line
    assert inodes(killed_run / "work") == before


def test_run_resumes_with_other_limits_output_and_order_of_files(killed_run: Path) -> None:
    """None of them changes a result."""
    done = run(
        killed_run, "dedup", *reversed(NAMES), "-o", "elsewhere", "--work", "work", "--memory", "1GB", "--threads", "1"
    )
    assert done.status == OK
    assert (killed_run / "elsewhere" / "report.json").exists()


def test_directory_with_other_files_is_rejected_as_work_directory(folder: Path) -> None:
    (folder / "work").mkdir()
    (folder / "work" / "thesis.txt").write_text("years of work")
    line = one_line(run(folder, *DEDUP), USAGE)
    assert "work" in line
    assert "other files" in line
    assert [path.name for path in (folder / "work").iterdir() if path.name != ".lock"] == ["thesis.txt"]
    assert (folder / "work" / "thesis.txt").read_text() == "years of work"


def test_file_is_rejected_as_work_directory(folder: Path) -> None:
    (folder / "work").write_text("a file")
    done = run(folder, *DEDUP)
    assert done.status in (USAGE, 74)
    assert "work" in one_line(done, done.status or 0)


def test_damaged_manifest_is_reported_and_nothing_is_deleted(killed_run: Path) -> None:
    (killed_run / "work" / "manifest.json").write_text("{")
    done = run(killed_run, *DEDUP)
    assert "work" in one_line(done, FAILURE)
    assert (killed_run / "work" / "documents").exists()


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_work_file_is_named_and_not_used(killed_run: Path, damage: str) -> None:
    path = killed_run / "work" / "part-000000"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[:-100] if damage == "cut" else content)
    line = one_line(run(killed_run, *DEDUP), FAILURE)
    assert "part-000000" in line
    assert "delete the work directory" in line
    assert not (killed_run / "out").exists()


def test_second_run_is_rejected_while_the_first_is_alive(folder: Path) -> None:
    """The first run is stopped, not ended; after it has ended, the same command is accepted."""
    first = run(folder, *DEDUP, job=Job(stage_trap=("band", "stop")))
    assert first.status is None
    try:
        before = inodes(folder / "work")
        line = one_line(run(folder, *DEDUP), USAGE)
        assert "in use by another process" in line
        assert "--work" in line
        assert inodes(folder / "work") == before
    finally:
        ended = resume(first.child)
    assert (ended.status, ended.err) == (OK, "")
    again = run(folder, *DEDUP[:-1])
    assert again.status == OK
    assert "already" in again.out


def test_lock_ends_with_a_killed_process(folder: Path) -> None:
    first = run(folder, *DEDUP, job=Job(stage_trap=("band", "stop")))
    assert resume(first.child, signal.SIGKILL).status == -signal.SIGKILL
    assert run(folder, *DEDUP).status == OK


def test_nonempty_output_is_rejected_before_inputs_are_read(folder: Path) -> None:
    """One input is unreadable, which would be another error."""
    (folder / "out").mkdir()
    (folder / "out" / "mine").write_text("mine")
    (folder / "c.parquet").write_bytes(b"no Parquet at all")
    for options in ([], ["--work", "work"]):
        line = one_line(run(folder, "dedup", *NAMES, "-o", "out", *options, "--on-error", "fail"), USAGE)
        assert "out" in line
        assert "--overwrite" in line
    assert digest(folder / "out").keys() == {"mine"}
    assert not (folder / "work").exists() or {path.name for path in (folder / "work").iterdir()} <= {
        ".lock",
        "manifest.json",
    }
    assert hidden(folder) == []


def test_file_is_rejected_as_output_directory(folder: Path) -> None:
    (folder / "out").write_text("mine")
    for options in ([], ["--overwrite"]):
        assert "out" in one_line(run(folder, "dedup", *NAMES, "-o", "out", *options), USAGE)
    assert (folder / "out").read_text() == "mine"


def test_overwrite_replaces_the_whole_output(folder: Path) -> None:
    assert run(folder, "dedup", *NAMES, "-o", "new", "--quiet").status == OK
    (folder / "out" / "kept").mkdir(parents=True)
    (folder / "out" / "kept" / "old.jsonl").touch()
    (folder / "out" / "old").touch()
    assert run(folder, "dedup", *NAMES, "-o", "out", "--quiet", "--overwrite").status == OK
    assert digest(folder / "out") == digest(folder / "new")
    assert hidden(folder) == []


def test_empty_output_directory_is_accepted(folder: Path) -> None:
    (folder / "out").mkdir()
    assert run(folder, "dedup", *NAMES, "-o", "out", "--quiet").status == OK
    assert (folder / "out" / "report.json").exists()


def test_missing_parents_of_the_output_are_created(folder: Path) -> None:
    assert run(folder, *DEDUP, "-o", "x/y/out").status == OK
    done = run(folder, "dedup", *NAMES, "-o", "deep/down/out", "--quiet")
    assert (done.status, done.err) == (OK, "")
    assert digest(folder / "deep/down/out") == digest(folder / "x/y/out")


@pytest.mark.parametrize("output", [".", "in", "in/corpus", "in/corpus/a.jsonl", "link"])
@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=" ".join)
def test_output_that_is_or_contains_an_input_is_rejected(folder: Path, output: str, options: list[str]) -> None:
    """The input would be replaced with the output; links are followed."""
    (folder / "in/corpus").mkdir(parents=True)
    shutil.move(folder / "a.jsonl", folder / "in/corpus")
    (folder / "link").symlink_to("in")
    before = digest(folder)
    line = one_line(run(folder, "dedup", "in/corpus/a.jsonl", "-o", output, *options), USAGE)
    assert "output" in line
    assert digest(folder) == before


def test_output_that_contains_the_reference_corpus_is_rejected(folder: Path) -> None:
    (folder / "old").mkdir()
    shutil.move(folder / "c.parquet", folder / "old")
    line = one_line(run(folder, "dedup", "a.jsonl", "-o", "old", "--overwrite", "--against", "old/c.parquet"), USAGE)
    assert "old/c.parquet" in line
    assert (folder / "old" / "c.parquet").exists()


@pytest.mark.parametrize(("output", "work"), [("same", "same"), ("out", "out/work")])
def test_work_directory_in_the_output_is_rejected(folder: Path, output: str, work: str) -> None:
    """Publishing the output would delete the work directory."""
    line = one_line(run(folder, "dedup", *NAMES, "-o", output, "--work", work, "--overwrite"), USAGE)
    assert "work" in line


def test_published_output_is_not_rewritten(folder: Path) -> None:
    """The same command reports that the output is published, with --overwrite too."""
    assert run(folder, *DEDUP).status == OK
    before = inodes(folder / "out"), inodes(folder / "work")
    for options in ([], ["--overwrite"]):
        done = run(folder, *DEDUP[:-1], *options)
        assert (done.status, done.err) == (OK, "")
        assert "published" in done.out
        assert "already" in done.out
        report = json.loads(run(folder, *DEDUP[:-1], "--json", *options).out)
        assert report["run"]["already_published"] is True
        assert report["counts"] == json.loads((folder / "out/report.json").read_text())["counts"]
    assert (inodes(folder / "out"), inodes(folder / "work")) == before


def test_deleted_output_is_written_again_from_the_work_directory(folder: Path) -> None:
    assert run(folder, *DEDUP).status == OK
    expected = digest(folder / "out")
    shutil.rmtree(folder / "out")
    assert run(folder, *DEDUP).status == OK
    assert digest(folder / "out") == expected


def test_emptied_output_is_written_again(folder: Path) -> None:
    """It is still the published directory, but its files are missing."""
    assert run(folder, *DEDUP).status == OK
    expected = digest(folder / "out")
    shutil.rmtree(folder / "out" / "kept")
    for path in (folder / "out").iterdir():
        path.unlink()
    assert run(folder, *DEDUP).status == OK
    assert digest(folder / "out") == expected
