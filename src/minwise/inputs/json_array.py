"""JSON arrays: one file that is an array of objects or of strings, pretty-printed or not, perhaps compressed.

An array is read as a stream: only the elements of a batch are in memory. Each element is a row, with the faults of a
line of JSON lines; a string is a document by itself. From the point on where the array is malformed, the file has one
fault with the position. The copy of kept rows is an array again, in which the bytes of each element are unchanged.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.inputs.files import BOM, TextFileSource, read_first, strip_bom
from minwise.inputs.json_edits import JsonEditor
from minwise.inputs.jsonl import JsonLinesReader, NumberedLine, RowError, first_names, parse_json
from minwise.inputs.row_edits import RowEdits, kept_bytes
from minwise.inputs.row_reader import Line, PartialRecord
from minwise.inputs.source import Batch, Columns, RowMask, UnreadableError

__all__ = ["JsonArrayFile"]

# JSON allows no other white space; ``bytes.strip`` without it would remove form feeds, too.
BLANKS = b" \t\n\r"
QUOTE, COMMA, BACKSLASH = b'",\\'
# The bit in which [ and {, and ] and }, differ.
BRACE_BIT = 0x20
DEPTH_STEPS = np.zeros(256, dtype=np.int64)
DEPTH_STEPS[list(b"[{")] = 1
DEPTH_STEPS[list(b"]}")] = -1


class JsonArrayFile(TextFileSource):
    """One file that is a JSON array, perhaps compressed."""

    may_be_cp1252 = False

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        return JsonArrayReader(self.name, columns).read(self._elements(), wanted, batch_bytes)

    def _elements(self) -> Iterator[NumberedLine]:
        # ``enumerate`` and generators would hold an element while the next one is read.
        return map(lambda number, element: (number, element), count(1), split_array(self.chunks()))

    def column_names(self) -> list[str]:
        """Return the names of the members of the first objects."""
        return first_names("element", self._elements())

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write an array of the kept elements on lines of their own; all but the edited bytes are unchanged."""
        written = 0
        with self._copying(keep):
            elements = read_first(self._elements())
            with self._open_copy(folder, root) as copy:
                for element in self._kept(elements, keep, edits):
                    copy.write(b",\n" if written else b"[\n")
                    copy.write(element)
                    written += 1
                    del element  # before the next one, as both may be large
                copy.write(b"\n]\n" if written else b"[]\n")
        return written

    def _kept(self, elements: Iterator[NumberedLine], keep: RowMask, edits: RowEdits | None) -> Iterator[bytes]:
        """Yield the kept elements with their edits."""
        rows = map(itemgetter(1), elements)
        return kept_bytes(rows, keep, None if edits is None else JsonEditor(edits, self.name))

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield the kept elements; a string becomes an object that has only a text."""
        with self._copying(keep):
            for number, element in enumerate(self._kept(self._elements(), keep, edits), 1):
                value = parse_json("element", number, element)
                yield {"text": value} if isinstance(value, str) else value


class JsonArrayReader(JsonLinesReader):
    """Converts elements to batches; a string is a record that has only a text."""

    unit = "element"

    def _parse(self, number: int, line: Line) -> dict[str, Any]:
        value = self._parse_value(number, line)
        if isinstance(value, str) and len(self.columns.text) == 1:
            return {self.columns.text[0]: value}
        if not isinstance(value, dict):
            kinds = "a JSON object or a string" if len(self.columns.text) == 1 else "a JSON object"
            raise RowError(f"{self.unit} {number} must be {kinds}, got {type(value).__name__}")
        return value


def split_array(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Yield the elements of a JSON array, without the white space around them.

    Brackets, commas and strings decide where an element ends; whether it is valid JSON is not checked.

    Raises:
        UnreadableError: If the array is malformed or truncated, after the elements before that point.
    """
    pieces = iter(chunks)
    start, first = _array_start(pieces)
    scanner, partial = _ArrayScanner(), PartialRecord()
    found = 0
    for offset, chunk in _with_offsets(start, first, pieces):
        begin = 0
        commas, end = scanner.scan(chunk, offset)
        for stop in commas if end is None else [*commas, end]:
            element = [partial.finish(_without_blanks(chunk[begin:stop], partial).rstrip(BLANKS))]
            begin = stop + 1
            if element[0]:
                found += 1
                yield element.pop()  # a large element is not held here
            elif found or stop != end:
                raise UnreadableError(f"malformed JSON array: element {found + 1} is missing at byte {offset + stop}")
        if end is not None:
            _require_blank(offset + begin, chunk[begin:], pieces)
            return
        partial.add(_without_blanks(chunk[begin:], partial))
    raise UnreadableError(f"truncated JSON array: it ends within element {found + 1}, before its closing bracket")


def _without_blanks(part: bytes, partial: PartialRecord) -> bytes:
    """Return the part without white space in front of an element; within one it is unchanged."""
    return part if partial.length else part.lstrip(BLANKS)


def _array_start(pieces: Iterator[bytes]) -> tuple[int, bytes]:
    """Return the offset after the opening bracket, and the bytes from there to the end of a chunk."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(BOM) and strip_bom(head).strip(BLANKS):
            break
    body = strip_bom(head).lstrip(BLANKS)
    if not body.startswith(b"["):
        found = f"got {body[:20].decode('utf-8', 'replace')!r}" if body else "it is empty"
        raise UnreadableError(f"must be a JSON array, which begins with [, {found}")
    return len(head) - len(body) + 1, body[1:]


def _with_offsets(start: int, first: bytes, pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    yield start, first
    start += len(first)
    for piece in pieces:
        yield start, piece
        start += len(piece)


def _require_blank(offset: int, rest: bytes, pieces: Iterator[bytes]) -> None:
    """Raise if anything but white space follows the array."""
    for start, piece in _with_offsets(offset, rest, pieces):
        other = piece.lstrip(BLANKS)
        if other:
            raise UnreadableError(
                f"malformed JSON array: the file goes on after its end at byte {start + len(piece) - len(other)}"
            )


class _ArrayScanner:
    """Finds the commas between elements, in chunks of any size.

    Works on numpy arrays of the positions of brackets, quotes and commas; a loop over bytes is 100 times slower.
    """

    def __init__(self) -> None:
        self.depth = 1
        self.in_string = False
        self.escaped = False

    def scan(self, chunk: bytes, offset: int) -> tuple[list[int], int | None]:
        """Return the positions of the commas between elements, and of the closing bracket if the chunk has it."""
        values = np.frombuffer(chunk, dtype=np.uint8)
        positions = self._outside_strings(values, self._marks(values))
        found = values[positions]
        depths = self.depth + np.cumsum(DEPTH_STEPS[found])
        ends = np.flatnonzero(depths == 0)
        last = int(ends[0]) if len(ends) else len(depths)
        commas = positions[:last][(found[:last] == COMMA) & (depths[:last] == 1)].tolist()
        if not len(ends):
            self.depth = int(depths[-1]) if len(depths) else self.depth
            return commas, None
        end = int(positions[last])
        if chunk[end : end + 1] != b"]":
            raise UnreadableError(f"malformed JSON array: a brace without its partner at byte {offset + end}")
        return commas, end

    def _marks(self, values: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the positions of quotes, commas and brackets, without those that a backslash escapes."""
        folded = values | BRACE_BIT
        marks = (values == QUOTE) | (values == COMMA) | (folded == ord("{")) | (folded == ord("}"))
        escaped = self._escaped(values)
        self.escaped = bool(len(escaped)) and int(escaped[-1]) == len(values)
        marks[escaped[:-1] if self.escaped else escaped] = False
        return np.flatnonzero(marks)

    def _escaped(self, values: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the positions after every first, third, … backslash of a run."""
        slashes = np.flatnonzero(values == BACKSLASH)
        if self.escaped:
            slashes = np.concatenate([[-1], slashes])
        if not len(slashes):
            return slashes
        begins = np.diff(slashes, prepend=slashes[0] - 2) != 1
        starts = slashes[begins][np.cumsum(begins) - 1]
        escaping: NDArray[np.int64] = slashes[(slashes - starts) % 2 == 0]
        return escaping + 1

    def _outside_strings(self, values: NDArray[np.uint8], marks: NDArray[np.int64]) -> NDArray[np.int64]:
        quotes = values[marks] == QUOTE
        inside = (np.cumsum(quotes) + self.in_string) % 2 == 1
        if len(inside):
            self.in_string = bool(inside[-1])
        outside: NDArray[np.int64] = marks[~inside & ~quotes]
        return outside
