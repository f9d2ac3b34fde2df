"""Exact join: every pair of sets that reaches the threshold, without bands; no pair is missed.

With ``exact=True`` this replaces :meth:`CandidateSearch.propose_candidates`. It reads the spilled sets of all
documents: their elements are counted once; then as many sets as fit a quarter of the memory limit become an index, in
which every later set is looked up; then the next sets follow. The memory limit changes the number of passes over the
later files, never the result.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise.search.bands import NO_DOCUMENT, pack_pairs, unpack_pairs
from minwise.search.candidates import write_proposals
from minwise.search.clustering import KeepOrder
from minwise.search.documents import SearchJob
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits

__all__ = ["max_index_elements", "propose_similar"]

# Counts of the bucket cap: the join has no buckets.
NO_CAPS = (0, 0, 0, 0)


def max_index_elements(budget: int, threshold: float) -> int:
    """Return how many elements an index of ``budget`` bytes can have.

    Each element takes 8 bytes, and while the index is built those of prefixes take 32 more. The entries of prefixes are
    counted in 32 bits.
    """
    return min(int(budget / (8 + 32 * (1 - threshold))), 2**32 - 1)


def propose_similar(job: SearchJob, order: KeepOrder, protected: int, threshold: float) -> None:
    """Write every pair of similar sets to the work directory, in the files in which bands write candidates."""
    join = _Join(job.work, order, protected, threshold, job.limits)
    with job.progress.stage("join", sum(join.sizes), "sets") as stage:
        for first, end in pairwise(join.cuts):
            name = f"{first:05}-{end:05}"
            if not job.work.has(f"candidates-{name}"):
                join.propose(first, end, name)
            stage.advance(sum(join.sizes[first:end]))


class _Join:
    """Files of spilled sets, cut into indexes."""

    def __init__(
        self, work: WorkDirectory, order: KeepOrder, protected: int, threshold: float, limits: RunLimits
    ) -> None:
        self.work, self.protected, self.threshold, self.limits = work, protected, threshold, limits
        self.files = [work.open(name) for name in work.names("sets-")]
        self.sizes = [file.length("offsets") - 1 for file in self.files]
        self.rank_of = order.rank_of[work.open("sets").read("documents")]
        self.numbers = np.split(np.arange(sum(self.sizes), dtype=np.uint32), np.cumsum(self.sizes)[:-1])
        self.cuts = self._cuts()
        if work.has("ranges") and work.read_json("ranges")["parts"] != self.cuts:  # a run with another memory limit
            work.delete("candidates-")
            work.delete("proposed-")
        work.write_json("ranges", {"parts": self.cuts})
        self._rarity: _kernel.Rarity | None = None

    def _cuts(self) -> list[int]:
        """Return the first file of each index, followed by the number of files."""
        most, cuts, elements = max_index_elements(self.limits.memory // 4, self.threshold), [0], 0
        for number, file in enumerate(self.files):
            elements += file.length("elements")
            if elements > most and cuts[-1] < number:
                cuts.append(number)
                elements = file.length("elements")
        return [*cuts, len(self.files)] if self.files else [0]

    def rarity(self) -> "_kernel.Rarity":
        """Return how often each element occurs in all sets."""
        if self._rarity is None:
            elements = sum(file.length("elements") for file in self.files)
            self._rarity = _kernel.Rarity(elements, self.limits.memory // 8)
            for file in self.files:
                self._rarity.add(file.read("elements"), self.limits.threads)
        return self._rarity

    def propose(self, first: int, end: int, name: str) -> None:
        """Write the similar pairs among the sets of some files, and of these sets with all later ones."""
        self.work.delete(f"proposed-{name}-")  # of an interrupted run
        index, run, collected = self._index(first, end), 0, []
        for pairs in self._pairs(index, end):
            collected.append(pairs)
            if sum(map(len, collected)) >= self.limits.memory // 64:
                self._write(f"{name}-{run:05}", collected)
                run, collected = run + 1, []
        self._write(f"{name}-{run:05}", collected)
        self.work.write(f"candidates-{name}", {}, counts=NO_CAPS)

    def _index(self, first: int, end: int) -> "_kernel.SetIndex":
        batches = [(_offsets(file), file.map("elements")) for file in self.files[first:end]]
        numbers = np.concatenate(self.numbers[first:end])
        return _kernel.SetIndex(self.threshold, self.rarity(), True, batches, numbers, self.limits.threads)

    def _pairs(self, index: "_kernel.SetIndex", end: int) -> Iterator[NDArray[np.uint64]]:
        """Yield the similar pairs among the sets of an index, and of these with the sets of file ``end`` and later."""
        most, threads, start = self.limits.memory // 256, self.limits.threads, 0
        while start < len(index):
            queries, members, _, done = index.matches_within(start, most, threads)
            yield self._packed(queries, members)
            start += done
        for number in range(end, len(self.files)):
            offsets, elements = _offsets(self.files[number]), self.files[number].map("elements")
            numbers = self.numbers[number]
            while len(numbers):
                queries, members, _, done = index.matches(offsets, elements, numbers, most, threads)
                yield self._packed(queries, members)
                offsets, numbers = offsets[done:], numbers[done:]

    def _packed(self, queries: NDArray[np.uint32], members: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return packed pairs of ranks, without those of two documents that are only compared against."""
        left, right = self.rank_of[queries], self.rank_of[members]
        high = np.maximum(left, right)
        pairs: NDArray[np.uint64] = pack_pairs(np.minimum(left, right), high)[high >= self.protected]
        return pairs

    def _write(self, name: str, collected: list[NDArray[np.uint64]]) -> None:
        pairs = np.concatenate([np.empty(0, dtype=np.uint64), *collected])
        pairs.sort()
        low, high = unpack_pairs(pairs)
        starts = np.flatnonzero(np.diff(low, prepend=NO_DOCUMENT)).astype(np.uint32)
        ends = np.append(starts[1:], np.uint32(len(low)))[: len(starts)]
        write_proposals(self.work, name, np.stack([low[starts], starts, ends], axis=1), high)


def _offsets(file: ArrayFile) -> NDArray[np.int64]:
    return file.read("offsets").astype(np.int64)
