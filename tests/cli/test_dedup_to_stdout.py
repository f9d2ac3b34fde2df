"""`minwise dedup FILES -o -`: kept rows on standard output, the summary on standard error."""

import gzip
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.commands import OK, Done, run
from support.small_corpus import KEPT, ROWS, write

TEXTS = ["one two three four five six", "seven", "One, two, three, four, five, six."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with a corpus of five documents."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


def kept(folder: Path, *inputs: str) -> str:
    """Return what is written to standard output."""
    done = run(folder, "dedup", *inputs, "-o", "-")
    assert done.status == OK, done.err
    assert "documents in" in done.err
    assert "report.html" not in done.err
    return done.out


def test_one_file_of_json_lines_keeps_its_bytes(folder: Path) -> None:
    """They are those of the copy in an output directory, decompressed; nothing else is written."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out").status == OK
    expected = (folder / "out" / "kept" / "in.jsonl").read_text()
    assert kept(folder, "in.jsonl") == expected
    (folder / "in.jsonl.gz").write_bytes(gzip.compress((folder / "in.jsonl").read_bytes()))
    (folder / "in.jsonl").unlink()
    assert kept(folder, "in.jsonl.gz") == expected
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl.gz", "out"]


def test_one_csv_file_keeps_its_header_and_its_records(folder: Path) -> None:
    (folder / "a.csv").write_text('n,text\n1,"a b c d e, f"\n2,"a b c d e, f"\n3,z\n')
    assert kept(folder, "a.csv") == 'n,text\n1,"a b c d e, f"\n3,z\n'


def test_several_files_of_any_format_become_json_lines(folder: Path) -> None:
    """Rows have all their columns; a value that JSON lacks is a string."""
    (folder / "a.csv").write_text("n,text\n1,alone in a table\n")
    (folder / "b.jsonl").write_text('{"text": "alone on a line", "big": 123456789012345678901234567890}\n')
    (folder / "c.json").write_text('[{"text":\n "alone in an array"}]')
    day = date(2026, 11, 17)
    table = pa.table({"text": ["alone in a column", "alone on a line"], "day": [day, day], "raw": [b"x", b"y"]})
    pq.write_table(table, folder / "d.parquet")
    feather.write_feather(pa.table({"text": ["alone in a batch"]}), folder / "e.arrow")
    lines = kept(folder, "a.csv", "b.jsonl", "c.json", "d.parquet", "e.arrow").splitlines()
    assert lines[1] == '{"text": "alone on a line", "big": 123456789012345678901234567890}'
    assert [json.loads(line) for line in (lines[0], *lines[2:])] == [
        {"n": "1", "text": "alone in a table"},
        {"text": "alone in an array"},
        {"text": "alone in a column", "day": "2026-11-17", "raw": "x"},
        {"text": "alone in a batch"},
    ]


def test_one_parquet_file_and_a_folder_of_texts_become_json_lines(folder: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS, "n": [1, 2, 3]}), folder / "a.parquet")
    rows = [json.loads(line) for line in kept(folder, "a.parquet").splitlines()]
    assert rows == [{"text": TEXTS[0], "n": 1}, {"text": "seven", "n": 2}]
    (folder / "texts").mkdir()
    for number, text in enumerate(TEXTS):
        (folder / "texts" / f"{number}.txt").write_text(text)
    rows = [json.loads(line) for line in kept(folder, "texts").splitlines()]
    assert rows == [{"id": "0.txt", "text": TEXTS[0]}, {"id": "1.txt", "text": "seven"}]


def test_baskets_keep_their_lines(folder: Path) -> None:
    (folder / "a.dat").write_text("bread milk\nmilk bread\nbeer\n")
    done = run(folder, "dedup", "a.dat", "--format", "baskets", "--shingle", "set", "-o", "-", "--quiet")
    assert done == Done(OK, "bread milk\nbeer\n", "", done.child)


def test_whole_search_is_used_and_not_the_decision_of_a_stream(folder: Path) -> None:
    """The last of several near-duplicates can be kept, and documents of a reference corpus are not written."""
    (folder / "a.jsonl").write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(TEXTS)))
    done = run(folder, "dedup", "a.jsonl", "-o", "-", "--keep", "last", "--quiet")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [1, 2]
    write(folder / "seven.jsonl", [{"text": "seven"}])
    done = run(folder, "dedup", "a.jsonl", "-o", "-", "--against", "seven.jsonl", "--quiet")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [0]


def test_json_prints_the_report_to_standard_error(folder: Path) -> None:
    done = run(folder, "dedup", "in.jsonl", "-o", "-", "--json")
    printed = json.loads(done.err)
    assert (printed["counts"]["kept"], printed["run"]["output"]) == (len(KEPT), "-")
    assert len(done.out.splitlines()) == len(KEPT)


def test_text_files_of_another_encoding_are_written_as_utf8(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_bytes("the café on the corner".encode("cp1252"))
    (folder / "texts" / "b.txt").write_text("another text", encoding="utf-8")
    rows = [json.loads(line) for line in kept(folder, "texts").splitlines()]
    assert [row["text"] for row in rows] == ["the café on the corner", "another text"]


def test_nothing_kept_is_an_empty_output(folder: Path) -> None:
    done = run(folder, "dedup", "in.jsonl", "-o", "-", "--against", "in.jsonl", "--quiet")
    assert done == Done(OK, "", "", done.child)
