"""Documents of every Python library become one table, and their invalid texts faults."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.source_rows import TEXTS, faults_of, ids_of, masks, texts_of, values_of

from minwise.errors import InputError
from minwise.inputs.memory_sources import SMALL_CHUNK, TableSource, as_table
from minwise.inputs.source import Columns, Fault

ROWS = [{"text": text, "id": number} for number, text in enumerate(TEXTS)]
TABLE = pa.table({"text": TEXTS, "id": list(range(len(TEXTS)))})


class Stream:
    """An object with only the Arrow C stream interface."""

    def __init__(self, source: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        self.source = source

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.source.__arrow_c_stream__(requested_schema)


class Dataset:
    """A stand-in for a Hugging Face dataset, whose rows may be some of those of its table."""

    __module__ = "datasets"

    def __init__(self, indices: list[int] | None = None) -> None:
        self._indices = range(len(TEXTS)) if indices is None else indices

    def with_format(self, kind: str) -> "Dataset":
        assert kind == "arrow"
        return self

    def select(self, indices: list[int]) -> "Dataset":
        return Dataset(indices)

    def __getitem__(self, key: slice) -> Any:  # noqa: ANN401 - as above
        return TABLE.take(list(self._indices))


COLUMN: dict[str, Callable[[], Any]] = {
    "list": lambda: list(TEXTS),
    "generator": lambda: (text for text in TEXTS),
    "bytes": lambda: [text.encode() for text in TEXTS],
    "array": lambda: pa.array(TEXTS),
    "chunked array": lambda: pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
    "array stream": lambda: Stream(pa.chunked_array([TEXTS])),
    "pandas series": lambda: pd.Series(TEXTS, name="whatever"),
    "pandas objects": lambda: pd.Series(TEXTS, dtype=object),
    "polars series": lambda: pl.Series(TEXTS),
    "numpy": lambda: np.array(TEXTS, dtype=object),
}
FRAME: dict[str, Callable[[], Any]] = {
    "list of dicts": lambda: ROWS,
    "generator of dicts": lambda: iter(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with an index": lambda: pd.DataFrame(ROWS, index=range(90, 90 + len(ROWS))),
    "polars": lambda: pl.DataFrame(ROWS),
    "views": lambda: TABLE.cast(pa.schema([("text", pa.string_view()), ("id", pa.int64())])),
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(max_chunksize=2),
    "table stream": lambda: Stream(TABLE),
    "struct array": lambda: pa.array(ROWS),
    "dataset": Dataset,
    "shuffled dataset": lambda: Dataset(list(range(len(TEXTS)))),
}


@pytest.mark.parametrize("kind", COLUMN)
def test_a_list_or_series_becomes_the_column_text(kind: str) -> None:
    source = TableSource(as_table(COLUMN[kind]()))
    assert source.table.column_names == ["text"]
    assert texts_of(source) == texts_of(source, batch_bytes=1) == TEXTS
    assert faults_of(source) == []
    assert ids_of(source) == []
    assert source.default_ids(np.array([3, 1])).to_pylist() == [3, 1]
    assert source.known_rows() == len(TEXTS)


@pytest.mark.parametrize("kind", FRAME)
def test_a_data_frame_becomes_a_table_of_its_columns(kind: str) -> None:
    source = TableSource(as_table(FRAME[kind]()))
    assert texts_of(source) == TEXTS
    assert ids_of(source) == list(range(len(TEXTS)))
    for keep in masks(len(TEXTS)):
        rows = source.kept_table(keep).to_pylist()
        assert rows == [row for row, flag in zip(ROWS, keep.tolist(), strict=True) if flag]


def test_a_dataset_with_selected_rows_yields_these() -> None:
    assert texts_of(TableSource(as_table(Dataset([2, 0])))) == [TEXTS[2], TEXTS[0]]


BAD = ["a", None, 3, "\ud800", ["b"], "c"]
REASONS = [
    Fault("", 1, "text is null"),
    Fault("", 2, "text must be a string, got int"),
    Fault("", 3, "text is not valid Unicode: surrogates not allowed at 0"),
    Fault("", 4, "text must be a string, got list"),
]


@pytest.mark.parametrize(
    "source",
    [BAD, [{"text": text, "other": 1} for text in BAD], pd.DataFrame({"text": BAD}), pd.Series(BAD)],
    ids=["list", "dicts", "pandas", "series"],
)
@pytest.mark.parametrize("batch_bytes", [1, 1 << 25])
def test_a_value_that_is_not_a_text_is_a_fault_with_its_reason(source: Any, batch_bytes: int) -> None:  # noqa: ANN401
    """It is null in the table, whose schema does not contain the reasons."""
    found = TableSource(as_table(source))
    assert texts_of(found, batch_bytes=batch_bytes) == ["a", None, None, None, None, "c"]
    assert faults_of(found, batch_bytes=batch_bytes) == REASONS
    kept = found.kept_table(np.array([True] + [False] * 4 + [True]))
    assert kept["text"].to_pylist() == ["a", "c"]
    assert kept.schema.metadata is None


def test_missing_values_of_pandas_are_null() -> None:
    """NaN is a missing string in pandas, not a float."""
    for dtype in (object, "string"):
        source = TableSource(as_table(pd.DataFrame({"text": pd.Series(["a", None, "c"], dtype=dtype)})))
        assert faults_of(source) == [Fault("", 1, "text is null")]
    mixed = TableSource(as_table(pd.Series(["a", float("nan"), 3], dtype=object)))
    assert [fault.reason for fault in faults_of(mixed)] == ["text is null", "text must be a string, got int"]


def test_keys_that_some_rows_lack_are_null_there() -> None:
    """Columns are in order of first appearance."""
    rows = [
        {"text": "a", "n": 1},
        {"text": "b", "x": 0.5, "big": 2**70},
        {"n": None, "day": date(2024, 1, 2), "l": [1]},
    ]
    table = as_table(rows)
    assert table.column_names == ["text", "n", "x", "big", "day", "l"]
    assert table["n"].to_pylist() == [1, None, None]
    assert table["x"].to_pylist() == [None, 0.5, None]
    assert table["day"].to_pylist() == [None, None, date(2024, 1, 2)]
    assert faults_of(TableSource(table)) == [Fault("", 2, "text is null")]
    assert values_of(TableSource(table), "n") == [1, None, None]


def test_a_table_without_the_column_is_a_fault_of_every_row_and_of_the_table() -> None:
    reason = "has no column 'text'; its columns are: a (string); did you mean text_column='a'?"
    assert faults_of(TableSource(as_table([{"a": "x"}]))) == [Fault("", 0, reason), Fault("", None, reason)]
    assert [fault.row for fault in faults_of(TableSource(as_table([{"text": 1}])))] == [0, None]


def test_an_empty_list_is_a_table_of_no_rows() -> None:
    source = TableSource(as_table([]))
    assert texts_of(source) == []
    assert faults_of(source) == []


def test_small_chunks_are_joined_and_unwanted_batches_left_out() -> None:
    texts = [str(number) for number in range(4 * SMALL_CHUNK)]
    small = pa.table({"text": pa.chunked_array([[text] for text in texts])})
    assert len(list(TableSource(small).batches(Columns()))) == 1
    large = pa.table({"text": pa.chunked_array([texts[: 2 * SMALL_CHUNK], texts[2 * SMALL_CHUNK :]])})
    wanted = np.zeros(len(texts), dtype=np.bool_)
    wanted[-1] = True
    assert [batch.first for batch in TableSource(large).batches(Columns(), wanted=wanted)] == [2 * SMALL_CHUNK]


@pytest.mark.parametrize("source", ["text", b"text", {"text": ["a"]}, 3, None, pl.LazyFrame({"text": ["a"]})])
def test_a_value_that_is_not_a_table_is_rejected(source: Any) -> None:  # noqa: ANN401 - anything
    """A single text is not a list of characters."""
    assert error_message(InputError, lambda: as_table(source)).startswith("source must be")


def test_rows_of_two_kinds_and_repeated_column_names_are_rejected() -> None:
    assert error_message(InputError, lambda: as_table([{"text": "a"}, "b"])).startswith("row 1 must be a mapping")
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    assert "two of one name" in error_message(InputError, lambda: as_table(twice))


def test_a_copy_of_a_table_in_memory_is_a_parquet_file(tmp_path: Path) -> None:
    keep = np.arange(len(TEXTS)) % 2 == 0
    assert TableSource(TABLE).copy_kept(keep, tmp_path, "") == keep.sum()
    assert pq.read_table(tmp_path / "documents.parquet").to_pylist() == ROWS[::2]


IMPORT_CHECK = """
import sys
from pathlib import Path
import numpy as np
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import Columns
from minwise.inputs.memory_sources import TableSource, as_table
Path("x.jsonl").write_text('{"text": "a", "id": 1, "n": 2}\\n' * 3)
Path("x.csv").write_text("text,id\\na,1\\n" * 3)
Path("x.txt").write_text("abc")
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.feather as pf
source = TableSource(as_table([{"text": "a", "title": "b", "id": 1, "n": 0.5}] * 3))
table = source.kept_table(np.array([True, True, False]))
pq.write_table(table, "x.parquet")
with pa.ipc.new_file("x.arrow", table.schema) as writer:
    writer.write_table(table)
for name in ("x.jsonl", "x.csv", "x.txt", "x.parquet", "x.arrow"):
    opened = open_files([name])
    (source,), root = opened.sources, opened.root
    rows = sum(len(batch) for batch in source.batches(Columns()))
    source.default_ids(np.arange(rows)), source.copy_kept(np.arange(rows) > 0, Path("out"), root)
list(TableSource(as_table(["a", None, 3])).batches(Columns()))
list(TableSource(as_table([{"a": "x", "b": "y"}])).batches(Columns(text=("a", "b"))))
print([name for name in ("pandas", "polars", "fsspec", "datasets") if name in sys.modules])
"""


def test_no_format_imports_pandas(tmp_path: Path) -> None:
    """Nor fsspec, unless there is a URL: they take longer to import than most files to read."""
    run = subprocess.run([sys.executable, "-c", IMPORT_CHECK], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
