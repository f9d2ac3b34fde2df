"""Evaluation items on Spark: tasks scan documents, and read those with enough n-grams again.

Every task makes the table of the items from their texts. The driver gets the n-grams that documents have of the items,
counts them, and sends every task the items that are to be located in its documents.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_numpy
from minwise.inputs.source import Batch, Source
from minwise.search.bands import NO_DOCUMENT
from minwise.search.contamination import (
    Contamination,
    CutRows,
    EvalItems,
    HitRows,
    HitWriter,
    ItemCandidates,
    Locator,
    checked_table,
    count_contamination,
    item_table,
    scan_chunk,
    shingler_of,
)
from minwise.search.documents import Corpus, Documents, SearchJob, check_columns
from minwise.search.first_pass import document_states, text_lengths
from minwise.settings import ContaminationRule
from minwise.spark.arrow_columns import Int64s
from minwise.spark.blocks import Batches
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
from minwise.text.shingling import Shingler

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ContaminationStages"]

# Documents that are scanned at once.
SCANNED_DOCUMENTS = 1 << 16
ITEMS = "items"
# Bits of a key below those of the document.
ITEM_BITS, ITEM_MASK = np.uint64(32), np.uint64(0xFFFF_FFFF)


class ItemLookup(NamedTuple):
    """What tasks look for.

    Attributes:
        rule: What makes a document contaminated.
        shingler: Cuts texts into words.
    """

    rule: ContaminationRule
    shingler: Shingler

    def table(self, folder: StageFolder) -> "_kernel.ItemTable":
        """Return the table of the items, whose texts are a file of the stage of this name."""
        with folder.reading(ITEMS, ITEMS) as work:
            file = work.open(ITEMS)
            offsets, data = file.read("offsets").astype(np.int64), file.read("data")
        texts = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        return item_table(self.shingler, self.rule.ngram, texts)


class ContaminationStages:
    """Stages of a search for evaluation items."""

    def __init__(self, stages: StageStore, job: SearchJob, items: EvalItems, rule: ContaminationRule) -> None:
        self.stages, self.job, self.work, self.items, self.rule = stages, job, job.work, items, rule
        self.lookup = ItemLookup(rule, shingler_of(job))
        self.tasks = plan_tasks(job.corpus.sources)

    def run(self) -> Contamination:
        """Run all stages that are not finished, and collect their results in the work directory."""
        corpus = self.job.corpus
        table = checked_table(self.job, self.items, self.rule.ngram)
        if not self.work.has("documents"):
            check_columns(corpus)
        with self.job.progress.stage("read", None, "documents"):
            scanned = self.stages.run_tasks("scanned", self._scan)
            collect_documents(scanned, corpus, self.work)
            self._collect_grams(scanned, Documents(corpus, self.work))
        result, rare = count_contamination(self.job, self.items, self.rule, table)
        with self.job.progress.stage("read again", None, "documents"):
            if not self.work.has("hits"):
                located = self.stages.run_tasks("located", lambda: self._locate(result, rare))
                self._collect_hits(located)
        return result

    def _write_items(self) -> None:
        chunk = text_chunk(self.items.texts)
        arrays: Arrays = {"offsets": chunk.offsets.astype(np.uint64), "data": chunk.data}
        self.stages.write_files(ITEMS, [(ITEMS, arrays)])

    def _scan(self) -> "DataFrame":
        """Return the tasks that read all sources and write the documents and their n-grams."""
        self._write_items()
        corpus, lookup, tasks = self.job.corpus, self.lookup, self.tasks
        location, directory = self.stages.location, str(Path.cwd())

        def read(numbers: Batches) -> Batches:
            folder = StageFolder(location)
            with working_directory(directory):
                table = lookup.table(folder)
                for number in task_numbers(numbers):
                    yield from rows_of_files(_scanned_files(folder, corpus, table, number, tasks[number]))

        return task_frame(self.stages.session, len(tasks)).mapInArrow(read, FILES)

    def _collect_grams(self, scanned: StageFiles, documents: Documents) -> None:
        """Write the n-grams that tasks have found to the work directory, by document."""
        if self.work.has("grams"):
            return
        self.work.delete("grams-")  # of an interrupted run
        numbers = np.arange(len(documents), dtype=np.uint32)
        keys = ((file, folder) for file, folder in scanned.opened() if file.name.endswith(KEYS))
        for number, (file, folder) in enumerate(keys):
            found = folder.open(file.name)
            rows, sizes = (
                values_of_spans(file.facts["spans"], documents, numbers)[found.read("rows")],
                found.read("sizes"),
            )
            known = rows != NO_DOCUMENT
            grams = found.read("grams")[np.repeat(known, sizes)]
            self.work.write(f"grams-{number:06}-000000", {"rows": rows[known], "sizes": sizes[known], "grams": grams})
        self.work.write_json("grams", {})

    def _locate(self, result: Contamination, rare: NDArray[np.bool_]) -> "DataFrame":
        """Return the tasks that read documents again and write the hits."""
        self._write_items()
        rarity: Arrays = {"rare": rare.astype(np.uint8), "counts": result.rare.astype(np.uint64)}
        wanted = self._candidates_of_tasks(result.documents)
        self.stages.write_files("wanted", [("rarity", rarity), *wanted])
        corpus, lookup, tasks, starts = self.job.corpus, self.lookup, self.tasks, result.documents.starts
        location, directory = self.stages.location, str(Path.cwd())

        def read(numbers: Batches) -> Batches:
            folder = StageFolder(location)
            with working_directory(directory):
                locator = _locator(folder, lookup)
                for number in task_numbers(numbers):
                    yield from rows_of_files(_located_files(folder, corpus, locator, number, tasks[number], starts))

        return task_frame(self.stages.session, len(tasks)).mapInArrow(read, FILES)

    def _candidates_of_tasks(self, documents: Documents) -> Iterator[tuple[str, Arrays]]:
        """Yield the pairs of a document and an item of each task; its documents are numbered from 0."""
        candidates = ItemCandidates(self.work)
        for task, (first, stop) in enumerate(task_bounds(self.tasks, documents.starts)):
            keys = candidates.of(first, stop)
            own, numbers = np.unique((keys >> ITEM_BITS).astype(np.uint32), return_inverse=True)
            local = numbers.astype(np.uint64) << ITEM_BITS | keys & ITEM_MASK
            yield f"{task:09}", {"documents": own, "keys": local}

    def _collect_hits(self, located: StageFiles) -> None:
        writer = HitWriter(self.work, self.job.limits.memory // 16)
        for file, folder in located.opened():
            found = folder.open(file.name)
            writer.add(HitRows.read(found), CutRows.read(found, "cut_"))
        writer.finish()


def _scanned_files(
    folder: StageFolder, corpus: Corpus, table: "_kernel.ItemTable", number: int, task: ReadTask
) -> Iterator[StageFile]:
    """Write the files of a task: the documents, and their n-grams with the fact ``spans``."""
    grams: list[Arrays] = []
    read = 0

    def process(source: Source, number: int, batch: Batch) -> SketchedRows:
        nonlocal read
        arrays, faulty, found = scan_chunk(table, batch.values, 1)
        grams.append({**found, "rows": found["rows"] + np.uint32(read)})
        read += len(batch)
        faults = {**row_faults(batch), **dict(faulty)}
        contents = [from_numpy(np.ascontiguousarray(column).view(np.int64)) for column in arrays["contents"].T]
        columns = {
            "state": from_numpy(document_states(batch.values, arrays["token_counts"], faulty).view(np.int8)),
            "text_bytes": from_numpy(text_lengths(batch.values).astype(np.int64)),
            "content_high": contents[0],
            "content_low": contents[1],
            "fault": pa.array([faults.get(row) for row in range(len(batch))], pa.string()),
            "tokens": pa.nulls(len(batch), pa.int64()),
        }
        return SketchedRows(document_rows(source, number, batch, columns), [number, batch.first, len(batch)])

    rows = [one for span in task for one in span_rows(corpus, span, SCANNED_DOCUMENTS, process)]
    if not rows:
        return
    with folder.writing("scanned") as work:
        name = attempt_name(number)
        work.write_table(name, pa.Table.from_batches([one.rows for one in rows]))
        yield StageFile(name, (work.folder / name).stat().st_size, {})
        if grams:
            keys, spans = f"{name}{KEYS}", [one.span for one in rows if one.span]
            work.write(keys, {column: np.concatenate([one[column] for one in grams]) for column in grams[0]})
            yield StageFile(keys, (work.folder / keys).stat().st_size, {"spans": spans})


def _locator(folder: StageFolder, lookup: ItemLookup) -> Locator:
    with folder.reading("wanted", "rarity") as work:
        file = work.open("rarity")
        rare, counts = file.read("rare").astype(bool), file.read("counts").astype(np.int64)
    return Locator(lookup.table(folder), lookup.rule, lookup.shingler, rare, counts, 1)


def _located_files(
    folder: StageFolder, corpus: Corpus, locator: Locator, number: int, task: ReadTask, starts: Int64s
) -> Iterator[StageFile]:
    """Read documents of a task again; write their hits and cuts."""
    with folder.reading("wanted", f"{number:09}") as work:
        file = work.open(f"{number:09}")
        own, keys = file.read("documents"), file.read("keys")
    found = []
    for chosen, values in read_values(corpus, task, starts, own.astype(np.int64)):
        bounds = np.array([chosen.start, chosen.stop], dtype=np.uint64) << ITEM_BITS
        inside = slice(*np.searchsorted(keys, bounds).tolist())
        found.append(locator.locate(values, keys[inside], chosen.start))
    if not found:
        return
    hits, cuts = HitRows.concat([hits for hits, _ in found]), CutRows.concat([cuts for _, cuts in found])
    hits = hits._replace(documents=own[hits.documents])
    cuts = cuts._replace(documents=own[cuts.documents], emptied=own[cuts.emptied])
    with folder.writing("located") as work:
        name = attempt_name(number)
        work.write(name, {**hits._asdict(), **{f"cut_{field}": column for field, column in cuts._asdict().items()}})
        yield StageFile(name, (work.folder / name).stat().st_size, {})
