"""Exact join: the sets of all documents in, every pair that reaches the threshold out; none is missed.

The sets stand in files. Their elements are counted once. Then as many sets as fit a part of the memory become an index,
and every set from there on is looked up in it; then come the next ones. Memory never decides what is found.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise.search.bands import NOBODY, split
from minwise.search.candidates import write_proposals
from minwise.search.clustering import KeepOrder
from minwise.search.engine import Job
from minwise.search.workdir import Work
from minwise.settings import Limits

__all__ = ["index_elements", "propose_similar"]

# What the cap on buckets met, of which there are none here.
NO_CAPS = (0, 0, 0, 0)


def index_elements(room: int, threshold: float) -> int:
    """How many elements an index in so many bytes may have: each takes 8, and those of prefixes 32 while it is made.

    Entries of prefixes are counted in 32 bits.
    """
    return min(int(room / (8 + 32 * (1 - threshold))), 2**32 - 1)


def propose_similar(job: Job, order: KeepOrder, protected: int, threshold: float) -> None:
    """Leaves every pair of similar sets in the work directory, as the bands leave their candidates."""
    join = _Join(job.work, order, protected, threshold, job.limits)
    with job.progress.stage("join", sum(join.sizes), "sets") as stage:
        for first, end in pairwise(join.cuts):
            name = f"{first:05}-{end:05}"
            if not job.work.has(f"candidates-{name}"):
                join.propose(first, end, name)
            stage.advance(sum(join.sizes[first:end]))


class _Join:
    """The files of sets, and how they are cut into indexes."""

    def __init__(self, work: Work, order: KeepOrder, protected: int, threshold: float, limits: Limits) -> None:
        self.work, self.protected, self.threshold, self.limits = work, protected, threshold, limits
        self.pieces = [work.open(name) for name in work.names("sets-")]
        self.sizes = [piece.length("offsets") - 1 for piece in self.pieces]
        self.place_of = order.number_of[work.open("sets").read("documents")]
        self.numbers = np.split(np.arange(sum(self.sizes), dtype=np.uint32), np.cumsum(self.sizes)[:-1])
        self.cuts = self._cuts()
        if work.has("ranges") and work.read_note("ranges")["parts"] != self.cuts:  # of a run with another memory limit
            work.forget("candidates-")
            work.forget("proposed-")
        work.note("ranges", {"parts": self.cuts})
        self._rarity: _kernel.Rarity | None = None

    def _cuts(self) -> list[int]:
        """The first file of each index, and one past the last."""
        most, cuts, elements = index_elements(self.limits.memory // 4, self.threshold), [0], 0
        for number, piece in enumerate(self.pieces):
            elements += piece.length("elements")
            if elements > most and cuts[-1] < number:
                cuts.append(number)
                elements = piece.length("elements")
        return [*cuts, len(self.pieces)] if self.pieces else [0]

    def rarity(self) -> "_kernel.Rarity":
        """How often each element occurs in all sets."""
        if self._rarity is None:
            elements = sum(piece.length("elements") for piece in self.pieces)
            self._rarity = _kernel.Rarity(elements, self.limits.memory // 8)
            for piece in self.pieces:
                self._rarity.add(piece.read("elements"), self.limits.threads)
        return self._rarity

    def propose(self, first: int, end: int, name: str) -> None:
        """Finds the similar pairs of the sets in some files, and of these sets with all later ones."""
        self.work.forget(f"proposed-{name}-")  # of a run that was cut short
        index, run, gathered = self._index(first, end), 0, []
        for pairs in self._pairs(index, end):
            gathered.append(pairs)
            if sum(map(len, gathered)) >= self.limits.memory // 64:
                self._write(f"{name}-{run:05}", gathered)
                run, gathered = run + 1, []
        self._write(f"{name}-{run:05}", gathered)
        self.work.write(f"candidates-{name}", {}, counts=NO_CAPS)

    def _index(self, first: int, end: int) -> "_kernel.SetIndex":
        batches = [(_offsets(piece), piece.map("elements")) for piece in self.pieces[first:end]]
        numbers = np.concatenate(self.numbers[first:end])
        return _kernel.SetIndex(self.threshold, self.rarity(), True, batches, numbers, self.limits.threads)

    def _pairs(self, index: "_kernel.SetIndex", end: int) -> Iterator[NDArray[np.uint64]]:
        """The similar pairs among the sets of an index, and of these with the sets in the files from ``end`` on."""
        most, threads, place = self.limits.memory // 256, self.limits.threads, 0
        while place < len(index):
            queries, members, _, done = index.matches_within(place, most, threads)
            yield self._packed(queries, members)
            place += done
        for number in range(end, len(self.pieces)):
            offsets, elements = _offsets(self.pieces[number]), self.pieces[number].map("elements")
            numbers = self.numbers[number]
            while len(numbers):
                queries, members, _, done = index.matches(offsets, elements, numbers, most, threads)
                yield self._packed(queries, members)
                offsets, numbers = offsets[done:], numbers[done:]

    def _packed(self, queries: NDArray[np.uint32], members: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """The pairs ``low << 32 | high`` of places in the keep order, without those of two only compared against."""
        left, right = self.place_of[queries], self.place_of[members]
        low, high = np.minimum(left, right).astype(np.uint64), np.maximum(left, right)
        pairs: NDArray[np.uint64] = (low << np.uint64(32) | high)[high >= self.protected]
        return pairs

    def _write(self, name: str, gathered: list[NDArray[np.uint64]]) -> None:
        pairs = np.concatenate([np.empty(0, dtype=np.uint64), *gathered])
        pairs.sort()
        low, high = split(pairs)
        starts = np.flatnonzero(np.diff(low, prepend=NOBODY)).astype(np.uint32)
        ends = np.append(starts[1:], np.uint32(len(low)))[: len(starts)]
        write_proposals(self.work, name, np.stack([low[starts], starts, ends], axis=1), high)


def _offsets(piece: ArrayFile) -> NDArray[np.int64]:
    return piece.read("offsets").astype(np.int64)
