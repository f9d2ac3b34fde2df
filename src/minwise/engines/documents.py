"""Documents: the first pass. Sources in; the band keys, content hashes, ids and faults of their documents out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise.engines.work import Work
from minwise.errors import ConfigError, InputError
from minwise.formats.array_file import ArrayFile
from minwise.formats.source import Batch, Columns, Fault, Source
from minwise.prefetch import prefetch
from minwise.progress import Progress
from minwise.settings import FindSettings, Limits
from minwise.stages.band import EMPTY, FAULTY, FILLED, Bander, KeyBlock, distinct
from minwise.stages.keep import KeepOrder
from minwise.stages.read import text_chunk

__all__ = ["Corpus", "Documents", "read_documents", "text_lengths"]

# Documents, and bytes of text, after which a piece of the first pass is finished and need not be done again.
PART_DOCUMENTS = 1 << 18
PART_BYTES = 1 << 30
# Documents are numbered in 32 bits, and the last number stands for nobody.
MAX_DOCUMENTS = 2**32 - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What there is to read, in document order.

    Attributes:
        sources: Those that are only compared against, then the others; each in order of their names.
        columns: What is read of them.
        against: How many of the sources are only compared against.
        on_error: ``quarantine``, ``skip`` or ``fail``.
        root: The common parent of the sources that are not only compared against.
    """

    sources: list[Source]
    columns: Columns
    against: int = 0
    on_error: str = "quarantine"
    root: str = ""

    def fingerprint(self) -> list[dict[str, object]]:
        """What changes when a source does."""
        return [source.fingerprint() for source in self.sources]

    def known_rows(self) -> int | None:
        """The number of rows, if all sources can tell."""
        rows = [source.known_rows() for source in self.sources]
        return None if None in rows else sum(filter(None, rows))


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

    @property
    def full(self) -> bool:
        return self.block.room == 0 or self.text_bytes >= PART_BYTES


def read_documents(
    corpus: Corpus, settings: FindSettings, limits: Limits, work: Work, progress: Progress
) -> "Documents":
    """Reads every source once and leaves its documents, as numbers, in the work directory; goes on where it stopped."""
    if not work.has("documents"):
        _FirstPass(corpus, settings, limits, work).run(progress)
    return Documents(corpus, work)


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
                position = (source, row + rows)
            self.number += 1
        for name in [*self.work.names("columns-"), *self.work.names("faults-")]:
            if int(name.rpartition("-")[2]) >= self.number:  # of a piece that was not finished
                self.work.forget(name)
        self.part.first = sum(self.rows)
        return position

    def _batches(self, source: int, row: int) -> Iterator[tuple[int, Batch]]:
        for number in range(source, len(self.corpus.sources)):
            skip = row if number == source else 0
            batches = self.corpus.sources[number].batches(self.corpus.columns, batch_bytes=self.limits.batch_bytes)
            for batch in batches:
                if batch.first + len(batch) > skip or len(batch) == 0:
                    yield number, _without_first(batch, max(0, skip - batch.first))

    def _take(self, source: int, batch: Batch) -> None:
        """Adds a batch to the growing piece, cut where the piece is full."""
        while True:
            rows = min(len(batch), self.part.block.room)
            self._add(source, _first(batch, rows))
            if self.part.full:
                self._finish_part()
            if rows == len(batch):
                return
            batch = _without_first(batch, rows)

    def _add(self, source: int, batch: Batch) -> None:
        part = self.part
        found = self.bander.band(batch.texts, part.block, self.limits.threads)
        places = np.array([batch.first + place for place, _ in found], dtype=np.int64)
        names, rows = self.corpus.sources[source].locate(places)
        faults = [Fault(name, row, why) for name, row, (_, why) in zip(names, rows.tolist(), found, strict=True)]
        self._note_faults([*batch.faults, *faults])
        lengths = text_lengths(batch.texts)
        part.lengths.append(lengths)
        part.text_bytes += int(lengths.sum())
        part.spans.append([source, batch.first, len(batch)])
        part.ids.append(self._ids(source, batch))
        part.ranks.append(batch.rank)
        self.rows[source] = max(self.rows[source], batch.first + len(batch))
        if sum(self.rows) > MAX_DOCUMENTS:
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
        return pc.coalesce(*_same_type([ids, self.corpus.sources[source].default_ids(rows)]))

    def _note_faults(self, faults: list[Fault]) -> None:
        if faults and self.corpus.on_error == "fail":
            first = min(faults, key=lambda fault: (fault.row is None, fault.row or 0))
            place = first.source if first.row is None else f"{first.source}: row {first.row}"
            raise InputError(f"{place}: {first.reason}; --on-error quarantine goes on without it")
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
            self.work.write(f"part-{name}", arrays, first=part.first, spans=_joined_spans(part.spans))
            self.number += 1
        part.block.used = 0
        self.part = _Part(part.block, sum(self.rows))

    def _refuse_nothing_readable(self) -> None:
        """A run that could read no row at all has the wrong column or the wrong files."""
        if sum(self.rows):
            return
        for name in self.work.names("faults-"):
            fault = self.work.read_table(name).slice(0, 1).to_pylist()[0]
            raise InputError(f"{fault['source']}: {fault['reason']}")


def _first(batch: Batch, rows: int) -> Batch:
    if rows == len(batch):
        return batch
    faults = tuple(fault for fault in batch.faults if fault.row is not None and fault.row < batch.first + rows)
    ids, rank = (None if column is None else column.slice(0, rows) for column in (batch.ids, batch.rank))
    return Batch(batch.first, batch.texts.slice(0, rows), ids, rank, faults)


def _without_first(batch: Batch, rows: int) -> Batch:
    if rows == 0:
        return batch
    faults = tuple(fault for fault in batch.faults if fault.row is None or fault.row >= batch.first + rows)
    ids, rank = (None if column is None else column.slice(rows) for column in (batch.ids, batch.rank))
    return Batch(batch.first + rows, batch.texts.slice(rows), ids, rank, faults)


def text_lengths(texts: pa.Array) -> NDArray[np.uint64]:
    """Bytes of each text; elements of each set."""
    if pa.types.is_large_list(texts.type):
        sizes: NDArray[np.int64] = np.diff(texts.offsets.to_numpy())
        return sizes.astype(np.uint64)
    lengths: NDArray[np.int64] = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.uint64)


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
        columns["id"] = _one_type([_ids_of(part, corpus, place) for place in range(len(part.ids))])
    if any(ranks is not None for ranks in part.ranks):
        rows = [rows for _, _, rows in part.spans]
        ranks = [pa.nulls(count) if rank is None else rank for count, rank in zip(rows, part.ranks, strict=True)]
        columns["rank"] = _joined_ranks(ranks, corpus.columns.rank)
    return columns


def _ids_of(part: _Part, corpus: Corpus, place: int) -> pa.Array:
    """The ids of a span; those that the source makes up where it has none."""
    source, row, rows = part.spans[place]
    ids = part.ids[place]
    return corpus.sources[source].default_ids(np.arange(row, row + rows, dtype=np.int64)) if ids is None else ids


def _same_type(columns: list[pa.Array]) -> list[pa.Array]:
    if len({column.type for column in columns}) == 1:
        return columns
    return [column.cast(pa.large_string()) for column in columns]


def _one_type(columns: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(_same_type(columns))


def _joined_ranks(ranks: list[pa.Array], name: str | None) -> pa.Array:
    types = {column.type for column in ranks if column.type != pa.null()}
    target = types.pop() if len(types) == 1 else pa.float64()
    try:
        return pa.concat_arrays([column.cast(target) for column in ranks])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        shown = ", ".join(sorted({str(column.type) for column in ranks}))
        raise ConfigError(f"keep column {name} must have one type in all files, got {shown}") from None


def _fault_table(faults: list[Fault]) -> pa.Table:
    schema = pa.schema([("source", pa.large_string()), ("row", pa.int64()), ("reason", pa.large_string())])
    rows = [{"source": fault.source, "row": fault.row, "reason": fault.reason} for fault in faults]
    return pa.Table.from_pylist(rows, schema=schema)


class Documents:
    """The documents of a corpus by number: where they stand, what they are called, what became of them.

    Attributes:
        rows: Rows of each source.
        starts: The number of each source's first document, and one past the last of all.
        protected: Documents that are only compared against; they come first.
    """

    def __init__(self, corpus: Corpus, work: Work) -> None:
        self.corpus = corpus
        self._work = work
        self.rows: list[int] = work.read_note("documents")["rows"]
        self.starts = np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)
        self.protected = int(self.starts[corpus.against])
        self.parts: list[ArrayFile] = [work.open(name) for name in work.names("part-")]
        self._firsts = np.array([part.header["first"] for part in self.parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def column(self, name: str) -> NDArray[Any]:
        """An array over all documents."""
        pieces = [part.read(name) for part in self.parts]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)

    def pieces(self, name: str) -> Iterator[NDArray[Any]]:
        """An array over all documents, piece by piece."""
        return (part.read(name) for part in self.parts)

    @cached_property
    def states(self) -> NDArray[np.uint8]:
        """``FILLED``, ``EMPTY`` or ``FAULTY`` for each document."""
        return self.column("states")

    def count(self, state: int, *, protected: bool = False) -> int:
        """How many documents are in a state, among those compared against or among the others."""
        states = self.states[: self.protected] if protected else self.states[self.protected :]
        return int(np.count_nonzero(states == state))

    @property
    def counts(self) -> dict[str, int]:
        """Rows read of the input, and what became of them."""
        filled, empty, faulty = (self.count(state) for state in (FILLED, EMPTY, FAULTY))
        return {"read": filled + empty + faulty, "documents": filled + empty, "empty": empty, "quarantined": faulty}

    def faults(self) -> Iterator[dict[str, Any]]:
        """Source, row and reason of everything that could not be used."""
        for name in self._work.names("faults-"):
            yield from self._work.read_table(name).to_pylist()

    def keep_order(self, policy: str) -> KeepOrder:
        """The order in which a policy prefers documents."""
        lengths = self.column("lengths") if policy in ("longest", "shortest") else None
        ranks = self._ranks() if ":" in policy else None
        return KeepOrder.of(policy, len(self), protected=self.protected, lengths=lengths, ranks=ranks)

    def _ranks(self) -> pa.Array:
        name = self.corpus.columns.rank
        found = []
        for number, part in enumerate(self.parts):
            table = self._columns.get(number, pa.table({}))
            has_ranks = "rank" in table.column_names
            found.append(table.column("rank").combine_chunks() if has_ranks else pa.nulls(part.length("states")))
        if all(column.null_count == len(column) for column in found) and len(self):
            raise ConfigError(f"keep column {name!r} is in no file, or has no values")
        return _joined_ranks([piece for column in found for piece in _arrays(column)], name)

    def locate(self, documents: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
        """Source name and row of each document."""
        numbers = np.searchsorted(self.starts, documents, side="right") - 1
        names: list[str] = [""] * len(documents)
        rows = np.empty(len(documents), dtype=np.int64)
        for source in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == source)
            within = documents[places].astype(np.int64) - self.starts[source]
            found, rows[places] = self.corpus.sources[source].locate(within)
            for place, name in zip(places.tolist(), found, strict=True):
                names[place] = name
        return names, rows

    @cached_property
    def _columns(self) -> dict[int, pa.Table]:
        """The tables of ids and ranks, by part."""
        return {int(name.rpartition("-")[2]): self._work.read_table(name) for name in self._work.names("columns-")}

    @cached_property
    def id_type(self) -> pa.DataType:
        """int64 if every id is a whole number, string otherwise."""
        types = {table.schema.field("id").type for table in self._columns.values() if "id" in table.column_names}
        if len(self._columns) < len(self.parts) or not types:
            types |= {source.default_ids(np.empty(0, dtype=np.int64)).type for source in self.corpus.sources}
        return pa.int64() if types == {pa.int64()} else pa.large_string()

    def ids(self, documents: NDArray[Any]) -> pa.Array:
        """The ids of documents."""
        if not len(documents):
            return pa.array([], type=self.id_type)
        order = np.argsort(documents, kind="stable")
        wanted = documents[order].astype(np.int64)
        pieces = []
        bounds = np.searchsorted(wanted, np.append(self._firsts, len(self)))
        for part, (start, end) in enumerate(pairwise(bounds.tolist())):
            if start < end:
                pieces.append(self._part_ids(part, wanted[start:end]).cast(self.id_type))
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(pieces).take(pa.array(back))

    def duplicate_ids(self) -> int:
        """How many documents of the input have the id of an earlier one."""
        hashes = [
            _id_hashes(piece)
            for part, table in self._columns.items()
            if "id" in table.column_names
            for piece in _arrays(table.column("id").slice(max(0, self.protected - int(self._firsts[part]))))
        ]
        every = np.concatenate([np.empty(0, dtype=np.uint64), *hashes])
        return len(every) - len(distinct(every))

    def _part_ids(self, part: int, documents: NDArray[np.int64]) -> pa.Array:
        table = self._columns.get(part)
        if table is not None and "id" in table.column_names:
            places = pa.array(documents - self._firsts[part])
            return pa.concat_arrays(_arrays(table.column("id").take(places)))
        numbers = np.searchsorted(self.starts, documents, side="right") - 1
        pieces = [
            self.corpus.sources[source].default_ids(documents[numbers == source] - self.starts[source])
            for source in np.unique(numbers).tolist()
        ]
        return _one_type(pieces)


def _id_hashes(ids: pa.Array) -> NDArray[np.uint64]:
    ids = ids.drop_null()
    if ids.type == pa.int64():
        numbers: NDArray[np.int64] = ids.to_numpy()
        return numbers.view(np.uint64)
    chunk = text_chunk(ids)
    return _kernel.hash_strings(chunk.offsets, chunk.data, 0)


def _arrays(column: Any) -> list[pa.Array]:  # noqa: ANN401 - an array or a chunked one
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return column.chunks or [pa.array([], type=column.type)]
