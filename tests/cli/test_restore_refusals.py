"""Refusals of `minwise restore`: one line, nothing written, no partial output."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, INTERRUPTED, OK, USAGE, Job, execute, hidden, one_line, resume, run
from support.restored_runs import contents, dedup, restore
from support.small_corpus import FERRY, ROWS, TRAIN, json_lines, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, after a run that removed d2 and d4."""
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl")
    return tmp_path


def test_skipped_text_files_cannot_be_restored(tmp_path: Path) -> None:
    """Their names are not recorded, so changes cannot be detected: one line, with the remedy."""
    (tmp_path / "a.txt").write_text(FERRY)
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    dedup(tmp_path, "a.txt", "b.txt", "--on-error", "skip")
    line = one_line(run(tmp_path, "restore", "out", "--all", "-o", "back"), FAILURE)
    assert "all its 2 text files, got 1" in line
    assert "--on-error quarantine" in line


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"d2\nd0\n", "an id is not among its removed documents: 'd0'"),
        (b"unknown\nd2\nd9\n", "2 of 3 ids are not among its removed documents: the first is 'unknown'"),
        (b'"d2\n', "ids.txt: line 1 begins with a quotation mark, so it must be a JSON string"),
        (b'd2\n"d4" d2\n', "ids.txt: line 2 begins with a quotation mark"),
        (b"d2\n\xff\n", "ids.txt: line 2 is not valid UTF-8"),
        (b'"\\ud800"\n', "'\\ud800'"),
        (b"x" * 5000, "xxx…"),
    ],
)
def test_wrong_ids_are_refused(folder: Path, lines: bytes, message: str) -> None:
    """One line that names the first of them, and nothing is written."""
    (folder / "ids.txt").write_bytes(lines)
    before = contents(folder)
    assert message in one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("out", "-o", "back"),
        ("out", "--all"),
        ("--all", "-o", "back"),
    ],
)
def test_wrong_arguments_are_a_usage_error(folder: Path, arguments: tuple[str, ...]) -> None:
    """Exit code 2, nothing written."""
    (folder / "ids.txt").write_text("d2\n")
    done = run(folder, "restore", *arguments)
    assert (done.status, done.out) == (USAGE, "")
    assert done.err.startswith("minwise: ")
    assert not (folder / "back").exists()


def test_a_missing_file_of_ids_is_named(folder: Path) -> None:
    line = one_line(run(folder, "restore", "out", "--ids", "nowhere.txt", "-o", "back"), INPUT_OUTPUT)
    assert line == "minwise: nowhere.txt: No such file or directory\n"


def assert_refused(folder: Path, *messages: str, status: int = FAILURE) -> None:
    """Assert that both ways to restore fail with one line that contains the messages, and write nothing."""
    (folder / "ids.txt").write_text("d2\n")
    before = contents(folder)
    for how in (("--all",), ("--ids", "ids.txt")):
        line = one_line(run(folder, "restore", "out", *how, "-o", "back"), status)
        assert [message for message in messages if message not in line] == [], line
    assert contents(folder) == before


def test_an_input_of_another_size_is_refused_with_both_sizes(folder: Path) -> None:
    size = (folder / "in.jsonl").stat().st_size
    with (folder / "in.jsonl").open("a") as file:
        file.write("\n")
    assert_refused(folder, "in.jsonl has changed since the run", f"{size + 1:,} bytes now, {size:,} bytes then")


def test_an_input_of_another_time_is_refused_with_both_times(folder: Path) -> None:
    """To the nanosecond: a file may be written twice in a second."""
    accessed = (folder / "in.jsonl").stat().st_mtime_ns
    os.utime(folder / "in.jsonl", ns=(accessed, 1_000_000_000_000_000_001))
    assert_refused(
        folder, "in.jsonl has changed since the run", "modified 2001-09-09 01:46:40.000000001 UTC now", "UTC then"
    )


def test_a_missing_input_is_refused(folder: Path) -> None:
    """By its absolute path, because the run may have been started elsewhere."""
    (folder / "in.jsonl").unlink()
    assert_refused(folder, f"{folder}/in.jsonl has been deleted")


@pytest.mark.parametrize("change", ["gone", "later", "longer", "swapped"])
def test_a_changed_text_file_is_refused(tmp_path: Path, change: str) -> None:
    """It is named if it can be identified; of many files only a digest is recorded."""
    (tmp_path / "texts").mkdir()
    for row in ROWS:
        (tmp_path / "texts" / f"{row['id']}.txt").write_text(row["text"])
        os.utime(tmp_path / "texts" / f"{row['id']}.txt", ns=(0, 10**18))
    dedup(tmp_path, "texts")
    path = tmp_path / "texts" / "d1.txt"
    if change == "gone":
        path.unlink()
        assert_refused(tmp_path, f"{path} has been deleted")
    elif change == "later":
        os.utime(path, ns=(0, 10**18 + 10**9))
        assert_refused(tmp_path, "texts/d1.txt has changed", "modified 2001-09-09 01:46:41.000000000 UTC now")
    else:
        path.write_text(f"{TRAIN}!" if change == "longer" else TRAIN[::-1])
        os.utime(path, ns=(0, 10**18 if change == "longer" else 10**17))
        sizes = ("bytes now", "bytes then") if change == "longer" else ("its size or the time",)
        assert_refused(tmp_path, "one of the 5 files from texts/d0.txt on has changed", *sizes)


@pytest.mark.parametrize("destination", ["out", "out/back", ".", "in.jsonl", "out/kept"])
def test_a_destination_that_contains_the_run_or_an_input_is_refused(folder: Path, destination: str) -> None:
    """Also with --overwrite."""
    before = contents(folder)
    line = one_line(run(folder, "restore", "out", "--all", "-o", destination, "--overwrite"), USAGE)
    assert line.startswith("minwise: output must")
    assert contents(folder) == before


def test_a_destination_with_files_compared_against_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", ROWS)
    write(tmp_path / "old" / "old.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl", "--against", "old")
    line = one_line(run(tmp_path, "restore", "out", "--all", "-o", "old", "--overwrite"), USAGE)
    assert "must not be or hold an input" in line


def test_a_destination_that_is_not_empty_is_only_replaced_with_overwrite(folder: Path) -> None:
    (folder / "back").mkdir()
    (folder / "back" / "old").write_text("old")
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back"), USAGE)
    assert "output must be new or empty" in line
    assert run(folder, "restore", "out", "--all", "-o", "back", "--overwrite").status == OK
    assert sorted(path.name for path in (folder / "back").iterdir()) == ["kept", "removed.parquet"]


def test_standard_input_cannot_be_restored(folder: Path) -> None:
    shutil.rmtree(folder / "out")
    done = execute(folder, "dedup", "-", "-o", "out", "--quiet", stdin=json_lines(ROWS))
    assert done.returncode == OK
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back"), USAGE)
    assert "its input was standard input; there is no file to read again" in line


NO_INPUTS = b'{"directory": "/", "root": "", "columns": {"text": ["text"], "id": null}, "inputs": []}'
DAMAGES = {
    "no report": ("report.json", None, "a directory that minwise dedup wrote, got one without report.json"),
    "no run": ("run.json", None, "has no run.json, as written by an older minwise"),
    "broken run": ("run.json", b'{"directory": ', "out/run.json: must be written by minwise dedup, which is JSON"),
    "other run": (
        "run.json",
        b"{}",
        "out/run.json: must be written by minwise dedup: Object missing required field `directory`",
    ),
    "encoding": (
        "run.json",
        NO_INPUTS.replace(b"[]}", b'[], "encoding": "a\\nb"}'),
        "must be written by minwise dedup: encoding must be that of a text",
    ),
    "list": ("report.json", b"[]", "must be written by minwise dedup: Expected `object`, got `array`"),
    "bytes": ("report.json", b"\xff\xfe{", "out/report.json: must be written by minwise dedup, which is JSON"),
    "no inputs": ("run.json", NO_INPUTS, "got 0 and 1 sources"),
    "cut removed": ("removed.parquet", b"PAR1", "out/removed.parquet: must be the table of a run"),
    "empty removed": ("removed.parquet", b"", "out/removed.parquet: must be the table of a run"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_directory_is_refused(folder: Path, damage: str) -> None:
    """One line that names the file."""
    name, content, message = DAMAGES[damage]
    if content is None:
        (folder / "out" / name).unlink()
    else:
        (folder / "out" / name).write_bytes(content)
    assert_refused(folder, message)


def test_ids_need_the_table_of_clusters(folder: Path) -> None:
    """It lists the kept documents; --all does not need it."""
    (folder / "out/clusters.parquet").unlink()
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), INPUT_OUTPUT)
    assert line == "minwise: out/clusters.parquet: No such file or directory\n"
    restore(folder, "--all")


@pytest.mark.parametrize("keep_bytes", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
def test_a_truncated_table_is_refused(folder: Path, name: str, keep_bytes: float) -> None:
    whole = (folder / "out" / name).read_bytes()
    (folder / "out" / name).write_bytes(whole[: int(len(whole) * keep_bytes)])
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of a run" in line
    assert not (folder / "back").exists()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("source", "other.jsonl", "got other.jsonl, which is none of the inputs"),
        ("row", 5, "got row 5 of in.jsonl, which has no such row"),
        ("row", -1, "got a row without a valid row"),
        ("row", None, "got a row without a valid row"),
    ],
)
@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
def test_a_table_of_another_run_is_refused(folder: Path, name: str, column: str, value: Any, message: str) -> None:  # noqa: ANN401
    """Its rows are not in the input."""
    rows = pq.read_table(folder / "out" / name)
    changed = [*rows.column(column).to_pylist()[:-1], value]
    index = rows.column_names.index(column)
    table = rows.set_column(index, rows.schema.field(column), pa.array(changed, rows.schema.field(column).type))
    pq.write_table(table, folder / "out" / name)
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of this run" in line
    assert message in line


@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
@pytest.mark.parametrize(("rows", "message"), [([0], "1 rows where report.json has"), ([0, 1, 1], "is listed twice")])
def test_a_table_with_missing_or_repeated_rows_is_refused(
    folder: Path, name: str, rows: list[int], message: str
) -> None:
    """Fewer rows than in the report, or one of them twice."""
    pq.write_table(pq.read_table(folder / "out" / name).take(rows), folder / "out" / name)
    (folder / "ids.txt").write_text("d4\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of this run, got" in line
    assert message in line


def test_a_table_without_its_columns_is_refused(folder: Path) -> None:
    pq.write_table(pa.table({"id": ["d2"]}), folder / "out" / "removed.parquet")
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert "out/removed.parquet: must have a column source" in line


@pytest.mark.parametrize("how", ["--all", "--ids"])
def test_an_interrupt_leaves_no_files(folder: Path, how: str) -> None:
    """One line is printed; the same command succeeds afterwards."""
    (folder / "ids.txt").write_text("d2\n")
    before = contents(folder)
    arguments = ("restore", "out", how, *(["ids.txt"] if how == "--ids" else []), "-o", "back")
    stopped = run(folder, *arguments, job=Job(stage_trap=("restore", "stop")))
    assert stopped.status is None
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", "minwise: interrupted\n")
    assert contents(folder) == before
    assert run(folder, *arguments).status == OK


def test_a_file_size_limit_leaves_no_partial_output(folder: Path) -> None:
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back", job=Job(file_bytes=300)), INPUT_OUTPUT)
    assert "File too large" in line
    assert not (folder / "back").exists()
    assert hidden(folder) == []
