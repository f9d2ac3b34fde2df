"""Near misses: candidates just below the threshold, counted and the closest kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minwise._internal.array_files import ArrayFile, Arrays
from minwise.search.clustering import PairBlock

__all__ = [
    "BINS",
    "BORDERS",
    "CLOSEST",
    "MARGIN",
    "NearMisses",
    "bin_of",
    "count_by_bin",
    "floor_bin",
    "places_of_smallest",
]

BINS = 100


BORDERS = np.arange(BINS + 1) / BINS


# How far below the threshold a candidate may be to be a near miss.
MARGIN = 0.05


# Near misses that are kept: of these the report shows a few, those between two kept documents.
CLOSEST = 10_000


def bin_of(similarity: float) -> int:
    """The bin that a similarity is in."""
    return int(np.searchsorted(BORDERS[1:-1], similarity, side="right"))


def floor_bin(threshold: float) -> int:
    """The bin in which near misses of a threshold begin.

    >>> [floor_bin(threshold) for threshold in (0.8, 0.7, 0.805, 0.03)]
    [75, 65, 75, 0]
    """
    return bin_of(round(threshold - MARGIN, 9))  # 0.7 - 0.05 is a little less than 0.65


def count_by_bin(similarity: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many similarities are in each bin."""
    bins = np.minimum((similarity * BINS).astype(np.uint8), BINS - 1)  # or a neighbour: multiplying rounds
    bins -= similarity < BORDERS[bins]
    bins += (similarity >= BORDERS[bins + 1]) & (bins < BINS - 1)
    return np.bincount(bins, minlength=BINS)


def places_of_smallest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places of the ``count`` smallest values, ascending; of equal ones the first."""
    if len(values) <= count:
        return np.argsort(values, kind="stable")
    places = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return places[np.argsort(values[places], kind="stable")][:count]


@dataclass(frozen=True, slots=True)
class NearMisses:
    """Candidates just below a threshold. What no band proposed was not compared, and is not among them.

    Attributes:
        counts: How many there are in each bin of similarity.
        closest: The 10,000 most similar ones, descending; of equally similar ones the first.
    """

    counts: NDArray[np.int64]
    closest: PairBlock

    @classmethod
    def of(cls, block: PairBlock) -> "NearMisses":
        """All pairs of a block that ascends."""
        return cls(count_by_bin(block.similarity), _at(block, places_of_smallest(-block.similarity, CLOSEST)))

    @classmethod
    def none(cls) -> "NearMisses":
        """Not a single one."""
        nobody = np.empty(0, dtype=np.uint32)
        return cls.of(PairBlock(nobody, nobody, np.empty(0)))

    @classmethod
    def read(cls, piece: ArrayFile) -> "NearMisses":
        """Those of a piece."""
        columns = (piece.read(f"near_{name}") for name in ("low", "high", "similarity"))
        return cls(piece.read("near_counts").astype(np.int64), PairBlock(*columns))

    def arrays(self) -> Arrays:
        """What :meth:`read` reads."""
        columns = {f"near_{name}": getattr(self.closest, name) for name in ("low", "high", "similarity")}
        return {"near_counts": self.counts.astype(np.uint64), **columns}

    def joined(self, other: "NearMisses") -> "NearMisses":
        """Those of both; in whatever pieces they are joined, it is the same."""
        one, two = self.closest, other.closest
        low, high, similarity = (
            np.concatenate([getattr(one, name), getattr(two, name)]) for name in ("low", "high", "similarity")
        )
        order = np.lexsort((high, low, -similarity))[:CLOSEST]
        return NearMisses(self.counts + other.counts, _at(PairBlock(low, high, similarity), order))

    def from_bin(self, first: int) -> "NearMisses":
        """Those that are in a bin or above it."""
        counts = np.where(np.arange(BINS) >= first, self.counts, 0)
        return NearMisses(counts, self.closest.where(self.closest.similarity >= BORDERS[first]))


def _at(block: PairBlock, places: NDArray[np.int64]) -> PairBlock:
    return PairBlock(block.low[places], block.high[places], block.similarity[places])
