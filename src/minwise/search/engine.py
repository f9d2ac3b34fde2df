"""Engine: the job that an engine is given, and the search result that it returns."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.progress import Progress
from minwise.search.bands import BucketCounts
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.documents import Corpus, Documents
from minwise.search.near_misses import BINS, NearMisses, floor_bin
from minwise.search.workdir import Work
from minwise.settings import FindSettings, Limits
from minwise.text.chunks import text_chunk

__all__ = ["Engine", "Found", "Job", "RememberedTexts", "Staging"]


@dataclass(frozen=True)
class Staging:
    """A directory that is being filled.

    Attributes:
        folder: A directory of this machine.
        url: Where its files will go if they go elsewhere: who writes from several machines writes there.
    """

    folder: Path
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A corpus, and how it is gone through.

    Attributes:
        corpus: What is read.
        settings: What decides the result.
        limits: How much of the machine may be used.
        work: Where finished pieces are.
        progress: Who is told how far the work is.
    """

    corpus: Corpus
    settings: FindSettings
    limits: Limits
    work: Work
    progress: Progress


class RememberedTexts:
    """Texts by the numbers of their documents, which come ascending."""

    def __init__(self, room: int) -> None:
        """None yet, and room for so many bytes of them."""
        self._room = room
        self._documents: list[NDArray[np.int64]] = []
        self._batches: list[tuple[NDArray[np.int64], NDArray[np.uint8]]] = []

    def add(self, documents: NDArray[np.int64], texts: pa.Array) -> None:
        """Copies the first texts of a batch that fit. Sets have none."""
        if pa.types.is_large_list(texts.type) or self._room <= 0:
            return
        chunk = text_chunk(texts)
        offsets = chunk.offsets.astype(np.int64) - int(chunk.offsets[0])
        fitting = int(np.searchsorted(offsets, self._room, side="right")) - 1
        first = int(chunk.offsets[0])
        self._documents.append(documents[:fitting])
        self._batches.append((offsets[: fitting + 1], chunk.data[first : first + int(offsets[fitting])].copy()))
        # What did not fit ends it: texts after a gap would be no less useful, but then big ones would never be there.
        self._room = self._room - int(offsets[fitting]) if fitting == len(texts) else 0

    def get(self, document: int) -> bytes | None:
        """The text of a document; None if it is not remembered."""
        for documents, (offsets, data) in zip(self._documents, self._batches, strict=True):
            place = int(np.searchsorted(documents, document))
            if place < len(documents) and documents[place] == document:
                return data[offsets[place] : offsets[place + 1]].tobytes()
        return None


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
