"""First pass: read every source once and write band keys, content hashes, ids and faults of its documents.

This is the first stage of a search, and usually the longest. Its output, the ``part-``, ``columns-`` and ``faults-``
files, is all that the later stages know of the documents; only candidates are read again. A part is written after 2^18
documents or 1 GiB of text, so an interrupted run repeats at most that much.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, to_numpy, valid_mask
from minwise._internal.prefetch import prefetch
from minwise.inputs.source import Batch, Fault
from minwise.search.bands import Bander, KeyBlock, key_bytes
from minwise.search.documents import (
    MOST_TOKENS,
    PART_BYTES,
    PART_DOCUMENTS,
    DocumentPart,
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

__all__ = ["DocumentBander", "ResumableReader", "read_documents", "text_lengths", "token_counts"]

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


class _FirstPass(ResumableReader):
    unfinished = ("columns-", "faults-")

    def __init__(self, job: SearchJob, bander: DocumentBander) -> None:
        super().__init__(job)
        self.bander = bander
        settings = job.settings
        self.shingler = settings.shingler
        capacity = int(np.clip(job.limits.memory // 16 // (key_bytes(settings) + 64), 1024, PART_DOCUMENTS))
        self.rows = [0] * len(job.corpus.sources)
        self.block = KeyBlock.allocate(settings, capacity)
        self.part = DocumentPart(0)

    def run(self) -> None:
        self.read("read and sketch", "documents")
        self._finish_part()
        refuse_nothing_readable(self.work, self.rows_read())
        refuse_unusable_inputs(self.corpus, self.work, count_usable(self.work, self.rows))
        self.work.write_json("documents", {"rows": self.rows, "parts": self.number})

    def rows_read(self) -> int:
        return sum(self.rows)

    def resume(self) -> tuple[int, int]:
        position = (0, 0)
        for name in self.work.names("part-"):
            header = self.work.open(name).header
            for source, row, rows in header["spans"]:
                self.rows[source] = row + rows
                position = (source + 1, 0) if source in header["ended"] else (source, row + rows)
            self.number += 1
        self.part.first = sum(self.rows)
        return position

    def add(self, source: int, batch: Batch) -> None:
        """Add a batch to the part, split where the part is full."""
        while True:
            rows = min(len(batch), self.block.free)
            self._add(source, batch.slice(0, rows))
            if self.block.free == 0 or self.part.text_bytes >= PART_BYTES:
                self._finish_part()
            if rows == len(batch):
                return
            batch = batch.slice(rows, len(batch))

    def _add(self, source: int, batch: Batch) -> None:
        part = self.part
        invalid = self.bander.band(batch.values, self.block, self.limits.threads)
        names, rows = self.corpus.sources[source].locate(
            np.array([batch.first + index for index, _ in invalid], dtype=np.int64)
        )
        located = zip(invalid, names.to_pylist(), rows.tolist(), strict=True)
        faults = [(index, Fault(name, row, reason)) for (index, reason), name, row in located]
        part.add_faults([*indexed_faults(batch), *faults], self.corpus.on_error)
        if any(fault.row is None for fault in batch.faults):  # a resumed run must not read up to the fault again
            part.ended.append(source)
        if source >= self.corpus.against:
            part.add_tokens(*token_counts(batch, self.shingler))
        ids = batch_ids(self.corpus.sources[source], batch)
        part.add(source, batch.first, text_lengths(batch.values), ids, batch.keep_values)
        self.rows[source] = max(self.rows[source], batch.first + len(batch))
        refuse_too_many(part.first + self.block.used)

    def _finish_part(self) -> None:
        """Write the part and start another."""
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
