"""Order: signatures in; the same with the place of each document in the keep order out.

Places are counted: rows are cut into ranges and sorted, and a row's place is the number of rows in the ranges before
its own, and before it there. So they depend on nothing but the ids and what the policy compares.
"""

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from minwise._internal.arrays import from_numpy
from minwise.settings import FindSettings

__all__ = ["in_keep_order", "with_places"]

Batches = Iterator[pa.RecordBatch]


def in_keep_order(documents: DataFrame, settings: FindSettings, partitions: int) -> DataFrame:
    """The documents, sorted in ranges: ``range`` is the number of a row's range, ``row`` its own in it, from 0 on.

    Which rows are in which range differs from one evaluation to the next, so it has to be held before it is used.

    Args:
        documents: ``own``, ``id``, ``text_bytes``, under ``max:COL`` and ``min:COL`` ``rank``, and any other columns.
        settings: What decides the result.
        partitions: Into how many ranges they are cut. The order does not depend on it.
    """
    order = _order(settings.keep, documents)
    ranges = documents.repartitionByRange(partitions, *order).sortWithinPartitions(*order)
    numbered = ranges.withColumn("range", f.spark_partition_id())
    return numbered.mapInArrow(_count, t.StructType([*numbered.schema.fields, t.StructField("row", t.LongType())]))


def _order(keep: str, documents: DataFrame) -> list[Column]:
    """What is compared. Documents that are only compared against come first, by their ids, whatever the policy."""
    policy, own, ident = keep.partition(":")[0], f.col("own"), f.col("id")
    length = f.when(own, f.col("text_bytes"))
    if policy == "last":
        return [own, f.when(~own, ident), ident.desc()]
    if policy == "longest":
        return [own, length.desc(), ident]
    if policy == "shortest":
        return [own, length, ident]
    if policy in ("max", "min"):
        rank = f.col("rank")
        if isinstance(documents.schema["rank"].dataType, (t.FloatType, t.DoubleType)):
            rank = f.when(~f.isnan(rank), rank)
        return [own, rank.desc_nulls_last() if policy == "max" else rank.asc_nulls_last(), ident]
    return [own, ident]


def _count(batches: Batches) -> Batches:
    """Adds to each row how many were before it."""
    before = 0
    for batch in batches:
        rows = from_numpy(np.arange(before, before + len(batch)))
        yield pa.RecordBatch.from_arrays([*batch.columns, rows], names=[*batch.schema.names, "row"])
        before += len(batch)


def with_places(ordered: DataFrame) -> DataFrame:
    """What :func:`in_keep_order` made, and somebody holds, with ``place`` instead of range and row."""
    sizes = {row["range"]: row["count"] for row in ordered.groupBy("range").count().collect()}
    ranges = sorted(sizes)
    before = [0, *accumulate(sizes[number] for number in ranges)]
    schema = "range int, before long"
    starts = ordered.sparkSession.createDataFrame(list(zip(ranges, before, strict=False)), schema)
    placed = ordered.join(f.broadcast(starts), "range")
    return placed.withColumn("place", f.col("before") + f.col("row")).drop("range", "row", "before")
