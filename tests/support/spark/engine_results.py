"""The same rows as a DataFrame and as a table, and what is found in either, in one plain form."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import minwise as mw
from support.spark.corpora import Row, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IDS", "Answer", "documents", "frame", "known", "local", "named_pairs", "of_frames", "table"]

SCHEMA = pa.schema(
    [("title", pa.string()), ("body", pa.string()), ("year", pa.int64()), ("words", pa.list_(pa.string()))]
)
# What a document is called by its number, in the order of the numbers.
IDS: dict[str, Callable[[int], Any]] = {
    "long": lambda number: number * 7 - 300,
    "string": lambda number: f"d{number:04}",
    "struct": lambda number: (number // 10, f"{number % 10}"),
}
# What both reports have. The others of the local engine are of sources, or need all similarities at once.
REPORTED = ("minwise", "settings", "on_error", "plan", "counts", "text_bytes", "clusters", "pairs", "caps", "warnings")

Named = Callable[[Any], Any]


@dataclass(frozen=True)
class Answer:
    """What deduplication found.

    Attributes:
        removed: By the id of a removed document, that of the kept one, and their similarity.
        clusters: By id, the cluster and its size.
        report: What happened in numbers.
    """

    removed: dict[Any, tuple[Any, str]]
    clusters: dict[Any, tuple[Any, int]]
    report: dict[str, Any]


def documents() -> list[Row]:
    """Chains, copies by the dozen, texts without a shingle, null texts and null years; ``number`` is their order."""
    made = rows(3, 16)
    made += [{**made[place % 3], "title": ""} for place in range(60)]
    made += [{**made[0], "body": None}, {**made[1], "body": None}]
    return _numbered(made)


def known() -> list[Row]:
    """Documents of which some are also among :func:`documents`, and all have the number of one of these."""
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
    """The rows in their order, for the local engine."""
    return pa.Table.from_pylist(list(made), pa.schema([pa.field("number", pa.int64()), *SCHEMA]))


def frame(spark: "SparkSession", made: Iterable[Row], ids: str = "long") -> "DataFrame":
    """The rows in no order, for Spark; their ids are of a kind."""
    mixed = random.Random(2).sample(list(made), len(list(made)))
    kind = {"long": "bigint", "string": "string", "struct": "struct<a: int, b: string>"}[ids]
    names = "title string, body string, year bigint, words array<string>"
    data = [(IDS[ids](row["number"]), *(row[name] for name in SCHEMA.names)) for row in mixed]
    return spark.createDataFrame(data, f"id {kind}, {names}")


def local(source: pa.Table, named: Named, **options: Any) -> Answer:  # noqa: ANN401 - settings
    """What the local engine finds."""
    result = mw.dedup(source, id_column="number", **options)
    return _answer(result.removed, result.clusters, result.report, named)


def of_frames(result: Any) -> Answer:  # noqa: ANN401 - made when there is Spark
    """What was found in DataFrames."""
    return _answer(result.removed.toArrow(), result.clusters.toArrow(), result.report, _plain)


def named_pairs(found: pa.Table, named: Named) -> list[tuple[Any, Any, str]]:
    """The pairs in order, called by name."""
    left, right, similarity = (found.column(place).to_pylist() for place in range(3))
    return sorted(
        (named(one), named(other), repr(alike)) for one, other, alike in zip(left, right, similarity, strict=True)
    )


def _answer(removed: pa.Table, clusters: pa.Table, report: dict[str, Any], named: Named) -> Answer:
    similarity = removed.schema.names[-1]
    gone = {
        named(row["id"]): (named(row["kept_id"]), f"{similarity} {row[similarity]!r}") for row in removed.to_pylist()
    }
    sizes = {named(row["id"]): (named(row["cluster"]), row["size"]) for row in clusters.to_pylist()}
    assert len(gone) == removed.num_rows
    assert len(sizes) == clusters.num_rows
    return Answer(gone, sizes, {name: report[name] for name in REPORTED})


def _plain(name: Any) -> Any:  # noqa: ANN401 - an id
    return tuple(name.values()) if isinstance(name, dict) else name
