"""Exchange of packed blocks: tasks send arrays to numbered parts, and each part is processed by one task.

Spark's shuffle handles rows, and a row per band entry, pair or shingle takes 50 times as long on its way from Python
through Java to Python as the kernel needs for it. Therefore a task packs what it has for one part into a block: an
Arrow record batch in bytes. Spark moves rows of a part number and a block, a few thousand for a million documents.

Spark 4.1 routes rows by partition number. Before, hash partitioning is made to do it: :func:`partition_labels` returns
a number for each partition that Spark's hash sends there, so that no two parts meet in one task by accident.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, to_numpy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BLOCKS",
    "BLOCK_BYTES",
    "Batches",
    "by_label",
    "by_part",
    "exchange",
    "pack",
    "partition_labels",
    "received",
    "rows_of_blocks",
    "take_lists",
    "unpack",
]

Batches = Iterator[pa.RecordBatch]

# Bytes of arrays that a task collects before it sends them, which bounds a block: Arrow's 32-bit offsets and Java's
# arrays end at 2 GB, and Java and Python both hold a block.
BLOCK_BYTES = 1 << 24
# Bytes of the mark at the end of a stream.
END_BYTES = 8
# Schema of rows that are exchanged.
BLOCKS = "part int, block binary"


def pack(batch: pa.RecordBatch) -> pa.Array:
    """Return a record batch as a binary array of one value, with its schema."""
    # A stream that grows took four times as long.
    content = pa.allocate_buffer(pa.ipc.get_record_batch_size(batch) + batch.schema.serialize().size + END_BYTES)
    with pa.FixedSizeBufferWriter(content) as sink, pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, content.size], np.int32)), content])


def unpack(block: pa.Scalar) -> pa.RecordBatch:
    """Return the record batch of a block as a view of its bytes."""
    with pa.ipc.open_stream(block.as_buffer()) as stream:
        return stream.read_next_batch()


def rows_of_blocks(blocks: Iterable[tuple[int, pa.RecordBatch]]) -> Batches:
    """Yield a row for each block and the part that it is for."""
    for part, batch in blocks:
        yield pa.record_batch({"part": from_numpy(np.array([part], dtype=np.int32)), "block": pack(batch)})


def received(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the part and the content of each block that a task receives."""
    for batch in batches:
        parts, blocks = to_numpy(batch.column("part")), batch.column("block")
        for row in range(len(batch)):
            yield int(parts[row]), unpack(blocks[row])


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
