"""Pairs of sets of known similarity, sketched under many seeds: the samples of the statistics tests.

The sets are fixed and the seed changes. With random sets and one seed every function would look unbiased, since all
members of a union are then equally likely to be its minimum; with fixed sets only a good family of functions does.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import minwise as mw
from minwise.sketches import Estimates
from minwise.sketches.signatures import Bits
from support.schemes import scheme

Floats = NDArray[np.float64]

SCHEMES = ("minhash", "fast", "oph", "oph+rotation", "oph+optimal")
SLOTS = 256
JACCARDS = (0.3, 0.5, 0.8, 0.95)
TRIALS = 4000


@dataclass(frozen=True, slots=True)
class Cell:
    """Copies of one situation: documents 2i and 2i+1 share a known number of members with each other, none with others.

    Attributes:
        sets: The sets.
        shared: Number of members that a pair shares.
        union: Number of members of the union of a pair.
    """

    sets: mw.ShingleSets
    shared: int
    union: int

    @property
    def jaccard(self) -> float:
        """True similarity."""
        return self.shared / self.union

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Document numbers of each pair."""
        return np.arange(len(self.sets), dtype=np.int64).reshape(-1, 2)


@cache
def cell(size: int, jaccard: float, hash_bits: int = 64) -> Cell:
    """Return pairs of sets of consecutive integers, of this size and the nearest similarity that such sets can have."""
    shared = round(2 * size * jaccard / (1 + jaccard))
    union = 2 * size - shared
    copies = 20 if size <= 1000 else 10
    starts = [first for copy in range(copies) for first in (copy * union, copy * union + size - shared)]
    sets = mw.ShingleSets.from_sets([np.arange(first, first + size, dtype=np.int64) for first in starts])
    kept = sets.hashes & np.uint64(2**hash_bits - 1)
    return Cell(mw.ShingleSets(sets.offsets, kept, settings=sets.settings), shared, union)


@cache
def estimate(
    name: str, size: int, jaccard: float, *, slots: int = SLOTS, bits: Bits | None = None, hash_bits: int = 64
) -> Estimates:
    """Return some thousands of estimates of one cell: every copy under every seed."""
    situation = cell(size, jaccard, hash_bits)
    runs = [
        scheme(name, slots, seed, bits).sketch(situation.sets).estimate_many(situation.pairs)
        for seed in range(1, TRIALS // len(situation.pairs) + 1)
    ]
    value, low, high = (np.concatenate([getattr(run, column) for run in runs]) for column in ("value", "low", "high"))
    return Estimates(value=value, low=low, high=high, confidence=runs[0].confidence)


def errors(name: str, size: int, jaccard: float, *, slots: int = SLOTS, hash_bits: int = 64) -> Floats:
    """Return the estimates minus the true similarity."""
    estimates = estimate(name, size, jaccard, slots=slots, hash_bits=hash_bits)
    return estimates.value - cell(size, jaccard, hash_bits).jaccard
