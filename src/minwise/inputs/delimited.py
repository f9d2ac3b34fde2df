"""CSV and TSV with a header line, perhaps compressed; blank lines are not rows.

The delimiter is the one that divides the first records into equally many fields, unless the user decides.

All values are strings: ids are large_string, metadata strings, values that order documents numbers if the first one is
a number. A row has a fault if it has not as many fields as the header, if a quotation mark is never closed, or if its
id or metadata is not valid UTF-8. A mark that is never closed costs its line; reading goes on with the next one. The
header and the kept records are copied byte for byte. Names in the header may be within blanks.

Lines are decoded as Latin-1, in which every byte is one character, so that fields can be encoded to the original bytes;
the kernel checks whether texts are UTF-8. The csv module, which takes four bytes per character, reads records of up to
1 MiB; the kernel divides longer ones into fields by the same rules.
"""

import csv
import io
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import accumulate, islice, pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_bytes, invalid_utf8_offset
from minwise.checks import show
from minwise.inputs import row_reader
from minwise.inputs.columns import SAMPLE_ROWS, Selection, select_columns, to_json
from minwise.inputs.document_values import RowValues
from minwise.inputs.encodings import Encoding
from minwise.inputs.files import BOM, File, TextFileSource, read_first, strip_bom
from minwise.inputs.row_edits import (
    Cuts,
    EditedRows,
    RowEditor,
    RowEdits,
    Spans,
    kept_numbered,
    remove_spans,
    row_spans,
)
from minwise.inputs.row_reader import (
    Line,
    OversizedLine,
    RowReader,
    drain,
    oversized_reason,
    quoted_lines,
    values_and_faults,
)
from minwise.inputs.source import Batch, ColumnError, Columns, Fault, RowMask, UnreadableError

__all__ = ["DelimitedFile", "detect_delimiter"]

DELIMITERS = (",", ";", "\t", "|")
# Shares of records by which a delimiter must be more plausible than any other.
CLEAR_LEAD = 0.1
# Bytes above which the kernel reads a record instead of the csv module.
LONG_RECORD = 1 << 20
# How a record ends, as the kernel tells.
CLOSED, UNCLOSED, LONE_RETURN = range(3)
# Fields of a record: each is an object of its own.
MAX_FIELDS = 1 << 20
# Characters of a name; longer ones are texts.
LONGEST_NAME = 100


class _Record(NamedTuple):
    """One record: its bytes, and its fields, in Latin-1 or as bytes, or the reason why it cannot be used."""

    raw: bytes
    fields: list[str] | list[bytes]
    reason: str | None = None

    def field(self, position: int) -> bytes:
        """Return the bytes of a field."""
        field = self.fields[position]
        return field.encode("latin-1") if isinstance(field, str) else field


class DelimitedFile(TextFileSource):
    """One file of CSV or TSV with a header, perhaps compressed.

    Attributes:
        usual: The delimiter by the name of the format, unless the file shows that it has another.
        delimiter: The delimiter that the user has named; None to detect it from the first bytes.
    """

    text_settings = ("delimiter", "encoding")

    def __init__(self, file: File, usual: str, *, delimiter: str | None = None, encoding: str | None = None) -> None:
        super().__init__(file, encoding)
        self.usual = usual
        self.delimiter = delimiter

    def _detect(self, head: bytes, complete: bool) -> tuple[Encoding | None, str]:
        encoding, _ = super()._detect(head, complete)
        if self.delimiter is not None:
            return encoding, self.delimiter
        return encoding, detect_delimiter(_as_utf8(head, encoding), self.usual, complete=complete)

    def reading(self) -> str | None:
        """Return delimiter and encoding, unless they are the usual ones."""
        try:
            encoding, delimiter = self.dialect
        except UnreadableError:
            return None
        separated = f"{_quoted(delimiter)}-separated" if delimiter and delimiter != self.usual else None
        return ", ".join(filter(None, [separated, None if encoding is None else encoding.name])) or None

    def _records(self) -> Iterator[_Record]:
        """Yield the header, then the rows."""
        return _check_widths(self._parsed())

    def _parsed(self) -> Iterator[_Record]:
        """Yield the records; read the file again after an unclosed quotation mark that too many bytes follow."""
        skip: int | None = 0
        while skip is not None:
            pieces = quoted_lines(self.chunks())
            lines = _LineFeeder(pieces, self.dialect[1] or self.usual, complete=self.file.complete)
            lines.skip_to(skip)
            skip = yield from _parse_records(lines)

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        records = self._records()
        names = _header_names(records)
        reader = DelimitedReader(self.name, self._select(columns), names)
        yield from reader.read(records, wanted, batch_bytes)

    def _select(self, columns: Columns) -> Selection:
        records = self._records()
        names = _header_names(records)
        _refuse_data_as_header(names, columns)

        def sample() -> pa.RecordBatch:
            rows = [_beginnings(record) for record in islice(records, SAMPLE_ROWS) if record.reason is None]
            columns_of_text = [[row[position] for row in rows] for position in range(len(names))]
            return pa.record_batch([from_bytes(texts, pa.large_binary()) for texts in columns_of_text], names=names)

        return select_columns(columns, pa.schema([(name, pa.large_string()) for name in names]), sample, typed=False)

    def count_rows(self) -> int:
        """Return the number of records after the header, up to where the file can be read."""
        return max(0, _count(self._records()) - 1)

    def column_names(self) -> list[str]:
        """Return the names in the header."""
        return _header_names(self._records())

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the header and the kept records, of which all but the edited fields are unchanged."""
        written = 0
        with self._copying(keep):
            records = read_first(self._records())
            with self._open_copy(folder, root) as copy:
                editor = None
                for header in islice(records, 1):
                    editor = self._editor(edits, header)
                    copy.write(header.raw if editor is None else editor.header(header.raw))
                for record in self._kept(records, keep, editor):
                    copy.write(record)
                    written += 1
                    del record  # before the next one, as both may be large
        return written

    def _editor(self, edits: RowEdits | None, header: _Record) -> "_RecordEditor | None":
        return None if edits is None else _RecordEditor(edits, _names_of(header), self.dialect[1] or self.usual)

    def _kept(self, records: Iterator[_Record], keep: RowMask, editor: "_RecordEditor | None") -> Iterator[bytes]:
        """Yield the bytes of the kept records, with their edits."""
        kept = kept_numbered(_usable(records), keep)
        return _bytes_of(kept) if editor is None else editor.edit(kept)

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept records as objects of all columns."""
        with self._copying(keep):
            records = self._records()
            header = next(records, None)
            names = _names_of(header)
            editor = None if header is None else self._editor(edits, header)
            names += [] if edits is None else edits.added.names
            delimiter = ord(self.dialect[1] or self.usual)
            for raw in self._kept(records, keep, editor):
                fields = _kernel.csv_fields(raw, 0, delimiter, MAX_FIELDS) or [b""] * len(names)
                yield dict(zip(names, (field.decode("utf-8", "replace") for field in fields), strict=True))


def _beginnings(record: _Record) -> list[bytes]:
    """Return the fields, each up to ``LONG_RECORD``."""
    return [record.field(position)[:LONG_RECORD] for position in range(len(record.fields))]


def _as_utf8(head: bytes, encoding: Encoding | None) -> bytes:
    """Return the first bytes as UTF-8, up to those that the encoding does not have."""
    pieces: list[bytes] = []
    if encoding is not None:
        with suppress(UnreadableError):
            pieces.extend(encoding.decode([head], complete=False))
    return head if encoding is None else b"".join(pieces)


def detect_delimiter(head: bytes, usual: str, *, complete: bool) -> str:
    r"""Return the delimiter of a file by its first bytes, in UTF-8.

    A delimiter is plausible by the share of records that it divides into as many fields as the header; of about equally
    plausible ones, the one that gives the most columns is meant. The usual one is never given up for that.

    >>> detect_delimiter(b"id;text\n1;Ferries, boats and trains\n", ",", complete=True)
    ';'

    Raises:
        UnreadableError: If two delimiters are about equally plausible.
    """
    text = strip_bom(head).decode("latin-1")
    columns = {delimiter: len(_first_record(text, delimiter)) for delimiter in DELIMITERS}
    candidates = [delimiter for delimiter, count in columns.items() if count > 1]
    if len(candidates) <= 1:
        return candidates[0] if candidates else usual
    shares = {delimiter: _consistency(text, delimiter, complete=complete) for delimiter in candidates}
    likely = [delimiter for delimiter in candidates if shares[delimiter] > max(shares.values()) - CLEAR_LEAD]
    most = [delimiter for delimiter in likely if columns[delimiter] == max(columns[other] for other in likely)]
    if len(most) > 1 or (usual in likely and most != [usual]):
        names = " or ".join(f"delimiter={_shown(delimiter)!r}" for delimiter in likely)
        raise UnreadableError(f"has a header that {len(likely)} delimiters may divide; set {names}")
    return most[0]


def _quoted(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"`{delimiter}`"


def _shown(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else delimiter


def _records_of(text: str, delimiter: str, *, strict: bool) -> Iterator[list[str]]:
    _allow_long_fields()
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)


def _first_record(text: str, delimiter: str) -> list[str]:
    """Return the fields of the first record that is not blank."""
    try:
        return next(filter(None, _records_of(text, delimiter, strict=False)), [])
    except csv.Error:
        return []


def _consistency(text: str, delimiter: str, *, complete: bool) -> float:
    """Return the share of records that have as many fields as the header; quotes must enclose whole fields."""
    records = _records_of(text, delimiter, strict=True)
    widths = list(iter(lambda: _next_width(records), None))
    widths = list(filter(None, widths if complete or len(widths) <= 1 else widths[:-1]))
    return sum(width == widths[0] > 0 for width in widths) / max(1, len(widths))


def _next_width(records: Iterator[list[str]]) -> int | None:
    """Return the number of fields, 0 if blank and -1 if the record cannot be read; None at the end."""
    try:
        return len(next(records))
    except StopIteration:
        return None
    except csv.Error:
        return -1


def _allow_long_fields() -> None:
    csv.field_size_limit(max(csv.field_size_limit(), LONG_RECORD))


class _LongRecord(Exception):  # noqa: N818 - a signal through the csv module
    """A record is longer than ``LONG_RECORD``; it was taken, but not divided into fields."""


class _OversizedRecord(Exception):  # noqa: N818 - a signal through the csv module
    """A record is longer than ``MAX_RECORD_BYTES``.

    Args:
        start: The bytes before those that are too many; none if the first line is too long.
        closed: Whether it has an end: its last quotation mark is closed.
    """

    def __init__(self, start: bytes, *, closed: bool) -> None:
        super().__init__()
        self.start = start
        self.closed = closed


class _LineFeeder:
    """Iterator of lines for the csv module.

    Feeds lines that probably form one record together, and keeps the bytes fed.

    Attributes:
        delimiter: The delimiter of the fields.
        complete: Whether the lines are those of the whole file.
        number: The number of lines that were fed.
        ended: Whether all lines were fed.
    """

    def __init__(self, pieces: Iterator[Line], delimiter: str, *, complete: bool) -> None:
        self.pieces = pieces
        self.delimiter = delimiter
        self.complete = complete
        self.waiting: list[io.BytesIO] = []  # bytes to feed line by line, the next ones last
        self.number = 0
        self.taken: list[bytes] = []
        self.size = 0
        self.ended = False
        self.most = min(LONG_RECORD, row_reader.MAX_RECORD_BYTES)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._next_piece()
        if piece is None:
            self.ended = True
            raise StopIteration
        if isinstance(piece, OversizedLine) or self.size + len(piece) > self.most:
            self._take_long_record(piece)
            raise _LongRecord
        text = (piece if self.number else strip_bom(piece)).decode("latin-1")
        self._take(piece)
        return text

    def _take_long_record(self, following: Line) -> None:
        """Take the rest of a record, from the piece after those that the csv module has read.

        Raises:
            _OversizedRecord: If it is longer than ``MAX_RECORD_BYTES``.
            csv.Error: If a carriage return is within an unquoted field.
        """
        piece: Line | None = following
        end = UNCLOSED if self.taken else CLOSED  # the csv module reads another line only within quotation marks
        while piece is not None:
            line = self._within_limit(piece)
            start = 0 if self.number else _bom_length(line)
            used, end = _kernel.csv_record_end(line, start, ord(self.delimiter), end == UNCLOSED)
            if used < len(line):
                self._wait(line, used)
            self._take(line[:used])
            if end == LONE_RETURN:
                raise csv.Error("a carriage return is within a field without quotation marks")
            if end == CLOSED:
                return
            piece = self._next_piece()
        self.ended = True

    def _within_limit(self, piece: Line) -> bytes:
        """Return the piece, or its first line; raise _OversizedRecord if the record is too long with it."""
        limit = row_reader.MAX_RECORD_BYTES - self.size
        if isinstance(piece, bytes) and len(piece) > limit:
            piece = self._split(piece)
        if isinstance(piece, OversizedLine) or len(piece.removesuffix(b"\n")) > limit:
            start = self.record()
            raise _OversizedRecord(start, closed=self._skip_record(start, piece))
        return piece

    def _take(self, piece: bytes) -> None:
        self.number += _line_count(piece)
        self.taken.append(piece)
        self.size += len(piece)

    def record(self) -> bytes:
        """Return the bytes taken since the last call."""
        taken = b"".join(self.taken)
        self.taken, self.size = [], 0
        return taken

    def retry(self) -> bool:
        """Take back the bytes taken, to feed them line by line; return False if they were already fed line by line."""
        if not any(_has_several_lines(piece) for piece in self.taken):
            return False
        self.put_back(self.record())
        return True

    def put_back(self, data: bytes) -> None:
        """Feed bytes again, line by line."""
        self.number -= _line_count(data) if data else 0
        self.waiting.append(io.BytesIO(data))
        self.ended = False

    def skip_to(self, number: int) -> None:
        """Skip lines until ``number`` lines are fed or skipped."""
        while self.number < number and (piece := self._next_piece()) is not None:
            self.number += _line_count(self._split(piece) if isinstance(piece, bytes) else piece)

    def _next_piece(self) -> Line | None:
        while self.waiting:
            line = self.waiting[-1].readline()
            if line:
                return line
            self.waiting.pop()
        return next(self.pieces, None)

    def _split(self, piece: bytes) -> bytes:
        """Return the first line of several; the others wait."""
        if not _has_several_lines(piece):
            return piece
        used = piece.find(b"\n") + 1
        self._wait(piece, used)
        return piece[:used]

    def _wait(self, piece: bytes, used: int) -> None:
        """Feed the bytes after the first ``used`` ones line by line."""
        rest = io.BytesIO(piece)
        rest.seek(used)
        self.waiting.append(rest)

    def _skip_record(self, start: bytes, piece: Line) -> bool:
        """Skip the rest of the record: it ends with a line after an even number of quotation marks.

        Return False if all lines end before.
        """
        quotes = start.count(b'"') + _quote_count(piece)
        self.number += _line_count(piece)
        while quotes % 2:
            rest = self._next_piece()
            if rest is None:
                return False
            if isinstance(rest, bytes):
                rest = self._split(rest)
            self.number += _line_count(rest)
            quotes += _quote_count(rest)
        return True


def _quote_count(line: Line) -> int:
    return line.quotes if isinstance(line, OversizedLine) else line.count(b'"')


def _line_count(piece: Line) -> int:
    """Return the number of lines, including a last one without a line feed."""
    return 1 if isinstance(piece, OversizedLine) else piece.count(b"\n") + (not piece.endswith(b"\n"))


def _has_several_lines(piece: bytes) -> bool:
    return 0 <= piece.find(b"\n") < len(piece) - 1


def _parse_records(lines: _LineFeeder) -> Generator[_Record, None, int | None]:
    """Yield the records of all lines that are not blank.

    Returns:
        The number of lines after which the file must be read again; None if all lines were read.
    """
    _allow_long_fields()
    reader = csv.reader(lines, delimiter=lines.delimiter)
    while True:
        begin = lines.number + 1
        try:
            fields: list[str] | None = next(reader)
        except StopIteration:
            return None
        except _LongRecord:
            fields = None
        except _OversizedRecord as record:
            if not record.closed:
                marked = _line_of_open_quote(record.start, lines.delimiter)
                yield _unclosed(b"", begin + marked)
                return begin + marked
            yield _Record(b"", [], oversized_reason())
            continue
        except csv.Error as error:
            if lines.retry():
                continue
            yield _Record(lines.record(), [], f"line {begin} cannot be read: {error}")
            continue
        if fields is None or lines.ended:  # the csv module reads another line only within quotation marks
            yield from drain([_long_or_unclosed(lines, begin)])
            continue
        raw = lines.record()
        if fields:
            yield _Record(raw, fields)


def _long_or_unclosed(lines: _LineFeeder, begin: int) -> list[_Record]:
    """Return the record that was taken; nothing if it is blank."""
    if lines.ended:
        return [_skip_unclosed(lines, begin)]
    return _divide(lines.record(), lines.delimiter, first=begin == 1)


def _divide(raw: bytes, delimiter: str, *, first: bool) -> list[_Record]:
    """Return a long record with its fields, as the csv module reads them; nothing if it is blank."""
    fields = _kernel.csv_fields(raw, _bom_length(raw) if first else 0, ord(delimiter), MAX_FIELDS)
    if fields is None:
        return [_Record(raw, [], f"has more than {MAX_FIELDS} fields")]
    return [_Record(raw, fields)] if fields else []


def _bom_length(data: bytes) -> int:
    return len(BOM) if data.startswith(BOM) else 0


def _skip_unclosed(lines: _LineFeeder, begin: int) -> _Record:
    """Return the fault of a record, on line ``begin``, that is not closed; feed the lines after its last mark again.

    Not if the file was read in part, where the record is closed.
    """
    raw = lines.record()
    marked = _line_of_open_quote(raw, lines.delimiter)
    end = _end_of_line(raw, marked)
    if lines.complete:
        lines.put_back(raw[end:])
    return _unclosed(raw[:end], begin + marked)


def _unclosed(raw: bytes, number: int) -> _Record:
    """Return the fault of a record whose last quotation mark, on line ``number``, is never closed."""
    closing = "expected another one before a delimiter or the end of a line"
    return _Record(raw, [], f"line {number} opens a quotation mark that is never closed: {closing}")


def _line_of_open_quote(record: bytes, delimiter: str) -> int:
    """Return the line, counted from 0, on which the last field of an unclosed record begins; the others are closed."""
    start = 0
    while True:
        end = _closing_quote(record, start + 1) if record[start : start + 1] == b'"' else start
        after = -1 if end < 0 else record.find(delimiter.encode("latin-1"), end)
        if after < 0:
            return record.count(b"\n", 0, start)
        start = after + 1


def _closing_quote(record: bytes, start: int) -> int:
    """Return the offset of the first quotation mark that is not doubled; -1 if there is none."""
    at = record.find(b'"', start)
    while at >= 0 and record[at + 1 : at + 2] == b'"':
        at = record.find(b'"', at + 2)
    return at


def _end_of_line(record: bytes, number: int) -> int:
    """Return the offset after a line, counted from 0."""
    end = 0
    for _ in range(number + 1):
        end = record.find(b"\n", end) + 1 or len(record)
    return end


def _check_widths(records: Iterator[_Record]) -> Iterator[_Record]:
    """Yield the records, with a reason where the number of fields is not that of the header.

    No record is held after it was yielded, as it may be large.
    """
    width = 0
    for header in islice(records, 1):
        width = len(header.fields)
        yield header
    yield from map(partial(_check_width, width), records)


def _check_width(width: int, record: _Record) -> _Record:
    if record.reason is not None or len(record.fields) == width:
        return record
    return _Record(record.raw, [], f"has {len(record.fields)} fields where the header has {width}")


def _usable(records: Iterator[_Record]) -> Iterator[_Record | None]:
    """Yield the records, None for one that cannot be used; none is held while the next one is read."""
    for record in records:
        yield record if record.reason is None else None
        del record


def _bytes_of(kept: Iterator[tuple[int, _Record]]) -> Iterator[bytes]:
    """Yield the bytes of numbered records; none is held while the next one is read."""
    for _, record in kept:
        yield record.raw
        del record


def _count(records: Iterator[_Record]) -> int:
    """Return the number of records before the first that cannot be read."""
    count = 0
    try:
        for _ in records:
            count += 1
    except UnreadableError:
        pass
    return count


def _header_names(records: Iterator[_Record]) -> list[str]:
    """Return the names of the columns."""
    return _names_of(next(records, None))


def _names_of(header: _Record | None) -> list[str]:
    if header is None:
        raise UnreadableError("has no header: it is empty")
    if header.reason is not None:
        raise UnreadableError(f"has no header: {header.reason}")
    return [_column_name(header.field(position)) for position in range(len(header.fields))]


def _column_name(field: bytes) -> str:
    """Return the name of a column without blanks around it, and without quotes that a blank precedes."""
    name = field.decode("utf-8", "replace").strip()
    quoted = len(name) > 1 and name[0] == name[-1] == '"' and name != field.decode("latin-1")
    return name[1:-1].replace('""', '"').strip() if quoted else name


def _refuse_data_as_header(names: list[str], columns: Columns) -> None:
    """Raise if the first line is obviously no header: no column is the text column, and a name is not a name."""
    data = next((name for name in names if _looks_like_data(name)), None)
    if data is not None and not set(columns.text) & set(names):
        raise ColumnError(f"has no header: {show(data)} in its first line is no name; add a line of column names")
    if not any(names):
        raise ColumnError("has no header: all names in its first line are empty; add a line of column names")


def _looks_like_data(name: str) -> bool:
    """Return whether the name of a column is a number, or a text of many characters."""
    try:
        return len(name) > LONGEST_NAME or isfinite(float(name))
    except ValueError:
        return False


class _RecordEditor(RowEditor[_Record]):
    """Applies edits to records: fields with cuts are written again, all other bytes are unchanged."""

    def __init__(self, edits: RowEdits, names: list[str], delimiter: str) -> None:
        super().__init__(edits)
        self._names, self._delimiter = names, delimiter.encode()

    @cached_property
    def _texts(self) -> list[int]:
        """The positions of the text fields, needed with the first row: a file without one of them has no kept rows."""
        return [self._names.index(name) for name in self.edits.text]

    def size_of(self, row: _Record) -> int:
        """Return the bytes of the record."""
        return len(row.raw)

    def header(self, raw: bytes) -> bytes:
        """Return the header with the names of the added columns."""
        return self._with_fields(raw, [name.encode() for name in self.edits.added.names])

    def edited(self, rows: list[_Record], edits: EditedRows, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the records with their edits."""
        texts = [[row.field(position) for position in self._texts] for row in rows]
        joined = [b"".join(fields) for fields in texts]
        spans = row_spans(joined, Cuts.of_rows(edits, numbers), lambda index: _spans_of(texts[index]))
        added = [_field_values(column) for column in edits.values]
        for index, row in enumerate(rows):
            raw = (
                self._without(row.raw, joined[index], _spans_of(texts[index]), spans[index])
                if index in spans
                else row.raw
            )
            yield self._with_fields(raw, [values[index] for values in added])

    def _without(self, raw: bytes, text: bytes, fields: list[tuple[int, int]], cuts: Spans) -> bytes:
        """Return a record without the cuts in its joined texts."""
        places = _kernel.csv_spans(raw, 0, self._delimiter[0])
        sole = len(places) == 1 and not self.edits.added.names
        replaced = {}
        for position, (start, end) in zip(self._texts, fields, strict=True):
            inside = cuts if len(fields) == 1 else cuts[(cuts[:, 0] >= start) & (cuts[:, 1] <= end)]
            if len(inside):
                field = remove_spans(text, inside, start, end)
                begin = places[position][0]
                replaced[places[position]] = self._quoted(field, always=raw[begin : begin + 1] == b'"' or sole)
        done, parts = 0, []
        for (start, end), field in sorted(replaced.items()):
            parts += [raw[done:start], field]
            done = end
        return b"".join([*parts, raw[done:]])

    def _with_fields(self, raw: bytes, fields: list[bytes]) -> bytes:
        """Return a record with more fields before its line end."""
        if not fields:
            return raw
        record = raw.rstrip(b"\r\n")
        added = [self._delimiter + self._quoted(field, always=False) for field in fields]
        return b"".join([record, *added, raw[len(record) :]])

    def _quoted(self, field: bytes, *, always: bool) -> bytes:
        """Return a field within quotation marks, if it needs them."""
        special = field.startswith(b'"') or any(mark in field for mark in (self._delimiter, b"\r", b"\n"))
        return b'"' + field.replace(b'"', b'""') + b'"' if always or special else field


def _spans_of(fields: list[bytes]) -> list[tuple[int, int]]:
    """Return start and end of each of joined fields."""
    return list(pairwise(accumulate(map(len, fields), initial=0)))


def _field_values(column: pa.Array) -> list[bytes]:
    """Return values as fields: strings as they are, null as an empty field, and anything else as JSON."""
    objects = to_json(pa.RecordBatch.from_arrays([column], names=[""]))
    values = [row[""] for row in objects]
    return [
        b"" if value is None else value.encode() if isinstance(value, str) else orjson.dumps(value) for value in values
    ]


class DelimitedReader(RowReader[_Record]):
    """Converts records to batches."""

    def __init__(self, source: str, selection: Selection, names: list[str]) -> None:
        self.source = source
        self.elements = selection.columns.elements
        self.texts = [names.index(name) for name in selection.columns.text]
        self.id = None if selection.id is None else names.index(selection.id)
        self.values = RowValues(selection.columns.values, digits_are_numbers=True)
        self.value_positions = [names.index(column.name) for column in selection.columns.values]
        self.metadata = {name: names.index(name) for name in selection.columns.metadata}
        self.checked = {**({} if selection.id is None else {selection.id: names.index(selection.id)}), **self.metadata}

    @property
    def knows_columns(self) -> bool:
        """Whether the kinds of document values are known."""
        return self.values.knows_kinds

    def size_of(self, row: _Record) -> int:
        """Return the bytes of the record."""
        return len(row.raw)

    def batch(self, first: int, rows: list[_Record]) -> Batch:
        """Return the batch of consecutive records."""
        ids = [_field(record, self.id) for record in rows]
        reasons = [record.reason or self._problem(record) for record in rows]
        faults = [Fault(self.source, row, reason) for row, reason in enumerate(reasons, first) if reason]
        values, faults = self._values(rows, reasons, first, faults)
        ids = [None if reason else value for value, reason in zip(ids, reasons, strict=True)]
        return Batch(
            first,
            values,
            None if self.id is None else from_bytes(ids, pa.large_string()),
            self.values.arrays([self._document_values(record) for record in rows]),
            tuple(faults),
            [self._metadata(record) for record in rows] if self.metadata else None,
        )

    def _values(
        self, rows: list[_Record], reasons: list[str | None], first: int, faults: list[Fault]
    ) -> tuple[pa.Array, list[Fault]]:
        """Return the texts, or the elements of the fields, as a column, with all faults in order."""
        usable = [None if reason else record for record, reason in zip(rows, reasons, strict=True)]
        if self.elements is None:
            texts = [None if record is None else self._text(record) for record in usable]
            return from_bytes(texts, pa.large_binary()), faults
        values = [None if record is None else [record.field(position) for position in self.texts] for record in usable]
        return values_and_faults(self.elements, values, self.source, first, faults)

    def _text(self, record: _Record) -> bytes:
        return b"\n".join([record.field(position) for position in self.texts])

    def _document_values(self, record: _Record) -> list[str | None]:
        """Return the fields of the columns whose values are kept; an empty one is no label."""
        fields = [(_field(record, position) or b"").decode("utf-8", "replace") for position in self.value_positions]
        return [
            field or None if column.is_label else field
            for column, field in zip(self.values.columns, fields, strict=True)
        ]

    def _metadata(self, record: _Record) -> dict[str, Any]:
        """Return the metadata: strings, since CSV has no other types, and None where a field is empty."""
        fields = {name: _field(record, position) for name, position in self.metadata.items()}
        return {name: None if value is None else value.decode("utf-8", "replace") for name, value in fields.items()}

    def _problem(self, record: _Record) -> str | None:
        """Return why the id or the metadata cannot be used, or None."""
        for name, position in self.checked.items():
            invalid = invalid_utf8_offset(_field(record, position) or b"")
            if invalid is not None:
                return f"{name} is not valid UTF-8 at byte {invalid}"
        return None


def _field(record: _Record, position: int | None) -> bytes | None:
    """Return the bytes of a field; None if it is empty or missing."""
    return record.field(position) or None if position is not None and record.fields else None
