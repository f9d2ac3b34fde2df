"""Search engines: the interface of the local and the Spark engine, the result of a search, and the local engine.

:mod:`minwise.api` builds a :class:`~minwise.search.documents.SearchJob` and calls :meth:`Engine.find`; everything in
:mod:`minwise.results` works on the :class:`SearchResult`. All engines find the same pairs. The local engine runs in one
process, takes corpora larger than memory and resumes interrupted runs.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.progress import Progress
from minwise.search.bands import BucketCounts, pack_pairs
from minwise.search.candidates import CandidateSearch
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.documents import Documents, SearchJob
from minwise.search.exact_join import propose_similar
from minwise.search.first_pass import read_documents
from minwise.search.verification import BINS, CandidateVerifier, NearMisses, SpilledSets, TextCache, floor_bin
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings

__all__ = ["Engine", "LocalEngine", "SearchResult", "StagingDirectory"]


@dataclass(frozen=True)
class StagingDirectory:
    """Output directory while it is being filled.

    Attributes:
        folder: A local directory.
        url: The URL that its files will be sent to, if any; an engine with several machines writes there directly.
    """

    folder: Path
    url: str | None = None


@dataclass(frozen=True)
class SearchResult:
    """Verified pairs of a corpus, with the documents and settings that they belong to.

    Pairs are pairs of ranks in the keep order; of identical documents only the first is in any.

    Attributes:
        documents: The documents by number.
        settings: The settings of the search.
        order: The keep order.
        copies: Groups of identical documents.
        caps: Counts of the bucket cap.
        candidates: Number of candidate pairs that were compared.
        work: The work directory, which holds the pairs.
        limits: Memory and threads.
        text_cache: Texts of candidates, for the report.
    """

    documents: Documents
    settings: SearchSettings
    order: KeepOrder
    copies: CopyGroups
    caps: BucketCounts
    candidates: int
    work: WorkDirectory
    limits: RunLimits
    text_cache: TextCache

    @classmethod
    def of(cls, search: CandidateSearch, copies: CopyGroups, text_cache: TextCache | None = None) -> "SearchResult":
        """Return the result of a search whose candidates are all compared."""
        counts = search.work.read_json("verified")
        return cls(
            documents=search.documents,
            settings=search.settings,
            order=search.order,
            copies=copies,
            caps=BucketCounts(*counts["caps"]),
            candidates=counts["candidates"],
            work=search.work,
            limits=search.limits,
            text_cache=text_cache or TextCache(0),
        )

    def blocks(self, threshold: float | None = None) -> Iterator[PairBlock]:
        """Yield the pairs in ascending order; only those that reach ``threshold``, if it is given."""
        for name in self.work.names("verified-"):
            file = self.work.open(name)
            block = PairBlock(*(file.read(column) for column in ("low", "high", "similarity")))
            yield block if threshold is None else block.where(block.similarity >= threshold)

    @property
    def verified(self) -> int:
        """Number of pairs."""
        return sum(self.work.open(name).length("low") for name in self.work.names("verified-"))

    def near_misses(self, threshold: float | None = None) -> NearMisses:
        """Return the candidates just below the threshold of the run, or just below a higher one."""
        near = NearMisses.none()
        for name in self.work.names("verified-"):
            near = near.merge(NearMisses.read(self.work.open(name)))
        if threshold is not None:
            near = near.from_bin(floor_bin(threshold))
            for block in self.blocks(floor_bin(threshold) / BINS):
                near = near.merge(NearMisses.of(block.where(block.similarity < threshold)))
        return near


class Engine(Protocol):
    """Runs the stages that touch texts. All engines find the same pairs."""

    def find(self, job: SearchJob, *, for_report: bool = False) -> SearchResult:
        """Find the pairs of near-duplicates that the plan finds.

        With ``for_report``, also keep what a report shows: near misses, and texts of candidates.
        """

    def similarities(
        self, search: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarity of documents that are in candidate pairs, given by rank."""

    def copy_kept(
        self, search: SearchResult, keep: NDArray[np.bool_], staging: StagingDirectory, progress: Progress
    ) -> int:
        """Copy the input rows that ``keep`` flags to a new directory ``kept``; return the number of rows."""


class LocalEngine:
    """Engine that runs all stages in this process."""

    def find(self, job: SearchJob, *, for_report: bool = False) -> SearchResult:
        """Find the pairs of near-duplicates that the plan finds."""
        read_documents(job)
        documents = Documents(job.corpus, job.work)
        pa.default_memory_pool().release_unused()
        verifier = CandidateVerifier(job, documents, documents.keep_order(job.settings.keep), for_report=for_report)
        copies = verifier.collapse_copies()
        if not job.work.has("verified"):
            if job.settings.exact:
                verifier.spill_sets()
                propose_similar(job, verifier.order, documents.protected, verifier.floor)
            else:
                verifier.propose_candidates()
                verifier.spill_sets()
            verifier.verify_candidates()
        return SearchResult.of(verifier, copies, verifier.text_cache)

    def similarities(
        self, search: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarity of documents that are in candidate pairs, given by rank."""
        sets = SpilledSets(search.work, search.order, budget=0)
        return sets.similar(pack_pairs(low, high), 0.0, search.limits.threads).similarity

    def copy_kept(
        self, search: SearchResult, keep: NDArray[np.bool_], staging: StagingDirectory, progress: Progress
    ) -> int:
        """Copy the kept rows, several sources at a time; return the number of rows."""
        documents, corpus = search.documents, search.documents.corpus
        numbers = range(corpus.against, len(corpus.sources))
        folder = staging.folder / "kept"
        folder.mkdir()

        def copy(number: int) -> tuple[int, int]:
            source, source_keep = corpus.sources[number], keep[documents.input_slice(number)]
            source.refuse_changes(remote=False)
            kept = source.copy_kept(source_keep, folder, corpus.root)
            source.refuse_changes(remote=False)
            return len(source_keep), kept

        written = 0
        pool = ThreadPoolExecutor(search.limits.writers, thread_name_prefix="minwise-write")
        try:
            with progress.stage("write", len(keep), "documents") as stage:
                for rows, kept in pool.map(copy, numbers):
                    written += kept
                    stage.advance(rows)
        finally:
            pool.shutdown(cancel_futures=True)  # a writer that is still running would recreate deleted files
        return written
