"""Parquet: row groups read in batches of bounded size.

Values, ids and faults follow from typed columns (:mod:`minwise.inputs.columns`). A copy has the schema, the metadata
and the codecs of its input, and row groups of a fixed size.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from minwise._internal.prefetch import prefetch
from minwise.inputs.arrow_ipc import check_column
from minwise.inputs.column_paths import read_path
from minwise.inputs.columns import (
    SAMPLE_ROWS,
    Selection,
    UnreadableRows,
    check_schema,
    invalid_name,
    is_text_type,
    row_objects,
    select_columns,
    to_batches,
)
from minwise.inputs.content import HEAD_BYTES, refuse_other_content
from minwise.inputs.files import File, FileSource, open_output, output_path, translate_errors
from minwise.inputs.parquet_footer import check_column_chunks
from minwise.inputs.parquet_pages import DECODED_PIECES, ColumnPages, oversized_page, read_pages, rows_within
from minwise.inputs.parquet_writer import write_row_groups
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import BATCH_BYTES, BATCH_ROWS, Batch, Columns, RowMask, UnreadableError
from minwise.inputs.table_edits import TableEditor
from minwise.inputs.table_writer import GROUP_BYTES, kept_rows, row_groups

__all__ = ["ParquetFile"]

# A column is read in pieces, so that a large row group is never in memory as a whole. It costs at most 4 %: the best of
# twelve runs each on texts of 13 kB and 2.3 kB was 1.10 and 1.24 GB/s; with whole columns 1.11 and 1.25, with memory
# maps 1.14 and 1.26, with pre_buffer 1.15 and 1.27, with read_row_group 1.11 and 1.19.
BUFFER_BYTES = 1 << 20
# A column with a dictionary may hold far more text than its size tells, so its batches have fewer rows...
DICTIONARY_ROWS = 8_192
# ...and one with fewer bytes per value than this is read as a dictionary, without decoding.
DENSE_BYTES = 64
# First bytes of a file, and of one with an encrypted footer.
MAGIC = (b"PAR1", b"PARE")
DEFAULT_CODEC = "snappy"
# Bytes of rows that become Python objects at a time.
OBJECT_BYTES = 1 << 22
# Bytes of a long value: a row group of a copy that has one has no other row.
LONG_BYTES = GROUP_BYTES
# Share of the memory, as 1 of so many, up to which the pages of a row group need no look.
LOOK_SHARE = 8
# Share of the memory, as 1 of so many, of a piece: several are held at a time, and values of dictionaries take more.
PIECE_SHARE = 64
NO_LIMIT = 1 << 62

# Rows, or that they cannot be read.
Piece: TypeAlias = pa.RecordBatch | UnreadableRows


class ParquetFile(FileSource):
    """One Parquet file.

    Attributes:
        damaged: Row groups of which some rows cannot be copied: the first of these rows in the group, and the reason.
    """

    damaged: Mapping[int, tuple[int, str]] = MappingProxyType({})

    def known_rows(self) -> int | None:
        """Return the rows by the metadata; None if it cannot be read."""
        try:
            with _open_parquet(self.file) as parquet:
                return int(parquet.metadata.num_rows)
        except UnreadableError:
            return None

    def split_points(self, max_bytes: int) -> list[int]:
        """Return ends of row groups."""
        try:
            with _open_parquet(self.file) as parquet:
                groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
        except UnreadableError:
            return []
        sizes = np.cumsum([sum(chunk.total_compressed_size for chunk in _column_chunks(group)) for group in groups])
        piece = sizes // max(1, max_bytes)
        rows = np.cumsum([group.num_rows for group in groups])
        return [int(row) for row in rows[:-1][piece[1:] != piece[:-1]]]

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        with _open_parquet(self.file) as footer:
            return list(footer.schema_arrow.names)

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        with _open_parquet(self.file) as footer:
            selection = select_columns(columns, footer.schema_arrow, self._sample)
            names = {name: read_path(footer.schema_arrow, path) for name, path in selection.paths.items()}
            texts = tuple(names[name] for name in columns.text)
            needed = list(dict.fromkeys(names.values()))
            dense = _dense_columns(footer, columns.text)
        with self._open_groups(needed, dense, batch_bytes, texts) as groups:
            for first, rows in groups.pieces(wanted):
                yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def _select(self, columns: Columns) -> Selection:
        with _open_parquet(self.file) as footer:
            return select_columns(columns, footer.schema_arrow, self._sample)

    def _sample(self) -> pa.RecordBatch | None:
        """Return the first rows, as many as take little memory."""
        with _open_parquet(self.file) as footer:
            names = footer.schema_arrow.names
        with self._open_groups(names, (), OBJECT_BYTES) as groups, closing(groups.pieces(None)) as pieces:
            first = next((rows for _, rows in pieces), None)
        return None if isinstance(first, UnreadableRows | None) else first.slice(0, SAMPLE_ROWS)

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows with the schema and the codecs of the file."""
        written = 0
        with self._copying(keep):
            with _open_parquet(self.file) as footer:
                schema, codecs = footer.schema_arrow, _codecs(footer.metadata)
                editor = None if edits is None else TableEditor(edits, schema)
                dense = _dense_columns(footer, tuple(field.name for field in schema if is_text_type(field.type)))
            path = output_path(self.file.path, folder, root)
            with self._open_groups(schema.names, dense, BATCH_BYTES) as groups:
                pieces = prefetch(groups.pieces(keep), size=_piece_bytes, max_bytes=BATCH_BYTES)
                long = groups.long_columns()
                options, threads = _writer_options(codecs, long), 1 if any(long.values()) else self.encoders
                if editor is not None and edits is not None:
                    schema, options = editor.schema, _options_with(options, edits.added)
                with closing(pieces), open_output(path) as raw:
                    tables = row_groups(kept_rows(pieces, keep, editor), schema)
                    written = write_row_groups(raw, tables, schema, options, threads)
        return written

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        with self._copying(keep):
            with _open_parquet(self.file) as footer:
                names = footer.schema_arrow.names
                editor = None if edits is None else TableEditor(edits, footer.schema_arrow)
            with self._open_groups(names, (), OBJECT_BYTES) as groups:
                for rows in kept_rows(groups.pieces(keep), keep, editor):
                    yield from row_objects(rows)

    def note_damage(self) -> bool:
        """Read every column, and from now on treat rows that cannot be copied as unreadable."""
        try:
            with _open_parquet(self.file) as footer:
                names = footer.schema_arrow.names
            with self._open_groups(names, (), BATCH_BYTES) as groups:
                self.damaged = groups.damage()
        except UnreadableError:
            return False  # of the file: reading the rows reports it
        return bool(self.damaged)

    @contextmanager
    def _open_groups(
        self, names: list[str], dense: tuple[str, ...], max_bytes: int, texts: tuple[str, ...] | None = None
    ) -> Iterator["_RowGroups"]:
        with _open_parquet(self.file, dense) as parquet, self.file.open_arrow() as raw:
            memory = NO_LIMIT if self.memory is None else self.memory
            piece_bytes = min(max_bytes, memory // PIECE_SHARE)
            yield _RowGroups(parquet, raw, self.file, names, texts, dense, piece_bytes, memory, self.damaged)


@contextmanager
def _open_parquet(file: File, dictionaries: tuple[str, ...] = ()) -> Iterator[Any]:
    """Open the file; ``dictionaries`` are columns to read as dictionaries."""
    with translate_errors(file), file.open_arrow() as raw:
        # Checksums of pages, where a writer stored them, are verified at 3 GB/s.
        options = {"buffer_size": BUFFER_BYTES, "pre_buffer": file.is_url, "page_checksum_verification": True}
        try:
            parquet = pq.ParquetFile(raw, read_dictionary=list(dictionaries) or None, **options)
        except pa.ArrowException:
            raw.seek(0)
            refuse_other_content(raw.read(HEAD_BYTES), "a Parquet file", MAGIC, file.compression)
            raise
        except UnicodeDecodeError as error:
            raise invalid_name(error) from None
        check_column_chunks(parquet.metadata)
        _check_footer(parquet.metadata)
        check_schema(parquet.schema_arrow)
        yield parquet


def _check_footer(metadata: Any) -> None:  # noqa: ANN401 - as above
    """Raise UnreadableError if the numbers of rows contradict each other: as many rows would be reported as unreadable.

    A column of lists has at least one value per row, any other exactly one.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if metadata.num_rows != sum(group.num_rows for group in groups):
        raise UnreadableError("cannot be read: its footer contradicts itself about the number of rows")
    for number, group in enumerate(groups):
        values = group.column(0).num_values if group.num_columns else group.num_rows
        repeated = metadata.num_columns and metadata.schema.column(0).max_repetition_level
        if not 0 <= group.num_rows <= values or (not repeated and values != group.num_rows):
            raise UnreadableError(
                f"cannot be read: its footer promises {group.num_rows} rows in row group {number}, "
                f"of which column {group.column(0).path_in_schema} has {values} values"
            )


def _piece_bytes(piece: tuple[int, Piece]) -> int:
    rows = piece[1]
    return 0 if isinstance(rows, UnreadableRows) else int(rows.nbytes)


@dataclass(frozen=True, slots=True)
class _RowGroups:
    """Reads row groups in pieces of bounded size.

    Attributes:
        parquet: The open file.
        raw: The same file, for page headers.
        file: The file, for errors.
        names: Columns to read.
        texts: Those that decide the size of a piece; None for all.
        dense: Those that are read as dictionaries.
        max_bytes: Approximate bytes of a piece.
        memory: Memory of the run; rows from a page on that requires more cannot be read.
        damaged: Row groups with rows that cannot be copied, as in :class:`ParquetFile`.
    """

    parquet: Any
    raw: Any
    file: File
    names: list[str]
    texts: tuple[str, ...] | None
    dense: tuple[str, ...]
    max_bytes: int
    memory: int
    damaged: Mapping[int, tuple[int, str]]

    def pieces(self, wanted: RowMask | None) -> Generator[tuple[int, Piece], None, None]:
        """Yield rows with the number of the first, of all row groups that have a wanted row."""
        first = 0
        for number in range(self.parquet.num_row_groups):
            rows = int(self.parquet.metadata.row_group(number).num_rows)
            if wanted is None or wanted[first : first + rows].any():
                for done, piece in self._group(number):
                    yield first + done, piece
            first += rows

    def _group(self, number: int) -> Iterator[tuple[int, Piece]]:
        """Yield as many rows of a row group as its metadata promises; those from a damaged page on are unreadable."""
        group = self.parquet.metadata.row_group(number)
        done, promised = 0, int(group.num_rows)
        size, readable, reason = self._limits(group)
        readable, reason = min((readable, reason), self.damaged.get(number, (promised, reason)))
        try:
            for row, rows in self._readable(number, size, readable):
                yield row, rows[: promised - row]
                done = row + len(rows)
        except UnreadableError as error:
            reason = str(error)
        if done < promised:
            yield done, UnreadableRows(promised - done, f"row group {number}: {reason}", self._schema())

    def damage(self) -> dict[int, tuple[int, str]]:
        """Read all row groups; return the first row that cannot be read of each that has one, and the reason."""
        found = {}
        for number in range(self.parquet.num_row_groups):
            for done, piece in self._group(number):
                if isinstance(piece, UnreadableRows):
                    found[number] = done, piece.reason.partition(": ")[2]  # without the row group
        return found

    def long_columns(self) -> dict[str, bool]:
        """Return for each column whether it has values of more than ``LONG_BYTES``, by averages and dictionaries."""
        metadata = self.parquet.metadata
        long: dict[str, bool] = {}
        for number in range(metadata.num_row_groups):
            for chunk in _column_chunks(metadata.row_group(number)):
                name = chunk.path_in_schema
                long[name] = long.get(name, False) or self._has_long_values(chunk)
        return long

    def _has_long_values(self, chunk: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
        size = chunk.total_uncompressed_size
        if size <= LONG_BYTES:
            return False
        first = next(read_pages(self.raw, chunk), None) if chunk.has_dictionary_page else None
        return size > LONG_BYTES * max(1, chunk.num_values) or (first is not None and first.size > LONG_BYTES)

    def _limits(self, group: Any) -> tuple[int, int, str]:  # noqa: ANN401 - pyarrow has no types
        """Return the rows of a piece, the rows that may be read, and why no more can be."""
        chunks = _chunks_of(group, self.names)
        unlooked = min(DECODED_PIECES * self.max_bytes, self.memory // LOOK_SHARE)
        whole = _size_of(chunks) > unlooked and not self.file.is_url
        pages = [
            ColumnPages(self.raw, chunk, decoded=chunk.path_in_schema not in self.dense, whole=whole)
            for chunk in chunks
        ]
        size = rows_within(pages, self._rows(group), group.num_rows, self.max_bytes)
        whole_group = int(group.num_rows), "cannot be read: it ends before its last row"
        return size, *(oversized_page(pages, group.num_rows, self.memory) or whole_group)

    def _rows(self, group: Any) -> int:  # noqa: ANN401 - as above
        """Return the rows that take about ``max_bytes``, if all rows take the same."""
        read = _chunks_of(group, self.names if self.texts is None else self.texts)
        limit = DICTIONARY_ROWS if any(_has_dictionary(chunk) for chunk in read) else BATCH_ROWS
        return max(1, min(limit, self.max_bytes * int(group.num_rows) // max(1, _size_of(read))))

    def _readable(self, number: int, size: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows before ``stop``; of a damaged group all rows before the damage, whatever the size."""
        done, whole = 0, stop == self.parquet.metadata.row_group(number).num_rows
        try:
            with translate_errors(self.file):
                batches = self._batches(number, size)
                while done < stop and (whole or done + size <= stop):
                    rows = next(batches, None)
                    if rows is None:
                        return
                    _check_indices(rows)
                    yield done, rows
                    done += len(rows)
        except UnreadableError:
            if size == 1:
                raise
        if done < stop:
            yield from ((row, rows) for row, rows in self._readable(number, 1, stop) if row >= done)

    def _batches(self, number: int, size: int) -> Iterator[pa.RecordBatch]:
        threads = len(self.names) > 1
        return iter(self.parquet.iter_batches(size, row_groups=[number], columns=self.names, use_threads=threads))

    def _schema(self) -> pa.Schema:
        """Return the columns that are read."""
        names = [f"{name}." for name in self.names]
        fields = self.parquet.schema_arrow
        return pa.schema([field for field in fields if any(name.startswith(f"{field.name}.") for name in names)])


def _check_indices(rows: pa.RecordBatch) -> None:
    """Raise ArrowInvalid if an index points outside its dictionary; Arrow does not check those that it reads."""
    for column in rows.columns:
        if _holds_dictionary(column.type):
            check_column(column)


def _holds_dictionary(kind: Any) -> bool:  # noqa: ANN401 - as above
    fields = (kind.field(number).type for number in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind)) or any(map(_holds_dictionary, fields))


def _chunks_of(group: Any, names: Iterable[str]) -> list[Any]:  # noqa: ANN401 - as above
    """Return the column chunks of the named columns, or of their fields."""
    prefixes = tuple(f"{name}." for name in names)
    return [chunk for chunk in _column_chunks(group) if f"{chunk.path_in_schema}.".startswith(prefixes)]


def _size_of(chunks: list[Any]) -> int:
    return sum(chunk.total_uncompressed_size for chunk in chunks)


def _dense_columns(parquet: Any, names: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """Return the columns in which a row group has so few bytes per value that its dictionary entries must repeat."""
    found = set()
    for number in range(parquet.num_row_groups):
        for chunk in _column_chunks(parquet.metadata.row_group(number)):
            if _has_dictionary(chunk) and chunk.total_uncompressed_size < DENSE_BYTES * chunk.num_values:
                found.add(chunk.path_in_schema)
    return tuple(name for name in names if name in found)


def _column_chunks(group: Any) -> list[Any]:  # noqa: ANN401 - as above
    return [group.column(position) for position in range(group.num_columns)]


def _has_dictionary(chunk: Any) -> bool:  # noqa: ANN401 - as above
    return any("DICTIONARY" in encoding for encoding in chunk.encodings)


def _codecs(metadata: Any) -> dict[str, str] | str:  # noqa: ANN401 - as above
    """Return the codec of each column in the first row group."""
    if metadata.num_row_groups == 0:
        return DEFAULT_CODEC
    return {chunk.path_in_schema: _codec(chunk.compression) for chunk in _column_chunks(metadata.row_group(0))}


def _codec(name: str) -> str:
    if name == "UNCOMPRESSED":
        return "none"
    return name.lower() if name != "LZO" and pa.Codec.is_available(name.lower()) else DEFAULT_CODEC


def _options_with(options: dict[str, Any], added: pa.Schema) -> dict[str, Any]:
    """Return the options of a copy with more columns: these have the codec of the first column of the file."""
    codecs, short = options["compression"], options["use_dictionary"]
    paths = _leaf_paths(added)
    if isinstance(codecs, dict):
        codec = next(iter(codecs.values()), DEFAULT_CODEC)
        options = {**options, "compression": {**codecs, **dict.fromkeys(paths, codec)}}
    short = short if short is True else [*short, *paths]
    return {**options, "use_dictionary": short, "write_statistics": short}


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that a Parquet file of a schema has."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    written = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [written.column(number).path for number in range(len(written))]


def _writer_options(codecs: dict[str, str] | str, long: dict[str, bool]) -> dict[str, Any]:
    """Return the options of the copy; a dictionary and statistics of long values would hold each of them four times."""
    short = [name for name, is_long in long.items() if not is_long] if any(long.values()) else True
    return {"compression": codecs, "use_dictionary": short, "write_statistics": short}
