"""Columns of typed tables (Parquet, Arrow, tables in memory) as batches of values, ids, keep values and metadata.

Ids are int64 if all fit, else large_string. A row has a fault if a text column is null, if its id or its metadata is
not valid UTF-8, or if its elements cannot be made.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import (
    FLAT_TYPES,
    flatten_texts,
    from_bools,
    from_bytes,
    from_numpy,
    invalid_utf8_offset,
    struct_field,
    to_numpy,
    valid_mask,
)
from minwise.checks import MAX_LEVELS
from minwise.inputs import row_reader
from minwise.inputs.column_paths import (
    find_path,
    is_ambiguous,
    is_text_column,
    join_lists,
    missing_column,
    nested_value,
    schema_leaves,
)
from minwise.inputs.elements import Extracted, Reasons, decode_dictionary, id_column, value_type
from minwise.inputs.row_reader import oversized_reason
from minwise.inputs.source import BATCH_ROWS, Batch, ColumnError, Columns, Fault, RowMask, UnreadableError

__all__ = [
    "SAMPLE_ROWS",
    "Selection",
    "UnreadableRows",
    "byte_lengths",
    "check_schema",
    "filter_rows",
    "int64_values",
    "invalid_name",
    "is_text_type",
    "row_bytes",
    "row_objects",
    "select_columns",
    "split_by_bytes",
    "table_row_bytes",
    "to_batches",
    "to_json",
]

TEXT_SEPARATOR = from_bytes([b"\n"], pa.large_binary())
# Rows in which the texts of a table are looked for, to propose a column.
SAMPLE_ROWS = 16
# Errors of a value that Python has no type for, such as a date after the year 9999 or a struct of two equal names.
VALUE_ERRORS = (ArithmeticError, LookupError, pa.ArrowException, RecursionError, TypeError, ValueError)
# Bytes that a value of fixed width counts.
VALUE_BYTES = 8
ID_RULE = "must be strings or whole numbers"


class Selection:
    """The columns of a table to read.

    Attributes:
        columns: The requested columns.
        id: The id column, or None if the table has none.
        needed: The names of all columns to read, each once.
        paths: The path of each of them; a name may be that of a nested field.
    """

    def __init__(self, columns: Columns, id_column: str | None) -> None:
        self.columns = columns
        self.id = id_column
        named = [*columns.text, id_column, *(column.name for column in columns.values), *columns.metadata]
        self.needed = list(dict.fromkeys(name for name in named if name is not None))
        self.paths: dict[str, tuple[str, ...]] = {name: (name,) for name in self.needed}

    @property
    def roots(self) -> list[str]:
        """The names of the columns of the table that hold what is needed."""
        return list(dict.fromkeys(path[0] for path in self.paths.values()))

    def project(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the needed columns under their names."""
        if all(len(path) == 1 for path in self.paths.values()):
            return rows
        arrays = [nested_value(rows.column(path[0]), path[1:]) for path in self.paths.values()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.paths))


@dataclass(frozen=True, slots=True)
class UnreadableRows:
    """Consecutive rows that a file promises and that cannot be read; they take the place of a record batch.

    Attributes:
        rows: Number of rows.
        reason: Why they cannot be read.
        schema: The columns that they would have.
    """

    rows: int
    reason: str
    schema: pa.Schema

    def __len__(self) -> int:
        return self.rows

    def batches(self, first: int, selection: Selection, source: str) -> Iterator[Batch]:
        """Yield the rows as nulls, with a fault each."""
        for start in range(first, first + self.rows, BATCH_ROWS):
            stop = min(first + self.rows, start + BATCH_ROWS)
            nulls = [pa.nulls(stop - start, field.type) for field in self.schema]
            rows = selection.project(pa.RecordBatch.from_arrays(nulls, names=self.schema.names))
            batch = _batch(rows, start, selection, source)
            values = _keep_valid(batch.values, np.zeros(len(rows), dtype=np.bool_))
            faults = tuple(Fault(source, row, self.reason) for row in range(start, stop))
            yield replace(batch, values=values, faults=faults)


def invalid_name(error: UnicodeDecodeError) -> UnreadableError:
    """Return the error of a column whose name cannot be decoded."""
    shown = error.object.decode("utf-8", "backslashreplace")
    return UnreadableError(f"has a column name that is not valid UTF-8: {shown}")


def check_schema(fields: Iterable[Any], level: int = 1) -> None:
    """Raise UnreadableError if the name of a column or field is not valid UTF-8, or if one is nested too deep."""
    for field in fields:
        try:
            field.name.encode()
        except UnicodeDecodeError as error:
            raise invalid_name(error) from None
        if pa.types.is_fixed_size_list(field.type) and field.type.list_size < 0:
            raise UnreadableError(f"has a column of lists of {field.type.list_size} values: {field.name}")
        if level > MAX_LEVELS:
            raise UnreadableError(f"has a column of more than {MAX_LEVELS} levels of lists and structs")
        check_schema((field.type.field(number) for number in range(field.type.num_fields)), level + 1)


def select_columns(
    columns: Columns, schema: pa.Schema, sample: Callable[[], Any] | None = None, *, typed: bool = True
) -> Selection:
    """Return the selection for a table with the columns of ``schema``.

    Args:
        columns: The requested columns.
        schema: The columns of the table.
        sample: Returns the first rows, which tell columns of texts from others in an error.
        typed: Whether the format has types, which are checked and shown in errors.

    Raises:
        ColumnError: If one of the columns is missing, occurs twice or has a type that cannot be used.
    """
    id_name = columns.id if columns.id is not None or "id" not in schema.names else "id"
    selection = Selection(columns, id_name)
    for name in selection.needed:
        path = find_path(schema, name)
        if path is None:
            leaves = schema_leaves(schema, None if sample is None else sample(), typed=typed)
            raise ColumnError(missing_column(name, leaves, _setting_of(name, selection)))
        if is_ambiguous(schema, path):
            raise ColumnError(f"has more than one column {name!r}; its columns are: {', '.join(schema.names)}")
        selection.paths[name] = path
    if typed:
        _check_types(selection, schema)
    return selection


def _setting_of(name: str, selection: Selection) -> str | None:
    """Return the setting that names a column; None if the setting holds more than the name."""
    if name in selection.columns.text:
        elements = selection.columns.elements
        return "text_column" if elements is None else elements.setting_of(name)
    return "id_column" if name == selection.id else None


def _type_of(selection: Selection, schema: pa.Schema, name: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the type of a needed column."""
    first, *rest = selection.paths[name]
    empty = pa.nulls(0, schema.field(first).type)
    return nested_value(empty, rest).type if rest else schema.field(first).type


def _check_types(selection: Selection, schema: pa.Schema) -> None:
    """Reject a table whose columns cannot be values, ids or keep values, before any of it is read.

    Raises:
        ColumnError: With the type that was found.
    """
    elements = selection.columns.elements
    for name in selection.columns.text:
        kind = _type_of(selection, schema, name)
        problem = None if elements is None else elements.type_problem(name, kind)
        if problem is not None:
            raise ColumnError(problem)
        if elements is None and not is_text_column(kind):
            raise ColumnError(f"{name} must be strings, got a column of {kind}{_field_proposal(name, kind)}")
    for column, accepts, rule in (
        (selection.id, _is_id_type, ID_RULE),
        *((column.name, _is_keep_type, "must be numbers, strings or dates") for column in selection.columns.values),
    ):
        kind = None if column is None else _type_of(selection, schema, column)
        if kind is not None and not accepts(value_type(kind)):
            raise ColumnError(f"{column} {rule}, got a column of {kind}")


def _field_proposal(name: str, kind: Any) -> str:  # noqa: ANN401 - as above
    """Return a proposal to name a text field of a struct instead of the struct."""
    texts = [leaf.path for leaf in schema_leaves(pa.schema([(name, kind)])) if leaf.is_text and leaf.path != name]
    return f"; did you mean text_column={texts[0]!r}?" if texts else ""


def to_batches(
    rows: pa.RecordBatch | UnreadableRows,
    first: int,
    selection: Selection,
    source: str,
    max_bytes: int,
    *,
    is_file: bool = True,
) -> Iterator[Batch]:
    """Yield the rows in batches of at most ``max_bytes``, or one row.

    A row of a file that is longer than a record may be is a fault, as in formats of lines.
    """
    if isinstance(rows, UnreadableRows):
        yield from rows.batches(first, selection, source)
        return
    needed = selection.project(rows)
    sizes = table_row_bytes(needed.select(selection.needed))
    oversized = (sizes > row_reader.MAX_RECORD_BYTES) & is_file
    for start, stop in split_by_bytes(np.where(oversized, max_bytes + 1, sizes), max_bytes):
        if oversized[start]:  # alone, because it is larger than a batch
            yield from UnreadableRows(1, oversized_reason(), rows.schema).batches(first + start, selection, source)
        else:
            yield _batch(needed[start:stop], first + start, selection, source)


def table_row_bytes(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the approximate bytes of each row."""
    return sum((row_bytes(column) for column in rows.columns), np.zeros(len(rows), dtype=np.int64))


def row_bytes(array: Any, levels: int = MAX_LEVELS) -> NDArray[np.int64]:  # noqa: ANN401 - pyarrow has no types
    """Return the approximate bytes of each value; they depend on the value, not on the array that holds it.

    Values nested deeper than ``levels`` count as one number each.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(array.storage, levels)
    if is_text_type(value_type(kind)):
        return byte_lengths(array)
    if levels and pa.types.is_struct(kind):
        fields = (struct_field(array, number) for number in range(kind.num_fields))
        return sum((row_bytes(field, levels - 1) for field in fields), _constant_sizes(array, 0))
    if levels and (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)):
        return _list_bytes(array, levels - 1)
    if pa.types.is_fixed_size_binary(kind):
        return _constant_sizes(array, kind.byte_width)
    return _constant_sizes(array, VALUE_BYTES * (kind.list_size if pa.types.is_fixed_size_list(kind) else 1))


def _list_bytes(array: Any, levels: int) -> NDArray[np.int64]:  # noqa: ANN401 - as above
    values = array.items if pa.types.is_map(array.type) else array.values
    ends = np.concatenate([[0], np.cumsum(row_bytes(values, levels))])
    return np.diff(ends[int64_values(array.offsets, missing=0)])


def _constant_sizes(array: pa.Array, size: int) -> NDArray[np.int64]:
    return np.full(len(array), size, dtype=np.int64)


def _batch(rows: pa.RecordBatch, first: int, selection: Selection, source: str) -> Batch:
    values, reasons = _values(rows, selection)
    ids, invalid = _ids(rows, selection)
    metadata, invalid_metadata = _metadata(rows, selection)
    invalid.update(invalid_metadata)
    if invalid:
        values = _keep_valid(values, ~np.isin(np.arange(len(rows)), list(invalid)))
    document_values = {column.key: column.of_column(rows.column(column.name)) for column in selection.columns.values}
    faults = [Fault(source, first + row, reason) for row, reason in sorted({**invalid, **reasons}.items())]
    return Batch(first, values, ids, document_values, tuple(faults), metadata)


def _keep_valid(values: pa.Array, valid: RowMask) -> pa.Array:
    """Return the values, null where ``valid`` is not set."""
    if not pa.types.is_nested(values.type):
        return pc.if_else(from_bools(valid), values, pa.nulls(len(values), values.type))
    # if_else does not support lists; take does.
    return values.take(from_numpy(np.arange(len(values)), valid))


def split_by_bytes(sizes: NDArray[np.int64], max_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of at most ``max_bytes`` each, or one row."""
    ends = np.cumsum(sizes)
    start, done = 0, 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(ends, done + max_bytes, side="right")))
        yield start, stop
        start, done = stop, int(ends[stop - 1])


def byte_lengths(array: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each text, 0 for a null; a dictionary counts as if it were decoded."""
    if pa.types.is_dictionary(array.type):
        sizes = np.append(byte_lengths(array.dictionary), 0)
        return sizes[int64_values(array.indices, missing=len(sizes) - 1)]
    if array.type == pa.null():
        return np.zeros(len(array), dtype=np.int64)
    if array.type in (pa.string_view(), pa.binary_view()):
        return _view_lengths(array)
    return int64_values(pc.binary_length(flatten_texts(array)), missing=0)


def _view_lengths(array: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each text without a copy: a million views may share one text of a megabyte."""
    if not len(array):
        return np.empty(0, dtype=np.int64)
    # A view has 16 bytes, of which the first four are its length.
    words = np.frombuffer(array.buffers()[1], dtype="<i4", count=4 * len(array), offset=16 * array.offset)
    return np.where(valid_mask(array), words[::4], 0).astype(np.int64)


def int64_values(array: pa.Array, missing: int) -> NDArray[np.int64]:
    """Return whole numbers as a NumPy array, with ``missing`` for nulls."""
    if len(array) == 0:
        return np.empty(0, dtype=np.int64)
    values = to_numpy(array).astype(np.int64)
    return np.where(valid_mask(array), values, missing) if array.null_count else values


def filter_rows(rows: Any, keep: RowMask) -> Any:  # noqa: ANN401 - a table or a record batch
    """Return the kept rows. Arrow cannot filter columns of views, so these become columns of strings or bytes."""
    schema = pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema], rows.schema.metadata)
    rows = rows if schema.equals(rows.schema) else rows.cast(schema)
    if keep.all():
        return rows
    try:
        return rows.filter(from_bools(keep))
    except pa.ArrowNotImplementedError:  # run-end encoded columns, and views in maps
        return _join_runs(rows, keep)


def _join_runs(rows: Any, keep: RowMask) -> Any:  # noqa: ANN401 - as above
    """Return the kept rows of columns that Arrow can slice and join, but not filter."""
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
    runs = [rows.slice(start, stop - start) for start, stop in edges.tolist()] or [rows.slice(0, 0)]
    return pa.concat_tables(runs) if isinstance(rows, pa.Table) else pa.concat_batches(runs)


def row_objects(rows: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - as above
    """Yield each row of a table or a record batch as an object.

    Raises:
        UnreadableError: If two columns have one name, or a value has no Python type.
    """
    for name in (name for name in rows.schema.names if rows.schema.names.count(name) > 1):
        raise UnreadableError(f"has more than one column {name!r}, which an object cannot have")
    try:
        yield from rows.to_pylist()
    except VALUE_ERRORS:
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            _check_values(name, column)
        raise


def _check_values(name: str, column: Any) -> None:  # noqa: ANN401 - an array or a chunked array
    try:
        column.to_pylist()
    except VALUE_ERRORS as error:
        raise UnreadableError(f"{name} has {_value_reason(column.type, error)}") from None


def _value_reason(kind: Any, error: Exception) -> str:  # noqa: ANN401 - pyarrow has no types
    """Return why a value of a column cannot be a JSON value."""
    if isinstance(error, UnicodeDecodeError) or isinstance(error.__cause__, UnicodeDecodeError):
        return "bytes that are not valid UTF-8, which JSON cannot hold"
    return f"a value of {kind} that JSON cannot hold: {' '.join(str(error).split()) or type(error).__name__}"


def _without_views(kind: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_views(kind.value_type)))
    return kind


def _values(rows: pa.RecordBatch, selection: Selection) -> Extracted:
    """Return the texts, several columns joined, or the elements of the rows, and the reason for each null."""
    if selection.columns.elements is not None:
        return selection.columns.elements.from_arrow([rows.column(name) for name in selection.columns.text])
    texts = [flatten_texts(join_lists(rows.column(name))) for name in selection.columns.text]
    reasons: Reasons = {}
    for name, column in zip(selection.columns.text, texts, strict=True):
        given = valid_mask(rows.column(name)) if column.null_count else ()
        for row in np.flatnonzero(~valid_mask(column)).tolist() if column.null_count else ():
            reasons.setdefault(row, f"{name} holds a null" if given[row] else f"{name} is null")
    return (texts[0] if len(texts) == 1 else _join_texts(texts)), reasons


def _join_texts(columns: list[pa.Array]) -> pa.Array:
    """Return one text per row, as bytes, so that only the kernel checks the encoding."""
    wide = [column.cast(pa.large_binary()) for column in columns]
    return pc.binary_join_element_wise(*wide, TEXT_SEPARATOR[0], null_handling="emit_null")


def _ids(rows: pa.RecordBatch, selection: Selection) -> tuple[pa.Array | None, Reasons]:
    """Return the ids, and the reason for each that cannot be used."""
    if selection.id is None:
        return None, {}
    ids = decode_dictionary(rows.column(selection.id))
    if pa.types.is_integer(ids.type) or ids.type == pa.null():
        return id_column(ids), {}
    ids = ids.cast(pa.large_binary())
    try:
        return ids.cast(pa.large_string()), {}
    except pa.ArrowInvalid:
        return _utf8_ids(ids, selection.id)


def _utf8_ids(ids: pa.Array, name: str) -> Extracted:
    """Return the ids that are UTF-8, and the reason for each that is not."""
    values: list[bytes | None] = ids.to_pylist()
    reasons = {}
    for row, value in enumerate(values):
        invalid = invalid_utf8_offset(value or b"")
        if invalid is not None:
            values[row] = None
            reasons[row] = f"{name} is not valid UTF-8 at byte {invalid}"
    return from_bytes(values, pa.large_string()), reasons


def _metadata(rows: pa.RecordBatch, selection: Selection) -> tuple[list[dict[str, Any]] | None, Reasons]:
    """Return the metadata, and the reason for each that cannot be used."""
    names = list(selection.columns.metadata)
    return _json_objects(rows.select(names)) if names else (None, {})


def _json_objects(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], Reasons]:
    """Return a JSON object for each row, and the reason for each row that has none.

    Times become ISO strings, decimals numbers, bytes text, and NaN and infinities null.
    """
    try:
        return to_json(rows), {}
    except VALUE_ERRORS:
        return _json_objects_by_value(rows)


def _json_objects_by_value(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], Reasons]:
    objects: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    reasons: Reasons = {}
    for row, name in product(range(len(rows)), rows.schema.names):
        value = rows.slice(row, 1).select([name])
        try:
            objects[row].update(to_json(value)[0])
        except VALUE_ERRORS as error:
            reasons.setdefault(row, f"{name} has {_value_reason(value.schema.field(0).type, error)}")
    return objects, reasons


def to_json(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a JSON object for each row; raise one of ``VALUE_ERRORS`` for a value that JSON has no type for."""
    objects: list[dict[str, Any]] = orjson.loads(orjson.dumps(rows.to_pylist(), default=_json_value))
    return objects


def _json_value(value: object) -> object:
    """Convert a value of a type that orjson does not support."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether values of this type can be texts; a column of the null type has only missing texts."""
    return kind in (*FLAT_TYPES, pa.string_view(), pa.binary_view(), pa.null())


def _is_id_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) or is_text_type(kind)


def _is_keep_type(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(
        _is_id_type(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )
