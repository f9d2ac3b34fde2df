"""First pass: sources in; the band keys, content hashes, ids and faults of their documents out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import present, to_numpy
from minwise._internal.prefetch import prefetch
from minwise.inputs.source import Batch, Fault
from minwise.progress import Progress
from minwise.search.bands import Bander, KeyBlock
from minwise.search.documents import (
    PART_BYTES,
    PART_DOCUMENTS,
    Part,
    batch_ids,
    placed_faults,
    refuse_nothing_readable,
    refuse_too_many,
)
from minwise.search.engine import Job

__all__ = ["Keying", "read_documents", "text_lengths"]


class Keying(Protocol):
    """What turns documents into keys."""

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Adds the documents; returns those that can not be used, by their place, with what is wrong."""


def read_documents(job: Job, bander: Keying | None = None) -> None:
    """Reads every source once and leaves its documents, as numbers, in the work directory; goes on where it stopped.

    ``bander`` turns documents into keys where they are not texts or sets.
    """
    if not job.work.has("documents"):
        _FirstPass(job, bander or Bander(job.settings)).run(job.progress)


class _FirstPass:
    def __init__(self, job: Job, bander: Keying) -> None:
        self.corpus, self.limits, self.work, self.bander = job.corpus, job.limits, job.work, bander
        settings = job.settings
        per_document = 8 * settings.plan.bands + 64 + (2 * settings.plan.slots if settings.verify == "signature" else 0)
        capacity = int(np.clip(job.limits.memory // 16 // per_document, 1024, PART_DOCUMENTS))
        self.rows = [0] * len(job.corpus.sources)
        self.number = 0
        self.block = KeyBlock.of(settings, capacity)
        self.part = Part(0)

    def run(self, progress: Progress) -> None:
        source, row = self._resume()
        known = self.corpus.known_rows()
        with progress.stage("read and sketch", known, "documents", done=sum(self.rows)) as stage:
            for number, batch in prefetch(self._batches(source, row)):
                stage.advance(len(batch))
                self._take(number, batch)
        self._finish_part()
        refuse_nothing_readable(self.work, sum(self.rows))
        self.work.note("documents", {"rows": self.rows, "parts": self.number})

    def _resume(self) -> tuple[int, int]:
        """Source and row after those of the finished pieces."""
        position = (0, 0)
        for name in self.work.names("part-"):
            header = self.work.open(name).header
            for source, row, rows in header["spans"]:
                self.rows[source] = row + rows
                position = (source + 1, 0) if source in header["ended"] else (source, row + rows)
            self.number += 1
        for name in [*self.work.names("columns-"), *self.work.names("faults-")]:
            if int(name.rpartition("-")[2]) >= self.number:  # of a piece that was not finished
                self.work.forget(name)
        self.part.first = sum(self.rows)
        return position

    def _batches(self, source: int, row: int) -> Iterator[tuple[int, Batch]]:
        for number in range(source, len(self.corpus.sources)):
            skip = row if number == source else 0
            columns = self.corpus.columns
            if number < self.corpus.against:  # whose order no policy changes
                columns = replace(columns, rank=None)
            for batch in self.corpus.sources[number].batches(columns, batch_bytes=self.limits.batch_bytes):
                if batch.first + len(batch) > skip or len(batch) == 0:
                    yield number, batch.part(max(0, skip - batch.first), len(batch))

    def _take(self, source: int, batch: Batch) -> None:
        """Adds a batch to the growing piece, cut where the piece is full."""
        while True:
            rows = min(len(batch), self.block.room)
            self._add(source, batch.part(0, rows))
            if self.block.room == 0 or self.part.text_bytes >= PART_BYTES:
                self._finish_part()
            if rows == len(batch):
                return
            batch = batch.part(rows, len(batch))

    def _add(self, source: int, batch: Batch) -> None:
        part = self.part
        found = self.bander.band(batch.texts, self.block, self.limits.threads)
        places = np.array([batch.first + place for place, _ in found], dtype=np.int64)
        names, rows = self.corpus.sources[source].locate(places)
        located = zip(found, names.to_pylist(), rows.tolist(), strict=True)
        faults = [(place, Fault(name, row, why)) for (place, why), name, row in located]
        part.note_faults([*placed_faults(batch), *faults], self.corpus.on_error)
        if any(fault.row is None for fault in batch.faults):  # it can not be read on, and that need not be found again
            part.ended.append(source)
        ids = batch_ids(self.corpus.sources[source], batch)
        part.add(source, batch.first, text_lengths(batch.texts), ids, batch.rank)
        self.rows[source] = max(self.rows[source], batch.first + len(batch))
        refuse_too_many(part.first + self.block.used)

    def _finish_part(self) -> None:
        """Writes the piece and begins another."""
        if self.part.spans:
            self.part.write(self.work, self.number, self.corpus, self.block.arrays())
            self.number += 1
        self.part, self.block.used = Part(self.part.first + self.block.used), 0


def text_lengths(texts: pa.Array) -> NDArray[np.uint64]:
    """Bytes of each text; elements of each set; values of each vector."""
    if pa.types.is_fixed_size_list(texts.type):
        return np.full(len(texts), texts.type.list_size, dtype=np.uint64)
    if pa.types.is_large_list(texts.type):
        return np.diff(to_numpy(texts.offsets)).astype(np.uint64)
    lengths = to_numpy(pc.binary_length(texts)).astype(np.uint64)
    return np.where(present(texts), lengths, 0) if texts.null_count else lengths
