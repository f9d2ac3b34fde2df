"""Document values: what a value is as a label, in every format and type."""

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from support.source_rows import faults_of, values_of

from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.delimited import DelimitedFile
from minwise.inputs.document_values import ValueColumn, distinct_columns, label_column
from minwise.inputs.files import File
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.memory_sources import TableSource
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.source import Columns, Source


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pa.array([7, None, -1, 2**63 - 1]), ["7", None, "-1", "9223372036854775807"]),
        (pa.array([7.0, None, 0.1, -0.0, 1e22]), ["7", None, "0.1", "0", "1" + "0" * 22]),
        (pa.array([float("nan"), float("inf"), 2.5]), [None, "inf", "2.5"]),
        (pa.array([0.1, 16777216.0], pa.float32()), ["0.1", "16777216"]),
        (pa.array(np.array([0.1, 2], np.float16)), ["0.1", "2"]),
        (pa.array([Decimal("1.50"), None, Decimal("-0.00"), Decimal("700.00")]), ["1.5", None, "0", "700"]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array(["", "wiki", None, "7.0"]), ["", "wiki", None, "7.0"]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array([b"a", b"\xff", None]), ["a", "\\xff", None]),
        (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
        (pa.array([date(2024, 2, 29), None]), ["2024-02-29", None]),
        (pa.array([datetime(2024, 2, 29, 12, 30)]), ["2024-02-29 12:30:00"]),
        (pa.array([datetime(2024, 2, 29, 12, 30, 0, 500_000)], pa.timestamp("ns")), ["2024-02-29 12:30:00.5"]),
        (pa.array([0], pa.timestamp("ms", "Europe/Berlin")), ["1970-01-01 00:00:00Z"]),
        (pa.array([time(1, 2, 3)]), ["01:02:03"]),
        (pa.nulls(2), [None, None]),
        (pa.array([], pa.float64()), []),
    ],
    ids=str,
)
def test_label_of_a_value_does_not_depend_on_its_type(column: pa.Array, labels: list[str | None]) -> None:
    found = label_column(column)
    assert (found.type, found.to_pylist()) == (pa.large_string(), labels)


ROWS: list[dict[str, Any]] = [
    {"text": "a", "site": "wiki", "year": 2020, "good": True},
    {"text": "b", "site": None, "year": 1999, "good": False},
    {"text": "c", "site": "10", "year": 2020, "good": None},
]


def sources(folder: Path) -> dict[str, Source]:
    """Return the rows in every format with columns."""
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, folder / "t.parquet")
    pa.feather.write_feather(table, folder / "t.arrow")
    (folder / "t.csv").write_text("text,site,year,good\na,wiki,2020,true\nb,,1999,false\nc,10,2020,\n")
    objects = (
        '{"text": "a", "site": "wiki", "year": 2020, "good": true}',
        '{"text": "b", "year": 1999, "good": false}',
    )
    (folder / "t.jsonl").write_text("\n".join([*objects, '{"text": "c", "site": 10, "year": 2020.0, "good": [1]}']))
    return {
        "memory": TableSource(table),
        "parquet": ParquetFile(File(str(folder / "t.parquet"))),
        "arrow": ArrowFile(File(str(folder / "t.arrow"))),
        "csv": DelimitedFile(File(str(folder / "t.csv")), ","),
        "jsonl": JsonLinesFile(File(str(folder / "t.jsonl"))),
    }


@pytest.mark.parametrize("name", ["memory", "parquet", "arrow", "csv", "jsonl"])
def test_every_format_has_the_same_labels(name: str, tmp_path: Path) -> None:
    """A column of CSV or JSON may mix numbers and texts: a label is a string whatever the first value is."""
    source = sources(tmp_path)[name]
    assert values_of(source, "site", is_label=True) == ["wiki", None, "10"]
    assert values_of(source, "year", is_label=True) == ["2020", "1999", "2020"]
    assert values_of(source, "good", is_label=True) == ["true", "false", None]


def test_one_column_can_order_documents_and_be_a_label(tmp_path: Path) -> None:
    columns = (ValueColumn("year"), ValueColumn("year", is_label=True))
    for source in sources(tmp_path).values():
        (batch,) = source.batches(Columns(values=columns))
        assert batch.document_values["value:year"].to_pylist() == [2020, 1999, 2020]
        assert batch.document_values["label:year"].to_pylist() == ["2020", "1999", "2020"]


def test_a_column_of_lists_has_no_labels(tmp_path: Path) -> None:
    table = TableSource(pa.table({"text": ["a"], "tags": [["x"]]}))
    (fault, *_) = faults_of(table, Columns(values=(ValueColumn("tags", is_label=True),)))
    assert fault.reason == "tags must be numbers, strings or dates, got a column of list<item: string>"


def test_a_column_named_twice_is_read_once() -> None:
    twice = [ValueColumn("a", is_label=True), ValueColumn("a"), ValueColumn("a", is_label=True, of_references=True)]
    assert distinct_columns(twice) == (twice[2], twice[1])
