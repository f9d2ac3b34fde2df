"""Exact join: every pair of sets that reaches the threshold, without bands; no pair is missed.

With ``exact=True`` this replaces :meth:`CandidateSearch.propose_candidates`. It reads the spilled sets of all
documents: their elements are counted once; then as many sets as fit a quarter of the memory limit become an index, in
which every later set is looked up; then the next sets follow. The memory limit changes the number of passes over the
later files, never the result.

If two tables are linked, an index has only sets of the second one, and those of the first are looked up in it.

With ``measure="containment"`` an index has only the prefixes of its sets, and every set is looked up in every index:
the sets in which a set lies may come before it or after it.
"""

from collections.abc import Iterable, Iterator, Sized
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise.search.bands import NO_DOCUMENT, pack_pairs, unpack_pairs
from minwise.search.candidates import VERIFIED, ComparedChunk, complete_counts, write_proposals
from minwise.search.clustering import KeepOrder, PairBlock
from minwise.search.documents import SearchJob
from minwise.search.pair_runs import merged_runs, write_run
from minwise.search.value_groups import PairRule
from minwise.search.verification import CandidateVerifier, SpilledSets
from minwise.search.weighting import search_weights
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits

__all__ = [
    "CONTAINED",
    "ContainmentJoin",
    "find_contained",
    "max_index_elements",
    "propose_similar",
    "write_contained",
]

# Offsets and elements of the sets of files.
Batches = list[tuple[NDArray[np.int64], NDArray[Any]]]
# Beginning of the names of the sorted runs of a containment join.
CONTAINED = "contained-"
# Counts of the bucket cap: the join has no buckets.
NO_CAPS = (0, 0, 0, 0)
# Bytes of an entry of a prefix while an index is built, and of a set of the index: its entries above the share of its
# elements, and its place in the order of sizes.
ENTRY_BYTES, PREFIX_BYTES = 32, 140


def max_index_elements(budget: int, threshold: float) -> int:
    """Return how many elements an index of ``budget`` bytes can have.

    Each element takes 8 bytes, and while the index is built those of prefixes take 32 more. The entries of prefixes are
    counted in 32 bits.
    """
    return min(int(budget / (8 + 32 * (1 - threshold))), 2**32 - 1)


def propose_similar(job: SearchJob, order: KeepOrder, threshold: float, rule: PairRule | None = None) -> None:
    """Write every pair of similar sets to the work directory, in the files in which bands write candidates."""
    weights = search_weights(job.work, job.settings, job.limits)
    join = _CrossJoin if job.corpus.linked else _Join
    _propose(job, join(job.work, order, threshold, job.limits, weights, rule))


def find_contained(job: SearchJob, search: CandidateVerifier) -> None:
    """Write every pair of sets of which one lies in the other, with its containment, as verified pairs.

    Ranks must be those of :meth:`CandidateVerifier.order_by_size`.
    """
    if job.work.has(VERIFIED):
        return
    join = _CrossContainmentJoin if job.corpus.linked else ContainmentJoin
    _propose(job, join(job.work, search.order, search.floor, job.limits, search.spilled, search.pair_rule))
    write_contained(search)


def write_contained(search: CandidateVerifier) -> None:
    """Merge the sorted runs of pairs in the work directory to the files of verified pairs."""
    work = search.work
    work.delete(f"{VERIFIED}-")  # of an interrupted run
    found = 0
    for number, block in enumerate(merged_runs(work, CONTAINED, search.chunk)):
        search.write_compared(f"{VERIFIED}-{number:06}", ComparedChunk(block, {}, 0))
        found += len(block)
    search.finish(complete_counts(found, found))
    work.delete("candidates-")
    work.delete(CONTAINED)


def _propose(job: SearchJob, join: "_Join") -> None:
    with job.progress.stage("join", sum(join.sizes), "sets") as stage:
        for sets in join.run():
            stage.advance(sets)


class _Join:
    """Files of spilled sets, cut into indexes.

    Attributes:
        runs: Beginning of the names of the files of pairs.
        protected: The first ranks, of which no two are a pair.
        seconds: With two linked tables, the number of sets of the second one.
    """

    runs = "proposed-"

    def __init__(
        self,
        work: WorkDirectory,
        order: KeepOrder,
        threshold: float,
        limits: RunLimits,
        weights: "_kernel.Weights | None" = None,
        rule: PairRule | None = None,
    ) -> None:
        self.work, self.protected, self.threshold, self.limits = work, order.protected, threshold, limits
        self.rule = rule
        self.weights = weights
        self.files = [work.open(name) for name in work.names("sets-")]
        self.sizes = [file.length("offsets") - 1 for file in self.files]
        documents = work.open("sets").read("documents")
        self.rank_of = order.rank_of[documents]
        self.seconds = int(np.searchsorted(documents, order.protected))
        self.numbers = np.split(np.arange(sum(self.sizes), dtype=np.uint32), np.cumsum(self.sizes)[:-1])
        self.cuts = self._cuts()
        if work.has("ranges") and work.read_json("ranges")["parts"] != self.cuts:  # a run with another memory limit
            work.delete("candidates-")
            work.delete(self.runs)
        work.write_json("ranges", {"parts": self.cuts})
        self._rarity: _kernel.Rarity | None = None

    def _cuts(self) -> list[int]:
        """Return the first file of each index, followed by the number of files."""
        room, cuts, taken = self._room(), [0], 0
        for number, file in enumerate(self.files):
            taken += self._weight(file)
            if taken > room and cuts[-1] < number:
                cuts.append(number)
                taken = self._weight(file)
        return [*cuts, len(self.files)] if self.files else [0]

    def _room(self) -> int:
        """Return how much the files of an index may weigh."""
        return max_index_elements(self.limits.memory // 4, self.threshold)

    def _weight(self, file: ArrayFile) -> int:
        return file.length("elements")

    def side(self, number: int, *, second: bool) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint32]]:
        """Return offsets, elements and numbers of the sets that a file has of one of two linked tables."""
        file, numbers = self.files[number], self.numbers[number]
        cut = int(np.searchsorted(numbers, self.seconds))
        offsets = _offsets(file)
        chosen = slice(None, cut) if second else slice(cut, None)
        return offsets[: cut + 1] if second else offsets[cut:], file.map("elements"), numbers[chosen]

    def rarity(self) -> "_kernel.Rarity":
        """Return how often each element occurs in all sets."""
        if self._rarity is None:
            elements = sum(file.length("elements") for file in self.files)
            self._rarity = _kernel.Rarity(elements, self.limits.memory // 8)
            for file in self.files:
                self._rarity.add(file.read("elements"), self.limits.threads)
        return self._rarity

    def run(self) -> Iterator[int]:
        """Write the pairs of each index that an earlier run has not finished; yield the number of its sets."""
        for first, end in pairwise(self.cuts):
            name = f"{first:05}-{end:05}"
            if not self.work.has(f"candidates-{name}"):
                self.propose(first, end, name)
            yield sum(self.sizes[first:end])

    def propose(self, first: int, end: int, name: str) -> None:
        """Write the pairs of the sets of some files."""
        self.work.delete(f"{self.runs}{name}-")  # of an interrupted run
        run, collected = 0, list[Any]()
        for pairs in self._pairs(first, end):
            collected.append(pairs)
            if sum(map(len, collected)) >= self.limits.memory // 64:
                self._write(f"{name}-{run:05}", collected)
                run, collected = run + 1, []
        self._write(f"{name}-{run:05}", collected)
        self.work.write(f"candidates-{name}", {}, counts=NO_CAPS)

    def _index(self, batches: Batches, numbers: NDArray[np.uint32]) -> "_kernel.SetIndex":
        threads = self.limits.threads
        return _kernel.SetIndex(self.threshold, self.rarity(), True, batches, numbers, threads, self.weights)

    def _sets(self, first: int, end: int) -> tuple[Batches, NDArray[np.uint32]]:
        """Return the sets of some files, and their numbers."""
        batches = [(_offsets(file), file.map("elements")) for file in self.files[first:end]]
        return batches, np.concatenate(self.numbers[first:end])

    def _pairs(self, first: int, end: int) -> Iterator[Sized]:
        """Yield the similar pairs among the sets of some files, and of these with the sets of all later ones."""
        index = self._index(*self._sets(first, end))
        most, threads, start = self.limits.memory // 256, self.limits.threads, 0
        while start < len(index):
            queries, members, _, done = index.matches_within(start, most, threads)
            yield self._packed(queries, members)
            start += done
        for number in range(end, len(self.files)):
            file = self.files[number]
            yield from self._matches(index, _offsets(file), file.map("elements"), self.numbers[number])

    def _matches(
        self,
        index: "_kernel.SetIndex",
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        numbers: NDArray[np.uint32],
    ) -> Iterator[Sized]:
        """Yield the similar pairs of sets with those of an index."""
        most, threads = self.limits.memory // 256, self.limits.threads
        while len(numbers):
            queries, members, _, done = index.matches(offsets, elements, numbers, most, threads)
            yield self._packed(queries, members)
            offsets, numbers = offsets[done:], numbers[done:]

    def _packed(self, queries: NDArray[np.uint32], members: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return packed pairs of ranks that are compared."""
        left, right = self.rank_of[queries], self.rank_of[members]
        return self._compared(np.minimum(left, right), np.maximum(left, right))

    def _compared(self, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return packed pairs without those of two documents that are never removed, or that the rule leaves out."""
        chosen = high >= self.protected
        if self.rule is not None:
            chosen &= self.rule.allows(low, high)
        pairs: NDArray[np.uint64] = pack_pairs(low, high)[chosen]
        return pairs

    def _write(self, name: str, collected: list[Any]) -> None:
        pairs = np.concatenate([np.empty(0, dtype=np.uint64), *collected])
        pairs.sort()
        low, high = unpack_pairs(pairs)
        starts = np.flatnonzero(np.diff(low, prepend=NO_DOCUMENT)).astype(np.uint32)
        ends = np.append(starts[1:], np.uint32(len(low)))[: len(starts)]
        write_proposals(self.work, name, np.stack([low[starts], starts, ends], axis=1), high)


class _CrossJoin(_Join):
    """Join of the sets of two tables: an index has those of the second one, whose ranks come first."""

    def _pairs(self, first: int, end: int) -> Iterator[Sized]:
        """Yield the similar pairs of the second table's sets in some files with all sets of the first table."""
        batches, numbers = _joined(self.side(number, second=True) for number in range(first, end))
        if len(numbers):
            index = self._index(batches, numbers)
            for number in range(len(self.files)):
                yield from self._matches(index, *self.side(number, second=False))


class ContainmentJoin(_Join):
    """Join whose indexes have the prefixes of sets, in which all sets are looked up.

    Comparing a candidate costs more than writing its containment, so pairs are not compared again.
    """

    runs = CONTAINED

    def __init__(
        self,
        work: WorkDirectory,
        order: KeepOrder,
        threshold: float,
        limits: RunLimits,
        spilled: SpilledSets,
        rule: PairRule | None = None,
    ) -> None:
        super().__init__(work, order, threshold, limits, rule=rule)
        self.spilled = spilled
        self.lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(_offsets(file)) for file in self.files)])

    def _room(self) -> int:
        return self.limits.memory // 4

    def _weight(self, file: ArrayFile) -> int:
        sets = file.length("offsets") - 1
        return int(ENTRY_BYTES * (1 - self.threshold) * file.length("elements")) + PREFIX_BYTES * sets

    def _pairs(self, first: int, end: int) -> Iterator[PairBlock]:
        """Yield the pairs of the sets of some files with any sets in which they lie."""
        index = _kernel.PrefixIndex(self.threshold, self.rarity(), *self._sets(first, end), self.limits.threads)
        for file, numbers in zip(self.files, self.numbers, strict=True):
            yield from self._contained(index, _offsets(file), file.map("elements"), numbers)

    def _contained(
        self,
        index: "_kernel.PrefixIndex",
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        numbers: NDArray[np.uint32],
    ) -> Iterator[PairBlock]:
        """Yield the pairs of sets of an index with sets in which they lie."""
        most, threads = self.limits.memory // 256, self.limits.threads
        while len(numbers):
            candidates, done = index.candidates(offsets, elements, numbers, most, threads)
            yield self.spilled.similar(self._directed(candidates), self.threshold, threads)
            offsets, numbers = offsets[done:], numbers[done:]

    def _directed(self, candidates: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return packed pairs of ranks: the set in which the other may lie, and the other one.

        The first of two equally large sets in keep order is the one in which the other lies. A set that is never
        removed lies in no other one.
        """
        larger, smaller = unpack_pairs(candidates)
        low, high = self.rank_of[larger], self.rank_of[smaller]
        turned = (self.lengths[larger] == self.lengths[smaller]) & (low > high)
        low[turned], high[turned] = high[turned], low[turned]
        return self._compared(low, high)

    def _write(self, name: str, collected: list[PairBlock]) -> None:
        block = PairBlock.concat(collected)
        write_run(self.work, f"{CONTAINED}{name}", pack_pairs(block.low, block.high), block.similarity)


class _CrossContainmentJoin(ContainmentJoin):
    """Containment join of two tables: an index has sets of the first one, which may lie in those of the second.

    Of two equally large sets the kernel takes only the one of the smaller number as the one that may lie in the other.
    Therefore it receives numbers that begin with the first table.
    """

    def side(self, number: int, *, second: bool) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint32]]:
        """Return offsets, elements and numbers, first table first, of the sets that a file has of one table."""
        offsets, elements, numbers = super().side(number, second=second)
        firsts = len(self.lengths) - self.seconds
        return offsets, elements, numbers + np.uint32(firsts) if second else numbers - np.uint32(self.seconds)

    def _directed(self, candidates: NDArray[np.uint64]) -> NDArray[np.uint64]:
        larger, smaller = unpack_pairs(candidates)
        firsts = np.uint32(len(self.lengths) - self.seconds)
        return super()._directed(pack_pairs(larger - firsts, smaller + np.uint32(self.seconds)))

    def _pairs(self, first: int, end: int) -> Iterator[PairBlock]:
        """Yield the pairs of the first table's sets in some files with all sets of the second in which they lie."""
        batches, numbers = _joined(self.side(number, second=False) for number in range(first, end))
        if len(numbers):
            index = _kernel.PrefixIndex(self.threshold, self.rarity(), batches, numbers, self.limits.threads)
            for number in range(len(self.files)):
                yield from self._contained(index, *self.side(number, second=True))


def _joined(sides: Iterable[tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint32]]]) -> tuple[Batches, Any]:
    """Return the sets of one side of several files, and their numbers."""
    parts = [part for part in sides if len(part[2])]
    numbers = [numbers for _, _, numbers in parts]
    return [(offsets, elements) for offsets, elements, _ in parts], np.concatenate([np.empty(0, np.uint32), *numbers])


def _offsets(file: ArrayFile) -> NDArray[np.int64]:
    return file.read("offsets").astype(np.int64)
