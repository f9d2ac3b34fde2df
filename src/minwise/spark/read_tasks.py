"""Tasks that read the input: sources are divided into tasks of similar size, whose rows the executors sketch.

Executors read files with the code of the local engine, so that rows, ids and faults are the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from minwise import errors
from minwise._internal.arrays import from_bools, from_numpy, to_numpy
from minwise.errors import MinwiseError
from minwise.inputs.source import Batch, Columns, CopyError, Source
from minwise.search.documents import Corpus, batch_ids, indexed_faults
from minwise.search.first_pass import token_counts
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import Batches, Int64s, ddl, elements_column, signature_columns, signature_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ENDED",
    "FAILED",
    "TASK_BYTES",
    "ReadTask",
    "plan_tasks",
    "raise_failure",
    "read_sets",
    "read_signatures",
    "unpack_keep_values",
    "working_directory",
]

# States in addition to those of documents: the rest of a source cannot be read; a task has failed.
ENDED, FAILED = 3, 4
# Approximate bytes of files per task.
TASK_BYTES = 128 * 10**6
# Bytes of text in memory at once.
BATCH_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Consecutive rows of a source.

    Attributes:
        source: Number of the source.
        first: First row.
        stop: One past the last row; None for all that follow.
    """

    source: int
    first: int = 0
    stop: int | None = None


ReadTask = tuple[RowSpan, ...]


def plan_tasks(sources: list[Source]) -> list[ReadTask]:
    """Divide sources, in order, into tasks of about equally many bytes. The result does not depend on the division."""
    tasks: list[ReadTask] = []
    growing: list[RowSpan] = []
    held = 0
    for number, source in enumerate(sources):
        size = source.size_bytes()
        cuts = source.split_points(TASK_BYTES) if size > TASK_BYTES else []
        if growing and (cuts or held + size > TASK_BYTES):
            tasks.append(tuple(growing))
            growing, held = [], 0
        ends = [*cuts, None]
        tasks.extend((RowSpan(number, first, stop),) for first, stop in zip([0, *cuts], ends, strict=True) if cuts)
        if not cuts:
            growing.append(RowSpan(number))
            held += size
    return [*tasks, tuple(growing)] if growing else tasks


def read_signatures(
    session: "SparkSession", corpus: Corpus, settings: SearchSettings, tasks: list[ReadTask]
) -> "DataFrame":
    """Return a row for each row of the sources, with source, row, id, keep value and signature.

    ``id_is_number`` is null where a source has no ids. If a source cannot be read to its end, its last row has the
    state ``ENDED``. Keep values of rows that were read together are stored with the first of them, as an Arrow stream:
    they may have any type.
    """
    schema = pa.schema(
        [
            ("source", pa.int32()),
            ("row", pa.int64()),
            *signature_fields(settings),
            ("id", pa.string()),
            ("id_is_number", pa.bool_()),
            ("ranks", pa.binary()),
            ("tokens", pa.int64()),
        ]
    )

    directory = str(Path.cwd())

    def read(numbers: Batches) -> Batches:
        with working_directory(directory):
            for number in (number for batch in numbers for number in to_numpy(batch.column("id")).tolist()):
                for span in tasks[number]:
                    yield from _failure_as_row(_span_signatures(corpus, settings, span, schema), schema)

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, ddl(schema))


def _span_signatures(corpus: Corpus, settings: SearchSettings, span: RowSpan, schema: pa.Schema) -> Batches:
    source = corpus.sources[span.source]
    for batch in _span_batches(source, corpus.columns_of(span.source), span):
        if len(batch):
            yield _signature_rows(source, span.source, batch, settings, schema)
        for fault in batch.faults:
            # All tasks of a source whose columns cannot be used report its end; that of the last one counts.
            if fault.row is None and (span.stop is None or batch.first < span.stop):
                yield _status_row(schema, span.source, batch.first + len(batch), ENDED, fault.reason)


def _signature_rows(
    source: Source, number: int, batch: Batch, settings: SearchSettings, schema: pa.Schema
) -> pa.RecordBatch:
    faults = {row: fault.reason for row, fault in indexed_faults(batch) if row < len(batch)}
    ids = batch_ids(source, batch)
    columns = {
        "source": from_numpy(np.full(len(batch), number, dtype=np.int32)),
        "row": from_numpy(np.arange(batch.first, batch.first + len(batch), dtype=np.int64)),
        **signature_columns(batch.values, settings, faults),
        "id": pa.nulls(len(batch), pa.string()) if ids is None else ids.cast(pa.string()),
        "id_is_number": _constant_column(None if ids is None else pa.types.is_integer(ids.type), len(batch)),
        "ranks": pa.array([_pack_keep_values(batch.keep_values), *[None] * (len(batch) - 1)], pa.binary()),
        "tokens": _token_column(batch, settings),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _token_column(batch: Batch, settings: SearchSettings) -> pa.Array:
    """Return the token counts of sampled rows, null for all others."""
    rows, counts = token_counts(batch, settings.shingler)
    column, sampled = np.zeros(len(batch), dtype=np.int64), np.zeros(len(batch), dtype=np.bool_)
    column[rows - batch.first], sampled[rows - batch.first] = counts, True
    return from_numpy(column, sampled)


def _constant_column(flag: bool | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.bool_()) if flag is None else from_bools(np.full(rows, flag))


def _pack_keep_values(keep_values: pa.Array | None) -> bytes | None:
    """Return values of any type as an Arrow stream."""
    if keep_values is None:
        return None
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"rank": keep_values})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpack_keep_values(packed: pa.Scalar) -> pa.Array:
    """Return the keep values of all rows that were read together, from the column ``ranks`` of the first."""
    with pa.ipc.open_stream(packed.as_buffer()) as stream:
        return stream.read_next_batch().column("rank")


def _span_batches(source: Source, columns: Columns, span: RowSpan, wanted: Int64s | None = None) -> Iterator[Batch]:
    """Yield the rows of a span, then the fault that ends the source, if any; only batches with ``wanted`` rows."""
    if wanted is None and (span.first, span.stop) == (0, None):
        yield from source.batches(columns, batch_bytes=BATCH_BYTES)
        return
    stop = span.stop if span.stop is not None else source.known_rows()
    if wanted is None:
        wanted = np.arange(span.first, stop)
    chosen = np.zeros(max(source.known_rows() or 0, int(wanted[-1]) + 1 if len(wanted) else 0), dtype=bool)
    chosen[wanted] = True
    for batch in source.batches(columns, wanted=chosen, batch_bytes=BATCH_BYTES):
        if not len(batch):  # it holds a fault of the source
            yield batch
            continue
        start, end = span.first - batch.first, len(batch) if stop is None else stop - batch.first
        start, end = (min(len(batch), max(0, row)) for row in (start, end))
        if start < end:
            yield batch.slice(start, end)


def _status_row(schema: pa.Schema, source: int, row: int, state: int, reason: str) -> pa.RecordBatch:
    """Return a row that reports a state and is no document."""
    values = {"source": source, "row": row, "state": state, "fault": reason}
    return pa.RecordBatch.from_pydict({name: [values.get(name)] for name in schema.names}, schema)


@contextmanager
def working_directory(path: str) -> Iterator[None]:
    """Change to the directory of the driver, so that relative file names mean the same; ignored where it is missing."""
    before = Path.cwd()
    try:
        os.chdir(path)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.chdir(before)


def _failure_as_row(batches: Batches, schema: pa.Schema) -> Batches:
    """Turn an error that every attempt would raise again into a row, from which the driver raises it."""
    try:
        yield from batches
    except MinwiseError as error:
        yield _status_row(schema, -1, -1, FAILED, f"{type(error).__name__}: {error}")


def raise_failure(fault: str) -> NoReturn:
    """Raise an error that an executor reported as ``CLASS: message``."""
    name, _, message = fault.partition(": ")
    raise CopyError(message) if name == CopyError.__name__ else getattr(errors, name, MinwiseError)(message)


def read_sets(
    documents: "DataFrame", corpus: Corpus, settings: SearchSettings, tasks: list[ReadTask], starts: Int64s
) -> "DataFrame":
    """Read some documents again and return their shingles.

    Args:
        documents: ``document`` and ``place`` of each.
        corpus: Sources of the documents.
        settings: Settings of the search.
        tasks: As in :func:`read_signatures`.
        starts: Number of each source's first document, and one past the last document.

    Returns:
        ``place`` and ``elements``.
    """
    firsts = np.array([starts[task[0].source] + task[0].first for task in tasks], dtype=np.int64)
    directory = str(Path.cwd())
    schema = pa.schema([("place", pa.int64()), ("elements", pa.large_binary())])

    def find_task(batches: Batches) -> Batches:
        for batch in batches:
            # Of tasks that begin with the same document all but the last are empty.
            task = np.searchsorted(firsts, to_numpy(batch.column("document")), side="right") - 1
            yield pa.record_batch({"task": from_numpy(task.astype(np.int64)), **_columns(batch)})

    def read(batches: Batches) -> Batches:
        with working_directory(directory):
            for task, chosen, places in _by_task(batches):
                for span in tasks[task]:
                    first, stop = np.searchsorted(chosen, starts[span.source : span.source + 2])
                    rows = chosen[first:stop] - starts[span.source]
                    inside = slice(first, stop)
                    yield from _span_sets(corpus, settings, span, rows, places[inside], schema)

    tasked = documents.select("document", "place").mapInArrow(find_task, "task long, document long, place long")
    ordered = tasked.repartition(len(tasks), "task").sortWithinPartitions("task", "document")
    return ordered.mapInArrow(read, "place long, elements binary")


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _by_task(batches: Batches) -> Iterator[tuple[int, Int64s, Int64s]]:
    """Yield each task with its documents and places, from rows sorted by task."""
    task, documents, places = -1, list[Int64s](), list[Int64s]()
    for batch in batches:
        tasks = to_numpy(batch.column("task"))
        cuts = [0, *(np.flatnonzero(tasks[1:] != tasks[:-1]) + 1).tolist(), len(tasks)]
        for start, end in pairwise(cuts):
            if documents and task != tasks[start]:
                yield task, np.concatenate(documents), np.concatenate(places)
                documents, places = [], []
            task = int(tasks[start])
            documents.append(to_numpy(batch.column("document"))[start:end])
            places.append(to_numpy(batch.column("place"))[start:end])
    if documents:
        yield task, np.concatenate(documents), np.concatenate(places)


def _span_sets(
    corpus: Corpus, settings: SearchSettings, span: RowSpan, rows: Int64s, places: Int64s, schema: pa.Schema
) -> Batches:
    """Yield the sets of some rows of a span. A row that no longer exists yields none, which the driver detects."""
    if not len(rows):
        return
    columns = replace(corpus.columns, keep_column=None)
    for batch in _span_batches(corpus.sources[span.source], columns, span, rows):
        first, stop = np.searchsorted(rows, [batch.first, batch.first + len(batch)])
        texts = batch.values.take(from_numpy(rows[first:stop] - batch.first))
        if len(texts) and not texts.null_count:
            elements = elements_column(texts, settings)
            yield pa.RecordBatch.from_arrays([from_numpy(places[first:stop]), elements], schema=schema)
