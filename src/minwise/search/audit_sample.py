"""Audit: a corpus and a plan in; every similar pair of sampled documents, and whether the plan finds it, out.

The bands propose their candidates as in any run. The sampled documents become an index of the exact join, in which the
whole corpus is looked up: a sample of documents joined only with itself would hold next to no pairs of a large corpus.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.prefetch import prefetch
from minwise.search.bands import NOBODY, BucketCounts, element_arrays, pack, split
from minwise.search.clustering import PairBlock
from minwise.search.documents import Documents
from minwise.search.engine import Job
from minwise.search.exact_join import index_elements
from minwise.search.first_pass import read_documents
from minwise.search.verification import Search

__all__ = ["Seen", "look"]

# Pairs that are looked at; a sample that has more is halved until it has not. So many tell a recall to a thousandth.
MAX_PAIRS = 1 << 22
# Matches that the kernel gathers at a time, and candidates that are looked at together.
MATCHES, CHUNK_PAIRS = 1 << 20, 1 << 22


@dataclass(frozen=True)
class Seen:
    """What an exact join of sampled documents with their whole corpus saw.

    Attributes:
        pairs: Every pair of different documents, at least one of them sampled, from the floor on; by document number.
        found: For each of them, whether a band proposes it.
        sampled: The numbers of the sampled documents, ascending.
        candidates: For each sampled document, how many candidate pairs it is in; one of two is with the first.
        documents: How many documents there are all in all.
        distinct: How many of them are looked at: of identical ones the first, and none that is empty.
        identical: How many stand behind an identical one.
        text_bytes: Of all of them.
        caps: What the cap on buckets met.
    """

    pairs: PairBlock
    found: NDArray[np.bool_]
    sampled: NDArray[np.int64]
    candidates: NDArray[np.int64]
    documents: int
    distinct: int
    identical: int
    text_bytes: int
    caps: BucketCounts


def look(job: Job, *, sample: int, floor: float) -> Seen:
    """Proposes candidates as the settings say, and joins ``sample`` documents with all, exactly, down to ``floor``."""
    read_documents(job)
    documents = Documents(job.corpus, job.work)
    search = Search(job, documents, documents.keep_order("first"))
    copies = search.collapse_copies()
    search.propose_candidates()
    everyone = np.flatnonzero(search.members != NOBODY)
    ranking = _Ranking.of(documents, everyone, sample)
    pairs = _join(search, everyone, ranking, floor)
    found, candidates = _compare(search, pairs, ranking)
    identical = len(copies.followers()[0])
    text_bytes = sum(int(lengths.sum()) for lengths in documents.pieces("lengths"))
    counts = (len(documents), len(everyone), identical, text_bytes)
    return Seen(pairs, found, ranking.sampled(), candidates, *counts, search.caps())


@dataclass
class _Ranking:
    """Which documents are sampled: those with the lowest hashes of their content, whatever they are called.

    Attributes:
        rank_of: The place of each sampled document among them, ``NOBODY`` for all others.
        size: How many are sampled.
    """

    rank_of: NDArray[np.uint32]
    size: int

    @classmethod
    def of(cls, documents: Documents, everyone: NDArray[np.int64], size: int) -> "_Ranking":
        hashes = np.concatenate(
            [np.empty(0, dtype=np.uint64), *(piece[:, 0] for piece in documents.pieces("contents"))]
        )
        chosen = everyone
        if size < len(everyone):
            chosen = everyone[np.argpartition(hashes[everyone], size)[:size]]
        rank_of = np.full(len(documents), NOBODY, dtype=np.uint32)
        rank_of[chosen[np.argsort(hashes[chosen])]] = np.arange(len(chosen), dtype=np.uint32)
        return cls(rank_of, len(chosen))

    def sampled(self) -> NDArray[np.int64]:
        """The sampled documents, ascending."""
        return np.flatnonzero(self.rank_of < self.size)


def _join(search: Search, everyone: NDArray[np.int64], ranking: _Ranking, floor: float) -> PairBlock:
    """Every pair of a sampled document and any other from the floor on, ascending; halves a sample with too many."""
    while (gathered := _gather(search, everyone, ranking, floor)) is None:
        ranking.size = -(-ranking.size // 2)
    order = np.lexsort((gathered.high, gathered.low))
    return PairBlock(gathered.low[order], gathered.high[order], gathered.similarity[order])


def _gather(search: Search, everyone: NDArray[np.int64], ranking: _Ranking, floor: float) -> PairBlock | None:
    """The pairs of the sample in no order; None if they are too many."""
    gathered = PairBlock(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0))
    for index in _indexes(search, ranking.sampled(), floor):
        with search.progress.stage("join", len(everyone), "documents") as stage:
            for block, done in _matches(search, index, everyone):
                # Of two that are both in the sample, each finds the other: the second time counts.
                twice = (ranking.rank_of[block.low] < ranking.size) & (block.low < block.high)
                gathered = _joined(gathered, block.where(~twice))
                if len(gathered) > MAX_PAIRS and ranking.size > 1:
                    return None
                stage.advance(done)
    return gathered


def _indexes(search: Search, sampled: NDArray[np.int64], floor: float) -> Iterator["_kernel.SetIndex"]:
    """The sampled documents as one index, or as several if one would take more than about an eighth of the memory."""
    batches: list[tuple[NDArray[np.int64], NDArray[np.uint64]]] = []
    place, documents, elements = 0, 0, 0

    def index() -> "_kernel.SetIndex":
        rarity = _kernel.Rarity(elements, search.limits.memory // 16)
        for _, some in batches:
            rarity.add(some, search.limits.threads)
        numbers = sampled[place : place + documents].astype(np.uint32)
        return _kernel.SetIndex(floor, rarity, False, batches, numbers, search.limits.threads)

    for texts in search.texts_of(sampled):
        batches.append(element_arrays(texts, search.settings.shingler, search.limits.threads))
        documents, elements = documents + len(texts), elements + len(batches[-1][1])
        if elements > index_elements(search.limits.memory // 8, floor):
            yield index()
            batches, place, documents, elements = [], place + documents, 0, 0
    if batches:
        yield index()


def _matches(search: Search, index: "_kernel.SetIndex", everyone: NDArray[np.int64]) -> Iterator[tuple[PairBlock, int]]:
    """Which members each document is similar to: queries as ``low``, members as ``high``; and how many queries."""
    threads, place = search.limits.threads, 0
    for texts in prefetch(search.texts_of(everyone)):
        offsets, elements = element_arrays(texts, search.settings.shingler, threads)
        numbers = everyone[place : place + len(texts)].astype(np.uint32)
        place += len(texts)
        while len(numbers):
            queries, members, similarity, done = index.matches(offsets, elements, numbers, MATCHES, threads)
            yield PairBlock(queries, members, similarity), done
            offsets, numbers = offsets[done:], numbers[done:]


def _joined(one: PairBlock, other: PairBlock) -> PairBlock:
    """Both, with the smaller number first."""
    low, high = np.minimum(other.low, other.high), np.maximum(other.low, other.high)
    columns = ((one.low, low), (one.high, high), (one.similarity, other.similarity))
    return PairBlock(*(np.concatenate(pieces) for pieces in columns))


def _compare(search: Search, pairs: PairBlock, ranking: _Ranking) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which of the pairs are candidates, and how many candidates each sampled document is in."""
    truth = pack(pairs.low, pairs.high)
    found = np.zeros(len(truth), dtype=bool)
    sampled = ranking.sampled()
    counts = np.zeros(len(sampled), dtype=np.int64)
    proposals = search.proposals()
    while (candidates := proposals.next_pairs(CHUNK_PAIRS, search.limits.threads)) is not None:
        low, high = split(candidates)
        first, second = ranking.rank_of[low] < ranking.size, ranking.rank_of[high] < ranking.size
        owner = np.where(first, low, high)[first | second]
        counts += np.bincount(np.searchsorted(sampled, owner), minlength=len(sampled))
        touching = candidates[first | second]
        places = np.minimum(np.searchsorted(truth, touching), max(0, len(truth) - 1))
        if len(truth):
            found[places[truth[places] == touching]] = True
    return found, counts
