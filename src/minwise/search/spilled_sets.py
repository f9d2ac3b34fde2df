"""Spilled sets: the shingles of documents on their way to files, and read back from there."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.search.bands import NOBODY, element_arrays
from minwise.search.clustering import KeepOrder, PairBlock
from minwise.search.workdir import Work
from minwise.settings import Limits
from minwise.text.shingling import Shingler

__all__ = ["SetSpill", "SpilledSets"]

# Elements of sets that are gathered before they are written.
SPILL_ELEMENTS = 1 << 23
# What the kernel holds of a set to tell from it alone which others are far apart.
OUTLINE_BYTES = 64


class SpilledSets:
    """The shingle sets of every document that is in a candidate pair, by its number in the keep order."""

    def __init__(self, work: Work, order: KeepOrder, room: int) -> None:
        """Opens the sets and holds as many files of them in memory as there is room, in bytes."""
        documents = work.open("sets").read("documents")
        self._places = np.full(len(order.number_of), NOBODY, dtype=np.uint32)
        self._places[order.number_of[documents]] = np.arange(len(documents), dtype=np.uint32)
        self._store = _kernel.SetStore()
        outlined = room >= OUTLINE_BYTES * len(documents)
        room -= OUTLINE_BYTES * len(documents) if outlined else 0
        for name in work.names("sets-"):
            piece = work.open(name)
            room -= 8 * piece.length("elements")
            self._store.add(str(piece.path), piece.position("elements"), piece.read("offsets"), outlined, room >= 0)

    def similar(self, pairs: NDArray[np.uint64], floor: float, threads: int) -> PairBlock:
        """The pairs whose similarity reaches the floor, in their order."""
        return PairBlock(*self._store.similar(pairs, self._places, floor, threads))


class SetSpill:
    """Shingle sets on their way to files."""

    def __init__(self, work: Work, shingler: Shingler | None, limits: Limits) -> None:
        self.work, self.shingler, self.limits = work, shingler, limits
        self.sizes: list[NDArray[np.int64]] = []
        self.elements: list[NDArray[np.uint64]] = []
        self.gathered = 0
        self.number = len(work.names("sets-"))

    def add(self, texts: pa.Array) -> None:
        """Shingles texts and writes what has gathered when it is much."""
        offsets, elements = element_arrays(texts, self.shingler, self.limits.threads)
        self.sizes.append(np.diff(offsets))
        self.elements.append(elements)
        self.gathered += len(elements)
        if self.gathered >= min(SPILL_ELEMENTS, self.limits.memory // 64):
            self.flush()

    def flush(self) -> None:
        """Writes a file of what has gathered."""
        if not self.sizes:
            return
        sizes = np.concatenate(self.sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        arrays = {"offsets": offsets, "elements": np.concatenate(self.elements)}
        self.work.write(f"sets-{self.number:06}", arrays)
        self.number += 1
        self.sizes, self.elements, self.gathered = [], [], 0
