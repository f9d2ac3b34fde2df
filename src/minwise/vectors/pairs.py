"""Pairs of vectors within a radius: the candidate search of texts, with other keys and another comparison."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_matrix
from minwise.errors import InputError
from minwise.search.bands import unpack_pairs
from minwise.search.candidates import CandidateSearch
from minwise.search.clustering import PairBlock
from minwise.search.documents import Documents, SearchJob
from minwise.search.engine import SearchResult
from minwise.search.first_pass import read_documents
from minwise.vectors.projection import VectorBander, VectorSettings
from minwise.vectors.sources import VectorSource

__all__ = ["find_pairs"]

# File of the vectors as one matrix, for a source that has none.
MATRIX = "matrix"


def find_pairs(source: VectorSource, settings: VectorSettings, job: SearchJob) -> SearchResult:
    """Return every pair of vectors that share a bucket and are within the radius.

    Args:
        source: The vectors; the only source of the job's corpus.
        settings: The settings of the job.
        job: Corpus, limits, work directory and progress.
    """
    read_documents(job, VectorBander(settings, source.dims))
    documents = Documents(job.corpus, job.work)
    search = _VectorSearch(job, documents, documents.keep_order("first"))
    search.source = source
    copies = search.collapse_copies()
    if not job.work.has("verified"):
        search.propose_candidates()
        search.write_matrix()
        search.verify_candidates()
    return SearchResult.of(search, copies)


class _VectorSearch(CandidateSearch):
    source: VectorSource
    settings: VectorSettings

    def write_matrix(self) -> None:
        """Write the vectors as one matrix unless the source has one: verification needs random access to all."""
        if self.source.matrix is not None or self.work.has(MATRIX):
            return
        rows = 0
        with (
            self.progress.stage("copy vectors", self.source.rows, "documents") as stage,
            self.work.sealed(MATRIX) as file,
        ):
            for batch in self.source.blocks(self.limits.batch_bytes):
                if len(batch):
                    file.write(np.ascontiguousarray(to_matrix(batch.values), dtype=self.source.matrix_type).data)
                    stage.advance(len(batch))
                    rows += len(batch)
            if rows != len(self.documents):
                raise InputError(
                    f"{self.source.name} must not change during a run: {rows} rows left of {len(self.documents)}"
                )

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """All vectors, without a copy: the matrix of the source, or a mapped file."""
        if self.source.matrix is not None:
            return self.source.matrix
        if not len(self.documents):
            return np.empty((0, self.source.dims), dtype=np.float32)
        (path, length), kind = self.work.verified(MATRIX), self.source.matrix_type
        shape = (length // (kind.itemsize * self.source.dims), self.source.dims)
        return np.memmap(path, dtype=kind, mode="r", shape=shape)

    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """Return the candidates within the radius, with their distances."""
        low, high = unpack_pairs(pairs)
        distance = _kernel.vector_distances(
            self.matrix, low, high, self.settings.measure == "cosine", self.settings.radius, self.limits.threads
        )
        return PairBlock(low, high, distance).where(~np.isnan(distance))
