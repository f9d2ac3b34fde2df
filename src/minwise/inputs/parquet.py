"""Parquet: row groups in, batches of their text column out; the kept rows into row groups of a fixed size."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise._internal.prefetch import prefetch
from minwise.inputs.columns import check_types, is_text, select, to_batches
from minwise.inputs.files import File, FileSource, output_path, reading, writing
from minwise.inputs.row_groups import kept_rows, regroup
from minwise.inputs.source import BATCH_BYTES, BATCH_ROWS, Batch, Columns, Unreadable

__all__ = ["ParquetFile"]

# A column is read a piece at a time, so that a large row group does not lie in memory. It costs at most 4 %: of twelve
# runs each on texts of 13 kB and 2.3 kB the best had 1.10 and 1.24 GB/s, with whole columns 1.11 and 1.25, with memory
# maps 1.14 and 1.26, with pre_buffer 1.15 and 1.27, with read_row_group 1.11 and 1.19.
BUFFER_BYTES = 1 << 20
# A column with a dictionary may hold far more text than its size says, so its batches have fewer rows...
DICTIONARY_ROWS = 8_192
# ...and one with fewer bytes per value than this is read as what it is, numbers into a dictionary.
DENSE_BYTES = 64
DEFAULT_CODEC = "snappy"
# Rows that are decoded to see how large they really are.
PEEK_ROWS = 16

Flags = NDArray[np.bool_]


class ParquetFile(FileSource):
    """One Parquet file."""

    def known_rows(self) -> int | None:
        """As the metadata has it; None if there is none to read."""
        try:
            with _opened(self.file) as parquet:
                return int(parquet.metadata.num_rows)
        except Unreadable:
            return None

    def cuts(self, most_bytes: int) -> list[int]:
        """Ends of row groups."""
        try:
            with _opened(self.file) as parquet:
                groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
        except Unreadable:
            return []
        sizes = np.cumsum(
            [sum(group.column(at).total_compressed_size for at in range(group.num_columns)) for group in groups]
        )
        piece = sizes // max(1, most_bytes)
        rows = np.cumsum([group.num_rows for group in groups])
        return [int(row) for row in rows[:-1][piece[1:] != piece[:-1]]]

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        with _opened(self.file) as plain:
            selection = select(columns, plain.schema_arrow.names)
            check_types(selection, plain.schema_arrow)
            with _opened(self.file, _dense(plain, columns.text)) as parquet:
                for first, rows in _pieces(parquet, self.file, selection.needed, columns.text, wanted, batch_bytes):
                    yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Writes the kept rows with the file's schema and codecs."""
        written = 0
        with self._copying(keep), _opened(self.file) as plain:
            schema, codecs = plain.schema_arrow, _codecs(plain.metadata)
            texts = tuple(field.name for field in schema if is_text(field.type))
            with _opened(self.file, _dense(plain, texts)) as parquet:
                pieces = kept_rows(prefetch(_pieces(parquet, self.file, schema.names, None, keep, BATCH_BYTES)), keep)
                with _writer(output_path(self.file.path, folder, root), schema, codecs) as writer:
                    for table in regroup(pieces, schema):
                        writer.write_table(table, row_group_size=len(table))
                        written += len(table)
        return written


@contextmanager
def _opened(file: File, dictionaries: tuple[str, ...] = ()) -> Iterator[Any]:
    """The file, open; ``dictionaries`` are columns to read as such."""
    with reading(file), file.open_arrow() as raw:
        options = {"buffer_size": BUFFER_BYTES, "pre_buffer": file.is_url}
        yield pq.ParquetFile(raw, read_dictionary=list(dictionaries) or None, **options)


def _pieces(
    parquet: Any,  # noqa: ANN401 - pyarrow has no types
    file: File,
    names: list[str],
    texts: tuple[str, ...] | None,
    wanted: Flags | None,
    most: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows with the number of their first, of all row groups that have a wanted row."""
    first = 0
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if wanted is None or wanted[first : first + group.num_rows].any():
            size = _batch_rows(group, texts, most)
            size = min(size, _rows_within(parquet, file, number, names, size, most))
            for done, rows in _read_group(parquet, file, number, names, size):
                yield first + done, rows
        first += group.num_rows


def _read_group(
    parquet: Any,  # noqa: ANN401 - as above
    file: File,
    number: int,
    names: list[str],
    size: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of one row group; of a damaged one all that stand before the damage, whatever the size of a batch."""
    done = 0
    try:
        with reading(file):
            for rows in parquet.iter_batches(size, row_groups=[number], columns=names, use_threads=len(names) > 1):
                yield done, rows
                done += len(rows)
    except Unreadable:
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
    most: int,
) -> int:
    """Rows in a batch of ``most`` bytes, going by the first few as they are decoded.

    What the metadata tells is the size of the encoding, and a page of repeated texts may stand for a thousand times as
    much.
    """
    if size <= PEEK_ROWS:
        return size
    try:
        with reading(file):
            rows = next(parquet.iter_batches(PEEK_ROWS, row_groups=[number], columns=names, use_threads=False), None)
    except Unreadable:
        return size  # reading it for good will say so
    return max(1, most * len(rows) // max(1, rows.nbytes)) if rows is not None and len(rows) else size


def _batch_rows(group: Any, texts: tuple[str, ...] | None, most: int) -> int:  # noqa: ANN401 - as above
    """Rows in a batch so that their texts (None: all their columns) have about ``most`` bytes."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    read = [chunk for chunk in chunks if texts is None or chunk.path_in_schema.split(".")[0] in texts]
    size: int = sum(chunk.total_uncompressed_size for chunk in read)
    limit = DICTIONARY_ROWS if any(_has_dictionary(chunk) for chunk in read) else BATCH_ROWS
    return max(1, min(limit, most * int(group.num_rows) // max(1, size)))


def _dense(parquet: Any, names: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ANN401 - as above
    """The columns in which some row group has so few bytes per value that the dictionary repeats them."""
    found = set()
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        for position in range(group.num_columns):
            chunk = group.column(position)
            if _has_dictionary(chunk) and chunk.total_uncompressed_size < DENSE_BYTES * chunk.num_values:
                found.add(chunk.path_in_schema)
    return tuple(name for name in names if name in found)


def _has_dictionary(chunk: Any) -> bool:  # noqa: ANN401 - as above
    return any("DICTIONARY" in encoding for encoding in chunk.encodings)


def _codecs(metadata: Any) -> dict[str, str] | str:  # noqa: ANN401 - as above
    """The codec of each column, as the first row group has it."""
    if metadata.num_row_groups == 0:
        return DEFAULT_CODEC
    group = metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema: _codec(chunk.compression) for chunk in chunks}


def _codec(name: str) -> str:
    if name == "UNCOMPRESSED":
        return "none"
    return name.lower() if name != "LZO" and pa.Codec.is_available(name.lower()) else DEFAULT_CODEC


@contextmanager
def _writer(path: Path, schema: pa.Schema, codecs: dict[str, str] | str) -> Iterator[Any]:
    with writing(path) as raw, pq.ParquetWriter(raw, schema, compression=codecs) as writer:
        yield writer
