"""Search: tables in; their documents in keep order, the copies among them and the verified pairs out, stage by stage.

What :mod:`minwise.search.verification` does on one machine, with nothing that grows with the documents on the driver.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from minwise.checks import show
from minwise.errors import ConfigError, InputError
from minwise.search.bands import EMPTY, FAULTY, FILLED, BucketCounts
from minwise.settings import FindSettings
from minwise.spark.candidates import CAP_COLUMNS, candidate_pairs
from minwise.spark.copies import copy_groups, with_leaders
from minwise.spark.order import in_keep_order, with_places
from minwise.spark.stages import Stages
from minwise.spark.tables import Table, Tables
from minwise.spark.verify import verified_pairs

__all__ = ["Rows", "Search"]

# Rows of text that go to Python at once: Spark counts rows and not bytes, and a text may have megabytes.
TEXT_ROWS = 256
# Documents that are read again by sending their ids to wherever the texts are; of more, the texts are sent.
BROADCAST_IDS = 500_000


@dataclass(frozen=True, kw_only=True)
class Rows:
    """How many rows a table has, what became of them, and the bytes of their texts, by state."""

    table: Table
    counts: dict[int, int]
    text_bytes: dict[int, int]

    @property
    def read(self) -> int:
        """All rows."""
        return sum(self.counts.values())

    def of(self, state: int) -> int:
        """Rows in a state."""
        return self.counts.get(state, 0)


class Search:
    """The stages up to the verified pairs. Each is made when it is first asked for.

    Attributes:
        tables: What is read.
        settings: What decides the result.
        stages: Who holds finished stages.
        partitions: Into how many parts data is cut. No result depends on it.
    """

    def __init__(self, tables: Tables, settings: FindSettings, stages: Stages, partitions: int, on_error: str) -> None:
        self.tables, self.settings, self.stages, self.partitions = tables, settings, stages, partitions
        self._on_error = on_error
        self._resumed = stages.is_finished("signatures")

    @cached_property
    def signatures(self) -> DataFrame:
        """A row for each row of the tables: ``own``, ``id``, ``rank`` and the signature."""
        made = self.stages.run("signatures", lambda: self.tables.sketched(self.settings), rows_per_batch=TEXT_ROWS)
        if self._resumed:
            self._refuse_other_ids(made)
        return made

    def _refuse_other_ids(self, made: DataFrame) -> None:
        """Raises if the signatures of an earlier run are of other documents."""
        for table in self.tables.all:
            mine = f.col("own") == (table is self.tables.own)
            before, now = _fingerprint(made.filter(mine).select("id")), _fingerprint(table.frame.select(table.ids))
            if before != now:
                raise InputError(
                    f"{table.name} is not what work was begun with: it had {before[0]} rows, now there are {now[0]}, "
                    "or other ids; give another work, or delete it to start again"
                )

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """What there is in each table, by its name.

        Raises:
            InputError: If an id is null or there twice, if no row can be used, or if one can not and that is an error.
            ConfigError: If the column of the keep policy has no values.
        """
        rank = f.count("rank") if "rank" in self.signatures.columns else f.lit(0)
        found = self.signatures.groupBy("own", "state").agg(
            f.count("*").alias("rows"),
            f.sum("text_bytes").alias("text_bytes"),
            f.sum(f.col("id").isNull().cast("long")).alias("nameless"),
            rank.alias("ranked"),
            f.min("id").alias("first"),
            f.min_by("fault", "id").alias("fault"),
        )
        every = [row.asDict() for row in found.collect()]
        result = {}
        for table in self.tables.all:
            mine = [row for row in every if row["own"] == (table is self.tables.own)]
            _refuse_nameless(table, mine)
            self._refuse_duplicates(table)
            self._refuse_faults(table, mine)
            result[table.name] = Rows(
                table=table,
                counts={row["state"]: row["rows"] for row in mine},
                text_bytes={row["state"]: row["text_bytes"] for row in mine},
            )
        return result

    def _refuse_duplicates(self, table: Table) -> None:
        mine = self.signatures.filter(f.col("own") == (table is self.tables.own))
        double = mine.groupBy("id").agg(f.count("*").alias("times")).filter("times > 1")
        first = double.agg(f.min("id").alias("id"), f.min_by("times", "id").alias("times")).collect()[0]
        if first["times"]:
            name = f"{table.name}: {table.id} must be different in every row"
            raise InputError(f"{name}, got {_shown(first['id'])} {first['times']} times")

    def _refuse_faults(self, table: Table, rows: list[dict[str, Any]]) -> None:
        faulty = [row for row in rows if row["state"] == FAULTY]
        total = sum(row["rows"] for row in rows)
        for row in faulty:
            where = f"{table.name}: {table.id} {_shown(row['first'])}: {row['fault']}"
            if self._on_error == "fail":
                raise InputError(f"{where}; on_error='quarantine' goes on without it")
            if row["rows"] == total:
                raise InputError(f"no document can be read; {where}")
        if table.rank is not None and total and not any(row["ranked"] for row in rows):
            raise ConfigError(f"keep column {table.rank!r} has no values")

    @property
    def own_rows(self) -> Rows:
        """What there is in the table that is deduplicated."""
        return self.rows[self.tables.own.name]

    @cached_property
    def protected(self) -> int:
        """How many documents are only compared against; they come first."""
        return 0 if self.tables.against is None else self.rows[self.tables.against.name].of(FILLED)

    @cached_property
    def _placed(self) -> DataFrame:
        """The documents that are not empty, each with its ``place``."""
        self.rows  # noqa: B018 - ids have to be right before they are sorted
        filled = self.signatures.filter(f.col("state") == FILLED).drop("state", "fault")
        ordered = self.stages.run("ordered", lambda: in_keep_order(filled, self.settings, self.partitions).drop("rank"))
        return with_places(ordered)

    @cached_property
    def _groups(self) -> DataFrame:
        return self.stages.run("copies", lambda: copy_groups(self._placed))

    @property
    def documents(self) -> DataFrame:
        """``own``, ``place``, ``id``, ``text_bytes``, ``leader`` and ``members`` of documents that are not empty."""
        chosen = self._placed.select("own", "place", "id", "text_bytes", "content_high", "content_low")
        return with_leaders(chosen, self._groups)

    @property
    def names(self) -> DataFrame:
        """``own``, ``place``, ``id`` and ``text_bytes`` of documents that are not empty."""
        return self._placed.select("own", "place", "id", "text_bytes")

    @cached_property
    def _candidates(self) -> DataFrame:
        def make() -> DataFrame:
            entries = with_leaders(self._placed.select("place", "keys", "content_high", "content_low"), self._groups)
            leaders = entries.filter("place = leader")
            return candidate_pairs(leaders, self.settings, partitions=self.partitions, protected=self.protected)

        return self.stages.run("candidates", make)

    @cached_property
    def caps(self) -> tuple[BucketCounts, int]:
        """What the cap on buckets met, and how many candidate pairs there are."""
        totals = [f.coalesce(f.max(name), f.lit(0)).alias(name) for name in CAP_COLUMNS]
        found = self._candidates.agg(f.count("low").alias("pairs"), *totals).collect()[0]
        return BucketCounts(*(found[name] for name in CAP_COLUMNS)), found["pairs"]

    @property
    def _pairs(self) -> DataFrame:
        return self._candidates.filter("low is not null").select("low", "high")

    @cached_property
    def _wanted(self) -> DataFrame:
        """``own``, ``place`` and ``id`` of the documents that are in a candidate pair."""

        def make() -> DataFrame:
            places = self._pairs.select(f.col("low").alias("place")).union(self._pairs.select("high")).distinct()
            return self.names.drop("text_bytes").join(places, "place", "left_semi")

        return self.stages.run("wanted", make)

    @cached_property
    def _wanted_count(self) -> int:
        return self._wanted.count()

    @cached_property
    def sets(self) -> DataFrame:
        """``place`` and ``elements`` of the documents that are in a candidate pair."""
        if self.settings.verify == "signature":
            wanted = self._placed.join(self._wanted.select("place"), "place", "left_semi")
            return wanted.select("place", f.col("packed").alias("elements"))

        def make() -> DataFrame:
            few = self._wanted_count <= BROADCAST_IDS
            return self.tables.sets(f.broadcast(self._wanted) if few else self._wanted, self.settings)

        return self.stages.run("sets", make, rows_per_batch=TEXT_ROWS)

    def verify(self, pairs: DataFrame, floor: float) -> DataFrame:
        """The pairs of candidates whose similarity is at least ``floor``."""
        return verified_pairs(
            pairs, self.sets, self.settings, floor=floor, set_bytes=self._set_bytes, partitions=self.partitions
        )

    @cached_property
    def _set_bytes(self) -> int:
        """The bytes of all sets.

        Raises:
            InputError: If there are not as many as there should be.
        """
        size = f.coalesce(f.sum(f.octet_length("elements")), f.lit(0))
        found = self.sets.agg(f.count("*").alias("sets"), size.alias("bytes")).collect()[0]
        wanted = self._wanted_count
        if found["sets"] != wanted:
            raise InputError(
                f"the DataFrame changed while it was read: {wanted} documents were to be read again, "
                f"{found['sets']} were; write it to a table first"
            )
        return int(found["bytes"])

    @cached_property
    def verified(self) -> DataFrame:
        """``low``, ``high`` and ``similarity`` of the candidates that reach the threshold."""
        threshold = self.settings.plan.threshold
        if self.settings.verify == "none":
            unknown = f.lit(float("nan")).alias("similarity")
            return self.stages.run("verified", lambda: self._pairs.select("low", "high", unknown))
        return self.stages.run("verified", lambda: self.verify(self._pairs, threshold))

    @cached_property
    def similar(self) -> int:
        """How many pairs are verified."""
        return self.verified.count()

    def counted(self) -> dict[str, int]:
        """Rows of the table that is deduplicated, and what became of them."""
        rows = self.own_rows
        filled, empty = rows.of(FILLED), rows.of(EMPTY)
        return {"read": rows.read, "documents": filled + empty, "empty": empty, "quarantined": rows.of(FAULTY)}


def _fingerprint(ids: DataFrame) -> tuple[int, int]:
    """Changes when other ids do."""
    seen = ids.agg(f.count("*").alias("rows"), _mixed().alias("mixed")).collect()[0]
    return seen["rows"], seen["mixed"]


def _mixed() -> Column:
    return f.coalesce(f.bit_xor(f.xxhash64("id")), f.lit(0))


def _refuse_nameless(table: Table, rows: list[dict[str, Any]]) -> None:
    nameless = sum(row["nameless"] for row in rows)
    if nameless:
        raise InputError(
            f"{table.name}: {table.id} must not be null, got {nameless} of {_total(rows)} rows without one"
        )


def _total(rows: list[dict[str, Any]]) -> int:
    return sum(row["rows"] for row in rows)


def _shown(value: object) -> str:
    """An id as a message can carry it."""
    return show(value.asDict() if hasattr(value, "asDict") else value)
