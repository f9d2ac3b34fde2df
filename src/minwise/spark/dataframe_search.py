"""Search over DataFrames up to the verified pairs, stage by stage, with no driver memory that grows with the input.

A document's ``place`` is its position in the keep order. Rows are divided into ranges and sorted, and a place is the
number of rows in the ranges before its own, plus those before it there. So places depend on nothing but the ids and the
values that the keep policy compares.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from minwise._internal.arrays import from_numpy
from minwise.checks import show
from minwise.errors import ConfigError, InputError
from minwise.inputs.source import fault_error
from minwise.keep_rules import KeepRule
from minwise.search.bands import EMPTY, FAULTY, FILLED, NO_DOCUMENT, BucketCounts
from minwise.search.candidates import VERIFIED
from minwise.search.needed_pairs import Needed, PairCounts, planned_stage
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import bytes_per_text_byte
from minwise.spark.band_tasks import part_count
from minwise.spark.blocks import Batches
from minwise.spark.cell_search import CellTask
from minwise.spark.cells import CELL_BYTES, MOST_CELL_BYTES, MOST_CELLS, NEEDED_SECONDS, PAIR_SECONDS
from minwise.spark.clustering import DRIVER_EDGES, connected_components
from minwise.spark.document_tables import DocumentTable, DocumentTables, value_name
from minwise.spark.frame_tasks import (
    CAP_COLUMNS,
    Cells,
    bucket_edges,
    compare_cells,
    element_blocks,
    frame_buckets,
    frame_task,
    hashed_buckets,
    planned_cells,
)
from minwise.spark.stage_store import StageStore

__all__ = ["DataFrameSearch"]

# Rows of text per Arrow batch: Spark counts rows and not bytes, and a text may have megabytes.
TEXT_ROWS = 256
CONTENT = ["content_high", "content_low"]


class TableCounts(NamedTuple):
    """Rows of a table and bytes of their texts, by state."""

    rows: dict[int, int]
    text_bytes: dict[int, int]

    @property
    def total(self) -> int:
        """Number of all rows."""
        return sum(self.rows.values())

    def of(self, state: int) -> int:
        """Return the number of rows in a state."""
        return self.rows.get(state, 0)


class DataFrameSearch:
    """Stages up to the verified pairs. Each is made at its first use.

    Attributes:
        tables: Documents.
        settings: Settings of the search.
        stages: Finished stages.
        partitions: Number of partitions of shuffles. No result depends on it.
        sampled: Whether pairs that decide no cluster are compared too, all or a sample, for a report.
    """

    def __init__(
        self,
        tables: DocumentTables,
        settings: SearchSettings,
        stages: StageStore,
        partitions: int,
        on_error: str,
        *,
        sampled: bool,
    ) -> None:
        self.tables, self.settings, self.stages, self.partitions = tables, settings, stages, partitions
        self._on_error, self.sampled = on_error, sampled
        self._found: dict[str, DataFrame] = {}
        self._resumed = stages.is_finished("signatures")

    @cached_property
    def signatures(self) -> DataFrame:
        """A row for each row of the tables: ``own``, ``id``, the keep values and the signature."""
        made = self.stages.run("signatures", lambda: self.tables.sketched(self.settings), rows_per_batch=TEXT_ROWS)
        if self._resumed:
            self._refuse_other_ids(made)
        return made

    def _refuse_other_ids(self, made: DataFrame) -> None:
        """Raise InputError if the signatures of an earlier run are of other documents."""
        for table in self.tables.all:
            of_table = f.col("own") == (table is self.tables.own)
            before = _fingerprint(made.filter(of_table).select("id"))
            now = _fingerprint(table.frame.select(table.ids))
            if before != now:
                raise InputError(
                    f"{table.name} is not what work was begun with: it had {before[0]} rows, now there are {now[0]}, "
                    "or other ids; give another work, or delete it to start again"
                )

    @cached_property
    def counts(self) -> dict[str, TableCounts]:
        """Rows of each table by state, by the name of the table.

        Raises:
            InputError: If an id is null or occurs twice, if no row can be used, or if one cannot and that is an error.
            ConfigError: If a column of the keep rule has no values.
        """
        found = self.signatures.groupBy("own", "state").agg(
            f.count("*").alias("rows"),
            f.sum("text_bytes").alias("text_bytes"),
            f.sum(f.col("id").isNull().cast("long")).alias("null_ids"),
            *(f.count(name).alias(name) for name in self._value_names),
            f.min("id").alias("first"),
            f.min_by("fault", "id").alias("fault"),
        )
        by_state = [row.asDict() for row in found.collect()]
        result = {}
        for table in self.tables.all:
            rows = [row for row in by_state if row["own"] == (table is self.tables.own)]
            _refuse_null_ids(table, rows)
            self._refuse_duplicate_ids(table)
            self._refuse_faults(table, rows)
            by_name = ({row["state"]: row[name] for row in rows} for name in ("rows", "text_bytes"))
            result[table.name] = TableCounts(*by_name)
        return result

    def _refuse_duplicate_ids(self, table: DocumentTable) -> None:
        rows = self.signatures.filter(f.col("own") == (table is self.tables.own))
        repeated = rows.groupBy("id").agg(f.count("*").alias("times")).filter("times > 1")
        first = repeated.agg(f.min("id").alias("id"), f.min_by("times", "id").alias("times")).collect()[0]
        if first["times"]:
            rule = f"{table.name}: {table.id} must be different in every row"
            raise InputError(f"{rule}, got {_shown(first['id'])} {first['times']} times")

    def _refuse_faults(self, table: DocumentTable, rows: list[dict[str, Any]]) -> None:
        total = _total(rows)
        for row in rows:
            if row["state"] != FAULTY:
                continue
            where = f"{table.name}: {table.id} {_shown(row['first'])}: {row['fault']}"
            if self._on_error == "fail":
                raise fault_error(where)
            if row["rows"] == total:
                raise InputError(f"no document can be read; {where}")
        for number, column in enumerate(table.keep_columns):
            if total and not any(row[value_name(number)] for row in rows):
                raise ConfigError(f"keep column {column!r} has no values")

    @property
    def _value_names(self) -> list[str]:
        """Names of the columns of keep values."""
        return [value_name(number) for number in range(len(self.tables.own.keep_columns))]

    @property
    def own_counts(self) -> TableCounts:
        """Rows of the table that is deduplicated."""
        return self.counts[self.tables.own.name]

    @cached_property
    def protected(self) -> int:
        """Number of rows that are only compared against; they come first in the keep order."""
        return 0 if self.tables.against is None else self.counts[self.tables.against.name].total

    @cached_property
    def _placed(self) -> DataFrame:
        """The documents that are not empty, each with its ``place`` among all rows, as the local engine counts them."""
        self.counts  # noqa: B018 - checks the ids before they are sorted
        rows = self.signatures.drop("fault")
        order = _sort_columns(self.settings.keep_rule, self.tables.own.keep_columns, rows)
        make = lambda: _in_keep_order(rows, order, self.partitions).drop(*self._value_names)  # noqa: E731
        ordered = self.stages.run("ordered", make)
        return _with_places(ordered).filter(f.col("state") == FILLED).drop("state")

    @cached_property
    def _copy_groups(self) -> DataFrame:
        """Content hash, ``leader`` and number of ``members`` of each group of two or more identical documents."""

        def make() -> DataFrame:
            leader, members = f.min("place").alias("leader"), f.count("*").alias("members")
            return self._placed.groupBy(*CONTENT).agg(leader, members).filter("members > 1")

        return self.stages.run("copies", make)

    def _with_leaders(self, documents: DataFrame) -> DataFrame:
        """Return the documents with ``leader``, the first identical one, and ``members``, how many are identical."""
        joined = documents.join(self._copy_groups, CONTENT, "left").drop(*CONTENT)
        leader, members = f.coalesce("leader", "place"), f.coalesce("members", f.lit(1))
        return joined.withColumn("leader", leader).withColumn("members", members)

    @property
    def documents(self) -> DataFrame:
        """``own``, ``place``, ``id``, ``text_bytes``, ``leader`` and ``members`` of documents that are not empty."""
        return self._with_leaders(self._placed.select("own", "place", "id", "text_bytes", *CONTENT))

    @property
    def names(self) -> DataFrame:
        """``own``, ``place``, ``id`` and ``text_bytes`` of documents that are not empty."""
        return self._placed.select("own", "place", "id", "text_bytes")

    @cached_property
    def _buckets(self) -> DataFrame:
        """Blocks of the buckets of all leaders."""

        def make() -> DataFrame:
            entries = self._with_leaders(self._placed.select("place", "keys", *CONTENT))
            leaders, documents = entries.filter("place = leader"), self._documents
            return frame_buckets(
                leaders,
                self.settings,
                parts=part_count(documents * self.settings.plan.bands),
                protected=self.protected,
                wide=documents >= NO_DOCUMENT,
            )

        return self.stages.run("buckets", make)

    @property
    def _documents(self) -> int:
        """Number of rows."""
        return sum(counts.total for counts in self.counts.values())

    @cached_property
    def _totals(self) -> dict[str, int]:
        """Counts of the cap, pairs and members of all buckets."""
        names = (*CAP_COLUMNS, "pairs", "members")
        totals = ((f.max if name == "largest" else f.sum)(name).alias(name) for name in names)
        found = self._buckets.agg(*totals).collect()[0]
        return {name: found[name] or 0 for name in names}

    @property
    def caps(self) -> BucketCounts:
        """Effects of the bucket cap."""
        return BucketCounts(*(self._totals[name] for name in CAP_COLUMNS))

    def _task(self, result: Needed) -> CellTask:
        """Return what is to be compared, by the rule of the local engine: a report on components counts all pairs."""
        needed: Needed = "pairs" if self.sampled and result == "components" else result
        stage, classes = planned_stage(needed, self._totals["pairs"], self.settings.verify, sampled=self.sampled)
        return frame_task(self.settings, stage, classes)

    def _cells(self, driver_edges: int, stage: str, *, cut: bool) -> Cells:
        """Return the cells, planned on the driver if the members of all buckets are at most ``driver_edges``."""
        members = self._totals["members"]
        if members <= driver_edges:
            seconds = PAIR_SECONDS if stage == VERIFIED else NEEDED_SECONDS
            most = MOST_CELL_BYTES if cut else None
            return planned_cells(self._buckets, set_bytes=self._mean_set_bytes, pair_seconds=seconds, most_bytes=most)
        cells = int(np.clip(members * self._mean_set_bytes / CELL_BYTES, 1, MOST_CELLS))

        def make() -> DataFrame:
            components = connected_components(bucket_edges(self._buckets), driver_edges=0)
            cell = f.pmod(f.xxhash64("component"), f.lit(cells)).cast("int").alias("cell")
            return components.select("place", cell)

        places = self.stages.run("cells", make)
        return Cells(cells, places, hashed_buckets(self._buckets, places))

    @property
    def _mean_set_bytes(self) -> float:
        """Approximate bytes of a set: a text has a shingle per word or per character."""
        if self.settings.verify != "exact":
            return 2.0 * self.settings.plan.slots
        total = sum(sum(counts.text_bytes.values()) for counts in self.counts.values())
        return bytes_per_text_byte(self.settings) * total / max(1, self._documents)

    def _set_blocks(self, places: DataFrame) -> DataFrame:
        """Return blocks of the sets of documents, by ``place`` and ``cell``."""
        if self.settings.verify == "signature":
            packed = self._placed.select("place", f.col("packed").alias("elements"))
            return element_blocks(packed.join(places, "place"), "signature")
        wanted = self.names.drop("text_bytes").join(places, "place")
        return self.tables.set_blocks(wanted, self.settings)

    def found(self, result: Needed, driver_edges: int = DRIVER_EDGES) -> DataFrame:
        """Return the rows of :func:`minwise.spark.frame_tasks.compare_cells` of all documents, made at the first call.

        Args:
            result: What to find.
            driver_edges: Number of members of buckets up to which the driver plans which task compares what.
        """

        def make() -> DataFrame:
            task = self._task(result)
            cells = self._cells(driver_edges, task.stage, cut=result == "pairs")
            blocks = cells.buckets
            if self.settings.verify != "none":
                blocks = blocks.union(self._set_blocks(cells.places))
            return compare_cells(blocks, cells.number, task, result=result)

        if result not in self._found:
            self._found[result] = self.stages.run(f"found-{result}", make, rows_per_batch=TEXT_ROWS)
        return self._found[result]

    def pair_counts(self) -> PairCounts:
        """Return how many candidate pairs there are, were compared and are similar, for a report."""
        task, of_cells = self._task(self.group), self.found(self.group).filter("left is null")
        found = of_cells.agg(*(f.sum(name).alias(name) for name in ("candidates", "compared", "similar"))).collect()[0]
        candidates = found["candidates"] or 0
        similar = candidates if self.settings.verify == "none" else found["similar"] or 0
        return PairCounts(candidates=candidates, similar=similar, compared=found["compared"] or 0, classes=task.classes)

    @property
    def group(self) -> Needed:
        """How pairs form clusters."""
        return "components" if self.settings.group == "components" else "star"

    def document_counts(self) -> dict[str, int]:
        """Return the rows of the table that is deduplicated: read, documents, empty and quarantined."""
        counts = self.own_counts
        filled, empty = counts.of(FILLED), counts.of(EMPTY)
        return {"read": counts.total, "documents": filled + empty, "empty": empty, "quarantined": counts.of(FAULTY)}


def _fingerprint(ids: DataFrame) -> tuple[int, int]:
    """Return the number of ids and a hash of the set of them."""
    mixed = f.coalesce(f.bit_xor(f.xxhash64("id")), f.lit(0))
    found = ids.agg(f.count("*").alias("rows"), mixed.alias("mixed")).collect()[0]
    return found["rows"], found["mixed"]


def _refuse_null_ids(table: DocumentTable, rows: list[dict[str, Any]]) -> None:
    null_ids = sum(row["null_ids"] for row in rows)
    if null_ids:
        raise InputError(
            f"{table.name}: {table.id} must not be null, got {null_ids} of {_total(rows)} rows without one"
        )


def _total(rows: list[dict[str, Any]]) -> int:
    return sum(row["rows"] for row in rows)


def _shown(value: object) -> str:
    """Return an id as a message shows it."""
    return show(value.asDict() if hasattr(value, "asDict") else value)


def _in_keep_order(documents: DataFrame, order: list[Column], partitions: int) -> DataFrame:
    """Return the documents sorted in ranges, with ``range``, the number of the range, and ``row`` in it, from 0.

    Rows are assigned to ranges differently in each evaluation, so the result has to be stored before it is used.

    Args:
        documents: The columns of the order, and any others.
        order: What the documents are sorted by.
        partitions: Number of ranges. The order does not depend on it.
    """
    ranges = documents.repartitionByRange(partitions, *order).sortWithinPartitions(*order)
    numbered = ranges.withColumn("range", f.spark_partition_id())
    return numbered.mapInArrow(
        _number_rows, t.StructType([*numbered.schema.fields, t.StructField("row", t.LongType())])
    )


def _sort_columns(rule: KeepRule, columns: Sequence[str], documents: DataFrame) -> list[Column]:
    """Return the sort key of a keep rule. Protected documents come first, by their ids, whatever the rule.

    Args:
        rule: The rule; it has neither preferred nor protected labels.
        columns: The columns whose values are in ``documents``.
        documents: ``own``, ``id``, ``text_bytes`` and the keep values.
    """
    own, ident = f.col("own"), f.col("id")
    length, order = f.when(own, f.col("text_bytes")), [own]
    for policy, column in rule.sort_keys:
        if not column:
            order.append(length.desc() if policy == "longest" else length)
            continue
        name = value_name(columns.index(column))
        value = f.col(name)
        if isinstance(documents.schema[name].dataType, (t.FloatType, t.DoubleType)):
            value = f.when(~f.isnan(value), value)
        order.append(value.desc_nulls_last() if policy == "max" else value.asc_nulls_last())
    return [*order, f.when(~own, ident), ident.desc()] if rule.last_first else [*order, ident]


def _number_rows(batches: Batches) -> Batches:
    """Add to each row the number of rows before it."""
    before = 0
    for batch in batches:
        rows = from_numpy(np.arange(before, before + len(batch)))
        yield pa.RecordBatch.from_arrays([*batch.columns, rows], names=[*batch.schema.names, "row"])
        before += len(batch)


def _with_places(ordered: DataFrame) -> DataFrame:
    """Return the stored result of :func:`_in_keep_order` with ``place`` instead of range and row."""
    sizes = {row["range"]: row["count"] for row in ordered.groupBy("range").count().collect()}
    ranges = sorted(sizes)
    before = [0, *accumulate(sizes[number] for number in ranges)]
    schema = "range int, before long"
    starts = ordered.sparkSession.createDataFrame(list(zip(ranges, before, strict=False)), schema)
    placed = ordered.join(f.broadcast(starts), "range")
    return placed.withColumn("place", f.col("before") + f.col("row")).drop("range", "row", "before")
