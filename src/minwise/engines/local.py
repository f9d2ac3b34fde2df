"""The local engine: one machine, larger than memory, resumable.

Pass 1 reads every document once and keeps its band keys. Then, one band at a time, equal keys become candidate pairs.
Pass 2 reads only documents that are in such a pair, and keeps their shingles. Every candidate pair is then compared for
real. What is left are verified pairs, which fit the groups of :mod:`minwise.stages.cluster`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.engines.documents import Corpus, Documents
from minwise.engines.exact import propose_similar
from minwise.engines.first_pass import read_documents
from minwise.engines.near_misses import BINS, NearMisses, floor_bin
from minwise.engines.remembered import RememberedTexts
from minwise.engines.search import Search
from minwise.engines.spilled_sets import SpilledSets
from minwise.engines.work import Work
from minwise.progress import Progress
from minwise.settings import FindSettings, Limits
from minwise.stages.band import BucketCounts
from minwise.stages.cluster import CopyGroups, PairBlock
from minwise.stages.keep import KeepOrder

__all__ = ["Found", "find"]


@dataclass(frozen=True)
class Found:
    """Every verified pair of a corpus, and what is needed to make something of it.

    Pairs are of places in the keep order; only the first of identical documents is in any.
    """

    documents: Documents
    settings: FindSettings
    order: KeepOrder
    copies: CopyGroups
    caps: BucketCounts
    candidates: int
    work: Work
    limits: Limits
    remembered: RememberedTexts

    def blocks(self, threshold: float | None = None) -> Iterator[PairBlock]:
        """The pairs, ascending, block by block; only those that reach ``threshold``, if it is given."""
        for name in self.work.names("verified-"):
            piece = self.work.open(name)
            block = PairBlock(*(piece.read(column) for column in ("low", "high", "similarity")))
            yield block if threshold is None else block.where(block.similarity >= threshold)

    @property
    def verified(self) -> int:
        """How many pairs there are."""
        return sum(self.work.open(name).length("low") for name in self.work.names("verified-"))

    def near_misses(self, threshold: float | None = None) -> NearMisses:
        """The candidates just below the threshold of the run, or below a higher one."""
        found = NearMisses.none()
        for name in self.work.names("verified-"):
            found = found.joined(NearMisses.read(self.work.open(name)))
        if threshold is not None:
            found = found.from_bin(floor_bin(threshold))
            for block in self.blocks(floor_bin(threshold) / BINS):
                found = found.joined(NearMisses.of(block.where(block.similarity < threshold)))
        return found

    def similarities(self, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The exact similarity of documents that are in candidate pairs, by their places in the keep order."""
        left, right = self.order.document_at[low], self.order.document_at[high]
        return SpilledSets(self.work, room=0).similarities(left, right, 0.0, self.limits.threads)


def find(
    corpus: Corpus,
    settings: FindSettings,
    limits: Limits,
    work: Work,
    progress: Progress,
    *,
    for_report: bool = False,
) -> Found:
    """Finds every pair of near-duplicates, as far as the plan goes.

    With ``for_report``, also what a report shows: candidates that nearly are a pair, and texts.
    """
    read_documents(corpus, settings, limits, work, progress)
    documents = Documents(corpus, work)
    pa.default_memory_pool().release_unused()
    order = documents.keep_order(settings.keep)
    search = Search(documents, settings, limits, work, progress, order, for_report=for_report)
    copies = search.collapse_copies()
    if not work.has("verified"):
        if settings.exact:
            search.spill_sets()
            propose_similar(work, order, documents.protected, search.floor, limits, progress)
        else:
            search.propose_candidates()
            search.spill_sets()
        search.verify_candidates()
    caps, candidates = search.counts()
    return Found(documents, settings, order, copies, caps, candidates, work, limits, search.remembered)
