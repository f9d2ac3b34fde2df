"""Metadata: columns that are read beside the text, in every format, as JSON has them."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import complaint
from support.source_rows import faults_of

from minwise.errors import ConfigError
from minwise.inputs.memory_sources import TableSource, as_table
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import BATCH_BYTES, Batch, Columns, Fault, Source

ABOUT = Columns(metadata=("a", "b"))


def opened(path: Path) -> Source:
    """The file as a source."""
    (source,), _ = open_files([str(path)])
    return source


def metadata_of(source: Source, columns: Columns = ABOUT, batch_bytes: int = BATCH_BYTES) -> list[dict[str, Any]]:
    """The objects of all rows, as many as there are texts."""
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
def test_every_type_of_arrow(column: Any, expected: list[Any], tmp_path: Path) -> None:  # noqa: ANN401 - no types
    """Becomes what JSON has for it."""
    table = pa.table({"text": ["one", "two"], "a": column})
    columns = Columns(metadata=("a",))
    assert metadata_of(TableSource(table), columns) == [{"a": value} for value in expected]


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow", "in.jsonl", "in.csv", "in.tsv"])
def test_every_format(name: str, tmp_path: Path) -> None:
    """The same values, whatever the size of batches; those of CSV as strings."""
    rows = [{"id": f"i{row}", "text": f"text {row}", "a": row, "b": f"b{row}"} for row in range(50)]
    write(tmp_path / name, rows)
    untyped = name.endswith(("csv", "tsv"))
    expected = [{"a": str(row["a"]) if untyped else row["a"], "b": row["b"]} for row in rows]
    assert metadata_of(opened(tmp_path / name)) == expected
    assert metadata_of(opened(tmp_path / name), batch_bytes=20) == expected


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows in the format of a name."""
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


def test_nothing_is_read_that_nobody_asked_for() -> None:
    """Without such columns there is no metadata."""
    (batch,) = TableSource(pa.table({"text": ["one"], "a": [1]})).batches(Columns())
    assert batch.metadata is None


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow", "in.jsonl", "in.csv"])
def test_a_column_that_is_not_there(name: str, tmp_path: Path) -> None:
    """Is one fault of the file, which names it and those that are there."""
    write(tmp_path / name, [{"text": "one", "a": 1}])
    (fault,) = faults_of(opened(tmp_path / name), ABOUT)
    assert (fault.row, fault.reason) == (None, "has no column 'b'; its columns are: text, a")


def test_a_text_file_has_no_columns(tmp_path: Path) -> None:
    """And says so."""
    (tmp_path / "in.txt").write_text("one")
    (fault,) = faults_of(opened(tmp_path / "in.txt"), ABOUT)
    assert fault.reason == "has no column 'a': a text file is one text and nothing else"


def test_lines_may_lack_a_column_that_one_of_the_first_has(tmp_path: Path) -> None:
    """It is null there, also where a line cannot be read, and in later batches."""
    lines = ['{"text": "one", "a": 1}', "{oops", '{"text": "two", "b": [2]}', *['{"text": "more"}'] * 9]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    expected = [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": None, "b": [2]}, *[{"a": None, "b": None}] * 9]
    assert metadata_of(opened(tmp_path / "in.jsonl"), batch_bytes=65) == expected


def test_fields_that_are_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 make the row a fault, as they do in an id; the other rows have their values."""
    (tmp_path / "in.csv").write_bytes(b"text,a,b\none,1,\xff\ntwo,2,x\n")
    source = opened(tmp_path / "in.csv")
    assert faults_of(source, ABOUT) == [Fault(source.name, 0, "b is not valid UTF-8 at byte 0")]
    assert metadata_of(source)[1] == {"a": "2", "b": "x"}
    broken = pa.array([b"\xff", b"x"]).view(pa.string())
    for column in (broken, broken.view(pa.binary()), pa.StructArray.from_arrays([broken], ["n"])):
        table = TableSource(pa.table({"text": ["one", "two"], "a": [1, 2], "b": column}))
        (fault,) = faults_of(table, ABOUT)
        assert (fault.row, fault.reason) == (0, "b has bytes that are not valid UTF-8, which JSON cannot hold")
        assert metadata_of(table)[1]["b"] in ("x", {"n": "x"})


def test_objects_of_several_kinds() -> None:
    """Would be lost when they become a table, so they are refused."""
    source = TableSource(as_table([{"text": "one", "a": 1, "b": 1}, {"text": "two", "a": 2, "b": "x"}]))
    (fault,) = faults_of(source, ABOUT)
    assert fault.reason == "row 0: b must be a string, got int; metadata of a table must be of one type in all rows"


def test_names_of_columns() -> None:
    """One name or several; anything else is refused."""
    assert Columns.of("text", None, metadata_columns="a").metadata == ("a",)
    assert Columns.of(["x", "y"], "i", metadata_columns=["a", "b"]) == Columns(
        text=("x", "y"), id="i", metadata=("a", "b")
    )
    for wrong in (["a", ""], [1], 5, {"a"}):
        message = complaint(ConfigError, lambda given=wrong: Columns.of("text", None, metadata_columns=given))  # type: ignore[misc]
        assert message.startswith("metadata_columns must be one or more names, got ")


def test_a_part_of_a_batch() -> None:
    """Has the rows between two places, with their ids, values and faults."""
    faults = (Fault("f", 11, "first"), Fault("f", 13, "second"))
    about = [{"a": row} for row in range(5)]
    batch = Batch(10, pa.array(["0", None, "2", None, "4"]), pa.array([0, 1, 2, 3, 4]), None, faults, about)
    assert batch.slice(0, 5) is batch
    part = batch.slice(2, 4)
    assert (part.first, part.values.to_pylist()) == (12, ["2", None])
    assert part.ids == pa.array([2, 3])
    assert (part.faults, part.metadata) == (faults[1:], [{"a": 2}, {"a": 3}])
    assert batch.slice(5, 5).faults == ()
