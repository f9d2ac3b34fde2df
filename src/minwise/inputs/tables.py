"""Table: whatever a Python user calls a table of documents in, one Arrow table out, which is a source like a file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_numbers, from_numpy
from minwise.errors import InputError
from minwise.inputs.columns import check_types, filtered, select, to_batches
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, Source, Unreadable
from minwise.inputs.table_writer import write_tables

__all__ = ["TableSource", "as_table"]

# Where a table that was made from Python objects holds why some of its values are null: column to row to reason.
REASONS = b"minwise:reasons"
# Chunks with fewer rows than this on average are joined: each would cost more than its texts.
SMALL_CHUNK = 256
INT64 = range(-(2**63), 2**63)

Reasons = dict[str, dict[str, str]]


class TableSource(Source):
    """A table in memory. Without an id column, a row's number is its id.

    Attributes:
        table: The table as it was given.
    """

    def __init__(self, table: pa.Table) -> None:
        metadata = dict(table.schema.metadata or {})
        self.reasons: Reasons = json.loads(metadata.pop(REASONS, b"{}"))
        self.table = table.replace_schema_metadata(metadata or None)
        self.name = ""

    def fingerprint(self) -> dict[str, object]:
        """Bytes and rows; a table in memory has no time."""
        return {"name": self.name, "bytes": self.table.nbytes, "modified": None, "rows": self.table.num_rows}

    def size_bytes(self) -> int:
        """Bytes of all columns."""
        return int(self.table.nbytes)

    def known_rows(self) -> int:
        """The rows of the table."""
        return int(self.table.num_rows)

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The numbers of the rows."""
        return from_numpy(rows.astype(np.int64))

    def kept_table(self, keep: NDArray[np.bool_]) -> pa.Table:
        """The rows for which ``keep`` is set."""
        return filtered(self.table, keep).cast(self.table.schema)

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Writes the kept rows as ``documents.parquet``."""
        table = self.kept_table(keep)
        return write_tables(folder / "documents.parquet", [table], table.schema)

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        selection = select(columns, self.table.column_names)
        check_types(selection, self.table.schema)
        self._refuse_mixed(columns.metadata)
        first = 0
        for rows in _joined(self.table.select(selection.needed)).to_batches(max_chunksize=BATCH_ROWS):
            if wanted is None or wanted[first : first + len(rows)].any():
                for batch in to_batches(rows, first, selection, self.name, batch_bytes):
                    yield self._explained(batch, selection.needed)
            first += len(rows)

    def _refuse_mixed(self, names: tuple[str, ...]) -> None:
        """Raises if values of metadata were lost when the table was made, because they were not of one kind."""
        for name in names:
            for row, reason in self.reasons.get(name, {}).items():
                raise Unreadable(f"row {row}: {reason}; metadata of a table must be of one kind in all rows")

    def _explained(self, batch: Batch, names: list[str]) -> Batch:
        """The batch with the reasons that were known when the table was made."""
        if not self.reasons or not batch.faults:
            return batch
        faults = [Fault(fault.source, fault.row, self._reason(fault, names)) for fault in batch.faults]
        return replace(batch, faults=tuple(faults))

    def _reason(self, fault: Fault, names: list[str]) -> str:
        known = (self.reasons.get(name, {}).get(str(fault.row)) for name in names)
        return next((reason for reason in known if reason), fault.reason)


def _joined(table: pa.Table) -> pa.Table:
    """The table in one chunk if its chunks are small."""
    chunks = max((column.num_chunks for column in table.columns), default=0)
    return table.combine_chunks() if chunks > 1 and len(table) < SMALL_CHUNK * chunks else table


def as_table(source: Any) -> pa.Table:  # noqa: ANN401 - whatever a user has
    """A table of what holds documents: texts alone become the column ``text``.

    Args:
        source: A list or iterable of strings or of mappings; a DataFrame or Series of pandas or polars; a table, batch,
            reader or array of Arrow, or anything that gives an Arrow stream; a Hugging Face dataset.

    Raises:
        InputError: If it is none of these. A text that is no string is no error here, but null.
    """
    if isinstance(source, (str, bytes, bytearray, Mapping)):
        raise InputError(f"source must be a table or a list of documents, got one {type(source).__name__}")
    for convert in (_from_dataset, _from_arrow, _from_pandas, _from_stream):
        table = convert(source)
        if table is not None:
            return table
    return _from_objects(source)


def _from_dataset(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """A dataset of Hugging Face: its table if all rows are in order, else as it hands them out."""
    if not hasattr(source, "with_format") or not hasattr(getattr(source, "data", None), "table"):
        return None
    if getattr(source, "_indices", None) is None:
        return source.data.table
    return source.with_format("arrow")[:]


def _from_arrow(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    return _of_column(source) if isinstance(source, (pa.Array, pa.ChunkedArray)) else None


def _of_column(column: Any) -> pa.Table:  # noqa: ANN401 - as above
    """A table of one column, or of the fields of a column of structs."""
    if pa.types.is_struct(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
        return pa.Table.from_batches(batches, pa.schema(list(column.type)))
    return pa.Table.from_arrays([column], names=["text"])


def _from_pandas(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """A frame or column of pandas, told by its name: whoever has one has imported pandas, and nobody else should."""
    if type(source).__module__.partition(".")[0] != "pandas":
        return None
    frame = source.to_frame("text") if hasattr(source, "to_frame") and not hasattr(source, "columns") else source
    if not hasattr(frame, "columns"):
        return None
    columns = {str(name): frame.iloc[:, position] for position, name in enumerate(frame.columns)}
    if len(columns) < len(frame.columns):
        raise InputError("source must have columns of different names, got two of one name")
    arrays, reasons = {}, {}
    for name, column in columns.items():
        arrays[name], reasons[name] = _pandas_column(name, column)
    return _table(arrays, reasons)


def _pandas_column(name: str, column: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - as above
    try:
        return pa.Array.from_pandas(column), {}
    except (pa.ArrowException, ValueError, TypeError):  # such as numbers among strings
        present = column.notna().tolist()
        values = [value if there else None for value, there in zip(column.tolist(), present, strict=True)]
        return _strings(name, values)


def _from_stream(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """What polars and others offer."""
    if type(source).__name__ == "LazyFrame":
        raise InputError("source must be a table that is there, got a LazyFrame; call its collect() first")
    if hasattr(source, "__arrow_c_stream__"):
        return _of_column(pa.chunked_array(source))
    return _of_column(pa.array(source)) if hasattr(source, "__arrow_c_array__") else None


def _from_objects(source: Any) -> pa.Table:  # noqa: ANN401 - as above
    """Python objects: mappings if the first that is not None is one, else texts."""
    try:
        objects = iter(source)
    except TypeError:
        raise InputError(f"source must be a table or a list of documents, got {type(source).__name__}") from None
    begun: list[object] = []
    for value in objects:
        begun.append(value)
        if value is not None:
            break
    values = list(chain(begun, objects))
    if begun and isinstance(begun[-1], Mapping):
        return _from_mappings(values)
    array, reasons = _strings("text", values)
    return _table({"text": array}, {"text": reasons})


def _from_mappings(rows: list[Any]) -> pa.Table:
    """A column for each key, in the order in which they first appear; a key that a row lacks is null there."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} must be a mapping as the first is, got {type(row).__name__}")
    names = list(dict.fromkeys(key for row in rows for key in row))
    arrays, reasons = {}, {}
    for name in names:
        arrays[str(name)], reasons[str(name)] = _column(str(name), [row.get(name) for row in rows])
    return _table(arrays, reasons)


def _table(arrays: dict[str, Any], reasons: Mapping[str, dict[str, str]]) -> pa.Table:
    known = {name: rows for name, rows in reasons.items() if rows}
    table = pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
    return table.replace_schema_metadata({REASONS: json.dumps(known).encode()}) if known else table


def _column(name: str, values: list[Any]) -> tuple[pa.Array, dict[str, str]]:
    """The values of one key: strings and plain numbers by our own hand, since Arrow would import pandas for them."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {str, bytes}:
        return _strings(name, values)
    if kinds == {int} and all(value is None or value in INT64 for value in values):
        return from_numbers(values, np.int64), {}
    if kinds <= {int, float}:
        return from_numbers(values, np.float64), {}
    try:
        return pa.array(values), {}
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # of several kinds
        return _strings(name, values)


def _strings(name: str, values: Iterable[object]) -> tuple[pa.Array, dict[str, str]]:
    """The values that are strings or bytes, and why others are not."""
    encoded: list[bytes | None] = []
    reasons: dict[str, str] = {}
    kind = pa.large_string()
    for row, value in enumerate(values):
        if isinstance(value, (bytes, bytearray, memoryview)):
            kind = pa.large_binary()
        text, reason = _encoded(name, value)
        encoded.append(text)
        if reason:
            reasons[str(row)] = reason
    return from_bytes(encoded, kind), reasons


def _encoded(name: str, value: object) -> tuple[bytes | None, str | None]:
    if value is None:
        return None, None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), None
    if not isinstance(value, str):
        return None, f"{name} must be a string, got {type(value).__name__}"
    try:
        return value.encode(), None
    except UnicodeEncodeError as error:
        return None, f"{name} is not valid Unicode: {error.reason} at {error.start}"
