"""Search engines: the interface of the local and the Spark engine, the result of a search, and the local engine.

:mod:`minwise.api` builds a :class:`~minwise.search.documents.SearchJob` and calls :meth:`Engine.find`; everything in
:mod:`minwise.results` works on the :class:`SearchResult`. All engines find the same pairs. The local engine runs in one
process, takes corpora larger than memory and resumes interrupted runs.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import ArrayFile
from minwise._internal.system import return_freed_memory
from minwise.inputs.row_edits import RowEdits
from minwise.progress import Progress
from minwise.search.bands import BucketCounts, pack_pairs
from minwise.search.candidates import VERIFIED, CandidateSearch
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.common_phrases import spilled_sets
from minwise.search.contamination import Contamination, EvalItems, find_contamination
from minwise.search.documents import Documents, SearchJob
from minwise.search.exact_join import find_contained, propose_similar
from minwise.search.first_pass import read_documents
from minwise.search.needed_pairs import Needed, PairCounts, finished_stage, verify_needed
from minwise.search.passages import Passages, find_passages
from minwise.search.stored_documents import select_stored
from minwise.search.verification import BINS, CandidateVerifier, NearMisses, SpilledSets, TextCache, floor_bin
from minwise.search.weighting import band_weighted, count_frequencies, without_bands
from minwise.search.workdir import WorkDirectory
from minwise.settings import ContaminationRule, PassageSettings, RunLimits, SearchSettings

__all__ = ["Engine", "FinishedSearch", "LocalEngine", "SearchResult", "StagingDirectory"]


@dataclass(frozen=True)
class StagingDirectory:
    """Output directory while it is being filled.

    Attributes:
        folder: A local directory.
        url: The URL that its files will be sent to, if any; an engine with several machines writes there directly.
    """

    folder: Path
    url: str | None = None


class FinishedSearch(Protocol):
    """Result of any search."""

    @property
    def documents(self) -> Documents:
        """The documents by number."""

    @property
    def work(self) -> WorkDirectory:
        """The work directory."""

    @property
    def limits(self) -> RunLimits:
        """Memory and threads."""


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
        candidates: Number of candidate pairs; an estimate if only a sample of them was compared, None without a sample.
        compared: Number of candidate pairs that were compared.
        classes: Number of classes of the sample: a sampled pair stands for as many; 0 if there is no sample.
        stage: Name of the files of compared pairs.
        work: The work directory, which holds the pairs.
        limits: Memory and threads.
        text_cache: Texts of candidates, for the report.
    """

    documents: Documents
    settings: SearchSettings
    order: KeepOrder
    copies: CopyGroups
    caps: BucketCounts
    candidates: int | None
    compared: int
    classes: int
    stage: str
    work: WorkDirectory
    limits: RunLimits
    text_cache: TextCache

    @classmethod
    def of(cls, search: CandidateSearch, copies: CopyGroups, text_cache: TextCache | None = None) -> "SearchResult":
        """Return the result of a search whose candidates are compared."""
        counts = search.work.read_json(search.stage)
        return cls(
            documents=search.documents,
            settings=search.settings,
            order=search.order,
            copies=copies,
            caps=BucketCounts(*counts["caps"]),
            candidates=counts["candidates"],
            compared=counts["compared"],
            classes=counts["classes"],
            stage=search.stage,
            work=search.work,
            limits=search.limits,
            text_cache=text_cache or TextCache(0),
        )

    def job(self, progress: Progress) -> SearchJob:
        """Return the job of the search, with other progress."""
        return SearchJob(
            corpus=self.documents.corpus,
            settings=self.settings,
            limits=self.limits,
            work=self.work,
            progress=progress,
        )

    @property
    def is_complete(self) -> bool:
        """Whether all candidates were compared; otherwise only those that decide the clusters."""
        return self.stage == VERIFIED

    def _files(self) -> Iterator[ArrayFile]:
        return map(self.work.open, self.work.names(f"{self.stage}-"))

    def blocks(self, threshold: float | None = None) -> Iterator[PairBlock]:
        """Yield the pairs in ascending order; only those that reach ``threshold``, if it is given.

        Without ``is_complete``, these are the pairs that decide the clusters: for stars, the pairs of kept documents
        with later ones in ascending order, then those of removed documents with later kept ones.
        """
        for file in self._files():
            block = PairBlock(*(file.read(column) for column in ("low", "high", "similarity")))
            yield block if threshold is None else block.where(block.similarity >= threshold)

    @cached_property
    def verified(self) -> int | None:
        """Number of pairs; an estimate if only a sample of the candidates was compared, None without a sample."""
        if self.settings.verify == "none" or self.candidates is None:
            return self.candidates
        return sum(file.length("low") for file in self._files()) + int(self.sampled_pairs.sum())

    @property
    def pair_counts(self) -> PairCounts:
        """Numbers of candidates, pairs and comparisons."""
        return PairCounts(
            candidates=self.candidates, similar=self.verified, compared=self.compared, classes=self.classes
        )

    @cached_property
    def labels(self) -> tuple[NDArray[np.uint32], pa.Array] | None:
        """The value of each document that decides with which others it is compared, as a code, and the values."""
        column = self.settings.label_column
        return None if column is None else self.documents.value_codes(column)

    def without_discount(self) -> "SearchResult":
        """Return the search with similarities in which all elements count alike."""
        return replace(self, settings=replace(self.settings, discount="none", frequencies=None))

    @cached_property
    def sampled_pairs(self) -> NDArray[np.int64]:
        """Estimated number of pairs that are not in the blocks, in each bin of similarity."""
        return self._sampled("sampled_pairs")

    def _sampled(self, array: str) -> NDArray[np.int64]:
        counts = np.zeros(BINS, dtype=np.int64)
        if self.classes:
            for file in self._files():
                counts += file.read(array).astype(np.int64) * self.classes
        return counts

    def near_misses(self, threshold: float | None = None) -> NearMisses:
        """Return the candidates just below the threshold of the run, or just below a higher one."""
        near = NearMisses.merge(map(NearMisses.read, self._files())).with_more(self._sampled("sampled_near"))
        if threshold is None:
            return near
        higher = (block.where(block.similarity < threshold) for block in self.blocks(floor_bin(threshold) / BINS))
        return NearMisses.merge([near.from_bin(floor_bin(threshold)), *map(NearMisses.of, higher)])


class Engine(Protocol):
    """Runs the stages that touch texts. All engines find the same pairs."""

    def find(self, job: SearchJob, *, needed: Needed = "pairs", for_report: bool = False) -> SearchResult:
        """Find the pairs of near-duplicates that the plan finds.

        Args:
            job: The corpus and its settings.
            needed: Which pairs the caller needs: all, or those that decide stars or components.
            for_report: Whether to keep what a report shows: near misses, and texts of candidates.
        """

    def find_passages(self, job: SearchJob, wanted: PassageSettings, *, only_reference: bool) -> Passages:
        """Find every repeated passage, as :func:`minwise.search.passages.find_passages` does."""

    def find_contamination(self, job: SearchJob, items: EvalItems, rule: ContaminationRule) -> Contamination:
        """Find evaluation items, as :func:`minwise.search.contamination.find_contamination` does."""

    def complete(self, search: SearchResult, progress: Progress) -> SearchResult:
        """Return the result of the same search with all its pairs."""

    def similarities(
        self, search: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarity of documents that are in candidate pairs, given by rank."""

    def copy_kept(
        self,
        documents: Documents,
        limits: RunLimits,
        keep: NDArray[np.bool_],
        staging: StagingDirectory,
        progress: Progress,
        edits: Mapping[int, RowEdits] | None = None,
    ) -> int:
        """Copy input rows to a new directory ``kept``; return the number of rows.

        Args:
            documents: The documents of the run.
            limits: Its memory and threads.
            keep: A flag per row of the input: whether it is copied.
            staging: The output directory.
            progress: Receives progress events.
            edits: Edits of the kept rows, by number of the source; the rows of any other source are unchanged.
        """


class LocalEngine:
    """Engine that runs all stages in this process."""

    def find(self, job: SearchJob, *, needed: Needed = "pairs", for_report: bool = False) -> SearchResult:
        """Find the pairs of near-duplicates that the plan finds."""
        read_documents(without_bands(job) if job.settings.weighted else job)
        select_stored(job)
        documents = Documents(job.corpus, job.work)
        documents.check_values()
        return_freed_memory()
        verifier = CandidateVerifier(
            job, documents, documents.keep_order(job.settings.keep_rule), for_report=for_report
        )
        copies = verifier.collapse_copies()
        if job.settings.measure == "containment":
            verifier.spill_sets()
            copies = verifier.order_by_size(copies, verifier.spilled_sizes())
            find_contained(job, verifier)
        else:
            self._verify(verifier, job, needed, sampled=for_report)
        found = SearchResult.of(verifier, copies, verifier.text_cache)
        del verifier  # and the sets that it holds
        return_freed_memory()
        return found

    def find_passages(self, job: SearchJob, wanted: PassageSettings, *, only_reference: bool) -> Passages:
        """Find every repeated passage."""
        return find_passages(job, wanted, only_reference=only_reference)

    def find_contamination(self, job: SearchJob, items: EvalItems, rule: ContaminationRule) -> Contamination:
        """Find every item of which a document has enough rare n-grams."""
        return find_contamination(job, items, rule)

    def _verify(self, verifier: CandidateVerifier, job: SearchJob, needed: Needed, *, sampled: bool) -> None:
        """Propose candidates and compare those that are needed, unless an earlier run has."""
        finished = finished_stage(job.work, needed, job.settings.verify)
        if finished is not None:
            verifier.stage = finished
            return
        weighted = job.settings.weighted
        if weighted:
            verifier.spill_sets()
            count_frequencies(job)
        if job.settings.exact:
            verifier.spill_sets()
            propose_similar(job, verifier.order, verifier.floor, verifier.pair_rule)
        else:
            if weighted:
                band_weighted(job)
            verifier.propose_candidates()
            verifier.spill_sets()
        if sampled:
            verifier.note_common_phrases(spilled_sets(job.work))
        verify_needed(verifier, needed, sampled=sampled)

    def complete(self, search: SearchResult, progress: Progress) -> SearchResult:
        """Compare all candidates of a search of which only those were compared that decide its clusters."""
        if search.is_complete:
            return search
        job = search.job(progress)
        with search.work.locked():
            verifier = CandidateVerifier(job, search.documents, search.order, for_report=True)
            self._verify(verifier, job, "pairs", sampled=False)
        return SearchResult.of(verifier, search.copies, search.text_cache)

    def similarities(
        self, search: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarity of documents that are in candidate pairs, given by rank."""
        sets = SpilledSets.of(search.work, search.order, search.settings, search.limits, budget=0)
        return sets.similar(pack_pairs(low, high), 0.0, search.limits.threads).similarity

    def copy_kept(
        self,
        documents: Documents,
        limits: RunLimits,
        keep: NDArray[np.bool_],
        staging: StagingDirectory,
        progress: Progress,
        edits: Mapping[int, RowEdits] | None = None,
    ) -> int:
        """Copy the kept rows with their edits, several sources at a time; return the number of rows."""
        corpus, edits = documents.corpus, edits or {}
        numbers = range(corpus.against, len(corpus.sources))
        encoders = max(1, limits.writers // max(1, len(numbers)))
        folder = staging.folder / "kept"
        folder.mkdir()

        def copy(number: int) -> tuple[int, int]:
            source, source_keep = corpus.sources[number], keep[documents.input_slice(number)]
            source.refuse_changes(remote=False)
            source.encoders = encoders
            kept = source.copy_kept(source_keep, folder, corpus.root, edits.get(number))
            source.refuse_changes(remote=False)
            return len(source_keep), kept

        written = 0
        pool = ThreadPoolExecutor(limits.writers, thread_name_prefix="minwise-write")
        try:
            with progress.stage("write", len(keep), "documents") as stage:
                for rows, kept in pool.map(copy, numbers):
                    written += kept
                    stage.advance(rows)
        finally:
            pool.shutdown(cancel_futures=True)  # a writer that is still running would recreate deleted files
        return written
