"""Edits of typed tables (Parquet, Arrow, tables in memory), record batch by record batch.

Cuts are made in the buffers of the text columns, at any depth of structs and lists. All types stay those of the table.
Added columns follow its columns.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_lists, to_numpy, valid_mask, validity_bitmap
from minwise._internal.sorted_arrays import distinct
from minwise.errors import InputError
from minwise.inputs.column_paths import find_path, is_list_type, missing_column, schema_leaves
from minwise.inputs.columns import int64_values, split_by_bytes, table_row_bytes
from minwise.inputs.row_edits import Cuts, Offsets, RowEdits, TextParts, line_begins, remove_spans
from minwise.inputs.source import BATCH_BYTES, ColumnError
from minwise.text.chunks import text_chunk

__all__ = ["TableEditor"]


class TableEditor:
    """Applies edits to the kept rows of a table.

    Attributes:
        schema: The columns of the table and the added ones.
    """

    def __init__(self, edits: RowEdits, schema: pa.Schema, *, growing: bool = False) -> None:
        """Create the editor of a table.

        Args:
            edits: The edits.
            schema: The columns of the table.
            growing: Whether a dictionary may only grow from one batch to the next, as in an Arrow file.
        """
        self._edits, self._growing = edits, growing
        self._entries: dict[tuple[str, ...], pa.Array] = {}  # what dictionaries have grown by, by path
        self.schema = pa.schema([*schema, *edits.added], schema.metadata)

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        """The paths of the text columns, needed with the first row: a table without one of them has no kept rows."""
        return [_path_of(self.schema, name) for name in self._edits.text]

    def edited(self, rows: pa.RecordBatch, numbers: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with their edits, in slices of limited size: a dictionary stands for more than it takes."""
        for start, stop in split_by_bytes(table_row_bytes(rows), BATCH_BYTES):
            yield self._edited(rows.slice(start, stop - start), numbers[start:stop])

    def _edited(self, rows: pa.RecordBatch, numbers: NDArray[np.int64]) -> pa.RecordBatch:
        edits = self._edits.of_rows(numbers)
        columns = list(rows.columns)
        if self._paths and (len(edits.cut_rows) or self._growing):
            self._cut(rows.schema, columns, Cuts.of_rows(edits, numbers))
        values = [column.cast(field.type) for column, field in zip(edits.values, self._edits.added, strict=True)]
        fields = [*rows.schema, *self._edits.added]
        return pa.RecordBatch.from_arrays([*columns, *values], schema=pa.schema(fields, rows.schema.metadata))

    def _cut(self, schema: pa.Schema, columns: list[pa.Array], cuts: Cuts) -> None:
        """Replace the text columns by those without the cuts."""
        positions = [schema.get_field_index(path[0]) for path in self._paths]
        texts = list(zip(positions, self._paths, strict=True))
        lengths = [_lengths(columns[position], path[1:]) for position, path in texts]
        total = np.sum([length + 1 for length in lengths], axis=0) - 1
        begins = line_begins(total)
        line = cuts.on_line(begins, begins + total)
        for (position, path), length in zip(texts, lengths, strict=True):
            columns[position] = self._cut_column(columns[position], path, 1, begins, line)
            begins = begins + length + 1

    def _cut_column(self, column: pa.Array, path: tuple[str, ...], depth: int, begins: Offsets, line: Cuts) -> pa.Array:
        """Return a column without the cuts, given where on the line each value begins."""
        if is_list_type(column.type):
            offsets, values = _items(column)
            runs = line_begins(_lengths(values, path[depth:]))
            owners = np.repeat(np.arange(len(column)), np.diff(offsets))
            inner = begins[owners] + runs - runs[offsets[owners]]
            cut = self._cut_column(values, path, depth, inner, line)
            return from_lists(offsets, cut, valid_mask(column)).cast(column.type)
        if depth < len(path):
            fields = _fields(column)
            number = column.type.get_field_index(path[depth])
            fields[number] = self._cut_column(fields[number], path, depth + 1, begins, line)
            bits = validity_bitmap(valid_mask(column))
            return pa.Array.from_buffers(column.type, len(column), [bits], children=fields)
        cuts = line.of_parts(begins, _lengths(column, ()))
        if not pa.types.is_dictionary(column.type):
            return _cut_texts(column, cuts).cast(column.type)
        return self._grown(column, path, cuts) if self._growing else _encode(column, cuts)

    def _grown(self, column: pa.Array, path: tuple[str, ...], cuts: Cuts) -> pa.Array:
        """Return a column without the cuts, whose dictionary is that of the last batch with more entries."""
        rows = distinct(cuts.texts)
        kind = column.dictionary.type
        whole = column.take(pa.array(rows)).dictionary_decode()
        texts = _cut_texts(whole, cuts._replace(texts=np.searchsorted(rows, cuts.texts))).cast(kind)
        before = pa.concat_arrays([column.dictionary, self._entries.get(path, pa.nulls(0, kind))])
        new = texts.filter(pc.invert(pc.is_in(texts, value_set=before))).unique()
        after = pa.concat_arrays([before, new])
        self._entries[path] = after.slice(len(column.dictionary))
        indices = int64_values(column.indices, missing=0).copy()
        indices[rows] = to_numpy(pc.index_in(texts, value_set=after))
        return _dictionary(column.type, indices, valid_mask(column), after)


def _path_of(schema: pa.Schema, name: str) -> tuple[str, ...]:
    path = find_path(schema, name)
    if path is None:
        raise ColumnError(missing_column(name, schema_leaves(schema)))
    return path


def _items(column: Any) -> tuple[Offsets, pa.Array]:  # noqa: ANN401 - pyarrow has no types
    """Return the offsets of lists, from 0 on, and their values."""
    lists = column.cast(pa.large_list(column.type.value_type))
    offsets = to_numpy(lists.offsets).astype(np.int64)
    first = int(offsets[0]) if len(offsets) else 0
    return offsets - first, lists.values.slice(first, int(offsets[-1]) - first)


def _fields(column: Any) -> list[pa.Array]:  # noqa: ANN401 - as above
    return [column.field(number) for number in range(column.type.num_fields)]


def _lengths(column: Any, path: Sequence[str]) -> Offsets:  # noqa: ANN401 - as above
    """Return the code points of each text of a column, with the breaks between the strings of a list."""
    if is_list_type(column.type):
        offsets, values = _items(column)
        ends = np.concatenate([[0], np.cumsum(_lengths(values, path))])
        joined: Offsets = np.diff(ends[offsets]) + np.maximum(np.diff(offsets) - 1, 0)
        return joined
    if path:
        return _lengths(column.field(column.type.get_field_index(path[0])), path[1:])
    if pa.types.is_dictionary(column.type):
        lengths: Offsets = np.append(_lengths(column.dictionary, ()), 0)
        return lengths[int64_values(column.indices, missing=-1)]
    return _parts(column).lengths()


def _parts(column: pa.Array) -> TextParts:
    """Return the texts of a column without nulls where they are used."""
    chunk = text_chunk(column)
    offsets = chunk.offsets.astype(np.int64)
    return TextParts(chunk.data, offsets[:-1], offsets[1:], np.arange(len(column)), escaped=False)


def _cut_texts(column: pa.Array, cuts: Cuts) -> pa.Array:
    """Return a column of texts without the cuts, as large_string or large_binary."""
    if not len(cuts.texts):
        return column
    parts = _parts(column)
    spans = parts.spans(cuts)
    offsets = np.append(parts.starts, parts.ends[-1])
    removed = np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])
    kept = offsets - offsets[0] - removed[np.searchsorted(spans[:, 1], offsets, side="right")]
    data = remove_spans(parts.data.data, spans, int(offsets[0]), int(offsets[-1]))
    kind = pa.large_binary() if _is_binary(column.type) else pa.large_string()
    buffers = [validity_bitmap(valid_mask(column)), pa.py_buffer(kept), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(column), buffers)


def _is_binary(kind: Any) -> bool:  # noqa: ANN401 - as above
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())


def _encode(column: Any, cuts: Cuts) -> pa.Array:  # noqa: ANN401 - as above
    """Return a column with a dictionary without the cuts, with a dictionary of its own."""
    if not len(cuts.texts):
        return column
    texts = _cut_texts(column.dictionary_decode(), cuts).dictionary_encode()
    indices = to_numpy(texts.indices).astype(np.int64)
    return _dictionary(column.type, indices, valid_mask(texts), texts.dictionary)


def _dictionary(kind: Any, indices: Offsets, valid: NDArray[np.bool_], dictionary: pa.Array) -> pa.Array:  # noqa: ANN401
    """Return a column of a dictionary type.

    Raises:
        InputError: If the dictionary has more entries than its index type can number.
    """
    try:
        numbers = pa.array(indices, mask=~valid).cast(kind.index_type)
    except pa.ArrowInvalid:
        raise InputError(
            f"a text column of {kind} cannot hold the {len(dictionary)} texts left by cuts; cast it to string"
        ) from None
    return pa.DictionaryArray.from_arrays(numbers, dictionary.cast(kind.value_type), ordered=kind.ordered)
