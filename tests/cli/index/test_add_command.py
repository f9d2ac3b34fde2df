"""`minwise index add`: every format and option, faults, unchanged documents, and resuming."""

import gzip
import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, INTERRUPTED, OK, USAGE, Done, Job, execute, one_line, resume, run
from support.fault_corpora import documents
from support.small_corpus import FAULTS, FERRY, ROWS, TRAIN, json_lines, write

import minwise as mw

IDS = [row["id"] for row in ROWS]


def add(folder: Path, *arguments: str, job: Job | None = None) -> Done:
    """Run the command on the index of the folder."""
    return run(folder, "index", "add", "news.mw", *arguments, job=job)


def stored(folder: Path, *ids: str | int) -> list[dict[str, Any] | None]:
    """Return the metadata of documents, all of which must exist."""
    with mw.Index.open(folder / "news.mw") as index:
        return [index.get(document_id).metadata for document_id in ids]


def count(folder: Path) -> int:
    """Return the number of documents in the index, which must be undamaged."""
    with mw.Index.open(folder / "news.mw") as index:
        assert index.verify() == []
        return len(index)


def test_documents_are_added_once(folder: Path) -> None:
    """The second run finds all of them unchanged."""
    assert (first := add(folder, "in.jsonl")).status == OK
    assert (first.out, first.err) == ("5 read: 5 added; 5 in news.mw\n", "")
    again = add(folder, "in.jsonl")
    assert (again.status, again.out, again.err) == (OK, "5 read: 0 added, 5 already present; 5 in news.mw\n", "")
    with mw.Index.open(folder / "news.mw") as index:
        assert all(document_id in index for document_id in IDS)
        assert [hit.id for hit in index.query(FERRY)] == ["d0", "d2"]


def test_json_and_quiet_output(folder: Path) -> None:
    counts = json.loads(add(folder, "in.jsonl", "--json").out)
    assert counts.pop("run")["seconds"] >= 0
    assert counts == {
        "index": "news.mw", "read": 5, "added": 5, "replaced": 0, "skipped": 0, "unchanged": 0, "quarantined": 0,
        "unreadable": 0, "faults": [], "documents": 5,
    }  # fmt: skip
    quiet = add(folder, "in.jsonl", "--quiet")
    assert (quiet.status, quiet.out, quiet.err) == (OK, "", "")


@pytest.mark.parametrize("name", ["more.jsonl", "more.jsonl.gz", "more.parquet", "more.arrow", "more.feather"])
def test_metadata_keeps_its_types(folder: Path, name: str) -> None:
    """Numbers, strings, lists and objects, and null where a row has none."""
    rows = [{**row, "tags": [row["id"], None], "about": {"n": row["year"], "f": 0.5, "b": True}} for row in ROWS]
    rows[3] |= {"year": None, "about": None}
    write(folder / name, rows)
    columns = [part for column in ("year", "note", "tags", "about") for part in ("--metadata-column", column)]
    assert add(folder, name, *columns).status == OK
    assert stored(folder, *IDS) == [{name: row[name] for name in ("year", "note", "tags", "about")} for row in rows]


@pytest.mark.parametrize("name", ["more.csv", "more.tsv.gz"])
def test_metadata_of_untyped_formats_is_strings(folder: Path, name: str) -> None:
    """Empty fields are null."""
    write(folder / name, ROWS)
    assert add(folder, name, "--metadata-column", "year", "--metadata-column", "note").status == OK
    assert stored(folder, *IDS) == [{"year": str(row["year"]), "note": row["note"] or None} for row in ROWS]


def test_other_types_become_json_values(folder: Path) -> None:
    """ISO strings, numbers and text."""
    columns = {
        "day": pa.array([0], pa.date32()), "at": pa.array([1_700_000_000_000_001], pa.timestamp("us", "UTC")),
        "price": pa.array([12345], pa.int64()).cast(pa.decimal128(20, 0)), "raw": pa.array([b"x"], pa.binary()),
        "nan": pa.array([float("nan")]), "kind": pa.array(["a"]).dictionary_encode(),
    }  # fmt: skip
    pq.write_table(pa.table({"id": ["x"], "text": [FERRY], **columns}), folder / "more.parquet")
    assert add(folder, "more.parquet", *(part for name in columns for part in ("--metadata-column", name))).status == OK
    expected = {"day": "1970-01-01", "at": "2023-11-14T22:13:20.000001+00:00"}
    assert stored(folder, "x") == [{**expected, "price": 12345.0, "raw": "x", "nan": None, "kind": "a"}]


@pytest.mark.parametrize("name", ["more.jsonl", "more.parquet", "more.arrow", "more.csv", "more.txt"])
def test_missing_metadata_column_adds_nothing(folder: Path, name: str) -> None:
    if name == "more.txt":
        (folder / name).write_text(FERRY)
    else:
        write(folder / name, ROWS)
    line = one_line(add(folder, name, "--metadata-column", "yaer", "--on-error", "fail"), FAILURE)
    assert line.startswith(f"minwise: {name}: ")
    assert "has no column 'yaer'" in line
    assert count(folder) == 0


def test_metadata_that_later_lines_lack_is_null(folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(json_lines([{"id": 1, "text": "a b", "lang": "en"}, {"id": 2, "text": "c d"}]))
    assert add(folder, "in.jsonl", "--metadata-column", "lang").status == OK
    assert stored(folder, 1, 2) == [{"lang": "en"}, {"lang": None}]


def test_columns_formats_and_default_ids(folder: Path) -> None:
    """A document without an id gets one of its file and row."""
    write(folder / "a.csv", [{"key": "k1", "head": "one", "body": FERRY}, {"key": "k2", "head": "two", "body": TRAIN}])
    (folder / "a.csv").rename(folder / "dump")
    columns = ["--text-column", "head", "--text-column", "body", "--format", "csv"]
    assert add(folder, "dump", *columns, "--id-column", "key").status == OK
    assert add(folder, "dump", *columns).status == OK
    with mw.Index.open(folder / "news.mw") as index:
        assert len(index) == 4
        hits = index.query(f"one\n{FERRY}")
    assert [(hit.id, hit.similarity) for hit in hits] == [("k1", 1.0), ("dump:0", 1.0)]


@pytest.mark.parametrize("given", ["corpus", "corpus/**/*.jsonl", "corpus/a.jsonl corpus/b/c.jsonl"])
def test_directories_and_patterns(folder: Path, given: str) -> None:
    write(folder / "corpus" / "a.jsonl", ROWS[:2])
    write(folder / "corpus" / "b" / "c.jsonl", ROWS[2:])
    assert add(folder, *given.split()).out.startswith("5 read: 5 added;")


def test_text_files_are_named_by_their_path(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "ferry.txt").write_text(FERRY)
    (folder / "texts" / "train.txt").write_text(TRAIN)
    assert add(folder, "texts").status == OK
    assert stored(folder, "ferry.txt", "train.txt") == [None, None]


def test_taken_id_is_refused_skipped_or_replaced(folder: Path) -> None:
    assert add(folder, "in.jsonl").status == OK
    write(folder / "in.jsonl", [ROWS[0], {**ROWS[1], "text": "quite another text of seven words"}])
    assert "d1" in one_line(add(folder, "in.jsonl"), FAILURE)
    skipped = add(folder, "in.jsonl", "--on-duplicate-id", "skip")
    assert skipped.out == "2 read: 0 added, 1 skipped, 1 already present; 5 in news.mw\n"
    replaced = add(folder, "in.jsonl", "--on-duplicate-id", "replace")
    assert replaced.out == "2 read: 0 added, 1 replaced, 1 already present; 5 in news.mw\n"
    with mw.Index.open(folder / "news.mw") as index:
        assert [hit.id for hit in index.query("quite another text of seven words")] == ["d1"]


@pytest.mark.parametrize("fault", FAULTS)
def test_unreadable_rows_are_reported(folder: Path, fault: str) -> None:
    """Standard error names file, row and reason of each; all other documents are added and counted."""
    name, content, row, reason = FAULTS[fault]
    (folder / name).write_bytes(content)
    done = add(folder, "in.jsonl", name, "--json", "--on-error", "quarantine")
    assert done.status == OK
    where = name if row is None else f"{name}: row {row}"
    rows = [0, None] if fault == "other columns" else [row]
    line = done.err.splitlines()[-1]
    assert line.startswith(f"minwise: {where}: ")
    assert reason in line
    assert (done.err.count("\n"), line.endswith("; left out")) == (len(rows), True)
    counts = json.loads(done.out)
    assert (counts["quarantined"], counts["unreadable"]) == (len(rows) - rows.count(None), rows.count(None))
    assert [(listed["source"], listed["row"]) for listed in counts["faults"]] == [(name, found) for found in rows]
    assert counts["read"] == counts["added"] + counts["unchanged"] + counts["quarantined"]
    assert counts["documents"] == count(folder) == 5


def test_on_error(folder: Path) -> None:
    """`fail` ends at the first fault with exit code 1; `skip` only counts."""
    (folder / "bad.jsonl").write_bytes(json_lines(ROWS[:1]) + b"{oops\n" + json_lines(ROWS[1:]))
    line = one_line(add(folder, "bad.jsonl", "--on-error", "fail"), FAILURE)
    assert "bad.jsonl: row 1: line 2 is not JSON" in line
    skipped = add(folder, "bad.jsonl", "--on-error", "skip")
    assert (skipped.status, skipped.err) == (OK, "")
    assert skipped.out == "6 read: 5 added, 1 quarantined; 5 in news.mw\n"


def test_no_readable_document_is_a_failure(folder: Path) -> None:
    """This means a wrong column."""
    done = add(folder, "in.jsonl", "--text-column", "txet")
    assert (done.status, done.out) == (FAILURE, "")
    line = done.err.splitlines()[-1]
    assert line.startswith(
        "minwise: in.jsonl: row 0: has no column 'txet'; its columns are: id (string), text (string)"
    )
    assert line.endswith("; did you mean --text-column text?")
    assert count(folder) == 0


def test_empty_id_is_a_fault(folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(b'{"id": "", "text": "a b c"}\n{"id": null, "text": "d e f"}\n')
    done = add(folder, "in.jsonl")
    assert done.err == "minwise: in.jsonl: row 0: id must not be empty; left out\n"
    assert stored(folder, "in.jsonl:1") == [None]


def test_empty_text_is_stored(folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(b'{"id": 1, "text": ""}\n{"id": 2, "text": ""}\n')
    assert add(folder, "in.jsonl").out == "2 read: 2 added; 2 in news.mw\n"


def test_standard_input(folder: Path) -> None:
    """JSON lines, each of which needs its own id."""
    (folder / "stdin").write_bytes(json_lines(ROWS) + b'{"text": "no id at all"}\n')
    done = add(folder, "-", "--metadata-column", "year", job=Job(stdin=str(folder / "stdin")))
    assert done.err == "minwise: standard input: row 5: needs an id; left out\n"
    assert done.out == "6 read: 5 added, 1 quarantined; 5 in news.mw\n"
    assert stored(folder, "d4") == [{"year": 1980}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["in.jsonl", "--memory", "1MB"], "memory must"),
        (["in.jsonl", "--threads", "0"], "threads must"),
        (["in.jsonl", "--text-column", ""], "--text-column must"),
        (["in.jsonl", "--metadata-column", ""], "metadata_columns must"),
        (["in.jsonl", "-o", "kept.jsonl"], "output needs --unique"),
        (["-", "in.jsonl"], "must be the only input"),
    ],
)
def test_wrong_arguments(folder: Path, options: list[str], message: str) -> None:
    """Exit code 2 and one line, before anything is added."""
    assert message in one_line(add(folder, *options), USAGE)
    assert count(folder) == 0


def test_missing_file_is_named(folder: Path) -> None:
    assert "missing.jsonl" in one_line(add(folder, "missing.jsonl"), INPUT_OUTPUT)


@pytest.mark.parametrize("command", ["add", "query"])
def test_path_that_is_not_an_index(folder: Path, command: str) -> None:
    """Another directory, a file and a missing path are named and left unchanged."""
    (folder / "other").mkdir()
    (folder / "other" / "file").write_text("x")
    for name, status in (("missing.mw", INPUT_OUTPUT), ("in.jsonl", FAILURE), ("other", FAILURE)):
        assert name in one_line(run(folder, "index", command, name, "in.jsonl"), status)
    assert [path.name for path in (folder / "other").iterdir()] == ["file"]


def test_second_writer_is_refused(folder: Path) -> None:
    """The error names the writing process; a reader is admitted."""
    with mw.Index.open(folder / "news.mw", "w"):
        assert str(os.getpid()) in one_line(add(folder, "in.jsonl"), USAGE)
        assert run(folder, "index", "query", "news.mw", "in.jsonl").status == OK
    assert add(folder, "in.jsonl").status == OK


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "end"])
def test_resuming_after_a_signal(folder: Path, sent: signal.Signals) -> None:
    """Acknowledged documents stay, no others are stored, and the same command adds the rest."""
    rows = [{"id": number, "text": text} for number, text in enumerate(documents(300))]
    write(folder / "many.parquet", rows)
    small = {"minwise.index.ingest.BATCH_DOCUMENTS": 100}
    stopped = add(folder, "many.parquet", job=Job(constants=small, stage_trap=("add", "stop")))
    assert stopped.status is None
    done = resume(stopped.child, sent)
    if sent == signal.SIGINT:
        assert (done.status, done.out, done.err) == (
            INTERRUPTED,
            "",
            "minwise: interrupted; run the same command again to continue\n",
        )
    assert done.status != OK
    assert count(folder) == 100
    again = add(folder, "many.parquet", job=Job(constants=small))
    assert again.out == "300 read: 200 added, 100 already present; 300 in news.mw\n"
    assert count(folder) == 300


def test_limit_on_file_size(folder: Path) -> None:
    """`ulimit -f`: one line, an unchanged index, and without the limit the same command succeeds."""
    rows = [{"id": number, "text": text} for number, text in enumerate(documents(2000))]
    write(folder / "many.parquet", rows)
    line = one_line(add(folder, "many.parquet", job=Job(file_bytes=200_000)), INPUT_OUTPUT)
    assert "news.mw" in line
    assert count(folder) == 0
    assert add(folder, "many.parquet").out == "2,000 read: 2,000 added; 2,000 in news.mw\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_index_without_write_permission(filled: Path) -> None:
    (filled / "news.mw").chmod(0o500)
    try:
        assert "news.mw" in one_line(add(filled, "in.jsonl"), INPUT_OUTPUT)
    finally:
        (filled / "news.mw").chmod(0o700)


def test_truncated_file_gives_its_complete_rows(folder: Path) -> None:
    """Rows before the truncation are added; the file is named."""
    rows = json_lines([{"id": number, "text": f"number {number * 7919} of many"} for number in range(9000)])
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(rows, mtime=0)[:-30])
    done = add(folder, "cut.jsonl.gz")
    assert done.status == OK
    assert done.err.startswith("minwise: cut.jsonl.gz: truncated gzip")
    assert "1 files not read to their end" in done.out
    assert 0 < count(folder) < 9000


@pytest.mark.parametrize("format_", ["csv", "parquet", "json"])
def test_standard_input_is_read_in_the_format_that_is_given(folder: Path, format_: str) -> None:
    rows = [{"id": f"s{row}", "text": f"{FERRY} {row}"} for row in range(3)]
    data = json.dumps(rows).encode() if format_ == "json" else write(folder / f"in.{format_}", rows).read_bytes()
    done = execute(folder, "index", "add", "news.mw", "-", "--format", format_, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert done.stdout == b"3 read: 3 added; 3 in news.mw\n"


def test_other_content_on_standard_input_is_one_line(folder: Path) -> None:
    data = write(folder / "in.parquet", ROWS).read_bytes()
    done = execute(folder, "index", "add", "news.mw", "-", stdin=data)
    expected = b"minwise: standard input is a Parquet file; set --format parquet to read it\n"
    assert (done.returncode, done.stdout, done.stderr) == (FAILURE, b"", expected)


def test_repeated_faults_are_counted(folder: Path) -> None:
    """The first 20 of each source are printed."""
    (folder / "bad.jsonl").write_text("no JSON\n" * 1234 + json.dumps({"id": 1, "text": FERRY}) + "\n")
    done = add(folder, "bad.jsonl")
    lines = done.err.splitlines()
    assert len(lines) == 21
    assert lines[19].startswith("minwise: bad.jsonl: row 19: line 20 is not JSON")
    assert lines[20] == "minwise: … and 1,214 more in bad.jsonl; left out"
    assert done.out == "1,235 read: 1 added, 1,234 quarantined; 1 in news.mw\n"


def test_entries_of_a_directory_that_are_not_read_are_counted(folder: Path) -> None:
    write(folder / "data" / "in.jsonl", ROWS)
    (folder / "data" / "_SUCCESS").touch()
    assert "1 entry skipped (marker files of table writers)" in add(folder, "data").out


def test_lines_of_a_text_file_are_added(folder: Path) -> None:
    (folder / "lines.txt").write_text(f"{FERRY}\n\n{TRAIN}\n")
    assert add(folder, "lines.txt", "--format", "lines").out == "2 read: 2 added; 2 in news.mw\n"
