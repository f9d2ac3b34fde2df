"""Weighted search on Spark: tasks count elements by ranges of slots, and compute keys from weighted signatures.

The table of frequencies is added up by the driver, which also decides its size, and sent to the tasks as a file.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_numpy
from minwise.inputs.source import Batch, Source
from minwise.inputs.weights import own_keys
from minwise.search.bands import NO_DOCUMENT, Bander, KeyBlock, key_bytes
from minwise.search.common_phrases import DocumentSets, common_slots
from minwise.search.documents import Corpus
from minwise.search.verification import CandidateVerifier
from minwise.search.weighting import EQUAL, has_frequencies, read_frequencies, write_frequencies
from minwise.settings import SearchSettings
from minwise.sketches.frequencies import MOST_BITS, FrequencyTable, element_slots
from minwise.spark.arrow_columns import Int64s
from minwise.spark.blocks import BLOCK_BYTES, BLOCKS, Batches, by_part, collected, exchange, received, rows_of_blocks
from minwise.spark.read_tasks import (
    KEYS,
    ReadTask,
    SketchedRows,
    read_sets,
    span_rows,
    task_bounds,
    task_frame,
    task_numbers,
    working_directory,
)
from minwise.spark.stage_store import FILES, StageFile, StageFolder, StageStore, attempt_name, rows_of_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["WEIGHTED_KEYS", "WeightStages", "task_weights"]

# Stages: distinct documents of each task, counts of their elements, the table of frequencies, and keys.
LEADERS, COUNTS, TABLE, WEIGHTED_KEYS = "leaders", "counts", "frequencies", "weighted"
# Stages of common phrases.
COMMON_SLOTS, COMMON_SETS = "common-slots", "common-sets"
# Parts of the slots of a table, each of which one task adds up, and bits of a slot below its part.
PARTS = 16
PART_SLOTS = (1 << MOST_BITS) // PARTS
NO_ROWS = pa.record_batch({"row": pa.array([], pa.int64())})

Reading = tuple[Corpus, list[ReadTask], Int64s]


class WeightStages:
    """Stages that give elements weights, between the documents and the buckets."""

    def __init__(self, stages: StageStore, search: CandidateVerifier, tasks: list[ReadTask]) -> None:
        self.stages, self.search, self.tasks = stages, search, tasks
        self.settings, self.documents = search.settings, search.documents

    def run(self) -> None:
        """Count elements unless the settings give frequencies, and write the keys of all documents."""
        work = self.search.work
        self.stages.write_files(LEADERS, self._leaders())
        if self.settings.discount == "common" and not has_frequencies(work):
            given = self.settings.frequencies
            write_frequencies(work, self._counted() if given is None else given)
        self.share()
        self.stages.run_tasks(WEIGHTED_KEYS, self._write_keys)

    def share(self) -> None:
        """Send the table of frequencies to the tasks, unless all elements are counted alike."""
        table = self._table()
        if table is EQUAL:
            return
        arrays: Arrays = {"counts": table.counts, "documents": np.array([table.documents], dtype=np.uint64)}
        self.stages.write_files(TABLE, [(TABLE, arrays)])

    @property
    def weights(self) -> "TaskWeights":
        """What tasks need to read the weights."""
        return self.stages.location, self._table().identity, self.settings.factors, self.settings.holds_weights

    def common_sets(self) -> Iterator[DocumentSets]:
        """Yield the sets that have the first occurrence of a frequent element in their task."""
        table = self._table()
        arrays: Arrays = {"slots": np.sort(common_slots(table)).astype(np.uint64)}
        self.stages.write_files(COMMON_SLOTS, [(COMMON_SLOTS, arrays)])
        bits = len(table.counts).bit_length() - 1
        reading = (self.documents.corpus, self.tasks, self.documents.starts)
        found = self.stages.run_tasks(COMMON_SETS, lambda: _common_sets(self.stages, reading, self.settings, bits))
        for file, files in found.opened():
            opened = files.open(file.name)
            yield opened.read("documents"), opened.read("offsets").astype(np.int64), opened.read("elements")

    def _table(self) -> FrequencyTable:
        return EQUAL if self.settings.discount == "none" else read_frequencies(self.search.work)

    def _counted(self) -> FrequencyTable:
        """Return the frequencies of the elements of all distinct documents."""
        reading = (self.documents.corpus, self.tasks, self.documents.starts)
        counted = self.stages.run_tasks(COUNTS, lambda: _count_elements(self.stages, reading, self.settings))
        counts = np.zeros(PARTS * PART_SLOTS, dtype=np.uint64)
        for file, files in counted.opened():
            first = file.facts["part"] * PART_SLOTS
            counts[first : first + PART_SLOTS] += files.open(file.name).read("counts")
        documents = int(np.count_nonzero(self.search.members != NO_DOCUMENT))
        return FrequencyTable.reduced(counts, documents, self.settings.element_settings)

    def _leaders(self) -> Iterator[tuple[str, Arrays]]:
        """Yield the distinct documents of each task."""
        for number, (first, stop) in enumerate(task_bounds(self.tasks, self.documents.starts)):
            rows = np.flatnonzero(self.search.members[first:stop] != NO_DOCUMENT)
            yield _leaders_name(number), {"documents": (first + rows).astype(np.uint32)}

    def _write_keys(self) -> "DataFrame":
        corpus, tasks, settings = self.documents.corpus, self.tasks, self.settings
        weights, directory = self.weights, str(Path.cwd())

        def write(numbers: Batches) -> Batches:
            with working_directory(directory):
                folder = StageFolder(weights[0])
                bander = Bander(settings, task_weights(*weights))
                for number in task_numbers(numbers):
                    yield from rows_of_files(_key_files(folder, corpus, settings, bander, number, tasks[number]))

        return task_frame(self.stages.session, len(tasks)).mapInArrow(write, FILES)


TaskWeights = tuple[str, str, tuple[float, ...] | None, bool]


@lru_cache(maxsize=1)
def task_weights(location: str, identity: str, factors: tuple[float, ...] | None, held: bool) -> "_kernel.Weights":
    """Return the weights of a run in a task; a process of Python runs many of its tasks.

    Args:
        location: Directory of the stages.
        identity: Checksum of the table, so that another run in the same directory has its own weights; that of
            ``EQUAL`` for no table.
        factors: The weight of each class of elements, if they have classes.
        held: Whether elements hold their weights.
    """
    table = EQUAL if identity == EQUAL.identity else _read_table(location)
    return table.weights(1, factors, held=held)


def _read_table(location: str) -> FrequencyTable:
    with StageFolder(location).reading(TABLE, TABLE) as work:
        file = work.open(TABLE)
        return FrequencyTable(file.read("counts"), int(file.read("documents")[0]), {})


def _leaders_name(task: int) -> str:
    return f"{task:09}"


def _read_leaders(folder: StageFolder, task: int) -> Int64s:
    with folder.reading(LEADERS, _leaders_name(task)) as work:
        return work.open(_leaders_name(task)).read("documents").astype(np.int64)


def _count_elements(stages: StageStore, reading: Reading, settings: SearchSettings) -> "DataFrame":
    """Return the tasks that count the elements of distinct documents; each part of the slots is a file."""
    (corpus, tasks, starts), location, directory = reading, stages.location, str(Path.cwd())

    def send(numbers: Batches) -> Batches:
        with working_directory(directory):
            folder = StageFolder(location)
            for number in task_numbers(numbers):
                documents = _read_leaders(folder, number)
                found = read_sets(corpus, settings, tasks[number], starts, documents)
                keys = (own_keys(elements) if settings.holds_weights else elements for _, _, elements in found)
                blocks = (block for counted in keys for block in _count_blocks(counted))
                yield from rows_of_blocks(blocks, folder.exchange(COUNTS, number))

    def receive(batches: Batches) -> Batches:
        return rows_of_files(_count_files(StageFolder(location), batches))

    sent = task_frame(stages.session, len(tasks)).mapInArrow(send, BLOCKS)
    return exchange(sent, PARTS, receive, FILES)


def _count_blocks(elements: NDArray[np.uint64]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield how often each slot of each part occurs among elements."""
    slots, counts = np.unique(element_slots(elements, MOST_BITS), return_counts=True)
    for part, chosen in by_part((slots // np.uint64(PART_SLOTS)).astype(np.uint32), PARTS):
        inside = (slots[chosen] % np.uint64(PART_SLOTS)).astype(np.uint32)
        yield part, pa.record_batch({"slot": from_numpy(inside), "count": from_numpy(counts[chosen].astype(np.uint32))})


def _count_files(folder: StageFolder, batches: Batches) -> Iterator[StageFile]:
    counts, part = np.zeros(PART_SLOTS, dtype=np.uint64), -1
    for number, batch in received(batches):
        part = number
        counts[batch.column("slot").to_numpy()] += batch.column("count").to_numpy()
    if part >= 0:
        name = attempt_name(part)
        with folder.writing(COUNTS) as work:
            work.write(name, {"counts": counts})
            yield StageFile(name, (work.folder / name).stat().st_size, {"part": part})


def _common_sets(stages: StageStore, reading: Reading, settings: SearchSettings, bits: int) -> "DataFrame":
    """Return the tasks that write the sets that have the first occurrence of a frequent element in their task."""
    (corpus, tasks, starts), location, directory = reading, stages.location, str(Path.cwd())

    def write(numbers: Batches) -> Batches:
        with working_directory(directory):
            folder = StageFolder(location)
            with folder.reading(COMMON_SLOTS, COMMON_SLOTS) as work:
                slots = work.open(COMMON_SLOTS).read("slots")
            for number in task_numbers(numbers):
                documents = _read_leaders(folder, number)
                found = read_sets(corpus, settings, tasks[number], starts, documents)
                yield from rows_of_files(_first_occurrences(folder, number, documents, found, (slots, bits)))

    return task_frame(stages.session, len(tasks)).mapInArrow(write, FILES)


def _first_occurrences(
    folder: StageFolder,
    task: int,
    documents: Int64s,
    found: Iterator[tuple[slice, Int64s, NDArray[np.uint64]]],
    common: tuple[NDArray[np.uint64], int],
) -> Iterator[StageFile]:
    """Write a file for each batch of sets that have a frequent element that no earlier one of the task has."""
    (slots, bits), seen = common, np.empty(0, dtype=np.uint64)
    for number, (inside, offsets, elements) in enumerate(found):
        places = np.flatnonzero(np.isin(element_slots(elements, bits), slots))
        new, firsts = np.unique(elements[places], return_index=True)
        firsts = np.sort(places[firsts[~np.isin(new, seen)]])
        if not len(firsts):
            continue
        seen = np.concatenate([seen, elements[firsts]])
        rows, counts = np.unique(np.searchsorted(offsets, firsts, side="right") - 1, return_counts=True)
        arrays: Arrays = {
            "documents": documents[inside][rows].astype(np.uint32),
            "offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64),
            "elements": elements[firsts],
        }
        name = attempt_name(task, number)
        with folder.writing(COMMON_SETS) as work:
            work.write(name, arrays)
            yield StageFile(name, (work.folder / name).stat().st_size, {})


def _key_files(
    folder: StageFolder, corpus: Corpus, settings: SearchSettings, bander: Bander, number: int, task: ReadTask
) -> Iterator[StageFile]:
    """Write the keys of the documents of a task, in files as the stage of signatures has them."""

    def process(_: Source, source: int, batch: Batch) -> SketchedRows:
        block = KeyBlock.allocate(settings, len(batch))
        bander.band(batch.values, block, 1)
        return SketchedRows(NO_ROWS, [source, batch.first, len(batch)], block)

    most = max(1, BLOCK_BYTES // key_bytes(settings))
    rows = (one for span in task for one in span_rows(corpus, span, most, process) if one.block is not None)
    for written, held in enumerate(collected(rows, lambda one: 0 if one.block is None else one.block.nbytes)):
        name = f"{attempt_name(number, written)}{KEYS}"
        with folder.writing(WEIGHTED_KEYS) as work:
            work.write(name, {"keys": np.concatenate([one.block.keys.T for one in held if one.block is not None])})
            yield StageFile(name, (work.folder / name).stat().st_size, {"spans": [one.span for one in held]})
