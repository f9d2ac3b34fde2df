"""Exchange of packed blocks: tasks send arrays to numbered parts, and each part is processed by one task.

Spark's shuffle handles rows, and with a row per band entry and pair the kernel needed about 1 % of the time of a run;
the rest was the way of rows from Python through Java to Python. Therefore a task packs what it has for one part into a
block: an Arrow record batch in bytes. Spark moves rows of a part number and a block, a few thousand for a million
documents.

Where all machines share a directory, a task writes its blocks to a file, and the rows only say where they are: a
million passages took 3 seconds less, since no block passes through Java. At a URL, where every read is a request, and
for DataFrames without a directory, blocks are in the rows.

Spark 4.1 routes rows by partition number. Before, hash partitioning is made to do it: :func:`partition_labels` returns
a number for each partition that Spark's hash sends there, so that no two parts meet in one task by accident.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise._internal.atomic import atomic_writer
from minwise.errors import FormatError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BLOCKS",
    "BLOCK_BYTES",
    "ROWS",
    "Batches",
    "bounded",
    "by_label",
    "by_part",
    "collected",
    "exchange",
    "pack",
    "received",
    "record_batches",
    "rows_of_blocks",
    "take_lists",
    "unpack",
]

Batches = Iterator[pa.RecordBatch]
Item = TypeVar("Item")

# Bytes of arrays that a task collects before it sends them, which bounds a block: Arrow's 32-bit offsets and Java's
# arrays end at 2 GB, and Java and Python both hold a block.
BLOCK_BYTES = 1 << 24
# Bytes of the mark at the end of a stream.
END_BYTES = 8
# Rows per record batch of numbers.
BATCH_ROWS = 1 << 16
# Rows that are exchanged: the part, and the block or where it is.
ROWS = pa.schema(
    [
        ("part", pa.int32()),
        ("block", pa.binary()),
        ("file", pa.string()),
        ("start", pa.int64()),
        ("size", pa.int64()),
        ("crc", pa.int64()),
    ]
)
BLOCKS = "part int, block binary, file string, start long, size long, crc long"


def pack(batch: pa.RecordBatch) -> pa.Array:
    """Return a record batch as a binary array of one value, with its schema."""
    content = _packed(batch)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, content.size], np.int32)), content])


def _packed(batch: pa.RecordBatch) -> pa.Buffer:
    # A stream that grows took twenty times as long: 4.8 instead of 0.24 ns per byte.
    content = pa.allocate_buffer(pa.ipc.get_record_batch_size(batch) + batch.schema.serialize().size + END_BYTES)
    with pa.FixedSizeBufferWriter(content) as sink:
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return content.slice(0, sink.tell())


def unpack(block: pa.Scalar) -> pa.RecordBatch:
    """Return the record batch of a block as a view of its bytes."""
    return _unpacked(block.as_buffer())


def _unpacked(content: pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(content) as stream:
        return stream.read_next_batch()


def rows_of_blocks(blocks: Iterable[tuple[int, pa.RecordBatch]], path: Path | None = None) -> Batches:
    """Yield a row for each block and the part that it is for.

    Args:
        blocks: Parts and blocks.
        path: File that all machines can read: blocks are written there, and rows say where they are. Without it they
            are in the rows.
    """
    if path is not None:
        yield from _rows_of_file(blocks, path)
        return
    for part, batch in blocks:
        yield _rows([part], pack(batch))


def _rows_of_file(blocks: Iterable[tuple[int, pa.RecordBatch]], path: Path) -> Batches:
    """Write blocks to a file; yield their rows when it is complete.

    Every attempt of a task writes the same bytes under the same name: Spark ends a job if a task that runs again after
    a loss sends other rows than before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    parts, places = list[int](), list[tuple[int, int, int]]()
    with atomic_writer(path, sync=False) as file:
        for part, batch in blocks:
            content = _packed(batch)
            parts.append(part)
            places.append((file.tell(), content.size, _checksum(content)))
            file.write(content)
    if parts:
        start, size, crc = (from_numpy(np.array(column, dtype=np.int64)) for column in zip(*places, strict=True))
        files = pa.array([str(path)] * len(parts), pa.string())
        yield _rows(parts, pa.nulls(len(parts), pa.binary()), files, start, size, crc)


def _rows(parts: list[int], blocks: pa.Array, *of_file: pa.Array) -> pa.RecordBatch:
    return _filled(ROWS, [from_numpy(np.array(parts, dtype=np.int32)), blocks, *of_file])


def record_batches(schema: pa.Schema, *columns: NDArray[Any]) -> Batches:
    """Yield columns as record batches of bounded size; columns that are not given are null."""
    for start in range(0, len(columns[0]), BATCH_ROWS):
        pieces = (from_numpy(column[start : start + BATCH_ROWS]) for column in columns)
        yield _filled(schema, [piece.cast(field.type) for piece, field in zip(pieces, schema, strict=False)])


def _filled(schema: pa.Schema, given: list[pa.Array]) -> pa.RecordBatch:
    """Return a record batch whose last columns, those that are not given, are null."""
    rest = [pa.nulls(len(given[0]), field.type) for field in list(schema)[len(given) :]]
    return pa.RecordBatch.from_arrays([*given, *rest], schema=schema)


def received(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the part and the content of each block that a task receives.

    Raises:
        FormatError: If a block of a file is damaged.
    """
    for batch in batches:
        parts, blocks, files = (batch.column(name) for name in ("part", "block", "file"))
        for row in range(len(batch)):
            in_row = files[row].as_py() is None
            content = blocks[row].as_buffer() if in_row else _read_block(batch.slice(row, 1).to_pylist()[0])
            yield parts[row].as_py(), _unpacked(content)


def _read_block(row: dict[str, Any]) -> pa.Buffer:
    """Return a block of a file as a view of it."""
    with pa.memory_map(row["file"]) as file:
        file.seek(row["start"])
        content = file.read_buffer(row["size"])
    if content.size != row["size"] or _checksum(content) != row["crc"]:
        raise FormatError(f"{row['file']}: a block at byte {row['start']} is damaged; start the run again")
    return content


def _checksum(content: pa.Buffer) -> int:
    return _kernel.crc32c(np.frombuffer(content, dtype=np.uint8), 0)


def exchange(blocks: "DataFrame", parts: int, receive: Callable[[Batches], Batches], schema: str) -> "DataFrame":
    """Return what ``receive`` makes of the blocks of each part.

    Args:
        blocks: Rows of :func:`rows_of_blocks`, with the schema ``BLOCKS``.
        parts: Number of parts, each of which is one partition of the result.
        receive: Processes the rows of one part; none if nothing was sent to it.
        schema: Schema of its rows.
    """
    by_number = getattr(blocks, "repartitionById", None)
    routed = by_label(blocks, parts) if by_number is None else by_number(parts, "part")
    return routed.mapInArrow(receive, schema)


def by_label(blocks: "DataFrame", parts: int) -> "DataFrame":
    """Return the blocks, those of part n in partition n, for versions of Spark that cannot route by number."""
    from pyspark.sql import functions

    labels = functions.lit(partition_labels(blocks.sparkSession, parts))
    return blocks.repartition(parts, functions.get(labels, "part"))


def partition_labels(session: "SparkSession", parts: int) -> list[int]:
    """Return for each partition a number that Spark's hash partitioning sends there."""
    from pyspark.sql import functions

    labels: dict[int, int] = {}
    count = 16 * parts
    while len(labels) < parts:
        numbers = session.range(count).select(functions.col("id").cast("int").alias("label"))
        hashed = numbers.select("label", functions.pmod(functions.hash("label"), functions.lit(parts)).alias("part"))
        found = hashed.groupBy("part").agg(functions.min("label").alias("label")).collect()
        labels = {row["part"]: row["label"] for row in found}
        count *= 2
    return [labels[part] for part in range(parts)]


def by_part(parts: NDArray[np.uint32], count: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each part of ``count`` that occurs, with the indices at which it does, ascending."""
    narrow = parts.astype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)
    order = np.argsort(narrow, kind="stable")  # a radix sort up to 16 bits
    bounds = np.concatenate([[0], np.cumsum(np.bincount(narrow, minlength=count))])
    for part in np.flatnonzero(np.diff(bounds)).tolist():
        yield part, order[bounds[part] : bounds[part + 1]]


def take_lists(sizes: NDArray[np.int64], values: NDArray[Any], chosen: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of some lists, one after the other; ``sizes`` are those of all lists in ``values``."""
    starts = np.cumsum(sizes) - sizes
    lengths = sizes[chosen]
    before = np.cumsum(lengths) - lengths
    found: NDArray[Any] = values[np.arange(int(lengths.sum())) + np.repeat(starts[chosen] - before, lengths)]
    return found


def bounded(sizes: NDArray[np.int64], most: int = 0) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive items whose sizes add up to at most ``most``, or of one item.

    Args:
        sizes: Sizes of the items.
        most: Maximum of a range; ``BLOCK_BYTES`` if it is 0.
    """
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + (most or BLOCK_BYTES), side="right")))
        yield start, stop
        start = stop


def collected(items: Iterable[Item], size: Callable[[Item], int], least: int = 0) -> Iterator[list[Item]]:
    """Yield consecutive items in lists whose sizes add up to at least ``least``, so that blocks are not small.

    The last list may be smaller.

    Args:
        items: The items.
        size: Returns the size of an item.
        least: Minimum of a list; ``BLOCK_BYTES`` if it is 0.

    >>> list(collected([3, 4, 1, 9, 2], int, 6))
    [[3, 4], [1, 9], [2]]
    """
    held, total = list[Item](), 0
    for item in items:
        held.append(item)
        total += size(item)
        if total >= (least or BLOCK_BYTES):
            yield held
            held, total = [], 0
    if held:
        yield held
