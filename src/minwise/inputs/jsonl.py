"""JSON lines: one object per line, perhaps compressed; blank lines are not rows.

Ids come from the field ``id`` if the first object has it, or from the id column that the user named. A row has a fault
if its line is not a JSON object, or if its text or id is missing or has the wrong type. Kept lines are copied byte for
byte.
"""

import io
import re
import secrets
import select
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from minwise import _kernel
from minwise._internal.arrays import from_bytes, invalid_utf8_offset
from minwise.inputs.column_paths import MISSING, find_value, join_values, missing_column, record_leaves
from minwise.inputs.columns import SAMPLE_ROWS
from minwise.inputs.content import refuse_binary
from minwise.inputs.document_values import RowValues
from minwise.inputs.elements import id_array
from minwise.inputs.encodings import choose_encoding
from minwise.inputs.files import TextFileSource, strip_bom
from minwise.inputs.json_edits import JsonEditor
from minwise.inputs.row_edits import RowEdits, kept_bytes
from minwise.inputs.row_reader import (
    Line,
    OversizedLine,
    RowReader,
    drain,
    lines_by_chunk,
    oversized_reason,
    values_and_faults,
)
from minwise.inputs.source import Batch, ColumnError, Columns, Fault, RowMask

__all__ = [
    "JsonLinesFile",
    "JsonLinesReader",
    "NumberedLine",
    "RowError",
    "first_names",
    "parse_json",
    "read_available_lines",
]

READ_BYTES = 1 << 20
# Python handles a signal that arrives right before a blocking read only when the read returns, so that no read blocks
# for longer than this: 1 of 100 interrupts between two lines was not noticed.
SIGNAL_SECONDS = 1.0
# Bytes above which a line is parsed without its long strings, and bytes of those: Python would hold a text with one
# emoji in four bytes per character.
LONG_LINE, LONG_STRING = 1 << 20, 1 << 16
# Values of one line: Python needs about 60 bytes for each.
MAX_VALUES = 1 << 22
# Stands for a long string while its line is parsed; it cannot be guessed, so no input contains it.
PLACEHOLDER = f"\0{secrets.token_hex(16)}"
# Maximum number of lines in a group of lines from a stream.
MAX_LINES = 8192

# The number of a line, counted from 1, and the line.
NumberedLine = tuple[int, Line]


class JsonLinesFile(TextFileSource):
    """One file of JSON lines, perhaps compressed."""

    may_be_cp1252 = False

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        return JsonLinesReader(self.name, columns).read(_numbered_lines(self.chunks()), wanted, batch_bytes)

    def column_names(self) -> list[str]:
        """Return the names of the members of the first objects."""
        return first_names("line", _numbered_lines(self.chunks()))

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept lines, of which all but the edited bytes are unchanged; the last one gets a line feed."""
        return self._copy_lines(self._lines(), keep, folder, root, self._editor(edits))

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept lines, which are JSON already."""
        with self._copying(keep):
            for line in kept_bytes(self._lines(), keep, self._editor(edits)):
                yield orjson.Fragment(line.strip())

    def _lines(self) -> Iterator[Line]:
        return map(itemgetter(1), _numbered_lines(self.chunks()))

    def _editor(self, edits: RowEdits | None) -> JsonEditor | None:
        return None if edits is None else JsonEditor(edits, self.name)


def _numbered_lines(chunks: Iterable[bytes]) -> Iterator[NumberedLine]:
    return drain(_numbered_lines_by_chunk(chunks))


def _numbered_lines_by_chunk(chunks: Iterable[bytes]) -> Iterator[list[NumberedLine]]:
    """Yield the lines that are rows with their numbers; those that end in a chunk before the next chunk is read."""
    done = 0
    for lines in lines_by_chunk(chunks):
        rows = [(number, _strip_row(number, line)) for number, line in enumerate(lines, done + 1)]
        numbered = [(number, row) for number, row in rows if row is not None]
        done += len(lines)
        del lines, rows  # the caller may drop each line when it is done with it
        yield numbered


def _strip_row(number: int, line: Line) -> Line | None:
    """Return the line without a byte order mark at the start of the file; None if it is blank."""
    if isinstance(line, OversizedLine):
        return line
    text = strip_bom(line) if number == 1 else line
    return None if text.isspace() else text


class RowError(Exception):
    """The reason why a line, text or id cannot be used."""


class JsonLinesReader(RowReader[NumberedLine]):
    """Converts lines to batches; the first object decides whether there are ids."""

    unit = "line"

    def __init__(self, source: str, columns: Columns) -> None:
        self.source = source
        self.columns = columns
        self.id = columns.id or "id"
        self.has_ids = True if columns.id else None  # None until the first object decides
        self.values = RowValues(columns.values, digits_are_numbers=False)
        self.unseen = set(columns.metadata)
        self.started = False  # whether there was an object
        self.long_texts: dict[str, bytes] = {}  # of the last line, by placeholder

    @property
    def knows_columns(self) -> bool:
        """Whether ids, metadata columns and the kinds of document values are known."""
        return not self.unseen and self.has_ids is not None and self.values.knows_kinds

    def size_of(self, row: NumberedLine) -> int:
        """Return the bytes of the line; 0 if it is too long to be held."""
        return len(row[1]) if isinstance(row[1], bytes) else 0

    def batch(self, first: int, rows: list[NumberedLine]) -> Batch:
        """Return the batch of consecutive lines."""
        values: list[Any] = []
        ids: list[int | str | None] = []
        document_values: list[list[object]] = []
        metadata: list[dict[str, Any]] = []
        faults: list[Fault] = []
        last: dict[str, Any] = {}
        for row, (number, line) in enumerate(rows, first):
            record: dict[str, Any] = {}
            try:
                record = self._parse(number, line)
                ids.append(self._id(record))
                values.append(self._text(record) if self.columns.elements is None else self._fields(record))
            except RowError as error:
                faults.append(Fault(self.source, row, str(error)))
                values.append(None)
                ids.extend([None] * (len(values) - len(ids)))
            document_values.append([_value(record, column.name) for column in self.columns.values])
            metadata.append({name: _value(record, name) for name in self.columns.metadata})
            self.unseen -= {name for name in self.unseen if find_value(record, name) is not MISSING}
            last = record or last
            self.started |= bool(record)
        self._reject_unseen(last)
        column, faults = self._column(values, first, faults)
        return Batch(
            first,
            column,
            id_array(ids) if self.has_ids else None,
            self.values.arrays(document_values),
            tuple(faults),
            metadata if self.columns.metadata else None,
        )

    def _parse(self, number: int, line: Line) -> dict[str, Any]:
        """Return the object of a line.

        Raises:
            RowError: If it is not an object.
        """
        record = self._parse_value(number, line)
        if not isinstance(record, dict):
            raise RowError(f"{self.unit} {number} must be a JSON object, got {type(record).__name__}")
        return record

    def _parse_value(self, number: int, line: Line) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of a line; where only its texts are used, placeholders stand for its long strings."""
        whole = self.columns.elements is not None or self.columns.metadata or self.columns.values
        shortened = None if whole else _shorten(line)
        if shortened is None:
            self.long_texts = {}
            return parse_json(self.unit, number, line)
        short, self.long_texts = shortened
        value = orjson.loads(short)
        if isinstance(value, dict) and PLACEHOLDER in str(find_value(value, self.id)):
            self.long_texts = {}
            return parse_json(self.unit, number, line)
        return value

    def _reject_unseen(self, record: dict[str, Any]) -> None:
        """Raise if none of the first objects has a metadata column; a later object may lack it and is null there."""
        if record and self.unseen:
            name = next(name for name in self.columns.metadata if name in self.unseen)
            raise ColumnError(missing_column(name, list(record_leaves(record))))

    def _id(self, record: dict[str, Any]) -> int | str | None:
        if self.has_ids is None:
            self.has_ids = self.id in record
        if not self.has_ids:
            return None
        value = find_value(record, self.id)
        if value is MISSING and self.columns.id:
            raise self._lacks(record, self.id, "id_column")
        if value is MISSING:
            return None
        if value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)):
            return value
        raise RowError(f"{self.id} must be a string or a whole number, got {type(value).__name__}")

    def _column(self, values: list[Any], first: int, faults: list[Fault]) -> tuple[pa.Array, list[Fault]]:
        """Return the texts, or the elements of the fields, as a column, with all faults in order."""
        if self.columns.elements is None:
            return from_bytes(values, pa.large_string()), faults
        return values_and_faults(self.columns.elements, values, self.source, first, faults)

    def _fields(self, record: dict[str, Any]) -> list[Any]:
        values = [find_value(record, name) for name in self.columns.text]
        for name, value in zip(self.columns.text, values, strict=True):
            if value is MISSING:
                elements = self.columns.elements
                raise self._lacks(record, name, None if elements is None else elements.setting_of(name))
        return values

    def _text(self, record: dict[str, Any]) -> bytes:
        parts = [self._text_field(record, name) for name in self.columns.text]
        text = parts[0] if len(parts) == 1 else "\n".join(parts)
        long_texts, self.long_texts = self.long_texts, {}
        return _restore(text, long_texts) if long_texts else text.encode()

    def _text_field(self, record: dict[str, Any], name: str) -> str:
        value = find_value(record, name)
        if isinstance(value, str):
            return value
        if value is MISSING:
            raise self._lacks(record, name, "text_column")
        if value is None:
            raise RowError(f"{name} is null")
        joined = join_values(value) if isinstance(value, list) else None
        if joined is None:
            raise RowError(f"{name} must be a string, got {_kind(value)}")
        return joined

    def _lacks(self, record: dict[str, Any], name: str, setting: str | None) -> RowError:
        """Return the error of an object without a column; that of the first object lists its columns."""
        if self.started:
            return RowError(f"has no column {name!r}")
        return RowError(missing_column(name, list(record_leaves(record)), setting))


def _value(record: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value of an object, or None."""
    value = find_value(record, name)
    return None if value is MISSING else value


def _kind(value: object) -> str:
    """Return the type of a value that is no text."""
    other = next((item for item in value if not isinstance(item, str)), None) if isinstance(value, list) else value
    return f"a list with {type(other).__name__}" if isinstance(value, list) else type(value).__name__


def _shorten(line: Line) -> tuple[bytes, dict[str, bytes]] | None:
    """Return a long line with placeholders in place of its long strings, and their texts.

    None if the line is not long, has no long strings or may not be valid, so that it must be parsed as it is.
    """
    if isinstance(line, OversizedLine) or len(line) <= LONG_LINE:
        return None
    strings, values = _kernel.json_outline(line, LONG_STRING)
    if not strings or values > MAX_VALUES:
        return None
    parts: list[bytes] = []
    texts: dict[str, bytes] = {}
    done = 0
    for start, end in strings:
        text = _kernel.json_text(line, start, end)
        if text is None:
            return None
        name = f"{PLACEHOLDER}{len(texts):08x}"
        texts[name] = text
        parts += [line[done:start], orjson.dumps(name)]
        done = end
    short = b"".join([*parts, line[done:]])
    return (short, texts) if _is_json(short) else None


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _restore(text: str, long_texts: dict[str, bytes]) -> bytes:
    """Return a text as UTF-8, with the long texts in place of their placeholders."""
    if text in long_texts:
        return long_texts[text]
    pieces = re.split(f"({re.escape(PLACEHOLDER)}[0-9a-f]{{8}})", text)
    return b"".join([long_texts.get(piece) or piece.encode() for piece in pieces])


def first_names(unit: str, lines: Iterator[NumberedLine]) -> list[str]:
    """Return the names of the members of the first objects, each once."""
    names: dict[str, None] = {}
    for number, line in islice(lines, SAMPLE_ROWS):
        with suppress(RowError):
            value = parse_json(unit, number, line)
            names.update(dict.fromkeys(value if isinstance(value, dict) else ()))
    return list(names)


def parse_json(unit: str, number: int, line: Line) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a line or another unit of a file.

    Raises:
        RowError: If it is too long, or not JSON.
    """
    if isinstance(line, OversizedLine):
        raise RowError(oversized_reason())
    if len(line) > LONG_LINE and _kernel.json_outline(line, len(line))[1] > MAX_VALUES:
        raise RowError(f"{unit} {number} has more than {MAX_VALUES} values")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RowError(_syntax_reason(f"{unit} {number}", line, error)) from None


def _syntax_reason(where: str, line: bytes, error: orjson.JSONDecodeError) -> str:
    invalid = invalid_utf8_offset(line)
    if invalid is not None:
        return f"{where} is not valid UTF-8 at byte {invalid}"
    column = min(error.pos, len(line.decode().rstrip())) + 1
    return f"{where} is not JSON: {error.msg} at column {column}"


def read_available_lines(stream: BinaryIO, max_bytes: int, encoding: str | None = None) -> Iterator[list[NumberedLine]]:
    """Yield the lines of a stream in groups, always before a read that would block.

    Args:
        stream: A pipe, a terminal or a file.
        max_bytes: Bytes of lines at which a group is full.
        encoding: The encoding that the user has named; None for UTF-8, unless the stream has a byte order mark.

    Raises:
        UnreadableError: If the stream begins with bytes that are not text.
    """
    group: list[NumberedLine] = []
    size = 0
    for lines in _numbered_lines_by_chunk(_text_chunks(stream, encoding)):
        for line in lines:
            group.append(line)
            size += len(line[1]) if isinstance(line[1], bytes) else 0
            if len(group) == MAX_LINES or size >= max_bytes:
                yield group
                group, size = [], 0
        if group and not _is_ready(stream):
            yield group
            group, size = [], 0
    if group:
        yield group


def _text_chunks(stream: BinaryIO, given: str | None) -> Iterator[bytes]:
    """Return the text of a stream as UTF-8."""
    chunks = _stream_chunks(stream)
    first = next(chunks, b"")
    encoding = choose_encoding(given, first, complete=False, guess=False)
    whole = chain(filter(None, [first]), chunks)
    return refuse_binary(whole) if encoding is None else encoding.decode(whole)


def _stream_chunks(stream: BinaryIO) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)
    while chunk := read(READ_BYTES):
        yield chunk
        while not _is_ready(stream, SIGNAL_SECONDS):  # the last read has emptied the buffer
            pass


def _is_ready(stream: BinaryIO, seconds: float = 0) -> bool:
    """Return whether a read would return data or the end of the stream without blocking, after at most ``seconds``."""
    try:
        return bool(select.select([stream], [], [], seconds)[0])
    except (AttributeError, OSError, TypeError, ValueError, io.UnsupportedOperation):  # not a pipe, terminal or socket
        return True
