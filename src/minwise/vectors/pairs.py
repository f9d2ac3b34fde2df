"""Vectors: the search for pairs of texts with another first stage and another comparison; nothing else differs."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import matrix_of
from minwise._internal.atomic import atomic_writer
from minwise.progress import Progress
from minwise.search.bands import split
from minwise.search.candidates import Candidates
from minwise.search.clustering import PairBlock
from minwise.search.documents import Corpus, Documents
from minwise.search.engine import Found, Job
from minwise.search.first_pass import read_documents
from minwise.search.local_engine import LocalEngine
from minwise.search.workdir import Work
from minwise.settings import Limits
from minwise.vectors.projection import VectorBander, VectorSettings
from minwise.vectors.sources import VectorSource

__all__ = ["find_pairs"]

# A plain matrix of what does not lie as one in its source.
MATRIX = "matrix"


def find_pairs(
    source: VectorSource,
    corpus: Corpus,
    settings: VectorSettings,
    limits: Limits,
    work: Work,
    progress: Progress,
) -> Found:
    """Finds every pair of vectors within the radius, as far as the tables go."""
    job = Job(corpus=corpus, settings=settings, limits=limits, work=work, progress=progress)
    read_documents(job, VectorBander(settings, source.dims))
    documents = Documents(corpus, work)
    search = _VectorSearch(job, documents, documents.keep_order("first"))
    search.source = source
    copies = search.collapse_copies()
    if not work.has("verified"):
        search.propose_candidates()
        search.spill_matrix()
        search.verify_candidates()
    return search.found(copies, LocalEngine())


class _VectorSearch(Candidates):
    """Candidates that are vectors."""

    source: VectorSource
    settings: VectorSettings

    def spill_matrix(self) -> None:
        """Writes the vectors as one matrix, if they do not lie as one: any two of them have to be had at once."""
        if self.source.matrix is not None or self.work.has(MATRIX):
            return
        with (
            self.progress.stage("copy vectors", self.source.rows, "documents") as stage,
            atomic_writer(self.work.folder / MATRIX, sync=self.work.durable) as file,
        ):
            for batch in self.source.blocks(self.limits.batch_bytes):
                if len(batch):
                    file.write(np.ascontiguousarray(matrix_of(batch.texts), dtype=np.float32).data)
                    stage.advance(len(batch))

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """All vectors, as a view of where they lie."""
        if self.source.matrix is not None:
            return self.source.matrix
        if not len(self.documents):
            return np.empty((0, self.source.dims), dtype=np.float32)
        return np.memmap(self.work.folder / MATRIX, dtype=np.float32, mode="r").reshape(-1, self.source.dims)

    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """The candidates within the radius."""
        low, high = split(pairs)
        distance = _kernel.vector_distances(
            self.matrix, low, high, self.settings.measure == "cosine", self.settings.radius, self.limits.threads
        )
        return PairBlock(low, high, distance).where(~np.isnan(distance))
