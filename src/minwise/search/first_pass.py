"""First pass: read every source once and write band keys, content hashes, ids and faults of its documents.

This is the first stage of a search, and usually the longest. Its output, the ``part-``, ``columns-`` and ``faults-``
files, is all that the later stages know of the documents; only candidates are read again. A part is written after 2^18
documents or 1 GiB of text, so an interrupted run repeats at most that much.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_numpy, to_numpy, valid_mask
from minwise._internal.prefetch import prefetch
from minwise.inputs.source import Batch, Fault
from minwise.search.bands import EMPTY, FAULTY, FILLED, Bander, KeyBlock, key_bytes
from minwise.search.documents import (
    MOST_TOKENS,
    PART_BYTES,
    PART_DOCUMENTS,
    DocumentPart,
    Documents,
    SearchJob,
    batch_ids,
    check_columns,
    count_usable,
    indexed_faults,
    refuse_nothing_readable,
    refuse_too_many,
    refuse_unusable_inputs,
    sampling_steps,
)
from minwise.text.shingling import Shingler

__all__ = [
    "DocumentBander",
    "ResumableReader",
    "ScanReader",
    "document_states",
    "read_documents",
    "text_lengths",
    "token_counts",
    "wanted_batches",
]

# Bytes of a text, for each token of a shingle, in which tokens are counted: more than words have, and little of a text.
TOKEN_BYTES = 64


class DocumentBander(Protocol):
    """Computes the band keys of documents."""

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Add the documents to the block; return the index and the reason of each that cannot be used."""


class ResumableReader(ABC):
    """One pass over all sources that writes numbered files and resumes after the last finished one.

    Attributes:
        number: Number of the next file.
        unfinished: Prefixes of the files that are written before the one that finishes a number.
    """

    unfinished: ClassVar[tuple[str, ...]]

    def __init__(self, job: SearchJob) -> None:
        self.corpus, self.limits, self.work, self.progress = job.corpus, job.limits, job.work, job.progress
        self.number = 0

    @abstractmethod
    def resume(self) -> tuple[int, int]:
        """Restore the state after the last finished file; return the source and the row to continue with."""

    @abstractmethod
    def rows_read(self) -> int:
        """Return the number of rows that are read so far."""

    @abstractmethod
    def add(self, source: int, batch: Batch) -> None:
        """Process the next batch of a source."""

    def read(self, stage_name: str, unit: str) -> None:
        """Read the rows that no finished file holds, batch by batch; the next batch is read during ``add``."""
        check_columns(self.corpus)
        source, row = self.resume()
        self.work.delete_unfinished(self.unfinished, self.number)
        rows = self.corpus.known_rows()
        with self.progress.stage(stage_name, rows, unit, done=self.rows_read()) as stage:
            ahead = self.limits.ahead_bytes
            for number, batch in prefetch(self._batches(source, row), size=_batch_bytes, max_bytes=ahead):
                stage.advance(len(batch))
                self.add(number, batch)
                del batch  # not held while the next one is read

    def _batches(self, source: int, row: int) -> Iterator[tuple[int, Batch]]:
        for number in range(source, len(self.corpus.sources)):
            skip = row if number == source else 0
            columns = self.corpus.columns_of(number)
            for batch in self.corpus.sources[number].batches(columns, batch_bytes=self.limits.batch_bytes):
                if batch.first + len(batch) > skip or len(batch) == 0:
                    yield number, batch.slice(max(0, skip - batch.first), len(batch))
                del batch


class DocumentReader(ResumableReader):
    """First pass of a search: reads every document and writes the documents in parts.

    Attributes:
        stage: Name of the stage.
        rows: Number of rows of each source that are read so far.
        part: The open part.
    """

    unfinished = ("columns-", "faults-")
    stage: ClassVar[str]

    def __init__(self, job: SearchJob) -> None:
        super().__init__(job)
        self.rows = [0] * len(job.corpus.sources)
        self.part = DocumentPart(0)

    @abstractmethod
    def finish_part(self) -> None:
        """Write the part, if it has documents, and start another."""

    def run(self) -> None:
        """Read all documents."""
        self.read(self.stage, "documents")
        self.finish_part()
        refuse_nothing_readable(self.work, self.rows_read())
        refuse_unusable_inputs(self.corpus, self.work, count_usable(self.work, self.rows))
        self.work.write_json("documents", {"rows": self.rows, "parts": self.number})

    def rows_read(self) -> int:
        """Return the number of rows that are read so far."""
        return sum(self.rows)

    def resume(self) -> tuple[int, int]:
        """Restore the state after the last finished part; return the source and the row to continue with."""
        position = (0, 0)
        for name in self.work.names("part-"):
            header = self.work.open(name).header
            for source, row, rows in header["spans"]:
                self.rows[source] = row + rows
                position = (source + 1, 0) if source in header["ended"] else (source, row + rows)
            self.number += 1
        self.part.first = sum(self.rows)
        return position

    def note_documents(self, source: int, batch: Batch, faulty: list[tuple[int, str]]) -> None:
        """Add documents to the part; ``faulty`` has the index and the reason of each that cannot be used."""
        self.part.add_faults([*indexed_faults(batch), *self._located(source, batch, faulty)], self.corpus.on_error)
        if any(fault.row is None for fault in batch.faults):  # a resumed run must not read up to the fault again
            self.part.ended.append(source)
        ids = batch_ids(self.corpus.sources[source], batch)
        self.part.add(source, batch.first, text_lengths(batch.values), ids, batch.document_values)
        self.rows[source] = max(self.rows[source], batch.first + len(batch))

    def _located(self, source: int, batch: Batch, faulty: list[tuple[int, str]]) -> Iterator[tuple[int, Fault]]:
        rows = np.array([batch.first + index for index, _ in faulty], dtype=np.int64)
        names, numbers = self.corpus.sources[source].locate(rows)
        for (index, reason), name, row in zip(faulty, names.to_pylist(), numbers.tolist(), strict=True):
            yield index, Fault(name, row, reason)


class ScanReader(DocumentReader):
    """First pass of a search that scans the tokens of every document and writes what it finds in files of its own.

    Attributes:
        spilled: Prefix of these files; the number of the part follows.
        held: Number of documents in the open part.
    """

    stage = "read"
    spilled: ClassVar[str]

    def __init__(self, job: SearchJob) -> None:
        super().__init__(job)
        self.arrays: list[Arrays] = []
        self.files = self.held = 0

    @abstractmethod
    def scan(self, batch: Batch, first: int) -> tuple[Arrays, list[tuple[int, str]]]:
        """Scan documents, numbered from ``first``; return arrays by document, with ``token_counts``, and the faults."""

    @abstractmethod
    def drain(self) -> Arrays:
        """Return what was found and is not written yet."""

    def resume(self) -> tuple[int, int]:
        """Restore the state after the last finished part, and delete what was found in later ones."""
        position = super().resume()
        for name in self.work.names(self.spilled):
            if int(name.split("-")[1]) >= self.number:
                self.work.delete(name)
        return position

    def add(self, source: int, batch: Batch) -> None:
        """Scan the next batch of a source."""
        first = self.part.first + self.held
        refuse_too_many(first + len(batch))
        arrays, faulty = self.scan(batch, first)
        self.arrays.append({"states": document_states(batch.values, arrays["token_counts"], faulty), **arrays})
        self.held += len(batch)
        self.note_documents(source, batch, faulty)
        if self.held >= PART_DOCUMENTS or self.part.text_bytes >= PART_BYTES:
            self.finish_part()

    def spill(self, arrays: Arrays) -> None:
        """Write a file of what was found."""
        self.work.write(f"{self.spilled}{self.number:06}-{self.files:06}", arrays)
        self.files += 1

    def finish_part(self) -> None:
        """Write the part, if it has documents, and start another."""
        if not self.part.spans:
            return
        self.spill(self.drain())
        joined = {name: np.concatenate([arrays[name] for arrays in self.arrays]) for name in self.arrays[0]}
        self.part.write(self.work, self.number, self.corpus, joined)
        self.part = DocumentPart(self.part.first + self.held)
        self.number, self.files, self.held, self.arrays = self.number + 1, 0, 0, []


def document_states(texts: pa.Array, counts: NDArray[np.uint32], faulty: list[tuple[int, str]]) -> NDArray[np.uint8]:
    """Return the states of scanned texts from their numbers of tokens and their faults."""
    valid = valid_mask(texts)
    valid[[index for index, _ in faulty]] = False
    return np.where(valid, np.where(counts > 0, FILLED, EMPTY), FAULTY).astype(np.uint8)


def wanted_batches(job: SearchJob, documents: Documents, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, Batch]]:
    """Yield the batches of the flagged documents, each with the number of its first document."""
    for number, (start, end) in enumerate(pairwise(documents.starts.tolist())):
        if not wanted[start:end].any():
            continue
        source, columns = job.corpus.sources[number], job.corpus.columns_of(number)
        for batch in source.batches(columns, wanted=wanted[start:end], batch_bytes=job.limits.batch_bytes):
            if len(batch):
                yield start + batch.first, batch


def _batch_bytes(item: tuple[int, Batch]) -> int:
    return int(item[1].values.nbytes)


def read_documents(job: SearchJob, bander: DocumentBander | None = None) -> None:
    """Read every source once and write its documents to the work directory; resume an interrupted run.

    Args:
        job: The corpus and where its files go.
        bander: Computes the keys of documents that are neither texts nor sets.

    Raises:
        InputError: If no document can be read, or if there are too many.
    """
    if not job.work.has("documents"):
        _FirstPass(job, bander or Bander(job.settings)).run()


class _FirstPass(DocumentReader):
    stage = "read and sketch"

    def __init__(self, job: SearchJob, bander: DocumentBander) -> None:
        super().__init__(job)
        self.bander = bander
        settings = job.settings
        self.shingler = settings.shingler
        capacity = int(np.clip(job.limits.memory // 16 // (key_bytes(settings) + 64), 1024, PART_DOCUMENTS))
        self.block = KeyBlock.allocate(settings, capacity)

    def add(self, source: int, batch: Batch) -> None:
        """Add a batch to the part, split where the part is full."""
        while True:
            rows = min(len(batch), self.block.free)
            self._add(source, batch.slice(0, rows))
            if self.block.free == 0 or self.part.text_bytes >= PART_BYTES:
                self.finish_part()
            if rows == len(batch):
                return
            batch = batch.slice(rows, len(batch))

    def _add(self, source: int, batch: Batch) -> None:
        invalid = self.bander.band(batch.values, self.block, self.limits.threads)
        if source >= self.corpus.first_counted:
            self.part.add_tokens(*token_counts(batch, self.shingler))
        self.note_documents(source, batch, invalid)
        refuse_too_many(self.part.first + self.block.used)

    def finish_part(self) -> None:
        """Write the part, if it has documents, and start another."""
        if self.part.spans:
            self.part.write(self.work, self.number, self.corpus, self.block.arrays())
            self.number += 1
        self.part, self.block.used = DocumentPart(self.part.first + self.block.used), 0


def token_counts(batch: Batch, shingler: Shingler | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sampled rows of a batch, and the tokens in the first bytes of each; none for sets and vectors.

    The number of a row in its source decides whether it is sampled, so the sample does not depend on batches.
    """
    rows = np.arange(batch.first, batch.first + len(batch))
    chosen = np.flatnonzero((rows % sampling_steps(rows) == 0) & valid_mask(batch.values))
    if shingler is None or not len(chosen):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    most = TOKEN_BYTES * min(shingler.size, MOST_TOKENS)
    values = batch.values if len(chosen) == len(batch) else batch.values.take(from_numpy(chosen))
    texts = pc.binary_slice(values.cast(pa.large_binary()), 0, most).to_pylist()
    if shingler.kind != "byte":
        texts = [text.decode("utf-8", "ignore") for text in texts]
    counter = replace(shingler, spec=f"{shingler.kind}:1", bag=True)
    return rows[chosen], np.asarray(counter.shingle(texts, threads=1).sizes, dtype=np.int64)


def text_lengths(texts: pa.Array) -> NDArray[np.uint64]:
    """Return the length of each document: bytes of a text, elements of a set, values of a vector."""
    if pa.types.is_fixed_size_list(texts.type):
        return np.full(len(texts), texts.type.list_size, dtype=np.uint64)
    if pa.types.is_large_list(texts.type):
        return np.diff(to_numpy(texts.offsets)).astype(np.uint64)
    lengths = to_numpy(pc.binary_length(texts)).astype(np.uint64)
    return np.where(valid_mask(texts), lengths, 0) if texts.null_count else lengths
