"""Text files: one document per file, perhaps compressed.

The id of a document is the path relative to the directory that was given. A file that is too long or cannot be
decompressed has a fault. Kept files are copied byte for byte.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_strings
from minwise.errors import InputError
from minwise.inputs import row_reader
from minwise.inputs.files import File, open_output, output_path, strip_bom
from minwise.inputs.row_reader import oversized_reason
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, RowMask, Source, UnreadableError

__all__ = ["TextFiles"]

COPY_BYTES = 1 << 20


class TextFiles(Source):
    """Files of one document each, perhaps compressed; row ``i`` is file ``i``.

    Attributes:
        files: The files, in order. The source has the name of the first.
        ids: The id of each file.
    """

    def __init__(self, files: Sequence[File], ids: Sequence[str]) -> None:
        if not files or len(files) != len(ids):
            raise InputError(f"text files must be at least one, with an id each, got {len(files)} and {len(ids)}")
        self.files = list(files)
        self.ids = list(ids)
        self.name = self.files[0].name

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
        if columns.metadata:
            raise UnreadableError(f"has no column {columns.metadata[0]!r}: a text file is one text and nothing else")
        if columns.elements is not None:
            raise UnreadableError(f"has no column {columns.text[0]!r}: a text file is one text and nothing else")
        first = size = 0
        texts: list[bytes | None] = []
        faults: list[Fault] = []
        for row, file in enumerate(self.files):
            if wanted is None or wanted[row]:
                text = _read_document(file)
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

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        return [file.path for file in self.files]

    def copy_kept(self, keep: RowMask, folder: Path, root: str) -> int:
        """Copy the kept files byte for byte."""
        for row in np.flatnonzero(keep).tolist():
            file = self.files[row]
            with file.open() as original, open_output(output_path(file.path, folder, root)) as copy:
                shutil.copyfileobj(original, copy, COPY_BYTES)
        return int(np.count_nonzero(keep))


def _read_document(file: File) -> bytes | Fault:
    """Return the text of a file, or the fault if it cannot be used."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in file.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > row_reader.MAX_RECORD_BYTES:
                return Fault(file.name, 0, oversized_reason())
    except UnreadableError as error:
        return Fault(file.name, 0, str(error))
    return strip_bom(b"".join(parts))
