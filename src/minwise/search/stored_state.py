"""Saved state: what a later run needs of the kept rows of a run, without their texts.

A state is a directory of checksummed files, in the layout of a work directory. Documents are numbered in the order in
which the kept files are read, and divided into parts of ``PART_DOCUMENTS``:

- ``state``: version, numbers of documents, bands, and the type of the ids; written last.
- ``files``: path, rows, bytes and modification time of each kept file.
- ``part-P``: content hash and state of each document; ``ids-P``: its id, null where its file has none.
- ``keys-P-B``: the keys of band B in ascending order, each with the number of its document in the part.
- ``sets-N``: shingle sets of consecutive documents, each with the sum of its elements as its checksum.

A later run looks up its own keys in each band, and reads further only of documents that share one. So the cost of a
state is one pass over its keys, 8 bytes per document and band, and follows the new documents otherwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import ArrayFile, Arrays, FileKind
from minwise._internal.arrays import from_numpy
from minwise.errors import FormatError
from minwise.inputs.files import File
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import Batch, Columns, RowMask, Source
from minwise.search.bands import NO_KEY
from minwise.search.documents import SearchJob
from minwise.search.workdir import WorkDirectory

__all__ = ["PART_DOCUMENTS", "STATE_KIND", "KeptFile", "SharedKeys", "StateSource", "StoredState", "element_sums"]

STATE_KIND = FileKind(b"MINSTAT\n", 1, "state file", "delete the directory state, so that kept rows are read again")
# Documents of a part: the keys of a band of one part take 24 MB with their documents.
PART_DOCUMENTS = 1 << 21
HEADER = "state"

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeptFile:
    """Kept file as it was when the state was saved.

    Attributes:
        path: Its path below ``kept``.
        rows: Number of its rows.
        bytes: Its size.
        modified: When it was modified, in nanoseconds.
    """

    path: str
    rows: int
    bytes: int
    modified: int


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """Stored documents of one band that share a key with a new one.

    Attributes:
        documents: Their numbers, ascending.
        keys: The key of each.
    """

    documents: Numbers
    keys: NDArray[np.uint64]


class StoredState:
    """State of a run.

    Attributes:
        documents: Number of its documents.
    """

    def __init__(self, folder: Path) -> None:
        """Open the state in a directory.

        Raises:
            FormatError: If it is damaged, or was written by another version.
        """
        self._work = WorkDirectory(folder, durable=False, kind=STATE_KIND)
        try:
            header = self._work.open(HEADER).header
        except FileNotFoundError:
            raise FormatError(f"{folder}: must have a file {HEADER}; {STATE_KIND.remedy}") from None
        self.documents, self.bands = int(header["documents"]), int(header["bands"])
        self.has_whole_ids = bool(header["whole_ids"])
        self._part_starts = np.cumsum([0, *header["parts"]])
        self._set_starts = np.cumsum([0, *header["sets"]])

    def prepare(self, job: SearchJob) -> None:
        """Prepare the state for the documents that the first pass of a search has read."""

    @staticmethod
    def exists(output: Path) -> bool:
        """Return whether an output directory has a state."""
        return (output / "state").is_dir()

    @cached_property
    def files(self) -> list[KeptFile]:
        """The kept files, in the order of their documents."""
        return [KeptFile(**row) for row in self._work.read_table("files").to_pylist()]

    def shared(self, band: int, keys: NDArray[np.uint64]) -> SharedKeys:
        """Return the documents that have one of the ascending ``keys`` in a band."""
        found = [self._shared_in_part(part, band, keys) for part in range(len(self._part_starts) - 1)]
        documents = np.concatenate([np.empty(0, np.int64), *(shared.documents for shared in found)])
        order = np.argsort(documents, kind="stable")
        values = np.concatenate([np.empty(0, np.uint64), *(shared.keys for shared in found)])
        return SharedKeys(documents[order], values[order])

    def _shared_in_part(self, part: int, band: int, keys: NDArray[np.uint64]) -> SharedKeys:
        file = self._work.open(f"keys-{part:05}-{band:05}")
        stored = file.read("keys")
        start = np.searchsorted(stored, keys)
        present = np.flatnonzero(stored[np.minimum(start, len(stored) - 1)] == keys if len(stored) else [])
        start, matched = start[present], keys[present]
        counts = np.searchsorted(stored, matched, side="right") - start
        rows = np.repeat(start - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        documents = file.map("documents")[rows].astype(np.int64) + self._part_starts[part]
        return SharedKeys(documents, np.repeat(matched, counts))

    def take(self, name: str, documents: Numbers) -> NDArray[Any]:
        """Return ``contents`` or ``states`` of ascending documents."""
        pieces = [self._work.open(f"part-{part:05}").read(name)[rows] for part, rows in self._by_part(documents)]
        return np.concatenate(pieces)

    def ids(self, documents: Numbers) -> pa.Array:
        """Return the ids of ascending documents; null where a file has none."""
        pieces = [pa.nulls(0, pa.int64() if self.has_whole_ids else pa.large_string())]
        for part, rows in self._by_part(documents):
            column = self._work.read_table(f"ids-{part:05}").column("id").combine_chunks()
            pieces.append(column.take(from_numpy(rows)).cast(pieces[0].type))
        return pa.concat_arrays(pieces)

    def _by_part(self, documents: Numbers) -> Iterator[tuple[int, Numbers]]:
        return _divided(documents, self._part_starts)

    def sets(self, documents: Numbers) -> Iterator[tuple[Numbers, NDArray[np.uint64]]]:
        """Yield sizes and elements of the sets of ascending documents, file by file.

        Raises:
            FormatError: If a set is damaged.
        """
        for number, rows in _divided(documents, self._set_starts):
            file = self._work.open(f"sets-{number:06}")
            sizes, elements = _chosen_sets(file, rows)
            if (element_sums(sizes, elements) != file.read("sums")[rows]).any():
                raise FormatError(f"{file.path}: the sets are damaged; restore the file or {STATE_KIND.remedy}")
            yield sizes, elements


def _divided(documents: Numbers, starts: NDArray[Any]) -> Iterator[tuple[int, Numbers]]:
    """Yield each file that has one of the documents, with their positions in it.

    Args:
        documents: Ascending numbers.
        starts: The first number of each file, and one past the last.
    """
    bounds = np.searchsorted(documents, starts)
    for number, (start, end) in enumerate(pairwise(bounds.tolist())):
        if start < end:
            yield number, documents[start:end] - starts[number]


def _chosen_sets(file: ArrayFile, rows: Numbers) -> tuple[Numbers, NDArray[np.uint64]]:
    """Return sizes and elements of some of the sets of a file, without reading the others."""
    offsets, elements = file.read("offsets").astype(np.int64), file.view("elements")
    starts, ends = offsets[rows], offsets[rows + 1]
    chosen = [elements[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return ends - starts, np.concatenate([np.empty(0, dtype=np.uint64), *chosen])


def element_sums(sizes: Numbers, elements: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum of the elements of each set, modulo 2^64: a checksum of a set that is read alone."""
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(elements, dtype=np.uint64)])
    ends = np.cumsum(sizes)
    sums: NDArray[np.uint64] = running[ends] - running[ends - sizes]
    return sums


class StateSource(Source):
    """Kept file of an earlier run of which only the state is read. Its rows are those that share a key with a new one.

    Attributes:
        state: The state.
        first: The number of its first document in the state.
        total: Number of rows of the file.
        rows: The rows that take part, ascending; none before the search.
    """

    def __init__(self, state: StoredState, first: int, file: KeptFile, folder: Path) -> None:
        self.state, self.first, self.total = state, first, file.rows
        self.rows = np.empty(0, dtype=np.int64)
        self._path = (folder / file.path).as_posix()
        self.name = File(self._path).name
        self._file = file

    @property
    def corpus_rows(self) -> int:
        """Number of rows that take part or could, for a report."""
        return self.total

    @classmethod
    def all_of(cls, state: StoredState, folder: Path) -> list["StateSource"]:
        """Return the sources of a state, whose kept files are in ``folder``."""
        firsts = np.cumsum([0, *(file.rows for file in state.files)]).tolist()
        return [cls(state, first, file, folder) for first, file in zip(firsts, state.files, strict=False)]

    def fingerprint(self) -> dict[str, object]:
        """Return name, bytes and modification time that the file had."""
        return {"name": self.name, "bytes": self._file.bytes, "modified": self._file.modified}

    def size_bytes(self) -> int:
        """Return 0, since the file is not read."""
        return 0

    def known_rows(self) -> int:
        """Return 0, the number of rows to read."""
        return 0

    def paths(self) -> list[str]:
        """Return the path of the file."""
        return [self._path]

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the file name and the row within that file for each of the rows that take part."""
        return super().locate(self.rows[rows])

    def index_of(self, row: int) -> int | None:
        """Return the number of a row of the file among those that take part."""
        index = int(np.searchsorted(self.rows, row))
        return index if index < len(self.rows) and self.rows[index] == row else None

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return ``name:row`` for each of the rows that take part."""
        return super().default_ids(self.rows[rows])

    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        return iter(())

    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write nothing: a reference corpus is not copied."""
        return 0


def write_header(work: WorkDirectory, **header: object) -> None:
    """Write the header of a state, its last file."""
    work.write(HEADER, {}, **header)


def write_keys(work: WorkDirectory, part: int, band: int, keys: NDArray[np.uint64]) -> None:
    """Write the keys of a band, of all documents of a part in their order."""
    order = np.argsort(keys, kind="stable")
    order = order[: np.searchsorted(keys[order], np.uint64(NO_KEY))]
    arrays: Arrays = {"keys": keys[order], "documents": order.astype(np.uint32)}
    work.write(f"keys-{part:05}-{band:05}", arrays)


def write_sets(work: WorkDirectory, name: str, sizes: Numbers, elements: NDArray[np.uint64]) -> None:
    """Write the sets of consecutive documents, each with its checksum."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    work.write(name, {"offsets": offsets, "elements": elements, "sums": element_sums(sizes, elements)})


def write_files(work: WorkDirectory, files: Sequence[KeptFile]) -> None:
    """Write the list of kept files."""
    names = KeptFile.__slots__
    schema = pa.schema([("path", pa.large_string()), *((name, pa.int64()) for name in names if name != "path")])
    rows = [{name: getattr(file, name) for name in names} for file in files]
    work.write_table("files", pa.Table.from_pylist(rows, schema=schema))
