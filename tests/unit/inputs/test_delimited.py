"""CSV and TSV: quoted fields, faults, and copies of the unchanged records."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.source_rows import (
    COMPRESS,
    TEXTS,
    delimited,
    faults_of,
    ids_of,
    kept,
    masks,
    plain,
    texts_of,
    values_of,
)

from minwise import _kernel
from minwise.inputs import delimited as delimited_files
from minwise.inputs import files, row_reader
from minwise.inputs.delimited import DelimitedFile
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.files import File
from minwise.inputs.source import Columns, Fault

fields = st.text(st.sampled_from('ab",\n\r\t \ufeff港\x85\u2028'), max_size=6)


def source(path: Path, data: bytes) -> DelimitedFile:
    """Return the source of a file with these bytes, CSV or TSV by its name."""
    path.write_bytes(data)
    return DelimitedFile(File(str(path)), "\t" if ".tsv" in path.name else ",")


def records(data: bytes, delimiter: str) -> list[bytes]:
    """Return the bytes of each record of a file in which every field is quoted."""
    return [record + b'"\r\n' for record in data.split(b'"\r\n')[:-1]]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("mask", range(5))
def test_rows_are_read_and_kept_records_copied_byte_for_byte(suffix: str, form: str, mask: int, tmp_path: Path) -> None:
    """The header first, with the same compression."""
    delimiter = "," if form == "csv" else "\t"
    data = delimited({"id": range(len(TEXTS)), "text": TEXTS}, delimiter)
    file = source(tmp_path / f"x.{form}{suffix}", COMPRESS[suffix](data))
    assert texts_of(file) == texts_of(file, batch_bytes=1) == TEXTS
    assert ids_of(file) == [str(row) for row in range(len(TEXTS))]
    keep = masks(len(TEXTS))[mask]
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    copy = b"".join(File(str(tmp_path / "out" / f"x.{form}{suffix}")).chunks())
    header, *rows = records(data, delimiter)
    assert copy == header + b"".join(kept(rows, keep))


@given(
    rows=st.lists(st.tuples(fields, fields), max_size=8), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
)
@example(rows=[("a\r\nb", '""')], quoting=csv.QUOTE_MINIMAL)
def test_files_of_the_csv_writer_are_read_and_copied(
    rows: list[tuple[str, str]],
    quoting: Literal[0, 1],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A copy of all rows is the same file; a copy of some rows holds these."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=quoting).writerows([("text", "other"), *rows])
    path = tmp_path_factory.getbasetemp() / "any.csv"
    file = source(path, buffer.getvalue().encode())
    assert texts_of(file) == [text for text, _ in rows]
    assert faults_of(file) == []
    file.copy_kept(np.ones(len(rows), dtype=np.bool_), path.parent / "any", str(path.parent))
    copy = path.parent / "any" / "any.csv"
    assert copy.read_bytes() == path.read_bytes()
    file.copy_kept(np.arange(len(rows)) % 2 == 0, path.parent / "any", str(path.parent))
    assert texts_of(DelimitedFile(File(str(copy)), ",")) == [text for text, _ in rows[::2]]


UNCLOSED = "opens a quotation mark that is never closed: expected another one before a delimiter or the end of a line"


def read_line_by_line(data: bytes) -> list[str | None]:
    """Return the first column as the csv module alone reads it, or None for a faulty record.

    A record that the end of the file closes is a fault up to the line on which its last field begins.
    """
    lines, found = io.BytesIO(data).readlines(), list[str | None]()
    while lines:
        fields, used, closed = first_record(lines)
        if not closed:
            used = next(count for count in range(1, used + 1) if len(parse(lines[:count])) == len(fields))
        lines = lines[used:]
        if fields or not closed:
            found.append(fields[0] if len(fields) == 2 and closed else None)
    return found[1:]


def first_record(lines: list[bytes]) -> tuple[list[str], int, bool]:
    """Return the fields of the first record, the number of its lines and whether it can be read to its end."""
    fed: list[bytes] = []

    def feed() -> Iterator[str]:
        for line in [*lines, b""]:
            fed.append(line)
            yield line.decode("latin-1")

    source = feed()
    try:
        fields = next(csv.reader(iter(lambda: next(source), "")))
    except csv.Error:
        return ["unreadable"] * 9, len(fed), True
    return fields, len(fed) - (not fed[-1]), bool(fed[-1])


def parse(lines: list[bytes]) -> list[str]:
    return next(csv.reader(line.decode("latin-1") for line in lines))


@given(
    data=st.text(st.sampled_from('a",\n\r'), max_size=40),
    size=st.integers(1, 20),
    long=st.sampled_from([0, 3, 8, delimited_files.LONG_RECORD]),
)
@example(data='5" disk,x\nb,y\nc,z\n', size=100, long=0)
@example(data='5" disk,x\n"b\nb",y\nc,z\n', size=7, long=100)
def test_malformed_files_are_read_as_by_the_csv_module(
    data: str, size: int, long: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Lines are fed together where they seem to be one record; a wrong guess must not change the result.

    Nor does it matter from which length on the kernel reads a record instead of the csv module.
    """
    encoded = b"text,b\n" + data.encode()
    file = source(tmp_path_factory.getbasetemp() / "mess.csv", encoded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", size)
        patch.setattr(delimited_files, "LONG_RECORD", long)
        assert texts_of(file) == read_line_by_line(encoded)


@given(data=st.text(st.sampled_from('a",;\t\n\r\xff'), max_size=24), delimiter=st.sampled_from(",;\t"))
@example(data='"a""b"c"d,"",,\r\n', delimiter=",")
@example(data='"', delimiter=",")
def test_the_kernel_divides_a_record_as_the_csv_module(data: str, delimiter: str) -> None:
    """It finds the same end and the same fields."""
    encoded = data.encode("latin-1")
    used, end = _kernel.csv_record_end(encoded, 0, ord(delimiter), False)
    lines = io.StringIO(data[:used], newline="\n").readlines()
    if end == delimited_files.LONE_RETURN:
        with pytest.raises(csv.Error):
            list(csv.reader(lines, delimiter=delimiter))
        return
    found = _kernel.csv_fields(encoded[:used], 0, ord(delimiter), 100)
    assert found == [field.encode("latin-1") for field in next(csv.reader(lines, delimiter=delimiter), [])]
    with_another = list(csv.reader([*lines, "x"], delimiter=delimiter))
    assert len(with_another) == bool(lines) + (end == delimited_files.CLOSED)
    assert used == len(data) or (end == delimited_files.CLOSED and data[used - 1] == "\n")


def test_a_long_record_has_limited_fields_and_may_be_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte order mark is not part of it, and a blank line is no record, however long."""
    monkeypatch.setattr(delimited_files, "LONG_RECORD", 4)
    monkeypatch.setattr(delimited_files, "MAX_FIELDS", 3)
    data = b'\xef\xbb\xbf"text",id\n"a ""b""\nc"d,1\n\r\r\r\r\r\n1,2,3\n1,2,3,4\n"e\rf",2\ng\rh,3\n'
    file = source(tmp_path / "x.csv", data)
    assert texts_of(file) == ['a "b"\ncd', None, None, "e\rf", None]
    assert [fault.reason for fault in faults_of(file)] == [
        "has 3 fields where the header has 2",
        "has more than 3 fields",
        "line 8 cannot be read: a carriage return is within a field without quotation marks",
    ]
    assert file.copy_kept(np.ones(5, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 2


def test_a_byte_order_mark_is_copied_but_not_read(tmp_path: Path) -> None:
    """Blank lines are not rows, and the last line needs no line feed."""
    file = source(tmp_path / "x.csv", b'\xef\xbb\xbf"text",id\n\na,1\n\r\nb,2')
    assert texts_of(file) == ["a", "b"]
    file.copy_kept(np.array([False, True]), tmp_path / "out", str(tmp_path))
    assert (tmp_path / "out" / "x.csv").read_bytes() == b'\xef\xbb\xbf"text",id\nb,2'


def test_invalid_utf8_is_passed_on_in_texts_and_rejected_in_ids(tmp_path: Path) -> None:
    """The kernel checks texts, but not ids."""
    file = source(tmp_path / "x.csv", b"text,id\na\xff,1\nb,\xfe\nc,\n")
    (batch,) = file.batches(Columns())
    assert batch.values.to_pylist() == [b"a\xff", None, b"c"]
    assert ids_of(file) == ["1", None, None]
    assert faults_of(file) == [Fault(file.name, 1, "id is not valid UTF-8 at byte 0")]


def test_records_that_cannot_be_used_are_faults(tmp_path: Path) -> None:
    file = source(tmp_path / "x.csv", b'text,id\na,1\nb\nc,3,4\nd\re,5\nf,6\n"g,7\nh,8\n')
    assert texts_of(file) == ["a", None, None, None, "f", None, "h"]
    reasons = {fault.row: fault.reason for fault in faults_of(file)}
    assert list(reasons) == [1, 2, 3, 5]
    assert reasons[1] == "has 1 fields where the header has 2"
    assert reasons[2] == "has 3 fields where the header has 2"
    assert reasons[3].startswith("line 5 cannot be read: new-line character seen in unquoted field")
    assert reasons[5] == f"line 7 {UNCLOSED}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "has no header: it is empty"),
        (b"a,b\n1,22\n", "has no column 'text'; its columns are: a, b; did you mean text_column='b'?"),
        (b"text,text\n1,2\n", "has more than one column 'text'; its columns are: text, text"),
        (b'"text,b\n1,2\n', f"has no header: line 1 {UNCLOSED}"),
    ],
)
def test_an_unusable_header_is_a_fault_of_the_file(data: bytes, reason: str, tmp_path: Path) -> None:
    file = source(tmp_path / "x.csv", data)
    assert faults_of(file)[-1] == Fault(file.name, None, reason)
    assert set(texts_of(file)) <= {None}
    assert file.copy_kept(np.empty(0, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["10", "", "9.5", "x"], [10.0, None, 9.5, None]),
        (["2024-01-01", "3"], ["2024-01-01", "3"]),
        (["nan", "1"], [None, 1.0]),
    ],
)
def test_keep_values_are_numbers_if_the_first_is(values: list[str], expected: list[Any], tmp_path: Path) -> None:
    """So 10 is more than 9."""
    data = "text,rank\n" + "".join(f"x,{value}\n" for value in values)
    assert values_of(source(tmp_path / "x.csv", data.encode()), "rank") == expected


def test_columns_with_unicode_names_are_joined_by_a_line_break(tmp_path: Path) -> None:
    file = source(tmp_path / "x.csv", "título,текст\na,b\n".encode())
    assert texts_of(file, Columns(text=("título", "текст"))) == ["a\nb"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_oversized_record_is_a_fault_and_ends_with_its_quotes(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line or on many, which are skipped without being held."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 30)
    long = b'"' + b"x" * 40 + b'\ny,\n""z",2\n'
    many = b'"' + b"short\n" * 10 + b'",3\n'
    data = b"text,id\na,1\n" + long + b"b,2\n" + many + b"c,3\n" + b"d" * 50 + b",4\ne,5\n"
    file = source(tmp_path / f"x.csv{suffix}", COMPRESS[suffix](data))
    assert texts_of(file) == ["a", None, "b", None, "c", None, "e"]
    assert {fault.reason for fault in faults_of(file)} == {"is longer than 30 bytes"}
    keep = np.array([True, False] * 3 + [True])
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == 4
    copy = b"".join(File(str(tmp_path / "out" / f"x.csv{suffix}")).chunks())
    assert copy == b"text,id\na,1\nb,2\nc,3\ne,5\n"


def test_an_unclosed_quotation_mark_costs_only_its_line(tmp_path: Path) -> None:
    """Reading, counting and copying agree; the line is that of the mark, even if the record begins before it."""
    rows = [b"t%d,%d\n" % (row, row) for row in range(5000)]
    rows[9] = b'"t9,9\n'
    file = source(tmp_path / "x.csv", b"text,id\n" + b"".join(rows))
    texts = texts_of(file)
    assert texts == [None if row == 9 else f"t{row}" for row in range(5000)]
    assert faults_of(file) == [Fault(file.name, 9, f"line 11 {UNCLOSED}")]
    assert file.count_rows() == 5000
    keep = np.array([text is not None for text in texts])
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == 4999
    assert (tmp_path / "out" / "x.csv").read_bytes() == b"text,id\n" + b"".join(rows[:9] + rows[10:])
    later = source(tmp_path / "y.csv", b'text,id\n"first\nline","second\nc,3\nd,4\n')
    assert texts_of(later) == [None, "c", "d"]
    assert faults_of(later)[0].reason == f"line 3 {UNCLOSED}"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("limit", [30, 200, 1 << 20])
def test_an_unclosed_quotation_mark_costs_only_its_line_whatever_follows_it(
    limit: int, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even more bytes than a record may have, which are read again instead of being held."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", limit)
    before, after = b"a,1\n" + b'"b ""quoted""\ntext",2\n', b"".join(b"c%d,3\n" % row for row in range(40))
    marked = b'"one\ntwo","unclosed\n'
    file = source(tmp_path / f"x.csv{suffix}", COMPRESS[suffix](b"text,id\n" + before + marked + after))
    assert texts_of(file) == ["a", 'b "quoted"\ntext', None, *(f"c{row}" for row in range(40))]
    assert [fault.reason for fault in faults_of(file)] == [f"line 6 {UNCLOSED}"]
    assert file.count_rows() == 43


def test_a_field_may_exceed_the_default_limit_of_the_csv_module(tmp_path: Path) -> None:
    """The default limit is 131,072 characters."""
    file = source(tmp_path / "x.csv", b"text\n" + b"x" * 200_000 + b"\n")
    assert texts_of(file) == ["x" * 200_000]


def test_a_truncated_file_yields_its_complete_records_and_a_fault(tmp_path: Path) -> None:
    texts = [str(number) * 9 for number in np.random.default_rng(1).integers(1 << 60, size=5000)]
    packed = COMPRESS[".gz"](delimited({"text": texts}, ","))
    file = source(tmp_path / "x.csv.gz", packed[: len(packed) // 2])
    found = texts_of(file)
    assert 1000 < len(found) < 4000
    assert found == texts[: len(found)]
    assert [fault.row for fault in faults_of(file)] == [None]


def test_batches_without_a_wanted_row_are_left_out(tmp_path: Path) -> None:
    """The others have the kind of keep values that the first rows decided."""
    file = source(tmp_path / "x.csv", b"text,rank\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(50)))
    wanted = np.zeros(50, dtype=np.bool_)
    wanted[30] = True
    (batch,) = file.batches(Columns(values=(ValueColumn("rank"),)), wanted=wanted, batch_bytes=1)
    assert (batch.first, plain(batch.document_values["value:rank"])) == (30, [30.0])
