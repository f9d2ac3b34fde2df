"""Table writer: result tables as Parquet, CSV, TSV or JSON lines, and kept rows as row groups.

The bytes of a file depend on its rows alone, not on the pieces in which they were read: result tables are cut after
``TABLE_ROWS`` rows; a row group of a copy ends after ``GROUP_ROWS`` rows, or before the row with which it would exceed
``GROUP_BYTES``.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from minwise._internal.formatting import plural
from minwise._internal.temporary import TemporaryFolder, output_writer
from minwise.checks import check_path
from minwise.errors import ConfigError
from minwise.inputs.columns import UnreadableRows, filter_rows, table_row_bytes
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.source import RowMask, UnreadableError
from minwise.inputs.table_edits import TableEditor

__all__ = [
    "GROUP_BYTES",
    "GROUP_ROWS",
    "TABLE_ROWS",
    "kept_rows",
    "local_table_path",
    "not_empty_error",
    "refuse_existing_file",
    "row_groups",
    "write_tables",
]

# Rows of a result table that are written at a time; also the row groups of its Parquet file.
TABLE_ROWS = 1 << 16
# RunLimits of a row group of a copy.
GROUP_ROWS = 65_536
GROUP_BYTES = 1 << 24

WriteTables = Callable[[BinaryIO, Iterator[pa.Table], pa.Schema], None]


def write_tables(
    path: str | PathLike[str], tables: Iterable[pa.Table], schema: pa.Schema, *, overwrite: bool = True
) -> int:
    """Write one file atomically; ``-`` is JSON lines on standard output.

    Args:
        path: The file or its URL.
        tables: The rows.
        schema: Their columns.
        overwrite: Whether to replace a file with content that has the name when this one is complete.

    Returns:
        The number of rows written.

    Raises:
        ConfigError: If the suffix of the name is not that of a format.
        MinwiseError: If another process wrote the file meanwhile, without ``overwrite``.
    """
    _check_suffix(path)
    pieces = _EqualPieces(tables, schema)
    _write(path, iter(pieces), schema, overwrite=overwrite)
    return pieces.rows


class _EqualPieces:
    """Tables cut into pieces of ``TABLE_ROWS`` rows, and counted."""

    def __init__(self, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
        self._tables, self._schema = tables, schema
        self.rows = 0

    def __iter__(self) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        held_rows = 0
        for table in self._tables:
            self.rows += len(table)
            held.append(table.cast(self._schema))
            held_rows += len(table)
            while held_rows >= TABLE_ROWS:
                whole = pa.concat_tables(held)
                yield whole.slice(0, TABLE_ROWS).combine_chunks()
                held, held_rows = [whole.slice(TABLE_ROWS)], held_rows - TABLE_ROWS
        if held_rows:
            yield pa.concat_tables(held).combine_chunks()


def _write(path: str | PathLike[str], tables: Iterator[pa.Table], schema: pa.Schema, *, overwrite: bool) -> None:
    if str(path) == "-":
        _write_jsonl(sys.stdout.buffer, tables, schema)
        sys.stdout.buffer.flush()
        return
    if is_url(path):
        _write_url(str(path), tables, schema, overwrite=overwrite)
        return
    with output_writer(Path(path), overwrite=overwrite) as file:
        WRITERS[Path(path).suffix.lower()](file, tables, schema)


def _write_url(url: str, tables: Iterator[pa.Table], schema: pa.Schema, *, overwrite: bool) -> None:
    """Write a temporary file and upload it; no storage refuses a name atomically, so it is looked up right before."""
    filesystem, target = url_filesystem(url)
    with TemporaryFolder() as folder:
        path = folder / target.rpartition("/")[2]
        _write(path, tables, schema, overwrite=True)
        if not overwrite:
            refuse_existing_file(url)
        filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(path), target)


def refuse_existing_file(output: str) -> None:
    """Raise ConfigError if an output file exists and is not empty; a path or a URL. A device or a pipe is accepted."""
    if is_url(output):
        filesystem, path = url_filesystem(output)
        filesystem.invalidate_cache()  # another process may have written here
        size = int(filesystem.info(path)["size"] or 0) if filesystem.isfile(path) else 0
    else:
        size = Path(output).stat().st_size if Path(output).is_file() else 0
    if size:
        raise not_empty_error(output, plural(size, "byte"))


def not_empty_error(output: str, content: str) -> ConfigError:
    """Return the error of an output that would be replaced: the one rule of all commands."""
    return ConfigError(
        f"output must be new or empty, got {output} with {content}; give another output or overwrite=True"
    )


def local_table_path(output: str | PathLike[str] | None) -> Path | None:
    """Return the local file that tables are written to; None for standard output, a URL or a result in memory.

    Raises:
        ConfigError: If the suffix of the name is not that of a format.
    """
    if output is None:
        return None
    path = check_path("output", output)
    _check_suffix(output)
    return None if str(output) == "-" or is_url(output) else path


def _check_suffix(path: str | PathLike[str]) -> None:
    if str(path) != "-" and Path(path).suffix.lower() not in WRITERS:
        raise ConfigError(f"output must end in {', '.join(WRITERS)}, or be - for standard output, got {path}")


def _write_parquet(file: BinaryIO, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_csv(file: BinaryIO, tables: Iterator[pa.Table], schema: pa.Schema, delimiter: str = ",") -> None:
    with pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(delimiter=delimiter)) as writer:
        for table in tables:
            writer.write_table(table)


def _write_tsv(file: BinaryIO, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    _write_csv(file, tables, schema, "\t")


def _write_jsonl(file: BinaryIO, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    for table in tables:
        for row in table.to_pylist():
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


WRITERS: dict[str, WriteTables] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
}


def kept_rows(
    pieces: Iterator[tuple[int, pa.RecordBatch | UnreadableRows]], keep: RowMask, editor: TableEditor | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the kept rows of each piece, with their edits; rows beyond the end of ``keep`` are dropped.

    Raises:
        UnreadableError: If a kept row cannot be read.
    """
    if not keep.any():
        return
    for first, rows in pieces:
        kept = keep[first : first + len(rows)]
        if isinstance(rows, UnreadableRows):
            if kept.any():
                raise UnreadableError(rows.reason)
        elif kept.any():
            filtered = filter_rows(rows[: len(kept)], kept)
            yield from [filtered] if editor is None else editor.edited(filtered, first + np.flatnonzero(kept))
            del filtered
        last = first + len(rows) >= len(keep)
        del rows  # not held while the next ones are read
        if last:
            return


def row_groups(pieces: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of all pieces as row groups: tables of one chunk each, none of them empty."""
    group: list[pa.RecordBatch] = []
    rows = held = 0
    for piece in pieces:
        ends = np.concatenate([[0], np.cumsum(table_row_bytes(piece))])
        start = 0
        while start < len(piece):
            fitting = int(np.searchsorted(ends, ends[start] + GROUP_BYTES - held, side="right")) - 1
            stop = min(max(fitting, start if rows else start + 1), start + GROUP_ROWS - rows)
            group.append(piece[start:stop])
            rows, held = rows + stop - start, held + int(ends[stop] - ends[start])
            start = stop
            if start < len(piece) or held > GROUP_BYTES:
                full, group, rows, held = _group_table(group, schema), [], 0, 0
                yield full
                del full
        del piece  # not held while the next one is read
    if rows:
        yield _group_table(group, schema)


def _group_table(group: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(group)
    for position, field in enumerate(schema):
        column = table.column(position)
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            table = table.set_column(position, field.name, column.cast(column.type.value_type))
    return table.cast(schema).combine_chunks()
