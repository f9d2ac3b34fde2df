"""Baskets: one set per line, with or without a name."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minwise as mw
from minwise.inputs import row_reader
from minwise.inputs.baskets import BasketFile
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.elements import Elements
from minwise.inputs.files import File
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.source import Batch, Columns

LINES = b"\xef\xbb\xbfbread milk\n\nmilk  milk\r\n\xff\nlast"


def source(path: Path, content: bytes, *, named: bool = False) -> BasketFile:
    """Return the source of a file with this content."""
    path.write_bytes(content)
    return BasketFile(File(str(path)), named=named)


def batches(file: BasketFile, elements: Elements, **options: Any) -> list[Batch]:  # noqa: ANN401 - those of batches
    """Return the batches of a file."""
    return list(file.batches(Columns(text=("text",), elements=elements), **options))


def test_a_line_is_a_set(tmp_path: Path) -> None:
    """A blank line is an empty set; a line that is not UTF-8 is a fault; the byte order mark is not an item."""
    (batch,) = batches(source(tmp_path / "x.dat", LINES), ItemLists(column="text"))
    assert batch.values.to_pylist() == [["bread", "milk"], [], ["milk", "milk"], None, ["last"]]
    assert [str(fault) for fault in batch.faults] == [f"{tmp_path}/x.dat: row 3: line 4 is not valid UTF-8 at byte 0"]
    assert batch.ids is None


def test_rows_and_faults_do_not_depend_on_the_batch_size(tmp_path: Path) -> None:
    file = source(tmp_path / "x.dat", LINES)
    elements = ItemSets(column="text")
    (whole,) = batches(file, elements)
    single = batches(file, elements, batch_bytes=1)
    assert [batch.first for batch in single] == [0, 1, 2, 3, 4]
    assert [items for batch in single for items in batch.values.to_pylist()] == whole.values.to_pylist()
    assert tuple(fault for batch in single for fault in batch.faults) == whole.faults
    some = batches(file, elements, batch_bytes=1, wanted=np.array([False, False, True, False, False]))
    assert [batch.first for batch in some] == [2]


@pytest.mark.parametrize(
    ("content", "separator", "names", "items"),
    [
        (b"536365\t21730 22752\n7 \n", None, ["536365", "7"], [["21730", "22752"], []]),
        (b"a, whole milk, curd\nb\n", ",", ["a", "b"], [["whole milk", "curd"], []]),
    ],
)
def test_the_first_item_of_a_named_basket_is_its_id(
    content: bytes, separator: str | None, names: list[str], items: list[list[str]], tmp_path: Path
) -> None:
    file = source(tmp_path / "x.txt", content, named=True)
    (batch,) = batches(file, ItemLists(column="text", separator=separator))
    assert batch.ids is not None
    assert (batch.ids.to_pylist(), batch.values.to_pylist()) == (names, items)


def test_a_named_basket_without_a_name_is_a_fault(tmp_path: Path) -> None:
    (batch,) = batches(source(tmp_path / "x.txt", b"a b\n \n", named=True), ItemSets(column="text"))
    assert [fault.reason for fault in batch.faults] == ["line 2 has no name: its first item is missing"]
    assert batch.values.null_count == 1


def test_an_oversized_line_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 10)
    (batch,) = batches(source(tmp_path / "x.dat", b"a b\n" + b"c " * 50 + b"\nd\n"), ItemLists(column="text"))
    assert batch.values.to_pylist() == [["a", "b"], None, ["d"]]
    assert [fault.row for fault in batch.faults] == [1]


@pytest.mark.parametrize("columns", [{"id": "key"}, {"values": (ValueColumn("score"),)}, {"metadata": ("m",)}])
def test_requests_for_other_columns_are_rejected(columns: dict[str, Any], tmp_path: Path) -> None:
    columns_read = Columns(elements=ItemSets(column="text"), **columns)
    (batch,) = source(tmp_path / "x.dat", b"a\n").batches(columns_read)
    assert str(batch.faults[0].reason).endswith(": each of its lines is one set and nothing else")
    (batch,) = source(tmp_path / "x.dat", b"a\n").batches(Columns())
    assert batch.faults[0].reason == "has no column 'text': each of its lines is one set, which needs shingle set"


def test_kept_lines_are_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.dat.gz"
    path.write_bytes(gzip.compress(b"milk  bread\r\nbread milk\neggs"))
    result = mw.dedup(path, tmp_path / "out", shingle="set")
    assert result.report["counts"]["removed_identical"] == 1
    assert gzip.decompress((tmp_path / "out" / "kept" / "x.dat.gz").read_bytes()) == b"milk  bread\r\neggs\n"
    assert result.kept.column_names == ["id", "source", "row"]
