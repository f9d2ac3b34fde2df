"""Verification on Spark: sets and buckets are sent to the cells of a plan, each of which one task compares."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.sorted_arrays import distinct
from minwise.search.documents import Corpus
from minwise.spark.arrow_columns import Int64s
from minwise.spark.band_tasks import BucketGroups, Ranks, bounded_groups
from minwise.spark.blocks import BLOCK_BYTES, BLOCKS, Batches, bounded, by_part, exchange, rows_of_blocks, take_lists
from minwise.spark.cell_search import (
    CellSearch,
    CellTask,
    ContainmentCell,
    bucket_batch,
    packed_batch,
    set_batch,
    set_pieces,
)
from minwise.spark.cells import NO_CELLS, CellPlan
from minwise.spark.read_tasks import ReadTask, read_sets, task_frame, task_numbers, working_directory
from minwise.spark.stage_store import FILES, StageFile, StageFolder, attempt_name, rows_of_files, task_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CellInputs", "bucket_blocks", "compare_cells", "packed_blocks", "set_blocks"]

# Bytes of a set or signature in a block besides its elements: its rank and its offset.
SET_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class CellInputs:
    """Files that the cells of a stage are filled from.

    Attributes:
        location: Directory of the stages.
        plan: Stage with a file of documents, ranks and cells for each file or task that has sets, and a file of the
            cell of each bucket for each file of buckets; both by the same names.
        buckets: Stage of the buckets.
        bucket_files: Its files.
        set_files: Files of sets in the plan: as many as ``tasks``, or files of keys that have packed signatures.
    """

    location: str
    plan: str
    buckets: str
    bucket_files: list[str]
    set_files: list[str]


def compare_cells(
    session: "SparkSession",
    inputs: CellInputs,
    plan: CellPlan,
    task: CellTask,
    reading: tuple[Corpus, list[ReadTask], Int64s],
    output: str,
) -> "DataFrame":
    """Return the tasks that compare the pairs of each cell and write files of them to the stage ``output``.

    Args:
        session: Session that runs them.
        inputs: Files of buckets, and which documents and buckets are in which cell.
        plan: Cells.
        task: What is to be compared.
        reading: Sources of the documents, their division into tasks, and the number of each source's first document.
        output: Name of the stage.
    """
    corpus, tasks, starts = reading
    directory, (cells, grids) = str(Path.cwd()), (plan.cells, plan.grids)
    settings, location, names = task.settings, inputs.location, [*inputs.set_files, *inputs.bucket_files]

    def blocks(folder: StageFolder, number: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        with folder.reading(inputs.plan, names[number]) as work:
            wanted = work.open(names[number])
            if number >= len(inputs.set_files):
                groups = _read_groups(folder, inputs.buckets, names[number])
                return bucket_blocks(CellPlan(cells, NO_CELLS, grids), groups, wanted.read("cells"))
            columns = (wanted.read(name) for name in ("documents", "ranks", "cells"))
            documents, ranks, of_cells = columns
        if settings.verify == "signature":
            return packed_blocks(_read_packed(folder, names[number]), documents, ranks, of_cells, cells)
        found = read_sets(corpus, settings, tasks[number], starts, distinct(documents).astype(np.int64))
        return set_blocks(found, documents, ranks, of_cells, cells)

    def send(numbers: Batches) -> Batches:
        with working_directory(directory):
            folder = StageFolder(location)
            for number in task_numbers(numbers):
                yield from rows_of_blocks(blocks(folder, number), folder.exchange(output, number))

    def receive(batches: Batches) -> Batches:
        return rows_of_files(_compared_files(StageFolder(location), output, task, batches))

    sent = task_frame(session, len(names)).mapInArrow(send, BLOCKS)
    return exchange(sent, max(1, cells), receive, FILES)


def _read_groups(folder: StageFolder, stage: str, name: str) -> BucketGroups:
    with folder.reading(stage, name) as work:
        file = work.open(name)
        return BucketGroups(file.read("buckets"), file.read("members"))


def bucket_blocks(
    plan: CellPlan, groups: BucketGroups, of_buckets: NDArray[Any], ranks: Ranks | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the buckets of each cell in blocks of bounded size.

    Args:
        plan: Cells.
        groups: Buckets.
        of_buckets: The cell of each bucket, as in :meth:`minwise.spark.cells.CellPlan.divided`.
        ranks: The rank of each number that is a member of the buckets; None if the members are ranks.
    """
    for cell, found in plan.divided(groups, of_buckets):
        for piece in bounded_groups(found):
            members = piece.members if ranks is None else ranks[piece.members]
            yield cell, bucket_batch(BucketGroups(piece.buckets, members))


def _read_packed(folder: StageFolder, name: str) -> NDArray[np.uint8]:
    with folder.reading("signatures", name) as work:
        return work.open(name).read("packed")


def packed_blocks(
    packed: NDArray[np.uint8], rows: NDArray[Any], ranks: NDArray[Any], of_cells: NDArray[Any], cells: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the packed signatures of each cell in blocks of bounded size.

    Args:
        packed: A row of packed slots per signature.
        rows: The row of each document.
        ranks: Their ranks.
        of_cells: Their cells.
        cells: Number of cells.
    """
    for cell, chosen in by_part(of_cells, cells):
        for first, stop in bounded(np.full(len(chosen), packed.shape[1] + SET_BYTES)):
            some = chosen[first:stop]
            yield cell, packed_batch(ranks[some], packed[rows[some]])


def set_blocks(
    found: Iterable[tuple[slice, Int64s, NDArray[np.uint64]]],
    documents: NDArray[Any],
    ranks: NDArray[Any],
    of_cells: NDArray[Any],
    cells: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the sets of each cell in blocks of bounded size; a set that is larger is sent in pieces.

    Args:
        found: Sets of distinct documents, ascending: which of them, offsets and elements.
        documents: Documents, ascending; one that is in several cells is there several times.
        ranks: Their ranks.
        of_cells: Their cells.
        cells: Number of cells.
    """
    distinct, starts = np.unique(documents, return_index=True)
    bounds = np.append(starts, len(documents))
    for inside, offsets, elements in found:
        sizes = np.diff(offsets)
        for first, last in bounded(8 * sizes + SET_BYTES):
            part = slice(bounds[inside.start + first], bounds[inside.start + last])
            own = np.searchsorted(distinct[inside], documents[part]) - first
            here = elements[offsets[first] : offsets[last]]
            if len(here) > BLOCK_BYTES // 8:
                yield from (
                    (int(cell), piece) for cell in of_cells[part] for piece in set_pieces(ranks[part][:1], here)
                )
                continue
            for cell, chosen in by_part(of_cells[part], cells):
                of_set = own[chosen]
                lists = take_lists(sizes[first:last], here, of_set)
                yield cell, set_batch(ranks[part][chosen], sizes[first:last][of_set], lists)


def _compared_files(folder: StageFolder, output: str, task: CellTask, batches: Batches) -> Iterator[StageFile]:
    with task_directory() as name:
        kind = ContainmentCell if task.settings.measure == "containment" else CellSearch
        search = kind(task, batches, Path(name))
        if search.cell < 0:
            return
        written = search.run()
        counts = search.work.read_json(task.stage)
        with folder.writing(output) as work:
            for number, file in enumerate(written):
                target = attempt_name(search.cell, number)
                size = (search.work.folder / file).stat().st_size
                shutil.move(search.work.folder / file, work.folder / target)
                yield StageFile(target, size, counts if not number else {})
