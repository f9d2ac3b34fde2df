"""Arrow IPC: the file format (Feather too) and the stream format, distinguished by the first bytes.

Values, ids and faults follow from typed columns (:mod:`minwise.inputs.columns`). A copy has the format, schema and
metadata of its input; its record batches are row groups of a fixed size.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from minwise.inputs.columns import SAMPLE_ROWS, Selection, select_columns, to_batches
from minwise.inputs.content import HEAD_BYTES, refuse_other_content, unusable_content
from minwise.inputs.files import File, FileSource, open_output, output_path, translate_errors
from minwise.inputs.source import Batch, Columns, RowMask, UnreadableError
from minwise.inputs.table_writer import kept_rows, row_groups

__all__ = ["ArrowFile"]

FILE_MAGIC = b"ARROW1"
# First bytes of a stream; streams of before Arrow 0.15 begin with a length.
STREAM_MAGIC = b"\xff\xff\xff\xff"
# Types of the same layout whose bytes Arrow does not validate: the kernel checks whether texts are UTF-8.
UNCHECKED_TYPES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


class ArrowFile(FileSource):
    """One file in the IPC file or IPC stream format."""

    def known_rows(self) -> int | None:
        """Return the rows of all batches of a file; None for a stream."""
        try:
            with _open_reader(self.file) as reader:
                return int(reader.count_rows()) if hasattr(reader, "count_rows") else None
        except UnreadableError:
            return None

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        selection = self._select(columns)
        with _open_reader(self.file) as reader:
            fields = [reader.schema.get_field_index(name) for name in selection.roots]
        with _open_reader(self.file, fields) as reader:
            for first, rows in _record_batches(reader, self.file):
                if wanted is not None and not wanted[first:].any():
                    return
                if wanted is None or wanted[first : first + len(rows)].any():
                    yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def _select(self, columns: Columns) -> Selection:
        with _open_reader(self.file) as reader:

            def sample() -> Any:  # noqa: ANN401 - pyarrow has no types
                return next((rows.slice(0, SAMPLE_ROWS) for _, rows in _record_batches(reader, self.file)), None)

            return select_columns(columns, reader.schema, sample)

    def copy_kept(self, keep: RowMask, folder: Path, root: str) -> int:
        """Write the kept rows in the format, file or stream, of the input."""
        path, written = output_path(self.file.path, folder, root), 0
        with self._copying(keep), _open_reader(self.file) as reader, _open_writer(path, reader) as writer:
            for table in row_groups(kept_rows(_record_batches(reader, self.file), keep), reader.schema):
                writer.write_table(table)
                written += len(table)
        return written

    def kept_objects(self, keep: RowMask) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        with self._copying(keep), _open_reader(self.file) as reader:
            for rows in kept_rows(_record_batches(reader, self.file), keep):
                yield from rows.to_pylist()


@contextmanager
def _open_reader(file: File, fields: list[int] | None = None) -> Iterator[Any]:
    """Open a reader of the file, or of some of its fields."""
    with translate_errors(file), file.open() as raw:
        head = raw.read(HEAD_BYTES)
        is_file = head.startswith(FILE_MAGIC)
    if not file.size_bytes():
        raise UnreadableError("cannot be read: an empty file is not an Arrow file")
    if not is_file and not head.startswith(STREAM_MAGIC) and unusable_content(head) is not None:
        refuse_other_content(head, "an Arrow file", (FILE_MAGIC, STREAM_MAGIC), file.compression)
    options = ipc.IpcReadOptions(included_fields=fields)
    with translate_errors(file), file.open_arrow(memory_map=True) as mapped:
        yield (ipc.open_file if is_file else ipc.open_stream)(mapped, options=options)


def _record_batches(reader: Any, file: File) -> Iterator[tuple[int, pa.RecordBatch]]:  # noqa: ANN401 - no types
    """Yield each record batch with the number of its first row."""
    first = 0
    with translate_errors(file):
        for rows in _iterate(reader):
            _check_offsets(rows)
            yield first, rows
            first += len(rows)


def _iterate(reader: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - as above
    if isinstance(reader, ipc.RecordBatchFileReader):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)


def _check_offsets(rows: pa.RecordBatch) -> None:
    """Reject offsets that point outside their buffers: Arrow trusts a file and would read there."""
    for column in rows.columns:
        _validate(column.view(UNCHECKED_TYPES[column.type]) if column.type in UNCHECKED_TYPES else column)


def _validate(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):  # a string within a list or a struct
            raise


@contextmanager
def _open_writer(path: Path, reader: Any) -> Iterator[Any]:  # noqa: ANN401 - as above
    compression = "lz4" if path.suffix == ".feather" else None
    # A file may extend a dictionary but not replace it; a stream may do both.
    options = ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    new = ipc.new_file if isinstance(reader, ipc.RecordBatchFileReader) else ipc.new_stream
    with open_output(path) as raw, new(raw, reader.schema, options=options) as writer:
        yield writer
