"""Results on DataFrames equal those of the local engine on the same rows sorted by id, for any partitioning.

Every call takes seconds, so each case covers many features.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.expect import error_message
from support.spark.arrangement import Arrangement
from support.spark.corpora import Row
from support.spark.engine_results import (
    IDS,
    DedupAnswer,
    dataframe_answer,
    documents,
    frame,
    known,
    local_answer,
    named_pairs,
    table,
)

import minwise as mw
from minwise.errors import InputError, MismatchError
from minwise.search import needed_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEARCH: dict[str, Any] = {
    "threshold": 0.7,
    "shingle": "word:2",
    "bands": 14,
    "rows": 3,
    "on_error": "quarantine",
}
ADAPTIVE = Arrangement(adaptive=True)
ONE_ROW_BATCHES = Arrangement(partitions=1, batch_rows=1, adaptive=True)
MANY_PARTITIONS = Arrangement(partitions=7, batch_rows=20)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A corpus and settings.

    Attributes:
        options: Settings of both engines.
        text: Text columns.
        ids: Kind of the ids.
        names: Replaced column names.
        against: Whether there are documents to compare against.
        extra: Arguments of Spark only.
        partitioned: Changes the partitions or column types of the DataFrame.
        arrangement: Division of the work by Spark.
        complete: Number of proposals up to which all pairs are compared; None for that of the engine, which is more
            than any case has.
    """

    options: dict[str, Any]
    text: tuple[str, ...] = ("body",)
    ids: str = "long"
    names: dict[str, str] = field(default_factory=dict)
    against: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    partitioned: Callable[["DataFrame"], "DataFrame"] = lambda df: df
    arrangement: Arrangement = field(default_factory=Arrangement)
    complete: int | None = None

    def expected(self) -> DedupAnswer:
        """Return the result of the local engine."""
        sources = [table(documents()), *([table(known())] if self.against else [])]
        named = [
            source.rename_columns([self.names.get(name, name) for name in source.schema.names]) for source in sources
        ]
        against = {"against": named[1]} if self.against else {}
        return local_answer(named[0], IDS[self.ids], text_column=self.text, **self.options, **against)

    def frames(self, spark: "SparkSession") -> list["DataFrame"]:
        """Return the documents, and those to compare against if there are any."""
        made = [frame(spark, rows, self.ids) for rows in (documents(), known())[: 1 + self.against]]
        renamed = [df.toDF(*(self.names.get(name, name) for name in df.columns)) for df in made]
        return [self.partitioned(renamed[0]), *renamed[1:]]


CASES = {
    "star": Case(options=SEARCH, ids="struct", partitioned=lambda df: df.repartition(5)),
    "capped": Case(
        options={**SEARCH, "keep": "longest", "max_bucket": 16, "scheme": "minhash"},
        ids="string",
        extra={"driver_edges": 0},
        partitioned=lambda df: df.withColumn("body", df["body"].cast("binary")).coalesce(1).sort("year"),
        arrangement=MANY_PARTITIONS,
    ),
    "components": Case(
        options={**SEARCH, "group": "components", "keep": "last", "shingle": "char:5", "bag": True},
        text=("a `title`", "the.body"),
        names={"id": "`my.id", "title": "a `title`", "body": "the.body", "year": "id"},
        extra={"id": "`my.id", "driver_edges": 0},
        partitioned=lambda df: df.repartition(2, "id").sortWithinPartitions("words"),
        arrangement=ONE_ROW_BATCHES,
        complete=200,
    ),
    "ranked against": Case(
        options={**SEARCH, "keep": "max:a year"},
        names={"year": "a year"},
        against=True,
        extra={"partitions": 2},
        partitioned=lambda df: df.withColumn("id", df["id"].cast("int")),
        arrangement=ADAPTIVE,
        complete=200,
    ),
    "estimates with work directory": Case(
        options={**SEARCH, "verify": "signature", "keep": "min:year,longest,last", "seed": 5}, against=True
    ),
    "sets unverified": Case(
        options={**SEARCH, "shingle": "set", "verify": "none", "keep": "min:year"}, text=("words",), complete=200
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_dedup_finds_what_the_local_engine_finds(
    name: str, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed documents, witnesses, similarities, clusters and report; and all columns of the kept rows.

    The sample of a report depends on ranks, which count empty and faulty rows and those that are compared against.
    """
    from minwise.spark import dedup

    case = CASES[name]
    if case.complete is not None:
        monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", case.complete)
    expected = case.expected()
    is_sampled = case.complete is not None and "group" not in case.options
    assert (expected.report["pairs"]["sampled_one_in"] > 1) == is_sampled
    assert len(expected.removed) > 40
    df, *others = case.frames(spark)
    arguments: dict[str, Any] = {"against": others[0] if others else None, **case.options, **case.extra}
    if name.endswith("with work directory"):
        arguments["work"] = tmp_path / "a [b]"
    with case.arrangement.on(spark), dedup(df, text=case.text, **arguments) as found:
        assert dataframe_answer(found) == expected
        faulty = _null_texts(case)
        assert {_id(row): row["reason"] for row in found.quarantined.collect()} == faulty
        assert found.kept.schema == df.schema
        wanted = [row for row in df.collect() if _id(row) not in {*expected.removed, *faulty}]
        assert sorted(found.kept.collect(), key=_id) == sorted(wanted, key=_id)
    assert error_message(mw.MinwiseError, lambda: found.kept).startswith("the result is closed")
    if name == "star":
        texts = {_id(row): row["body"] for row in df.collect()}
        _assert_witnesses(expected, texts, {_id(row) for row in wanted})


def _id(row: Any) -> Any:  # noqa: ANN401 - a Spark row and its id
    return row[0]


def _null_texts(case: Case) -> dict[Any, str]:
    """Return the reasons of the documents that cannot be used."""
    name = case.text[-1]
    missing = [row["number"] for row in documents() if row["body"] is None and name != "words"]
    return {IDS[case.ids](number): f"{name} is null" for number in missing}


def _assert_witnesses(found: DedupAnswer, texts: dict[Any, str], kept: set[Any]) -> None:
    """Check that the Jaccard similarity of every removed document and its kept one reaches the threshold."""
    shingler = mw.Shingler(SEARCH["shingle"])
    for removed, (witness, similarity) in found.removed.items():
        left, right = (set(members.tolist()) for members in shingler.shingle([texts[removed], texts[witness]]))
        exact = len(left & right) / len(left | right)
        assert witness in kept
        assert exact >= SEARCH["threshold"]
        assert similarity == f"similarity {exact!r}"


def test_pairs_are_those_of_the_local_engine_and_stages_are_reused(spark: "SparkSession", tmp_path: Path) -> None:
    """Copies beyond the cap are included. A work directory is reused by an equal search and refused to any other."""
    from minwise.spark import pairs

    options = {**SEARCH, "max_bucket": 16}
    expected = mw.pairs(table(documents()), id_column="number", text_column="body", **options)
    named = named_pairs(expected, IDS["long"])
    assert len(named) > 500
    df = frame(spark, documents())
    shared = {**options, "text": "body", "work": tmp_path / "work"}
    found = pairs(df, **shared)
    assert found.columns == expected.schema.names
    assert named_pairs(found.toArrow(), int) == named
    written = _files(tmp_path)
    assert len(written) > 5
    assert named_pairs(pairs(df.repartition(4, "year"), partitions=2, **shared).toArrow(), int) == named
    assert _files(tmp_path) == written
    other = error_message(MismatchError, lambda: pairs(df, **{**shared, "threshold": 0.75}))
    assert "settings.threshold 0.7, this one has 0.75" in other
    fewer = error_message(InputError, lambda: pairs(df.filter("id != 1"), **shared))
    assert f"it had {df.count()} rows, now there are {df.count() - 1}, or other ids" in fewer
    renamed = df.withColumn("id", -df["id"])
    assert "or other ids" in error_message(InputError, lambda: pairs(renamed, **shared))
    assert _files(tmp_path) == written


def _files(folder: Path) -> dict[str, int]:
    """Return the modification time of each file."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_clusters_are_those_of_the_local_engine(spark: "SparkSession") -> None:
    """Connected components by default, named after their first document, with their sizes."""
    from minwise.spark import clusters

    options = {**SEARCH, "threshold": 0.5}
    expected = mw.clusters(table(documents()), id_column="number", text_column="body", **options)
    name, found = IDS["long"], clusters(frame(spark, documents()), text="body", **options).toArrow()
    assert found.schema.names == ["id", "cluster", "size"]
    rows = zip(*(expected.column(column).to_pylist() for column in found.schema.names), strict=True)
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(
        (name(member), name(first), size) for member, first, size in rows
    )


@pytest.mark.parametrize("texts", [[], ["", "?", " "]], ids=["no rows", "no words"])
def test_without_shingles_all_rows_are_kept(texts: list[str], spark: "SparkSession") -> None:
    """A DataFrame without rows, and one of texts without a word."""
    from minwise.spark import dedup

    made: list[Row] = [
        {"number": number, "title": "", "body": text, "year": 1, "words": []} for number, text in enumerate(texts)
    ]
    df = frame(spark, made)
    found = dedup(df, text="body")
    assert dataframe_answer(found) == local_answer(table(made), IDS["long"], text_column="body")
    assert sorted(row.body for row in found.kept.collect()) == sorted(texts)
