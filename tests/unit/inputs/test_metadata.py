"""Metadata columns of every format, as JSON values."""

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.odd_columns import ODD_COLUMNS
from support.odd_columns import TEXTS as ODD_TEXTS
from support.source_rows import faults_of

from minwise.errors import ConfigError
from minwise.inputs.memory_sources import TableSource, as_table
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import BATCH_BYTES, Batch, Columns, Fault, Source

METADATA = Columns(metadata=("a", "b"))


def open_file(path: Path) -> Source:
    """Return the file as a source."""
    (source,) = open_files([str(path)]).sources
    return source


def metadata_of(source: Source, columns: Columns = METADATA, batch_bytes: int = BATCH_BYTES) -> list[dict[str, Any]]:
    """Return the metadata of all rows."""
    found: list[dict[str, Any]] = []
    for batch in source.batches(columns, batch_bytes=batch_bytes):
        assert batch.metadata is not None
        assert len(batch.metadata) == len(batch)
        found += batch.metadata
    return found


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None], pa.uint8()), [1, None]),
        (pa.array([2**63, None], pa.uint64()), [2**63, None]),
        (pa.array([0.5, float("inf")]), [0.5, None]),
        (pa.array([True, None]), [True, None]),
        (pa.array(["x", ""]).dictionary_encode(), ["x", ""]),
        (pa.array([b"x", "é".encode()]), ["x", "é"]),
        (pa.array(["x", None], pa.string_view()), ["x", None]),
        (pa.array([[1, None], []]), [[1, None], []]),
        (pa.array([{"n": {"m": 1}}, None]), [{"n": {"m": 1}}, None]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())), [[["k", 1]], None]),
        (pa.array([datetime.date(2024, 2, 29), None]), ["2024-02-29", None]),
        (pa.array([datetime.time(1, 2, 3), None]), ["01:02:03", None]),
        (pa.array([datetime.datetime(2024, 2, 29, 1), None]), ["2024-02-29T01:00:00", None]),
        (pa.array([1_000_000_001, None], pa.timestamp("ns")), ["1970-01-01T00:00:01.000000001", None]),
        (pa.array([0, None], pa.timestamp("s", "UTC")), ["1970-01-01T00:00:00+00:00", None]),
        (pa.array([datetime.timedelta(days=1), None]), ["1 day, 0:00:00", None]),
        (pa.array([Decimal("1.25"), None]), [1.25, None]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_arrow_type_becomes_a_json_value(column: Any, expected: list[Any], tmp_path: Path) -> None:  # noqa: ANN401 - no types
    table = pa.table({"text": ["one", "two"], "a": column})
    columns = Columns(metadata=("a",))
    assert metadata_of(TableSource(table), columns) == [{"a": value} for value in expected]


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow", "in.jsonl", "in.csv", "in.tsv"])
def test_metadata_of_every_format_do_not_depend_on_the_batch_size(name: str, tmp_path: Path) -> None:
    """The values of CSV are strings."""
    rows = [{"id": f"i{row}", "text": f"text {row}", "a": row, "b": f"b{row}"} for row in range(50)]
    write(tmp_path / name, rows)
    untyped = name.endswith(("csv", "tsv"))
    expected = [{"a": str(row["a"]) if untyped else row["a"], "b": row["b"]} for row in rows]
    assert metadata_of(open_file(tmp_path / name)) == expected
    assert metadata_of(open_file(tmp_path / name), batch_bytes=20) == expected


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows in the format of the file name."""
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=7)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    elif path.suffix == ".jsonl":
        pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    else:
        pd.DataFrame(rows).to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")


def test_without_metadata_columns_there_is_no_metadata() -> None:
    (batch,) = TableSource(pa.table({"text": ["one"], "a": [1]})).batches(Columns())
    assert batch.metadata is None


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow", "in.jsonl", "in.csv"])
def test_a_missing_column_is_one_fault_that_lists_the_columns(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, [{"text": "one", "a": 1}])
    fault = faults_of(open_file(tmp_path / name), METADATA)[-1]
    assert fault.row is None
    assert re.fullmatch(r"has no column 'b'; its columns are: text( \(.*string\))?, a( \(.*\))?", fault.reason)


def test_a_text_file_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one")
    fault = faults_of(open_file(tmp_path / "in.txt"), METADATA)[-1]
    assert fault.reason == "has no column 'a': a text file is one text and nothing else"


def test_a_json_line_may_lack_a_column_that_an_earlier_one_has(tmp_path: Path) -> None:
    """The value is null there, also where a line cannot be read, and in later batches."""
    lines = ['{"text": "one", "a": 1}', "{oops", '{"text": "two", "b": [2]}', *['{"text": "more"}'] * 9]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    expected = [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": None, "b": [2]}, *[{"a": None, "b": None}] * 9]
    assert metadata_of(open_file(tmp_path / "in.jsonl"), batch_bytes=65) == expected


def test_metadata_that_is_not_utf8_is_a_fault_of_its_row(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"text,a,b\none,1,\xff\ntwo,2,x\n")
    source = open_file(tmp_path / "in.csv")
    assert faults_of(source, METADATA) == [Fault(source.name, 0, "b is not valid UTF-8 at byte 0")]
    assert metadata_of(source)[1] == {"a": "2", "b": "x"}
    broken = pa.array([b"\xff", b"x"]).view(pa.string())
    for column in (broken, broken.view(pa.binary()), pa.StructArray.from_arrays([broken], ["n"])):
        table = TableSource(pa.table({"text": ["one", "two"], "a": [1, 2], "b": column}))
        (fault,) = faults_of(table, METADATA)
        assert (fault.row, fault.reason) == (0, "b has bytes that are not valid UTF-8, which JSON cannot hold")
        assert metadata_of(table)[1]["b"] in ("x", {"n": "x"})


def test_metadata_of_several_types_in_a_list_of_mappings_is_rejected() -> None:
    """The conversion to a table would lose them."""
    source = TableSource(as_table([{"text": "one", "a": 1, "b": 1}, {"text": "two", "a": 2, "b": "x"}]))
    (fault,) = faults_of(source, METADATA)
    assert fault.reason == "row 0: b must be a string, got int; metadata of a table must be of one type in all rows"


def test_column_names_are_one_string_or_several() -> None:
    assert Columns.of("text", None, metadata_columns="a").metadata == ("a",)
    assert Columns.of(["x", "y"], "i", metadata_columns=["a", "b"]) == Columns(
        text=("x", "y"), id="i", metadata=("a", "b")
    )
    for wrong in (["a", ""], [1], 5, {"a"}):
        message = error_message(ConfigError, lambda given=wrong: Columns.of("text", None, metadata_columns=given))  # type: ignore[misc]
        assert message.startswith("metadata_columns must be one or more names, got ")


def test_a_slice_of_a_batch_has_its_rows_ids_values_and_faults() -> None:
    faults = (Fault("f", 11, "first"), Fault("f", 13, "second"))
    metadata = [{"a": row} for row in range(5)]
    values = {"value:year": pa.array([5, 6, 7, 8, 9]), "label:site": pa.array(list("abcde"))}
    batch = Batch(10, pa.array(["0", None, "2", None, "4"]), pa.array([0, 1, 2, 3, 4]), values, faults, metadata)
    assert batch.slice(0, 5) is batch
    part = batch.slice(2, 4)
    assert (part.first, part.values.to_pylist()) == (12, ["2", None])
    assert part.ids == pa.array([2, 3])
    assert {key: column.to_pylist() for key, column in part.document_values.items()} == {
        "value:year": [7, 8],
        "label:site": ["c", "d"],
    }
    assert (part.faults, part.metadata) == (faults[1:], [{"a": 2}, {"a": 3}])
    assert batch.slice(5, 5).faults == ()


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_metadata_of_odd_types_are_json_or_a_fault_that_names_the_column(kind: str) -> None:
    table = pa.table({"text": ODD_TEXTS, "odd": ODD_COLUMNS[kind]})
    faults = faults_of(TableSource(table), Columns(metadata=("odd",)))
    assert [fault.row for fault in faults] in ([], list(range(len(ODD_TEXTS))))
    assert all(
        re.match("odd has (a value of .* that|bytes that are not valid UTF-8, which) JSON", f.reason) for f in faults
    )
