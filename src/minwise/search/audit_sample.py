"""Audit sample: every similar pair of a sample of documents, and whether the bands propose it.

The first pass and the bands run as in any search. Then the sampled documents become an index of the exact join, in
which the whole corpus is looked up: a sample joined only with itself would have almost no pairs of a large corpus. The
lookup reads and shingles every document once more. :mod:`minwise.results.audit` derives recall and precision from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.keep_rules import KeepRule
from minwise.search.bands import NO_DOCUMENT, BucketCounts, element_arrays, pack_pairs, unpack_pairs
from minwise.search.clustering import CopyGroups, PairBlock
from minwise.search.documents import Documents, SearchJob
from minwise.search.exact_join import max_index_elements
from minwise.search.first_pass import read_documents
from minwise.search.verification import CandidateVerifier
from minwise.search.weighting import band_weighted, count_frequencies, without_bands

__all__ = ["AuditSample", "run_audit"]

# Maximum number of pairs; a sample with more is halved until it has fewer. They give a recall to a thousandth.
MAX_PAIRS = 1 << 22
# Matches that the kernel returns at a time, and candidates that are processed together.
MATCHES, CHUNK_PAIRS = 1 << 20, 1 << 22

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class AuditSample:
    """Result of an exact join of sampled documents with their whole corpus.

    Attributes:
        pairs: Every pair of distinct documents that reaches the floor and of which at least one is sampled, by
            document number.
        found: For each pair, whether a band proposes it.
        sampled: The numbers of the sampled documents, ascending.
        candidates: For each sampled document, the number of its candidate pairs; a pair of two counts for the first.
        documents: Number of all documents.
        distinct: Number of documents that are compared: of identical ones the first, and no empty ones.
        identical: Number of documents that are copies of an earlier one.
        text_bytes: Bytes of all texts.
        caps: Counts of the bucket cap.
        read: The documents in the work directory, and their copies; for the notes of a report.
    """

    pairs: PairBlock
    found: NDArray[np.bool_]
    sampled: Numbers
    candidates: Numbers
    documents: int
    distinct: int
    identical: int
    text_bytes: int
    caps: BucketCounts
    read: tuple[Documents, CopyGroups] | None = None


def run_audit(job: SearchJob, *, sample: int, floor: float) -> AuditSample:
    """Propose candidates by the settings of the job, and join ``sample`` documents with all others exactly.

    Args:
        job: The corpus and its settings.
        sample: Number of documents to sample.
        floor: Minimum similarity of a pair.
    """
    weighted = job.settings.weighted
    read_documents(without_bands(job) if weighted else job)
    documents = Documents(job.corpus, job.work)
    verifier = CandidateVerifier(job, documents, documents.keep_order(KeepRule()))
    copies = verifier.collapse_copies()
    if weighted:
        verifier.spill_sets()
        count_frequencies(job)
        band_weighted(job)
    verifier.propose_candidates()
    distinct = np.flatnonzero(verifier.members != NO_DOCUMENT)
    sampling = _Sampling.of(documents, distinct, sample)
    pairs = _join(verifier, distinct, sampling, floor)
    found, candidates = _match_candidates(verifier, pairs, sampling)
    identical = len(copies.followers()[0])
    text_bytes = sum(int(lengths.sum()) for lengths in documents.column_parts("lengths"))
    counts = (len(documents), len(distinct), identical, text_bytes)
    return AuditSample(pairs, found, sampling.sampled(), candidates, *counts, verifier.caps(), (documents, copies))


@dataclass
class _Sampling:
    """Sample of the documents with the lowest content hashes, which does not depend on ids or order.

    Attributes:
        hash_rank: The rank of each sampled document by content hash, ``NO_DOCUMENT`` for all others.
        size: Number of sampled documents; a smaller size keeps those with the lowest ranks.
    """

    hash_rank: NDArray[np.uint32]
    size: int

    @classmethod
    def of(cls, documents: Documents, distinct: Numbers, size: int) -> "_Sampling":
        hashes = np.concatenate(
            [np.empty(0, dtype=np.uint64), *(contents[:, 0] for contents in documents.column_parts("contents"))]
        )
        chosen = distinct
        if size < len(distinct):
            chosen = distinct[np.argpartition(hashes[distinct], size)[:size]]
        hash_rank = np.full(len(documents), NO_DOCUMENT, dtype=np.uint32)
        hash_rank[chosen[np.argsort(hashes[chosen])]] = np.arange(len(chosen), dtype=np.uint32)
        return cls(hash_rank, len(chosen))

    def includes(self, documents: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return a flag for each document that is sampled."""
        return self.hash_rank[documents] < self.size

    def sampled(self) -> Numbers:
        """Return the sampled documents, ascending."""
        return np.flatnonzero(self.hash_rank < self.size)


def _join(verifier: CandidateVerifier, distinct: Numbers, sampling: _Sampling, floor: float) -> PairBlock:
    """Return every pair of a sampled document that reaches the floor, ascending; halve a sample with too many."""
    while (pairs := _collect(verifier, distinct, sampling, floor)) is None:
        sampling.size = -(-sampling.size // 2)
    return pairs.take(np.lexsort((pairs.high, pairs.low)))


def _collect(verifier: CandidateVerifier, distinct: Numbers, sampling: _Sampling, floor: float) -> PairBlock | None:
    """Return the pairs of the sample, unordered; None if there are too many."""
    collected = PairBlock.concat([])
    for index in _indexes(verifier, sampling.sampled(), floor):
        with verifier.progress.stage("join", len(distinct), "documents") as stage:
            for block, done in _matches(verifier, index, distinct):
                # Two sampled documents find each other: only the second match counts.
                twice = sampling.includes(block.low) & (block.low < block.high)
                collected = PairBlock.concat([collected, _low_first(block.where(~twice))])
                if len(collected) > MAX_PAIRS and sampling.size > 1:
                    return None
                stage.advance(done)
    return collected


def _low_first(block: PairBlock) -> PairBlock:
    """Return the pairs with the smaller number first."""
    return PairBlock(np.minimum(block.low, block.high), np.maximum(block.low, block.high), block.similarity)


def _indexes(verifier: CandidateVerifier, sampled: Numbers, floor: float) -> Iterator["_kernel.SetIndex"]:
    """Yield an index of the sampled documents, or several if one would take more than an eighth of the memory."""
    limits = verifier.limits
    batches: list[tuple[Numbers, NDArray[np.uint64]]] = []
    start, documents, elements = 0, 0, 0

    def index() -> "_kernel.SetIndex":
        rarity = _kernel.Rarity(elements, limits.memory // 16, verifier.settings.holds_weights)
        for _, batch_elements in batches:
            rarity.add(batch_elements, limits.threads)
        numbers = sampled[start : start + documents].astype(np.uint32)
        return _kernel.SetIndex(floor, rarity, False, batches, numbers, limits.threads, verifier.weights)

    for texts in verifier.texts_of(sampled):
        batches.append(element_arrays(texts, verifier.settings.shingler, limits.threads))
        documents, elements = documents + len(texts), elements + len(batches[-1][1])
        if elements > max_index_elements(limits.memory // 8, floor):
            yield index()
            batches, start, documents, elements = [], start + documents, 0, 0
    if batches:
        yield index()


def _matches(
    verifier: CandidateVerifier, index: "_kernel.SetIndex", distinct: Numbers
) -> Iterator[tuple[PairBlock, int]]:
    """Yield similar pairs of queries (``low``) and index members (``high``), and the number of queries processed."""
    threads, start = verifier.limits.threads, 0
    for texts in verifier.read_ahead(distinct):
        offsets, elements = element_arrays(texts, verifier.settings.shingler, threads)
        numbers = distinct[start : start + len(texts)].astype(np.uint32)
        start += len(texts)
        while len(numbers):
            queries, members, similarity, done = index.matches(offsets, elements, numbers, MATCHES, threads)
            yield PairBlock(queries, members, similarity), done
            offsets, numbers = offsets[done:], numbers[done:]


def _match_candidates(
    verifier: CandidateVerifier, pairs: PairBlock, sampling: _Sampling
) -> tuple[NDArray[np.bool_], Numbers]:
    """Return which of the pairs are candidates, and the number of candidates of each sampled document."""
    similar = pack_pairs(pairs.low, pairs.high)
    found = np.zeros(len(similar), dtype=bool)
    sampled = sampling.sampled()
    counts = np.zeros(len(sampled), dtype=np.int64)
    proposals = verifier.proposals()
    while (candidates := proposals.next_pairs(CHUNK_PAIRS, verifier.limits.threads)) is not None:
        low, high = unpack_pairs(candidates)
        first, second = sampling.includes(low), sampling.includes(high)
        owner = np.where(first, low, high)[first | second]
        counts += np.bincount(np.searchsorted(sampled, owner), minlength=len(sampled))
        of_sample = candidates[first | second]
        indices = np.minimum(np.searchsorted(similar, of_sample), max(0, len(similar) - 1))
        if len(similar):
            found[indices[similar[indices] == of_sample]] = True
    return found, counts
