"""Basket lines: a set per line, with or without a name, whatever stands in the file."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minwise as mw
from minwise.inputs import schemaless
from minwise.inputs.baskets import BasketFile
from minwise.inputs.elements import Elements
from minwise.inputs.files import File
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.source import Batch, Columns

LINES = b"\xef\xbb\xbfbread milk\n\nmilk  milk\r\n\xff\nlast"


def source(path: Path, content: bytes, *, named: bool = False) -> BasketFile:
    """A file of lines."""
    path.write_bytes(content)
    return BasketFile(File(str(path)), named=named)


def batches(lines_of: BasketFile, elements: Elements, **options: Any) -> list[Batch]:  # noqa: ANN401 - of reading
    """What is read of it."""
    return list(lines_of.batches(Columns(text=("text",), elements=elements), **options))


def test_a_line_is_a_set(tmp_path: Path) -> None:
    """A blank one is empty, one that is no text has a fault, the last needs no end; a mark at the start is none."""
    (batch,) = batches(source(tmp_path / "x.dat", LINES), ItemLists(column="text"))
    assert batch.values.to_pylist() == [["bread", "milk"], [], ["milk", "milk"], None, ["last"]]
    assert [str(fault) for fault in batch.faults] == [f"{tmp_path}/x.dat: row 3: line 4 is not valid UTF-8 at byte 0"]
    assert batch.ids is None


def test_batches_do_not_show(tmp_path: Path) -> None:
    """Rows and faults are the same line by line; unwanted ones may be left out."""
    lines_of = source(tmp_path / "x.dat", LINES)
    elements = ItemSets(column="text")
    (whole,) = batches(lines_of, elements)
    single = batches(lines_of, elements, batch_bytes=1)
    assert [batch.first for batch in single] == [0, 1, 2, 3, 4]
    assert [one for batch in single for one in batch.values.to_pylist()] == whole.values.to_pylist()
    assert tuple(fault for batch in single for fault in batch.faults) == whole.faults
    some = batches(lines_of, elements, batch_bytes=1, wanted=np.array([False, False, True, False, False]))
    assert [batch.first for batch in some] == [2]


@pytest.mark.parametrize(
    ("content", "separator", "names", "items"),
    [
        (b"536365\t21730 22752\n7 \n", None, ["536365", "7"], [["21730", "22752"], []]),
        (b"a, whole milk, curd\nb\n", ",", ["a", "b"], [["whole milk", "curd"], []]),
    ],
)
def test_a_line_may_have_a_name(
    content: bytes, separator: str | None, names: list[str], items: list[list[str]], tmp_path: Path
) -> None:
    """Its first item."""
    lines_of = source(tmp_path / "x.txt", content, named=True)
    (batch,) = batches(lines_of, ItemLists(column="text", separator=separator))
    assert batch.ids is not None
    assert (batch.ids.to_pylist(), batch.values.to_pylist()) == (names, items)


def test_a_line_without_its_name_has_a_fault(tmp_path: Path) -> None:
    """And no id."""
    (batch,) = batches(source(tmp_path / "x.txt", b"a b\n \n", named=True), ItemSets(column="text"))
    assert [fault.reason for fault in batch.faults] == ["line 2 has no name: its first item is missing"]
    assert batch.values.null_count == 1


def test_a_line_that_is_too_long_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are read."""
    monkeypatch.setattr(schemaless, "MAX_RECORD_BYTES", 10)
    (batch,) = batches(source(tmp_path / "x.dat", b"a b\n" + b"c " * 50 + b"\nd\n"), ItemLists(column="text"))
    assert batch.values.to_pylist() == [["a", "b"], None, ["d"]]
    assert [fault.row for fault in batch.faults] == [1]


@pytest.mark.parametrize("columns", [{"id": "key"}, {"rank": "score"}, {"metadata": ("m",)}])
def test_lines_have_no_columns(columns: dict[str, Any], tmp_path: Path) -> None:
    """And say so by name."""
    asked = Columns(elements=ItemSets(column="text"), **columns)
    (batch,) = source(tmp_path / "x.dat", b"a\n").batches(asked)
    assert str(batch.faults[0].reason).endswith(": each of its lines is one set and nothing else")
    (batch,) = source(tmp_path / "x.dat", b"a\n").batches(Columns())
    assert batch.faults[0].reason == "has no column 'text': each of its lines is one set, which needs shingle set"


def test_kept_lines_are_copied_as_they_are(tmp_path: Path) -> None:
    """Byte for byte, compressed as they were."""
    path = tmp_path / "x.dat.gz"
    path.write_bytes(gzip.compress(b"milk  bread\r\nbread milk\neggs"))
    result = mw.dedup(path, tmp_path / "out", shingle="set")
    assert result.report["counts"]["removed_identical"] == 1
    assert gzip.decompress((tmp_path / "out" / "kept" / "x.dat.gz").read_bytes()) == b"milk  bread\r\neggs\n"
    assert result.kept.column_names == ["id", "source", "row"]
