"""Sources in memory: tables of documents of any Python library, and sets given directly.

The id of a row without an id column is its number. A value of a Python list that is not a string is null and has a
fault. Kept rows are written as ``documents.parquet``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, from_bytes, from_numbers, from_numpy, to_numpy
from minwise.checks import show
from minwise.errors import ConfigError, InputError
from minwise.inputs.column_paths import find_path, missing_column, nested_value, schema_leaves
from minwise.inputs.columns import (
    SAMPLE_ROWS,
    Selection,
    check_schema,
    filter_rows,
    is_text_type,
    row_objects,
    select_columns,
    to_batches,
)
from minwise.inputs.document_values import slice_values
from minwise.inputs.elements import INT64_RANGE
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import BATCH_ROWS, Batch, ColumnError, Columns, Fault, RowMask, Source, UnreadableError
from minwise.inputs.table_edits import TableEditor
from minwise.inputs.table_writer import write_tables
from minwise.text.shingling import ShingleSets, hash_member

__all__ = ["SetsSource", "TableSource", "as_table", "is_in_memory", "open_in_memory", "reusable", "row_selector"]

# Schema metadata key under which a table made from Python objects stores why values are null: column to row to reason.
REASONS_KEY = b"minwise:reasons"
# Chunks with fewer rows than this on average are joined: each would cost more than its texts.
SMALL_CHUNK = 256


def open_in_memory(source: Any, columns: Columns) -> Source:  # noqa: ANN401 - any kind of table or sets
    """Return the source of a table, a list of documents or a collection of sets.

    Raises:
        InputError: If it is none of these, or lacks the column of sets.
        ConfigError: If a setting does not apply to it.
    """
    _refuse_splits(source)
    if isinstance(columns.elements, ItemLists):
        return TableSource(_table_of_lists(source, columns))
    if isinstance(columns.elements, ItemSets) or isinstance(source, ShingleSets):
        return _sets_source(source, columns)
    return TableSource(as_table(source))


class TableSource(Source):
    """A table in memory.

    Attributes:
        table: The table as it was given.
    """

    def __init__(self, table: pa.Table) -> None:
        metadata = dict(table.schema.metadata or {})
        self.reasons: dict[str, dict[str, str]] = json.loads(metadata.pop(REASONS_KEY, b"{}"))
        self.table = table.replace_schema_metadata(metadata or None)
        self.name = ""

    def fingerprint(self) -> dict[str, object]:
        """Return bytes and rows; a table in memory has no modification time."""
        return {"name": self.name, "bytes": self.table.nbytes, "modified": None, "rows": self.table.num_rows}

    def size_bytes(self) -> int:
        """Return the bytes of all columns."""
        return int(self.table.nbytes)

    def known_rows(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the row numbers."""
        return from_numpy(rows.astype(np.int64))

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.table.column_names)

    def kept_table(self, keep: RowMask, edits: RowEdits | None = None) -> pa.Table:
        """Return the rows for which ``keep`` is set, with their edits."""
        kept = filter_rows(self.table, keep)
        if edits is None:
            return kept.cast(self.table.schema)
        editor = TableEditor(edits, self.table.schema)
        return _edited_table(kept, np.flatnonzero(keep), editor).cast(editor.schema)

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows as ``documents.parquet``."""
        return _write_documents(self.kept_table(keep, edits), folder)

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        selection = self._select(columns)
        self._reject_mixed(columns.metadata)
        first = 0
        for rows in _merge_small_chunks(self.table.select(selection.roots)).to_batches(max_chunksize=BATCH_ROWS):
            if wanted is None or wanted[first : first + len(rows)].any():
                for batch in to_batches(rows, first, selection, self.name, batch_bytes, is_file=False):
                    yield self._with_reasons(batch, selection.needed)
            first += len(rows)

    def _select(self, columns: Columns) -> Selection:
        return select_columns(columns, self.table.schema, lambda: self.table.slice(0, SAMPLE_ROWS))

    def _reject_mixed(self, names: tuple[str, ...]) -> None:
        """Raise if metadata values were lost when the table was made because a column had values of several types."""
        for name in names:
            for row, reason in self.reasons.get(name, {}).items():
                raise UnreadableError(f"row {row}: {reason}; metadata of a table must be of one type in all rows")

    def _with_reasons(self, batch: Batch, names: list[str]) -> Batch:
        """Return the batch with the reasons that were found when the table was made."""
        if not self.reasons or not batch.faults:
            return batch
        faults = [Fault(fault.source, fault.row, self._reason(fault, names)) for fault in batch.faults]
        return replace(batch, faults=tuple(faults))

    def _reason(self, fault: Fault, names: list[str]) -> str:
        known = (self.reasons.get(name, {}).get(str(fault.row)) for name in names)
        return next((reason for reason in known if reason), fault.reason)

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        return row_objects(self.kept_table(keep, edits))


def _edited_table(table: pa.Table, numbers: NDArray[np.int64], editor: TableEditor) -> pa.Table:
    """Return kept rows, which have the given numbers, with their edits."""
    edited: list[pa.RecordBatch] = []
    first = 0
    for rows in table.to_batches():
        edited.extend(editor.edited(rows, numbers[first : first + len(rows)]))
        first += len(rows)
    return pa.Table.from_batches(edited) if edited else editor.schema.empty_table()


def _write_documents(table: pa.Table, folder: Path) -> int:
    """Write kept rows as ``documents.parquet``.

    Raises:
        InputError: If a column has a type or a value that Parquet does not have.
    """
    try:
        return write_tables(folder / "documents.parquet", [table], table.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"source has a column that Parquet cannot hold: {reason}; cast it, or leave it out") from None


def _merge_small_chunks(table: pa.Table) -> pa.Table:
    """Return the table in one chunk if its chunks are small."""
    chunks = max((column.num_chunks for column in table.columns), default=0)
    return table.combine_chunks() if chunks > 1 and len(table) < SMALL_CHUNK * chunks else table


def as_table(source: Any) -> pa.Table:  # noqa: ANN401 - any kind of table
    """Convert documents to a table; texts alone become the column ``text``.

    Args:
        source: A list or iterable of strings or of mappings; a DataFrame or Series of pandas or polars; an Arrow table,
            batch, reader or array, or any object with an Arrow stream; a Hugging Face dataset.

    Raises:
        InputError: If it is none of these. A text that is not a string becomes null and raises no error here.
    """
    if isinstance(source, (str, bytes, bytearray, Mapping)):
        _refuse_splits(source)
        raise InputError(f"source must be a table or a list of documents, got one {type(source).__name__}")
    for convert in (_from_dataset, _from_arrow, _from_pandas, _from_stream):
        table = convert(source)
        if table is not None:
            return _with_valid_schema(table)
    return _with_valid_schema(_from_objects(source))


def _with_valid_schema(table: pa.Table) -> pa.Table:
    try:
        check_schema(table.schema)
    except UnreadableError as error:
        raise InputError(f"source {error}") from None
    return table


def _from_dataset(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """Convert a Hugging Face dataset; without a selection of rows, its table is not copied."""
    return source.with_format("arrow")[:] if _is_dataset(source) else None


def _is_dataset(source: object) -> bool:
    """Return whether an object is a Hugging Face dataset whose rows have numbers, unlike those of a streamed one."""
    return _is_of(source, "datasets") and hasattr(source, "with_format") and hasattr(source, "select")


def _is_of(source: object, library: str) -> bool:
    """Return whether an object, or what its class derives from, is of a library, which need not be imported."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(source).__mro__)


def _refuse_splits(source: object) -> None:
    """Raise if the splits of a Hugging Face dataset are given instead of one of them."""
    if isinstance(source, Mapping) and _is_of(source, "datasets"):
        splits = ", ".join(map(str, source))
        remedy = f'choose one, such as ds["{next(iter(source), "train")}"]'
        raise InputError(f"source must be one split, got a {type(source).__name__} of {splits}; {remedy}")


def is_in_memory(source: Source) -> bool:
    """Return whether a source is a table or a collection of sets in memory."""
    return isinstance(source, (TableSource, SetsSource))


def reusable(source: Any) -> Any:  # noqa: ANN401 - as above
    """Return documents that can be read twice: the values of an iterator as a list, anything else as it is."""
    return list(source) if isinstance(source, Iterator) and not hasattr(source, "__arrow_c_stream__") else source


def row_selector(source: Any) -> Callable[[RowMask], Any] | None:  # noqa: ANN401 - as above
    """Return a function that selects rows of an object in its own type; None for Arrow data.

    It refers to the object, without a copy of its values; rows that are added later do not matter.
    """
    if isinstance(source, (pa.Table, pa.RecordBatch, pa.RecordBatchReader, pa.Array, pa.ChunkedArray, ShingleSets)):
        return None
    if _is_of(source, "pandas"):
        frame = source.copy(deep=False)
        return lambda keep: frame[keep]
    if _is_dataset(source):
        return lambda keep: source.select(np.flatnonzero(keep))
    if _is_of(source, "polars"):
        return lambda keep: source[np.flatnonzero(keep)]
    if isinstance(source, np.ndarray):
        return lambda keep: source[keep]
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return None
    rows = list(source)
    return lambda keep: list(compress(rows, keep))


def _from_arrow(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    return _from_column(source) if isinstance(source, (pa.Array, pa.ChunkedArray)) else None


def _from_column(column: Any) -> pa.Table:  # noqa: ANN401 - as above
    """Convert one column, or the fields of a column of structs."""
    if pa.types.is_struct(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
        return pa.Table.from_batches(batches, pa.schema(list(column.type)))
    return pa.Table.from_arrays([column], names=["text"])


def _from_pandas(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """Convert a DataFrame or Series of pandas, recognised by its module so that pandas need not be imported."""
    if not _is_of(source, "pandas"):
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
    return _table_with_reasons(arrays, reasons)


def _pandas_column(name: str, column: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 - as above
    try:
        return pa.Array.from_pandas(column), {}
    except (pa.ArrowException, ValueError, TypeError):  # such as numbers among strings
        valid = column.notna().tolist()
        values = [value if is_valid else None for value, is_valid in zip(column.tolist(), valid, strict=True)]
        return _string_column(name, values)


def _from_stream(source: Any) -> pa.Table | None:  # noqa: ANN401 - as above
    """Convert an object with the Arrow C interface, such as a DataFrame of polars."""
    if type(source).__name__ == "LazyFrame":
        raise InputError("source must be a table with its rows in memory, got a LazyFrame; call its collect() first")
    if hasattr(source, "__arrow_c_stream__"):
        return _from_column(pa.chunked_array(source))
    return _from_column(pa.array(source)) if hasattr(source, "__arrow_c_array__") else None


def _from_objects(source: Any) -> pa.Table:  # noqa: ANN401 - as above
    """Convert Python objects: mappings if the first that is not None is one, else texts."""
    try:
        objects = iter(source)
    except TypeError:
        raise InputError(f"source must be a table or a list of documents, got {type(source).__name__}") from None
    start: list[object] = []
    for value in objects:
        start.append(value)
        if value is not None:
            break
    values = list(chain(start, objects))
    if start and isinstance(start[-1], Mapping):
        return _from_mappings(values)
    array, reasons = _string_column("text", values)
    return _table_with_reasons({"text": array}, {"text": reasons})


def _from_mappings(rows: list[Any]) -> pa.Table:
    """Return a column for each key, in the order of first appearance; a key that a row lacks is null there."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} must be a mapping as the first is, got {type(row).__name__}")
    names = list(dict.fromkeys(key for row in rows for key in row))
    arrays, reasons = {}, {}
    for name in names:
        arrays[str(name)], reasons[str(name)] = _object_column(str(name), [row.get(name) for row in rows])
    return _table_with_reasons(arrays, reasons)


def _table_with_reasons(arrays: dict[str, Any], reasons: Mapping[str, dict[str, str]]) -> pa.Table:
    known = {name: rows for name, rows in reasons.items() if rows}
    table = pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
    return table.replace_schema_metadata({REASONS_KEY: json.dumps(known).encode()}) if known else table


def _object_column(name: str, values: list[Any]) -> tuple[pa.Array, dict[str, str]]:
    """Return the values of one key; strings and numbers are converted here, since Arrow would import pandas."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {str, bytes}:
        return _string_column(name, values)
    if kinds == {int} and all(value is None or value in INT64_RANGE for value in values):
        return from_numbers(values, np.int64), {}
    if kinds <= {int, float}:
        return from_numbers(values, np.float64), {}
    try:
        return pa.array(values), {}
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # values of several types
        return _struct_column(name, values) if kinds == {dict} else _string_column(name, values)


def _struct_column(name: str, values: list[Any]) -> tuple[pa.Array, dict[str, str]]:
    """Return mappings as structs, with a field for each key; the values of a field may have several types."""
    keys = list(dict.fromkeys(str(key) for value in values for key in value or ()))
    fields = [
        _object_column(f"{name}.{key}", [None if value is None else value.get(key) for value in values]) for key in keys
    ]
    reasons = {row: reason for _, found in fields for row, reason in found.items()}
    missing = from_bools(np.array([value is None for value in values]))
    return pa.StructArray.from_arrays([column for column, _ in fields], keys, mask=missing), reasons


def _string_column(name: str, values: Iterable[object]) -> tuple[pa.Array, dict[str, str]]:
    """Return the values that are strings or bytes, and the reason for each other one."""
    encoded: list[bytes | None] = []
    reasons: dict[str, str] = {}
    kind = pa.large_string()
    for row, value in enumerate(values):
        if isinstance(value, (bytes, bytearray, memoryview)):
            kind = pa.large_binary()
        text, reason = _encode(name, value)
        encoded.append(text)
        if reason:
            reasons[str(row)] = reason
    return from_bytes(encoded, kind), reasons


def _encode(name: str, value: object) -> tuple[bytes | None, str | None]:
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


class SetsSource(Source):
    """Sets in memory, whose values are their hashed elements.

    Attributes:
        table: The table that has the sets as a column, or None.
    """

    def __init__(self, sets: ShingleSets, table: pa.Table | None = None) -> None:
        self.name = ""
        self.table = table
        self._sets = sets

    def fingerprint(self) -> dict[str, object]:
        """Return the bytes of the elements; sets in memory have no modification time."""
        return {"name": "", "bytes": self.size_bytes(), "modified": None}

    def size_bytes(self) -> int:
        """Return the bytes of the hashed elements."""
        return int(self._sets.hashes.nbytes)

    def known_rows(self) -> int:
        """Return the number of sets."""
        return len(self._sets)

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        sets, offsets = self._sets.to_arrow(), self._sets.offsets
        ids = self._table_column(columns.id or "id", required=columns.id is not None)
        document_values = {
            column.key: column.of_column(self._table_column(column.name, required=True)) for column in columns.values
        }
        start = 0
        while start < len(self._sets):
            end = int(np.searchsorted(offsets, offsets[start] + batch_bytes // 8, side="right")) - 1
            end = min(max(end, start + 1), len(self._sets))
            rows = end - start
            batch_ids = None if ids is None else ids.slice(start, rows)
            yield Batch(start, sets.slice(start, rows), batch_ids, slice_values(document_values, start, rows))
            start = end

    def _table_column(self, name: str | None, *, required: bool) -> pa.Array | None:
        """Return another column of the table, numbers as int64 and texts as large_string."""
        names = [] if self.table is None else self.table.column_names
        if self.table is None or name is None or name not in names:
            if name is not None and required:
                leaves = [] if self.table is None else schema_leaves(self.table.schema)
                raise ColumnError(missing_column(name, leaves))
            return None
        array = self.table.column(name).combine_chunks()
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if pa.types.is_integer(array.type):
            return array.cast(pa.int64())
        return array.cast(pa.large_string()) if is_text_type(array.type) else array

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the numbers of the sets."""
        return from_numpy(rows.astype(np.int64))

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of the table; None without a table."""
        return None if self.table is None else list(self.table.column_names)

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows as ``documents.parquet``."""
        return _write_documents(self.kept_table(keep, edits), folder)

    def kept_table(self, keep: RowMask, edits: RowEdits | None = None) -> pa.Table:
        """Return the kept rows of the table, or the numbers of the kept sets."""
        if self.table is None:
            return pa.table({"id": from_numpy(np.flatnonzero(keep))})
        kept = self.table.filter(from_bools(keep))
        if edits is None:
            return kept
        return _edited_table(kept, np.flatnonzero(keep), TableEditor(edits, self.table.schema))

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        return row_objects(self.kept_table(keep, edits))


def _sets_source(source: Any, columns: Columns) -> SetsSource:  # noqa: ANN401 - as above
    """Return the source of sets given directly, or of the list column of a table."""
    elements = columns.elements if isinstance(columns.elements, ItemSets) else ItemSets(column="text")
    if isinstance(source, ShingleSets):
        return SetsSource(_check_plain(source, elements))
    rows = source.to_pylist() if isinstance(source, (pa.Array, pa.ChunkedArray)) else _rows_of_iterable(source)
    if rows is not None and not (rows and isinstance(rows[0], Mapping)):
        if elements.weight is not None:
            raise ConfigError(
                f"weight must be a column of a table, got {show(elements.weight)} with sets that have none"
            )
        return SetsSource(_build_sets(rows, None, elements))
    table = as_table(source if rows is None else rows)
    lists = [_lists_of(table, name) for name in elements.columns]
    return SetsSource(_build_sets(lists[0], lists[1] if len(lists) > 1 else None, elements), table)


def _check_plain(sets: ShingleSets, elements: ItemSets) -> ShingleSets:
    """Return sets of hashes; raise if repetitions or weights of their items are wanted."""
    if elements.bag:
        raise ConfigError("bag must be left out with ShingleSets, which have no repetitions, got True")
    for name, given in (("weight", elements.weight), ("weights", elements.weights and elements.weights.setting)):
        if given is not None:
            raise ConfigError(f"{name} must be left out with ShingleSets, which have only hashes, got {show(given)}")
    return sets


def _lists_of(table: pa.Table, name: str) -> list[Any]:
    path = find_path(table.schema, name)
    if path is None:
        raise InputError(f"the table of sets {missing_column(name, schema_leaves(table.schema))}")
    column = table.column(path[0]).combine_chunks()
    values: list[Any] = nested_value(column, path[1:]).to_pylist()
    return values


def _rows_of_iterable(source: Any) -> list[Any] | None:  # noqa: ANN401 - as above
    """Return the rows of an iterable that is not a table; None for a table."""
    return list(source) if isinstance(source, Iterable) and not hasattr(source, "__arrow_c_stream__") else None


def _build_sets(sets: Iterable[Iterable[object]], lists: list[Any] | None, elements: ItemSets) -> ShingleSets:
    """Return sets given directly; in a bag an item that occurs twice counts twice.

    Args:
        sets: The items of each set.
        lists: The weights of the items of each set, if there is a column of them.
        elements: Makes sets of items.
    """
    if not elements.bag and not elements.holds_weights:
        return ShingleSets.from_sets(sets)
    rows = [list(items) for items in sets]
    ShingleSets.from_sets(rows)  # raises for values that cannot be elements
    owners = np.repeat(np.arange(len(rows)), [len(items) for items in rows])
    seed = elements.seed if elements.holds_weights else 1
    hashes = np.array([hash_member(item, 0, seed) for items in rows for item in items], dtype=np.uint64)
    built, reasons = elements.sets_of(owners, hashes, len(rows), {}, lists)
    for number, reason in sorted(reasons.items()):
        raise InputError(f"set {number}: {reason}" if elements.holds_weights else f"set {number} {reason}")
    return ShingleSets(to_numpy(built.offsets), to_numpy(built.values), settings=elements.settings)


def _table_of_lists(source: Any, columns: Columns) -> pa.Table:  # noqa: ANN401 - as above
    """Return sets in memory as a column of lists of their items, unhashed."""
    if isinstance(source, ShingleSets):
        raise ConfigError("transpose needs sets of items, got ShingleSets, which have only their hashes")
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return pa.table({columns.text[0]: source})
    rows = _rows_of_iterable(source)
    if rows is None or (rows and isinstance(rows[0], Mapping)):
        return as_table(source if rows is None else rows)
    try:
        return pa.table({columns.text[0]: pa.array([None if row is None else list(row) for row in rows])})
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError("items must all be whole numbers or all be strings in sets in memory") from None
