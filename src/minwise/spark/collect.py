"""Results of finished stages, collected on the driver into the files that the local engine writes."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise._internal.arrays import to_numpy, valid_mask
from minwise._internal.atomic import atomic_writer
from minwise.inputs.source import Fault
from minwise.search.bands import NO_DOCUMENT, BucketCounts, cut_runs, pack_pairs
from minwise.search.candidates import CHUNK_PAIRS, VERIFIED
from minwise.search.clustering import PairBlock
from minwise.search.documents import (
    PART_DOCUMENTS,
    Corpus,
    DocumentPart,
    Documents,
    count_usable,
    refuse_nothing_readable,
    refuse_too_many,
    refuse_unusable_inputs,
)
from minwise.search.verification import BINS, NearMisses
from minwise.search.workdir import WorkDirectory
from minwise.spark.read_tasks import ENDED, KEYS, unpack_values
from minwise.spark.stage_store import StageFile, StageFiles

__all__ = ["collect_compared", "collect_documents", "merged_pairs", "total_caps", "total_counts", "values_of_spans"]


NO_CONTENTS = np.empty((0, 2), dtype=np.uint64)


def collect_documents(signatures: StageFiles, corpus: Corpus, work: WorkDirectory, *, passages: bool = False) -> None:
    """Write what the driver needs of each document to the work directory: neither texts nor bands.

    Args:
        signatures: Files of documents, and others that are ignored.
        corpus: Sources of the documents.
        work: Work directory of the driver.
        passages: Whether a document has its number of tokens instead of its content hash.
    """
    if not work.has("documents"):
        for prefix in ("part-", "columns-", "faults-"):
            work.delete(prefix)  # of a run that was interrupted here
        tables = (files.read_table(file.name) for file, files in signatures.opened() if not file.name.endswith(KEYS))
        _DocumentCollector(corpus, work, passages=passages).run(
            batch for table in tables for batch in table.to_batches()
        )


class _DocumentCollector:
    """Writer of document parts from rows of the stage ``signatures``."""

    def __init__(self, corpus: Corpus, work: WorkDirectory, *, passages: bool) -> None:
        self.corpus, self.work, self.passages = corpus, work, passages
        self.rows = [0] * len(corpus.sources)
        self.ended: set[int] = set()
        self.document_values: list[pa.RecordBatch] = []  # of rows that have not been added yet
        self.number, self.part = 0, DocumentPart(0)
        self.states: list[NDArray[np.uint8]] = []
        self.values: list[NDArray[Any]] = []  # content hashes, or numbers of tokens

    def run(self, batches: Iterator[pa.RecordBatch]) -> None:
        for batch in batches:
            self._take(batch)
            if sum(map(len, self.states)) >= PART_DOCUMENTS:
                self._finish_part()
        self._finish_part()
        refuse_nothing_readable(self.work, sum(self.rows))
        refuse_unusable_inputs(self.corpus, self.work, count_usable(self.work, self.rows))
        self.work.write_json("documents", {"rows": self.rows, "parts": self.number})

    def _take(self, batch: pa.RecordBatch) -> None:
        """Add rows, together where they are consecutive in a source and have ids of one kind."""
        source, row, state = (to_numpy(batch.column(name)) for name in ("source", "row", "state"))
        kind = np.array([2 if flag is None else flag for flag in batch.column("id_is_number").to_pylist()], np.int8)
        breaks = (source[1:] != source[:-1]) | (row[1:] != row[:-1] + 1) | (kind[1:] != kind[:-1])
        status_rows = (state[1:] >= ENDED) | (state[:-1] >= ENDED)
        starts = [0, *(np.flatnonzero(breaks | status_rows) + 1).tolist()] if len(batch) else []
        for start, end in zip(starts, [*starts[1:], len(batch)], strict=True):
            rows = batch.slice(start, end - start)
            if state[start] == ENDED:
                self._end(int(source[start]), rows.column("fault")[0].as_py())
            else:
                self._add(int(source[start]), int(row[start]), rows)

    def _end(self, source: int, reason: str) -> None:
        if source not in self.ended:
            self.ended.add(source)
            self.part.add_faults([(0, Fault(self.corpus.sources[source].name, None, reason))], self.corpus.on_error)

    def _add(self, number: int, first: int, rows: pa.RecordBatch) -> None:
        document_values = self._document_values_of(rows)
        if number in self.ended:  # the local engine reads nothing after an unreadable row group either
            return
        source = self.corpus.sources[number]
        faulty = np.flatnonzero(to_numpy(rows.column("fault").is_valid().cast(pa.uint8())))
        names, within = source.locate(first + faulty)
        reasons = rows.column("fault").drop_null().to_pylist()
        located = zip(faulty.tolist(), names.to_pylist(), within.tolist(), reasons, strict=True)
        faults = [(offset, Fault(name, row, reason)) for offset, name, row, reason in located]
        self.part.add_faults(faults, self.corpus.on_error)
        if number >= self.corpus.against and not self.passages:
            sampled = first + np.flatnonzero(valid_mask(rows.column("tokens")))
            self.part.add_tokens(sampled, to_numpy(rows.column("tokens").drop_null()))
        lengths = to_numpy(rows.column("text_bytes")).view(np.uint64)
        ids = _ids_of(rows)
        start = 0
        for values in document_values or [None]:
            end = len(rows) if values is None else start + len(values)
            columns = {} if values is None else dict(zip(values.schema.names, values.columns, strict=True))
            part_ids = None if ids is None else ids.slice(start, end - start)
            self.part.add(number, first + start, lengths[start:end], part_ids, columns)
            start = end
        self.values.append(self._values_of(rows))
        self.states.append(to_numpy(rows.column("state")).view(np.uint8))
        self.rows[number] = first + len(rows)
        refuse_too_many(self.part.first + sum(map(len, self.states)))

    def _values_of(self, rows: pa.RecordBatch) -> NDArray[Any]:
        if self.passages:
            return to_numpy(rows.column("tokens")).astype(np.uint32)
        contents = (to_numpy(rows.column(name)).view(np.uint64) for name in ("content_high", "content_low"))
        return np.stack(list(contents), axis=1)

    def _document_values_of(self, rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return the document values of some rows, in batches of columns of one type each."""
        packed = rows.column("values").drop_null()
        self.document_values.extend(unpack_values(stream) for stream in packed)
        missing, found = len(rows), []
        while missing and self.document_values:
            found.append(self.document_values[0].slice(0, missing))
            rest = self.document_values[0].slice(missing)
            self.document_values[:1] = [rest] if len(rest) else []
            missing -= len(found[-1])
        return found

    def _finish_part(self) -> None:
        if self.part.spans or self.part.faults:
            states = np.concatenate([np.empty(0, dtype=np.uint8), *self.states])
            name, none = ("token_counts", np.empty(0, np.uint32)) if self.passages else ("contents", NO_CONTENTS)
            arrays: Arrays = {"states": states, name: np.concatenate([none, *self.values])}
            self.part.write(self.work, self.number, self.corpus, arrays)
            self.number += 1
        self.part = DocumentPart(self.part.first + sum(map(len, self.states)))
        self.states, self.values = [], []


def values_of_spans(spans: list[list[int]], documents: Documents, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the values of documents in the order in which a task has read them.

    Args:
        spans: Source, first row and number of rows, as the task has read them.
        documents: The documents, which end where a source cannot be read on.
        values: A value of each document.

    Returns:
        The values, ``NO_DOCUMENT`` after the end of a source.
    """
    pieces = [np.empty(0, dtype=np.uint32)]
    for source, first, count in spans:
        start, known = int(documents.starts[source]) + first, max(0, documents.rows[source] - first)
        pieces.append(values[start : start + min(count, known)])
        pieces.append(np.full(max(0, count - known), NO_DOCUMENT, dtype=np.uint32))
    return np.concatenate(pieces)


def _ids_of(rows: pa.RecordBatch) -> pa.Array | None:
    """Return the ids of rows, all of one kind, or None if there are none."""
    is_number = rows.column("id_is_number")[0].as_py()
    if is_number is None:
        return None
    return rows.column("id").cast(pa.int64() if is_number else pa.large_string())


def collect_compared(compared: StageFiles, work: WorkDirectory, stage: str) -> None:
    """Write the compared pairs of all cells to the work directory, as the local engine writes them.

    All pairs are merged in ascending order. Pairs that decide clusters stay in the files of their cells: no pair of
    another cell decides the same cluster.
    """
    work.delete(f"{stage}-")  # of a run that was interrupted here
    if stage != VERIFIED:
        for number, (file, files) in enumerate(compared.opened()):
            target = work.folder / f"{stage}-{number:06}"
            with (files.folder / file.name).open("rb") as source, atomic_writer(target, sync=work.durable) as copy:
                shutil.copyfileobj(source, copy)
        return
    near = NearMisses.merge(NearMisses.read(files.open(file.name)) for file, files in compared.opened())
    nothing = NearMisses.merge([])
    counts = np.zeros(BINS, dtype=np.uint64)
    for number, block in enumerate(merged_pairs(compared)):
        arrays: Arrays = {"low": block.low, "high": block.high, "similarity": block.similarity}
        arrays |= {"sampled_pairs": counts, "sampled_near": counts, **(nothing if number else near).arrays()}
        work.write(f"{stage}-{number:06}", arrays)


def merged_pairs(compared: StageFiles) -> Iterator[PairBlock]:
    """Yield the pairs of all cells in ascending order, at least one block.

    The files of a cell follow each other, so a cell is one run, and runs are cut at common smaller ranks.
    """
    with ExitStack() as stack:
        cells = [_cell_pairs(compared, list(files), stack) for _, files in groupby(compared.files, _cell_of)]
        is_empty = True
        for slices in cut_runs([block.low for block in cells], CHUNK_PAIRS):
            pieces = [_part(block, cut) for block, cut in zip(cells, slices, strict=True) if cut.start < cut.stop]
            block = PairBlock.concat(pieces)
            yield block.take(np.argsort(pack_pairs(block.low, block.high), kind="stable"))
            is_empty = False
        if is_empty:
            yield PairBlock.concat([])


def _cell_of(file: StageFile) -> str:
    """Return the number of the cell in the name of its file."""
    return file.name.partition("-")[0]


def _cell_pairs(compared: StageFiles, files: list[StageFile], stack: ExitStack) -> PairBlock:
    """Return the pairs of a cell; those of a cell with one file are a view of it."""
    names = [file.name for file in files]
    work = stack.enter_context(compared.folder.reading(compared.stage, *names))
    columns = [[file.map(name) for name in ("low", "high", "similarity")] for file in map(work.open, names)]
    return PairBlock(
        *(of_files[0] if len(files) == 1 else np.concatenate(of_files) for of_files in zip(*columns, strict=True))
    )


def _part(block: PairBlock, cut: slice) -> PairBlock:
    return PairBlock(block.low[cut], block.high[cut], block.similarity[cut])


def total_counts(cells: list[dict[str, Any]], proposals: int, classes: int) -> dict[str, Any]:
    """Return the counts of :mod:`minwise.search.needed_pairs` of all cells together."""
    candidates = [counts["candidates"] for counts in cells]
    return {
        "proposals": proposals,
        "compared": sum(counts["compared"] for counts in cells),
        "classes": classes,
        "candidates": None if None in candidates else sum(candidates),
    }


def total_caps(counts: list[list[int]]) -> BucketCounts:
    """Return the counts of the bucket cap of all parts together."""
    found = [BucketCounts(*count) for count in counts]
    return BucketCounts(
        sum(count.capped for count in found),
        sum(count.capped_members for count in found),
        sum(count.left_out for count in found),
        max((count.largest for count in found), default=0),
    )
