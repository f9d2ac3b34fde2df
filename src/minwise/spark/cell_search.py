"""Comparison of the candidate pairs of one cell, by the code of the local engine, inside a Spark task.

A task numbers the documents of its cell from 0 in the order of their ranks, writes their buckets and sets to a
temporary directory of its machine, and verifies them as :mod:`minwise.search.needed_pairs` does. Sets that do not fit
memory are read from there, so a cell may have more than memory holds.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_numpy, to_numpy
from minwise._internal.sorted_arrays import distinct
from minwise.errors import InputError
from minwise.progress import NullProgress
from minwise.search.bands import pack_pairs
from minwise.search.candidates import NO_PAIRS, ComparedChunk, write_proposals
from minwise.search.clustering import KeepOrder, PairBlock
from minwise.search.exact_join import CONTAINED, ContainmentJoin
from minwise.search.needed_pairs import verify_stage
from minwise.search.pair_runs import merged_runs
from minwise.search.value_groups import GROUPS, PairRule
from minwise.search.verification import SPILL_ELEMENTS, CandidateVerifier, TextCache, write_verified
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings
from minwise.spark.band_tasks import BucketGroups
from minwise.spark.blocks import BLOCK_BYTES, Batches, received
from minwise.spark.cells import NO_GRID, Grid
from minwise.spark.stage_store import StageFolder
from minwise.spark.weighting import TaskWeights, task_weights

__all__ = [
    "CellSearch",
    "CellTask",
    "ContainmentCell",
    "bucket_batch",
    "groups_of",
    "packed_batch",
    "set_batch",
    "set_pieces",
]

# Memory of the comparison in a task: a quarter of it is for sets, which leaves those of most cells in memory.
CELL_MEMORY = 1 << 30


class CellTask(NamedTuple):
    """What all cells of a stage have in common.

    Attributes:
        settings: Settings of the search.
        floor: Similarity down to which pairs are compared exactly.
        threshold: Minimum similarity of pairs; those below it are near misses.
        stage: Name of the stage of :mod:`minwise.search.needed_pairs`: which pairs are compared.
        classes: Number of classes of the sample of a report; 0 for none.
        by_rank: Whether pairs are written by rank; otherwise by the number of a document in the cell.
        grid: With containment, the intervals of the ranks of all documents; a cell has two of them.
        protected: With containment, the first ranks, whose documents lie in no other one.
        weights: With weights, where tasks read them.
        groups: Where tasks read the group of each rank, if values decide which pairs of a cell are compared.
    """

    settings: SearchSettings
    floor: float
    threshold: float
    stage: str
    classes: int = 0
    by_rank: bool = True
    grid: Grid = NO_GRID
    protected: int = 0
    weights: TaskWeights | None = None
    groups: str | None = None


def bucket_batch(groups: BucketGroups) -> pa.RecordBatch:
    """Return buckets as a record batch: a list of members, and which of them are paired."""
    offsets = np.concatenate([[0], np.cumsum(groups.buckets[:, 0], dtype=np.int64)])
    members = pa.LargeListArray.from_arrays(from_numpy(offsets), from_numpy(groups.members))
    columns = {"heads": groups.buckets[:, 1], "partner": groups.buckets[:, 2]}
    rows = {name: from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}
    return pa.record_batch({"members": members, **rows})


def set_batch(ranks: NDArray[Any], sizes: NDArray[np.int64], elements: NDArray[Any]) -> pa.RecordBatch:
    """Return sets as a record batch."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return pa.record_batch(
        {
            "rank": from_numpy(ranks),
            "elements": pa.LargeListArray.from_arrays(from_numpy(offsets), from_numpy(elements)),
        }
    )


def set_pieces(rank: NDArray[Any], elements: NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
    """Yield a set that is larger than a block in pieces."""
    cuts = range(0, len(elements), BLOCK_BYTES // 8)
    for number, start in enumerate(cuts):
        piece = elements[start : start + BLOCK_BYTES // 8]
        batch = set_batch(rank, np.array([len(piece)]), piece)
        yield batch.replace_schema_metadata({"piece": str(number), "pieces": str(len(cuts))})


def packed_batch(ranks: NDArray[Any], packed: NDArray[np.uint8]) -> pa.RecordBatch:
    """Return packed signatures as a record batch."""
    slots = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(packed.shape[1]), len(ranks), [None, pa.py_buffer(np.ascontiguousarray(packed))]
    )
    return pa.record_batch({"rank": from_numpy(ranks), "packed": slots})


class CellSearch(CandidateVerifier):
    """Verification of the pairs of one cell.

    Attributes:
        cell: Number of the cell; -1 if it received nothing.
        ranks: Rank of each document of the cell, ascending.
        sets: Number of sets received.
    """

    def __init__(self, task: CellTask, batches: Batches, folder: Path) -> None:
        """Receive the blocks of a cell.

        Args:
            task: What is to be compared.
            batches: Rows of blocks.
            folder: Directory for buckets, sets and pairs.
        """
        self.settings, self.floor, self.stage = task.settings, task.floor, task.stage
        self.limits, self.work = RunLimits(memory=CELL_MEMORY, threads=1), WorkDirectory(folder, durable=False)
        self.progress, self.text_cache = NullProgress(), TextCache(0)
        self.cell, self._packed_slots = -1, list[NDArray[np.uint8]]()
        self._task = task
        sets, groups = self._receive(batches)
        self.sets = len(sets)
        members = np.concatenate([group.members for group in groups]) if groups else sets[:0]
        self.ranks = distinct(np.concatenate([members, sets.astype(members.dtype)]))
        protected = int(np.searchsorted(self.ranks, task.protected))
        ranks = np.arange(len(self.ranks), dtype=np.uint32)
        self.order = KeepOrder(ranks, protected=protected, is_document_order=True)
        self.documents = self.ranks  # type: ignore[assignment] # only their number is used
        self.sample_numbers = self.ranks.astype(np.uint64)
        self._store(groups, members, sets)

    @cached_property
    def weights(self) -> "_kernel.Weights | None":
        """The weights of elements; None if all weigh the same."""
        return None if self._task.weights is None else task_weights(*self._task.weights)

    @property
    def pair_rule(self) -> PairRule | None:
        """Which pairs of documents of the cell are compared; None if all are."""
        if self._task.groups is None:
            return None
        with StageFolder(self._task.groups).reading(GROUPS, GROUPS) as work:
            groups = work.open(GROUPS).map(GROUPS)[self.ranks]
        return PairRule(groups, self.settings.within is not None)

    def _receive(self, batches: Batches) -> tuple[NDArray[Any], list[BucketGroups]]:
        """Write the sets to files; return the ranks of their documents, and the buckets."""
        ranks, groups, spill = list[NDArray[Any]](), list[BucketGroups](), _SetSpill(self.work)
        for self.cell, batch in received(batches):
            if "members" in batch.schema.names:
                groups.append(groups_of(batch))
                continue
            if "packed" in batch.schema.names:
                ranks.append(to_numpy(batch.column("rank")))
                self._packed_slots.append(_slots_of(batch.column("packed")))
            else:
                ranks.append(spill.add(batch))
        spill.flush()
        return np.concatenate(ranks) if ranks else np.empty(0, dtype=np.uint32), groups

    def _store(self, groups: list[BucketGroups], members: NDArray[Any], sets: NDArray[Any]) -> None:
        """Write the buckets, and which document each set is of.

        Raises:
            InputError: If a document has no set.
        """
        numbers, of_sets = (np.searchsorted(self.ranks, ranks).astype(np.uint32) for ranks in (members, sets))
        lacking = len(self.ranks) - len(distinct(of_sets))
        if lacking and self.settings.verify != "none":
            raise InputError(f"the input changed while it was read: {lacking} documents could not be read again")
        buckets = np.concatenate([np.empty((0, 3), dtype=np.uint32), *(group.buckets for group in groups)])
        write_proposals(self.work, "00000", _kernel.pair_ranges(buckets, numbers), numbers)
        if self._packed_slots:
            self._packed_slots = [np.concatenate(self._packed_slots)[np.argsort(of_sets)]]
        else:
            self.work.write("sets", {"documents": of_sets})

    def run(self) -> list[str]:
        """Compare the pairs; return the names of the files of compared pairs in the directory."""
        verify_stage(self, self.stage, self._task.classes)
        return self.work.names(f"{self.stage}-")

    def write_compared(self, name: str, chunk: ComparedChunk) -> None:
        """Write a chunk of compared candidates."""
        similar = chunk.similar
        if self._task.by_rank:
            similar = PairBlock(self.ranks[similar.low], self.ranks[similar.high], similar.similarity)
        write_verified(self.work, name, chunk._replace(similar=similar), self._task.threshold)

    def pairs(self) -> Iterator[PairBlock]:
        """Yield the pairs that :meth:`run` has written, in ascending order."""
        for file in map(self.work.open, self.work.names(f"{self.stage}-")):
            yield PairBlock(*(file.read(column) for column in ("low", "high", "similarity")))

    def sampled_pairs(self) -> int:
        """Return the estimated number of pairs that are similar and not in :meth:`pairs`."""
        files = map(self.work.open, self.work.names(f"{self.stage}-"))
        return self._task.classes * sum(int(file.read("sampled_pairs").sum()) for file in files)

    def similarities(self, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the exact similarities of documents of the cell."""
        return self.spilled.similar(pack_pairs(low, high), 0.0, 1).similarity

    def _packed(self, documents: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self._packed_slots[0][documents])


class ContainmentCell(CellSearch):
    """Containment join of the sets of two intervals of ranks, or of one with itself."""

    def run(self) -> list[str]:
        """Write the pairs of the two intervals by rank, and first the sizes of all sets; return the names of files."""
        rule = self.pair_rule
        join = ContainmentJoin(self.work, self.order, self.floor, self.limits, self.spilled, rule)
        for _ in join.run():
            pass
        of_sets, sizes = self.work.open("sets").read("documents"), join.lengths.astype(np.uint64)
        for number, block in enumerate(chain([NO_PAIRS], merged_runs(self.work, CONTAINED, self.chunk))):
            found = self._between(block)
            arrays: Arrays = {"low": found.low, "high": found.high, "similarity": found.similarity}
            self.work.write(f"{self.stage}-{number:06}", {**arrays, "ranks": self.ranks[of_sets], "sizes": sizes})
            of_sets, sizes = of_sets[:0], sizes[:0]
        self.work.write_json(self.stage, {})
        return self.work.names(f"{self.stage}-")

    def _between(self, block: PairBlock) -> PairBlock:
        """Return the pairs that belong to the cell, by rank: those in one interval belong to another cell."""
        low, high = self.ranks[block.low], self.ranks[block.high]
        cells = self._task.grid.cell_of_pairs(low, high)
        return PairBlock(low, high, block.similarity).where(cells == self.cell)


class _SetSpill:
    """Writer of received sets to files that the kernel reads."""

    def __init__(self, work: WorkDirectory) -> None:
        self.work, self.number = work, 0
        self.sizes, self.elements, self.held = list[NDArray[np.int64]](), list[NDArray[np.uint64]](), 0
        self.pieces: dict[int, dict[int, NDArray[np.uint64]]] = {}  # of sets that are not complete, by rank

    def add(self, batch: pa.RecordBatch) -> NDArray[Any]:
        """Add sets, and write a file when enough are collected; return the ranks of those that are complete."""
        ranks, lists = to_numpy(batch.column("rank")), batch.column("elements")
        sizes, elements = np.diff(to_numpy(lists.offsets)), to_numpy(lists.values)
        if batch.schema.metadata:
            number, count = (int(batch.schema.metadata[name]) for name in (b"piece", b"pieces"))
            pieces = self.pieces.setdefault(int(ranks[0]), {})
            pieces[number] = elements
            if len(pieces) < count:
                return ranks[:0]
            elements = np.concatenate([piece for _, piece in sorted(self.pieces.pop(int(ranks[0])).items())])
            sizes = np.array([len(elements)])
        self.sizes.append(sizes)
        self.elements.append(elements)
        self.held += len(elements)
        if self.held >= SPILL_ELEMENTS:
            self.flush()
        return ranks

    def flush(self) -> None:
        """Write the sets that are collected."""
        if self.sizes:
            offsets = np.concatenate([[0], np.cumsum(np.concatenate(self.sizes))]).astype(np.uint64)
            elements = self.elements[0] if len(self.elements) == 1 else np.concatenate(self.elements)
            self.work.write(f"sets-{self.number:06}", {"offsets": offsets, "elements": elements})
            self.sizes, self.elements, self.held, self.number = [], [], 0, self.number + 1


def groups_of(batch: pa.RecordBatch) -> BucketGroups:
    """Return the buckets of a batch that :func:`bucket_batch` made."""
    members = batch.column("members")
    sizes = np.diff(to_numpy(members.offsets)).astype(np.uint32)
    heads, partners = (to_numpy(batch.column(name)) for name in ("heads", "partner"))
    buckets = np.stack([sizes, heads, partners], axis=1).astype(np.uint32, copy=False)
    return BucketGroups(buckets, to_numpy(members.flatten()))


def _slots_of(column: pa.Array) -> NDArray[np.uint8]:
    """Return packed signatures as a matrix."""
    width = column.type.byte_width
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)[column.offset * width :]
    return flat[: len(column) * width].reshape(len(column), width)
