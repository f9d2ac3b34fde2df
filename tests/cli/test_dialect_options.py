"""`minwise` on tables and texts in other dialects: delimiter, encoding and header are found, said, and kept."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import FAILURE, OK, USAGE, execute, one_line, run
from support.small_corpus import report

import minwise as mw
from minwise.inputs.delimited import DelimitedFile
from minwise.inputs.files import File

ROWS = [
    ("d0", "Die Fähre verlässt früh am Morgen den Hafen, und die Möwen schreien über den Dächern der Stadt"),
    ("d1", "L'été dernier, à la gare, un élève rêvait d'un nid et d'une forêt près de la rivière gelée"),
    ("d2", "Die Fähre verlässt früh am Morgen den Hafen, und die Möwen schreien über den Dächern der Stadt"),
]
KEPT = ROWS[:2]


def table(rows: list[tuple[str, str]], delimiter: str = ";") -> str:
    """Return a table with blanks in its header."""
    return f" id {delimiter}text \r\n" + "".join(f'{id_}{delimiter}"{text}"\r\n' for id_, text in rows)


@pytest.mark.parametrize(
    ("delimiter", "encoding", "said"),
    [
        (";", "cp1252", "`;`-separated, cp1252"),
        ("\t", "utf-16", "tab-separated, utf-16"),
        ("|", "utf-8-sig", "`|`-separated"),
        (",", "cp1252", "cp1252"),
    ],
)
def test_a_table_of_any_dialect_is_deduplicated_and_the_dialect_is_said(
    tmp_path: Path, delimiter: str, encoding: str, said: str
) -> None:
    (tmp_path / "in.csv").write_bytes(table(ROWS, delimiter).encode(encoding))
    done = run(tmp_path, "dedup", "in.csv", "-o", "out")
    assert done.status == OK
    assert f"read as {said}" in done.out
    assert report(tmp_path)["inputs"]["read_as"] == [{"how": said, "files": 1}]
    assert (tmp_path / "out" / "kept" / "in.csv").read_bytes() == table(KEPT, delimiter).encode(encoding)


def test_an_ordinary_table_is_read_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(table(ROWS, ","), encoding="utf-8", newline="")
    done = run(tmp_path, "dedup", "in.csv", "-o", "out")
    assert (done.status, "read as" in done.out) == (OK, False)


def test_undecidable_dialects_are_one_line_and_the_options_decide(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("id;text, or not\n1;one, two\n2;three, four\n", encoding="utf-8")
    (tmp_path / "russian.csv").write_bytes("id,text\n1,Паром уходит в шесть часов утра\n".encode("cp1251"))
    done = run(tmp_path, "dedup", "two.csv", "-o", "out")
    assert one_line(done, FAILURE).endswith(
        "two.csv: has a header that 2 delimiters may divide; set --delimiter , or --delimiter ';'\n"
    )
    done = run(tmp_path, "dedup", "two.csv", "-o", "out", "--delimiter", ";", "--text-column", "text, or not")
    assert done.status == OK
    done = run(tmp_path, "dedup", "russian.csv", "-o", "other")
    assert one_line(done, FAILURE).endswith("from byte 10 on; name its encoding, such as --encoding cp1250\n")
    assert run(tmp_path, "dedup", "russian.csv", "-o", "other", "--encoding", "cp1251").status == OK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delimiter", ";;"], "--delimiter must be one ASCII character, such as ; or tab, got ';;'"),
        (["--delimiter", ";"], "--delimiter must be left out where no input is CSV or TSV, got ';'"),
        (["--encoding", "x"], "--encoding must be that of a text, such as utf-8, cp1252 or utf-16, got 'x'"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one"}\n', encoding="utf-8")
    done = run(tmp_path, "dedup", "in.jsonl", "-o", "out", *options)
    assert one_line(done, USAGE) == f"minwise: {message}\n"


@pytest.mark.parametrize("delimiter", ["tab", r"\t", "\t"])
def test_a_tab_has_three_names(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "in.csv").write_bytes(table(ROWS, "\t").encode())
    assert run(tmp_path, "dedup", "in.csv", "-o", "out", "--delimiter", delimiter).status == OK
    assert report(tmp_path)["counts"]["kept"] == len(KEPT)


def test_a_finished_run_is_restored_and_reported_as_it_was_read(tmp_path: Path) -> None:
    """With the delimiter and the encoding of the options, which detection would not choose."""
    data = "id;text, or not\n" + "".join(f"{id_};Привет {text}\n" for id_, text in (("a", "x, y"), ("b", "x, y")))
    (tmp_path / "in.csv").write_bytes(data.encode("cp1251"))
    options = ["--delimiter", ";", "--encoding", "cp1251", "--text-column", "text, or not", "--shingle", "char:3"]
    assert run(tmp_path, "dedup", "in.csv", "-o", "out", *options).status == OK
    record = json.loads((tmp_path / "out" / "run.json").read_bytes())
    assert (record["delimiter"], record["encoding"]) == (";", "cp1251")
    assert report(tmp_path)["counts"]["removed"] == 1
    assert run(tmp_path, "restore", "out", "--all", "-o", "back").status == OK
    assert (tmp_path / "back" / "kept" / "in.csv").read_bytes() == data.encode("cp1251")
    assert run(tmp_path, "report", "out", "--texts").status in (OK, USAGE)


def test_a_work_directory_belongs_to_one_way_of_reading(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(table(ROWS).encode("cp1252"))
    assert run(tmp_path, "dedup", "in.csv", "-o", "out", "--work", "w").status == OK
    done = run(tmp_path, "dedup", "in.csv", "-o", "other", "--work", "w", "--encoding", "cp850")
    assert "work w belongs to a run with encoding None, this one has 'cp850'" in one_line(done, FAILURE)


def test_an_array_is_deduplicated_and_stays_an_array(tmp_path: Path) -> None:
    rows = [{"id": id_, "text": text} for id_, text in ROWS]
    (tmp_path / "in.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    assert run(tmp_path, "dedup", "in.json", "-o", "out").status == OK
    assert json.loads((tmp_path / "out" / "kept" / "in.json").read_bytes()) == rows[:2]
    (tmp_path / "cut.json").write_bytes((tmp_path / "in.json").read_bytes()[:-40])
    done = run(tmp_path, "dedup", "cut.json", "-o", "cut", "--on-error", "fail")
    assert "cut.json: truncated JSON array: it ends within element 3, before its closing bracket" in one_line(
        done, FAILURE
    )


def test_an_index_reads_dialects_too(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(table(ROWS).encode("cp1252"))
    (tmp_path / "new.csv").write_bytes(table(ROWS[1:2], "|").encode("cp850"))
    assert run(tmp_path, "index", "create", "x.mw", "--store-text").status == OK
    assert run(tmp_path, "index", "add", "x.mw", "in.csv", "--encoding", "cp1252", "--delimiter", ";").status == OK
    done = run(tmp_path, "index", "query", "x.mw", "new.csv", "--encoding", "cp850")
    assert [hit["id"] for hit in json.loads(done.out)["hits"]] == ["d1"]
    done = run(tmp_path, "index", "add", "x.mw", "new.csv", "--unique", "--encoding", "cp850", "--delimiter", "|")
    assert (done.status, json.loads(done.out)["id"]) == (OK, "d1")
    with mw.Index.open(tmp_path / "x.mw", "w") as index, (tmp_path / "s.jsonl").open("w+b") as stream:
        stream.write('{"id": "s", "text": "Möwen über den Dächern der Stadt schreien laut"}\n'.encode("utf-16"))
        stream.seek(0)
        assert index.add_from(stream)["added"] == 1
        stream.seek(0)
        assert index.add_stream(stream, on_duplicate_id="skip", encoding="utf-16")["read"] == 1
        with pytest.raises(mw.MinwiseError, match=r"^delimiter must be left out for JSON lines, got ';'"):
            index.add_from(stream, delimiter=";")


def test_reading_does_not_depend_on_the_size_of_reads(tmp_path: Path) -> None:
    """A table beyond the sample that decides: its later rows are read in the same way."""
    rows = [(str(number), f"Zeile {number} über Größe, Öl und {'sehr lange Wörter ' * 60}") for number in range(1500)]
    path = tmp_path / "in.csv"
    path.write_bytes(table(rows).encode("cp1252"))
    assert path.stat().st_size > 1 << 20
    file = DelimitedFile(File(str(path)), ",")
    assert file.copy_kept(np.ones(len(rows), dtype=np.bool_), tmp_path / "out", str(tmp_path)) == len(rows)
    assert (tmp_path / "out" / "in.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_kept_rows_on_standard_output_keep_their_encoding(tmp_path: Path, encoding: str) -> None:
    """Several inputs become JSON lines, which are UTF-8."""
    (tmp_path / "in.csv").write_bytes(table(ROWS).encode(encoding))
    (tmp_path / "in.txt").write_bytes(ROWS[0][1].encode(encoding))
    done = execute(tmp_path, "dedup", "in.csv", "-o", "-", "--quiet")
    assert done.stdout == table(KEPT).encode(encoding)
    done = execute(tmp_path, "dedup", "in.csv", "in.txt", "-o", "-", "--quiet")
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == [text for _, text in KEPT]


def test_standard_input_has_a_dialect_too(tmp_path: Path) -> None:
    data = table(ROWS, "|").encode("cp850")
    options = ["--format", "csv", "--encoding", "cp850", "--delimiter", "|", "-o"]
    done = execute(tmp_path, "dedup", "-", *options, "out", stdin=data)
    assert (done.returncode, report(tmp_path)["counts"]["kept"]) == (OK, len(KEPT))
    assert (tmp_path / "out" / "kept" / "stdin.csv").read_bytes() == table(KEPT, "|").encode("cp850")
    lines = "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in ROWS).encode("utf-16")
    done = execute(tmp_path, "dedup", "-", "-o", "-", stdin=lines)
    assert b"is encoded as UTF-16" in done.stderr
    done = execute(tmp_path, "dedup", "-", "-o", "-", "--encoding", "utf-16", stdin=lines)
    assert b"--encoding must be None for a stream, got 'utf-16'; give files" in done.stderr
