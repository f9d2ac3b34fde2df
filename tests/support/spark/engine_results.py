"""The same rows as a DataFrame and as an Arrow table, and the results of both engines in one comparable form."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import minwise as mw
from support.spark.corpora import Row, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "IDS",
    "DedupAnswer",
    "dataframe_answer",
    "documents",
    "frame",
    "known",
    "local_answer",
    "named_pairs",
    "table",
]

SCHEMA = pa.schema(
    [("title", pa.string()), ("body", pa.string()), ("year", pa.int64()), ("words", pa.list_(pa.string()))]
)
# Ids of a document by its number, in the order of the numbers.
IDS: dict[str, Callable[[int], Any]] = {
    "long": lambda number: number * 7 - 300,
    "string": lambda number: f"d{number:04}",
    "struct": lambda number: (number // 10, f"{number % 10}"),
}
# Fields of both reports. The others of the local engine are about sources, or need all similarities at once.
REPORTED = ("minwise", "settings", "on_error", "plan", "counts", "text_bytes", "clusters", "pairs", "caps", "warnings")

Named = Callable[[Any], Any]


@dataclass(frozen=True)
class DedupAnswer:
    """Result of deduplication.

    Attributes:
        removed: Id of the kept document and similarity, by the id of the removed one.
        clusters: Cluster and its size, by id.
        report: Counts.
    """

    removed: dict[Any, tuple[Any, str]]
    clusters: dict[Any, tuple[Any, int]]
    report: dict[str, Any]


def documents() -> list[Row]:
    """Return chains, many copies, texts without a shingle, null texts and null years, in the order of ``number``."""
    made = rows(3, 16)
    made += [{**made[number % 3], "title": ""} for number in range(60)]
    made += [{**made[0], "body": None}, {**made[1], "body": None}]
    return _numbered(made)


def known() -> list[Row]:
    """Return documents of which some are also among :func:`documents`, and all have the number of one of these."""
    return _numbered(rows(4, 3) + rows(3, 16)[::5])


def _numbered(made: list[Row]) -> list[Row]:
    random.Random(1).shuffle(made)
    return [
        {
            "number": number,
            "title": row["title"],
            "body": row["body"],
            "year": None if number % 5 == 0 else row["year"],
            "words": (row["body"] or "").split(),
        }
        for number, row in enumerate(made)
    ]


def table(made: Iterable[Row]) -> pa.Table:
    """Return the rows in their order, for the local engine."""
    return pa.Table.from_pylist(list(made), pa.schema([pa.field("number", pa.int64()), *SCHEMA]))


def frame(spark: "SparkSession", made: Iterable[Row], ids: str = "long") -> "DataFrame":
    """Return the rows shuffled, for Spark, with ids of a kind of ``IDS``."""
    mixed = random.Random(2).sample(list(made), len(list(made)))
    kind = {"long": "bigint", "string": "string", "struct": "struct<a: int, b: string>"}[ids]
    names = "title string, body string, year bigint, words array<string>"
    data = [(IDS[ids](row["number"]), *(row[name] for name in SCHEMA.names)) for row in mixed]
    return spark.createDataFrame(data, f"id {kind}, {names}")


def local_answer(source: pa.Table, named: Named, **options: Any) -> DedupAnswer:  # noqa: ANN401 - settings
    """Return the result of the local engine."""
    result = mw.dedup(source, id_column="number", **options)
    return _answer(result.removed, result.clusters, result.report, named)


def dataframe_answer(result: Any) -> DedupAnswer:  # noqa: ANN401 - a DedupFrames, whose import needs Spark
    """Return the result of ``minwise.spark.dedup``."""
    return _answer(result.removed.toArrow(), result.clusters.toArrow(), result.report, _plain)


def named_pairs(found: pa.Table, named: Named) -> list[tuple[Any, Any, str]]:
    """Return the pairs in order, by id."""
    left, right, similarity = (found.column(number).to_pylist() for number in range(3))
    return sorted(
        (named(first), named(second), repr(value)) for first, second, value in zip(left, right, similarity, strict=True)
    )


def _answer(removed: pa.Table, clusters: pa.Table, report: dict[str, Any], named: Named) -> DedupAnswer:
    similarity = removed.schema.names[-1]
    kept_by_removed = {
        named(row["id"]): (named(row["kept_id"]), f"{similarity} {row[similarity]!r}") for row in removed.to_pylist()
    }
    sizes = {named(row["id"]): (named(row["cluster"]), row["size"]) for row in clusters.to_pylist()}
    assert len(kept_by_removed) == removed.num_rows
    assert len(sizes) == clusters.num_rows
    return DedupAnswer(kept_by_removed, sizes, {name: report[name] for name in REPORTED})


def _plain(name: Any) -> Any:  # noqa: ANN401 - an id
    return tuple(name.values()) if isinstance(name, dict) else name
