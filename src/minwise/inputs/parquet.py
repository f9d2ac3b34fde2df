"""Parquet: row groups read in batches of bounded size.

Values, ids and faults follow from typed columns (:mod:`minwise.inputs.columns`). A copy has the schema, the metadata
and the codecs of its input, and row groups of a fixed size.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from minwise._internal.prefetch import prefetch
from minwise.inputs.column_paths import read_path
from minwise.inputs.columns import (
    Selection,
    UnreadableRows,
    check_schema,
    is_text_type,
    row_objects,
    select_columns,
    to_batches,
)
from minwise.inputs.content import HEAD_BYTES, refuse_other_content
from minwise.inputs.files import File, FileSource, open_output, output_path, translate_errors
from minwise.inputs.source import BATCH_BYTES, BATCH_ROWS, Batch, Columns, RowMask, UnreadableError
from minwise.inputs.table_writer import kept_rows, row_groups

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
# Rows that are decoded to measure their real size.
PEEK_ROWS = 16

# Rows, or that they cannot be read.
Piece: TypeAlias = pa.RecordBatch | UnreadableRows


class ParquetFile(FileSource):
    """One Parquet file."""

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

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        with _open_parquet(self.file) as footer:
            selection = _select(columns, footer)
            names = {name: read_path(footer.schema_arrow, path) for name, path in selection.paths.items()}
            texts = tuple(names[name] for name in columns.text)
            with _open_parquet(self.file, _dense_columns(footer, columns.text)) as parquet:
                needed = list(dict.fromkeys(names.values()))
                for first, rows in _pieces(parquet, self.file, needed, texts, wanted, batch_bytes):
                    yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def _select(self, columns: Columns) -> Selection:
        with _open_parquet(self.file) as footer:
            return _select(columns, footer)

    def copy_kept(self, keep: RowMask, folder: Path, root: str) -> int:
        """Write the kept rows with the schema and the codecs of the file."""
        written = 0
        with self._copying(keep), _open_parquet(self.file) as footer:
            schema, codecs = footer.schema_arrow, _codecs(footer.metadata)
            texts = tuple(field.name for field in schema if is_text_type(field.type))
            with _open_parquet(self.file, _dense_columns(footer, texts)) as parquet:
                pieces = prefetch(_pieces(parquet, self.file, schema.names, None, keep, BATCH_BYTES))
                path = output_path(self.file.path, folder, root)
                with closing(pieces), _open_writer(path, schema, codecs) as writer:
                    for table in row_groups(kept_rows(pieces, keep), schema):
                        writer.write_table(table, row_group_size=len(table))
                        written += len(table)
        return written

    def kept_objects(self, keep: RowMask) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        with self._copying(keep), _open_parquet(self.file) as parquet:
            names = parquet.schema_arrow.names
            for rows in kept_rows(_pieces(parquet, self.file, names, None, keep, BATCH_BYTES), keep):
                yield from row_objects(rows)


def _select(columns: Columns, parquet: Any) -> Selection:  # noqa: ANN401 - pyarrow has no types
    def sample() -> Any:  # noqa: ANN401 - as above
        return next(parquet.iter_batches(PEEK_ROWS), None)

    return select_columns(columns, parquet.schema_arrow, sample)


@contextmanager
def _open_parquet(file: File, dictionaries: tuple[str, ...] = ()) -> Iterator[Any]:
    """Open the file; ``dictionaries`` are columns to read as dictionaries."""
    with translate_errors(file), file.open_arrow() as raw:
        options = {"buffer_size": BUFFER_BYTES, "pre_buffer": file.is_url}
        try:
            parquet = pq.ParquetFile(raw, read_dictionary=list(dictionaries) or None, **options)
        except pa.ArrowException:
            raw.seek(0)
            refuse_other_content(raw.read(HEAD_BYTES), "a Parquet file", MAGIC, file.compression)
            raise
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


def _pieces(
    parquet: Any,  # noqa: ANN401 - pyarrow has no types
    file: File,
    names: list[str],
    texts: tuple[str, ...] | None,
    wanted: RowMask | None,
    max_bytes: int,
) -> Iterator[tuple[int, Piece]]:
    """Yield rows with the number of the first, of all row groups that have a wanted row."""
    first = 0
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if wanted is None or wanted[first : first + group.num_rows].any():
            size = _batch_rows(group, texts, max_bytes)
            size = min(size, _rows_within(parquet, file, number, names, size, max_bytes))
            for done, rows in _whole_group(parquet, file, number, names, size):
                yield first + done, rows
        first += group.num_rows


def _whole_group(
    parquet: Any,  # noqa: ANN401 - as above
    file: File,
    number: int,
    names: list[str],
    size: int,
) -> Iterator[tuple[int, Piece]]:
    """Yield as many rows of one row group as its metadata promises; those from a damaged page on are unreadable."""
    done, promised = 0, int(parquet.metadata.row_group(number).num_rows)
    reason = "cannot be read: it ends before its last row"
    try:
        for row, rows in _read_group(parquet, file, number, names, size):
            yield row, rows[: promised - row]
            done = row + len(rows)
    except UnreadableError as error:
        reason = str(error)
    if done < promised:
        fields = [
            field for field in parquet.schema_arrow if any(f"{name}.".startswith(f"{field.name}.") for name in names)
        ]
        yield done, UnreadableRows(promised - done, f"row group {number}: {reason}", pa.schema(fields))


def _read_group(
    parquet: Any,  # noqa: ANN401 - as above
    file: File,
    number: int,
    names: list[str],
    size: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of one row group; of a damaged one all rows before the damage, whatever the batch size."""
    done = 0
    try:
        with translate_errors(file):
            for rows in parquet.iter_batches(size, row_groups=[number], columns=names, use_threads=len(names) > 1):
                yield done, rows
                done += len(rows)
    except UnreadableError:
        if size == 1:
            raise
        for row, rows in _read_group(parquet, file, number, names, 1):
            if row >= done:
                yield row, rows


def _rows_within(
    parquet: Any,  # noqa: ANN401 - as above
    file: File,
    number: int,
    names: list[str],
    size: int,
    max_bytes: int,
) -> int:
    """Return the rows in a batch of ``max_bytes``, estimated from the first few rows, decoded.

    The metadata has only the encoded size, and a page of repeated texts may decode to a thousand times as much.
    """
    if size <= PEEK_ROWS:
        return size
    try:
        with translate_errors(file):
            rows = next(parquet.iter_batches(PEEK_ROWS, row_groups=[number], columns=names, use_threads=False), None)
    except UnreadableError:
        return size  # reading the rows will raise the same error
    return max(1, max_bytes * len(rows) // max(1, rows.nbytes)) if rows is not None and len(rows) else size


def _batch_rows(group: Any, texts: tuple[str, ...] | None, max_bytes: int) -> int:  # noqa: ANN401 - as above
    """Return the rows in a batch whose texts (None: all columns) have about ``max_bytes``."""
    prefixes = tuple(f"{name}." for name in texts or ())
    read = [
        chunk for chunk in _column_chunks(group) if texts is None or f"{chunk.path_in_schema}.".startswith(prefixes)
    ]
    size: int = sum(chunk.total_uncompressed_size for chunk in read)
    limit = DICTIONARY_ROWS if any(_has_dictionary(chunk) for chunk in read) else BATCH_ROWS
    return max(1, min(limit, max_bytes * int(group.num_rows) // max(1, size)))


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


@contextmanager
def _open_writer(path: Path, schema: pa.Schema, codecs: dict[str, str] | str) -> Iterator[Any]:
    with open_output(path) as raw, pq.ParquetWriter(raw, schema, compression=codecs) as writer:
        yield writer
