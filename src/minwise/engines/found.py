"""Found: what an engine leaves, every verified pair of a corpus, and what there is to be made of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from minwise.engines.documents import Documents
from minwise.engines.job import Job
from minwise.engines.near_misses import BINS, NearMisses, floor_bin
from minwise.engines.remembered import RememberedTexts
from minwise.engines.staging import Staging
from minwise.engines.work import Work
from minwise.limits import Limits
from minwise.progress import Progress
from minwise.stages.band import BucketCounts
from minwise.stages.cluster import CopyGroups, PairBlock
from minwise.stages.keep import KeepOrder
from minwise.stages.settings import FindSettings

__all__ = ["Engine", "Found"]


class Engine(Protocol):
    """Whoever arranges the stages. All engines find the same."""

    def find(self, job: Job, *, for_report: bool = False) -> "Found":
        """Finds every pair of near-duplicates, as far as the plan goes.

        With ``for_report``, also what a report shows: candidates that nearly are a pair, and texts.
        """

    def similarities(self, found: "Found", low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The exact similarity of documents that are in candidate pairs, by their places in the keep order."""

    def copy_kept(self, found: "Found", keep: NDArray[np.bool_], staging: Staging, progress: Progress) -> int:
        """Copies the rows of the input that ``keep`` has a flag for to a new directory ``kept``; returns how many."""


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
    engine: Engine

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
