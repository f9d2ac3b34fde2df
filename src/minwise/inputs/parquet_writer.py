"""Parquet writer that encodes row groups in several threads.

Arrow encodes the row groups of a file one after the other: 2.6 s for 0.9 GB of text, as long as everything else that
the other core did meanwhile. Here each row group becomes a file of its own in memory. The output has their row groups
one after the other, and a footer that lists them, with offsets moved. Its bytes are those that one writer gives.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from struct import pack, unpack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from minwise.inputs.parquet_pages import copy_struct, encode_integer, encode_varint

__all__ = ["write_row_groups"]

MAGIC = b"PAR1"
# Fields of FileMetaData, and offsets in RowGroup, ColumnChunk and ColumnMetaData by their path in a row group.
NUM_ROWS, ROW_GROUPS = (3,), (4,)
OFFSETS = {(5,), (1, 2), (1, 3, 9), (1, 3, 10), (1, 3, 11)}
ORDINAL = (7,)
STRUCT = 12
# Number of items that the header of a list holds itself.
SHORT_LIST = 15


def write_row_groups(
    raw: Any,  # noqa: ANN401 - a binary file of any kind
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    options: dict[str, Any],
    threads: int,
) -> int:
    """Write a Parquet file with a row group for each table, none of them empty; return the number of rows.

    Args:
        raw: The file, open for writing.
        tables: The rows; as many tables as there are threads are held at a time, and one more.
        schema: Their columns.
        options: Arguments of :class:`pyarrow.parquet.ParquetWriter`. The bytes of the file depend on these, the schema
            and the tables alone.
        threads: Number of threads that encode.
    """
    if threads > 1:
        return _write_parallel(raw, tables, schema, options, threads)
    written = 0
    with pq.ParquetWriter(raw, schema, **options) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=len(table))
            written += len(table)
            del table  # not held while the next one is read
    return written


def _write_parallel(
    raw: Any,  # noqa: ANN401 - as above
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    options: dict[str, Any],
    threads: int,
) -> int:
    def encode(*tables: pa.Table) -> memoryview:
        sink = pa.BufferOutputStream()
        write_row_groups(sink, tables, schema, options, 1)
        return memoryview(sink.getvalue())

    output = _JoinedFile(raw)
    for file in _in_order(encode, tables, threads):
        output.add(file)
        del file  # not held while the next one is encoded
    return output.finish(encode())


def _in_order(
    encode: Callable[[pa.Table], memoryview], tables: Iterable[pa.Table], threads: int
) -> Iterator[memoryview]:
    """Yield the encoded tables in their order."""
    pending: deque[Future[memoryview]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="minwise-encode")
    try:
        for table in tables:
            if len(pending) == threads:
                yield pending.popleft().result()
            pending.append(pool.submit(encode, table))
            del table  # not held while the next one is read
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class _JoinedFile:
    """Parquet file that is joined from files with one row group each."""

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - as above
        self._raw, self._end, self._rows = raw, len(MAGIC), 0
        self._groups: list[bytes] = []
        raw.write(MAGIC)

    def add(self, file: memoryview) -> None:
        """Append the row group of a file."""
        footer = _footer(file)
        body = file[len(MAGIC) : -len(footer) - 8]
        copy_struct(footer, self._take)
        self._raw.write(body)
        self._end += len(body)

    def _take(self, path: tuple[int, ...], value: Any) -> bytes | None:  # noqa: ANN401 - a number, or an encoded list
        if path == NUM_ROWS:
            self._rows += value
        elif path == ROW_GROUPS:
            moved, _ = copy_struct(bytes(value[1:]), self._move)  # after the header of a list of one
            self._groups.append(moved)
        return None

    def _move(self, path: tuple[int, ...], value: Any) -> bytes | None:  # noqa: ANN401 - as above
        """Return the numbers of a row group that depend on its position."""
        if path in OFFSETS and value:
            return encode_integer(value + self._end - len(MAGIC))
        return encode_integer(len(self._groups)) if path == ORDINAL else None

    def finish(self, empty: memoryview) -> int:
        """Write the footer, which is that of an empty file but for rows and row groups; return the number of rows."""
        count = len(self._groups)
        head = bytes([min(count, SHORT_LIST) << 4 | STRUCT]) + (encode_varint(count) if count >= SHORT_LIST else b"")
        replaced: dict[tuple[int, ...], bytes] = {
            NUM_ROWS: encode_integer(self._rows),
            ROW_GROUPS: head + b"".join(self._groups),
        }
        footer, _ = copy_struct(_footer(empty), lambda path, _: replaced.get(path))
        self._raw.write(footer + pack("<I", len(footer)) + MAGIC)
        return self._rows


def _footer(file: memoryview) -> bytes:
    (length,) = unpack("<I", file[-8:-4])
    return bytes(file[-8 - length : -8])
