"""Reading: files, tables or an open stream of lines in; documents with ids and metadata, and what is wrong, out."""

import errno
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from minwise._internal.arrays import from_numpy, from_strings, invalid_at, present
from minwise._internal.prefetch import prefetch
from minwise.checks import check_names, check_on_error
from minwise.errors import ConfigError, InputError
from minwise.index.answers import DocumentId, Metadata
from minwise.inputs.jsonl import JsonLinesReader, arriving_lines
from minwise.inputs.open_sources import Files, gather
from minwise.inputs.source import Batch, Columns, Fault, Source, Unreadable
from minwise.progress import Progress, Silence
from minwise.settings import Limits
from minwise.text.shingling import ShingleSets

__all__ = ["Faults", "Portion", "Portions", "ReadOptions"]

# What is added in one transaction: documents, and bytes of text. More would not be faster, but take more memory, and an
# interruption would cost more.
MOST_DOCUMENTS = 16_384
MOST_BYTES = 1 << 24
# Faults that a result lists.
LISTED_FAULTS = 100
STANDARD_INPUT = "standard input"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How documents are read, under the public names and with the defaults of the batch engine.

    Attributes:
        text_column: Column of the text; several are joined by a line break.
        id_column: Column of the id; ``id`` if a source has it, otherwise ids are made from source and row.
        metadata_columns: Columns that are stored with the document.
        format: ``parquet``, ``jsonl``, ``csv``, ``tsv``, ``arrow`` or ``text``, for files whose names do not tell.
        on_error: ``fail``, ``quarantine`` or ``skip``: what becomes of rows that can not be read.
        memory: How much may be used, such as ``4GB``.
        progress: Who is told how far the work is.
        on_fault: Who is told, in a line each, what can not be read and is left out.
    """

    text_column: str | Sequence[str] = "text"
    id_column: str | None = None
    metadata_columns: str | Sequence[str] = ()
    format: str | None = None
    on_error: str = "fail"
    memory: str | int = "4GB"
    progress: Progress | None = None
    on_fault: Callable[[str], None] | None = None

    @classmethod
    def of(cls, given: dict[str, Any], *, without: tuple[str, ...] = ()) -> "ReadOptions":
        """The options as they were given by name; those in ``without`` mean nothing to the call."""
        check_names(given, [one.name for one in fields(cls) if one.name not in without])
        return cls(**given)

    @property
    def watcher(self) -> Progress:
        """Who is told how far the work is."""
        return self.progress or Silence()


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows that follow each other: the documents among them, and what is wrong with the others.

    Attributes:
        rows: How many rows there are.
        places: Where among the rows the documents stand, ascending.
        ids: The id of each document.
        texts: Of the documents: strings that are valid, or any bytes where shingles are bytes.
        metadata: Of each document; None if there is none at all.
        faults: What is wrong with the other rows, by their place.
        unreadable: Why a file can not be read, or not to its end.
        lines: The rows as they came, if they are lines of a stream.
    """

    rows: int
    places: list[int]
    ids: list[DocumentId]
    texts: pa.Array
    metadata: list[Metadata] | None
    faults: dict[int, Fault]
    unreadable: Fault | None = None
    lines: list[bytes] = field(default_factory=list)


class Faults:
    """Counts what can not be read, and does with it what was asked for.

    Attributes:
        rows: Rows that could not be used.
        files: Files that could not be read, or not to their end.
        listed: The first of both.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._on_error = check_on_error(options.on_error)
        self._on_fault = options.on_fault
        self.rows = self.files = 0
        self.listed: list[Fault] = []

    def note(self, portion: Portion) -> None:
        """Notes the faults of a portion.

        Raises:
            InputError: For the first of them, if that is what was asked for.
        """
        file = [portion.unreadable] if portion.unreadable is not None else []
        found = [*portion.faults.values(), *file]
        if found and self._on_error == "fail":
            raise InputError(f"{found[0]}; on-error quarantine goes on without it")
        self.rows += len(portion.faults)
        self.files += len(file)
        self.listed.extend(found[: LISTED_FAULTS - len(self.listed)])
        if self._on_fault is not None:
            for fault in found:
                self._on_fault(str(fault))

    def refuse_nothing_readable(self, read: int) -> None:
        """Raises if not one of all rows could be used: the column or the file is the wrong one."""
        if self.listed and self.rows >= read:
            raise InputError(f"no document can be read; {self.listed[0]}")

    def to_list(self) -> list[dict[str, Any]]:
        """The first faults in plain values."""
        return [fault.to_dict() for fault in self.listed]


class Portions:
    """Reads whatever holds documents, a portion at a time; a stream as fast as its lines come.

    Attributes:
        known_rows: How many rows there are, if that can be told.
    """

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - whatever a user has
        options: ReadOptions,
        *,
        any_bytes: bool,
        need_ids: bool = True,
        most: int | None = None,
    ) -> None:
        self._columns = Columns.of(options.text_column, options.id_column, metadata_columns=options.metadata_columns)
        self._any_bytes, self._need_ids, self._most = any_bytes, need_ids, most or MOST_DOCUMENTS
        self._bytes = min(MOST_BYTES, Limits.of(options.memory, None).batch_bytes)
        self._stream = _stream_of(source, options.format)
        if isinstance(source, ShingleSets):
            raise InputError("source must hold texts, got sets; an index cuts its texts itself")
        self._sources = [] if self._stream is not None else gather(source, self._columns, options.format)[0]
        rows = [one.known_rows() for one in self._sources]
        self.known_rows = None if self._stream is not None or None in rows else sum(filter(None, rows))

    def __iter__(self) -> Iterator[Portion]:
        """The portions, in document order. What is made ahead is made by another thread."""
        return self._arriving(self._stream) if self._stream is not None else prefetch(self._read())

    def _read(self) -> Iterator[Portion]:
        for source in self._sources:
            for batch in source.batches(self._columns, batch_bytes=self._bytes):
                for start in range(0, max(1, len(batch)), self._most):
                    yield self._portion(batch.part(start, min(start + self._most, len(batch))), source)

    def _arriving(self, stream: BinaryIO) -> Iterator[Portion]:
        reader = JsonLinesReader(STANDARD_INPUT, self._columns)
        reader.has_ids = True  # of a line without one nothing follows for the next
        read = 0
        for lines in arriving_lines(stream, self._bytes):
            try:
                batch = reader.batch(read, lines)
            except Unreadable as error:
                raise InputError(f"{STANDARD_INPUT} {error}") from None
            yield self._portion(batch, None, [line if isinstance(line, bytes) else b"" for _, line in lines])
            read += len(lines)

    def _portion(self, batch: Batch, source: Source | None, lines: Sequence[bytes] = ()) -> Portion:
        ids = self._ids(batch, source)
        of_rows = (fault for fault in batch.faults if fault.row is not None)
        faults = dict(zip(np.flatnonzero(~present(batch.texts)).tolist(), of_rows, strict=True))
        for place, reason in {**self._unusable_texts(batch), **_unusable_ids(ids)}.items():
            faults.setdefault(place, _fault(source, batch.first + place, reason))
        places = [place for place in range(len(batch)) if place not in faults]
        texts = batch.texts.take(from_numpy(np.array(places, dtype=np.int64))) if faults else batch.texts
        return Portion(
            rows=len(batch),
            places=places,
            ids=[ids[place] for place in places],  # type: ignore[misc] # those without are faults
            texts=texts.cast(pa.large_binary() if self._any_bytes else pa.large_string()),
            metadata=None if batch.metadata is None else [batch.metadata[place] for place in places],
            faults=dict(sorted(faults.items())),
            unreadable=next((fault for fault in batch.faults if fault.row is None), None),
            lines=list(lines),
        )

    def _ids(self, batch: Batch, source: Source | None) -> list[DocumentId | None]:
        """The id of each row; those that the source makes up where it has none."""
        rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
        ids = [None] * len(batch) if batch.ids is None else batch.ids.to_pylist()
        if None not in ids or (source is None and self._need_ids):
            return ids
        made = source.default_ids(rows) if source is not None else from_strings([f"-:{row}" for row in rows.tolist()])
        return [default if own is None else own for own, default in zip(ids, made.to_pylist(), strict=True)]

    def _unusable_texts(self, batch: Batch) -> dict[int, str]:
        """The reason for each text that is not UTF-8, by its place."""
        if self._any_bytes:
            return {}
        texts = batch.texts.cast(pa.large_binary())
        try:
            texts.cast(pa.large_string())
        except pa.ArrowInvalid:
            invalid = ((place, invalid_at(text or b"")) for place, text in enumerate(texts.to_pylist()))
            return {place: f"is not valid UTF-8 at byte {at}" for place, at in invalid if at is not None}
        return {}


def _unusable_ids(ids: list[DocumentId | None]) -> dict[int, str]:
    """The reason for each id that can not be one, by its place."""
    wrong = {place: one for place, one in enumerate(ids) if one is None or one == ""}
    return {place: "needs an id" if one is None else "id must not be empty" for place, one in wrong.items()}


def _fault(source: Source | None, row: int, reason: str) -> Fault:
    if source is None:
        return Fault(STANDARD_INPUT, row, reason)
    names, rows = source.locate(np.array([row], dtype=np.int64))
    return Fault(names[0].as_py(), int(rows[0]), reason)


def _stream_of(source: Any, format: str | None) -> BinaryIO | None:  # noqa: A002, ANN401 - as above
    """The open stream, if there is one: a binary file, or standard input for ``-``."""
    if isinstance(source, io.TextIOBase):
        raise InputError("source must be a file that is open in binary mode, got one of text")
    is_standard = source == "-" if isinstance(source, str) else isinstance(source, Files) and source == ("-",)
    if not is_standard and not hasattr(source, "read"):
        return None
    if format not in (None, "jsonl"):
        raise ConfigError(f"format must be jsonl for a stream, got {format}; give a file")
    if not is_standard:
        stream: BinaryIO = source
        return stream
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", STANDARD_INPUT)
    return sys.stdin.buffer
