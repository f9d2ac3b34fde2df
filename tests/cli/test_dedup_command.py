"""`minwise dedup`: options, output on both streams, and exit codes."""

import gzip
import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.commands import (
    FAILURE,
    INPUT_OUTPUT,
    MINWISE,
    OK,
    USAGE,
    Done,
    digest,
    execute,
    one_line,
    run,
    without_stages,
)
from support.piped import run_with_closed_output
from support.small_corpus import FERRY, KEPT, ROWS, TRAIN, json_lines, kept_ids, report, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with a corpus of five documents."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


def test_json_is_the_report_with_facts_of_the_run(folder: Path) -> None:
    """One object on standard output, and nothing on standard error."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--json")
    assert (done.status, done.err) == (OK, "")
    printed = json.loads(done.out)
    about = printed.pop("run")
    assert printed == report(folder)
    assert about["output"] == "out"
    assert about["seconds"] > 0
    assert about["already_published"] is False


def test_quiet_run_prints_nothing(folder: Path) -> None:
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--quiet")
    assert done == Done(OK, "", "", done.child)


def test_summary_has_counts_and_no_trailing_spaces(folder: Path) -> None:
    done = run(folder, "dedup", "in.jsonl", "-o", "out")
    lines = done.out.splitlines()
    assert " 5 documents " in lines[0]
    assert lines[1].split()[:2] == ["kept", "3"]
    assert "2 (1 identical, 1 similar)" in lines[2]
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"]], ids=["plain", "quiet", "json"])
def test_progress_is_shown_on_a_terminal_only_without_quiet_and_json(folder: Path, options: list[str]) -> None:
    """Standard error, a terminal, has a bar for each stage."""
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
    assert "━".encode() not in done.stdout


def drain(terminal: int) -> bytes:
    """Return everything that was written to a terminal whose other end is closed."""
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            return shown
        if not chunk:
            return shown
        shown += chunk


def test_stages_are_lines_and_not_bars_in_a_pipe(folder: Path) -> None:
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
    assert (done.returncode, without_stages(done.stderr.decode())) == (OK, "")
    assert "kept" in shown
    assert "━" not in shown


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
def test_wrong_values_are_a_usage_error(folder: Path, option: str, value: str, name: str) -> None:
    """One line has the name and the value; nothing is written, not even a work directory."""
    done = run(folder, "dedup", "in.jsonl", "-o", "out", "--work", "work", option, value)
    assert (done.status, done.out) == (USAGE, ""), done
    (line,) = [line for line in done.err.splitlines() if line.startswith(("minwise: ", "Error: "))]
    assert name in line
    assert option == "--nonsense" or (value or "''") in line
    assert done.err.count("\n") <= 4
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl"]


def test_wrong_values_are_rejected_before_inputs_are_read(tmp_path: Path) -> None:
    """The input does not exist, which would be another error."""
    assert "threshold" in one_line(run(tmp_path, "dedup", "none.jsonl", "-o", "out", "--threshold", "7"), USAGE)


@pytest.mark.parametrize("arguments", [["dedup"], ["dedup", "in.jsonl"], ["dedup", "-o", "out"]], ids=" ".join)
def test_missing_arguments_are_a_usage_error(folder: Path, arguments: list[str]) -> None:
    done = run(folder, *arguments)
    assert done.status == USAGE
    assert "Missing" in done.err


@pytest.mark.parametrize("command", ["dedup", "pairs", "clusters"])
@pytest.mark.parametrize("name", ["none.jsonl", "none.txt", "none", "no/such/dir"])
def test_missing_input_is_named(folder: Path, command: str, name: str) -> None:
    """Alone and together with an existing file; exit code 74."""
    for inputs in ([name], ["in.jsonl", name]):
        output = "out" if command == "dedup" else "out.csv"
        line = one_line(run(folder, command, *inputs, "-o", output), INPUT_OUTPUT)
        assert line == f"minwise: {name}: No such file or directory\n"
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl"]


@pytest.mark.parametrize("pattern", ["*.parquet", "none/*", "in.j?", "**/*.txt"])
def test_pattern_without_a_match_is_an_error(folder: Path, pattern: str) -> None:
    """An empty result would look like success."""
    line = one_line(run(folder, "dedup", pattern, "-o", "out"), FAILURE)
    assert line == f"minwise: {pattern}: no file matches this pattern\n"


def test_empty_input_directory_is_an_error(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "empty" in one_line(run(folder, "dedup", "empty", "-o", "out"), FAILURE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", b"\n\n"),
        ("e.csv", b"id,text\n"),
        ("e.txt", b"\n"),
        ("e.jsonl.gz", gzip.compress(b"", mtime=0)),
    ],
)
def test_files_without_documents_are_copied(folder: Path, name: str, content: bytes) -> None:
    """A text file is one empty document."""
    (folder / name).write_bytes(content)
    done = run(folder, "dedup", name, "-o", "out")
    assert (done.status, done.err) == (OK, "")
    counts = report(folder)["counts"]
    assert counts["read"] == counts["kept"] == counts["empty"] == (1 if name == "e.txt" else 0)
    assert (folder / "out" / "kept" / name).exists()
    assert run(folder, "dedup", name, "in.jsonl", "-o", "both").status == OK
    assert kept_ids(folder, "in.jsonl", "both") == KEPT


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.txt", "e.parquet", "e.json"])
def test_a_file_of_no_bytes_is_refused_unless_it_is_beside_others(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    expected = f"{name}: nothing to read, 0 bytes; check the path, or the program that wrote it"
    assert expected in one_line(run(folder, "dedup", name, "-o", "out"), FAILURE)
    if name in ("e.jsonl", "e.txt", "e.json"):
        assert run(folder, "dedup", name, "in.jsonl", "-o", "both").status == OK
        assert (folder / "both" / "kept" / name).read_bytes() == b""


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow", "in.jsonl"])
@pytest.mark.parametrize("option", ["--text-column", "--id-column"])
def test_error_of_a_missing_column_lists_the_columns_of_the_file(tmp_path: Path, name: str, option: str) -> None:
    """No row can be read, so the column is wrong, not the rows. JSON lines list the keys of the first object."""
    write(tmp_path / name, ROWS)
    line = one_line(run(tmp_path, "dedup", name, "-o", "out", option, "body"), FAILURE)
    assert name in line
    assert "'body'" in line
    assert re.search(r"its columns are: id( \(string\))?, text( \(string\))?, year( \(\w+\))?, note", line)
    assert ("did you mean --text-column text?" in line) == (option == "--text-column")
    assert not (tmp_path / "out").exists()


def test_missing_keep_column_is_named(folder: Path) -> None:
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
def test_keep_policy_chooses_the_kept_document(folder: Path, policy: str, expected: list[str]) -> None:
    """The first of equal documents is kept, and rows stay in order."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--keep", policy).status == OK
    assert kept_ids(folder, "in.jsonl") == expected
    assert report(folder)["settings"]["keep"] == policy


@pytest.mark.parametrize("name", ["in.parquet", "in.csv", "in.arrow"])
def test_keep_compares_numbers_in_every_format(tmp_path: Path, name: str) -> None:
    """980 is less than 1991, also in a file that has only strings."""
    write(tmp_path / name, [{**row, "year": 980 if row["id"] == "d4" else row["year"]} for row in ROWS])
    assert run(tmp_path, "dedup", name, "-o", "out", "--keep", "max:year").status == OK
    assert kept_ids(tmp_path, name) == ["d1", "d2", "d3"]


def test_duplicates_of_the_reference_corpus_are_removed(folder: Path) -> None:
    """Duplicates within the input are removed, too, and the reference corpus is unchanged."""
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


def test_components_equal_stars_without_chains(folder: Path) -> None:
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--group", "components").status == OK
    assert kept_ids(folder, "in.jsonl") == KEPT


def test_bands_and_rows_determine_the_reported_recall(folder: Path) -> None:
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--bands", "20", "--rows", "5").status == OK
    plan = report(folder)["plan"]
    assert (plan["bands"], plan["rows"]) == (20, 5)
    assert plan["recall"] == pytest.approx(1 - (1 - 0.8**5) ** 20)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_dry_run_writes_nothing_and_reads_a_sample(tmp_path: Path, options: list[str]) -> None:
    """One file has 100 GB after its first lines, another has a faulty last row; neither is read to its end."""
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


def test_dry_run_of_standard_input_is_rejected(folder: Path) -> None:
    """A stream cannot be read twice."""
    done = execute(folder, "dedup", "-", "-o", "-", "--dry-run", stdin=(folder / "in.jsonl").read_bytes())
    assert done.returncode == USAGE
    assert done.stdout == b""


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_closed_standard_output_is_no_error(folder: Path, options: list[str]) -> None:
    """As with `| true`; the output directory is complete."""
    done = run_with_closed_output(folder, "dedup", "in.jsonl", "-o", "out", *options)
    assert without_stages(done.stderr.decode()) == ""
    assert report(folder)["counts"]["kept"] == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_summary_that_cannot_be_written_is_an_error(folder: Path) -> None:
    """The output directory is complete."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [MINWISE, "dedup", "in.jsonl", "-o", "out"],
            cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == INPUT_OUTPUT
    err = without_stages(done.stderr.decode())
    assert err.count("\n") == 1
    assert err.endswith("No space left on device\n")
    assert report(folder)["counts"]["kept"] == 3


def test_installed_executable_needs_no_home_and_no_locale(folder: Path) -> None:
    done = subprocess.run(
        [MINWISE, "dedup", "in.jsonl", "-o", "out"],
        cwd=folder, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, without_stages(done.stderr.decode())) == (OK, "")
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


def test_a_nested_text_column_is_named_by_its_path(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"id": row["id"], "doc": {"body": row["text"]}} for row in ROWS])
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--text-column", "doc.body").status == OK
    line = one_line(run(tmp_path, "dedup", "in.jsonl", "-o", "other"), FAILURE)
    assert line.endswith("; did you mean --text-column doc.body?\n")


def test_an_input_without_a_usable_row_fails_unless_it_is_left_out_explicitly(tmp_path: Path) -> None:
    write(tmp_path / "in.parquet", ROWS)
    write(tmp_path / "other.parquet", [{"id": row["id"], "content": row["text"]} for row in ROWS])
    line = one_line(run(tmp_path, "dedup", "in.parquet", "other.parquet", "-o", "out"), FAILURE)
    assert line.startswith(f"minwise: other.parquet: none of its {len(ROWS)} rows can be used: has no column 'text'")
    assert line.endswith("; set --on-error quarantine to go on without this input\n")
    for on_error in ("quarantine", "skip"):
        done = run(tmp_path, "dedup", "in.parquet", "other.parquet", "-o", on_error, "--on-error", on_error)
        assert done.status == OK
        assert "other.parquet" in "".join(done.out.splitlines(keepends=True)[-6:])
        counts = json.loads((tmp_path / on_error / "report.json").read_text())["counts"]
        assert (counts["read"], counts["quarantined"]) == (2 * len(ROWS), len(ROWS))
