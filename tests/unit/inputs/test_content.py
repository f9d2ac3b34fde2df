"""Content is recognised by its first bytes, whatever the name of a file says."""

import bz2
import gc
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from support.source_rows import COMPRESS, TEXTS, faults_of, json_lines, texts_of, write

import minwise as mw
from minwise.errors import InputError
from minwise.inputs.content import unusable_content
from minwise.inputs.open_sources import open_files
from minwise.options import FormatName


def zipped(*members: str, first: bytes = b"", stored: bool = False) -> bytes:
    """Return a ZIP archive with these members; the first has this content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            archive.writestr(member, b"x" * 50 if number else first)
    return buffer.getvalue()


def tarred() -> bytes:
    """Return a tar archive with one member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x.txt"))
    return buffer.getvalue()


def database(path: Path) -> bytes:
    """Return an SQLite database with one table."""
    connection = sqlite3.connect(path)
    connection.execute("create table t (x)")
    connection.commit()
    connection.close()
    return path.read_bytes()


LINES = json_lines({"text": TEXTS})
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
CONTENTS = {
    "Excel workbook": zipped("[Content_Types].xml", "xl/workbook.xml"),
    "Word document": zipped("[Content_Types].xml", "word/document.xml"),
    "PowerPoint presentation": zipped("[Content_Types].xml", "ppt/presentation.xml"),
    "OpenDocument text": zipped("mimetype", "content.xml", first=f"{OPEN_DOCUMENT}text".encode(), stored=True),
    "OpenDocument table": zipped("mimetype", "content.xml", first=f"{OPEN_DOCUMENT}spreadsheet".encode(), stored=True),
    "ZIP archive": zipped("a.jsonl", first=LINES),
    "PDF document": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "legacy Office document": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
    "an image": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "tar archive": tarred(),
    "with gzip": gzip.compress(LINES),
    "with zstd": bytes(pa.compress(LINES, codec="zstd", asbytes=True)),
    "with bz2": bz2.compress(LINES),
    "with xz": lzma.compress(LINES),
    "UTF-16; set encoding='utf-16'": b"\xff\xfe",
    "encoding='utf-16-le'": "a text of some length".encode("utf-16-le"),
    "encoding='utf-16-be'": "a text of some length".encode("utf-16-be"),
    "binary data": b"\xcb\x0d\x0d\x0a\x00\x00\x00\x00\xe3\x01\x02",
}


@pytest.mark.parametrize("what", CONTENTS)
@pytest.mark.parametrize("format_", ["jsonl", "csv", "lines", "text"])
def test_other_content_is_one_fault_that_says_what_it_is(what: str, format_: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{format_}"
    path.write_bytes(CONTENTS[what])
    (source,) = open_files([str(path)], format=format_).sources
    (fault,) = faults_of(source)
    assert what in fault.reason
    assert (fault.source, fault.row) == (str(path), 0 if format_ == "text" else None)
    assert "\n" not in fault.reason
    with pytest.raises(InputError, match=f"{path.name}: (row 0: )?is "):
        mw.dedup(str(path), format=cast("FormatName", format_))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the list of open files")
@pytest.mark.parametrize("format_", ["jsonl", "csv", "lines", "text", "parquet", "arrow"])
def test_a_file_of_other_content_is_closed_at_once(format_: str, tmp_path: Path) -> None:
    """Not when the garbage collector finds a cycle: Windows cannot rename an open file."""
    (tmp_path / "x").write_bytes(CONTENTS["an image"])
    gc.disable()
    try:
        (fault,) = faults_of(open_files([str(tmp_path / "x")], format=format_).sources[0])
        opened = {path.resolve() for path in Path("/proc/self/fd").iterdir()}
    finally:
        gc.enable()
    assert "an image" in fault.reason
    assert (tmp_path / "x").resolve() not in opened


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_tables_under_another_suffix_are_named(name: str, tmp_path: Path) -> None:
    """In a format of text, and in the format of another table."""
    path = write(tmp_path / name, TEXTS)
    renamed = path.rename(tmp_path / "x.jsonl")
    suggestion = f"set format='{name[2:]}' to read it"
    (fault,) = faults_of(open_files([str(renamed)]).sources[0])
    assert suggestion in fault.reason
    other = renamed.rename(tmp_path / ("x.arrow" if name == "x.parquet" else "x.parquet"))
    (fault,) = faults_of(open_files([str(other)]).sources[0])
    assert fault.reason.startswith("is not a")
    assert suggestion in fault.reason
    assert texts_of(open_files([str(other)], format=name[2:]).sources[0]) == TEXTS


def test_an_sqlite_database_is_named(tmp_path: Path) -> None:
    assert "SQLite database" in str(unusable_content(database(tmp_path / "x.db")))


@pytest.mark.parametrize("content", [CONTENTS["Excel workbook"], b"id,text\n1,x\n"])
def test_a_parquet_file_that_is_none_says_what_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    (fault,) = faults_of(open_files([str(path)]).sources[0])
    found = "is an Excel workbook (.xlsx); save it as CSV first"
    expected = found if content.startswith(b"PK") else "begins with 'id,text\\n1,x\\n'; check its format"
    assert fault.reason == f"is not a Parquet file: it {expected}"


def test_a_compressed_parquet_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", TEXTS)
    compressed = tmp_path / "x.parquet.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    (fault,) = faults_of(open_files([str(compressed)]).sources[0])
    assert fault.reason == "is a Parquet file compressed with gzip, which cannot be read; decompress it first"


def test_a_name_that_promises_gzip_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(LINES)
    (fault,) = faults_of(open_files([str(path)]).sources[0])
    assert fault.reason == "is not compressed with gzip, although its name ends in .gz; rename it"


@pytest.mark.parametrize("suffix", COMPRESS)
def test_text_stays_text(suffix: str, tmp_path: Path) -> None:
    """Also with a NUL, in Latin-1, and if a chunk ends within a character."""
    for number, text in enumerate([b"with a \0 in it", "é".encode("latin-1"), "é".encode() * 5000, b"PKzip", b"\xff"]):
        path = tmp_path / f"{number}.txt{suffix}"
        path.write_bytes(COMPRESS[suffix](text))
        (source,) = open_files([str(path)]).sources
        assert faults_of(source) == []


def test_an_image_in_a_source_tree_is_one_unusable_document(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(CONTENTS["an image"])
    for number in range(3):
        (tmp_path / f"{number}.py").write_text(f"the same source in every file, except for {number}")
    with pytest.raises(InputError, match=r"logo\.png: row 0: is an image; only texts can be compared; set on_error="):
        mw.dedup(str(tmp_path))
    report = mw.dedup(str(tmp_path), on_error="quarantine").report
    assert (report["counts"]["read"], report["counts"]["quarantined"]) == (4, 1)
