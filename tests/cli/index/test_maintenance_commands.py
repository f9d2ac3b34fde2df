"""`minwise index remove`, `expire`, `stats`, `verify`, `compact`, `backup`, `export`."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, Job, digest, one_line, run
from support.small_corpus import ROWS, write

import minwise as mw

IDS = [row["id"] for row in ROWS]
READERS = ("stats", "verify")
WRITERS = ("remove", "compact", "expire")
MORE = {"remove": ["d0"], "expire": ["--older-than", "1d", "--time-field", "year"]}


def present(folder: Path, name: str = "news.mw") -> list[str]:
    """Return which of the documents are in an index."""
    with mw.Index.open(folder / name) as index:
        return [document_id for document_id in IDS if document_id in index]


def index_command(folder: Path, command: str, *arguments: str, job: Job | None = None) -> Done:
    """Run a command on the index of the folder."""
    return run(folder, "index", command, "news.mw", *arguments, job=job)


def as_json(folder: Path, command: str, *arguments: str) -> dict[str, Any]:
    """Return the object that a command prints."""
    done = index_command(folder, command, *arguments, "--json")
    assert (done.status, done.err) == (OK, "")
    return dict(json.loads(done.out))


def test_remove_ids(filled: Path) -> None:
    """Missing ids are counted, each once."""
    done = index_command(filled, "remove", "d0", "d4", "d0", "missing")
    assert (done.status, done.out, done.err) == (OK, "2 removed, 1 not there; 3 in news.mw\n", "")
    assert present(filled) == ["d1", "d2", "d3"]
    assert as_json(filled, "remove", "d0") == {"index": "news.mw", "removed": 0, "not_there": 1, "documents": 3}
    assert index_command(filled, "remove", "d1", "--quiet").out == ""
    assert present(filled) == ["d2", "d3"]


def dated(folder: Path) -> Path:
    """Return a directory with an index of documents with times, of which one has none and one is not readable."""
    created = {"a": "2025-12-31", "b": "2026-01-01", "c": 1735689600, "d": None, "e": "soon"}
    rows = [{"id": name, "text": f"a text of {name}", "created": time} for name, time in created.items()]
    (folder / "dated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = index_command(folder, "add", "dated.jsonl", "--metadata-column", "created", "--quiet")
    assert (done.status, done.err) == (OK, "")
    return folder


BEFORE = ("--before", "2026-01-01", "--time-field", "created")


def test_expire_documents_before_a_time(folder: Path) -> None:
    """First a dry run, which needs no writer."""
    dated(folder)
    kept = "with created before 2026-01-01T00:00:00Z, 1 without created, 1 with a created that is not a time"
    with mw.Index.open(folder / "news.mw", "w"):
        dry = index_command(folder, "expire", *BEFORE, "--dry-run")
    assert (dry.status, dry.out, dry.err) == (OK, f"5 read: 2 would expire, {kept}; 5 in news.mw\n", "")
    done = index_command(folder, "expire", *BEFORE)
    assert (done.status, done.out, done.err) == (OK, f"5 read: 2 expired, {kept}; 3 in news.mw\n", "")
    assert as_json(folder, "expire", *BEFORE) == {
        "index": "news.mw", "dry_run": False, "read": 3, "expired": 0, "undated": 1, "unreadable": 1,
        "oldest": "2026-01-01T00:00:00Z", "before": "2026-01-01T00:00:00Z", "documents": 3,
    }  # fmt: skip
    assert index_command(folder, "expire", *BEFORE, "--quiet").out == ""
    again = index_command(folder, "expire", "--older-than", "1h", "--time-field", "created")
    assert again.out.startswith("3 read: 1 expired, with created before ")


def test_expire_takes_settings_from_a_file(folder: Path) -> None:
    dated(folder)
    (folder / "minwise.toml").write_text('[index.expire]\nbefore = "2026-01-01"\ntime_field = "created"\n')
    done = index_command(folder, "expire", "--dry-run", "--json")
    assert json.loads(done.out)["expired"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expire needs --older-than 30d or --before 2026-01-01, got neither"),
        (["--older-than", "30d", *BEFORE], "got both"),
        (["--older-than", "30d"], "--time-field must name the metadata field with the time of a document: an index "
         "does not store when a document was added"),
        (["--older-than", "3600", "--time-field", "created"], "--older-than must be a whole number from 1 to 9999 and "
         "h, d or w for hours, days or weeks, such as 30d, got '3600'"),
        (["--before", "soon", "--time-field", "created"], "--before must be an ISO 8601 date or time, such as "
         "2026-01-01, got 'soon'"),
    ],
)  # fmt: skip
def test_expire_refuses_invalid_times(filled: Path, arguments: list[str], message: str) -> None:
    assert message in one_line(index_command(filled, "expire", *arguments), USAGE)
    assert present(filled) == IDS


@pytest.mark.parametrize("given", ["ids.txt", "-"])
def test_remove_ids_of_a_file(filled: Path, given: str) -> None:
    """One id per line, with a byte order mark, blank lines, JSON strings and other line ends."""
    with mw.Index.open(filled / "news.mw", "w") as index:
        index.add(["two\nlines", 7], ["a document with an odd name", "one with a number"])
    (filled / "ids.txt").write_bytes(b'\xef\xbb\xbfd0\r\n\n  d1 \n"two\\nlines"\n7\nmissing\n')
    job = Job(stdin=str(filled / "ids.txt")) if given == "-" else None
    done = index_command(filled, "remove", "--ids", given, job=job)
    assert (done.status, done.out) == (OK, "4 removed, 1 not there; 3 in news.mw\n")
    assert present(filled) == ["d2", "d3", "d4"]


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        ([], "got neither", USAGE),
        (["d0", "--ids", "ids.txt"], "got both", USAGE),
        (["--ids", "missing.txt"], "missing.txt", INPUT_OUTPUT),
        (["--ids", "latin.txt"], "latin.txt: line 2 is not valid UTF-8", FAILURE),
        ([""], "id", FAILURE),
    ],
)
def test_remove_refuses_invalid_ids(filled: Path, arguments: list[str], message: str, status: int) -> None:
    """One line, and all documents stay."""
    (filled / "ids.txt").write_text("d0\n")
    (filled / "latin.txt").write_bytes(b"d0\n\xff\n")
    assert message in one_line(index_command(filled, "remove", *arguments), status)
    assert present(filled) == IDS


def test_stats(filled: Path) -> None:
    assert index_command(filled, "remove", "d0", "--quiet").status == OK
    done = index_command(filled, "stats")
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert rows["documents"] == "4; 1 more were removed"
    assert rows["stored"] == "shingles; similarities are exact"
    assert rows["shingles"] == "word:5"
    assert rows["seed"] == "1"
    stats = as_json(filled, "stats")
    assert (stats["index"], stats["documents"], stats["removed"]) == ("news.mw", 4, 1)
    assert stats["settings"]["threshold"] == 0.8
    assert rows["size"].startswith(f"{stats['bytes'] / 1000:,.1f} kB, {stats['bytes'] / 4:,.0f} bytes a document")


def test_stats_of_empty_index(folder: Path) -> None:
    assert index_command(folder, "stats").out.startswith("documents  0; 0 more were removed\n")


def test_verify(filled: Path) -> None:
    """The number of files: the database, and the segment once there is one."""
    assert index_command(filled, "verify").out == "1 file, every checksum is right\n"
    assert index_command(filled, "compact", "--quiet").out == ""
    done = index_command(filled, "verify")
    assert (done.status, done.out, done.err) == (OK, "2 files, every checksum is right\n", "")
    assert as_json(filled, "verify") == {"index": "news.mw", "files": 2, "damages": []}
    assert index_command(filled, "verify", "--quiet").out == ""


def test_verify_names_damaged_files(filled: Path) -> None:
    """One line each and exit code 1; also as JSON."""
    assert index_command(filled, "compact").status == OK
    (segment,) = (filled / "news.mw").glob("segment-*.post")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    done = index_command(filled, "verify")
    assert (done.status, done.out) == (FAILURE, "")
    assert all(line.startswith("minwise: ") and f"news.mw/{segment.name}: " in line for line in done.err.splitlines())
    assert done.err
    found = index_command(filled, "verify", "--json")
    assert (found.status, found.err) == (FAILURE, "")
    assert {damage["file"] for damage in json.loads(found.out)["damages"]} == {str(segment)}


def test_damaged_database(filled: Path) -> None:
    """Every command prints one line that names it, with exit code 1."""
    database = filled / "news.mw" / "index.db"
    for extra in (filled / "news.mw").glob("index.db-*"):
        extra.unlink()
    database.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    for command in (*READERS, "compact"):
        assert "news.mw/index.db" in one_line(index_command(filled, command), FAILURE)


def test_compact(filled: Path) -> None:
    """One segment without removed documents; the answers stay."""
    with mw.Index.open(filled / "news.mw", "w") as index:
        index.flush()
        index.add(["x"], ["some more words for another segment"])
        index.remove(["d1"])
        index.flush()
    done = index_command(filled, "compact")
    assert (done.status, done.err) == (OK, "")
    sizes = as_json(filled, "stats")
    assert len(sizes["segments"]) == 1
    assert done.out.startswith(f"news.mw: {sizes['bytes']:,} bytes, ")
    again = as_json(filled, "compact")
    assert list(again) == ["index", "bytes_before", "bytes"]
    assert again["bytes"] == sizes["bytes"]
    assert present(filled) == ["d0", "d2", "d3", "d4"]
    assert index_command(filled, "verify").status == OK


def test_backup(filled: Path) -> None:
    """The copy is an index of its own, made while another process writes, without later changes."""
    with mw.Index.open(filled / "news.mw", "w") as index:
        done = index_command(filled, "backup", "saved/copy.mw")
        assert (done.status, done.out, done.err) == (OK, "5 documents in saved/copy.mw\n", "")
        index.remove(IDS)
    assert present(filled) == []
    assert present(filled, "saved/copy.mw") == IDS
    assert run(filled, "index", "add", "saved/copy.mw", "in.jsonl", "--on-duplicate-id", "skip").status == OK
    assert as_json(filled, "backup", "more.mw") == {"index": "news.mw", "backup": "more.mw", "documents": 0}
    assert index_command(filled, "backup", "quiet.mw", "--quiet").out == ""


def test_backup_into_an_existing_directory_is_refused(filled: Path) -> None:
    write(filled / "taken" / "a.jsonl", ROWS)
    before = digest(filled / "taken")
    assert "taken" in one_line(index_command(filled, "backup", "taken"), USAGE)
    assert digest(filled / "taken") == before


def test_export(filled: Path) -> None:
    """Id, metadata and signature of every document, in the order of addition."""
    done = index_command(filled, "export", "signatures.parquet")
    assert (done.status, done.out, done.err) == (OK, "5 signatures in signatures.parquet\n", "")
    table = pq.read_table(filled / "signatures.parquet")
    assert table["id"].to_pylist() == IDS
    with mw.Index.open(filled / "news.mw") as index:
        expected = index.scheme.sketch_texts([row["text"] for row in ROWS], index.shingler).slots
    assert table["signature"].to_pylist() == expected.tolist()
    assert as_json(filled, "export", "again.parquet") == {"index": "news.mw", "file": "again.parquet", "documents": 5}
    assert index_command(filled, "export", "quiet.parquet", "--quiet").out == ""


def test_failed_export_leaves_nothing(filled: Path) -> None:
    """A wrong file name and a missing directory leave no file."""
    assert "must end in .parquet" in one_line(index_command(filled, "export", "signatures.csv"), USAGE)
    assert "nowhere" in one_line(index_command(filled, "export", "nowhere/s.parquet"), INPUT_OUTPUT)
    assert sorted(path.name for path in filled.iterdir()) == ["in.jsonl", "news.mw"]


@pytest.mark.parametrize("command", [*READERS, *WRITERS, "backup", "export"])
def test_path_that_is_not_an_index(folder: Path, command: str) -> None:
    """A missing path, a file and another directory are named in one line."""
    more = {**MORE, "backup": ["b.mw"], "export": ["s.parquet"]}.get(command, [])
    (folder / "empty").mkdir()
    for name, status in (("missing.mw", INPUT_OUTPUT), ("in.jsonl", FAILURE), ("empty", FAILURE)):
        assert name in one_line(run(folder, "index", command, name, *more), status)
    assert list((folder / "empty").iterdir()) == []


@pytest.mark.parametrize("command", WRITERS)
def test_second_writer_is_refused(filled: Path, command: str) -> None:
    """The error names the writing process."""
    with mw.Index.open(filled / "news.mw", "w"):
        line = one_line(index_command(filled, command, *MORE.get(command, [])), USAGE)
    assert str(os.getpid()) in line
    assert present(filled) == IDS


@pytest.mark.parametrize(
    "command", ["", "create", "add", "query", "remove", "expire", "stats", "verify", "compact", "backup", "export"]
)
def test_help_has_an_example(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, "index", *filter(None, [command]), "--help")
    assert done.status == OK
    assert command == "" or f"  minwise index {command} news.mw" in done.out
