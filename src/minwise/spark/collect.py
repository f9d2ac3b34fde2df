"""Results of finished stages, collected on the driver into the files that the local engine writes."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_numpy, valid_mask
from minwise.inputs.source import Fault
from minwise.search.candidates import CHUNK_PAIRS, VERIFIED, ComparedChunk
from minwise.search.clustering import PairBlock
from minwise.search.documents import (
    PART_DOCUMENTS,
    Corpus,
    DocumentPart,
    count_usable,
    refuse_nothing_readable,
    refuse_too_many,
    refuse_unusable_inputs,
)
from minwise.search.needed_pairs import STAGES
from minwise.search.verification import write_verified
from minwise.search.workdir import WorkDirectory
from minwise.spark.read_tasks import ENDED, FAILED, raise_failure, unpack_keep_values
from minwise.spark.stage_store import StageStore

__all__ = ["collect_documents", "collect_pairs", "collect_star_pairs"]

COLUMNS = [
    "source",
    "row",
    "state",
    "text_bytes",
    "content_high",
    "content_low",
    "fault",
    "id",
    "id_is_number",
    "ranks",
    "tokens",
]
PAIR_COLUMNS = ["low", "high", "similarity"]


def collect_documents(stages: StageStore, corpus: Corpus, work: WorkDirectory) -> None:
    """Write what the driver needs of each document to the work directory: neither texts nor bands."""
    if not work.has("documents"):
        for prefix in ("part-", "columns-", "faults-"):
            work.delete(prefix)  # of a run that was interrupted here
        _DocumentCollector(corpus, work).run(stages.batches("signatures", COLUMNS))


class _DocumentCollector:
    """Writer of document parts from rows of the stage ``signatures``."""

    def __init__(self, corpus: Corpus, work: WorkDirectory) -> None:
        self.corpus, self.work = corpus, work
        self.rows = [0] * len(corpus.sources)
        self.ended: set[int] = set()
        self.keep_values: list[pa.Array] = []  # of rows that have not been added yet
        self.number, self.part = 0, DocumentPart(0)
        self.states: list[NDArray[np.uint8]] = []
        self.contents: list[NDArray[np.uint64]] = []

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
            if state[start] == FAILED:
                raise_failure(rows.column("fault")[0].as_py())
            elif state[start] == ENDED:
                self._end(int(source[start]), rows.column("fault")[0].as_py())
            else:
                self._add(int(source[start]), int(row[start]), rows)

    def _end(self, source: int, reason: str) -> None:
        if source not in self.ended:
            self.ended.add(source)
            self.part.add_faults([(0, Fault(self.corpus.sources[source].name, None, reason))], self.corpus.on_error)

    def _add(self, number: int, first: int, rows: pa.RecordBatch) -> None:
        keep_values = self._keep_values_of(rows)
        if number in self.ended:  # the local engine reads nothing after an unreadable row group either
            return
        source = self.corpus.sources[number]
        faulty = np.flatnonzero(to_numpy(rows.column("fault").is_valid().cast(pa.uint8())))
        names, within = source.locate(first + faulty)
        reasons = rows.column("fault").drop_null().to_pylist()
        located = zip(faulty.tolist(), names.to_pylist(), within.tolist(), reasons, strict=True)
        faults = [(offset, Fault(name, row, reason)) for offset, name, row, reason in located]
        self.part.add_faults(faults, self.corpus.on_error)
        if number >= self.corpus.against:
            sampled = first + np.flatnonzero(valid_mask(rows.column("tokens")))
            self.part.add_tokens(sampled, to_numpy(rows.column("tokens").drop_null()))
        lengths = to_numpy(rows.column("text_bytes")).view(np.uint64)
        ids = _ids_of(rows)
        start = 0
        for values in keep_values or [None]:
            end = len(rows) if values is None else start + len(values)
            part_ids = None if ids is None else ids.slice(start, end - start)
            self.part.add(number, first + start, lengths[start:end], part_ids, values)
            start = end
        contents = (to_numpy(rows.column(name)).view(np.uint64) for name in ("content_high", "content_low"))
        self.contents.append(np.stack(list(contents), axis=1))
        self.states.append(to_numpy(rows.column("state")).view(np.uint8))
        self.rows[number] = first + len(rows)
        refuse_too_many(self.part.first + sum(map(len, self.states)))

    def _keep_values_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the keep values of some rows, in arrays of one type each."""
        packed = rows.column("ranks").drop_null()
        self.keep_values.extend(unpack_keep_values(stream) for stream in packed)
        missing, found = len(rows), []
        while missing and self.keep_values:
            found.append(self.keep_values[0].slice(0, missing))
            rest = self.keep_values[0].slice(missing)
            self.keep_values[:1] = [rest] if len(rest) else []
            missing -= len(found[-1])
        return found

    def _finish_part(self) -> None:
        if self.part.spans or self.part.faults:
            states = np.concatenate([np.empty(0, dtype=np.uint8), *self.states])
            contents = np.concatenate([np.empty((0, 2), dtype=np.uint64), *self.contents])
            self.part.write(self.work, self.number, self.corpus, {"states": states, "contents": contents})
            self.number += 1
        self.part = DocumentPart(self.part.first + sum(map(len, self.states)))
        self.states, self.contents = [], []


def _ids_of(rows: pa.RecordBatch) -> pa.Array | None:
    """Return the ids of rows, all of one kind, or None if there are none."""
    is_number = rows.column("id_is_number")[0].as_py()
    if is_number is None:
        return None
    return rows.column("id").cast(pa.int64() if is_number else pa.large_string())


def collect_pairs(stages: StageStore, work: WorkDirectory, threshold: float) -> None:
    """Write all verified pairs to the work directory, in order."""
    work.delete(f"{VERIFIED}-")  # of a run that was interrupted here
    for number, block in enumerate(_pair_blocks(stages)):
        write_verified(work, f"{VERIFIED}-{number:06}", ComparedChunk(block, {}, 0), threshold)


def collect_star_pairs(
    stages: StageStore, work: WorkDirectory, threshold: float, documents: int, classes: int
) -> NDArray[np.bool_]:
    """Write the verified pairs that have a kept document, in order, and count those of the sample.

    Args:
        stages: The finished stages.
        work: The work directory.
        threshold: Minimum similarity of near-duplicates.
        documents: Number of documents.
        classes: Number of classes of the sample; 0 for none.

    Returns:
        Which documents are removed.
    """
    work.delete(f"{STAGES['star']}-")
    removed = np.zeros(documents, dtype=bool)
    for block in _pair_blocks(stages):
        similar = block.where(~(block.similarity < threshold))  # an unknown similarity is that of near-duplicates
        _kernel.remove_neighbours(similar.low, similar.high, removed)
    for number, block in enumerate(_pair_blocks(stages)):
        rest = removed[block.low] & removed[block.high]
        others = block.where(rest)
        sampled = others.where(_kernel.sampled_pairs(others.low, others.high, classes))
        chunk = ComparedChunk(block.where(~rest), {}, 0, sampled)
        write_verified(work, f"{STAGES['star']}-{number:06}", chunk, threshold)
    return removed


def _pair_blocks(stages: StageStore) -> Iterator[PairBlock]:
    """Yield the verified pairs, in order, as many at a time as the local engine writes."""
    held: list[PairBlock] = []
    for batch in stages.batches("verified", PAIR_COLUMNS):
        low, high, similarity = (to_numpy(batch.column(name)) for name in PAIR_COLUMNS)
        held.append(PairBlock(low.astype(np.uint32), high.astype(np.uint32), similarity))
        if sum(map(len, held)) >= CHUNK_PAIRS:
            yield PairBlock.concat(held)
            held = []
    if held:
        yield PairBlock.concat(held)
