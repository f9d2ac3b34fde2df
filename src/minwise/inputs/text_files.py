"""Text files: a document per file in, batches of many files out; kept files are copied as they are."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_strings
from minwise.errors import InputError
from minwise.inputs import lines as limits
from minwise.inputs.files import File, output_path, strip_bom, writing
from minwise.inputs.lines import too_long_reason
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, Source, Unreadable

__all__ = ["TextFiles"]

COPY_BYTES = 1 << 20

Flags = NDArray[np.bool_]


class TextFiles(Source):
    """Files that are one document each, perhaps compressed; row ``i`` is file ``i``.

    Attributes:
        files: The files, in order. The source is named after the first.
        ids: Of each file.
    """

    def __init__(self, files: Sequence[File], ids: Sequence[str]) -> None:
        if not files or len(files) != len(ids):
            raise InputError(f"text files must be at least one, with an id each, got {len(files)} and {len(ids)}")
        self.files = list(files)
        self.ids = list(ids)
        self.name = self.files[0].name

    def fingerprint(self) -> dict[str, object]:
        """Name, bytes of all files, time of the latest, their number, and a digest of these for each of them."""
        prints = [file.fingerprint() for file in self.files]
        digest = hashlib.blake2b(repr([tuple(one.values()) for one in prints]).encode(), digest_size=16).hexdigest()
        size = sum(int(str(one["bytes"])) for one in prints)
        latest = max(prints, key=lambda one: str(one["modified"]).zfill(32))["modified"]
        return {"name": self.name, "bytes": size, "modified": latest, "files": len(prints), "digest": digest}

    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes() for file in self.files)

    def known_rows(self) -> int:
        """The number of files."""
        return len(self.files)

    def cuts(self, most_bytes: int) -> list[int]:
        """Between any two files."""
        piece = np.cumsum([file.size_bytes() for file in self.files]) // max(1, most_bytes)
        return (np.flatnonzero(piece[1:] != piece[:-1]) + 1).tolist()

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """The name of each file, in which the document is row 0."""
        return from_strings([self.files[row].name for row in rows.tolist()]), np.zeros(len(rows), dtype=np.int64)

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The ids of the files: their paths, relative to the directory that was given."""
        return from_strings([self.ids[row] for row in rows.tolist()])

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        if columns.metadata:
            raise Unreadable(f"has no column {columns.metadata[0]!r}: a text file is one text and nothing else")
        if columns.elements is not None:
            raise Unreadable(f"has no column {columns.text[0]!r}: a text file is one text and nothing else")
        first = size = 0
        texts: list[bytes | None] = []
        faults: list[Fault] = []
        for row, file in enumerate(self.files):
            if wanted is None or wanted[row]:
                text = _document(file)
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
        """All the files."""
        return [file.path for file in self.files]

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Copies the kept files, byte for byte."""
        for row in np.flatnonzero(keep).tolist():
            file = self.files[row]
            with file.open() as original, writing(output_path(file.path, folder, root)) as copy:
                shutil.copyfileobj(original, copy, COPY_BYTES)
        return int(np.count_nonzero(keep))


def _document(file: File) -> bytes | Fault:
    """The text of a file, or why there is none."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in file.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > limits.MAX_RECORD_BYTES:
                return Fault(file.name, 0, too_long_reason())
    except Unreadable as error:
        return Fault(file.name, 0, str(error))
    return strip_bom(b"".join(parts))
