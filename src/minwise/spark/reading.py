"""Reading: sources in; tasks that read about equally much of them, and what executors make of their rows, out.

Files are read by the same code as on one machine, so that rows, ids and faults are the same.
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
from numpy.typing import NDArray

from minwise import errors
from minwise._internal.arrays import from_bools, from_numpy, to_numpy
from minwise.errors import MinwiseError
from minwise.inputs.source import Batch, Columns, Source
from minwise.search.documents import Corpus, batch_ids, placed_faults
from minwise.settings import FindSettings
from minwise.spark.signatures import ddl, elements_column, signature_columns, signature_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ENDED",
    "FAILED",
    "TASK_BYTES",
    "Batches",
    "Task",
    "in_directory",
    "plan_tasks",
    "raise_failure",
    "read_sets",
    "read_signatures",
    "unpacked_ranks",
]

# States beside those of documents: a source can not be read on; a task can not be done.
ENDED, FAILED = 3, 4
# Bytes of files that a task reads, about.
TASK_BYTES = 128 * 10**6
# Text that is in memory at once.
BATCH_BYTES = 1 << 24

Numbers = NDArray[np.int64]
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Span:
    """Rows of a source that follow each other.

    Attributes:
        source: Its number.
        first: The first row.
        stop: One past the last row; None for all that are there.
    """

    source: int
    first: int = 0
    stop: int | None = None


Task = tuple[Span, ...]


def plan_tasks(sources: list[Source]) -> list[Task]:
    """Cuts sources, in order, into tasks of about equally many bytes. No row depends on it."""
    tasks: list[Task] = []
    growing: list[Span] = []
    held = 0
    for number, source in enumerate(sources):
        size = source.size_bytes()
        cuts = source.cuts(TASK_BYTES) if size > TASK_BYTES else []
        if growing and (cuts or held + size > TASK_BYTES):
            tasks.append(tuple(growing))
            growing, held = [], 0
        ends = [*cuts, None]
        tasks.extend((Span(number, first, stop),) for first, stop in zip([0, *cuts], ends, strict=True) if cuts)
        if not cuts:
            growing.append(Span(number))
            held += size
    return [*tasks, tuple(growing)] if growing else tasks


def read_signatures(session: "SparkSession", corpus: Corpus, settings: FindSettings, tasks: list[Task]) -> "DataFrame":
    """A row for each row of the sources, with source, row, id, rank and signature.

    ``id_is_number`` is null where a source has no ids. A last row of a source has the state ``ENDED`` if it can not be
    read on. The ranks of rows that were read together are with the first of them, as they were read: they may be of
    any type.
    """
    schema = pa.schema(
        [
            ("source", pa.int32()),
            ("row", pa.int64()),
            *signature_fields(settings),
            ("id", pa.string()),
            ("id_is_number", pa.bool_()),
            ("ranks", pa.binary()),
        ]
    )

    directory = str(Path.cwd())

    def read(numbers: Batches) -> Batches:
        with in_directory(directory):
            for number in (number for batch in numbers for number in to_numpy(batch.column("id")).tolist()):
                for span in tasks[number]:
                    yield from _reporting_failure(_span_signatures(corpus, settings, span, schema), schema)

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, ddl(schema))


def _span_signatures(corpus: Corpus, settings: FindSettings, span: Span, schema: pa.Schema) -> Batches:
    source = corpus.sources[span.source]
    columns = corpus.columns if span.source >= corpus.against else replace(corpus.columns, rank=None)
    for batch in _rows_of(source, columns, span):
        if len(batch):
            yield _signature_rows(source, span.source, batch, settings, schema)
        for fault in batch.faults:
            if fault.row is None:
                yield _remark(schema, span.source, batch.first + len(batch), ENDED, fault.reason)


def _signature_rows(
    source: Source, number: int, batch: Batch, settings: FindSettings, schema: pa.Schema
) -> pa.RecordBatch:
    faults = {place: fault.reason for place, fault in placed_faults(batch) if place < len(batch)}
    ids = batch_ids(source, batch)
    columns = {
        "source": from_numpy(np.full(len(batch), number, dtype=np.int32)),
        "row": from_numpy(np.arange(batch.first, batch.first + len(batch), dtype=np.int64)),
        **signature_columns(batch.texts, settings, faults),
        "id": pa.nulls(len(batch), pa.string()) if ids is None else ids.cast(pa.string()),
        "id_is_number": _same_for_all(None if ids is None else pa.types.is_integer(ids.type), len(batch)),
        "ranks": pa.array([_packed_ranks(batch.rank), *[None] * (len(batch) - 1)], pa.binary()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _same_for_all(flag: bool | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.bool_()) if flag is None else from_bools(np.full(rows, flag))


def _packed_ranks(ranks: pa.Array | None) -> bytes | None:
    """Values of any type as an Arrow stream."""
    if ranks is None:
        return None
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"rank": ranks})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked_ranks(packed: pa.Scalar) -> pa.Array:
    """The values that one row has for all that were read with it."""
    with pa.ipc.open_stream(packed.as_buffer()) as stream:
        return stream.read_next_batch().column("rank")


def _rows_of(source: Source, columns: Columns, span: Span, wanted: Numbers | None = None) -> Iterator[Batch]:
    """The rows of a span, and the remark that there are no more to be read; if some are wanted, only their batches."""
    if wanted is None and (span.first, span.stop) == (0, None):
        yield from source.batches(columns, batch_bytes=BATCH_BYTES)
        return
    stop = span.stop if span.stop is not None else source.known_rows()
    if wanted is None:
        wanted = np.arange(span.first, stop)
    chosen = np.zeros(max(source.known_rows() or 0, int(wanted[-1]) + 1 if len(wanted) else 0), dtype=bool)
    chosen[wanted] = True
    for batch in source.batches(columns, wanted=chosen, batch_bytes=BATCH_BYTES):
        if not len(batch):  # a remark
            yield batch
            continue
        start, end = span.first - batch.first, len(batch) if stop is None else stop - batch.first
        start, end = (min(len(batch), max(0, place)) for place in (start, end))
        if start < end:
            yield batch.part(start, end)


def _remark(schema: pa.Schema, source: int, row: int, state: int, reason: str) -> pa.RecordBatch:
    """A row that is no document."""
    values = {"source": source, "row": row, "state": state, "fault": reason}
    return pa.RecordBatch.from_pydict({name: [values.get(name)] for name in schema.names}, schema)


@contextmanager
def in_directory(path: str) -> Iterator[None]:
    """Goes where the run was started, so that relative names of files mean the same; elsewhere there are none such."""
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


def _reporting_failure(batches: Batches, schema: pa.Schema) -> Batches:
    """Turns an error that would come again at every attempt into a row, which the driver raises as it was."""
    try:
        yield from batches
    except MinwiseError as error:
        yield _remark(schema, -1, -1, FAILED, f"{type(error).__name__}: {error}")


def raise_failure(fault: str) -> NoReturn:
    """Raises what went wrong in an executor."""
    name, _, message = fault.partition(": ")
    raise getattr(errors, name, MinwiseError)(message)


def read_sets(
    documents: "DataFrame", corpus: Corpus, settings: FindSettings, tasks: list[Task], starts: Numbers
) -> "DataFrame":
    """The shingles of some documents, which are read once more.

    Args:
        documents: ``document`` and ``place`` of each.
        corpus: Where they are.
        settings: How texts are cut.
        tasks: As in :func:`read_signatures`.
        starts: The number of each source's first document, and one past the last of all.

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
        with in_directory(directory):
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


def _by_task(batches: Batches) -> Iterator[tuple[int, Numbers, Numbers]]:
    """The documents and places of each task, which lie one after the other."""
    held: list[tuple[Numbers, Numbers, Numbers]] = []
    for batch in batches:
        tasks, documents, places = (to_numpy(batch.column(name)) for name in ("task", "document", "place"))
        cuts = [0, *(np.flatnonzero(tasks[1:] != tasks[:-1]) + 1).tolist(), len(tasks)]
        for start, end in pairwise(cuts):
            piece = tasks[start:end], documents[start:end], places[start:end]
            if held and held[0][0][0] != tasks[start]:
                yield _joined(held)
                held = []
            held.append(piece)
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Numbers, Numbers, Numbers]]) -> tuple[int, Numbers, Numbers]:
    return int(held[0][0][0]), np.concatenate([one[1] for one in held]), np.concatenate([one[2] for one in held])


def _span_sets(
    corpus: Corpus, settings: FindSettings, span: Span, rows: Numbers, places: Numbers, schema: pa.Schema
) -> Batches:
    """The sets of some rows of a span; a row that is no longer there gives none, and is missed by whoever counts."""
    if not len(rows):
        return
    columns = replace(corpus.columns, rank=None)
    for batch in _rows_of(corpus.sources[span.source], columns, span, rows):
        first, stop = np.searchsorted(rows, [batch.first, batch.first + len(batch)])
        texts = batch.texts.take(from_numpy(rows[first:stop] - batch.first))
        if len(texts) and not texts.null_count:
            elements = elements_column(texts, settings)
            yield pa.RecordBatch.from_arrays([from_numpy(places[first:stop]), elements], schema=schema)
