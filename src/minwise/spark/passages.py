"""Repeated passages on Spark: tasks scan documents and group entries; the driver merges what they find.

A task of the stage ``segments`` numbers its documents from 0, since it does not know how many are before them. When all
are read, the driver ranks the documents, and every entry is sent with the rank of its document to the task of its
fingerprint, which needs no other table. The stage ``resolved-grams`` reads documents with unresolved L-grams again.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_numpy
from minwise.inputs.source import Batch, Source
from minwise.search.documents import Corpus, Documents, SearchJob, check_columns
from minwise.search.first_pass import document_states, text_lengths
from minwise.search.passages import (
    DOCUMENT_BITS,
    PARTITIONS,
    EntryRange,
    Passages,
    Regions,
    ResolvedWriter,
    entry_arrays,
    pack_ranges,
    partition_name,
    passage_groups,
    passage_scanner,
)
from minwise.settings import PassageSettings, SearchSettings
from minwise.spark.arrow_columns import Int64s
from minwise.spark.blocks import BLOCK_BYTES, BLOCKS, Batches, exchange, received, rows_of_blocks
from minwise.spark.collect import collect_documents, values_of_spans
from minwise.spark.read_tasks import (
    KEYS,
    ReadTask,
    SketchedRows,
    document_rows,
    plan_tasks,
    read_values,
    row_faults,
    span_rows,
    task_bounds,
    task_frame,
    task_numbers,
    working_directory,
)
from minwise.spark.stage_store import FILES, StageFile, StageFiles, StageFolder, StageStore, attempt_name, rows_of_files
from minwise.text.chunks import text_chunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PassageStages"]

# Bytes of entries that a task groups, which takes up to six times as many.
GROUPED_BYTES = 1 << 26
# Bytes of covers and regions per file.
RESOLVED_BYTES = 1 << 26
# Documents that are scanned at once.
SCANNED_DOCUMENTS = 1 << 16
# Bits of a key below those of the document.
POSITION_BITS = np.uint64(0xFFFF_FFFF)


class PassageScan(NamedTuple):
    """What tasks look for.

    Attributes:
        settings: Settings of the search.
        wanted: What counts as a repeated passage.
    """

    settings: SearchSettings
    wanted: PassageSettings

    def scanner(self, spill: Callable[[list[NDArray[np.uint8]]], None]) -> "_kernel.PassageScanner":
        """Return a scanner whose entries are spilled in blocks."""
        return passage_scanner(self.settings, self.wanted, BLOCK_BYTES, spill)


class PassageStages:
    """Stages of a search for passages."""

    def __init__(self, stages: StageStore, job: SearchJob, wanted: PassageSettings) -> None:
        self.stages, self.job, self.work = stages, job, job.work
        self.scan = PassageScan(job.settings, wanted)
        self.tasks = plan_tasks(job.corpus.sources)

    def run(self, *, only_reference: bool) -> Passages:
        """Run all stages that are not finished, and collect their results in the work directory."""
        corpus, progress = self.job.corpus, self.job.progress
        if not self.work.has("documents"):
            check_columns(corpus)
        with progress.stage("read", None, "documents"):
            make = lambda: _write_segments(self.stages, corpus, self.scan, self.tasks)  # noqa: E731
            segments = self.stages.run_tasks("segments", make)
            collect_documents(segments, corpus, self.work, passages=True)
        documents = Documents(corpus, self.work)
        order = documents.keep_order(self.job.settings.keep_rule)
        references = documents.protected if only_reference else None
        first = "segments" if self.scan.wanted.unit is None else "units"
        with progress.stage(f"group {first}", None, "ranges"):
            self._resolve(first, lambda name: self._send_segments(name, documents, order.rank_of), references)
            self._collect(first, order.document_at)
        if self.scan.wanted.unit is not None:
            return Passages(documents, self.scan.wanted, self.work)
        with progress.stage("group grams", None, "ranges"):
            self._resolve("grams", lambda name: self._send_grams(name, documents, order.rank_of), references)
            self._collect("grams", order.document_at)
        return Passages(documents, self.scan.wanted, self.work)

    def _resolve(
        self, name: str, send: "Callable[[str], tuple[DataFrame, list[EntryRange]]]", references: int | None
    ) -> None:
        stage, location, wanted = f"resolved-{name}", self.stages.location, self.scan.wanted

        def make() -> "DataFrame":
            blocks, ranges = send(stage)

            def receive(batches: Batches) -> Batches:
                found = _resolved_files(StageFolder(location), stage, batches, wanted, references)
                return rows_of_files(found)

            return exchange(blocks, len(ranges), receive, FILES)

        self.stages.run_tasks(stage, make)

    def _send_segments(
        self, stage: str, documents: Documents, rank_of: NDArray[np.uint32]
    ) -> "tuple[DataFrame, list[EntryRange]]":
        """Return the blocks of the entries of all segments or units, and the ranges that they are sent to."""
        files = self.stages.files("segments")
        ranks = {
            _task_of(file): values_of_spans(file.facts["spans"], documents, rank_of)
            for file in files
            if not file.name.endswith(KEYS)
        }
        self.stages.write_files("ranks", ((f"{task:09}", {"ranks": found}) for task, found in ranks.items()))
        entries = [file for file in files if file.name.endswith(KEYS)]
        names, location = [file.name for file in entries], self.stages.location
        ranges = _ranges(sum(file.size for file in entries))

        def send(numbers: Batches) -> Batches:
            folder = StageFolder(location)
            for number in task_numbers(numbers):
                blocks = _segment_blocks(folder, names[number], ranges)
                yield from rows_of_blocks(blocks, folder.exchange(stage, number))

        return task_frame(self.stages.session, len(names)).mapInArrow(send, BLOCKS), ranges

    def _send_grams(
        self, stage: str, documents: Documents, rank_of: NDArray[np.uint32]
    ) -> "tuple[DataFrame, list[EntryRange]]":
        """Return the blocks of the entries of unresolved L-grams, and the ranges that they are sent to."""
        regions = Regions(self.work)
        self.stages.write_files("regions", self._regions_of_tasks(regions, documents, rank_of))
        ranges = _ranges(_kernel.PASSAGE_ENTRY_BYTES * regions.grams)
        corpus, scan, tasks, starts = self.job.corpus, self.scan, self.tasks, documents.starts
        location, directory = self.stages.location, str(Path.cwd())

        def send(numbers: Batches) -> Batches:
            folder = StageFolder(location)
            with working_directory(directory):
                for number in task_numbers(numbers):
                    with folder.reading("regions", f"{number:09}") as work:
                        file = work.open(f"{number:09}")
                        wanted = {name: file.read(name) for name in ("documents", "ranks", "keys", "counts")}
                    blocks = _gram_blocks(corpus, scan, tasks[number], starts, wanted, ranges)
                    yield from rows_of_blocks(blocks, folder.exchange(stage, number))

        return task_frame(self.stages.session, len(tasks)).mapInArrow(send, BLOCKS), ranges

    def _regions_of_tasks(
        self, regions: Regions, documents: Documents, rank_of: NDArray[np.uint32]
    ) -> Iterator[tuple[str, Arrays]]:
        """Yield the unresolved L-grams of each task; its documents are numbered from 0."""
        wanted = regions.documents(len(documents))
        for task, (first, stop) in enumerate(task_bounds(self.tasks, documents.starts)):
            keys, counts = regions.of(first, stop)
            own = first + np.flatnonzero(wanted[first:stop])
            numbers = np.searchsorted(own, (keys >> DOCUMENT_BITS).astype(np.int64)).astype(np.uint64)
            local = numbers << DOCUMENT_BITS | keys & POSITION_BITS
            yield (
                f"{task:09}",
                {
                    "documents": own.astype(np.uint32),
                    "ranks": rank_of[own],
                    "keys": local,
                    "counts": counts,
                },
            )

    def _collect(self, name: str, document_at: NDArray[np.uint32]) -> None:
        """Write what the tasks of a stage have found to the work directory, by document instead of by rank."""
        if self.work.has(f"finished-{name}"):
            return
        resolved = StageFiles(self.stages.directory, f"resolved-{name}", self.stages.files(f"resolved-{name}"))
        for number, (file, folder) in enumerate(resolved.opened()):
            found = folder.open(file.name)
            writer = ResolvedWriter(self.work, f"resolved-{name}-{number:05}", RESOLVED_BYTES)
            keys, others, regions = (
                _with_documents(found.read(column), document_at) for column in ("keys", "others", "region_keys")
            )
            covers = (keys, found.read("counts"), others, found.read("spans").reshape(-1), found.read("occurrences"))
            writer.add(covers, (regions, found.read("region_counts")))
            writer.finish()
        self.work.write_json(f"finished-{name}", {})


def _with_documents(keys: NDArray[np.uint64], document_at: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return keys with the documents of ranks."""
    documents = document_at[keys >> DOCUMENT_BITS].astype(np.uint64)
    found: NDArray[np.uint64] = (documents << DOCUMENT_BITS) | (keys & POSITION_BITS)
    return found


def _task_of(file: StageFile) -> int:
    return int(file.name.partition("-")[0])


def _ranges(entry_bytes: int) -> list[EntryRange]:
    """Return what is grouped by one task, for entries of so many bytes: partitions are about equally large."""
    return pack_ranges([-(-entry_bytes // PARTITIONS)] * PARTITIONS, GROUPED_BYTES)


def _write_segments(stages: StageStore, corpus: Corpus, scan: PassageScan, tasks: list[ReadTask]) -> "DataFrame":
    """Return the tasks that read all sources and write the documents, and the entries of their segments."""
    location, directory = stages.location, str(Path.cwd())

    def read(numbers: Batches) -> Batches:
        with working_directory(directory):
            for number in task_numbers(numbers):
                yield from rows_of_files(_segment_files(StageFolder(location), corpus, scan, number, tasks[number]))

    return task_frame(stages.session, len(tasks)).mapInArrow(read, FILES)


def _segment_files(
    folder: StageFolder, corpus: Corpus, scan: PassageScan, number: int, task: ReadTask
) -> Iterator[StageFile]:
    """Write the files of a task: the documents, with the fact ``spans``, and entries as soon as there are many."""
    scanner = _TaskScanner(folder, scan, number)
    rows = [rows for span in task for rows in span_rows(corpus, span, SCANNED_DOCUMENTS, scanner.process)]
    scanner.write(scanner.scanner.drain())
    with folder.writing("segments") as work:
        name = attempt_name(number)
        work.write_table(name, pa.Table.from_batches([one.rows for one in rows]))
        spans = [one.span for one in rows if one.span]
        yield StageFile(name, (work.folder / name).stat().st_size, {"spans": spans})
    yield from scanner.files


class _TaskScanner:
    """Scanner of the documents of a task, which it numbers from 0."""

    def __init__(self, folder: StageFolder, scan: PassageScan, task: int) -> None:
        self.folder, self.task, self.documents = folder, task, 0
        self.files: list[StageFile] = []
        self.scanner = scan.scanner(self.write)

    def write(self, partitions: list[NDArray[np.uint8]]) -> None:
        name = f"{attempt_name(self.task, len(self.files) + 1)}{KEYS}"
        with self.folder.writing("segments") as work:
            work.write(name, entry_arrays(partitions))
            self.files.append(StageFile(name, (work.folder / name).stat().st_size, {}))

    def process(self, source: Source, number: int, batch: Batch) -> SketchedRows:
        chunk = text_chunk(batch.values)
        numbers = np.arange(self.documents, self.documents + len(batch), dtype=np.uint32)
        counts, faulty = self.scanner.scan(chunk.offsets, chunk.data, numbers, 1)
        self.documents += len(batch)
        faults = {**row_faults(batch), **dict(faulty)}
        nothing = from_numpy(np.zeros(len(batch), dtype=np.int64))
        columns = {
            "state": from_numpy(document_states(batch.values, counts, faulty).view(np.int8)),
            "text_bytes": from_numpy(text_lengths(batch.values).astype(np.int64)),
            "content_high": nothing,
            "content_low": nothing,
            "fault": pa.array([faults.get(row) for row in range(len(batch))], pa.string()),
            "tokens": from_numpy(counts.astype(np.int64)),
        }
        return SketchedRows(document_rows(source, number, batch, columns), [number, batch.first, len(batch)])


def _segment_blocks(folder: StageFolder, name: str, ranges: list[EntryRange]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the entries of a file for each range, with the ranks of their documents."""
    ranks_name = name.partition("-")[0]
    with folder.reading("ranks", ranks_name) as work:
        ranks = work.open(ranks_name).read("ranks")
    with folder.reading("segments", name) as work:
        file = work.open(name)
        yield from _entry_blocks(lambda partition: file.read(partition_name(partition)), ranks, ranges)


def _entry_blocks(
    read: Callable[[int], NDArray[np.uint8]], ranks: NDArray[np.uint32], ranges: Iterable[EntryRange]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    for part, entry_range in enumerate(ranges):
        partitions = range(entry_range.first, entry_range.end)
        found = [
            _kernel.renumber_passages(read(partition), ranks, entry_range.part, entry_range.parts)
            for partition in partitions
        ]
        if any(map(len, found)):
            numbers = pa.array(partitions, pa.int32())
            yield part, pa.record_batch({"partition": numbers, "entries": pa.array(map(bytes, found), pa.binary())})


def _gram_blocks(
    corpus: Corpus, scan: PassageScan, task: ReadTask, starts: Int64s, wanted: dict[str, Any], ranges: list[EntryRange]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Read documents of a task again; yield the entries of their unresolved L-grams for each range."""
    spilled: list[list[NDArray[np.uint8]]] = []
    scanner = scan.scanner(spilled.append)

    def blocks() -> Iterator[tuple[int, pa.RecordBatch]]:
        while spilled:
            yield from _entry_blocks(spilled.pop().__getitem__, wanted["ranks"], ranges)

    for own, values in read_values(corpus, task, starts, wanted["documents"].astype(np.int64)):
        chunk, numbers = text_chunk(values), np.arange(own.start, own.stop, dtype=np.uint32)
        bounds = np.array([own.start, own.stop], dtype=np.uint64) << DOCUMENT_BITS
        inside = slice(*np.searchsorted(wanted["keys"], bounds).tolist())
        keys, counts = wanted["keys"][inside], wanted["counts"][inside]
        scanner.scan_regions(chunk.offsets, chunk.data, numbers, keys, counts, 1)
        yield from blocks()
    spilled.append(scanner.drain())
    yield from blocks()


def _resolved_files(
    folder: StageFolder, stage: str, batches: Batches, wanted: PassageSettings, references: int | None
) -> Iterator[StageFile]:
    """Group the entries that a task receives; write the repeats and the unresolved L-grams."""
    blocks: dict[int, list[NDArray[np.uint8]]] = {}
    part = None
    for number, block in received(batches):
        part = number
        for partition, entries in zip(block.column("partition").to_pylist(), block.column("entries"), strict=True):
            blocks.setdefault(partition, []).append(np.frombuffer(entries.as_buffer(), dtype=np.uint8))
    if part is None:
        return
    with folder.writing(stage) as work:
        writer = ResolvedWriter(work, attempt_name(part), RESOLVED_BYTES)
        for _, own in sorted(blocks.items()):
            groups = passage_groups(stage.removeprefix("resolved-"), wanted, references)
            for entries in own:
                groups.add(entries, None)
            for entries in own:
                writer.add(*groups.resolve(entries, None))
        names = writer.finish()
        yield from [StageFile(name, (work.folder / name).stat().st_size, {}) for name in names]
