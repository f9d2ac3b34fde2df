"""Arrow IPC: the file format (Feather too) and the stream format, distinguished by the first bytes.

Values, ids and faults follow from typed columns (:mod:`minwise.inputs.columns`). A copy has the format, schema and
metadata of its input; its record batches are row groups of a fixed size.

Arrow trusts a file: an offset outside its buffer is followed. So every record batch is validated before it is used.
Files are read, never mapped: a mapped file that another process truncates ends this one with SIGBUS.
"""

import io
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from minwise.inputs.columns import (
    SAMPLE_ROWS,
    Selection,
    UnreadableRows,
    check_schema,
    row_objects,
    select_columns,
    split_by_bytes,
    table_row_bytes,
    to_batches,
)
from minwise.inputs.content import HEAD_BYTES, refuse_other_content, unusable_content
from minwise.inputs.files import File, FileSource, open_output, output_path, translate_errors
from minwise.inputs.ipc_messages import FILE_MAGIC, RECORD_BATCH, Message, read_file_messages, read_stream_messages
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import BATCH_BYTES, Batch, Columns, RowMask, UnreadableError
from minwise.inputs.table_edits import TableEditor
from minwise.inputs.table_writer import kept_rows, row_groups

__all__ = ["ArrowFile", "check_column"]

# First bytes of a stream; streams of before Arrow 0.15 begin with a length.
STREAM_MAGIC = b"\xff\xff\xff\xff"
# A record batch with more bytes than this is copied to a temporary file of our own, which is mapped: it is larger than
# the memory of a small run.
LARGE_BYTES = 1 << 27
COPY_BYTES = 1 << 20
# Types of the same layout, of which Arrow validates the structure but no values: the kernel checks whether texts are
# UTF-8, and no other value decides what is read from memory.
UNCHECKED_TYPES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.int64(),
}

# Rows, or that they cannot be read.
Piece: TypeAlias = pa.RecordBatch | UnreadableRows


class ArrowFile(FileSource):
    """One file in the IPC file or IPC stream format.

    Attributes:
        damaged: Record batches of which some columns cannot be copied, and the reason.
    """

    damaged: Mapping[int, str] = MappingProxyType({})

    def known_rows(self) -> int | None:
        """Return the rows of all batches of a file; None for a stream."""
        try:
            with _open_reader(self.file) as reader:
                return reader.known_rows()
        except UnreadableError:
            return None

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        selection = self._select(columns)
        with _open_reader(self.file, selection.roots) as reader:
            for first, rows in reader.pieces(wanted, self.damaged):
                yield from to_batches(rows, first, selection, self.name, batch_bytes)

    def note_damage(self) -> bool:
        """Read every column, and from now on treat rows that cannot be copied as unreadable."""
        try:
            with _open_reader(self.file) as reader:
                self.damaged = reader.damage()
        except UnreadableError:
            return False  # of the file: reading the rows reports it
        return bool(self.damaged)

    def _select(self, columns: Columns) -> Selection:
        with _open_reader(self.file) as reader:
            return select_columns(columns, reader.schema, reader.sample)

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        with _open_reader(self.file) as reader:
            return list(reader.schema.names)

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows in the format, file or stream, of the input."""
        path, written = output_path(self.file.path, folder, root), 0
        with self._copying(keep), _open_reader(self.file) as reader:
            editor = None if edits is None else TableEditor(edits, reader.schema, growing=reader.is_file)
            schema = reader.schema if editor is None else editor.schema
            with _open_writer(path, reader, schema) as writer:
                for table in row_groups(kept_rows(reader.pieces(keep, self.damaged), keep, editor), schema):
                    writer.write_table(table)
                    written += len(table)
        return written

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept rows as objects of all columns."""
        with self._copying(keep), _open_reader(self.file) as reader:
            editor = None if edits is None else TableEditor(edits, reader.schema)
            for rows in kept_rows(reader.pieces(keep, self.damaged), keep, editor):
                yield from row_objects(rows)


class _BatchReader:
    """Reader of record batches, each of which is checked before and after Arrow reads it.

    Attributes:
        is_file: Whether the format is that of files, of which the batches behind a damaged one can be read.
        schema: All columns.
        read_schema: The columns that are read.
    """

    def __init__(self, file: File, *, is_file: bool) -> None:
        self.is_file = is_file
        self._file = file
        self._unusable: str | None = None
        with translate_errors(file), file.open_arrow() as raw:
            if is_file:
                dictionaries, self._batches = read_file_messages(raw, file.size_bytes())
                self._unusable = next((message.problem for message in dictionaries if message.problem), None)
            else:
                messages = read_stream_messages(raw, file.size_bytes())
                self._batches = [message for message in messages if message.kind == RECORD_BATCH or message.problem]

    @contextmanager
    def reading(self, names: list[str] | None) -> Iterator["_BatchReader"]:
        """Open the record batches, or only some of their columns."""
        with ExitStack() as stack:
            self._reader = self._open(stack, None)
            self.schema = self.read_schema = self._reader.schema
            check_schema(self.schema)
            if names is not None:
                fields = [self.schema.get_field_index(name) for name in names]
                self.read_schema = pa.schema([self.schema.field(number) for number in fields])
                self._reader = self._open(stack, fields)
            yield self

    def _open(self, stack: ExitStack, fields: list[int] | None) -> Any:  # noqa: ANN401 - pyarrow has no types
        with translate_errors(self._file), _naming_damage():
            large = any(message.body_bytes > LARGE_BYTES for message in self._batches)
            path = self._file.path
            raw = self._file.open_arrow() if not large or self._file.is_url else pa.PythonFile(_LargeReads(path), "r")
            # Arrow reads the selected columns into memory of the size of all, so large batches are read as a whole.
            options = ipc.IpcReadOptions(included_fields=None if large else fields)
            return (ipc.open_file if self.is_file else ipc.open_stream)(stack.enter_context(raw), options=options)

    def known_rows(self) -> int | None:
        """Return the rows of a file that its batches promise; None if they promise too many, or for a stream."""
        if not self.is_file or not all(message.is_plausible for message in self._batches):
            return None
        return sum(message.rows or 0 for message in self._batches)

    def sample(self) -> pa.RecordBatch | None:
        """Return a few of the first rows, if they can be read."""
        pieces = (rows for _, rows in self.pieces() if isinstance(rows, pa.RecordBatch))
        return next((rows.slice(0, SAMPLE_ROWS) for rows in pieces), None)

    def damage(self) -> dict[int, str]:
        """Return the reason for each batch of plausible sizes that cannot be read."""
        numbered = enumerate([] if self._unusable else self._batches)
        found = ((number, self._read(number, message)) for number, message in numbered if message.problem is None)
        return {number: rows.reason for number, rows in found if isinstance(rows, UnreadableRows)}

    def pieces(
        self, wanted: RowMask | None = None, damaged: Mapping[int, str] = MappingProxyType({})
    ) -> Iterator[tuple[int, Piece]]:
        """Yield rows with the number of the first, at least of all batches that have a wanted row.

        Args:
            wanted: A flag per row.
            damaged: Batches that must not be used, and the reason.

        Raises:
            UnreadableError: At a batch that cannot be read, if it or what follows has an unknown number of rows.
        """
        first = 0
        for number, message in enumerate(self._batches):
            rows, problem = message.rows, self._unusable or message.problem
            if rows is None or (problem is not None and not (self.is_file and message.is_plausible)):
                raise UnreadableError(f"record batch {number} {problem}")
            if wanted is not None and not wanted[first:].any():
                return
            if problem is not None:
                yield first, UnreadableRows(rows, f"record batch {number} {problem}", self.read_schema)
            elif wanted is None or wanted[first : first + rows].any():
                piece = self._read(number, message)
                reason = damaged.get(number)
                yield from _slices(first, piece if reason is None else UnreadableRows(rows, reason, self.read_schema))
            elif not self.is_file:
                self._load(number)
            first += rows

    def _read(self, number: int, message: Message) -> Piece:
        """Return the rows of a batch.

        Raises:
            UnreadableError: If they cannot be read, and it is unknown how many there are or where the next one begins.
        """
        batch, rows = None, message.rows or 0
        try:
            with translate_errors(self._file):
                batch = self._load(number)
                _check_structure(batch, rows)
        except UnreadableError as error:
            reason = f"record batch {number} {error}"
            if not message.is_plausible or (batch is None and not self.is_file):
                raise UnreadableError(reason) from None
            return UnreadableRows(rows, reason, self.read_schema)
        return batch

    def _load(self, number: int) -> pa.RecordBatch:
        with translate_errors(self._file), _naming_damage():
            return self._reader.get_batch(number) if self.is_file else self._reader.read_next_batch()


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Turn errors of types that the metadata of a damaged file may name into UnreadableError."""
    try:
        yield
    except (KeyError, RuntimeError, StopIteration, TypeError, ValueError) as error:
        raise UnreadableError(f"cannot be read: {' '.join(str(error).split()) or type(error).__name__}") from None


def _slices(first: int, rows: Piece) -> Iterator[tuple[int, Piece]]:
    """Yield a large batch in slices, so that no copy of all its rows is made; views and dictionaries count in full."""
    sizes = np.empty(0, dtype=np.int64) if isinstance(rows, UnreadableRows) else table_row_bytes(rows)
    if isinstance(rows, UnreadableRows) or sizes.sum() <= LARGE_BYTES:
        yield first, rows
        return
    for start, stop in split_by_bytes(sizes, BATCH_BYTES):
        yield first + start, rows.slice(start, stop - start)


def _check_structure(batch: pa.RecordBatch, rows: int) -> None:
    """Raise ArrowInvalid if an offset, a length or an index points outside its buffer, at any depth."""
    if len(batch) != rows:
        raise UnreadableError(f"cannot be read: it has {len(batch)} rows instead of {rows}")
    batch.validate()
    for column in batch.columns:
        check_column(column)


def check_column(column: Any) -> None:  # noqa: ANN401 - as above
    """Raise ArrowInvalid if an offset, a length or an index of a column points outside its buffer, at any depth."""
    column.view(_unchecked_type(column.type)).validate(full=True)


def _unchecked_type(kind: Any) -> Any:  # noqa: ANN401 - as above
    """Return the type of the same layout of which Arrow validates the structure alone."""
    if isinstance(kind, pa.BaseExtensionType):
        return _unchecked_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _unchecked_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, _unchecked_type(kind.value_type))
    if pa.types.is_decimal(kind) or pa.types.is_time(kind):
        return pa.binary(kind.bit_width // 8)
    rebuild = next((rebuild for test, rebuild in NESTED_TYPES if test(kind)), None)
    if rebuild is None:
        return UNCHECKED_TYPES.get(kind, kind)
    fields = [kind.field(number) for number in range(kind.num_fields)]
    return rebuild(kind, [field.with_type(_unchecked_type(field.type)) for field in fields])


# How to make a nested type of other fields, by the test of the type.
NESTED_TYPES: list[tuple[Callable[[Any], bool], Callable[[Any, list[Any]], Any]]] = [
    (pa.types.is_struct, lambda kind, fields: pa.struct(fields)),
    (pa.types.is_map, lambda kind, fields: pa.map_(*fields[0].type, kind.keys_sorted)),
    (pa.types.is_fixed_size_list, lambda kind, fields: pa.list_(fields[0], kind.list_size)),
    (pa.types.is_large_list, lambda kind, fields: pa.large_list(fields[0])),
    (pa.types.is_list, lambda kind, fields: pa.list_(fields[0])),
    (pa.types.is_large_list_view, lambda kind, fields: pa.large_list_view(fields[0])),
    (pa.types.is_list_view, lambda kind, fields: pa.list_view(fields[0])),
    (pa.types.is_union, lambda kind, fields: pa.union(fields, kind.mode, kind.type_codes)),
]


class _LargeReads(io.FileIO):
    """File of which large reads are mapped copies in a temporary file, which no other process can truncate."""

    def read(self, size: int | None = -1) -> Any:  # noqa: ANN401 - bytes, or a map of them
        """Return the next bytes."""
        if size is None or size <= LARGE_BYTES:
            return super().read(-1 if size is None else size)
        size = min(size, os.fstat(self.fileno()).st_size - self.tell())
        with TemporaryFile(prefix="minwise-") as copy:
            self._copy(copy, size)
            return mmap.mmap(copy.fileno(), size, access=mmap.ACCESS_READ)

    def _copy(self, copy: Any, size: int) -> None:  # noqa: ANN401 - a temporary file
        try:
            while size > 0 and (data := super().read(min(size, COPY_BYTES))):
                copy.write(data)
                size -= len(data)
            copy.truncate()  # flushes; it is shorter if the file was truncated meanwhile
        except OSError as error:
            raise OSError(error.errno, error.strerror, gettempdir()) from None
        if size:
            raise UnreadableError("truncated file: it was shortened while it was read")


@contextmanager
def _open_reader(file: File, names: list[str] | None = None) -> Iterator[_BatchReader]:
    """Open a reader of the file, or of some of its columns."""
    with translate_errors(file), file.open() as raw:
        head = raw.read(HEAD_BYTES)
    if not file.size_bytes():
        raise UnreadableError("cannot be read: an empty file is not an Arrow file")
    is_file = head.startswith(FILE_MAGIC)
    if not is_file and not head.startswith(STREAM_MAGIC) and unusable_content(head) is not None:
        refuse_other_content(head, "an Arrow file", (FILE_MAGIC, STREAM_MAGIC), file.compression)
    with _BatchReader(file, is_file=is_file).reading(names) as reader:
        yield reader


@contextmanager
def _open_writer(path: Path, reader: _BatchReader, schema: pa.Schema) -> Iterator[Any]:
    compression = "lz4" if path.suffix == ".feather" else None
    # A file may extend a dictionary but not replace it; a stream may do both.
    options = ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    new = ipc.new_file if reader.is_file else ipc.new_stream
    with open_output(path) as raw, new(raw, schema, options=options) as writer:
        yield writer
