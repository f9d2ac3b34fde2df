"""What `minwise restore` refuses: in one line, with nothing written; and that nothing is half done."""

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
    """Where the files are and the command runs, after a run that removed d2 and d4."""
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl")
    return tmp_path


def test_texts_that_were_skipped(tmp_path: Path) -> None:
    """Nobody wrote down which they were, so it is not certain that nothing has changed: one line, with the remedy."""
    (tmp_path / "a.txt").write_text(FERRY)
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    dedup(tmp_path, "a.txt", "b.txt", "--on-error", "skip")
    line = one_line(run(tmp_path, "restore", "out", "--all", "-o", "back"), FAILURE)
    assert "all its 2 text files, got 1" in line
    assert "--on-error quarantine" in line


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"d2\nd0\n", "an id is not among its removed documents: 'd0'"),
        (b"nobody\nd2\nd9\n", "2 of 3 ids are not among its removed documents: the first is 'nobody'"),
        (b'"d2\n', "ids.txt: line 1 begins with a quotation mark, so it must be a JSON string"),
        (b'd2\n"d4" d2\n', "ids.txt: line 2 begins with a quotation mark"),
        (b"d2\n\xff\n", "ids.txt: line 2 is not valid UTF-8"),
        (b'"\\ud800"\n', "'\\ud800'"),
        (b"x" * 5000, "xxx…"),
    ],
)
def test_ids_that_are_refused(folder: Path, lines: bytes, said: str) -> None:
    """One line that names the first of them, and nothing is written."""
    (folder / "ids.txt").write_bytes(lines)
    before = contents(folder)
    assert said in one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("out", "-o", "back"),
        ("out", "--all", "--ids", "ids.txt", "-o", "back"),
        ("out", "--all"),
        ("--all", "-o", "back"),
    ],
)
def test_wrong_arguments(folder: Path, arguments: tuple[str, ...]) -> None:
    """Usage, exit code 2, nothing written."""
    (folder / "ids.txt").write_text("d2\n")
    done = run(folder, "restore", *arguments)
    assert (done.status, done.out) == (USAGE, "")
    assert "Error: " in done.err
    assert not (folder / "back").exists()


def test_no_file_of_ids(folder: Path) -> None:
    """The file is named."""
    line = one_line(run(folder, "restore", "out", "--ids", "nowhere.txt", "-o", "back"), INPUT_OUTPUT)
    assert line == "minwise: nowhere.txt: No such file or directory\n"


def refused(folder: Path, *said: str, status: int = FAILURE) -> None:
    """Both ways to restore are refused in one line that says all this, and nothing is written."""
    (folder / "ids.txt").write_text("d2\n")
    before = contents(folder)
    for how in (("--all",), ("--ids", "ids.txt")):
        line = one_line(run(folder, "restore", "out", *how, "-o", "back"), status)
        assert [words for words in said if words not in line] == [], line
    assert contents(folder) == before


def test_an_input_of_another_size(folder: Path) -> None:
    """Both sizes."""
    size = (folder / "in.jsonl").stat().st_size
    with (folder / "in.jsonl").open("a") as file:
        file.write("\n")
    refused(folder, "in.jsonl has changed since the run", f"{size + 1:,} bytes now, {size:,} bytes then")


def test_an_input_of_another_time(folder: Path) -> None:
    """Both times, to the nanosecond: a file may be written twice in a second."""
    at = (folder / "in.jsonl").stat().st_mtime_ns
    os.utime(folder / "in.jsonl", ns=(at, 1_000_000_000_000_000_001))
    refused(folder, "in.jsonl has changed since the run", "modified 2001-09-09 01:46:40.000000001 UTC now", "UTC then")


def test_an_input_that_is_gone(folder: Path) -> None:
    """By its whole path, since the run may have been started elsewhere."""
    (folder / "in.jsonl").unlink()
    refused(folder, f"{folder}/in.jsonl is gone")


@pytest.mark.parametrize("change", ["gone", "later", "longer", "swapped"])
def test_a_text_file_that_is_not_what_it_was(tmp_path: Path, change: str) -> None:
    """It is named where that can be told; of many files only a digest was noted."""
    (tmp_path / "texts").mkdir()
    for row in ROWS:
        (tmp_path / "texts" / f"{row['id']}.txt").write_text(row["text"])
        os.utime(tmp_path / "texts" / f"{row['id']}.txt", ns=(0, 10**18))
    dedup(tmp_path, "texts")
    path = tmp_path / "texts" / "d1.txt"
    if change == "gone":
        path.unlink()
        refused(tmp_path, f"{path} is gone")
    elif change == "later":
        os.utime(path, ns=(0, 10**18 + 10**9))
        refused(tmp_path, "texts/d1.txt has changed", "modified 2001-09-09 01:46:41.000000000 UTC now")
    else:
        path.write_text(f"{TRAIN}!" if change == "longer" else TRAIN[::-1])
        os.utime(path, ns=(0, 10**18 if change == "longer" else 10**17))
        sizes = ("bytes now", "bytes then") if change == "longer" else ("its size or the time",)
        refused(tmp_path, "one of the 5 files from texts/d0.txt on has changed", *sizes)


@pytest.mark.parametrize("destination", ["out", "out/back", ".", "in.jsonl", "out/kept"])
def test_a_destination_that_would_swallow_something(folder: Path, destination: str) -> None:
    """Neither OUT nor an input is ever touched, --overwrite or not."""
    before = contents(folder)
    line = one_line(run(folder, "restore", "out", "--all", "-o", destination, "--overwrite"), USAGE)
    assert line.startswith("minwise: output must")
    assert contents(folder) == before


def test_a_destination_that_holds_what_was_compared_against(tmp_path: Path) -> None:
    """It was no input, but is no less worth keeping."""
    write(tmp_path / "in.jsonl", ROWS)
    write(tmp_path / "old" / "old.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl", "--against", "old")
    line = one_line(run(tmp_path, "restore", "out", "--all", "-o", "old", "--overwrite"), USAGE)
    assert "must not be or hold an input" in line


def test_a_destination_that_is_not_empty(folder: Path) -> None:
    """Stays, unless --overwrite says that it may go."""
    (folder / "back").mkdir()
    (folder / "back" / "old").write_text("old")
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back"), USAGE)
    assert "output must be new or empty" in line
    assert run(folder, "restore", "out", "--all", "-o", "back", "--overwrite").status == OK
    assert sorted(path.name for path in (folder / "back").iterdir()) == ["kept", "removed.parquet"]


def test_standard_input_can_not_be_restored(folder: Path) -> None:
    """There is no file to go back to."""
    shutil.rmtree(folder / "out")
    done = execute(folder, "dedup", "-", "-o", "out", "--quiet", stdin=json_lines(ROWS))
    assert done.returncode == OK
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back"), USAGE)
    assert "its input was standard input; there is no file to go back to" in line


DAMAGES = {
    "no report": ("report.json", None, "a directory that minwise dedup wrote, got one without report.json"),
    "no run": ("run.json", None, "has no run.json, as written by an older minwise"),
    "broken run": ("run.json", b'{"directory": ', "out/run.json: must be JSON"),
    "other run": ("run.json", b"{}", "out/run.json: must be written by minwise dedup, got one without directory"),
    "list": ("report.json", b"[]", "out/report.json: must be a JSON object, got list"),
    "bytes": ("report.json", b"\xff\xfe{", "out/report.json: must be JSON"),
    "no inputs": ("run.json", b'{"directory": "/", "root": "", "columns": {}, "inputs": []}', "got 0 and 1 sources"),
    "cut removed": ("removed.parquet", b"PAR1", "out/removed.parquet: must be the table of a run"),
    "empty removed": ("removed.parquet", b"", "out/removed.parquet: must be the table of a run"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_directory(folder: Path, damage: str) -> None:
    """One line that names the file."""
    name, content, said = DAMAGES[damage]
    if content is None:
        (folder / "out" / name).unlink()
    else:
        (folder / "out" / name).write_bytes(content)
    refused(folder, said)


def test_no_clusters(folder: Path) -> None:
    """Without them nobody knows what was kept; restoring all does not need them."""
    (folder / "out/clusters.parquet").unlink()
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), INPUT_OUTPUT)
    assert line == "minwise: out/clusters.parquet: No such file or directory\n"
    restore(folder, "--all")


@pytest.mark.parametrize("keep_bytes", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
def test_a_table_that_was_cut_short(folder: Path, name: str, keep_bytes: float) -> None:
    """Wherever."""
    whole = (folder / "out" / name).read_bytes()
    (folder / "out" / name).write_bytes(whole[: int(len(whole) * keep_bytes)])
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of a run" in line
    assert not (folder / "back").exists()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("source", "other.jsonl", "got other.jsonl, which is none of the inputs"),
        ("row", 5, "got row 5 of in.jsonl, which has no such row"),
        ("row", -1, "got row -1 of in.jsonl, which has no such row"),
        ("row", None, "got a row without source and row"),
    ],
)
@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
def test_a_table_of_another_run(folder: Path, name: str, column: str, value: Any, said: str) -> None:  # noqa: ANN401
    """What it lists is not in the input."""
    rows = pq.read_table(folder / "out" / name)
    changed = [*rows.column(column).to_pylist()[:-1], value]
    place = rows.column_names.index(column)
    table = rows.set_column(place, rows.schema.field(column), pa.array(changed, rows.schema.field(column).type))
    pq.write_table(table, folder / "out" / name)
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of this run" in line
    assert said in line


@pytest.mark.parametrize("name", ["removed.parquet", "clusters.parquet"])
@pytest.mark.parametrize(("rows", "said"), [([0], "1 rows where report.json has"), ([0, 1, 1], "is listed twice")])
def test_a_table_with_other_rows(folder: Path, name: str, rows: list[int], said: str) -> None:
    """Fewer than the report has counted, or one of them again."""
    pq.write_table(pq.read_table(folder / "out" / name).take(rows), folder / "out" / name)
    (folder / "ids.txt").write_text("d4\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert f"out/{name}: must be the table of this run, got" in line
    assert said in line


def test_a_table_without_its_columns(folder: Path) -> None:
    """Is none of ours."""
    pq.write_table(pa.table({"id": ["d2"]}), folder / "out" / "removed.parquet")
    (folder / "ids.txt").write_text("d2\n")
    line = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert "out/removed.parquet: must have a column source" in line


@pytest.mark.parametrize("how", ["--all", "--ids"])
def test_an_interrupt(folder: Path, how: str) -> None:
    """One line, nothing at DIR, nothing left over; the same command then does it."""
    (folder / "ids.txt").write_text("d2\n")
    before = contents(folder)
    arguments = ("restore", "out", how, *(["ids.txt"] if how == "--ids" else []), "-o", "back")
    stopped = run(folder, *arguments, job=Job(stage_trap=("restore", "stop")))
    assert stopped.status is None
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.out, done.err) == (INTERRUPTED, "", "minwise: interrupted\n")
    assert contents(folder) == before
    assert run(folder, *arguments).status == OK


def test_a_limit_on_the_size_of_files(folder: Path) -> None:
    """No room for the copies: one line, nothing partial."""
    line = one_line(run(folder, "restore", "out", "--all", "-o", "back", job=Job(file_bytes=300)), INPUT_OUTPUT)
    assert "File too large" in line
    assert not (folder / "back").exists()
    assert hidden(folder) == []
