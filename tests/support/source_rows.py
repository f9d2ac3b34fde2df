"""Helpers of the format tests: all rows of a source, and files of each format."""

import bz2
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise.inputs.document_values import ValueColumn
from minwise.inputs.source import Columns, Fault, Source

TEXTS = [
    "the harbour wakes before the town does",
    "",
    'quotes " and, commas\nand lines\r\nof "two" kinds',
    "港の朝は早い。漁師たちは網を引く",
    "паром уходит в шесть часов утра 🚢🌊",
    "tab\there",
    "x",
]
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: bytes(pa.compress(data, codec="zstd", asbytes=True)),
}


def plain(array: Any) -> list[Any]:  # noqa: ANN401 - pyarrow has no types
    """Return the values of an array, texts as strings."""
    return [value.decode() if isinstance(value, bytes) else value for value in array.to_pylist()]


def texts_of(source: Source, columns: Columns | None = None, **options: Any) -> list[str | None]:  # noqa: ANN401
    """Return all texts of a source."""
    return [text for batch in source.batches(columns or Columns(), **options) for text in plain(batch.values)]


def ids_of(source: Source, columns: Columns | None = None) -> list[Any]:
    """Return all ids of a source; none if it has no ids."""
    return [id_ for batch in source.batches(columns or Columns()) if batch.ids is not None for id_ in plain(batch.ids)]


def values_of(source: Source, name: str, *, is_label: bool = False) -> list[Any]:
    """Return the document values of a column of a source."""
    column = ValueColumn(name, is_label=is_label)
    batches = source.batches(Columns(values=(column,)))
    return [value for batch in batches for value in plain(batch.document_values[column.key])]


def faults_of(source: Source, columns: Columns | None = None, **options: Any) -> list[Fault]:  # noqa: ANN401
    """Return all faults of a source; check the rules of every batch."""
    faults: list[Fault] = []
    rows = 0
    for batch in source.batches(columns or Columns(), **options):
        assert batch.first == rows or options.get("wanted") is not None
        rows = batch.first + len(batch)
        per_row = [fault for fault in batch.faults if fault.row is not None]
        assert len(per_row) == batch.values.null_count
        assert all(
            column is None or len(column) == len(batch) for column in (batch.ids, *batch.document_values.values())
        )
        faults.extend(batch.faults)
    return faults


def masks(rows: int) -> list[NDArray[np.bool_]]:
    """Return masks of all rows, of none, and of some at random."""
    rng = np.random.default_rng(7)
    return [np.ones(rows, dtype=np.bool_), np.zeros(rows, dtype=np.bool_), *(rng.random((3, rows)) < 0.5)]


def kept(values: Sequence[Any], keep: NDArray[np.bool_]) -> list[Any]:
    """Return the values that a mask keeps."""
    return [value for value, flag in zip(values, keep.tolist(), strict=True) if flag]


def write(path: Path, texts: Sequence[str | None], ids: Sequence[int] | None = None) -> Path:
    """Write a table of texts and, if given, ids, in the format of the file name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns: dict[str, Sequence[Any]] = {"text": texts, **({} if ids is None else {"id": ids})}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix in (".arrow", ".feather"):
        pyarrow.feather.write_feather(pa.table(columns), str(path))
    elif path.suffix in (".csv", ".tsv"):
        path.write_bytes(delimited(columns, "," if path.suffix == ".csv" else "\t"))
    else:
        path.write_bytes(json_lines(columns))
    return path


def json_lines(columns: dict[str, Sequence[Any]]) -> bytes:
    """Return rows as JSON lines."""
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


def delimited(columns: dict[str, Sequence[Any]], delimiter: str) -> bytes:
    """Return rows as CSV, every field quoted."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    quoted = [delimiter.join('"' + str(value).replace('"', '""') + '"' for value in row) for row in rows]
    return ("\r\n".join(quoted) + "\r\n").encode()
