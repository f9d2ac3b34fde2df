"""Pairs of vectors within a radius: the candidate search of texts, with other keys and another comparison.

Where tables would cost more, all vectors are compared instead (:mod:`minwise.vectors.scan`).
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_matrix
from minwise.errors import InputError
from minwise.keep_rules import KeepRule
from minwise.search.bands import NO_DOCUMENT, pack_pairs, unpack_pairs
from minwise.search.candidates import CandidateSearch, ComparedChunk, complete_counts
from minwise.search.clustering import PairBlock
from minwise.search.documents import Documents, SearchJob
from minwise.search.engine import SearchResult
from minwise.search.first_pass import read_documents
from minwise.vectors.projection import VectorBander, VectorSettings
from minwise.vectors.scan import Scan, Workspace, make_scan, row_blocks, values_per_row
from minwise.vectors.sources import VectorSource

__all__ = ["find_pairs"]

# File of the vectors as one matrix, for a source that has none.
MATRIX = "matrix"
# Rows whose mean is the centre of a scan.
SAMPLED_ROWS = 1024


def find_pairs(source: VectorSource, settings: VectorSettings, job: SearchJob) -> SearchResult:
    """Return every pair of vectors within the radius that share a bucket, or all of them if the settings say scan.

    Args:
        source: The vectors; the only source of the job's corpus.
        settings: The settings of the job.
        job: Corpus, limits, work directory and progress.
    """
    read_documents(job, VectorBander(settings, source.dims))
    documents = Documents(job.corpus, job.work)
    search = _VectorSearch(job, documents, documents.keep_order(KeepRule()))
    search.source = source
    copies = search.collapse_copies()
    if not job.work.has("verified"):
        if not settings.scan:
            search.propose_candidates()
        search.write_matrix()
        if settings.scan:
            search.scan()
        else:
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
            self.matrix, self.matrix, low, high, self.settings.measure, self.settings.radius, self.limits.threads
        )
        return PairBlock(low, high, distance).where(~np.isnan(distance))

    def scan(self) -> None:
        """Compare all vectors with all, and write the pairs within the radius; resume after the last written row."""
        names = self.work.names("verified-")
        rows = np.flatnonzero(self.members != NO_DOCUMENT).astype(np.uint32)
        after = self.work.open(names[-1]).header["after"] if names else -1
        first = int(np.searchsorted(rows, after, side="right"))
        sample = self.matrix[rows[:SAMPLED_ROWS]]
        scan = make_scan(self.settings.measure, self.source.dims, sample, self.limits.threads)
        candidates = len(rows) * (len(rows) - 1) // 2
        with self.progress.stage("compare", len(rows), "documents", done=first) as stage:
            parts, space = row_blocks(len(rows), self.row_values, first), Workspace()
            scanned = chain.from_iterable(self._scan(scan, rows, part, space) for part in parts)
            for number, (end, found) in enumerate(scanned, start=len(names)):
                self.write_compared(f"verified-{number:06}", ComparedChunk(found, {"after": int(rows[end - 1])}, end))
                stage.advance_to(end)
        self.finish(complete_counts(candidates, candidates))

    @property
    def row_values(self) -> int:
        """Number of values that a scan holds of a vector."""
        return values_per_row(self.settings.measure, self.source.dims)

    def _scan(
        self, scan: Scan, rows: NDArray[np.uint32], part: slice, space: Workspace
    ) -> Iterator[tuple[int, PairBlock]]:
        """Yield the pairs of some rows with all later ones, ascending, and the end of the rows.

        Rows with more pairs than are held at once are halved and scanned again. Such pairs cost more than the scan.
        """
        left, found, held = scan.block(self.matrix[rows[part]]), [], 0
        for block in chain([part], row_blocks(len(rows), self.row_values, part.stop)):
            right = left if block == part else scan.block(self.matrix[rows[block]])
            near = scan.pairs(left, right, self.settings.radius, space)
            found.append(PairBlock(near.low + part.start, near.high + block.start, near.similarity))
            held += len(found[-1])
            if held > self.chunk and part.stop - part.start > 1:
                middle = (part.start + part.stop) // 2
                yield from self._scan(scan, rows, slice(part.start, middle), space)
                yield from self._scan(scan, rows, slice(middle, part.stop), space)
                return
        pairs = PairBlock.concat(found)
        order = np.argsort(pack_pairs(pairs.low, pairs.high))
        yield part.stop, PairBlock(rows[pairs.low[order]], rows[pairs.high[order]], pairs.similarity[order])
