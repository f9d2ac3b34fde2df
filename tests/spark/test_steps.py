"""The steps of a search, called one by one, find what ``dedup`` finds."""

from typing import TYPE_CHECKING, Any

import pytest
from support.spark.engine_results import documents, frame, table

import minwise as mw
from minwise.options import VerifyName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEARCH: dict[str, Any] = {"threshold": 0.6, "shingle": "word:2", "bands": 14, "rows": 3}


@pytest.mark.parametrize("verify", ["exact", "signature"])
def test_single_steps_find_what_dedup_finds(verify: VerifyName, spark: "SparkSession") -> None:
    """Sketch, band, verify, join and choose, with places of any integer type instead of ids."""
    from minwise.spark import (
        candidate_pairs,
        connected_components,
        shingles,
        sketch,
        star_groups,
        verified_pairs,
    )

    # One document of each content, because only dedup handles identical documents.
    readable = [row for row in documents() if row["body"] is not None and row["body"].isascii()]
    each = {row["body"].lower().replace(",", ""): row for row in readable}
    made = sorted(each.values(), key=lambda row: int(row["number"]))
    options = {**SEARCH, "verify": verify}
    rows = frame(spark, made).selectExpr("cast((id + 300) / 7 as int) as place", "body")

    sketched = sketch(rows, text="body", id="place", **options).withColumnRenamed("id", "place")
    sketched = sketched.localCheckpoint()
    candidates = candidate_pairs(sketched, partitions=2, **options).localCheckpoint()
    if verify == "signature":
        sets = sketched.withColumnRenamed("packed", "elements")
    else:
        sets = shingles(rows, text="body", **options)
    alike = verified_pairs(candidates.selectExpr("int(low) low", "int(high) high"), sets, partitions=2, **options)
    alike = alike.localCheckpoint()
    joined = connected_components(alike)
    removed = star_groups(alike.selectExpr("int(low) low", "int(high) high", "similarity"), joined)

    whole = table(made)
    result = mw.dedup(whole, text_column="body", id_column="number", **options)
    assert candidates.count() == result.report["pairs"]["candidates"]
    found = mw.pairs(whole, text_column="body", id_column="number", **options).to_pydict()
    assert sorted(map(tuple, alike.collect())) == sorted(zip(*found.values(), strict=True))
    gone = result.removed.to_pydict()
    witnesses = zip(gone["id"], gone["kept_id"], list(gone.values())[-1], strict=True)
    assert sorted(map(tuple, removed.collect())) == sorted(witnesses)
    assert len(gone["id"]) > 20
    if verify == "exact":
        clusters = mw.clusters(whole, text_column="body", id_column="number", **options).to_pylist()
        tied = sorted((row["id"], row["cluster"]) for row in clusters if row["size"] > 1)
        assert sorted(map(tuple, joined.collect())) == tied


def test_sketch_reports_rows_that_cannot_be_used(spark: "SparkSession") -> None:
    """One output row per input row: with keys, without keys, or with a fault."""
    from minwise.spark import sketch

    df = spark.createDataFrame([("a", "one two three"), ("b", "?"), ("c", None)], "id string, text string")
    found = {row["id"]: row for row in sketch(df, shingle="word:2", bands=5, rows=2).collect()}
    assert {name: (row["state"], row["fault"]) for name, row in found.items()} == {
        "a": (0, None),
        "b": (1, None),
        "c": (2, "text is null"),
    }
    assert {name: row["keys"] and len(row["keys"]) for name, row in found.items()} == {"a": 40, "b": None, "c": None}
    assert [found[name]["text_bytes"] for name in "abc"] == [13, 1, 0]
