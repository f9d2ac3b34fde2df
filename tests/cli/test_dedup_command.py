"""`minwise dedup` as a user runs it: every option, what is printed where, and exit codes."""

import gzip
import json
import os
import pty
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, MINWISE, OK, USAGE, Done, digest, execute, one_line, run
from support.piped import run_with_closed_output
from support.small_corpus import FERRY, KEPT, ROWS, TRAIN, json_lines, kept_ids, report, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are and the command runs."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


def test_json(folder: Path) -> None:
    """One object on standard output: the report, and what only this run knows; nothing on standard error."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--json")
    assert (done.status, done.err) == (OK, "")
    printed = json.loads(done.out)
    about = printed.pop("run")
    assert printed == report(folder)
    assert about["output"] == "out"
    assert about["seconds"] > 0
    assert about["already_published"] is False


def test_quiet(folder: Path) -> None:
    """Nothing at all."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--quiet") == Done(OK, "", "", _any())


class _any(int):  # noqa: N801 - reads as a word above
    """Equal to every number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int)

    def __hash__(self) -> int:
        return 0


def test_the_summary(folder: Path) -> None:
    """What was read, kept and removed; in a pipe without spaces at the ends of lines, which a diff would show."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out")
    lines = done.out.splitlines()
    assert " 5 documents " in lines[0]
    assert lines[1].split()[:2] == ["kept", "3"]
    assert "2 (1 identical, 1 similar)" in lines[2]
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"]], ids=["plain", "quiet", "json"])
def test_progress_on_a_terminal(folder: Path, options: list[str]) -> None:
    """A bar for each stage on standard error if that is a terminal, unless nobody wants it."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [MINWISE, "dedup", "in.jsonl", "-o", "out", *options],
            cwd=folder, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False,
        )  # fmt: skip
        os.close(theirs)
        shown = drain(ours).decode()
    finally:
        os.close(ours)
    assert done.returncode == OK
    stages = ("read and sketch", "band", "verify", "write")
    if options:
        assert shown == ""
    else:
        assert all(stage in shown for stage in stages)
    assert b"sketch" not in done.stdout


def drain(terminal: int) -> bytes:
    """All that was written to a terminal whose other end is closed."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return shown
        if not piece:
            return shown
        shown += piece


def test_no_progress_in_a_pipe(folder: Path) -> None:
    """Even if standard output is a terminal."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [MINWISE, "dedup", "in.jsonl", "-o", "out"],
            cwd=folder, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
        os.close(theirs)
        shown = drain(ours).decode()
    finally:
        os.close(ours)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert "kept" in shown
    assert "read and sketch" not in shown


WRONG = [
    ("--threshold", "0", "threshold"),
    ("--threshold", "1.5", "threshold"),
    ("--threshold", "nan", "threshold"),
    ("--threshold", "high", "--threshold"),
    ("--recall", "0", "recall"),
    ("--recall", "1.5", "recall"),
    ("--shingle", "word", "shingle"),
    ("--shingle", "word:0", "shingle"),
    ("--scheme", "guess", "--scheme"),
    ("--slots", "0", "slots"),
    ("--slots", "many", "--slots"),
    ("--bands", "0", "bands"),
    ("--bands", "20", "rows"),
    ("--rows", "5", "bands"),
    ("--rows", "x", "--rows"),
    ("--seed", "-1", "seed"),
    ("--seed", "1.5", "--seed"),
    ("--verify", "maybe", "--verify"),
    ("--max-bucket", "3", "--max-bucket"),
    ("--max-bucket", "x", "--max-bucket"),
    ("--text-column", "", "--text-column"),
    ("--id-column", "", "--id-column"),
    ("--format", "docx", "--format"),
    ("--on-error", "panic", "--on-error"),
    ("--memory", "10MB", "memory"),
    ("--memory", "lots", "memory"),
    ("--memory", "-4GB", "memory"),
    ("--threads", "0", "threads"),
    ("--threads", "x", "--threads"),
    ("--keep", "newest", "keep"),
    ("--keep", "max:", "keep"),
    ("--keep", "first:x", "keep"),
    ("--group", "friends", "--group"),
    ("--nonsense", "x", "--nonsense"),
]


@pytest.mark.parametrize(("option", "value", "name"), WRONG)
def test_wrong_values(folder: Path, option: str, value: str, name: str) -> None:
    """Exit code 2 and one line with the name and the value; nothing is written, not even a work directory."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--work", "work", option, value)
    assert (done.status, done.out) == (USAGE, ""), done
    (line,) = [line for line in done.err.splitlines() if line.startswith(("minwise: ", "Error: "))]
    assert name in line
    assert option == "--nonsense" or (value or "''") in line
    assert done.err.count("\n") <= 4
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl"]


def test_wrong_values_are_found_before_anything_is_read(tmp_path: Path) -> None:
    """The file named here is not there."""
    assert "threshold" in one_line(run(tmp_path, "dedup", "none.jsonl", "-o", "out", "--threshold", "7"), USAGE)


@pytest.mark.parametrize("arguments", [["dedup"], ["dedup", "in.jsonl"], ["dedup", "-o", "out"]], ids=" ".join)
def test_too_few_arguments(folder: Path, arguments: list[str]) -> None:
    """Exit code 2, and what is missing."""
    done = run(folder, *arguments)
    assert done.status == USAGE
    assert "Missing" in done.err


@pytest.mark.parametrize("command", ["dedup", "pairs", "clusters"])
@pytest.mark.parametrize("name", ["none.jsonl", "none.txt", "none", "no/such/dir"])
def test_files_that_are_not_there(folder: Path, command: str, name: str) -> None:
    """Whatever the name looks like, it is a name: 74 and the reason, even beside others that are there."""
    for inputs in ([name], ["in.jsonl", name]):
        output = "out" if command == "dedup" else "out.csv"
        line = one_line(run(folder, command, *inputs, "-o", output), INPUT_OUTPUT)
        assert line == f"minwise: {name}: No such file or directory\n"
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl"]


@pytest.mark.parametrize("pattern", ["*.parquet", "none/*", "in.j?", "**/*.txt"])
def test_patterns_that_match_nothing(folder: Path, pattern: str) -> None:
    """Are an error, for an empty result would look like success."""
    line = one_line(run(folder, "dedup", pattern, "-o", "out"), FAILURE)
    assert line == f"minwise: {pattern}: no file matches this pattern\n"


def test_an_empty_directory(folder: Path) -> None:
    """Is an error too."""
    (folder / "empty").mkdir()
    assert "empty" in one_line(run(folder, "dedup", "empty", "-o", "out"), FAILURE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", b""),
        ("e.jsonl", b"\n\n"),
        ("e.csv", b"id,text\n"),
        ("e.txt", b""),
        ("e.jsonl.gz", gzip.compress(b"", mtime=0)),
    ],
)
def test_files_without_documents(folder: Path, name: str, content: bytes) -> None:
    """Are no error: nothing was read of them, or one document without a word, and a copy of nothing is there."""
    (folder / name).write_bytes(content)
    done = run(folder, "dedup", name, "-o", "out")
    assert (done.status, done.err) == (OK, "")
    counts = report(folder)["counts"]
    assert counts["read"] == counts["kept"] == counts["empty"] == (1 if name == "e.txt" else 0)
    assert (folder / "out" / "kept" / name).exists()
    assert run(folder, "dedup", name, "in.jsonl", "-o", "both").status == OK
    assert kept_ids(folder, "in.jsonl", "both") == KEPT


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow", "in.jsonl"])
@pytest.mark.parametrize("option", ["--text-column", "--id-column"])
def test_a_column_that_is_not_there(tmp_path: Path, name: str, option: str) -> None:
    """One line with the file and the columns that are there: a run that could read nothing was told the wrong name."""
    write(tmp_path / name, ROWS)
    line = one_line(run(tmp_path, "dedup", name, "-o", "out", option, "body"), FAILURE)
    assert name in line
    assert "'body'" in line
    if name != "in.jsonl":
        assert "id, text, year, note" in line
    assert not (tmp_path / "out").exists()


def test_a_keep_column_that_is_not_there(folder: Path) -> None:
    """One line that names it."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--keep", "max:size")
    assert done.status in (FAILURE, USAGE)
    assert "size" in one_line(done, done.status or 0)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("first", ["d0", "d1", "d3"]),
        ("last", ["d2", "d3", "d4"]),
        ("longest", ["d0", "d3", "d4"]),
        ("shortest", ["d0", "d1", "d3"]),
        ("max:year", ["d1", "d2", "d3"]),
        ("min:year", ["d0", "d3", "d4"]),
    ],
)
def test_keep_policies(folder: Path, policy: str, expected: list[str]) -> None:
    """Which of a group stays; ties go to the first, and rows stay in order."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--keep", policy).status == OK
    assert kept_ids(folder, "in.jsonl") == expected
    assert report(folder)["settings"]["keep"] == policy


@pytest.mark.parametrize("name", ["in.parquet", "in.csv", "in.arrow"])
def test_keep_by_a_column_of_any_format(tmp_path: Path, name: str) -> None:
    """Numbers are compared as numbers, also where a file has only strings: 980 is less than 1991."""
    write(tmp_path / name, [{**row, "year": 980 if row["id"] == "d4" else row["year"]} for row in ROWS])
    assert run(tmp_path, "dedup", name, "-o", "out", "--keep", "max:year").status == OK
    assert kept_ids(tmp_path, name) == ["d1", "d2", "d3"]


def test_against(folder: Path) -> None:
    """What is in the other corpus goes, duplicates inside go as well, and the other corpus is not written."""
    write(folder / "old" / "old.parquet", [{"id": "o1", "text": FERRY}, {"id": "o2", "text": FERRY}])
    before = digest(folder / "old")
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--against", "old/*.parquet").status == OK
    assert kept_ids(folder, "in.jsonl") == ["d1", "d3"]
    removed = pq.read_table(folder / "out" / "removed.parquet").to_pylist()
    assert [(row["id"], row["kept_id"], row["kept_source"]) for row in removed] == [
        ("d0", "o1", "old/old.parquet"), ("d2", "o1", "old/old.parquet"), ("d4", "d1", "in.jsonl"),
    ]  # fmt: skip
    assert [path.name for path in (folder / "out" / "kept").iterdir()] == ["in.jsonl"]
    assert report(folder)["counts"]["read"] == 5
    assert digest(folder / "old") == before


def test_groups_by_components(folder: Path) -> None:
    """A setting like any other; here nothing is chained, so the answer is the same."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--group", "components").status == OK
    assert kept_ids(folder, "in.jsonl") == KEPT


def test_a_layout_by_hand(folder: Path) -> None:
    """--bands and --rows win over --recall, and the report says what recall that is."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--bands", "20", "--rows", "5").status == OK
    plan = report(folder)["plan"]
    assert (plan["bands"], plan["rows"]) == (20, 5)
    assert plan["recall"] == pytest.approx(1 - (1 - 0.8**5) ** 20)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_dry_run_writes_nothing_and_reads_little(tmp_path: Path, options: list[str]) -> None:
    """Of a file with 100 GB behind its first lines, and of one whose later rows are broken, it is soon done."""
    line = json_lines([{"text": TRAIN}])
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.write(line * (12_000_000 // len(line)))
        file.truncate(100 * 10**9)
    (tmp_path / "late.jsonl").write_bytes(line * (12_000_000 // len(line)) + b"broken\n")
    started = time.monotonic()
    done = run(tmp_path, "dedup", "huge.jsonl", "late.jsonl", "-o", "out", "--dry-run", "--on-error", "fail", *options)
    assert (done.status, done.err) == (OK, "")
    assert time.monotonic() - started < 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["huge.jsonl", "late.jsonl"]
    if options:
        estimate = json.loads(done.out)
        assert estimate["source_bytes"] > 100 * 10**9
        assert min(estimate["documents"], estimate["memory_bytes"], estimate["disk_bytes"], estimate["seconds"]) > 0
        assert estimate["plan"]["bands"] == 26
    else:
        assert "26 bands" in done.out
        assert "nothing was written" in done.out


def test_a_dry_run_of_standard_input_reads_nothing(folder: Path) -> None:
    """A stream can not be read twice, so it is refused rather than run."""
    done = execute(folder, "dedup", "-", "-o", "-", "--dry-run", stdin=(folder / "in.jsonl").read_bytes())
    assert done.returncode == USAGE
    assert done.stdout == b""


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_went_away(folder: Path, options: list[str]) -> None:
    """`| true`: nothing is told, and the result is there."""
    done = run_with_closed_output(folder, "dedup", "in.jsonl", "-o", "out", *options)
    assert done.stderr == b""
    assert report(folder)["counts"]["kept"] == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_summary_that_can_not_be_written(folder: Path) -> None:
    """Is a failure in one line, though the result is there."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [MINWISE, "dedup", "in.jsonl", "-o", "out"],
            cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == INPUT_OUTPUT
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.endswith(b"No space left on device\n")
    assert report(folder)["counts"]["kept"] == 3


def test_the_executable_itself(folder: Path) -> None:
    """Installed, started by a shell's environment with no home and no locale, it does the same."""
    done = subprocess.run(
        [MINWISE, "dedup", "in.jsonl", "-o", "out"],
        cwd=folder, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (OK, b"")
    assert kept_ids(folder, "in.jsonl") == KEPT
    assert sorted(digest(folder / "out")) == [
        "clusters.parquet",
        "kept",
        "kept/in.jsonl",
        "removed.parquet",
        "report.html",
        "report.json",
        "run.json",
    ]
