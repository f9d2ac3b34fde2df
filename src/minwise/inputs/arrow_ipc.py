"""Arrow IPC: files (Feather too) and streams of record batches in, batches of texts out, the kept rows likewise."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from minwise.inputs.columns import check_types, select, to_batches
from minwise.inputs.files import File, FileSource, output_path, reading, writing
from minwise.inputs.row_groups import kept_rows, regroup
from minwise.inputs.source import Batch, Columns, Unreadable

__all__ = ["ArrowFile"]

FILE_MAGIC = b"ARROW1"
# The same offsets and bytes under a type whose bytes nobody checks: that they are UTF-8 is for the kernel to say.
UNCHECKED = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}

Flags = NDArray[np.bool_]


class ArrowFile(FileSource):
    """One file in the IPC file or IPC stream format, whichever its first bytes say."""

    def known_rows(self) -> int | None:
        """Of a file what its batches say; None for a stream."""
        try:
            with _opened(self.file) as reader:
                return int(reader.count_rows()) if hasattr(reader, "count_rows") else None
        except Unreadable:
            return None

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        with _opened(self.file) as reader:
            schema = reader.schema
            selection = select(columns, schema.names)
            check_types(selection, schema)
        with _opened(self.file, [schema.get_field_index(name) for name in selection.needed]) as reader:
            for first, rows in _record_batches(reader, self.file):
                if wanted is not None and not wanted[first:].any():
                    return
                if wanted is None or wanted[first : first + len(rows)].any():
                    yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Writes the kept rows in the format, file or stream, that they came in."""
        path, written = output_path(self.file.path, folder, root), 0
        with self._copying(keep), _opened(self.file) as reader, _writer(path, reader) as writer:
            for table in regroup(kept_rows(_record_batches(reader, self.file), keep), reader.schema):
                writer.write_table(table)
                written += len(table)
        return written


@contextmanager
def _opened(file: File, fields: list[int] | None = None) -> Iterator[Any]:
    """A reader of the file, only of some ``fields`` if they are given."""
    with reading(file), file.open() as raw:
        is_file = raw.read(len(FILE_MAGIC)) == FILE_MAGIC
    if not file.size_bytes():
        raise Unreadable("can not be read: an empty file is not an Arrow file")
    options = ipc.IpcReadOptions(included_fields=fields)
    with reading(file), file.open_arrow(memory_map=True) as mapped:
        yield (ipc.open_file if is_file else ipc.open_stream)(mapped, options=options)


def _record_batches(reader: Any, file: File) -> Iterator[tuple[int, pa.RecordBatch]]:  # noqa: ANN401 - no types
    """Each record batch with the number of its first row."""
    first = 0
    with reading(file):
        for rows in _each(reader):
            _check(rows)
            yield first, rows
            first += len(rows)


def _each(reader: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - as above
    if isinstance(reader, ipc.RecordBatchFileReader):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)


def _check(rows: pa.RecordBatch) -> None:
    """Refuses offsets that point outside their buffers: Arrow takes a file at its word, and would read there."""
    for column in rows.columns:
        _validate(column.view(UNCHECKED[column.type]) if column.type in UNCHECKED else column)


def _validate(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):  # a string within a list or a struct
            raise


@contextmanager
def _writer(path: Path, reader: Any) -> Iterator[Any]:  # noqa: ANN401 - as above
    compression = "lz4" if path.suffix == ".feather" else None
    # A file may extend a dictionary but not replace it, a stream may do both.
    options = ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    new = ipc.new_file if isinstance(reader, ipc.RecordBatchFileReader) else ipc.new_stream
    with writing(path) as raw, new(raw, reader.schema, options=options) as writer:
        yield writer
