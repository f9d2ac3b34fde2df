"""JSON lines: rows, faults that name the line, ids without a type, and copies of the unchanged lines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source_rows import COMPRESS, TEXTS, faults_of, ids_of, json_lines, kept, masks, texts_of, values_of

from minwise.inputs import row_reader
from minwise.inputs.files import File
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.source import Columns, Fault


def source(path: Path, data: bytes) -> JsonLinesFile:
    """Return the source of a file with these bytes."""
    path.write_bytes(data)
    return JsonLinesFile(File(str(path)))


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("mask", range(5))
def test_rows_are_read_and_kept_lines_copied_byte_for_byte(suffix: str, mask: int, tmp_path: Path) -> None:
    """With the same compression."""
    data = json_lines({"id": range(len(TEXTS)), "text": TEXTS})
    file = source(tmp_path / f"x.jsonl{suffix}", COMPRESS[suffix](data))
    assert texts_of(file) == texts_of(file, batch_bytes=1) == TEXTS
    assert ids_of(file) == list(range(len(TEXTS)))
    assert file.known_rows() is None
    keep = masks(len(TEXTS))[mask]
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    copy = File(str(tmp_path / "out" / f"x.jsonl{suffix}"))
    assert b"".join(copy.chunks()) == b"".join(kept(data.splitlines(keepends=True), keep))


@given(texts=st.lists(st.text(max_size=8)), escaped=st.booleans(), batch_bytes=st.integers(1, 99))
def test_any_text_is_read_and_copied_unchanged(
    texts: list[str], escaped: bool, batch_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Escaped or not, also with the line separators of Unicode."""
    rows = [json.dumps({"text": text}, ensure_ascii=escaped).encode() for text in texts]
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    file = source(path, b"\n".join(rows))
    assert texts_of(file, batch_bytes=batch_bytes) == texts
    file.copy_kept(np.ones(len(texts), dtype=np.bool_), path.parent / "any", str(path.parent))
    assert (path.parent / "any" / "any.jsonl").read_bytes() == b"".join(row + b"\n" for row in rows)


def test_blank_lines_byte_order_marks_and_carriage_returns_are_not_part_of_rows(tmp_path: Path) -> None:
    """The last line needs no line feed."""
    file = source(tmp_path / "x.jsonl", b'\xef\xbb\xbf{"text":"a"}\r\n\r\n \t\n{"text":"b"}\n\n{"text":"c"}')
    assert texts_of(file) == ["a", "b", "c"]
    file.copy_kept(np.array([True, False, True]), tmp_path / "out", str(tmp_path))
    assert (tmp_path / "out" / "x.jsonl").read_bytes() == b'{"text":"a"}\r\n{"text":"c"}\n'


FAULTS: dict[bytes, str] = {
    b'{"text": "a"': "line 3 is not JSON: unexpected end of data at column 13",
    b'{"text": NaN}': "line 3 is not JSON: unexpected character",
    b'{"text": "a"} {}': "line 3 is not JSON: unexpected content after document",
    b'{"text": "\\ud800"}': "line 3 is not JSON: no low surrogate in string",
    b'{"text": "ab\xff"}': "line 3 is not valid UTF-8 at byte 12",
    b'["text"]': "line 3 must be a JSON object, got list",
    b"3": "line 3 must be a JSON object, got int",
    b"{}": "has no column 'text'",
    b'{"text": null}': "text is null",
    b'{"text": 3}': "text must be a string, got int",
    b'{"text": ["a", 1]}': "text must be a string, got a list with int",
    b'{"text": "a", "id": 0.5}': "id must be a string or a whole number, got float",
    b'{"text": "a", "id": true}': "id must be a string or a whole number, got bool",
    b'{"text": "a", "id": 123456789012345678901}': "id must be a string or a whole number, got float",
}


@pytest.mark.parametrize("line", FAULTS)
def test_a_line_that_cannot_be_used_is_a_fault(line: bytes, tmp_path: Path) -> None:
    """It is row 1, though line 3."""
    file = source(tmp_path / "x.jsonl", b'{"text":"a","id":1}\n\n' + line + b'\n{"text":"b","id":3}\n')
    assert texts_of(file) == ["a", None, "b"]
    (fault,) = faults_of(file)
    assert (fault.source, fault.row) == (file.name, 1)
    assert fault.reason.startswith(FAULTS[line])
    assert ids_of(file)[::2] == [1, 3]


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["1", "null", "-3"], [1, None, -3], pa.int64()),
        (['"a"', "2", "null"], ["a", "2", None], pa.large_string()),
        (["1", "18446744073709551615"], ["1", "18446744073709551615"], pa.large_string()),
    ],
)
def test_ids_are_all_numbers_or_all_strings(values: list[str], expected: list[Any], kind: Any, tmp_path: Path) -> None:  # noqa: ANN401
    data = "\n".join(f'{{"text": "x", "id": {value}, "key": {value}}}' for value in values).encode()
    file = source(tmp_path / "x.jsonl", data)
    for columns in (Columns(), Columns(id="key")):
        assert ids_of(file, columns) == expected
        assert [batch.ids.type for batch in file.batches(columns) if batch.ids is not None] == [kind]


def test_the_first_object_decides_whether_there_are_ids(tmp_path: Path) -> None:
    """Also if its batch is not wanted. A requested id column must be in every row."""
    with_ids = source(tmp_path / "x.jsonl", b'oops\n{"text":"a","id":7}\n{"text":"b"}\n')
    assert ids_of(with_ids) == [None, 7, None]
    wanted = np.array([False, False, True])
    (batch,) = with_ids.batches(Columns(), wanted=wanted, batch_bytes=1)
    assert (batch.first, batch.ids is not None) == (2, True)
    without = source(tmp_path / "y.jsonl", b'{"text":"a"}\n{"text":"b","id":7}\n')
    assert ids_of(without) == []
    assert faults_of(without, Columns(id="id")) == [
        Fault(without.name, 0, "has no column 'id'; its columns are: text (string)")
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", "null", '"x"'], [1.0, 2.5, None, None]),
        (["null", '"2024-01-01"', "3"], [None, "2024-01-01", None]),
        (["null", "null"], [None, None]),
    ],
)
def test_keep_values_have_the_type_of_the_first(values: list[str], expected: list[Any], tmp_path: Path) -> None:
    """Values of another type are null."""
    data = "\n".join(f'{{"text": "x", "rank": {value}}}' for value in values).encode()
    assert values_of(source(tmp_path / "x.jsonl", data), "rank") == expected


def test_columns_are_joined_by_a_line_break(tmp_path: Path) -> None:
    """A missing one is a fault."""
    file = source(tmp_path / "x.jsonl", b'{"a":"1","b":"2"}\n{"a":"1"}\n')
    columns = Columns(text=("a", "b"))
    assert texts_of(file, columns) == ["1\n2", None]
    assert faults_of(file, columns) == [Fault(file.name, 1, "has no column 'b'")]


def test_batches_without_a_wanted_row_are_left_out(tmp_path: Path) -> None:
    file = source(tmp_path / "x.jsonl", json_lines({"text": [str(n) for n in range(100)]}))
    wanted = np.zeros(100, dtype=np.bool_)
    wanted[[10, 40]] = True
    found = [batch.first for batch in file.batches(Columns(), wanted=wanted, batch_bytes=1)]
    assert found == [10, 40]


def test_an_oversized_line_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 30)
    file = source(tmp_path / "x.jsonl", b'{"text":"a"}\n{"text":"' + b"x" * 40 + b'"}\n{"text":"b"}\n')
    assert texts_of(file) == ["a", None, "b"]
    assert faults_of(file) == [Fault(file.name, 1, "is longer than 30 bytes")]


def test_a_truncated_file_yields_its_complete_lines_and_a_fault(tmp_path: Path) -> None:
    """The rows before the fault can be copied."""
    texts = [str(number) * 9 for number in np.random.default_rng(1).integers(1 << 60, size=5000)]
    packed = COMPRESS[".gz"](json_lines({"text": texts}))
    file = source(tmp_path / "x.jsonl.gz", packed[: len(packed) // 2])
    found = texts_of(file)
    assert 1000 < len(found) < 4000
    assert found == texts[: len(found)]
    (fault,) = faults_of(file)
    assert (fault.row, fault.reason[:14]) == (None, "truncated gzip")
    assert file.copy_kept(np.ones(len(found), dtype=np.bool_), tmp_path / "out", str(tmp_path)) == len(found)


def test_an_unreadable_file_has_no_copy_but_an_empty_one_has(tmp_path: Path) -> None:
    nothing = np.empty(0, dtype=np.bool_)
    file = source(tmp_path / "x.jsonl.gz", b"not gzip")
    assert [fault.row for fault in faults_of(file)] == [None]
    assert file.copy_kept(nothing, tmp_path / "out", str(tmp_path)) == 0
    assert not (tmp_path / "out").exists()
    empty = source(tmp_path / "y.jsonl", b"")
    assert faults_of(empty) == []
    empty.copy_kept(nothing, tmp_path / "out", str(tmp_path))
    assert (tmp_path / "out" / "y.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    "row",
    [
        b'{"text":%s}' % (b"[" * 900 + b"]" * 900),
        b'{"other":%s}' % (b"[" * 900 + b"]" * 900),
        b'{"other":%s}' % (b'{"a":' * 900 + b"1" + b"}" * 900),
        b'{"text":"abc","n":%s}' % (b"[" * 100_000),
        b'{"text":"a \\ud800 b"}',
        b'{"text":"abc","n":1e999}',
        b'{"text":"abc","n":NaN}',
        b'{"text":"abc","n":1%s}' % (b"0" * 5000),
        b'{"text":"abc","k\xff":1}',
        b'{"text":"a\x00b"}',
        b'\xef\xbb\xbf{"text":"abc"}',
        b'{"text":"abc"}\r{"text":"abd"}\r',
    ],
)
def test_an_odd_row_is_one_fault_among_good_rows(row: bytes, tmp_path: Path) -> None:
    """Also as the first row, and with a path as the column of ids."""
    good = b'{"text":"good"}\n'
    file = source(tmp_path / "x.jsonl", good + row + b"\n" + good)
    assert texts_of(file) == ["good", None, "good"]
    (fault,) = faults_of(file)
    assert (fault.row, fault.reason.count("\n")) == (1, 0)
    first = source(tmp_path / "y.jsonl", b"{}\n" + row + b"\n" + good)
    assert texts_of(first)[1:] == [None, "good"]
    assert texts_of(file, Columns(id="n.a.b"))[1] is None
