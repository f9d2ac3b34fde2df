"""Dialects of text files: delimiter, encoding and header are detected from the first bytes, said and kept in copies."""

import csv
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source_rows import COMPRESS, faults_of, ids_of, texts_of

from minwise.errors import ConfigError
from minwise.inputs import files
from minwise.inputs.baskets import BasketFile
from minwise.inputs.delimited import DelimitedFile, detect_delimiter
from minwise.inputs.files import File, TextFileSource
from minwise.inputs.json_array import JsonArrayFile
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import Columns, Source, TextSettings, UnreadableError
from minwise.inputs.text_files import LinesFile, TextFiles

DELIMITERS = [",", ";", "\t", "|"]
FIELDS = st.text(st.sampled_from('ab ",;|\t\né港'), max_size=6)
NAMES = ["id", "text", "the rest"]


def table(rows: list[list[str]], delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    """Return a table as the csv module writes it."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return buffer.getvalue()


def source(path: Path, data: bytes, usual: str = ",") -> DelimitedFile:
    """Return the source of a table with these bytes."""
    path.write_bytes(data)
    return DelimitedFile(File(str(path)), usual)


def copy_all(file: Source, rows: int, folder: Path) -> bytes:
    """Return the copy of all rows."""
    assert file.copy_kept(np.ones(rows, dtype=np.bool_), folder / "out", str(folder)) == rows
    (path,) = file.paths()
    return b"".join(File(str(folder / "out" / Path(path).name)).stored_chunks())


@given(
    rows=st.lists(st.lists(FIELDS, min_size=3, max_size=3), max_size=6),
    delimiter=st.sampled_from(DELIMITERS),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    usual=st.sampled_from([",", "\t"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    chunk=st.integers(1, 40),
)
def test_tables_of_every_dialect_are_read_back_equal_and_copied_byte_for_byte(
    rows: list[list[str]],
    delimiter: str,
    quoting: int,
    usual: str,
    encoding: str,
    chunk: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    data = table([NAMES, *rows], delimiter, quoting).encode(encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", chunk)
        file = source(path, data, usual)
        assert faults_of(file) == []
        assert texts_of(file) == [row[1] for row in rows]
        assert ids_of(file) == [row[0] or None for row in rows]
        separated = f"{'tab' if delimiter == chr(9) else f'`{delimiter}`'}-separated" if delimiter != usual else ""
        assert file.reading() == (", ".join(filter(None, [separated, "utf-16" * (encoding == "utf-16")])) or None)
        assert copy_all(file, len(rows), path.parent) == data


@given(
    names=st.lists(FIELDS.filter(lambda name: "\n" not in name), min_size=2, max_size=3, unique_by=str.strip),
    rows=st.lists(st.lists(FIELDS, min_size=3, max_size=3), max_size=4),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_quotes_around_every_field_decide_whatever_the_names_hold(
    names: list[str], rows: list[list[str]], delimiter: str
) -> None:
    data = table([names, *(row[: len(names)] for row in rows)], delimiter, csv.QUOTE_ALL)
    assert detect_delimiter(data.encode(), ",", complete=True) == delimiter


@pytest.mark.parametrize(
    ("data", "usual", "expected"),
    [
        ("id,text\n1,a;b\n2,c|d\n", ",", ","),
        ("text\na, b\n", ",", ","),
        ("text\na; b\n", ",", ","),
        ("", ",", ","),
        ("", "\t", "\t"),
        ("id;text;note, remark\n1;a, b, c;d\n2;e;f\n", ",", ";"),
        ("id\ttext, more\n1\ta\n2\tb, c, d\n", ",", "\t"),
        ("id,text,a|b\n1,x,1|2\n2,y,3|4\n", ",", ","),
        ("\n\n id ; text \n1;a\n", ",", ";"),
        ("id;text\n1;a\n", "\t", ";"),
    ],
)
def test_the_delimiter_divides_all_records_like_the_header(data: str, usual: str, expected: str) -> None:
    assert detect_delimiter(data.encode(), usual, complete=True) == expected


@pytest.mark.parametrize(
    ("data", "usual"),
    [("id;text, more\n1;a, b\n", ","), ("a;b|c\n1;2|3\n", ","), ("a,b;c;d\n1,2;3;4\n", ","), ("a,b;c\n", ",")],
)
def test_two_plausible_delimiters_are_an_error_that_names_both(data: str, usual: str, tmp_path: Path) -> None:
    file = source(tmp_path / "x.csv", data.encode(), usual)
    (fault,) = faults_of(file)
    assert fault.row is None
    assert fault.reason.startswith("has a header that 2 delimiters may divide; set delimiter='")
    assert file.reading() is None
    decided = DelimitedFile(file.file, ",", delimiter=";")
    assert next(decided._records()).fields == data.partition("\n")[0].split(";")


def test_a_cut_record_does_not_count(tmp_path: Path) -> None:
    """The sample of a large file ends within a record."""
    rows = "".join(f"{number};a, b, {'c, ' * (number % 3)}\n" for number in range(100))
    head = ("id;text, or not\n" + rows).encode()
    for end in range(200, 260):
        assert detect_delimiter(head[:end], ",", complete=False) == ";"


def test_detection_is_the_same_in_another_process(tmp_path: Path) -> None:
    """Sources are sent to workers before or after they were read."""
    file = source(tmp_path / "x.csv", "id;text\n1;Größe\n".encode("cp1252"))
    fresh = pickle.loads(pickle.dumps(file))
    assert file.reading() == "`;`-separated, cp1252"
    known = pickle.loads(pickle.dumps(file))
    assert texts_of(fresh) == texts_of(known) == texts_of(file) == ["Größe"]
    assert fresh.reading() == known.reading() == file.reading()


def test_an_ordinary_table_is_not_worth_a_word(tmp_path: Path) -> None:
    assert source(tmp_path / "x.csv", b"id,text\n1,a\n").reading() is None
    assert source(tmp_path / "x.tsv", b"id\ttext\n1\ta\n", "\t").reading() is None


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "utf-8-sig"])
def test_kept_rows_are_written_in_the_encoding_of_the_input(encoding: str, suffix: str, tmp_path: Path) -> None:
    """With one byte order mark, also where the first row is removed."""
    mark = "\ufeff".encode(encoding) if encoding == "utf-16-be" else b""
    header, *rows = ['id;"text"\r\n', "1;Größe für Äpfel\r\n", '2;"l\'été\n à la gare"\r\n', "3;Öl\r\n"]
    data = mark + "".join([header, *rows]).encode(encoding)
    file = source(tmp_path / f"x.csv{suffix}", COMPRESS[suffix](data))
    assert texts_of(file) == ["Größe für Äpfel", "l'été\n à la gare", "Öl"]
    file.copy_kept(np.array([False, True, True]), tmp_path / "out", str(tmp_path))
    copy = b"".join(File(str(tmp_path / "out" / f"x.csv{suffix}")).stored_chunks())
    assert copy == mark + "".join([header, *rows[1:]]).encode(encoding)


def baskets(file: File) -> BasketFile:
    """Return a file of sets."""
    return BasketFile(file, named=False)


LINES: list[tuple[Callable[[File], TextFileSource], str]] = [
    (JsonLinesFile, '{"text":"Größe"}\n{"text":"été"}\n{"text":"Öl"}\n'),
    (LinesFile, "Größe\nl'été\nÖl\n"),
    (baskets, "Größe Öl\nl'été\nÖl\n"),
]


@pytest.mark.parametrize(("kind", "text"), LINES)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "cp850"])
def test_lines_are_copied_in_their_encoding(
    kind: Callable[[File], TextFileSource], text: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.lines"
    path.write_bytes(text.encode(encoding))
    file = kind(File(str(path)))
    TextSettings(encoding=encoding).apply([file])
    mark = "\ufeff".encode("utf-16-le") if encoding == "utf-16" else b""
    codec = "utf-16-le" if encoding == "utf-16" else encoding
    file.copy_kept(np.array([False, True, True]), tmp_path / "out", str(tmp_path))
    kept = "".join(text.splitlines(keepends=True)[1:])
    assert (tmp_path / "out" / "x.lines").read_bytes() == mark + kept.encode(codec)
    assert str(file.reading()).endswith(encoding)


def test_json_is_utf8_unless_it_has_a_mark_or_the_user_decides(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes('["Größe", "été"]'.encode("cp1252"))
    file = JsonArrayFile(File(str(path)))
    assert [fault.reason[:28] for fault in faults_of(file)] == [f"element {row} is not valid UTF-8" for row in (1, 2)]
    TextSettings(encoding="latin-1").apply([decided := JsonArrayFile(File(str(path)))])
    assert (texts_of(decided), decided.reading()) == (["Größe", "été"], "latin-1")
    path.write_bytes('["Größe", "été"]'.encode("utf-16"))
    (marked,) = open_files([str(path)]).sources
    assert (texts_of(marked), marked.reading()) == (["Größe", "été"], "utf-16")
    assert copy_all(marked, 2, tmp_path) == '[\n"Größe",\n"été"\n]\n'.encode("utf-16")


def test_loose_files_are_decoded_one_by_one_and_copied_unchanged(tmp_path: Path) -> None:
    contents = ["Größe".encode(), "l'été à la gare".encode("cp1252"), "паром".encode("utf-16"), b"\xff \xfe"]
    paths = [tmp_path / f"{number}.txt" for number in range(4)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    loose = TextFiles([File(str(path)) for path in paths], [path.name for path in paths])
    (batch,) = loose.batches(Columns())
    assert batch.values.to_pylist() == [
        *(text.encode() for text in ("Größe", "l'été à la gare", "паром")),
        b"\xff \xfe",
    ]
    loose.copy_kept(np.ones(4, dtype=np.bool_), tmp_path / "out", str(tmp_path))
    assert [(tmp_path / "out" / path.name).read_bytes() for path in paths] == contents
    TextSettings(encoding="cp1251").apply([russian := TextFiles([File(str(tmp_path / "r.txt"))], ["r"])])
    (tmp_path / "r.txt").write_bytes("паром".encode("cp1251"))
    assert texts_of(russian) == ["паром"]


def test_an_undecidable_encoding_is_a_fault_of_the_file(tmp_path: Path) -> None:
    data = "id,text\n1,Паром уходит в шесть часов утра\n".encode("cp1251")
    file = source(tmp_path / "x.csv", data)
    (fault,) = faults_of(file)
    assert fault.row is None
    assert fault.reason.startswith("is neither UTF-8 nor cp1252 from byte 10 on; name its encoding, such as encoding=")
    decided = DelimitedFile(file.file, ",", encoding="cp1251")
    assert texts_of(decided) == ["Паром уходит в шесть часов утра"]
    assert copy_all(decided, 1, tmp_path) == data


def test_utf16_without_a_mark_is_a_fault_that_names_the_encoding(tmp_path: Path) -> None:
    data = "id,text\n1,ferries\n"
    for encoding in ("utf-16-le", "utf-16-be"):
        file = source(tmp_path / "x.csv", data.encode(encoding))
        assert f"set encoding='{encoding}'" in faults_of(file)[0].reason
        decided = DelimitedFile(file.file, ",", encoding=encoding)
        assert texts_of(decided) == ["ferries"]
        assert copy_all(decided, 1, tmp_path) == data.encode(encoding)


def test_text_that_leaves_its_encoding_ends_there(tmp_path: Path) -> None:
    data = "text\nferries\nboats\n".encode("utf-16") + b"\x00\xdc"
    file = source(tmp_path / "x.csv", data)
    TextSettings(encoding="utf-16").apply([file])
    assert texts_of(file) == ["ferries", "boats"]
    assert faults_of(file)[0].reason == "is not valid utf-16 at byte 40; name its encoding, such as encoding='cp1250'"


@pytest.mark.parametrize("header", ['id, "text" ,note', " id ,\ttext ,note", '"id","text ", note', "id,\xa0text,note"])
def test_blanks_and_quotes_around_names_are_not_part_of_them(header: str, tmp_path: Path) -> None:
    file = source(tmp_path / "x.csv", f"{header}\n1, a ,b\n".encode())
    assert texts_of(file) == [" a "]
    assert ids_of(file) == ["1"]


def test_an_unnamed_column_does_no_harm(tmp_path: Path) -> None:
    """As pandas writes the index of a data frame."""
    assert texts_of(source(tmp_path / "x.csv", b",text\n0,a\n1,b\n")) == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("1,the ferry leaves\n2,the train leaves\n", "has no header: '1' in its first line is no name"),
        (f"{'the ferry leaves ' * 8},x\n", "has no header: 'the ferry leaves the ferry"),
        (",,\n1,2,3\n", "has no header: all names in its first line are empty"),
        ("text,note,text\na,b,c\n", "has more than one column 'text'"),
        ("", "has no header: it is empty"),
    ],
)
def test_a_missing_or_ambiguous_header_is_an_error(data: str, reason: str, tmp_path: Path) -> None:
    """The rows below it are counted: each is a fault."""
    faults = faults_of(source(tmp_path / "x.csv", data.encode()))
    assert [fault.row for fault in faults] == [*range(max(0, data.count("\n") - 1)), None]
    assert all(fault.reason.startswith(reason) for fault in faults)


@pytest.mark.parametrize("delimiter", ["", ";;", "é", '"', "\n", 5])
def test_a_delimiter_must_be_one_character(delimiter: object) -> None:
    with pytest.raises(ConfigError, match=r"^delimiter must be one ASCII character, such as ; or tab, got "):
        TextSettings.of(delimiter, None)


def test_settings_that_no_source_has_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a"}\n')
    lines = JsonLinesFile(File(str(tmp_path / "x.jsonl")))
    TextSettings(encoding="utf-8").check_used([lines])
    with pytest.raises(ConfigError, match=r"^delimiter must be left out where no input is CSV or TSV, got ';'"):
        TextSettings(delimiter=";").check_used([lines])


def test_a_damaged_file_is_not_undecidable(tmp_path: Path) -> None:
    """The detection of a truncated gzip file uses what can be read; the reader reports the rest."""
    data = COMPRESS[".gz"](("id;text\n" + "1;Größe und Öl\n" * 3000).encode("cp1252"))
    file = source(tmp_path / "x.csv.gz", data[:-20])
    assert file.reading() == "`;`-separated, cp1252"
    assert texts_of(file)[0] == "Größe und Öl"
    assert faults_of(file)[-1].reason.startswith("truncated gzip")
    with pytest.raises(UnreadableError):
        list(file.chunks())
