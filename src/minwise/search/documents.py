"""Documents of a search: the corpus and job that define it, and the documents that the first pass found, by number.

The first pass collects rows in :class:`DocumentPart` and writes them to the work directory; all later stages read them
back through :class:`Documents`. Nothing here holds texts: a document is a number, and its id, source and row, length,
state and values are read from the files of its part when they are needed.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, pairwise, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise._internal.arrays import from_numbers, from_numpy, from_strings, to_numpy, valid_mask
from minwise.errors import ConfigError, InputError
from minwise.inputs.document_values import DocumentValues, ValueColumn
from minwise.inputs.source import Batch, Columns, Fault, Source, TextSettings, fault_error, unusable_error
from minwise.keep_rules import KeepKey, KeepRule, LabelRule
from minwise.progress import Progress
from minwise.search.bands import EMPTY, FAULTY, FILLED
from minwise.search.clustering import KeepOrder, SortKey, by_number, by_value
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings
from minwise.text.chunks import text_chunk

__all__ = [
    "MOST_TOKENS",
    "PART_BYTES",
    "PART_DOCUMENTS",
    "Corpus",
    "DocumentPart",
    "Documents",
    "RepeatedIds",
    "SearchJob",
    "batch_ids",
    "check_columns",
    "concat_ids",
    "concat_values",
    "count_usable",
    "fault_table",
    "indexed_faults",
    "refuse_nothing_readable",
    "refuse_too_many",
    "refuse_unusable_inputs",
    "sampling_steps",
    "unify_types",
]

# Documents, and bytes of text, after which a part is written and need not be read again by a resumed run.
PART_DOCUMENTS = 1 << 18
PART_BYTES = 1 << 30
# Documents are numbered in 32 bits, and the last number means "no document".
MAX_DOCUMENTS = 2**32 - 2
# Tokens up to which the tokens of a sampled document are counted.
MOST_TOKENS = 64
# Rows of a source of which all, and up to which one of 8, are sampled; one of 64 after them.
SAMPLED_WHOLE, SAMPLED_DENSE = 64, 1024
# Faults that are converted to Python objects at a time.
FAULTS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Sources to read, in document order.

    Attributes:
        sources: Those that are only compared against, then the others; each in order of their names.
        columns: The columns to read.
        against: How many of the sources are only compared against; with ``linked``, how many are the second table.
        linked: Whether only pairs of a document of these sources and one of the others are wanted.
        on_error: ``fail``, ``quarantine-rows``, ``quarantine`` or ``skip``.
        root: The common parent of the sources that are not only compared against.
        format: The format of all files, if the user gave it instead of leaving it to the file names.
        text_settings: Delimiter and encoding of all text files, where the user gave them.
        skipped: Number of entries of the input that are not read, by reason.
    """

    sources: list[Source]
    columns: Columns
    against: int = 0
    linked: bool = False
    on_error: str = "quarantine"
    root: str = ""
    format: str | None = None
    text_settings: TextSettings = field(default_factory=TextSettings)
    skipped: Mapping[str, int] = field(default_factory=dict)

    def fingerprint(self) -> list[dict[str, object]]:
        """Return the fingerprint of each source, which changes when the source does."""
        return [source.fingerprint() for source in self.sources]

    def note_files(self) -> "Corpus":
        """Note what the files of all sources are, before any row is read; return the corpus."""
        for source in self.sources:
            source.note_files()
        return self

    def refuse_changes(self) -> None:
        """Raise InputError if a file has changed since :meth:`note_files`: its rows may be other ones now."""
        for source in self.sources:
            source.refuse_changes()

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise InputError if a file changes until the block ends, instead of any error that this causes in it."""
        try:
            yield
        except Exception:
            for change in filter(None, (source.change() for source in self.sources)):
                raise change from None
            raise
        self.refuse_changes()

    @property
    def first_counted(self) -> int:
        """Number of the first source whose documents a report counts: both tables count if two are linked."""
        return 0 if self.linked else self.against

    def columns_of(self, source: int) -> Columns:
        """Return the columns to read from a source; no keep policy reorders those that are only compared against."""
        if source >= self.against:
            return self.columns
        return replace(self.columns, values=tuple(column for column in self.columns.values if column.of_references))

    def known_rows(self) -> int | None:
        """Return the number of rows, or None if a source does not know it without reading."""
        rows = [source.known_rows() for source in self.sources]
        return None if None in rows else sum(filter(None, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchJob:
    """Corpus to search, with settings, limits, work directory and progress.

    Attributes:
        corpus: The sources.
        settings: Settings that decide the result.
        limits: Memory and threads; they never change the result.
        work: Directory of the finished files.
        progress: Receives progress events.
    """

    corpus: Corpus
    settings: SearchSettings
    limits: RunLimits
    work: WorkDirectory
    progress: Progress


def sampling_steps(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return of how many rows one is sampled at each row of a source: the first 64 all, then ever fewer."""
    return np.where(rows < SAMPLED_WHOLE, 1, np.where(rows < SAMPLED_DENSE, 8, 64))


@dataclass(slots=True)
class DocumentPart:
    """Consecutive documents, collected until they are written as one part.

    Attributes:
        first: The number of its first document.
        text_bytes: Bytes of all texts so far.
        lengths: Bytes of each text, batch by batch.
        spans: Source, first row and number of rows of each batch.
        ids: The ids of each batch; None where the source has none.
        document_values: The values that are kept for each document, batch by batch.
        faults: Rows that cannot be used.
        ended: Sources that cannot be read further.
        tokens: Estimated documents with 0, 1, 2, … tokens; see :func:`minwise.search.first_pass.token_counts`.
    """

    first: int
    text_bytes: int = 0
    lengths: list[NDArray[np.uint64]] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    ids: list[pa.Array | None] = field(default_factory=list)
    document_values: list[DocumentValues] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    tokens: NDArray[np.int64] = field(default_factory=lambda: np.zeros(MOST_TOKENS + 1, dtype=np.int64))

    def add_tokens(self, rows: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add the token counts of sampled rows, each of which stands for as many rows as one was sampled of."""
        weights = np.bincount(np.minimum(counts, MOST_TOKENS), sampling_steps(rows), MOST_TOKENS + 1)
        self.tokens += weights.astype(np.int64)

    def add(
        self,
        source: int,
        first: int,
        lengths: NDArray[np.uint64],
        ids: pa.Array | None,
        document_values: DocumentValues,
    ) -> None:
        """Add consecutive rows of a source, of which ``first`` is the row number of the first."""
        self.lengths.append(lengths)
        self.text_bytes += int(lengths.sum())
        self.spans.append([source, first, len(lengths)])
        self.ids.append(ids)
        self.document_values.append(document_values)

    def add_faults(self, faults: Iterable[tuple[int, Fault]], on_error: str) -> None:
        """Add faults, each with the index of its row in the batch that is being added.

        Raises:
            InputError: If there are any and ``on_error`` is ``fail``.
        """
        ordered = [fault for _, fault in sorted(faults, key=itemgetter(0))]
        if ordered and on_error == "fail":
            raise fault_error(ordered[0])
        self.faults.extend(ordered)

    def write(self, work: WorkDirectory, number: int, corpus: Corpus, arrays: dict[str, NDArray[Any]]) -> None:
        """Write the part; its ``part-`` file comes last and marks it as finished."""
        name = f"{number:06}"
        columns = self._columns(corpus)
        if columns:
            work.write_table(f"columns-{name}", pa.table(columns))
        if self.faults:
            work.write_table(f"faults-{name}", fault_table(self.faults))
        lengths = np.concatenate(self.lengths) if self.lengths else np.empty(0, dtype=np.uint64)
        header = {"first": self.first, "spans": _merge_spans(self.spans), "ended": self.ended}
        header["tokens"] = self.tokens.tolist()
        work.write(f"part-{name}", {**arrays, "lengths": lengths}, **header)

    def _columns(self, corpus: Corpus) -> dict[str, pa.Array]:
        """Return the column ``id`` and the document values of the part, as far as it has any."""
        columns: dict[str, pa.Array] = {}
        if any(ids is not None for ids in self.ids):
            columns["id"] = concat_ids([self._span_ids(corpus, span) for span in range(len(self.ids))])
        for column in corpus.columns.values:
            if any(column.key in values for values in self.document_values):
                columns[column.key] = self._values_of(column)
        return columns

    def _values_of(self, column: ValueColumn) -> pa.Array:
        """Return the values of a column; labels as a dictionary, because many documents share them."""
        rows = (rows for _, _, rows in self.spans)
        pieces = [
            values.get(column.key, pa.nulls(count)) for count, values in zip(rows, self.document_values, strict=True)
        ]
        values = concat_values(pieces, column.name)
        return values.dictionary_encode() if column.is_label else values

    def _span_ids(self, corpus: Corpus, span: int) -> pa.Array:
        """Return the ids of a span; the default ids of its source where there are none."""
        source, row, rows = self.spans[span]
        ids = self.ids[span]
        return corpus.sources[source].default_ids(np.arange(row, row + rows, dtype=np.int64)) if ids is None else ids


def batch_ids(source: Source, batch: Batch) -> pa.Array | None:
    """Return the ids of a batch; a document without one gets the default id of its source."""
    ids = batch.ids
    if ids is None or not ids.null_count:
        return ids
    lacking = pc.and_(pc.is_null(ids), pc.is_valid(batch.values))
    if not pc.any(lacking).as_py():
        return ids
    rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
    return pc.coalesce(*unify_types([ids, source.default_ids(rows)]))


def indexed_faults(batch: Batch) -> Iterator[tuple[int, Fault]]:
    """Yield the faults of a batch with the index of their rows; that of the whole source comes after all rows."""
    nulls = np.flatnonzero(~valid_mask(batch.values)).tolist()
    return zip(chain(nulls, repeat(len(batch))), batch.faults, strict=False)


def refuse_too_many(documents: int) -> None:
    """Raise InputError if there are more documents than 32 bits can number."""
    if documents > MAX_DOCUMENTS:
        raise InputError(f"a run takes at most {MAX_DOCUMENTS} documents, got more; use minwise.spark on a DataFrame")


def refuse_nothing_readable(work: WorkDirectory, rows: int) -> None:
    """Raise InputError if no row at all can be read, as with a wrong column or wrong files."""
    faulty = [work.read_table(name) for name in work.names("faults-")]  # views of their files
    if faulty and sum(len(table) - table.column("row").null_count for table in faulty) >= rows:
        raise InputError(f"no document can be read; {describe_first_fault(faulty[0])}")


def check_columns(corpus: Corpus) -> None:
    """Check the columns of all sources before any row is read, unless the run goes on without an unusable input.

    Raises:
        InputError: For the first source of which no row can be used.
    """
    for number, source in enumerate(corpus.sources if corpus.on_error in ("fail", "quarantine-rows") else ()):
        problem = source.column_problem(corpus.columns_of(number))
        if problem is not None:
            raise unusable_error(source, problem, alone=len(corpus.sources) == 1)


def refuse_unusable_inputs(corpus: Corpus, work: WorkDirectory, usable: list[int]) -> None:
    """Raise InputError for the first input of which no row can be used, with ``on_error`` ``quarantine-rows``.

    Args:
        corpus: The sources.
        work: The directory with all faults.
        usable: Number of rows of each source that can be used.
    """
    if corpus.on_error != "quarantine-rows":
        return
    counted = list(zip(corpus.sources, usable, strict=True))
    loose_usable = any(rows for source, rows in counted if source.is_loose)
    for source in (source for source, rows in counted if not rows and not (source.is_loose and loose_usable)):
        reason = _first_reason(work, source)
        if reason is not None:
            raise unusable_error(source, reason, alone=len(corpus.sources) == 1)


def count_usable(work: WorkDirectory, rows: list[int]) -> list[int]:
    """Return the number of rows of each source that can be used, from the states of all documents."""
    states = [work.open(name).read("states") for name in work.names("part-")]
    usable = np.concatenate([np.empty(0, dtype=np.uint8), *states]) != FAULTY
    ends = np.cumsum(rows)
    return [int(np.count_nonzero(usable[end - size : end])) for end, size in zip(ends, rows, strict=True)]


def _first_reason(work: WorkDirectory, source: Source) -> str | None:
    """Return row and reason of the first fault of a source; None if it has none."""
    several = len(source.paths()) > 1
    names = from_strings(
        source.locate(np.arange(source.known_rows() or 0))[0].to_pylist() if several else [source.name]
    )
    for name in [*work.names("unusable-"), *work.names("faults-")]:
        table = work.read_table(name)
        for fault in table.filter(pc.is_in(table.column("source"), names)).slice(0, 1).to_pylist():
            where = fault["source"] if several else f"row {fault['row']}"
            return fault["reason"] if fault["row"] is None else f"{where}: {fault['reason']}"
    return None


def describe_first_fault(faults: pa.Table) -> str:
    """Return source, row and reason of the first fault of a table in one line."""
    fault = faults.slice(0, 1).to_pylist()[0]
    where = [fault["source"], "" if fault["row"] is None else f"row {fault['row']}", fault["reason"]]
    return ": ".join(filter(None, where))


def _merge_spans(spans: list[list[int]]) -> list[list[int]]:
    """Return the spans with consecutive ones of a source merged."""
    merged: list[list[int]] = []
    for source, row, rows in spans:
        if merged and merged[-1][0] == source and merged[-1][1] + merged[-1][2] == row:
            merged[-1][2] += rows
        else:
            merged.append([source, row, rows])
    return merged


def fault_table(faults: list[Fault]) -> pa.Table:
    """Return a table of source, row and reason of each fault."""
    rows = from_numbers([fault.row for fault in faults], np.int64)
    sources, reasons = (from_strings([getattr(fault, name) for fault in faults]) for name in ("source", "reason"))
    return pa.table({"source": sources, "row": rows, "reason": reasons})


@dataclass(frozen=True, slots=True)
class RepeatedIds:
    """Ids that several documents of the input share.

    Attributes:
        rows: Number of documents that have the id of an earlier one.
        ids: Number of ids that occur more than once.
        example: The id that occurs most often; the first of several.
        example_rows: How often it occurs.
    """

    rows: int
    ids: int
    example: str | int
    example_rows: int


class Documents:
    """Documents of a corpus by number: source and row, id, state and keep order.

    Attributes:
        corpus: The sources that they were read from.
        rows: Number of rows of each source.
        starts: The number of each source's first document, followed by the total.
        protected: Number of documents that are only compared against, or of the second of two linked tables; they come
            first.
        stored: Number of documents of saved states, whose texts are not read; they come before all others.
        first_counted: The first document that counts are about.
        parts: The files of the first pass.
    """

    def __init__(self, corpus: Corpus, work: WorkDirectory) -> None:
        self.corpus = corpus
        self._work = work
        self.rows: list[int] = work.read_json("documents")["rows"]
        stored: list[int] = work.read_json("stored")["rows"] if work.has("stored") else []
        self.rows[: len(stored)] = stored
        self.stored = sum(stored)
        self.starts = np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)
        self.protected = int(self.starts[corpus.against])
        self.first_counted = int(self.starts[corpus.first_counted])
        self._stored_parts = work.names("kept-")
        self.parts: list[ArrayFile] = [work.open(name) for name in [*self._stored_parts, *work.names("part-")]]
        self._firsts = np.cumsum([0, *(part.length("states") for part in self.parts)])[:-1].astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def input_slice(self, source: int) -> slice:
        """Return the slice of the input rows that a source has; protected documents do not count."""
        start = int(self.starts[source]) - self.protected
        return slice(start, start + self.rows[source])

    def column(self, name: str) -> NDArray[Any]:
        """Return an array over all documents."""
        pieces = [part.read(name) for part in self.parts]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)

    def take(self, name: str, documents: NDArray[np.int64]) -> NDArray[Any]:
        """Return an array for some documents, of which one part after the other is in memory."""
        order = np.argsort(documents, kind="stable")
        ascending = documents[order]
        bounds = np.searchsorted(ascending, np.append(self._firsts, len(self)))
        pieces = [
            part.read(name)[ascending[start:end] - first]
            for part, first, start, end in zip(self.parts, self._firsts, bounds[:-1], bounds[1:], strict=True)
            if start < end
        ]
        joined = np.concatenate(pieces)
        taken = np.empty_like(joined)
        taken[order] = joined
        return taken

    def column_parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield an array over all documents part by part, so that only one part is in memory."""
        return (part.read(name) for part in self.parts)

    @cached_property
    def states(self) -> NDArray[np.uint8]:
        """``FILLED``, ``EMPTY`` or ``FAULTY`` for each document."""
        return self.column("states")

    def count(self, state: int) -> int:
        """Return how many documents of the input are in a state."""
        return int(np.count_nonzero(self.states[self.first_counted :] == state))

    def sampled_tokens(self) -> NDArray[np.int64]:
        """Return about how many documents have 0, 1, 2, … and at least ``MOST_TOKENS`` tokens."""
        counts = [part.header["tokens"] for part in self.parts]
        total: NDArray[np.int64] = np.sum([np.zeros(MOST_TOKENS + 1, dtype=np.int64), *counts], axis=0, dtype=np.int64)
        return total

    @property
    def sampled_whole(self) -> bool:
        """Whether the tokens of all documents of the input were counted."""
        return max(self.rows[self.corpus.first_counted :], default=0) <= SAMPLED_WHOLE

    @property
    def counts(self) -> dict[str, int]:
        """Rows read of the input, by state."""
        return _state_counts(self.states[self.first_counted :])

    def table_counts(self) -> dict[str, dict[str, int]] | None:
        """Return the rows of each of two linked tables, by state; None if none are linked."""
        if not self.corpus.linked:
            return None
        tables = {"left": self.states[self.protected :], "right": self.states[: self.protected]}
        return {side: _state_counts(states) for side, states in tables.items()}

    def faults(self) -> Iterator[dict[str, Any]]:
        """Yield source, row and reason of every row or source that cannot be used."""
        for name in self._fault_tables:
            for batch in self._work.read_table(name).to_batches(max_chunksize=FAULTS_AT_ONCE):
                yield from batch.to_pylist()

    def unreadable(self) -> list[dict[str, Any]]:
        """Return the faults of whole sources."""
        faults: list[dict[str, Any]] = []
        for name in self._fault_tables:
            table = self._work.read_table(name)
            if table.column("row").null_count:
                faults.extend(table.filter(table.column("row").is_null()).to_pylist())
        return faults

    @property
    def _fault_tables(self) -> list[str]:
        """Names of the fault tables: first of the rows that documents were grouped from, then of documents."""
        return [*self._work.names("unusable-"), *self._work.names("faults-")]

    def grouped_rows(self) -> dict[str, int] | None:
        """Return how many rows were grouped into documents and how many were unusable; None without grouping."""
        if not self._work.has("grouped"):
            return None
        counts = self._work.read_json("grouped")
        return {"read": counts["rows"], "quarantined": counts["unusable"]}

    def keep_order(self, rule: KeepRule) -> KeepOrder:
        """Return the order in which a keep rule prefers documents."""
        keys = [self._sort_key(key) for key in rule.sort_keys]
        if rule.prefer is not None:
            keys.insert(0, by_number(self.label_places(rule.prefer)))
        never = self.protected_rows(rule)
        return KeepOrder.of(len(self), keys, references=self.protected, last_first=rule.last_first, never_removed=never)

    def _sort_key(self, key: KeepKey) -> SortKey:
        if key.column:
            return by_value(self.value_column(key.column), descending=key.policy == "max")
        lengths = self.column("lengths").astype(np.int64)
        return by_number(-lengths if key.policy == "longest" else lengths)

    def label_places(self, rule: LabelRule) -> NDArray[np.int64]:
        """Return the place of each document's label in the list of a rule; the length of the list for all others."""
        codes, labels = self.value_codes(rule.column)
        places = pc.index_in(labels, pa.array(rule.labels, pa.large_string()))
        found: NDArray[np.int64] = to_numpy(pc.fill_null(places, len(rule.labels))).astype(np.int64)
        return found[codes]

    def protected_rows(self, rule: KeepRule) -> NDArray[np.bool_] | None:
        """Return a flag for each document that is never removed because of its labels; None if none is named."""
        flags = [self.label_places(one) < len(one.labels) for one in rule.protect]
        return np.logical_or.reduce(flags) if flags else None

    def check_values(self) -> None:
        """Raise ConfigError if no document has a value in one of the columns whose values are kept."""
        for column in self.corpus.columns.values:
            self._values_of(column)

    def value_column(self, name: str) -> pa.Array:
        """Return the values of a column that orders documents, of one type, null where a document has none.

        Raises:
            ConfigError: If no document has a value, or if values of several kinds are mixed.
        """
        return concat_values(list(self._values_of(ValueColumn(name))), name)

    def value_codes(self, name: str) -> tuple[NDArray[np.uint32], pa.Array]:
        """Return the number of each document's label in a column, and the labels by number.

        Labels are numbered by their first document; null is a label, too. See
        :mod:`minwise.inputs.document_values`.

        Raises:
            ConfigError: If no document has a label.
        """
        numbers: dict[str | None, int] = {}
        codes = [np.empty(0, dtype=np.uint32)]
        for column in self._values_of(ValueColumn(name, is_label=True)):
            coded = column.cast(pa.large_string()) if column.type == pa.null() else column
            coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
            codes.append(_shared_codes(coded, numbers))
        return np.concatenate(codes), pa.array(list(numbers), pa.large_string())

    def _values_of(self, column: ValueColumn) -> Iterator[pa.Array]:
        """Yield the values of a column, chunk by chunk; of the null type where a part has none."""
        pieces: list[pa.Array] = []
        for number, part in enumerate(self.parts):
            table = self._columns.get(number, pa.table({}))
            has_values = column.key in table.column_names
            pieces += _chunks(table.column(column.key)) if has_values else [pa.nulls(part.length("states"))]
        if all(piece.null_count == len(piece) for piece in pieces) and len(self):
            raise ConfigError(f"column {column.name!r} is in no file, or has no values")
        return iter(pieces)

    def locate(self, documents: NDArray[Any]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return source name and row of each document."""
        names, order = [pa.nulls(0, pa.large_string())], [np.empty(0, dtype=np.int64)]
        rows = np.empty(len(documents), dtype=np.int64)
        for source, indices in self._by_source(documents):
            within = documents[indices].astype(np.int64) - self.starts[source]
            source_names, rows[indices] = self.corpus.sources[source].locate(within)
            names.append(source_names)
            order.append(indices)
        return _invert_order(pa.concat_arrays(names), np.concatenate(order)), rows

    def _by_source(self, documents: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each source with the indices of its documents."""
        numbers = np.searchsorted(self.starts, documents, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for indices in np.split(order, cuts):
            if len(indices):
                yield int(numbers[indices[0]]), indices

    @cached_property
    def _columns(self) -> dict[int, pa.Table]:
        """The tables of ids and keep values, by part."""
        stored, read = len(self._stored_parts), self._work.read_table
        tables = {number: read(f"kept_ids-{number:06}") for number in range(stored)}
        return tables | {stored + int(name.rpartition("-")[2]): read(name) for name in self._work.names("columns-")}

    @cached_property
    def id_type(self) -> pa.DataType:
        """int64 if every id is a whole number, string otherwise."""
        types = [table.schema.field("id").type for table in self._columns.values() if "id" in table.column_names]
        distinct = set(types)
        if len(types) < len(self.parts) or not types:
            distinct |= {source.default_ids(np.empty(0, dtype=np.int64)).type for source in self.corpus.sources}
        return pa.int64() if distinct == {pa.int64()} else pa.large_string()

    def ids(self, documents: NDArray[Any]) -> pa.Array:
        """Return the ids of documents."""
        if not len(documents):
            return pa.nulls(0, self.id_type)
        order = np.argsort(documents, kind="stable")
        ascending = documents[order].astype(np.int64)
        pieces = []
        bounds = np.searchsorted(ascending, np.append(self._firsts, len(self)))
        for part, (start, end) in enumerate(pairwise(bounds.tolist())):
            if start < end:
                pieces.append(self._part_ids(part, ascending[start:end]).cast(self.id_type))
        return _invert_order(pa.concat_arrays(pieces), order)

    def repeated_ids(self) -> RepeatedIds | None:
        """Return how often ids of the input occur more than once; None if every id occurs once."""
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *map(_id_hashes, self._input_ids())])
        ordered = np.sort(hashes)
        rows = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        if not rows:
            return None
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        most = first[counts == counts.max()].min()
        lengths = [len(ids) for ids in self._input_ids()]
        chunk = int(np.searchsorted(np.cumsum(lengths), most, side="right"))
        example = next(islice(self._input_ids(), chunk, None))[int(most) - sum(lengths[:chunk])].as_py()
        return RepeatedIds(rows, int(np.count_nonzero(counts > 1)), example, int(counts.max()))

    def _input_ids(self) -> Iterator[pa.Array]:
        """Yield the ids that sources of the input have, without nulls."""
        for part, table in self._columns.items():
            if "id" in table.column_names:
                own = table.column("id").slice(max(0, self.protected - int(self._firsts[part])))
                yield from (chunk.cast(self.id_type).drop_null() for chunk in _chunks(own))

    def _part_ids(self, part: int, documents: NDArray[np.int64]) -> pa.Array:
        table = self._columns.get(part)
        if table is not None and "id" in table.column_names:
            indices = from_numpy(documents - self._firsts[part])
            return pa.concat_arrays(_chunks(table.column("id").take(indices)))
        pieces = [  # the documents are ascending, and so are their sources
            self.corpus.sources[source].default_ids(documents[indices] - self.starts[source])
            for source, indices in self._by_source(documents)
        ]
        return concat_ids(pieces)


def _state_counts(states: NDArray[np.uint8]) -> dict[str, int]:
    """Return how many rows were read, and how many of them are documents, empty documents and faulty rows."""
    filled, empty, faulty = (int(np.count_nonzero(states == state)) for state in (FILLED, EMPTY, FAULTY))
    return {"read": filled + empty + faulty, "documents": filled + empty, "empty": empty, "quarantined": faulty}


def _invert_order(values: pa.Array, order: NDArray[np.int64]) -> pa.Array:
    """Return the values rearranged so that value i moves to index ``order[i]``."""
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.arange(len(order))
    return values.take(from_numpy(inverse))


def unify_types(columns: list[pa.Array]) -> list[pa.Array]:
    """Return the columns unchanged if their types are equal, as strings otherwise."""
    if len({column.type for column in columns}) == 1:
        return columns
    return [column.cast(pa.large_string()) for column in columns]


def concat_ids(columns: list[pa.Array]) -> pa.Array:
    """Return columns of ids as one."""
    return pa.concat_arrays(unify_types(columns))


def _shared_codes(coded: pa.Array, numbers: dict[str | None, int]) -> NDArray[np.uint32]:
    """Return the codes of a dictionary array in ``numbers``, which grows by its labels as they occur."""
    labels = [*coded.dictionary.to_pylist(), None]
    own = np.where(valid_mask(coded), to_numpy(coded.indices).astype(np.int64), len(labels) - 1)
    used, firsts = np.unique(own, return_index=True)
    shared = np.zeros(len(labels), dtype=np.uint32)
    for code in used[np.argsort(firsts)].tolist():
        shared[code] = numbers.setdefault(labels[code], len(numbers))
    return shared[own]


def concat_values(columns: list[pa.Array], name: str) -> pa.Array:
    """Return columns of document values as one, of a type that holds them all.

    Raises:
        ConfigError: If the columns mix texts, numbers and times.
    """
    types = {column.type for column in columns if column.type != pa.null()}
    try:
        target = _common_type(types)
        return pa.concat_arrays([column.cast(target) for column in columns])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        shown = ", ".join(sorted(map(str, types)))
        raise ConfigError(
            f"column {name} must have one kind of values in all files, got {shown}; cast it in one of them"
        ) from None


def _common_type(types: set[Any]) -> pa.DataType:
    """Return the type in which values of all these types compare as they do in their own."""
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
    if ids.type == pa.int64():
        return to_numpy(ids).view(np.uint64)
    chunk = text_chunk(ids)
    return _kernel.hash_strings(chunk.offsets, chunk.data, 0)


def _chunks(column: Any) -> list[pa.Array]:  # noqa: ANN401 - an array or a chunked one
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return column.chunks or [pa.nulls(0, column.type)]
