"""Update of an index by a deduplication: its documents are the reference corpus, and the kept rows are added to it.

The documents that share a bucket with a row of the input are written as a saved state of an earlier run, which
:mod:`minwise.search.stored_documents` reads. Their keys are computed from the shingles that the index stores.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_bools
from minwise.checks import show
from minwise.errors import ConfigError, InputError, MismatchError
from minwise.index.index import Index
from minwise.index.records import DocumentRecord
from minwise.index.settings import ElementSets
from minwise.inputs.files import File
from minwise.search.bands import FAULTY, FILLED
from minwise.search.documents import Documents, SearchJob
from minwise.search.state_writer import StateFiles
from minwise.search.stored_state import STATE_KIND, KeptFile, StateSource, StoredState
from minwise.search.workdir import WorkDirectory
from minwise.settings import SearchSettings

__all__ = ["IndexUpdate", "open_update"]

# Documents that are looked up, and stored ones that are written, at a time.
LOOKED_UP, WRITTEN = 1 << 12, 1 << 14
# Candidates and members of a bucket that count: all.
ALL = 2**32 - 1

Numbers = NDArray[np.int64]


class IndexUpdate:
    """An index that a deduplication compares with and adds to.

    Attributes:
        index: The index, open for writing.
        source: Its documents that share a bucket with a row of the input.
    """

    def __init__(self, index: Index, folder: Path) -> None:
        """Prepare an update; ``folder`` is a new directory for the documents that take part."""
        self.index = index
        self.source = _IndexSource(_IndexState(index, folder), File(str(index.path)).name)
        self._documents: Documents
        self._keep: NDArray[np.bool_]

    def check_settings(self, settings: SearchSettings) -> None:
        """Raise an error if the index gives no exact similarities, or others than the settings.

        Raises:
            ConfigError: If the index is of another kind.
            MismatchError: If a setting differs.
        """
        stored, path = self.index._settings, self.index.path
        own = stored.find
        if self.index.store == "sketch" or own.elements is not None:
            kind = "sketches" if self.index.store == "sketch" else "sets or records"
            raise ConfigError(f"update must be an index of texts with their shingles, got one of {kind}: {path}")
        if stored.secret:
            rule = f"update must be an index with a known seed, got a secret one: {path}"
            raise ConfigError(f"{rule}; create one with the seed of the runs")
        ours, theirs = settings.to_dict(), own.to_dict()
        for name in (name for name in theirs if name not in ("group", "keep", "max_bucket")):
            if ours.get(name) != theirs[name]:
                rule = f"{name} must be that of the index {path}, which has {show(theirs[name])}"
                raise MismatchError(f"{rule}, got {show(ours.get(name))}; give the same settings as there")

    def note_kept(self, documents: Documents, keep: NDArray[np.bool_]) -> None:
        """Note what is to be added.

        Raises:
            InputError: If two kept rows have one id, which an index holds once.
        """
        self._documents, self._keep = documents, keep
        ids = documents.ids(documents.protected + np.flatnonzero(keep))
        values, counts = (ids.value_counts().field(name) for name in ("values", "counts"))
        repeated = np.flatnonzero(np.asarray(counts) > 1)
        if len(repeated):
            value = show(values[int(repeated[0])].as_py())
            raise InputError(f"ids of kept rows must be different to be added to an index, got {value} twice")

    def add_kept(self) -> None:
        """Add the kept rows in batches, each of which is durable. A row that the index has already stays unchanged."""
        documents, keep = self._documents, self._keep
        corpus = documents.corpus
        columns = replace(corpus.columns, values=())
        for number in range(corpus.against, len(corpus.sources)):
            first, wanted = int(documents.starts[number]), keep[documents.input_slice(number)]
            for batch in corpus.sources[number].batches(columns, wanted=wanted):
                mask = wanted[batch.first : batch.first + len(batch)]
                ids = documents.ids(first + batch.first + np.flatnonzero(mask)).to_pylist()
                texts = batch.values.filter(from_bools(mask))
                self.index.add(ids, texts, on_duplicate_id="replace")


def open_update(path: Path, settings: SearchSettings, threads: int, stack: ExitStack) -> IndexUpdate:
    """Open an index for an update; it stays open as long as the stack.

    Raises:
        ConfigError: If the index is of another kind.
        MismatchError: If one of its settings differs.
    """
    index = stack.enter_context(Index.open(path, "w", threads=threads or None))
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="minwise-update-")))
    update = IndexUpdate(index, folder)
    update.check_settings(settings)
    return update


class _IndexSource(StateSource):
    """Documents of an index; a row is the number of a document in the index."""

    def __init__(self, state: "_IndexState", name: str) -> None:
        super().__init__(state, 0, KeptFile(name, 0, 0, 0), Path())
        self.name, self._index_state = name, state
        self._path, self._documents = str(state.index.path), len(state.index)

    @property
    def total(self) -> int:
        """Number of documents that may take part."""
        return self._index_state.documents

    @total.setter
    def total(self, value: int) -> None:
        """Ignore the number of rows of a file."""

    @property
    def corpus_rows(self) -> int:
        """Number of documents of the index."""
        return self._documents

    def fingerprint(self) -> dict[str, object]:
        """Return the path and the last commit."""
        return {"name": self.name, "bytes": None, "modified": self._index_state.commit}

    def paths(self) -> list[str]:
        """Return the directory of the index."""
        return [self._path]

    def locate(self, rows: Numbers) -> tuple[pa.Array, Numbers]:
        """Return the path of the index and the number of each document in it."""
        names, chosen = super().locate(rows)
        return names, self._index_state.numbers[chosen]

    def index_of(self, row: int) -> int | None:
        """Return the number of a document of the index among those that take part."""
        position = int(np.searchsorted(self._index_state.numbers, row))
        known = position < len(self._index_state.numbers) and self._index_state.numbers[position] == row
        return super().index_of(position) if known else None


class _IndexState(StoredState):
    """State of the documents of an index that share a bucket with the input, written after the first pass.

    Attributes:
        index: The index.
        commit: Number of its last commit at the beginning.
        numbers: The numbers of the documents in the index, ascending.
    """

    def __init__(self, index: Index, folder: Path) -> None:
        self.index, self._folder = index, folder
        self.commit = index._view.state.commit
        self.numbers = np.empty(0, dtype=np.int64)
        self.documents = 0

    def prepare(self, job: SearchJob) -> None:
        """Look up the documents of the first pass, and write what is found as a state."""
        files = StateFiles(WorkDirectory(self._folder, durable=False, kind=STATE_KIND), job.settings.plan.bands)
        with self.index._reading(), job.progress.stage("look up documents", None, "documents") as stage:
            self.numbers = self._candidates(job)
            for start in range(0, len(self.numbers), WRITTEN):
                numbers = self.numbers[start : start + WRITTEN]
                self._write(files, numbers, job.limits.threads)
                stage.advance(len(numbers))
        files.finish([KeptFile("", len(self.numbers), 0, 0)])
        super().__init__(self._folder)

    def _candidates(self, job: SearchJob) -> Numbers:
        """Return the documents that share a bucket with one of the input, without those whose id the input has."""
        view = self.index._view
        found = np.zeros(view.state.next, dtype=bool)
        for name in job.work.names("part-"):
            file = job.work.open(name)
            filled = file.read("states") == FILLED
            keys = np.stack([file.read(f"band{band}")[filled] for band in range(job.settings.plan.bands)], axis=1)
            for start in range(0, len(keys), LOOKED_UP):
                chosen = np.ascontiguousarray(keys[start : start + LOOKED_UP])
                for candidates in view.candidates(chosen, ALL, ALL, job.limits.threads):
                    found[candidates.numbers] = True
        for numbers in self._with_ids(job):
            found[numbers] = False
        return np.flatnonzero(found)

    def _with_ids(self, job: SearchJob) -> Iterator[list[int]]:
        """Yield the numbers of the documents that have an id of the input."""
        documents = Documents(job.corpus, job.work)
        readable = np.flatnonzero(documents.states != FAULTY)
        readable = readable[readable >= documents.protected]
        for start in range(0, len(readable), LOOKED_UP):
            ids = self.index._check_ids(documents.ids(readable[start : start + LOOKED_UP]))
            yield [existing.number for existing in self.index._lookup.find_ids(ids).values()]

    def _write(self, files: StateFiles, numbers: Numbers, threads: int) -> None:
        stored = self.index._store.records("documents", numbers.tolist())
        records = list(map(DocumentRecord.decode, stored))
        sets = _sets_of(records)
        block = self.index._sketcher.key_block(sets, threads)
        ids = _id_column([record.id for record in records])
        arrays: Arrays = {"contents": block.contents, "states": block.states}
        files.write_part(arrays, block.keys, ids, (np.diff(sets.offsets), sets.hashes))


def _sets_of(records: list[DocumentRecord]) -> ElementSets:
    bodies = [np.frombuffer(record.body, dtype="<u8") for record in records]
    offsets = np.concatenate([[0], np.cumsum([len(body) for body in bodies])]).astype(np.int64)
    return ElementSets(offsets, np.concatenate([np.empty(0, dtype=np.uint64), *bodies]))


def _id_column(ids: list[Any]) -> pa.Array:
    """Return ids as whole numbers if all are, otherwise as strings."""
    if ids and all(isinstance(value, int) for value in ids):
        try:
            return pa.array(ids, pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            pass
    return pa.array([str(value) for value in ids], pa.large_string())
