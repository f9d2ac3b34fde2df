"""Columns: record batches of any table in, batches of texts, ids and ranks out, with a fault for each null text."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import flags, from_bytes, from_numpy, invalid_at, present, to_numpy
from minwise.inputs.source import Batch, Columns, Fault, Unreadable
from minwise.inputs.table_writer import json_objects

__all__ = ["Selection", "check_types", "cuts", "filtered", "is_text", "lengths", "numbers", "select", "to_batches"]

FLAT = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
JOINED_BY = from_bytes([b"\n"], pa.large_binary())
ID_RULE = "must be strings or whole numbers"


class Selection:
    """Which columns of a table are read, and what they have to be.

    Attributes:
        columns: What was asked for.
        id: The column of the ids, or None if the table has none.
        needed: The names of all columns to read, each once.
    """

    def __init__(self, columns: Columns, id_column: str | None) -> None:
        self.columns = columns
        self.id = id_column
        named = [*columns.text, id_column, columns.rank, *columns.metadata]
        self.needed = list(dict.fromkeys(name for name in named if name is not None))


def select(columns: Columns, names: Sequence[str]) -> Selection:
    """The selection out of a file that has the columns ``names``.

    Raises:
        Unreadable: If one of the columns is not there, or there twice.
    """
    id_column = columns.id if columns.id is not None or "id" not in names else "id"
    selection = Selection(columns, id_column)
    for name in selection.needed:
        if name not in names:
            raise Unreadable(f"has no column {name!r}; its columns are: {', '.join(names)}")
        if list(names).count(name) > 1:
            raise Unreadable(f"has more than one column {name!r}; its columns are: {', '.join(names)}")
    return selection


def check_types(selection: Selection, schema: pa.Schema) -> None:
    """Refuses a table whose columns can not be texts, ids or ranks, before any of it is read.

    Raises:
        Unreadable: With the type that was found.
    """
    elements = selection.columns.elements
    for name in selection.columns.text:
        complaint = None if elements is None else elements.complaint(name, schema.field(name).type)
        if complaint is not None:
            raise Unreadable(complaint)
        if elements is None and not is_text(_decoded(schema.field(name).type)):
            raise Unreadable(f"{name} must be strings, got a column of {schema.field(name).type}")
    if selection.id is not None and not _is_id(_decoded(schema.field(selection.id).type)):
        raise Unreadable(f"{selection.id} {ID_RULE}, got a column of {schema.field(selection.id).type}")
    rank = selection.columns.rank
    if rank is not None and not _is_rank(_decoded(schema.field(rank).type)):
        raise Unreadable(f"{rank} must be numbers, strings or dates, got a column of {schema.field(rank).type}")


def to_batches(rows: pa.RecordBatch, first: int, selection: Selection, source: str, most: int) -> Iterator[Batch]:
    """The rows in batches of at most ``most`` bytes of text, or one row."""
    if selection.columns.elements is not None:
        sizes = np.full(len(rows), max(1, rows.nbytes // max(1, len(rows))), dtype=np.int64)
    else:
        sizes = _text_sizes(rows, selection)
    for start, stop in cuts(sizes, most):
        yield _batch(rows[start:stop], first + start, selection, source)


def _text_sizes(rows: pa.RecordBatch, selection: Selection) -> NDArray[np.int64]:
    sizes: NDArray[np.int64]
    sizes = sum((lengths(rows.column(name)) for name in selection.columns.text), np.zeros(len(rows), dtype=np.int64))
    return sizes


def _batch(rows: pa.RecordBatch, first: int, selection: Selection, source: str) -> Batch:
    texts, reasons = _texts(rows, selection)
    ids, unusable = _ids(rows, selection)
    metadata, without = _metadata(rows, selection)
    unusable.update(without)
    if unusable:
        good = ~np.isin(np.arange(len(rows)), list(unusable))
        texts = _only(good, texts)
    rank = None if selection.columns.rank is None else _plain(rows.column(selection.columns.rank))
    faults = [Fault(source, first + row, reason) for row, reason in sorted({**unusable, **reasons}.items())]
    return Batch(first, texts, ids, rank, tuple(faults), metadata)


def _only(good: NDArray[np.bool_], texts: pa.Array) -> pa.Array:
    """The texts, null where they are not good; Arrow can not choose among lists, but take from them."""
    if not pa.types.is_nested(texts.type):
        return pc.if_else(flags(good), texts, pa.nulls(len(texts), texts.type))
    return texts.take(from_numpy(np.arange(len(texts)), good))


def cuts(sizes: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold at most ``most`` bytes each, or one row."""
    ends = np.cumsum(sizes)
    start, done = 0, 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield start, stop
        start, done = stop, int(ends[stop - 1])


def lengths(array: pa.Array) -> NDArray[np.int64]:
    """Bytes of each text; 0 for a null. Those of a dictionary as if it were spelt out."""
    if pa.types.is_dictionary(array.type):
        sizes = np.append(lengths(array.dictionary), 0)
        return sizes[numbers(array.indices, missing=len(sizes) - 1)]
    if array.type == pa.null():
        return np.zeros(len(array), dtype=np.int64)
    flat = array if array.type in FLAT else _with_one_buffer(array)
    return numbers(pc.binary_length(flat), missing=0)


def numbers(array: pa.Array, missing: int) -> NDArray[np.int64]:
    """Whole numbers as NumPy has them, with ``missing`` in place of nulls."""
    if len(array) == 0:
        return np.empty(0, dtype=np.int64)
    values = to_numpy(array).astype(np.int64)
    return np.where(present(array), values, missing) if array.null_count else values


def filtered(rows: Any, keep: NDArray[np.bool_]) -> Any:  # noqa: ANN401 - a table or a record batch
    """The rows that are kept. Arrow can not pick from columns of views, so these come as what they are views of."""
    plain = pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema], rows.schema.metadata)
    return (rows if plain.equals(rows.schema) else rows.cast(plain)).filter(flags(keep))


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


def _with_one_buffer(array: pa.Array) -> pa.Array:
    """The texts as an array that has them in one buffer, which dictionaries and views do not."""
    array = _plain(array)
    if array.type in FLAT:
        return array
    return array.cast(pa.large_binary() if array.type == pa.binary_view() else pa.large_string())


def _texts(rows: pa.RecordBatch, selection: Selection) -> tuple[pa.Array, dict[int, str]]:
    """The texts, several columns joined, or what is made of them, and the reason for each null among them."""
    if selection.columns.elements is not None:
        return selection.columns.elements.of_arrow([rows.column(name) for name in selection.columns.text])
    parts = [_with_one_buffer(rows.column(name)) for name in selection.columns.text]
    reasons: dict[int, str] = {}
    for name, part in zip(selection.columns.text, parts, strict=True):
        for row in np.flatnonzero(~present(part)).tolist() if part.null_count else ():
            reasons.setdefault(row, f"{name} is null")
    return (parts[0] if len(parts) == 1 else _join(parts)), reasons


def _join(parts: list[pa.Array]) -> pa.Array:
    """One text per row; as bytes, so that nobody checks their encoding but the kernel."""
    wide = [part.cast(pa.large_binary()) for part in parts]
    return pc.binary_join_element_wise(*wide, JOINED_BY[0], null_handling="emit_null")


def _ids(rows: pa.RecordBatch, selection: Selection) -> tuple[pa.Array | None, dict[int, str]]:
    """The ids, and the reason for each that can not be used."""
    if selection.id is None:
        return None, {}
    ids = _plain(rows.column(selection.id))
    if pa.types.is_integer(ids.type):
        return _whole_numbers(ids), {}
    if ids.type == pa.null():
        return ids.cast(pa.large_string()), {}
    ids = ids.cast(pa.large_binary())
    try:
        return ids.cast(pa.large_string()), {}
    except pa.ArrowInvalid:
        return _valid_ids(ids, selection.id)


def _metadata(rows: pa.RecordBatch, selection: Selection) -> tuple[list[dict[str, Any]] | None, dict[int, str]]:
    """The metadata, and the reason for each that can not be used."""
    names = list(selection.columns.metadata)
    return json_objects(rows.select(names)) if names else (None, {})


def _whole_numbers(ids: pa.Array) -> pa.Array:
    try:
        return ids.cast(pa.int64())
    except pa.ArrowInvalid:  # unsigned and beyond
        return ids.cast(pa.large_string())


def _valid_ids(ids: pa.Array, name: str) -> tuple[pa.Array, dict[int, str]]:
    """The ids that are UTF-8, and the reason for each that is not."""
    values: list[bytes | None] = ids.to_pylist()
    reasons = {}
    for row, value in enumerate(values):
        invalid = invalid_at(value or b"")
        if invalid is not None:
            values[row] = None
            reasons[row] = f"{name} is not valid UTF-8 at byte {invalid}"
    return from_bytes(values, pa.large_string()), reasons


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _decoded(kind: Any) -> Any:  # noqa: ANN401 - as above
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type can be texts; those of the null type are all missing."""
    return kind in (*FLAT, pa.string_view(), pa.binary_view(), pa.null())


def _is_id(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) or is_text(kind)


def _is_rank(kind: Any) -> bool:  # noqa: ANN401 - as above
    return bool(
        _is_id(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )
