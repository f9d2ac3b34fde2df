"""Outcome: verified pairs and a threshold in; who is kept, and who is removed for whom, out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from minwise.engines.found import Found
from minwise.engines.near_misses import NearMisses
from minwise.results.removals import Removals, find_removals
from minwise.stages.band import FAULTY
from minwise.stages.cluster import PairBlock

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What becomes of the documents of a search.

    Attributes:
        found: What the search left.
        raised: A threshold above that of the search; None for its own.
    """

    found: Found
    raised: float | None = None

    @property
    def threshold(self) -> float:
        """The similarity from which on two documents are near-duplicates."""
        return self.found.settings.plan.threshold if self.raised is None else self.raised

    def blocks(self) -> Iterator[PairBlock]:
        """The pairs that reach the threshold, ascending, block by block."""
        return self.found.blocks(self.raised)

    @cached_property
    def near_misses(self) -> NearMisses:
        """The candidates just below the threshold."""
        return self.found.near_misses(self.raised)

    @cached_property
    def removals(self) -> Removals:
        """Who is removed, and for whom."""
        return find_removals(self.found, self.blocks)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for what is removed or could not be read."""
        keep: NDArray[np.bool_] = self.found.documents.states != FAULTY
        keep[self.removals.documents] = False
        return keep[self.found.documents.protected :]
