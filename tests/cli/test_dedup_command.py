"""`minwise dedup` as a user runs it: every format and fault, every option, what is printed where, and exit codes."""

import bz2
import csv
import gzip
import io
import json
import os
import pty
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reliability.commands import FAILURE, INPUT_OUTPUT, MINWISE, OK, USAGE, Done, digest, execute, hidden, one_line, run

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TRAIN = "a train crosses the high bridge while snow falls on the roofs of the villages along the frozen river"
# In document order: kept, kept, removed for the first (a copy but for its case), kept, removed for the second.
ROWS: list[dict[str, Any]] = [
    {"id": "d0", "text": FERRY, "year": 1990, "note": "first"},
    {"id": "d1", "text": TRAIN, "year": 1991, "note": 'with "quotes", commas'},
    {"id": "d2", "text": FERRY.upper(), "year": 2001, "note": ""},
    {"id": "d3", "text": "something else entirely, of which there is only one", "year": 1970, "note": "ünïcödé"},
    {"id": "d4", "text": f"{TRAIN} {TRAIN.split()[0]}", "year": 1980, "note": "near"},
]
KEPT = ["d0", "d1", "d3"]


def zstd(data: bytes) -> bytes:
    """A frame as the zstd tool writes it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}


def plain(path: Path) -> bytes:
    """The bytes of a file, decompressed."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read())


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def delimited(rows: list[dict[str, Any]], delimiter: str) -> bytes:
    """Rows as CSV or TSV."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows in the format and compression that a name tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = path.name.split(".")
    form, compression = parts[1], "." + parts[2] if len(parts) > 2 else ""
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form in ("arrow", "feather", "ipc"):
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        data = json_lines(rows) if form == "jsonl" else delimited(rows, "\t" if form == "tsv" else ",")
        path.write_bytes(COMPRESSORS[compression](data))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of such a file; those of CSV as strings."""
    form = path.name.split(".")[1]
    if form == "parquet":
        return list(pq.read_table(path).to_pylist())
    if form in ("arrow", "feather", "ipc"):
        with pa.OSFile(str(path)) as file:
            return list(pa.ipc.open_file(file).read_all().to_pylist())
    text = plain(path).decode()
    if form == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if form == "tsv" else ","))


def report(folder: Path, output: str = "out") -> dict[str, Any]:
    """The report of a run, whose counts add up."""
    found = dict(json.loads((folder / output / "report.json").read_text(encoding="utf-8")))
    counts = found["counts"]
    assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"]
    assert counts["read"] == sum(row["rows"] for row in found["sources"] if not row.get("against"))
    assert counts["removed"] == pq.read_metadata(folder / output / "removed.parquet").num_rows
    assert counts["documents"] == pq.read_metadata(folder / output / "clusters.parquet").num_rows
    return found


def kept_ids(folder: Path, name: str, output: str = "out") -> list[Any]:
    """The ids of the kept rows of a file."""
    return [row["id"] for row in read(folder / output / "kept" / name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are and the command runs."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


TABLES = [f"in.{form}{packing}" for form in ("jsonl", "csv", "tsv") for packing in COMPRESSORS]


@pytest.mark.parametrize("name", [*TABLES, "in.parquet", "in.arrow", "in.feather", "in.ipc"])
def test_every_format_and_compression(tmp_path: Path, name: str) -> None:
    """Kept rows come in the format they came in, with all columns, in order; removed ones name their witness."""
    write(tmp_path / "corpus" / name, ROWS)
    rows = read(tmp_path / "corpus" / name)
    done = run(tmp_path, "dedup", f"corpus/{name}", "-o", "out")
    assert (done.status, done.err) == (OK, "")
    assert read(tmp_path / "out" / "kept" / name) == [row for row in rows if row["id"] in KEPT]
    removed = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    assert [(row["id"], row["row"], row["kept_id"], row["kept_row"]) for row in removed] == [
        ("d2", 2, "d0", 0),
        ("d4", 4, "d1", 1),
    ]
    assert {row["source"] for row in removed} == {row["kept_source"] for row in removed} == {f"corpus/{name}"}
    assert removed[0]["similarity"] == 1.0
    assert 0.8 <= removed[1]["similarity"] < 1.0
    clusters = pq.read_table(tmp_path / "out" / "clusters.parquet").to_pylist()
    assert [(row["id"], row["cluster"], row["size"]) for row in clusters] == [
        ("d0", "d0", 2), ("d1", "d1", 2), ("d2", "d0", 2), ("d3", "d3", 1), ("d4", "d1", 2),
    ]  # fmt: skip
    counts = report(tmp_path)["counts"]
    assert (counts["kept"], counts["removed"], counts["removed_identical"], counts["quarantined"]) == (3, 2, 1, 0)
    assert not (tmp_path / "out" / "quarantine.jsonl").exists()


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet", "in.arrow"])
def test_kept_rows_keep_their_types(tmp_path: Path, name: str) -> None:
    """Numbers stay numbers, and the columns stay in order."""
    write(tmp_path / name, ROWS)
    assert run(tmp_path, "dedup", name, "-o", "out").status == OK
    kept = read(tmp_path / "out" / "kept" / name)
    assert [list(row.items()) for row in kept] == [list(row.items()) for row in ROWS if row["id"] in KEPT]


@pytest.mark.parametrize("given", ["texts", "texts/", "texts/*.txt", "texts/**", "."])
def test_a_directory_of_texts(tmp_path: Path, given: str) -> None:
    """A document per file, found in the directory or by a pattern; kept files are copied byte for byte."""
    texts = tmp_path / "corpus" / "texts"
    texts.mkdir(parents=True)
    for row in ROWS:
        (texts / f"{row['id']}.txt").write_text(row["text"])
    done = run(tmp_path / "corpus", "dedup", given, "-o", str(tmp_path / "out"))
    assert (done.status, done.err) == (OK, "")
    kept = {path.name: path.read_text() for path in (tmp_path / "out" / "kept").rglob("*.txt")}
    assert kept == {f"{row['id']}.txt": row["text"] for row in ROWS if row["id"] in KEPT}
    assert report(tmp_path)["counts"]["read"] == 5


@pytest.mark.parametrize("packing", [".gz", ".bz2", ".zst"])
def test_compressed_texts(tmp_path: Path, packing: str) -> None:
    """Are documents too, and copied as they are."""
    for row in ROWS:
        (tmp_path / f"{row['id']}.txt{packing}").write_bytes(COMPRESSORS[packing](row["text"].encode()))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert run(tmp_path, "dedup", *names, "-o", "out").status == OK
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").iterdir()}
    assert kept == {f"{name}.txt{packing}": (tmp_path / f"{name}.txt{packing}").read_bytes() for name in KEPT}


@pytest.mark.parametrize("given", ["corpus", "corpus/*", "corpus/**/*.*", "corpus/[ab].*"])
def test_a_directory_of_tables(tmp_path: Path, given: str) -> None:
    """Every table in it, whatever its format; the copies lie as the originals do."""
    write(tmp_path / "corpus" / "a.jsonl", ROWS[:3])
    write(tmp_path / "corpus" / "b.parquet", ROWS[3:])
    done = run(tmp_path, "dedup", given, "-o", "out")
    assert (done.status, done.err) == (OK, "")
    assert kept_ids(tmp_path, "a.jsonl") == ["d0", "d1"]
    assert kept_ids(tmp_path, "b.parquet") == ["d3"]


def test_standard_input_as_a_file(folder: Path) -> None:
    """`minwise dedup - -o out` reads JSON lines and writes a directory, as it does with a file."""
    done = execute(folder, "dedup", "-", "-o", "out", "--json", stdin=(folder / "in.jsonl").read_bytes())
    assert (done.returncode, done.stderr) == (OK, b"")
    assert json.loads(done.stdout)["counts"]["kept"] == 3
    kept = [
        line
        for path in (folder / "out" / "kept").rglob("*")
        if path.is_file()
        for line in path.read_text().splitlines()
    ]
    assert [json.loads(line)["id"] for line in kept] == KEPT


def test_a_format_by_option(folder: Path) -> None:
    """For files whose names do not tell."""
    (folder / "in.jsonl").rename(folder / "corpus.dump")
    assert run(folder, "dedup", "corpus.dump", "-o", "out", "--format", "jsonl").status == OK
    kept = (folder / "out" / "kept" / "corpus.dump").read_text().splitlines()
    assert [json.loads(line)["id"] for line in kept] == KEPT


# Name, content of a file whose other rows are good, and the row and reason of what can not be read.
GOOD = json_lines(ROWS[:2])
FAULTS: dict[str, tuple[str, bytes, int | None, str]] = {
    "null": ("bad.jsonl", GOOD + b'{"id": "x", "text": null}\n', 2, "text is null"),
    "number": ("bad.jsonl", GOOD + b'{"id": "x", "text": 7}\n', 2, "text must be a string, got int"),
    "no column": ("bad.jsonl", GOOD + b'{"id": "x"}\n', 2, "has no column 'text'"),
    "utf-8": ("bad.jsonl", GOOD + b'{"id": "x", "text": "\xff\xfe"}\n', 2, "not valid UTF-8"),
    "json": ("bad.jsonl", b"{oops\n" + GOOD, 0, "line 1 is not JSON"),
    "list": ("bad.jsonl", GOOD + b"[1]\n", 2, "must be a JSON object, got list"),
    "csv utf-8": ("bad.csv", delimited(ROWS[:2], ",") + b"x,\xff\xfe,1,\n", 2, "not valid UTF-8"),
    "gzip": ("bad.jsonl.gz", gzip.compress(GOOD * 3000)[:-20], None, "truncated gzip"),
    "parquet": ("bad.parquet", b"PAR1 this is no Parquet file PAR1", None, ""),
    "empty parquet": ("bad.parquet", b"", None, ""),
    "other columns": ("bad.csv", b"name,body\nx,y\n", None, "has no column 'text'; its columns are: name, body"),
    "text": ("bad.txt", b"good \xff\xfe", 0, "not valid UTF-8"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_quarantine(folder: Path, fault: str) -> None:
    """Source, row and reason of each; everything else is deduplicated, and the counts add up."""
    name, content, row, reason = FAULTS[fault]
    (folder / name).write_bytes(content)
    done = run(folder, "dedup", "in.jsonl", name, "-o", "out")
    assert (done.status, done.err) == (OK, "")
    assert "quarantined" in done.out
    (line,) = (folder / "out" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads(line)
    assert list(found) == ["source", "row", "reason"]
    assert (found["source"], found["row"]) == (name, row)
    assert reason in found["reason"]
    facts = report(folder)
    assert facts["counts"]["quarantined"] == (0 if row is None else 1)
    assert len(facts["unreadable"]) == (1 if row is None else 0)
    # Documents of bad.* precede those of in.jsonl, so of the same texts these are kept.
    assert facts["counts"]["kept"] == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_failing_on_an_error(folder: Path, fault: str) -> None:
    """`--on-error fail`: one line with the file, the row and the reason, and nothing is written."""
    name, content, row, reason = FAULTS[fault]
    (folder / name).write_bytes(content)
    line = one_line(run(folder, "dedup", "in.jsonl", name, "-o", "out", "--on-error", "fail"), FAILURE)
    assert line.startswith(f"minwise: {name}: ")
    assert reason in line
    assert row is None or f"row {row}" in line
    assert not (folder / "out").exists()
    assert hidden(folder) == []


@pytest.mark.parametrize("fault", ["json", "gzip", "parquet"])
def test_skipping_errors(folder: Path, fault: str) -> None:
    """`--on-error skip`: no quarantine.jsonl, but the counts still tell."""
    name, content, row, _ = FAULTS[fault]
    (folder / name).write_bytes(content)
    assert run(folder, "dedup", "in.jsonl", name, "-o", "out", "--on-error", "skip").status == OK
    assert not (folder / "out" / "quarantine.jsonl").exists()
    assert report(folder)["counts"]["quarantined"] == (0 if row is None else 1)


def test_faults_in_tables_with_types(tmp_path: Path) -> None:
    """Null texts and bytes that are no text, in Parquet; the rows around them are kept."""
    texts = pa.array([FERRY.encode(), None, b"\xff\xfe bad", TRAIN.encode()], pa.binary())
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "text": texts}), tmp_path / "in.parquet")
    assert run(tmp_path, "dedup", "in.parquet", "-o", "out").status == OK
    faults = [json.loads(line) for line in (tmp_path / "out" / "quarantine.jsonl").read_text().splitlines()]
    assert [fault["row"] for fault in faults] == [1, 2]
    assert kept_ids(tmp_path, "in.parquet") == [1, 4]
    assert report(tmp_path)["counts"]["quarantined"] == 2


def test_files_with_other_columns(tmp_path: Path) -> None:
    """Files need only share what is read; each keeps its own columns and types."""
    write(tmp_path / "a.jsonl", ROWS[:2])
    write(tmp_path / "b.parquet", [{"text": row["text"], "id": number} for number, row in enumerate(ROWS[2:])])
    write(tmp_path / "c.csv", [{"author": "x", "text": FERRY}, {"author": "y", "text": "three new words"}])
    done = run(tmp_path, "dedup", "c.csv", "b.parquet", "a.jsonl", "-o", "out")
    assert (done.status, done.err) == (OK, "")
    assert kept_ids(tmp_path, "a.jsonl") == ["d0", "d1"]
    assert read(tmp_path / "out/kept/b.parquet") == [{"text": ROWS[3]["text"], "id": 1}]
    assert read(tmp_path / "out/kept/c.csv") == [{"author": "y", "text": "three new words"}]
    removed = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    assert [row["id"] for row in removed] == ["0", "2", "c.csv:0"]


def test_ids_twice_lose_nothing(tmp_path: Path) -> None:
    """Rows are told apart by source and row; the report says how many ids were there before."""
    write(tmp_path / "in.jsonl", [{**row, "id": "same"} for row in ROWS])
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out").status == OK
    facts = report(tmp_path)
    assert (facts["counts"]["kept"], facts["counts"]["removed"]) == (3, 2)
    assert facts["duplicate_ids"] > 0


def test_several_text_columns(tmp_path: Path) -> None:
    """Are joined; what differs in the second is not the same."""
    write(tmp_path / "in.jsonl", [{"a": FERRY, "b": "x"}, {"a": FERRY, "b": TRAIN}, {"a": FERRY, "b": "x"}])
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--text-column", "a", "--text-column", "b").status == OK
    assert [row["b"] for row in read(tmp_path / "out/kept/in.jsonl")] == ["x", TRAIN]


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
    ("--shingle", "set", "shingle"),
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
    ("--max-bucket", "3", "max_bucket"),
    ("--max-bucket", "x", "--max-bucket"),
    ("--text-column", "", "text_column"),
    ("--id-column", "", "id_column"),
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
        ("e.jsonl.gz", gzip.compress(b"")),
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
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [MINWISE, "dedup", "in.jsonl", "-o", "out", *options],
            cwd=folder, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
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
