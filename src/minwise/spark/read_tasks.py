"""Tasks that read the input: sources are divided into tasks of similar size, whose rows the executors sketch.

Executors read files with the code of the local engine, so that rows, ids and faults are the same.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, from_numpy, to_numpy
from minwise.inputs.source import Batch, Columns, Source
from minwise.search.bands import KeyBlock, element_arrays, key_bytes
from minwise.search.documents import Corpus, batch_ids, indexed_faults
from minwise.search.first_pass import token_counts
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import SKETCH_FIELDS, Int64s, sketch
from minwise.spark.blocks import BLOCK_BYTES, Batches, collected, pack, unpack
from minwise.spark.stage_store import FILES, StageFile, StageFolder, attempt_name, rows_of_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "DOCUMENTS",
    "ENDED",
    "KEYS",
    "TASK_BYTES",
    "ReadTask",
    "SketchedRows",
    "document_rows",
    "plan_tasks",
    "read_sets",
    "read_values",
    "row_faults",
    "span_rows",
    "task_bounds",
    "task_frame",
    "task_numbers",
    "unpack_values",
    "working_directory",
    "write_signatures",
]

# State in addition to those of documents: the rest of a source cannot be read.
ENDED = 3
# Suffix of files of keys, or of entries of passages.
KEYS = ".keys"
# Columns of files of documents. ``id_is_number`` is null where a source has no ids. Document values of rows that were
# read together are with the first of them, as a block: they may have any type.
DOCUMENTS = pa.schema(
    [
        ("source", pa.int32()),
        ("row", pa.int64()),
        *SKETCH_FIELDS,
        ("id", pa.string()),
        ("id_is_number", pa.bool_()),
        ("values", pa.binary()),
        ("tokens", pa.int64()),
    ]
)
# Approximate bytes of files per task.
TASK_BYTES = 32 * 10**6
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


def write_signatures(
    session: "SparkSession", location: str, corpus: Corpus, settings: SearchSettings, tasks: list[ReadTask]
) -> "DataFrame":
    """Return the tasks that read all sources and write two kinds of files: the documents, and their keys.

    A file of documents has a row for each row of the sources: source, row, id, document values, state, length, content
    hash and fault. If a source cannot be read to its end, its last row has the state ``ENDED``. The file of their keys,
    of the same name with the suffix ``.keys``, has an array with a row of keys per document, and the fact ``spans``:
    source, first row and number of rows of the documents.
    """
    directory = str(Path.cwd())

    def read(numbers: Batches) -> Batches:
        with working_directory(directory):
            folder = StageFolder(location)
            for number in task_numbers(numbers):
                yield from rows_of_files(_signature_files(folder, corpus, settings, number, tasks[number]))

    return task_frame(session, len(tasks)).mapInArrow(read, FILES)


def task_frame(session: "SparkSession", tasks: int) -> "DataFrame":
    """Return a row for each task, each in a partition of its own."""
    return session.range(0, tasks, 1, max(1, tasks))


def task_numbers(batches: Batches) -> Iterator[int]:
    """Yield the numbers of tasks in rows of :func:`task_frame`."""
    return (number for batch in batches for number in to_numpy(batch.column("id")).tolist())


class SketchedRows(NamedTuple):
    """Rows of a source that were read together, with their keys; rows that report a state have none."""

    rows: pa.RecordBatch
    span: list[int]
    block: KeyBlock | None = None


def _signature_files(
    folder: StageFolder, corpus: Corpus, settings: SearchSettings, number: int, task: ReadTask
) -> Iterator[StageFile]:
    """Write the files of a task, which are cut by the bytes of their keys."""
    sketched = (rows for span in task for rows in _span_signatures(corpus, settings, span))
    files = collected(sketched, lambda rows: 0 if rows.block is None else rows.block.nbytes)
    for written, held in enumerate(files):
        yield from _write_signatures(folder, attempt_name(number, written), held)


def _write_signatures(folder: StageFolder, name: str, held: list[SketchedRows]) -> Iterator[StageFile]:
    blocks = [sketched.block for sketched in held if sketched.block is not None]
    with folder.writing("signatures") as work:
        work.write_table(name, pa.Table.from_batches([sketched.rows for sketched in held]))
        yield StageFile(name, (work.folder / name).stat().st_size, {})
        if not blocks:
            return
        arrays = {"keys": np.concatenate([block.keys.T for block in blocks])}
        if blocks[0].packed is not None:
            arrays["packed"] = np.concatenate([block.packed for block in blocks if block.packed is not None])
        keys = f"{name}{KEYS}"
        work.write(keys, arrays)
        spans = [sketched.span for sketched in held if sketched.block is not None]
        yield StageFile(keys, (work.folder / keys).stat().st_size, {"spans": spans})


def _span_signatures(corpus: Corpus, settings: SearchSettings, span: RowSpan) -> Iterator[SketchedRows]:
    def process(source: Source, number: int, batch: Batch) -> SketchedRows:
        block, columns = sketch(batch.values, settings, row_faults(batch))
        rows = document_rows(source, number, batch, {**columns, "tokens": _token_column(batch, settings)})
        return SketchedRows(rows, [number, batch.first, len(batch)], block)

    return span_rows(corpus, span, max(1, BLOCK_BYTES // key_bytes(settings)), process)


def span_rows(
    corpus: Corpus, span: RowSpan, most: int, process: Callable[[Source, int, Batch], SketchedRows]
) -> Iterator[SketchedRows]:
    """Read the rows of a span, process at most ``most`` at once, and report the end of a source that has one."""
    source = corpus.sources[span.source]
    for batch in _span_batches(source, corpus.columns_of(span.source), span):
        for start in range(0, len(batch), most):  # a batch of short texts has many documents
            yield process(source, span.source, batch.slice(start, min(start + most, len(batch))))
        for fault in batch.faults:
            # All tasks of a source whose columns cannot be used report its end; that of the last one counts.
            if fault.row is None and (span.stop is None or batch.first < span.stop):
                yield SketchedRows(_end_row(span.source, batch.first + len(batch), fault.reason), [])


def row_faults(batch: Batch) -> dict[int, str]:
    """Return the reasons why rows of a batch cannot be used, by row."""
    return {row: fault.reason for row, fault in indexed_faults(batch) if row < len(batch)}


def document_rows(source: Source, number: int, batch: Batch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Return the rows of documents that were read together, from the columns that their texts determine."""
    ids = batch_ids(source, batch)
    columns = columns | {
        "source": from_numpy(np.full(len(batch), number, dtype=np.int32)),
        "row": from_numpy(np.arange(batch.first, batch.first + len(batch), dtype=np.int64)),
        "id": pa.nulls(len(batch), pa.string()) if ids is None else ids.cast(pa.string()),
        "id_is_number": _constant_column(None if ids is None else pa.types.is_integer(ids.type), len(batch)),
        "values": _value_block(batch),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in DOCUMENTS.names], schema=DOCUMENTS)


def _end_row(source: int, row: int, reason: str) -> pa.RecordBatch:
    """Return a row that reports the end of a source and is no document."""
    values = {"source": source, "row": row, "state": ENDED, "fault": reason}
    return pa.RecordBatch.from_pydict({name: [values.get(name)] for name in DOCUMENTS.names}, DOCUMENTS)


def _token_column(batch: Batch, settings: SearchSettings) -> pa.Array:
    """Return the token counts of sampled rows, null for all others."""
    rows, counts = token_counts(batch, settings.shingler)
    column, sampled = np.zeros(len(batch), dtype=np.int64), np.zeros(len(batch), dtype=np.bool_)
    column[rows - batch.first], sampled[rows - batch.first] = counts, True
    return from_numpy(column, sampled)


def _constant_column(flag: bool | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.bool_()) if flag is None else from_bools(np.full(rows, flag))


def _value_block(batch: Batch) -> pa.Array:
    """Return a column with the document values of all rows, of any type, as a block in the first row."""
    packed = [pack(pa.record_batch(dict(batch.document_values)))] if batch.document_values else []
    return pa.concat_arrays([*packed, pa.nulls(len(batch) - len(packed), pa.binary())])


def unpack_values(packed: pa.Scalar) -> pa.RecordBatch:
    """Return the document values of all rows that were read together, from the column ``values`` of the first."""
    return unpack(packed)


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


def read_sets(
    corpus: Corpus, settings: SearchSettings, task: ReadTask, starts: Int64s, documents: Int64s
) -> Iterator[tuple[slice, Int64s, NDArray[np.uint64]]]:
    """Read some documents of a task again and yield their sets: which documents, offsets and elements.

    A document that no longer exists yields none, which the cell detects that it belongs to.

    Args:
        corpus: Sources of the documents.
        settings: Settings of the search.
        task: Task that the documents belong to.
        starts: Number of each source's first document, and one past the last document.
        documents: Numbers of the documents, ascending.
    """
    for chosen, values in read_values(corpus, task, starts, documents):
        offsets, elements = element_arrays(values, settings.shingler, 1)
        yield chosen, offsets, elements


def read_values(corpus: Corpus, task: ReadTask, starts: Int64s, documents: Int64s) -> Iterator[tuple[slice, pa.Array]]:
    """Read some documents of a task again and yield their texts or items: which documents, and the values."""
    columns = replace(corpus.columns, values=())
    for span in task:
        first, stop = np.searchsorted(documents, starts[span.source : span.source + 2])
        rows = documents[first:stop] - starts[span.source]
        if not len(rows):
            continue
        for batch in _span_batches(corpus.sources[span.source], columns, span, rows):
            inside = slice(*np.searchsorted(rows, [batch.first, batch.first + len(batch)]).tolist())
            values = batch.values.take(from_numpy(rows[inside] - batch.first))
            if len(values) and not values.null_count:
                yield slice(first + inside.start, first + inside.stop), values


def task_bounds(tasks: list[ReadTask], starts: Int64s) -> Iterator[tuple[int, int]]:
    """Yield the first document of each task, and one past its last."""
    firsts = [min(int(starts[task[0].source]) + task[0].first, int(starts[task[0].source + 1])) for task in tasks]
    return pairwise([*firsts, int(starts[-1])])
