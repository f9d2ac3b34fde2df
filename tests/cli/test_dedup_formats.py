"""`minwise dedup` on every format, compression and kind of faulty file."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, execute, hidden, one_line, run
from support.small_corpus import COMPRESSORS, FAULTS, FERRY, KEPT, ROWS, TABLES, TRAIN, kept_ids, read, report, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory of the command, with a file in it."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


@pytest.mark.parametrize("name", [*TABLES, "in.parquet", "in.arrow", "in.feather", "in.ipc"])
def test_kept_rows_of_every_format_and_compression_are_unchanged(tmp_path: Path, name: str) -> None:
    """All columns, in order; each removed row has the id of the kept row it duplicates."""
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
def test_kept_rows_keep_types_and_column_order(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, ROWS)
    assert run(tmp_path, "dedup", name, "-o", "out").status == OK
    kept = read(tmp_path / "out" / "kept" / name)
    assert [list(row.items()) for row in kept] == [list(row.items()) for row in ROWS if row["id"] in KEPT]


@pytest.mark.parametrize("given", ["texts", "texts/", "texts/*.txt", "texts/**", "."])
def test_kept_text_files_of_a_directory_or_pattern_are_copied(tmp_path: Path, given: str) -> None:
    """Each file is one document."""
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
def test_compressed_text_files_are_documents_and_copied_byte_for_byte(tmp_path: Path, packing: str) -> None:
    for row in ROWS:
        (tmp_path / f"{row['id']}.txt{packing}").write_bytes(COMPRESSORS[packing](row["text"].encode()))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert run(tmp_path, "dedup", *names, "-o", "out").status == OK
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").iterdir()}
    assert kept == {f"{name}.txt{packing}": (tmp_path / f"{name}.txt{packing}").read_bytes() for name in KEPT}


@pytest.mark.parametrize("given", ["corpus", "corpus/*", "corpus/**/*.*", "corpus/[ab].*"])
def test_tables_of_all_formats_in_a_directory_are_read(tmp_path: Path, given: str) -> None:
    """Copies have the relative paths of their inputs."""
    write(tmp_path / "corpus" / "a.jsonl", ROWS[:3])
    write(tmp_path / "corpus" / "b.parquet", ROWS[3:])
    done = run(tmp_path, "dedup", given, "-o", "out")
    assert (done.status, done.err) == (OK, "")
    assert kept_ids(tmp_path, "a.jsonl") == ["d0", "d1"]
    assert kept_ids(tmp_path, "b.parquet") == ["d3"]


def test_standard_input_is_read_as_json_lines(folder: Path) -> None:
    """`minwise dedup - -o out` writes a directory, as with a file."""
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


@pytest.mark.parametrize("format_", ["jsonl", "csv", "tsv", "parquet", "arrow"])
def test_standard_input_is_read_in_the_format_that_is_given(folder: Path, format_: str) -> None:
    """Kept rows are written in the same format, as ``kept/stdin``."""
    data = write(folder / f"in.{format_}", ROWS).read_bytes()
    done = execute(folder, "dedup", "-", "-o", "out", "--quiet", "--format", format_, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert kept_ids(folder, f"stdin.{format_}") == KEPT
    removed = pq.read_table(folder / "out" / "removed.parquet").to_pylist()
    assert [(row["id"], row["source"]) for row in removed] == [("d2", "-"), ("d4", "-")]


@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_an_array_on_standard_input_is_recognised(folder: Path, options: list[str]) -> None:
    data = json.dumps(ROWS, indent=1).encode()
    assert execute(folder, "dedup", "-", "-o", "out", *options, stdin=data).returncode == OK
    assert [row["id"] for row in json.loads((folder / "out" / "kept" / "stdin.json").read_text())] == KEPT


@pytest.mark.parametrize(("format_", "read"), [("lines", 5), ("text", 1)])
def test_texts_on_standard_input_are_lines_or_one_document(folder: Path, format_: str, read: int) -> None:
    data = "".join(f"{row['text']}\n" for row in ROWS).encode()
    done = execute(folder, "dedup", "-", "-o", "out", "--quiet", "--format", format_, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert report(folder)["counts"]["read"] == read
    clusters = pq.read_table(folder / "out" / "clusters.parquet").to_pylist()
    assert [row["id"] for row in clusters] == ([f"-:{row}" for row in range(5)] if read == 5 else ["-"])
    kept = [row["text"] for row in ROWS if row["id"] in KEPT]
    assert (folder / "out" / "kept" / "stdin.txt").read_text().splitlines() == (
        kept if read == 5 else data.decode().splitlines()
    )


@pytest.mark.parametrize("output", ["out", "-"])
@pytest.mark.parametrize(("name", "what"), [("in.parquet", "a Parquet file"), ("in.jsonl.gz", "compressed with gzip")])
def test_other_content_on_standard_input_is_one_line(folder: Path, name: str, what: str, output: str) -> None:
    data = write(folder / name, ROWS).read_bytes()
    done = execute(folder, "dedup", "-", "-o", output, stdin=data)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (FAILURE, b"", 1)
    assert what in done.stderr.decode()


def test_standard_input_that_is_not_json_needs_a_format(folder: Path) -> None:
    done = execute(folder, "dedup", "-", "-o", "out", stdin=b"id,text\n1,a text\n")
    assert (done.returncode, done.stdout) == (FAILURE, b"")
    assert done.stderr.decode() == (
        "minwise: - (standard input) must be JSON lines or a JSON array, "
        "got text that begins with 'id,text'; set --format csv, --format lines or another\n"
    )


@pytest.mark.parametrize("format_", ["csv", "tsv", "json", "lines", "parquet"])
def test_standard_input_in_a_format_is_written_to_standard_output(folder: Path, format_: str) -> None:
    """In the same format, if a stream can have it; otherwise as JSON lines."""
    if format_ in ("json", "lines"):
        text = json.dumps(ROWS) if format_ == "json" else "".join(f"{row['text']}\n" for row in ROWS)
        (folder / f"in.{format_}").write_text(text)
    else:
        write(folder / f"in.{format_}", ROWS)
    data = (folder / f"in.{format_}").read_bytes()
    done = execute(folder, "dedup", "-", "-o", "-", "--quiet", "--format", format_, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    if format_ == "lines":
        assert done.stdout.decode().splitlines() == [row["text"] for row in ROWS if row["id"] in KEPT]
    else:
        copy = folder / ("copy.jsonl" if format_ == "parquet" else f"copy.{format_}")
        copy.write_bytes(done.stdout)
        rows = json.loads(copy.read_text()) if format_ == "json" else read(copy)
        assert [row["id"] for row in rows] == KEPT


def test_lines_of_a_text_file_are_documents(folder: Path) -> None:
    (folder / "lines.txt").write_text("\n".join(row["text"] for row in ROWS))
    done = run(folder, "dedup", "lines.txt", "-o", "out", "--format", "lines")
    assert (done.status, done.err) == (OK, "")
    assert report(folder)["counts"]["read"] == len(ROWS)
    assert report(folder)["inputs"]["read_as"] == [{"how": "one document per line", "files": 1}]
    kept = (folder / "out" / "kept" / "lines.txt").read_text().splitlines()
    assert kept == [row["text"] for row in ROWS if row["id"] in KEPT]
    assert run(folder, "dedup", "lines.txt", "-o", "whole").status == OK
    assert report(folder, "whole")["inputs"]["read_as"] == [
        {"how": "one document per file; format='lines' reads one per line", "files": 1}
    ]


def test_what_is_skipped_in_a_directory_is_counted_in_the_report(folder: Path) -> None:
    for name in ("data/in.jsonl", "data/_SUCCESS", "data/.in.jsonl.crc", "data/.git"):
        write(folder / "data" / "in.jsonl", ROWS) if name.endswith("l") else (folder / name).write_bytes(b"")
    (folder / "data" / "link.jsonl").symlink_to("in.jsonl")
    done = run(folder, "dedup", "data", "-o", "out", "--json")
    assert json.loads(done.out)["inputs"]["skipped"] == {
        "files reached a second time": 1,
        "marker files of table writers": 1,
        "names that begin with a dot": 2,
    }
    assert kept_ids(folder, "in.jsonl") == KEPT


def test_format_applies_to_a_file_of_any_name(folder: Path) -> None:
    (folder / "in.jsonl").rename(folder / "corpus.dump")
    assert run(folder, "dedup", "corpus.dump", "-o", "out", "--format", "jsonl").status == OK
    kept = (folder / "out" / "kept" / "corpus.dump").read_text().splitlines()
    assert [json.loads(line)["id"] for line in kept] == KEPT


@pytest.mark.parametrize("fault", FAULTS)
def test_quarantine_has_source_row_and_reason_of_each_fault(folder: Path, fault: str) -> None:
    """All other rows are deduplicated, and the counts add up."""
    name, content, row, reason = FAULTS[fault]
    (folder / name).write_bytes(content)
    done = run(folder, "dedup", "in.jsonl", name, "-o", "out", "--on-error", "quarantine")
    assert (done.status, done.err) == (OK, "")
    assert "quarantined" in done.out
    *others, found = map(json.loads, (folder / "out" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines())
    rows = [fault["row"] for fault in others] if row is None else [row]
    assert rows == ([0] if fault == "other columns" else [] if row is None else [row])
    assert list(found) == ["source", "row", "reason"]
    assert (found["source"], found["row"]) == (name, row)
    assert reason in found["reason"]
    facts = report(folder)
    assert facts["counts"]["quarantined"] == len(rows)
    assert len(facts["unreadable"]) == (1 if row is None else 0)
    # Documents of bad.* precede those of in.jsonl, so of the same texts these are kept.
    assert facts["counts"]["kept"] == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_on_error_fail_names_file_row_and_reason_and_writes_nothing(folder: Path, fault: str) -> None:
    name, content, row, reason = FAULTS[fault]
    (folder / name).write_bytes(content)
    line = one_line(run(folder, "dedup", "in.jsonl", name, "-o", "out", "--on-error", "fail"), FAILURE)
    assert line.startswith(f"minwise: {name}: ")
    assert reason in line
    assert row is None or f"row {row}" in line
    assert not (folder / "out").exists()
    assert hidden(folder) == []


@pytest.mark.parametrize("fault", ["json", "gzip", "parquet"])
def test_on_error_skip_counts_faults_without_a_quarantine_file(folder: Path, fault: str) -> None:
    name, content, row, _ = FAULTS[fault]
    (folder / name).write_bytes(content)
    assert run(folder, "dedup", "in.jsonl", name, "-o", "out", "--on-error", "skip").status == OK
    assert not (folder / "out" / "quarantine.jsonl").exists()
    assert report(folder)["counts"]["quarantined"] == (0 if row is None else 1)


def test_null_and_invalid_texts_of_a_parquet_file_are_quarantined(tmp_path: Path) -> None:
    texts = pa.array([FERRY.encode(), None, b"\xff\xfe bad", TRAIN.encode()], pa.binary())
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "text": texts}), tmp_path / "in.parquet")
    assert run(tmp_path, "dedup", "in.parquet", "-o", "out").status == OK
    faults = [json.loads(line) for line in (tmp_path / "out" / "quarantine.jsonl").read_text().splitlines()]
    assert [fault["row"] for fault in faults] == [1, 2]
    assert kept_ids(tmp_path, "in.parquet") == [1, 4]
    assert report(tmp_path)["counts"]["quarantined"] == 2


def test_files_may_have_different_columns(tmp_path: Path) -> None:
    """Each copy has the columns and types of its input."""
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


def test_repeated_ids_lose_no_rows_and_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{**row, "id": "same"} for row in ROWS])
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out").status == OK
    facts = report(tmp_path)
    assert (facts["counts"]["kept"], facts["counts"]["removed"]) == (3, 2)
    assert facts["duplicate_ids"] > 0


def test_several_text_columns_are_compared_together(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"a": FERRY, "b": "x"}, {"a": FERRY, "b": TRAIN}, {"a": FERRY, "b": "x"}])
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--text-column", "a", "--text-column", "b").status == OK
    assert [row["b"] for row in read(tmp_path / "out/kept/in.jsonl")] == ["x", TRAIN]
