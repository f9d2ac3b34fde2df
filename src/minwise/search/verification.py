"""Remembered texts: what was read of candidates anyway, as far as there is room, so that a page can show it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise._internal.arrays import flags
from minwise._internal.prefetch import prefetch
from minwise.errors import InputError
from minwise.inputs.source import Batch
from minwise.search.bands import NOBODY, split
from minwise.search.candidates import Candidates
from minwise.search.clustering import KeepOrder, PairBlock
from minwise.search.documents import Documents
from minwise.search.engine import Job, RememberedTexts
from minwise.search.near_misses import (
    BINS,
    NearMisses,
    floor_bin,
)
from minwise.search.spilled_sets import SetSpill, SpilledSets
from minwise.search.workdir import Work
from minwise.sketches.similarity import packed_similarities

__all__ = ["Search", "write_verified"]


class Search(Candidates):
    """The passes after the first, each of which leaves its pieces in the work directory.

    Attributes:
        floor: The similarity from which on candidates are compared to the end: the threshold, or a little below it.
    """

    def __init__(self, job: Job, documents: Documents, order: KeepOrder, *, for_report: bool = False) -> None:
        super().__init__(job, documents, order)
        self.floor = threshold = job.settings.plan.threshold
        if for_report:
            self.floor = floor_bin(threshold) / BINS
            self.remembered = RememberedTexts(job.limits.memory // 64)

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Which documents are in a candidate pair; if every pair is to be found, all that can be."""
        if self.settings.exact:
            return np.not_equal(self.members, NOBODY)
        in_pair = np.zeros(len(self.documents), dtype=bool)
        for name in self.work.names("proposed-"):
            in_pair[self.work.open(name).read("members")] = True
        return in_pair[self.order.number_of]

    def spill_sets(self) -> None:
        """Reads the documents that are in a candidate pair once more and keeps their shingles."""
        if self.settings.verify != "exact" or self.work.has("sets"):
            return
        documents = np.flatnonzero(self.wanted)
        done = sum(self.work.open(name).length("offsets") - 1 for name in self.work.names("sets-"))
        spill = SetSpill(self.work, self.settings.shingler, self.limits)
        name = "shingle" if self.settings.exact else "shingle candidates"
        with self.progress.stage(name, len(documents), "documents", done=done) as stage:
            for texts in prefetch(self.texts_of(documents[done:])):
                spill.add(texts)
                self.remembered.add(documents[done : done + len(texts)], texts)
                done += len(texts)
                stage.advance(len(texts))
        spill.flush()
        pa.default_memory_pool().release_unused()
        if done != len(documents):
            raise InputError(
                f"the input changed while it was read: {len(documents)} documents were to be read again, {done} were"
            )
        self.work.write("sets", {"documents": documents.astype(np.uint32)})

    def texts_of(self, documents: NDArray[np.int64]) -> Iterator[pa.Array]:
        """The texts of some documents, in document order."""
        corpus, starts = self.documents.corpus, self.documents.starts
        bounds = np.searchsorted(documents, starts)
        for number, source in enumerate(corpus.sources):
            rows = documents[bounds[number] : bounds[number + 1]] - starts[number]
            if len(rows):
                wanted = np.zeros(self.documents.rows[number], dtype=bool)
                wanted[rows] = True
                for batch in source.batches(
                    replace(corpus.columns, rank=None), wanted=wanted, batch_bytes=self.limits.batch_bytes
                ):
                    chosen = _chosen(batch, wanted)
                    if len(chosen):
                        yield chosen

    def write_compared(self, number: int, compared: PairBlock, facts: dict[str, int]) -> None:
        """Finishes a piece: those that reach the threshold, and near misses."""
        write_verified(self.work, number, compared, self.settings.plan.threshold, facts)

    @property
    def chunk(self) -> int:
        """Candidates that are looked at together: fewer where each takes its signatures along."""
        most = super().chunk
        return most if self.settings.verify == "exact" else most // 16

    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """The candidates that are similar enough to be looked at."""
        if self.settings.verify == "exact":
            return self._sets.similar(pairs, self.floor, self.limits.threads)
        low, high = split(pairs)
        if self.settings.verify == "none":
            return PairBlock(low, high, np.full(len(pairs), np.nan))
        similarity = self._estimated(self.order.document_at[low], self.order.document_at[high])
        return PairBlock(low, high, similarity).where(similarity >= self.floor)

    @cached_property
    def _sets(self) -> SpilledSets:
        return SpilledSets(self.work, self.order, room=self.limits.memory // 4)

    def _estimated(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.float64]:
        documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        pairs = np.ascontiguousarray(places.reshape(2, -1).T).astype(np.int64)
        return packed_similarities(self._packed(documents.astype(np.int64)), pairs, self.settings.plan.slots)

    def _packed(self, documents: NDArray[np.int64]) -> NDArray[np.uint8]:
        firsts = [part.header["first"] for part in self.documents.parts]
        bounds = np.searchsorted(documents, [*firsts, len(self.documents)])
        pieces = [
            part.map("packed")[documents[start:end] - first]
            for part, first, start, end in zip(self.documents.parts, firsts, bounds[:-1], bounds[1:], strict=True)
        ]
        return np.ascontiguousarray(np.concatenate(pieces))


def write_verified(work: Work, number: int, compared: PairBlock, threshold: float, facts: dict[str, int]) -> None:
    """Finishes a piece of compared candidates: those that reach the threshold or are unknown, and near misses."""
    below = compared.similarity < threshold
    block, near = compared.where(~below), NearMisses.of(compared.where(below))
    arrays: Arrays = {"low": block.low, "high": block.high, "similarity": block.similarity}
    work.write(f"verified-{number:06}", {**arrays, **near.arrays()}, **facts)


def _chosen(batch: Batch, wanted: NDArray[np.bool_]) -> pa.Array:
    """The wanted texts of a batch."""
    mask = wanted[batch.first : batch.first + len(batch)]
    return batch.texts if mask.all() else batch.texts.filter(flags(mask))
