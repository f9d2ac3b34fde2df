"""Text files: one document per file or one per line, perhaps compressed.

The id of a file that is a document is the path relative to the directory that was given. A file that is too long or
cannot be decompressed has a fault. Of lines, blank ones are not rows, as in JSON lines. Kept files and lines are copied
byte for byte.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_strings
from minwise.errors import InputError
from minwise.inputs import row_reader
from minwise.inputs.content import refuse_binary
from minwise.inputs.encodings import Encoding, choose_encoding
from minwise.inputs.files import HEAD_BYTES, File, TextFileSource, open_output, output_path, strip_bom
from minwise.inputs.row_edits import (
    GROUP_ROWS,
    Cuts,
    EditedRows,
    RowEditor,
    RowEdits,
    check_added,
    cut_text,
    kept_bytes,
    remove_spans,
    row_spans,
)
from minwise.inputs.row_reader import Line, OversizedLine, RowReader, drain, lines_by_chunk, oversized_reason
from minwise.inputs.source import BATCH_ROWS, Batch, ColumnError, Columns, Fault, RowMask, Source, UnreadableError

__all__ = ["LinesFile", "TextFiles"]

COPY_BYTES = 1 << 20
PER_FILE, PER_LINE = "one document per file", "one document per line"
ALTERNATIVE = "format='lines' reads one per line"
# Files whose first bytes decide whether the alternative is mentioned.
PEEKED_FILES = 5


class TextFiles(Source):
    """Files of one document each, perhaps compressed; row ``i`` is file ``i``.

    Attributes:
        files: The files, in order. The source has the name of the first.
        ids: The id of each file.
        encoding: The encoding of all files, as the user has named it; None to detect that of each.
    """

    text_settings = ("encoding",)
    is_loose = True

    def __init__(self, files: Sequence[File], ids: Sequence[str]) -> None:
        if not files or len(files) != len(ids):
            raise InputError(f"text files must be at least one, with an id each, got {len(files)} and {len(ids)}")
        self.files = list(files)
        self.ids = list(ids)
        self.name = self.files[0].name
        self.encoding: str | None = None

    def fingerprint(self) -> dict[str, object]:
        """Return name, total bytes, latest modification time, number of files and a digest of their fingerprints."""
        fingerprints = [file.fingerprint() for file in self.files]
        versions = repr([tuple(entry.values()) for entry in fingerprints])
        digest = hashlib.blake2b(versions.encode(), digest_size=16).hexdigest()
        size = sum(int(str(entry["bytes"])) for entry in fingerprints)
        latest = max(fingerprints, key=lambda entry: str(entry["modified"]).zfill(32))["modified"]
        return {"name": self.name, "bytes": size, "modified": latest, "files": len(fingerprints), "digest": digest}

    def size_bytes(self) -> int:
        """Return the bytes of all files."""
        return sum(file.size_bytes() for file in self.files)

    def reading(self) -> str | None:
        """Return how files are read, and the alternative if one named .txt has several lines at its beginning.

        Only the first few files tell whether some have another encoding than UTF-8.
        """
        peeked = self.files[:PEEKED_FILES]
        found = sorted({*filter(None, map(_encoding_name, peeked))})
        encodings = [self.encoding] if self.encoding else [f"some in {name}" for name in found]
        how = ", ".join([PER_FILE, *encodings])
        if any(map(_has_lines, peeked)):
            return f"{how}; {ALTERNATIVE}"
        return how if encodings or any(map(_has_suffix_txt, self.files)) else None

    def known_rows(self) -> int:
        """Return the number of files."""
        return len(self.files)

    def split_points(self, max_bytes: int) -> list[int]:
        """Return rows between files."""
        piece = np.cumsum([file.size_bytes() for file in self.files]) // max(1, max_bytes)
        return (np.flatnonzero(piece[1:] != piece[:-1]) + 1).tolist()

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the name of each file; the document is its row 0."""
        return from_strings([self.files[row].name for row in rows.tolist()]), np.zeros(len(rows), dtype=np.int64)

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the ids of the files: their paths, relative to the directory that was given."""
        return from_strings([self.ids[row] for row in rows.tolist()])

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        self._select(columns)
        first = size = 0
        texts: list[bytes | None] = []
        faults: list[Fault] = []
        for row, file in enumerate(self.files):
            if wanted is None or wanted[row]:
                text = _read_document(file, self.encoding)
                texts.append(text if isinstance(text, bytes) else None)
                faults.extend([text] if isinstance(text, Fault) else [])
                size += len(text) if isinstance(text, bytes) else 0
                if size < batch_bytes and len(texts) < BATCH_ROWS:
                    continue
            if texts:
                yield Batch(first, from_bytes(texts, pa.large_binary()), faults=tuple(faults))
            first, size, texts, faults = row + 1, 0, [], []
        if texts:
            yield Batch(first, from_bytes(texts, pa.large_binary()), faults=tuple(faults))

    def _select(self, columns: Columns) -> None:
        _refuse_columns(columns, "a text file")

    def stored_files(self) -> Sequence[File]:
        """Return all files."""
        return self.files

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Copy the kept files byte for byte; files with cuts in their encoding and compression."""
        for row, cuts in self._kept(keep, edits):
            file = self.files[row]
            path = output_path(file.path, folder, root)
            if cuts is not None:
                self._write_without(file, path, cuts)
                continue
            with file.open() as original, open_output(path) as copy:
                shutil.copyfileobj(original, copy, COPY_BYTES)
        return int(np.count_nonzero(keep))

    def _kept(self, keep: RowMask, edits: RowEdits | None) -> Iterator[tuple[int, Cuts | None]]:
        """Yield the kept files, each with the cuts in its text if there are any."""
        rows = np.flatnonzero(keep)
        if edits is not None:
            check_added(self, edits.added)
        for group in np.split(rows, range(GROUP_ROWS, len(rows), GROUP_ROWS)) if len(rows) else ():
            cuts = None if edits is None else Cuts.of_rows(edits.of_rows(group), group)
            for index, row in enumerate(group.tolist()):
                yield row, None if cuts is None else cuts.of_text(index)

    def _write_without(self, file: File, path: Path, cuts: Cuts) -> None:
        """Write a file without the cuts in its text."""
        data = b"".join(file.stored_chunks())
        encoding = _document_encoding(data, self.encoding)
        text = _as_utf8(data, encoding)
        mark = text[: len(text) - len(strip_bom(text))]
        with open_output(path, file.compression, encoding) as copy:
            copy.write(mark + cut_text(strip_bom(text), cuts))

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield id and text of each kept file."""
        for row, cuts in self._kept(keep, edits):
            text = _read_document(self.files[row], self.encoding)
            if isinstance(text, bytes):
                text = text if cuts is None else cut_text(text, cuts)
                yield {"id": self.ids[row], "text": text.decode("utf-8", "replace")}


def _has_suffix_txt(file: File) -> bool:
    return ".txt" in Path(file.path.lower()).suffixes[-2:]


def _has_lines(file: File) -> bool:
    """Return whether the first bytes of a .txt file have a line that is not its last."""
    return _has_suffix_txt(file) and b"\n" in _head(file)[0].rstrip(b"\0 \r\n")


def _head(file: File) -> tuple[bytes, bool]:
    """Return the first bytes of a file and whether they are all; none if it cannot be read."""
    try:
        return file.head()
    except OSError:
        return b"", True


def _encoding_name(file: File) -> str | None:
    """Return the encoding of a file, or None if it is UTF-8 or unknown."""
    try:
        encoding = choose_encoding(None, *_head(file))
    except UnreadableError:
        return None
    return None if encoding is None else encoding.name


def _refuse_columns(columns: Columns, document: str) -> None:
    """Raise if a setting needs columns, of which a text has none."""
    if columns.metadata:
        raise ColumnError(f"has no column {columns.metadata[0]!r}: {document} is one text and nothing else")
    if columns.elements is not None:
        raise ColumnError(f"has no column {columns.text[0]!r}: {document} is one text and nothing else")


def _read_document(file: File, encoding: str | None) -> bytes | Fault:
    """Return the text of a file as UTF-8, or the fault if it cannot be used."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in file.stored_chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > row_reader.MAX_RECORD_BYTES:
                return Fault(file.name, 0, oversized_reason())
        data = b"".join(parts)
        return strip_bom(_as_utf8(data, _document_encoding(data, encoding)))
    except UnreadableError as error:
        return Fault(file.name, 0, str(error))


def _document_encoding(data: bytes, given: str | None) -> Encoding | None:
    """Return the encoding of a document; None for UTF-8, and if it is unknown, since shingles of bytes take any."""
    try:
        return choose_encoding(given, data[:HEAD_BYTES], complete=len(data) <= HEAD_BYTES)
    except UnreadableError:
        return None


def _as_utf8(data: bytes, encoding: Encoding | None) -> bytes:
    return b"".join(refuse_binary([data]) if encoding is None else encoding.decode([data]))


class LinesFile(TextFileSource):
    """One file with a document on each line, perhaps compressed; blank lines are not rows."""

    def reading(self) -> str:
        """Return how the file is read."""
        encoding = super().reading()
        return PER_LINE + (f", {encoding}" if encoding else "")

    def _lines(self) -> Iterator[Line]:
        lines = drain(lines_by_chunk(self.chunks()))
        return (line for line in lines if isinstance(line, OversizedLine) or not strip_bom(line).isspace())

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        self._select(columns)
        return _LinesReader(self.name).read(self._lines(), wanted, batch_bytes)

    def _select(self, columns: Columns) -> None:
        _refuse_columns(columns, "a line")

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept lines without their cuts; the last one gets a line feed if it has none."""
        return self._copy_lines(self._lines(), keep, folder, root, self._editor(edits))

    def _editor(self, edits: RowEdits | None) -> "_LineEditor | None":
        if edits is None:
            return None
        check_added(self, edits.added)
        return _LineEditor(edits)

    def kept_objects(self, keep: RowMask, edits: RowEdits | None = None) -> Iterator[Any]:
        """Yield id and text of each kept line."""
        with self._copying(keep):
            kept = kept_bytes(self._lines(), keep, self._editor(edits))
            for row, line in zip(np.flatnonzero(keep).tolist(), kept, strict=True):
                yield {
                    "id": f"{self.name}:{row}",
                    "text": line[slice(*_text_span(line, row))].decode("utf-8", "replace"),
                }


class _LinesReader(RowReader[Line]):
    """Converts lines to batches of texts."""

    knows_columns = True

    def __init__(self, source: str) -> None:
        self.source = source

    def size_of(self, row: Line) -> int:
        """Return the bytes of the line; 0 if it is too long to be held."""
        return len(row) if isinstance(row, bytes) else 0

    def batch(self, first: int, rows: list[Line]) -> Batch:
        """Return the batch of consecutive lines, without line ends and without a byte order mark."""
        texts = [_text_of(line, first + place) for place, line in enumerate(rows)]
        missing = [first + place for place, text in enumerate(texts) if text is None]
        faults = tuple(Fault(self.source, row, oversized_reason()) for row in missing)
        return Batch(first, from_bytes(texts, pa.large_binary()), faults=faults)


class _LineEditor(RowEditor[bytes]):
    """Cuts pieces out of lines that are texts; line ends and a byte order mark stay."""

    def size_of(self, row: bytes) -> int:
        """Return the bytes of the line."""
        return len(row)

    def edited(self, rows: list[bytes], edits: EditedRows, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the lines without their cuts."""
        spans = row_spans(
            rows, Cuts.of_rows(edits, numbers), lambda index: [_text_span(rows[index], int(numbers[index]))]
        )
        for index, row in enumerate(rows):
            yield remove_spans(row, spans[index]) if index in spans else row


def _text_span(line: bytes, row: int) -> tuple[int, int]:
    """Return start and end of the text of a line, without its line end and without a byte order mark."""
    start = len(line) - len(strip_bom(line)) if row == 0 else 0
    return start, len(line.removesuffix(b"\n").removesuffix(b"\r"))


def _text_of(line: Line, row: int) -> bytes | None:
    return None if isinstance(line, OversizedLine) else line[slice(*_text_span(line, row))]
