"""Bulk ingestion: documents of files, tables and streams are added to an index, deduplicated, or looked up.

Each batch is durable before the next one is read. An interrupted run is therefore resumed by running it again: the
documents that it has added are reported as unchanged.
"""

import errno
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import from_numpy, from_strings, invalid_utf8_offset, to_numpy, valid_mask
from minwise._internal.prefetch import prefetch
from minwise.checks import MAX_LEVELS, check_on_error, is_nested_too_deep, show
from minwise.comparison.comparison import compare
from minwise.errors import ConfigError, InputError
from minwise.index.result_types import (
    AddCounts,
    Answer,
    Decision,
    DedupCounts,
    DocumentId,
    Hit,
    HitRow,
    Metadata,
    OnDuplicateId,
    PassageRow,
    QueryRow,
)
from minwise.index.settings import ElementSets
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.jsonl import JsonLinesReader, read_available_lines
from minwise.inputs.open_sources import Files, OpenedSources, open_sources
from minwise.inputs.records import RecordFields
from minwise.inputs.source import Batch, Columns, Fault, FaultLog, Source, TextSettings, UnreadableError, unusable_error
from minwise.options import DocumentSource, MeasureName, OnError
from minwise.progress import Progress, ProgressSetting
from minwise.search.documents import Corpus, check_columns
from minwise.settings import RunLimits, check_separator, progress_of
from minwise.text.shingling import ShingleSets

if TYPE_CHECKING:
    from minwise.index import Index

# Bytes up to which every text can be shingled, if it is UTF-8.
LARGE_TEXT = 1 << 20

__all__ = [
    "FileFormat",
    "IndexSource",
    "ReadOptions",
    "SourceBatch",
    "SourceReader",
    "add_from",
    "add_stream",
    "query_from",
]

IndexSource = DocumentSource | BinaryIO
FileFormat = Literal["parquet", "jsonl", "json", "csv", "tsv", "arrow", "text", "lines"]
# Documents, and bytes of text, that are added in one transaction. More would not be faster, but take more memory, and
# an interruption would cost more.
BATCH_DOCUMENTS = 16_384
BATCH_BYTES = 1 << 24
# Documents that are looked up together: few enough that answers appear soon, and enough to make the cost of a call
# negligible.
QUERY_DOCUMENTS = 256
STANDARD_INPUT = "standard input"
# The count that each decision increases.
COUNT_NAMES = {name: name for name in ("added", "replaced", "unchanged", "skipped")} | {"duplicate": "duplicates"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading documents, documented at :meth:`Index.add_from`."""

    text_column: str | Sequence[str]
    id_column: str | None
    metadata_columns: str | Sequence[str] = ()
    format: FileFormat | None
    delimiter: str | None
    encoding: str | None
    separator: str | None
    on_error: OnError
    memory: str | int
    progress: ProgressSetting
    on_fault: Callable[[str], None] | None

    @property
    def receiver(self) -> Progress:
        """The receiver of progress events."""
        return progress_of(self.progress)


def add_from(index: "Index", source: IndexSource, options: ReadOptions, on_duplicate_id: OnDuplicateId) -> AddCounts:
    """Add every document of a source; see :meth:`Index.add_from`."""
    _refuse_index_files(index, source)
    reader, faults = SourceReader(source, options, index), IngestFaults(options)
    counts = Counter(dict.fromkeys(("read", "added", "replaced", "skipped", "unchanged"), 0))
    with options.receiver.stage("add", reader.known_rows, "documents") as stage:
        for batch in reader:
            faults.record(batch)
            if batch.ids:
                with _reporting_earlier(counts):
                    added = index.add(batch.ids, batch.texts, batch.metadata, on_duplicate_id=on_duplicate_id)
                counts.update(added._asdict())
            counts["read"] += batch.rows
            stage.advance(batch.rows)
    return cast(AddCounts, _result(counts, faults, reader))


def add_stream(
    index: "Index",
    source: IndexSource,
    kept: BinaryIO | None,
    decisions: BinaryIO | None,
    options: ReadOptions,
    on_duplicate_id: OnDuplicateId,
    *,
    unique: bool,
) -> DedupCounts:
    """Add the documents of a source, with a decision on each; see :meth:`Index.add_stream`."""
    _refuse_index_files(index, source)
    reader, faults = SourceReader(source, options, index), IngestFaults(options)
    if kept is not None and index.elements is not None and not reader.is_stream:
        raise ConfigError("source must be a stream of JSON lines to keep rows that are sets or records, got files")
    counts = Counter(dict.fromkeys(("read", *COUNT_NAMES.values(), "truncated"), 0))
    written: set[int] = set()
    with options.receiver.stage("add", reader.known_rows, "documents") as stage:
        for batch in reader:
            faults.record(batch)
            with _reporting_earlier(counts):
                decided = _decide(index, batch, on_duplicate_id, unique=unique)
            _write(kept, _kept_lines(batch, decided, written))
            _write(decisions, _decision_lines(batch, decided))
            counts.update(COUNT_NAMES[decision.fate] for decision in decided)
            counts.update(truncated=sum(decision.truncated for decision in decided), read=batch.rows)
            stage.advance(batch.rows)
    return cast(DedupCounts, _result(counts, faults, reader))


def _decide(index: "Index", batch: "SourceBatch", on_duplicate_id: OnDuplicateId, *, unique: bool) -> list[Decision]:
    if not batch.ids:
        return []
    return index.add_each(batch.ids, batch.texts, batch.metadata, unique=unique, on_duplicate_id=on_duplicate_id)


def query_from(
    index: "Index",
    source: IndexSource,
    options: ReadOptions,
    *,
    threshold: float | None,
    top: int,
    max_candidates: int,
    where: Metadata | None,
    measure: MeasureName,
    passages: bool,
) -> Iterator[QueryRow]:
    """Yield the near-duplicates of every document of a source; see :meth:`Index.query_from`."""
    if passages and index.store != "text":
        rule = "passages need an index that stores texts"
        raise ConfigError(f"{rule}, got one of {index.store}; create it with store_text=True")
    query = partial(
        index.query_many, threshold=threshold, top=top, max_candidates=max_candidates, where=where, measure=measure
    )
    query([])  # checks these options before the source is opened
    reader = SourceReader(source, options, index, need_ids=False, batch_documents=QUERY_DOCUMENTS)
    faults = IngestFaults(options)

    def answers() -> Iterator[QueryRow]:
        read = 0
        with options.receiver.stage("query", reader.known_rows, "documents") as stage:
            for batch in reader:
                faults.record(batch)
                found = query(batch.texts)
                texts = cast(pa.Array, batch.texts).to_pylist() if passages else [None] * len(found)
                for document_id, text, answer in zip(batch.ids, texts, found, strict=True):
                    hits = [_hit_row(index, hit, text) for hit in answer]
                    row = _query_row(document_id, hits, answer)
                    yield row if threshold != 0 else {**row, "complete_above": answer.complete_above}
                read += batch.rows
                stage.advance(batch.rows)
        faults.check_any_readable(read)

    return answers()


def _query_row(document_id: DocumentId, hits: list[HitRow], answer: Answer) -> QueryRow:
    """Return an answer; if the search was cut short, with what it left out and why."""
    row: QueryRow = {"id": document_id, "hits": hits, "truncated": answer.truncated}
    if answer.truncated_by is not None:
        row["truncated_by"] = answer.truncated_by
        row["left_out"], row["capped_buckets"] = answer.left_out, answer.capped_buckets
    return row


@contextmanager
def _reporting_earlier(counts: "Counter[str]") -> Iterator[None]:
    """Add to an error the number of documents that earlier batches have stored."""
    try:
        yield
    except InputError as error:
        earlier = counts["added"] + counts["replaced"]
        raise InputError(f"{error}; {earlier:,} added before stay" if earlier else str(error)) from None


def _refuse_index_files(index: "Index", source: IndexSource) -> None:
    """Raise ``ConfigError`` if the source is the index itself."""
    folder = index.path.resolve()
    for item in source if isinstance(source, (list, tuple)) else [source]:
        path = Path(item).resolve() if isinstance(item, (str, PathLike)) and item else None
        if path is not None and folder in (path, *path.parents):
            raise ConfigError(f"source must not be the index itself, got {item}")


def _result(counts: "Counter[str]", faults: "IngestFaults", reader: "SourceReader") -> dict[str, Any]:
    faults.check_any_readable(counts["read"])
    result = {**counts, "quarantined": faults.rows, "unreadable": faults.files, "faults": faults.to_list()}
    return {**result, "skipped_entries": reader.skipped} if reader.skipped else result


def _hit_row(index: "Index", hit: Hit, text: str | bytes | None) -> HitRow:
    """Return a hit in plain values, with the longest shared passage if the query text is given."""
    row: HitRow = {"id": hit.id, "similarity": hit.similarity, "exact": hit.exact}
    if hit.contained is not None:
        row["contained"] = hit.contained
    if hit.recall is not None:
        row["recall"] = hit.recall
    if hit.metadata is not None:
        row["metadata"] = hit.metadata
    if text is not None:
        row["passage"] = _longest_passage(index, hit, text)
    return row


def _longest_passage(index: "Index", hit: Hit, text: str | bytes) -> PassageRow | None:
    """Return the longest passage that the query text and the stored text share, with its offsets in both."""
    try:
        stored = index.get(hit.id).text
    except InputError:  # another process has removed it since
        return None
    if stored is None:
        return None
    shared = compare(text, stored, shingler=index.shingler).passages
    longest = max(shared, key=lambda passage: passage.left_end - passage.left_start, default=None)
    if longest is None:
        return None
    return {
        "text": _json_text(text[longest.left_start : longest.left_end]),
        "query": [longest.left_start, longest.left_end],
        "document": [longest.right_start, longest.right_end],
    }


def _kept_lines(batch: "SourceBatch", decided: list[Decision], written: set[int]) -> Iterator[bytes]:
    """Yield the rows that the index holds: lines of a stream unchanged, other rows as JSON.

    A repeated row is written once: ``written`` holds the hashes of the ids of earlier rows.
    """
    for number, decision in enumerate(decided):
        id_hash = hash(str(decision.id))
        if not decision.kept or (decision.fate == "unchanged" and id_hash in written):
            continue
        written.add(id_hash)
        if batch.lines:
            line = batch.lines[batch.document_rows[number]]
            yield line if line.endswith(b"\n") else line + b"\n"
        else:
            metadata = None if batch.metadata is None else batch.metadata[number]
            text = _json_text(cast(pa.Array, batch.texts)[number].as_py())
            yield _json_line({"id": decision.id, "text": text, "metadata": metadata})


def _decision_lines(batch: "SourceBatch", decided: list[Decision]) -> Iterator[bytes]:
    """Yield one line for every row, in the order of the rows."""
    lines = {row: _decision_row(decision) for row, decision in zip(batch.document_rows, decided, strict=True)}
    lines |= {row: _quarantine_row(fault) for row, fault in batch.faults.items()}
    return (_json_line(lines[row]) for row in sorted(lines))


def _decision_row(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "fate": decision.fate,
        "kept": decision.kept,
        "duplicate_of": decision.duplicate_of,
        "similarity": decision.similarity,
        "truncated": decision.truncated,
        **({} if decision.cluster is None else {"cluster": decision.cluster, "merged": list(decision.merged)}),
    }


def _quarantine_row(fault: Fault) -> dict[str, Any]:
    empty = dict.fromkeys(("duplicate_of", "similarity"))
    return {"id": None, "fate": "quarantined", "kept": False, **empty, "truncated": False, **fault.to_dict()}


def _json_line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _json_text(text: str | bytes) -> str:
    """Return a text as valid Unicode, with invalid bytes replaced."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _write(file: BinaryIO | None, lines: Iterator[bytes]) -> None:
    """Write and flush lines."""
    if file is not None:
        file.write(b"".join(lines))
        file.flush()


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Consecutive rows of a source: the documents among them, and the faults of the other rows.

    Attributes:
        rows: The number of rows.
        document_rows: The rows of the batch that are documents, ascending.
        ids: The id of each document.
        texts: The text of each document: valid strings, or any bytes for byte shingles; or the sets of all documents.
        metadata: The metadata of each document; None if no columns were requested.
        faults: The faults of the other rows, by row of the batch.
        unreadable: The reason why a file cannot be read, or not to its end.
        lines: The unchanged lines, if the source is a stream.
    """

    rows: int
    document_rows: list[int]
    ids: list[DocumentId]
    texts: pa.Array | ElementSets
    metadata: list[Metadata] | None
    faults: dict[int, Fault]
    unreadable: Fault | None = None
    lines: list[bytes] = field(default_factory=list)

    @property
    def reasons(self) -> list[str]:
        """Row and reason of the first fault, if there is one."""
        rows = [f"row {fault.row}: {fault.reason}" for fault in islice(self.faults.values(), 1)]
        return rows or ([] if self.unreadable is None else [self.unreadable.reason])


class IngestFaults:
    """Counts unusable rows and files, and applies ``on_error``.

    Attributes:
        rows: Rows that could not be used.
        files: Files that could not be read, or not to their end.
        log: The first faults of both kinds.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.log = FaultLog(check_on_error(options.on_error))
        self._on_fault = options.on_fault
        self.rows = self.files = 0

    def record(self, batch: SourceBatch) -> None:
        """Record the faults of a batch.

        Raises:
            InputError: For the first fault, if ``on_error`` is ``fail``.
        """
        file = [batch.unreadable] if batch.unreadable is not None else []
        faults = [*batch.faults.values(), *file]
        self.log.add(faults)
        self.rows += len(batch.faults)
        self.files += len(file)
        if self._on_fault is not None:
            for fault in faults:
                self._on_fault(str(fault))

    def check_any_readable(self, read: int) -> None:
        """Raise ``InputError`` if no row could be used, which means a wrong column or file."""
        if self.log.shown and self.rows >= read:
            raise InputError(f"no document can be read; {self.log.shown[0]}")

    def to_list(self) -> list[dict[str, Any]]:
        """Return the first faults in plain values."""
        return [fault.to_dict() for fault in self.log.shown]


class SourceReader:
    """Reads a source in batches; the lines of a stream as soon as they arrive.

    Attributes:
        known_rows: The number of rows, if it is known in advance.
        skipped: Number of entries of the source that are not read, by reason.
    """

    def __init__(
        self,
        source: IndexSource,
        options: ReadOptions,
        index: "Index",
        *,
        need_ids: bool = True,
        batch_documents: int | None = None,
    ) -> None:
        self._columns = _columns_of(options, index.elements)
        self._shingler = index.shingler if index.elements is None else None
        self._any_bytes, self._need_ids = self._shingler is not None and self._shingler.kind == "byte", need_ids
        self._batch_documents = batch_documents or BATCH_DOCUMENTS
        self._batch_bytes = min(BATCH_BYTES, RunLimits.of(options.memory, None).batch_bytes)
        self._text_settings = TextSettings.of(options.delimiter, options.encoding)
        self._stream = _open_stream(source, options.format)
        if self._stream is not None and options.delimiter is not None:
            raise ConfigError(f"delimiter must be left out for JSON lines, got {show(options.delimiter)}")
        if isinstance(source, ShingleSets):
            raise InputError("source must hold documents, got sets of hashes; an index hashes them itself")
        opened = OpenedSources([])
        if self._stream is None:
            opened = open_sources(source, _typed_columns(self._columns), options.format)
            self._text_settings.check_used(opened.sources)
            self._text_settings.apply(opened.sources)
        self._sources, self.skipped = opened.sources, opened.skipped
        self._on_error = check_on_error(options.on_error)
        check_columns(Corpus(sources=self._sources, columns=self._columns, on_error=self._on_error))
        rows = [item.known_rows() for item in self._sources]
        self.known_rows = None if self._stream is not None or None in rows else sum(filter(None, rows))

    @property
    def is_stream(self) -> bool:
        """Whether the source is a stream of JSON lines."""
        return self._stream is not None

    def __iter__(self) -> Iterator[SourceBatch]:
        """Yield the batches in document order; those of files are read ahead by another thread."""
        return self._read_stream(self._stream) if self._stream is not None else prefetch(self._read_sources())

    def _read_sources(self) -> Iterator[SourceBatch]:
        unusable: list[tuple[Source, str]] = []
        loose_usable = False
        for source in self._sources:
            usable, reasons = 0, list[str]()
            for batch in source.batches(self._columns, batch_bytes=self._batch_bytes):
                for start in range(0, max(1, len(batch)), self._batch_documents):
                    part = self._to_batch(batch.slice(start, min(start + self._batch_documents, len(batch))), source)
                    usable, reasons = usable + len(part.ids), reasons or part.reasons
                    yield part
            loose_usable = loose_usable or (source.is_loose and usable > 0)
            unusable += [(source, reasons[0])] if reasons and not usable else []
            self._refuse_unusable([entry for entry in unusable if not entry[0].is_loose])
        self._refuse_unusable([] if loose_usable else unusable)

    def _refuse_unusable(self, inputs: list[tuple[Source, str]]) -> None:
        """Raise InputError for the first of these inputs, with ``on_error`` ``quarantine-rows``."""
        if inputs and self._on_error == "quarantine-rows":
            raise unusable_error(*inputs[0], alone=len(self._sources) == 1)

    def _read_stream(self, stream: BinaryIO) -> Iterator[SourceBatch]:
        reader = JsonLinesReader(STANDARD_INPUT, self._columns)
        reader.has_ids = True  # a line without an id says nothing about the next one
        read = 0
        try:
            for lines in read_available_lines(stream, self._batch_bytes, self._text_settings.encoding):
                batch = reader.batch(read, lines)
                yield self._to_batch(batch, None, [line if isinstance(line, bytes) else b"" for _, line in lines])
                read += len(lines)
        except UnreadableError as error:
            raise InputError(f"{STANDARD_INPUT} {error}") from None

    def _to_batch(self, batch: Batch, source: Source | None, lines: Sequence[bytes] = ()) -> SourceBatch:
        ids = self._ids(batch, source)
        row_faults = (fault for fault in batch.faults if fault.row is not None)
        faults = dict(zip(np.flatnonzero(~valid_mask(batch.values)).tolist(), row_faults, strict=True))
        invalid = {**self._invalid_texts(batch), **_invalid_ids(ids), **_deep_metadata(batch)}
        for row, reason in invalid.items():
            faults.setdefault(row, _fault(source, batch.first + row, reason))
        rows = [row for row in range(len(batch)) if row not in faults]
        texts = batch.values.take(from_numpy(np.array(rows, dtype=np.int64))) if faults else batch.values
        return SourceBatch(
            rows=len(batch),
            document_rows=rows,
            ids=[ids[row] for row in rows],  # type: ignore[misc] # rows without an id are faults
            texts=self._documents(texts),
            metadata=None if batch.metadata is None else [batch.metadata[row] for row in rows],
            faults=dict(sorted(faults.items())),
            unreadable=next((fault for fault in batch.faults if fault.row is None), None),
            lines=list(lines),
        )

    def _ids(self, batch: Batch, source: Source | None) -> list[DocumentId | None]:
        """Return the id of each row, or the default id of the source where a row has none."""
        rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
        ids = [None] * len(batch) if batch.ids is None else batch.ids.to_pylist()
        if None not in ids or (source is None and self._need_ids):
            return ids
        defaults = (
            source.default_ids(rows) if source is not None else from_strings([f"-:{row}" for row in rows.tolist()])
        )
        return [default if own is None else own for own, default in zip(ids, defaults.to_pylist(), strict=True)]

    def _documents(self, values: pa.Array) -> pa.Array | ElementSets:
        """Return texts, or sets that the index need not make again."""
        if self._shingler is None:
            return ElementSets.of(values)
        return values.cast(pa.large_binary() if self._any_bytes else pa.large_string())

    def _invalid_texts(self, batch: Batch) -> dict[int, str]:
        """Return the fault of each text that cannot be shingled, by row."""
        return {} if self._shingler is None else {**self._large_texts(batch), **self._misencoded_texts(batch)}

    def _misencoded_texts(self, batch: Batch) -> dict[int, str]:
        """Return the fault of each text that is not valid UTF-8, by row."""
        if self._any_bytes:
            return {}
        texts = batch.values.cast(pa.large_binary())
        try:
            texts.cast(pa.large_string())
        except pa.ArrowInvalid:
            offsets = ((row, invalid_utf8_offset(text or b"")) for row, text in enumerate(texts.to_pylist()))
            return {row: f"is not valid UTF-8 at byte {offset}" for row, offset in offsets if offset is not None}
        return {}

    def _large_texts(self, batch: Batch) -> dict[int, str]:
        """Return the fault of each large text that cannot be shingled, by row."""
        lengths = np.where(valid_mask(batch.values), to_numpy(pc.binary_length(batch.values)), 0)
        rows = np.flatnonzero(lengths > LARGE_TEXT).tolist()
        reasons = {row: self._shingling_fault(batch.values.slice(row, 1)) for row in rows}
        return {row: reason for row, reason in reasons.items() if reason}

    def _shingling_fault(self, text: pa.Array) -> str:
        """Return why a text cannot be shingled; "" if it can."""
        assert self._shingler is not None
        try:
            self._shingler.shingle(text)
        except InputError as error:
            return str(error).removeprefix("document 0 ")
        return ""


def _columns_of(options: ReadOptions, elements: ItemSets | RecordFields | None) -> Columns:
    """Return the columns to read; those of sets and records become elements.

    Raises:
        ConfigError: If an option does not apply to the kind of the index.
    """
    columns = Columns.of(options.text_column, options.id_column, metadata_columns=options.metadata_columns)
    if not isinstance(elements, ItemSets) and options.separator is not None:
        raise ConfigError(f"separator must be left out unless the index is of sets, got {show(options.separator)}")
    if elements is None:
        return columns
    if isinstance(elements, ItemSets):
        if len(columns.text) > 1:
            raise ConfigError(f"text_column must be one column for an index of sets, got {show(options.text_column)}")
        elements = replace(elements, column=columns.text[0], separator=check_separator(options.separator))
    elif columns.text != ("text",):
        rule = f"text_column must be left out for an index of records with the fields {', '.join(elements.columns)}"
        raise ConfigError(f"{rule}; got {show(options.text_column)}")
    return replace(columns, text=elements.columns, elements=elements)


def _typed_columns(columns: Columns) -> Columns:
    """Return columns that open sets in memory as a table, of which the index hashes the items with its own seed."""
    if not isinstance(columns.elements, ItemSets):
        return columns
    return replace(columns, elements=ItemLists(column=columns.elements.column, separator=columns.elements.separator))


def _invalid_ids(ids: list[DocumentId | None]) -> dict[int, str]:
    """Return the fault of each missing or empty id, by row."""
    invalid = {row: value for row, value in enumerate(ids) if value is None or value == ""}
    return {row: "needs an id" if value is None else "id must not be empty" for row, value in invalid.items()}


def _deep_metadata(batch: Batch) -> dict[int, str]:
    """Return the fault of each row whose metadata is nested too deep, by row."""
    reason = f"metadata must have at most {MAX_LEVELS} levels of lists and objects"
    return {row: reason for row, value in enumerate(batch.metadata or ()) if is_nested_too_deep(value)}


def _fault(source: Source | None, row: int, reason: str) -> Fault:
    if source is None:
        return Fault(STANDARD_INPUT, row, reason)
    names, rows = source.locate(np.array([row], dtype=np.int64))
    return Fault(names[0].as_py(), int(rows[0]), reason)


def _open_stream(source: IndexSource, format: FileFormat | None) -> BinaryIO | None:  # noqa: A002 - the public name
    """Return the stream if the source is one: a binary file, or ``-`` for standard input."""
    if isinstance(source, io.TextIOBase):
        raise InputError("source must be a file that is open in binary mode, got one of text")
    is_standard = source == "-" if isinstance(source, str) else isinstance(source, Files) and source == ("-",)
    if not is_standard and not hasattr(source, "read"):
        return None
    if not is_standard and format not in (None, "jsonl"):
        raise ConfigError(f"format must be jsonl for a stream, got {format}; give a file")
    if not is_standard:
        return cast(BinaryIO, source)
    if format not in (None, "jsonl"):
        return None  # read as a whole, by open_sources
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", STANDARD_INPUT)
    return sys.stdin.buffer
