"""First pass: sources in; the band keys, content hashes, ids and faults of their documents out."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.engines.documents import Corpus, joined_ids, joined_ranks, same_type
from minwise.engines.work import Work
from minwise.errors import InputError
from minwise.formats.arrays import from_numbers, from_strings, present, to_numpy
from minwise.formats.source import Batch, Fault
from minwise.prefetch import prefetch
from minwise.progress import Progress
from minwise.settings import FindSettings, Limits
from minwise.stages.band import Bander, KeyBlock

__all__ = ["read_documents", "text_lengths"]

# Documents, and bytes of text, after which a piece of the first pass is finished and need not be done again.
PART_DOCUMENTS = 1 << 18
PART_BYTES = 1 << 30
# Documents are numbered in 32 bits, and the last number stands for nobody.
MAX_DOCUMENTS = 2**32 - 2


@dataclass(slots=True)
class _Part:
    """A piece of the first pass as it grows."""

    block: KeyBlock
    first: int
    text_bytes: int = 0
    lengths: list[NDArray[np.uint64]] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    ids: list[pa.Array | None] = field(default_factory=list)
    ranks: list[pa.Array | None] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return self.block.room == 0 or self.text_bytes >= PART_BYTES


def read_documents(corpus: Corpus, settings: FindSettings, limits: Limits, work: Work, progress: Progress) -> None:
    """Reads every source once and leaves its documents, as numbers, in the work directory; goes on where it stopped."""
    if not work.has("documents"):
        _FirstPass(corpus, settings, limits, work).run(progress)


class _FirstPass:
    def __init__(self, corpus: Corpus, settings: FindSettings, limits: Limits, work: Work) -> None:
        self.corpus, self.settings, self.limits, self.work = corpus, settings, limits, work
        per_document = 8 * settings.plan.bands + 64 + (2 * settings.plan.slots if settings.verify == "signature" else 0)
        self.capacity = int(np.clip(limits.memory // 16 // per_document, 1024, PART_DOCUMENTS))
        self.bander = Bander(settings)
        self.rows = [0] * len(corpus.sources)
        self.number = 0
        self.part = _Part(KeyBlock.of(settings, self.capacity), 0)

    def run(self, progress: Progress) -> None:
        source, row = self._resume()
        known = self.corpus.known_rows()
        with progress.stage("read and sketch", known, "documents", done=sum(self.rows)) as stage:
            for number, batch in prefetch(self._batches(source, row)):
                stage.advance(len(batch))
                self._take(number, batch)
        self._finish_part()
        self._refuse_nothing_readable()
        self.work.note("documents", {"rows": self.rows, "parts": self.number})

    def _resume(self) -> tuple[int, int]:
        """Source and row after those of the finished pieces."""
        position = (0, 0)
        for name in self.work.names("part-"):
            header = self.work.open(name).header
            for source, row, rows in header["spans"]:
                self.rows[source] = row + rows
                position = (source + 1, 0) if source in header["ended"] else (source, row + rows)
            self.number += 1
        for name in [*self.work.names("columns-"), *self.work.names("faults-")]:
            if int(name.rpartition("-")[2]) >= self.number:  # of a piece that was not finished
                self.work.forget(name)
        self.part.first = sum(self.rows)
        return position

    def _batches(self, source: int, row: int) -> Iterator[tuple[int, Batch]]:
        for number in range(source, len(self.corpus.sources)):
            skip = row if number == source else 0
            columns = self.corpus.columns
            if number < self.corpus.against:  # whose order no policy changes
                columns = replace(columns, rank=None)
            for batch in self.corpus.sources[number].batches(columns, batch_bytes=self.limits.batch_bytes):
                if batch.first + len(batch) > skip or len(batch) == 0:
                    yield number, batch.part(max(0, skip - batch.first), len(batch))

    def _take(self, source: int, batch: Batch) -> None:
        """Adds a batch to the growing piece, cut where the piece is full."""
        while True:
            rows = min(len(batch), self.part.block.room)
            self._add(source, batch.part(0, rows))
            if self.part.full:
                self._finish_part()
            if rows == len(batch):
                return
            batch = batch.part(rows, len(batch))

    def _add(self, source: int, batch: Batch) -> None:
        part = self.part
        found = self.bander.band(batch.texts, part.block, self.limits.threads)
        places = np.array([batch.first + place for place, _ in found], dtype=np.int64)
        names, rows = self.corpus.sources[source].locate(places)
        faults = [Fault(name, row, why) for name, row, (_, why) in zip(names, rows.tolist(), found, strict=True)]
        self._note_faults([*batch.faults, *faults])
        if any(fault.row is None for fault in batch.faults):  # it can not be read on, and that need not be found again
            part.ended.append(source)
        lengths = text_lengths(batch.texts)
        part.lengths.append(lengths)
        part.text_bytes += int(lengths.sum())
        part.spans.append([source, batch.first, len(batch)])
        part.ids.append(self._ids(source, batch))
        part.ranks.append(batch.rank)
        self.rows[source] = max(self.rows[source], batch.first + len(batch))
        if part.first + part.block.used > MAX_DOCUMENTS:
            raise InputError(f"a run takes at most {MAX_DOCUMENTS} documents, got more; use the spark engine")

    def _ids(self, source: int, batch: Batch) -> pa.Array | None:
        """The ids of a batch; a document without one gets the id that its source makes up."""
        ids = batch.ids
        if ids is None or not ids.null_count:
            return ids
        lacking = pc.and_(pc.is_null(ids), pc.is_valid(batch.texts))
        if not pc.any(lacking).as_py():
            return ids
        rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
        return pc.coalesce(*same_type([ids, self.corpus.sources[source].default_ids(rows)]))

    def _note_faults(self, faults: list[Fault]) -> None:
        if faults and self.corpus.on_error == "fail":
            first = min(faults, key=lambda fault: (fault.row is None, fault.row or 0))
            raise InputError(f"{first}; on-error quarantine goes on without it")
        self.part.faults.extend(faults)

    def _finish_part(self) -> None:
        """Writes the piece, the file that says it is finished last."""
        part, name = self.part, f"{self.number:06}"
        if part.spans:
            columns = _columns(part, self.corpus)
            if columns:
                self.work.write_table(f"columns-{name}", pa.table(columns))
            if part.faults:
                self.work.write_table(f"faults-{name}", _fault_table(part.faults))
            lengths = np.concatenate(part.lengths) if part.lengths else np.empty(0, dtype=np.uint64)
            arrays = {**part.block.arrays(), "lengths": lengths}
            header = {"first": part.first, "spans": _joined_spans(part.spans), "ended": part.ended}
            self.work.write(f"part-{name}", arrays, **header)
            self.number += 1
        first, part.block.used = part.first + part.block.used, 0
        self.part = _Part(part.block, first)

    def _refuse_nothing_readable(self) -> None:
        """A run that could read no row at all has the wrong column or the wrong files."""
        faulty = [self.work.read_table(name) for name in self.work.names("faults-")]  # views of their files
        rows = sum(len(table) - table.column("row").null_count for table in faulty)
        if faulty and rows >= sum(self.rows):
            fault = faulty[0].slice(0, 1).to_pylist()[0]
            where = [fault["source"], "" if fault["row"] is None else f"row {fault['row']}", fault["reason"]]
            raise InputError(f"no document can be read; {': '.join(filter(None, where))}")


def text_lengths(texts: pa.Array) -> NDArray[np.uint64]:
    """Bytes of each text; elements of each set."""
    if pa.types.is_large_list(texts.type):
        return np.diff(to_numpy(texts.offsets)).astype(np.uint64)
    lengths = to_numpy(pc.binary_length(texts)).astype(np.uint64)
    return np.where(present(texts), lengths, 0) if texts.null_count else lengths


def _joined_spans(spans: list[list[int]]) -> list[list[int]]:
    """Spans of one source that follow each other as one."""
    joined: list[list[int]] = []
    for source, row, rows in spans:
        if joined and joined[-1][0] == source and joined[-1][1] + joined[-1][2] == row:
            joined[-1][2] += rows
        else:
            joined.append([source, row, rows])
    return joined


def _columns(part: _Part, corpus: Corpus) -> dict[str, pa.Array]:
    """Ids and ranks of a piece, if it has any."""
    columns: dict[str, pa.Array] = {}
    if any(ids is not None for ids in part.ids):
        columns["id"] = joined_ids([_ids_of(part, corpus, place) for place in range(len(part.ids))])
    if any(ranks is not None for ranks in part.ranks):
        rows = [rows for _, _, rows in part.spans]
        ranks = [pa.nulls(count) if rank is None else rank for count, rank in zip(rows, part.ranks, strict=True)]
        columns["rank"] = joined_ranks(ranks, corpus.columns.rank)
    return columns


def _ids_of(part: _Part, corpus: Corpus, place: int) -> pa.Array:
    """The ids of a span; those that the source makes up where it has none."""
    source, row, rows = part.spans[place]
    ids = part.ids[place]
    return corpus.sources[source].default_ids(np.arange(row, row + rows, dtype=np.int64)) if ids is None else ids


def _fault_table(faults: list[Fault]) -> pa.Table:
    rows = from_numbers([fault.row for fault in faults], np.int64)
    sources, reasons = (from_strings([getattr(fault, name) for fault in faults]) for name in ("source", "reason"))
    return pa.table({"source": sources, "row": rows, "reason": reasons})
