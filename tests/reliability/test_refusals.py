"""What a work directory or an output refuses, in one line that shows the difference, with everything left as it was."""

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
def begun(place: Path) -> Path:
    """A folder with a work directory whose run was killed in its middle."""
    killed = run(place, *DEDUP, job=Job(stage_trap=("band", "kill")))
    assert killed.status == -signal.SIGKILL
    assert (place / "work" / "documents").exists()
    return place


@pytest.fixture(scope="module")
def untouched(small: Path) -> Path:
    """The same for tests that all leave it as it is."""
    for name in NAMES:
        (small / "untouched").mkdir(exist_ok=True)
        shutil.copy2(small / name, small / "untouched")
    assert run(small / "untouched", *DEDUP, job=Job(stage_trap=("band", "kill"))).status == -signal.SIGKILL
    return small / "untouched"


def refused(folder: Path, *arguments: str) -> str:
    """The line of a refusal, after which the work directory is as it was and nothing is at OUT."""
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
        (["--on-error", "skip"], "--on-error", "'quarantine'", "'skip'"),
        (["--against", "a.jsonl"], "against", "[]", "['a.jsonl']"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_another_setting(untouched: Path, options: list[str], name: str, before: str, now: str) -> None:
    """By its name, with both values and the remedy."""
    line = refused(untouched, *DEDUP, *options)
    assert re.search(rf"\b{name}\b", line), line
    assert f" {before}," in line
    assert f" {now};" in line
    assert "work" in line
    assert "--work" in line


def test_a_file_that_was_touched(begun: Path) -> None:
    """By its name: whoever has twenty files must know which."""
    later = (begun / "b.jsonl.gz").stat().st_mtime_ns + 1
    os.utime(begun / "b.jsonl.gz", ns=(later, later))
    line = refused(begun, *DEDUP)
    assert "modified" in line
    assert str(later) in line
    assert str(later - 1) in line
    assert "b.jsonl.gz" in line


def test_a_file_that_was_rewritten(begun: Path) -> None:
    """Even if somebody set its time back."""
    before = (begun / "a.jsonl").stat()
    with (begun / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "new", "text": "one more line"}\n')
    os.utime(begun / "a.jsonl", ns=(before.st_mtime_ns, before.st_mtime_ns))
    line = refused(begun, *DEDUP)
    assert str(before.st_size) in line
    assert str((begun / "a.jsonl").stat().st_size) in line
    assert "a.jsonl" in line


def test_another_file(begun: Path) -> None:
    """One more than before is named."""
    shutil.copy(begun / "a.jsonl", begun / "more.jsonl")
    assert "inputs [], this one has ['more.jsonl']" in refused(begun, *DEDUP, "more.jsonl")


def test_a_file_of_another_name(begun: Path) -> None:
    """Ids may be made of names, so it is another input."""
    (begun / "a.jsonl").rename(begun / "a2.jsonl")
    line = refused(begun, "dedup", "a2.jsonl", *DEDUP[2:])
    assert "a.jsonl" in line
    assert "a2.jsonl" in line


def test_another_command(begun: Path) -> None:
    """A work directory of dedup is none of pairs."""
    before = inodes(begun / "work")
    line = one_line(run(begun, "pairs", *NAMES, "-o", "pairs.csv", "--work", "work"), FAILURE)
    assert "'dedup'" in line
    assert "'pairs'" in line
    assert inodes(begun / "work") == before


def test_the_order_of_files_and_the_limits_are_no_difference(begun: Path) -> None:
    """Nor is the name of the output: none of them changes a result."""
    done = run(
        begun, "dedup", *reversed(NAMES), "-o", "elsewhere", "--work", "work", "--memory", "1GB", "--threads", "1"
    )
    assert done.status == OK
    assert (begun / "elsewhere" / "report.json").exists()


def test_a_directory_of_something_else(place: Path) -> None:
    """Is left alone."""
    (place / "work").mkdir()
    (place / "work" / "thesis.txt").write_text("years of work")
    line = one_line(run(place, *DEDUP), USAGE)
    assert "work" in line
    assert "other files" in line
    assert [path.name for path in (place / "work").iterdir() if path.name != ".lock"] == ["thesis.txt"]
    assert (place / "work" / "thesis.txt").read_text() == "years of work"


def test_a_file_for_a_work_directory(place: Path) -> None:
    """Is one line too."""
    (place / "work").write_text("a file")
    done = run(place, *DEDUP)
    assert done.status in (USAGE, 74)
    assert "work" in one_line(done, done.status or 0)


def test_a_manifest_that_is_damaged(begun: Path) -> None:
    """Says what is damaged and what to do, and deletes nothing."""
    (begun / "work" / "manifest.json").write_text("{")
    done = run(begun, *DEDUP)
    assert "work" in one_line(done, FAILURE)
    assert (begun / "work" / "documents").exists()


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_piece_that_is_damaged(begun: Path, damage: str) -> None:
    """Is noticed, named, and never becomes part of a result."""
    piece = begun / "work" / "part-000000"
    content = bytearray(piece.read_bytes())
    content[len(content) // 2] ^= 1
    piece.write_bytes(content[:-100] if damage == "cut" else content)
    line = one_line(run(begun, *DEDUP), FAILURE)
    assert "part-000000" in line
    assert "delete the work directory" in line or "cut" in line
    assert not (begun / "out").exists()


def test_two_at_a_time(place: Path) -> None:
    """The second is refused as long as the first lives, even if it does nothing; after it, it goes on."""
    first = run(place, *DEDUP, job=Job(stage_trap=("band", "stop")))
    assert first.status is None
    try:
        before = inodes(place / "work")
        line = one_line(run(place, *DEDUP), USAGE)
        assert "in use by another process" in line
        assert "--work" in line
        assert inodes(place / "work") == before
    finally:
        ended = resume(first.child)
    assert (ended.status, ended.err) == (OK, "")
    again = run(place, *DEDUP[:-1])
    assert again.status == OK
    assert "already" in again.out


def test_after_one_that_was_killed(place: Path) -> None:
    """A lock dies with whoever held it."""
    first = run(place, *DEDUP, job=Job(stage_trap=("band", "stop")))
    assert resume(first.child, signal.SIGKILL).status == -signal.SIGKILL
    assert run(place, *DEDUP).status == OK


def test_an_output_with_something_in_it(place: Path) -> None:
    """Is refused before anything is read: the input does not even have to be readable."""
    (place / "out").mkdir()
    (place / "out" / "mine").write_text("mine")
    (place / "c.parquet").write_bytes(b"no Parquet at all")
    for options in ([], ["--work", "work"]):
        line = one_line(run(place, "dedup", *NAMES, "-o", "out", *options, "--on-error", "fail"), USAGE)
        assert "out" in line
        assert "--overwrite" in line
    assert digest(place / "out").keys() == {"mine"}
    assert not (place / "work").exists() or {path.name for path in (place / "work").iterdir()} <= {
        ".lock",
        "manifest.json",
    }
    assert hidden(place) == []


def test_an_output_that_is_a_file(place: Path) -> None:
    """Is refused with or without --overwrite: a directory is wanted."""
    (place / "out").write_text("mine")
    for options in ([], ["--overwrite"]):
        assert "out" in one_line(run(place, "dedup", *NAMES, "-o", "out", *options), USAGE)
    assert (place / "out").read_text() == "mine"


def test_overwriting_replaces_all_of_it(place: Path) -> None:
    """What was there is gone, what comes is complete, and nothing lies beside it."""
    assert run(place, "dedup", *NAMES, "-o", "new", "--quiet").status == OK
    (place / "out" / "kept").mkdir(parents=True)
    (place / "out" / "kept" / "old.jsonl").touch()
    (place / "out" / "old").touch()
    assert run(place, "dedup", *NAMES, "-o", "out", "--quiet", "--overwrite").status == OK
    assert digest(place / "out") == digest(place / "new")
    assert hidden(place) == []


def test_an_empty_output_is_no_obstacle(place: Path) -> None:
    """Somebody may have made it for us."""
    (place / "out").mkdir()
    assert run(place, "dedup", *NAMES, "-o", "out", "--quiet").status == OK
    assert (place / "out" / "report.json").exists()


def test_an_output_in_directories_that_are_not_there_yet(place: Path) -> None:
    """They are made, with a work directory and without."""
    assert run(place, *DEDUP, "-o", "x/y/out").status == OK
    done = run(place, "dedup", *NAMES, "-o", "deep/down/out", "--quiet")
    assert (done.status, done.err) == (OK, "")
    assert digest(place / "deep/down/out") == digest(place / "x/y/out")


@pytest.mark.parametrize("output", [".", "in", "in/corpus", "in/corpus/a.jsonl", "link"])
@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=" ".join)
def test_an_output_that_is_or_holds_an_input(place: Path, output: str, options: list[str]) -> None:
    """Is refused, through links too, for it would be replaced together with the input."""
    (place / "in/corpus").mkdir(parents=True)
    shutil.move(place / "a.jsonl", place / "in/corpus")
    (place / "link").symlink_to("in")
    before = digest(place)
    line = one_line(run(place, "dedup", "in/corpus/a.jsonl", "-o", output, *options), USAGE)
    assert "output" in line
    assert digest(place) == before


def test_an_output_that_holds_what_is_compared_against(place: Path) -> None:
    """`old is never written`, nor deleted."""
    (place / "old").mkdir()
    shutil.move(place / "c.parquet", place / "old")
    line = one_line(run(place, "dedup", "a.jsonl", "-o", "old", "--overwrite", "--against", "old/c.parquet"), USAGE)
    assert "old/c.parquet" in line
    assert (place / "old" / "c.parquet").exists()


@pytest.mark.parametrize(("output", "work"), [("same", "same"), ("out", "out/work")])
def test_an_output_and_a_work_directory_in_each_other(place: Path, output: str, work: str) -> None:
    """Are refused: publishing the one would delete the other."""
    line = one_line(run(place, "dedup", *NAMES, "-o", output, "--work", work, "--overwrite"), USAGE)
    assert "work" in line


def test_published_already(place: Path) -> None:
    """The same command again says so and rewrites nothing, with --overwrite too."""
    assert run(place, *DEDUP).status == OK
    before = inodes(place / "out"), inodes(place / "work")
    for options in ([], ["--overwrite"]):
        done = run(place, *DEDUP[:-1], *options)
        assert (done.status, done.err) == (OK, "")
        assert "published" in done.out
        assert "already" in done.out
        report = json.loads(run(place, *DEDUP[:-1], "--json", *options).out)
        assert report["run"]["already_published"] is True
        assert report["counts"] == json.loads((place / "out/report.json").read_text())["counts"]
    assert (inodes(place / "out"), inodes(place / "work")) == before


def test_published_but_deleted(place: Path) -> None:
    """Is made again from the work directory, with the same bytes."""
    assert run(place, *DEDUP).status == OK
    expected = digest(place / "out")
    shutil.rmtree(place / "out")
    assert run(place, *DEDUP).status == OK
    assert digest(place / "out") == expected


def test_published_but_emptied(place: Path) -> None:
    """An empty directory is no result, even if it is the one that was published; nor is one that lacks a file."""
    assert run(place, *DEDUP).status == OK
    expected = digest(place / "out")
    shutil.rmtree(place / "out" / "kept")
    for path in (place / "out").iterdir():
        path.unlink()
    assert run(place, *DEDUP).status == OK
    assert digest(place / "out") == expected
