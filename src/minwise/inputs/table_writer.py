"""JSON objects: rows of an Arrow table in, what JSON can hold of them out."""

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import product
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from minwise._internal.atomic import atomic_writer
from minwise.checks import check_path
from minwise.errors import ConfigError
from minwise.inputs.files import is_url, url_filesystem

__all__ = ["json_objects", "table_file", "write_tables"]


def json_objects(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """An object for each row, and for each row that can not be one the reason.

    Times become ISO strings, decimals numbers, bytes text, and what is not a number null.
    """
    try:
        return _plain(rows), {}
    except (UnicodeDecodeError, orjson.JSONEncodeError):
        return _one_by_one(rows)


def _one_by_one(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], dict[int, str]]:
    objects: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    reasons: dict[int, str] = {}
    for row, name in product(range(len(rows)), rows.schema.names):
        value = rows.slice(row, 1).select([name])
        try:
            objects[row].update(_plain(value)[0])
        except (UnicodeDecodeError, orjson.JSONEncodeError):
            reasons.setdefault(row, f"{name} has bytes that are not valid UTF-8, which JSON can not hold")
    return objects, reasons


def _plain(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = orjson.loads(orjson.dumps(rows.to_pylist(), default=_value))
    return objects


def _value(value: object) -> object:
    """What orjson does not know how to write."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


Write = Callable[[BinaryIO, Iterator[pa.Table], pa.Schema], None]
# Rows of a table that are written at a time; also the row groups of Parquet files.
TABLE_ROWS = 1 << 16


def write_tables(path: str | PathLike[str], tables: Iterable[pa.Table], schema: pa.Schema) -> int:
    """Writes one file, which appears whole or not at all; ``-`` is JSON lines on standard output.

    Returns:
        How many rows were written. The bytes depend on the rows alone, not on how the tables cut them.
    """
    _check_name(path)
    counted = _Counted(tables, schema)
    _write(path, counted.pieces(), schema)
    return counted.rows


class _Counted:
    """Tables, cut anew after equal numbers of rows and counted on their way."""

    def __init__(self, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
        self._tables, self._schema = tables, schema
        self.rows = 0

    def pieces(self) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        waiting = 0
        for table in self._tables:
            self.rows += len(table)
            held.append(table.cast(self._schema))
            waiting += len(table)
            while waiting >= TABLE_ROWS:
                whole = pa.concat_tables(held)
                yield whole.slice(0, TABLE_ROWS).combine_chunks()
                held, waiting = [whole.slice(TABLE_ROWS)], waiting - TABLE_ROWS
        if waiting:
            yield pa.concat_tables(held).combine_chunks()


def _write(path: str | PathLike[str], tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    if str(path) == "-":
        _write_jsonl(sys.stdout.buffer, tables, schema)
        sys.stdout.buffer.flush()
        return
    if is_url(path):
        _write_and_send(str(path), tables, schema)
        return
    with atomic_writer(Path(path)) as file:
        FORMATS[Path(path).suffix.lower()](file, tables, schema)


def _write_and_send(url: str, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    filesystem, target = url_filesystem(url)
    with TemporaryDirectory(prefix="minwise-") as folder:
        path = Path(folder) / target.rpartition("/")[2]
        _write(path, tables, schema)
        filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(path), target)


def table_file(output: str | PathLike[str] | None) -> Path | None:
    """The file of this machine that tables go to; None if they go to standard output, to a URL or into memory.

    Raises:
        ConfigError: If the name does not tell how to write.
    """
    if output is None:
        return None
    path = check_path("output", output)
    _check_name(output)
    return None if str(output) == "-" or is_url(output) else path


def _check_name(path: str | PathLike[str]) -> None:
    if str(path) != "-" and Path(path).suffix.lower() not in FORMATS:
        raise ConfigError(f"output must end in {', '.join(FORMATS)}, or be - for standard output, got {path}")


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


FORMATS: dict[str, Write] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
}
