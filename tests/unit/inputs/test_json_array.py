"""JSON arrays: rows equal those of json.loads whatever the chunks, faults with positions, copies that are arrays."""

import gzip
import json
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source_rows import COMPRESS, TEXTS, faults_of, ids_of, kept, masks, texts_of

from minwise.inputs import row_reader
from minwise.inputs.files import File
from minwise.inputs.json_array import JsonArrayFile, split_array
from minwise.inputs.source import Columns, Fault, UnreadableError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, width=16)
    | st.text('a",[]{}\\\né', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('b"\\]', max_size=3), inner, max_size=3),
    max_leaves=8,
)
LAYOUTS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"separators": (" ,\r\n", "\t: ")}])


def source(path: Path, data: bytes) -> JsonArrayFile:
    """Return the source of a file with these bytes."""
    path.write_bytes(data)
    return JsonArrayFile(File(str(path)))


def chunked(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return the bytes cut at these positions."""
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(array=st.lists(VALUES, max_size=6), layout=LAYOUTS, escaped=st.booleans(), cuts=st.sets(st.integers(0, 500)))
def test_the_elements_are_those_of_json_loads_for_any_chunks(
    array: list[Any], layout: dict[str, Any], escaped: bool, cuts: set[int]
) -> None:
    data = json.dumps(array, ensure_ascii=escaped, **layout).encode()
    elements = list(split_array(chunked(b"\xef\xbb\xbf \n" + data + b"\r\n", cuts)))
    assert [json.loads(element) for element in elements if isinstance(element, bytes)] == json.loads(data)
    assert len(elements) == len(array)


@given(array=st.lists(VALUES, min_size=1, max_size=4), end=st.integers(0, 10**6), cuts=st.sets(st.integers(0, 500)))
def test_every_truncated_array_ends_in_a_fault_after_its_complete_elements(
    array: list[Any], end: int, cuts: set[int]
) -> None:
    data = json.dumps(array).encode()
    data = data[: end % len(data)]
    found: list[Any] = []
    with pytest.raises(UnreadableError, match=r"^(truncated JSON array: |must be a JSON array)"):
        found.extend(json.loads(element) for element in split_array(chunked(data, cuts)) if isinstance(element, bytes))
    assert found == array[: len(found)]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("mask", range(5))
def test_rows_are_read_and_the_copy_is_an_array_of_the_unchanged_elements(
    suffix: str, indent: int | None, mask: int, tmp_path: Path
) -> None:
    rows = [{"id": number, "text": text, "tags": [{"a": [1, "]"]}]} for number, text in enumerate(TEXTS)]
    file = source(tmp_path / f"x.json{suffix}", COMPRESS[suffix](json.dumps(rows, indent=indent).encode()))
    assert texts_of(file) == texts_of(file, batch_bytes=1) == TEXTS
    assert ids_of(file) == list(range(len(TEXTS)))
    keep = masks(len(TEXTS))[mask]
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    copy = b"".join(File(str(tmp_path / "out" / f"x.json{suffix}")).chunks())
    assert json.loads(copy) == kept(rows, keep)
    again = source(tmp_path / f"y.json{suffix}", COMPRESS[suffix](copy))
    assert again.copy_kept(np.ones(int(keep.sum()), dtype=np.bool_), tmp_path / "out", str(tmp_path)) == keep.sum()
    assert b"".join(File(str(tmp_path / "out" / f"y.json{suffix}")).chunks()) == copy


def test_strings_are_documents(tmp_path: Path) -> None:
    """Objects may be among them; with several text columns a string is a fault."""
    file = source(tmp_path / "x.json", json.dumps([*TEXTS, {"text": "object"}]).encode())
    assert texts_of(file) == [*TEXTS, "object"]
    assert faults_of(file, Columns(text=("a", "b")))[0].reason == "element 1 must be a JSON object, got str"


FAULTS = {
    b"5": "element 2 must be a JSON object or a string, got int",
    b"null": "element 2 must be a JSON object or a string, got NoneType",
    b"nonsense": "element 2 is not JSON: ",
    b'{"text": "a"} {"text": "b"}': "element 2 is not JSON: ",
    b'{"text": 5}': "text must be a string, got int",
    b'{"text": null}': "text is null",
    b'{"content": "a"}': "has no column 'text'",
    b'{"text": "ab\xff"}': "element 2 is not valid UTF-8 at byte 12",
}


@pytest.mark.parametrize("element", FAULTS)
def test_an_element_that_cannot_be_used_is_a_fault_of_its_row(element: bytes, tmp_path: Path) -> None:
    file = source(tmp_path / "x.json", b'[{"text": "a", "id": 1},\n ' + element + b', {"text": "b", "id": 3}]')
    assert texts_of(file) == ["a", None, "b"]
    (fault,) = faults_of(file)
    assert (fault.source, fault.row) == (file.name, 1)
    assert fault.reason.startswith(FAULTS[element])


@pytest.mark.parametrize(
    ("data", "rows", "reason"),
    [
        (b"", 0, "must be a JSON array, which begins with [, it is empty"),
        (b' {"text": "a"}', 0, 'must be a JSON array, which begins with [, got \'{"text": "a"}\''),
        (b'["a", "b"', 1, "truncated JSON array: it ends within element 2, before its closing bracket"),
        (b'["a", "b", ]', 2, "malformed JSON array: element 3 is missing at byte 11"),
        (b'["a",, "b"]', 1, "malformed JSON array: element 2 is missing at byte 5"),
        (b'["a"}, "b"]', 0, "malformed JSON array: a brace without its partner at byte 4"),
        (b'["a"]\n["b"]', 1, "malformed JSON array: the file goes on after its end at byte 6"),
    ],
)
def test_a_malformed_array_is_a_fault_of_the_file_from_that_point_on(
    data: bytes, rows: int, reason: str, tmp_path: Path
) -> None:
    file = source(tmp_path / "x.json", data)
    assert texts_of(file) == ["a", "b"][:rows]
    assert faults_of(file) == [Fault(file.name, None, reason)]


def test_an_empty_array_has_no_rows(tmp_path: Path) -> None:
    assert list(source(tmp_path / "x.json", b"[ \n]").batches(Columns())) == []


def test_an_oversized_element_is_a_fault_and_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 10)
    file = source(tmp_path / "x.json", b'["short", "longer than that", "12345678"]')
    assert texts_of(file) == ["short", None, "12345678"]
    assert faults_of(file) == [Fault(file.name, 1, "is longer than 10 bytes")]
    assert list(split_array([b'["', *[b"aaaa"] * 9, b'"]'])) == [row_reader.OversizedLine(2)]


def test_memory_does_not_grow_with_the_array(tmp_path: Path) -> None:
    """An array of 32 MB in batches of 1 MB."""
    element = json.dumps({"text": "word " * 200}).encode()
    path = tmp_path / "x.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"[" + b",\n".join([element] * 64) + b"\n")
        for _ in range(500):
            file.write(b"," + b",".join([element] * 64))
        file.write(b"]")
    tracemalloc.start()
    try:
        rows = sum(len(batch) for batch in JsonArrayFile(File(str(path))).batches(Columns(), batch_bytes=10**6))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 64 * 501
    assert peak < 8 * 10**6
