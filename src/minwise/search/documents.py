"""Parts: documents in order in; a finished piece of them, as numbers, ids and faults, out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise._internal.arrays import from_numbers, from_numpy, from_strings, present, to_numpy
from minwise.errors import ConfigError, InputError
from minwise.inputs.source import Batch, Columns, Fault, Source
from minwise.search.bands import EMPTY, FAULTY, FILLED
from minwise.search.clustering import KeepOrder
from minwise.search.workdir import Work
from minwise.text.chunks import text_chunk

__all__ = [
    "PART_BYTES",
    "PART_DOCUMENTS",
    "Corpus",
    "Documents",
    "Part",
    "batch_ids",
    "fault_table",
    "joined_ids",
    "joined_ranks",
    "placed_faults",
    "refuse_nothing_readable",
    "refuse_too_many",
    "same_type",
]

# Documents, and bytes of text, after which a piece is finished and need not be done again.
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
        format: The format of all files, if it was given and their names do not decide.
    """

    sources: list[Source]
    columns: Columns
    against: int = 0
    on_error: str = "quarantine"
    root: str = ""
    format: str | None = None

    def fingerprint(self) -> list[dict[str, object]]:
        """What changes when a source does."""
        return [source.fingerprint() for source in self.sources]

    def known_rows(self) -> int | None:
        """The number of rows, if all sources can tell."""
        rows = [source.known_rows() for source in self.sources]
        return None if None in rows else sum(filter(None, rows))


@dataclass(slots=True)
class Part:
    """A piece of the documents as it grows.

    Attributes:
        first: The number of its first document.
        text_bytes: Bytes of all texts so far.
    """

    first: int
    text_bytes: int = 0
    lengths: list[NDArray[np.uint64]] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    ids: list[pa.Array | None] = field(default_factory=list)
    ranks: list[pa.Array | None] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def add(
        self,
        source: int,
        first: int,
        lengths: NDArray[np.uint64],
        ids: pa.Array | None,
        ranks: pa.Array | None,
    ) -> None:
        """Adds rows that follow each other in a source; the number of the first of them there is ``first``."""
        self.lengths.append(lengths)
        self.text_bytes += int(lengths.sum())
        self.spans.append([source, first, len(lengths)])
        self.ids.append(ids)
        self.ranks.append(ranks)

    def note_faults(self, faults: Iterable[tuple[int, Fault]], on_error: str) -> None:
        """Adds faults, each with its place among the rows that are added.

        Raises:
            InputError: If there are any and ``on_error`` is ``fail``.
        """
        ordered = [fault for _, fault in sorted(faults, key=itemgetter(0))]
        if ordered and on_error == "fail":
            raise InputError(f"{ordered[0]}; on-error quarantine goes on without it")
        self.faults.extend(ordered)

    def write(self, work: Work, number: int, corpus: Corpus, arrays: dict[str, NDArray[Any]]) -> None:
        """Writes the piece, the file that says it is finished last."""
        name = f"{number:06}"
        columns = self._columns(corpus)
        if columns:
            work.write_table(f"columns-{name}", pa.table(columns))
        if self.faults:
            work.write_table(f"faults-{name}", fault_table(self.faults))
        lengths = np.concatenate(self.lengths) if self.lengths else np.empty(0, dtype=np.uint64)
        header = {"first": self.first, "spans": _joined_spans(self.spans), "ended": self.ended}
        work.write(f"part-{name}", {**arrays, "lengths": lengths}, **header)

    def _columns(self, corpus: Corpus) -> dict[str, pa.Array]:
        """Ids and ranks of the piece, if it has any."""
        columns: dict[str, pa.Array] = {}
        if any(ids is not None for ids in self.ids):
            columns["id"] = joined_ids([self._ids_of(corpus, place) for place in range(len(self.ids))])
        if any(ranks is not None for ranks in self.ranks):
            rows = [rows for _, _, rows in self.spans]
            ranks = [pa.nulls(count) if rank is None else rank for count, rank in zip(rows, self.ranks, strict=True)]
            columns["rank"] = joined_ranks(ranks, corpus.columns.rank)
        return columns

    def _ids_of(self, corpus: Corpus, place: int) -> pa.Array:
        """The ids of a span; those that the source makes up where it has none."""
        source, row, rows = self.spans[place]
        ids = self.ids[place]
        return corpus.sources[source].default_ids(np.arange(row, row + rows, dtype=np.int64)) if ids is None else ids


def batch_ids(source: Source, batch: Batch) -> pa.Array | None:
    """The ids of a batch; a document without one gets the id that its source makes up."""
    ids = batch.ids
    if ids is None or not ids.null_count:
        return ids
    lacking = pc.and_(pc.is_null(ids), pc.is_valid(batch.texts))
    if not pc.any(lacking).as_py():
        return ids
    rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
    return pc.coalesce(*same_type([ids, source.default_ids(rows)]))


def placed_faults(batch: Batch) -> Iterator[tuple[int, Fault]]:
    """The faults of a batch with the places of their rows; that of the whole source comes after all rows."""
    nulls = np.flatnonzero(~present(batch.texts)).tolist()
    return zip(chain(nulls, repeat(len(batch))), batch.faults, strict=False)


def refuse_too_many(documents: int) -> None:
    """Raises if there are more documents than 32 bits can number."""
    if documents > MAX_DOCUMENTS:
        raise InputError(f"a run takes at most {MAX_DOCUMENTS} documents, got more; use minwise.spark on a DataFrame")


def refuse_nothing_readable(work: Work, rows: int) -> None:
    """Raises if no row at all could be read: it has the wrong column or the wrong files."""
    faulty = [work.read_table(name) for name in work.names("faults-")]  # views of their files
    if faulty and sum(len(table) - table.column("row").null_count for table in faulty) >= rows:
        fault = faulty[0].slice(0, 1).to_pylist()[0]
        where = [fault["source"], "" if fault["row"] is None else f"row {fault['row']}", fault["reason"]]
        raise InputError(f"no document can be read; {': '.join(filter(None, where))}")


def _joined_spans(spans: list[list[int]]) -> list[list[int]]:
    """Spans of one source that follow each other as one."""
    joined: list[list[int]] = []
    for source, row, rows in spans:
        if joined and joined[-1][0] == source and joined[-1][1] + joined[-1][2] == row:
            joined[-1][2] += rows
        else:
            joined.append([source, row, rows])
    return joined


def fault_table(faults: list[Fault]) -> pa.Table:
    """Source, row and reason of each."""
    rows = from_numbers([fault.row for fault in faults], np.int64)
    sources, reasons = (from_strings([getattr(fault, name) for fault in faults]) for name in ("source", "reason"))
    return pa.table({"source": sources, "row": rows, "reason": reasons})


# Faults that are made Python objects at a time.
FAULTS_AT_ONCE = 4096


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

    def within_input(self, source: int) -> slice:
        """Where the rows of a source are among those of the input, which does not count what is compared against."""
        start = int(self.starts[source]) - self.protected
        return slice(start, start + self.rows[source])

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

    def count(self, state: int) -> int:
        """How many documents of the input are in a state."""
        return int(np.count_nonzero(self.states[self.protected :] == state))

    @property
    def counts(self) -> dict[str, int]:
        """Rows read of the input, and what became of them."""
        filled, empty, faulty = (self.count(state) for state in (FILLED, EMPTY, FAULTY))
        return {"read": filled + empty + faulty, "documents": filled + empty, "empty": empty, "quarantined": faulty}

    def faults(self) -> Iterator[dict[str, Any]]:
        """Source, row and reason of everything that could not be used."""
        for name in self._fault_tables:
            for batch in self._work.read_table(name).to_batches(max_chunksize=FAULTS_AT_ONCE):
                yield from batch.to_pylist()

    def unreadable(self) -> list[dict[str, Any]]:
        """The faults of whole sources."""
        found: list[dict[str, Any]] = []
        for name in self._fault_tables:
            table = self._work.read_table(name)
            if table.column("row").null_count:
                found.extend(table.filter(table.column("row").is_null()).to_pylist())
        return found

    @property
    def _fault_tables(self) -> list[str]:
        """The tables of faults: first of the rows that documents were grouped from, then of documents."""
        return [*self._work.names("unusable-"), *self._work.names("faults-")]

    def grouped_rows(self) -> dict[str, int] | None:
        """Rows that documents were grouped from, and how many of them could not be used; None if they were not."""
        if not self._work.has("grouped"):
            return None
        facts = self._work.read_note("grouped")
        return {"read": facts["rows"], "quarantined": facts["unusable"]}

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
        return joined_ranks([piece for column in found for piece in _arrays(column)], name)

    def locate(self, documents: NDArray[Any]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Source name and row of each document."""
        names, order = [pa.nulls(0, pa.large_string())], [np.empty(0, dtype=np.int64)]
        rows = np.empty(len(documents), dtype=np.int64)
        for source, places in self._by_source(documents):
            within = documents[places].astype(np.int64) - self.starts[source]
            found, rows[places] = self.corpus.sources[source].locate(within)
            names.append(found)
            order.append(places)
        return _put_back(pa.concat_arrays(names), np.concatenate(order)), rows

    def _by_source(self, documents: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The places of documents, source by source."""
        numbers = np.searchsorted(self.starts, documents, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for places in np.split(order, cuts):
            if len(places):
                yield int(numbers[places[0]]), places

    @cached_property
    def _columns(self) -> dict[int, pa.Table]:
        """The tables of ids and ranks, by part."""
        return {int(name.rpartition("-")[2]): self._work.read_table(name) for name in self._work.names("columns-")}

    @cached_property
    def id_type(self) -> pa.DataType:
        """int64 if every id is a whole number, string otherwise."""
        types = [table.schema.field("id").type for table in self._columns.values() if "id" in table.column_names]
        every = set(types)
        if len(types) < len(self.parts) or not types:
            every |= {source.default_ids(np.empty(0, dtype=np.int64)).type for source in self.corpus.sources}
        return pa.int64() if every == {pa.int64()} else pa.large_string()

    def ids(self, documents: NDArray[Any]) -> pa.Array:
        """The ids of documents."""
        if not len(documents):
            return pa.nulls(0, self.id_type)
        order = np.argsort(documents, kind="stable")
        wanted = documents[order].astype(np.int64)
        pieces = []
        bounds = np.searchsorted(wanted, np.append(self._firsts, len(self)))
        for part, (start, end) in enumerate(pairwise(bounds.tolist())):
            if start < end:
                pieces.append(self._part_ids(part, wanted[start:end]).cast(self.id_type))
        return _put_back(pa.concat_arrays(pieces), order)

    def duplicate_ids(self) -> int:
        """How many documents of the input have the id of an earlier one."""
        hashes = [
            _id_hashes(piece.cast(self.id_type))
            for part, table in self._columns.items()
            if "id" in table.column_names
            for piece in _arrays(table.column("id").slice(max(0, self.protected - int(self._firsts[part]))))
        ]
        every = np.concatenate([np.empty(0, dtype=np.uint64), *hashes])
        every.sort()
        return int(np.count_nonzero(every[1:] == every[:-1]))

    def _part_ids(self, part: int, documents: NDArray[np.int64]) -> pa.Array:
        table = self._columns.get(part)
        if table is not None and "id" in table.column_names:
            places = from_numpy(documents - self._firsts[part])
            return pa.concat_arrays(_arrays(table.column("id").take(places)))
        pieces = [  # the documents ascend, and so their sources do
            self.corpus.sources[source].default_ids(documents[places] - self.starts[source])
            for source, places in self._by_source(documents)
        ]
        return joined_ids(pieces)


def _put_back(values: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """The values in another order: value i is that of ``places[i]``."""
    back = np.empty(len(places), dtype=np.int64)
    back[places] = np.arange(len(places))
    return values.take(from_numpy(back))


def same_type(columns: list[pa.Array]) -> list[pa.Array]:
    """The columns as they are if their types are equal, as strings otherwise."""
    if len({column.type for column in columns}) == 1:
        return columns
    return [column.cast(pa.large_string()) for column in columns]


def joined_ids(columns: list[pa.Array]) -> pa.Array:
    """Columns of ids as one."""
    return pa.concat_arrays(same_type(columns))


def joined_ranks(ranks: list[pa.Array], name: str | None) -> pa.Array:
    """Columns of ranks as one, of a type that holds them all: texts, numbers and times are never mixed."""
    types = {column.type for column in ranks if column.type != pa.null()}
    try:
        target = _rank_type(types)
        return pa.concat_arrays([column.cast(target) for column in ranks])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        shown = ", ".join(sorted(map(str, types)))
        raise ConfigError(
            f"keep column {name} must have one kind of values in all files, got {shown}; cast it in one of them"
        ) from None


def _rank_type(types: set[Any]) -> pa.DataType:
    """The type in which values of all these types compare as they do in their own."""
    kinds = pa.types

    def every(*tests: Any) -> bool:  # noqa: ANN401 - functions of pyarrow
        return all(any(test(kind) for test in tests) for kind in types)

    if every(kinds.is_string, kinds.is_large_string, kinds.is_string_view):
        return pa.large_string()
    if every(kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view):
        return pa.large_binary()
    if every(kinds.is_integer, kinds.is_boolean):
        return pa.uint64() if pa.uint64() in types and len(types) == 1 else pa.int64()
    if every(kinds.is_integer, kinds.is_boolean, kinds.is_floating):
        return pa.float64()
    if len(types) > 1 and every(kinds.is_timestamp, kinds.is_date):
        zones = {kinds.is_timestamp(kind) and kind.tz is not None for kind in types}
        if len(zones) == 1:
            return pa.timestamp("us", "UTC" if zones.pop() else None)
    if len(types) == 1:
        return next(iter(types))
    raise pa.ArrowInvalid("no type holds them all")


def _id_hashes(ids: pa.Array) -> NDArray[np.uint64]:
    ids = ids.drop_null()
    if ids.type == pa.int64():
        return to_numpy(ids).view(np.uint64)
    chunk = text_chunk(ids)
    return _kernel.hash_strings(chunk.offsets, chunk.data, 0)


def _arrays(column: Any) -> list[pa.Array]:  # noqa: ANN401 - an array or a chunked one
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return column.chunks or [pa.nulls(0, column.type)]
