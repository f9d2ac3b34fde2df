"""Results of a search over DataFrames: removed documents with their witnesses, pairs of all documents, the report.

The rules are those of the local engine (:mod:`minwise.search.clustering` and :mod:`minwise.results`), as joins instead
of arrays.
"""

from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from minwise import _kernel
from minwise.results.pairs import cap_section
from minwise.results.report_data import removal_counts, report_warnings, size_distribution
from minwise.search.bands import FAULTY
from minwise.search.clustering import FIRST_MEMBERS
from minwise.spark.dataframe_search import DataFrameSearch
from minwise.spark.frame_tasks import compared_pairs

__all__ = ["dedup_report", "named_pairs", "removed_documents"]


def removed_documents(search: DataFrameSearch, *, driver_edges: int) -> DataFrame:
    """Return a row for each removed document.

    Args:
        search: The search, whose setting ``group`` decides.
        driver_edges: Number of members of buckets up to which the driver plans which task compares what.

    Returns:
        ``id``, ``kept_id``, ``similarity`` (null if it is unknown), ``text_bytes``, ``place``, ``witness``, and
        ``identical``: whether it has the same tokens as an earlier document.
    """
    of_leader = compared_pairs(search.found(search.group, driver_edges)).toDF("witness", "leader", "similarity")
    kept = search.names.select(f.col("place").alias("witness"), f.col("id").alias("kept_id"))
    # Copies of a kept leader are removed in favour of it, copies of a removed one in favour of the same witness.
    identical, with_leader = f.col("place") != f.col("leader"), f.col("witness").isNotNull()
    removable = (f.col("place") >= search.protected) & (identical | with_leader)
    removed = search.documents.join(of_leader, "leader", "left").filter(removable)
    named = removed.select(
        "id",
        f.when(with_leader, _known_similarity()).otherwise(1.0).alias("similarity"),
        "text_bytes",
        "place",
        f.coalesce("witness", "leader").alias("witness"),
        identical.alias("identical"),
    ).join(kept, "witness")
    return named.select("id", "kept_id", "similarity", "text_bytes", "place", "witness", "identical")


def named_pairs(search: DataFrameSearch) -> DataFrame:
    """Return every pair by id, identical documents included: ``left``, ``right`` and the similarity."""
    pairs = compared_pairs(search.found("pairs"))
    copies = search.documents.filter("members > 1").select("place", "leader", "members")
    counting = _counting_members(copies, search.settings.max_bucket)
    named = _pairs_across_groups(pairs, counting).union(_pairs_within_groups(copies, counting))
    for side, name in (("low", "left"), ("high", "right")):
        named = named.join(search.names.select(f.col("place").alias(side), f.col("id").alias(name)), side)
    return named.select("left", "right", _known_similarity().alias(search.settings.similarity_name))


def _known_similarity() -> Column:
    """Return the similarity, null if it is unknown."""
    return f.when(~f.isnan("similarity"), f.col("similarity"))


def _counting_members(copies: DataFrame, max_bucket: int) -> DataFrame:
    """Return the members of groups that count: ``leader`` and ``member``."""
    number = f.row_number().over(Window.partitionBy("leader").orderBy("place"))
    whole = copies.filter(f.col("members") <= max_bucket)
    first = (
        copies.filter(f.col("members") > max_bucket)
        .withColumn("number", number)
        .filter(f.col("number") <= FIRST_MEMBERS)
    )
    return whole.union(first.drop("number")).select("leader", f.col("place").alias("member"))


def _pairs_across_groups(pairs: DataFrame, counting: DataFrame) -> DataFrame:
    """Return the pairs between the copies of both sides of each pair."""
    wide = pairs
    for side in ("low", "high"):
        members = counting.select(f.col("leader").alias(side), f.col("member").alias(f"{side}_member"))
        wide = wide.join(members, side, "left")
    left, right = (f.coalesce(f"{side}_member", side) for side in ("low", "high"))
    return wide.select(f.least(left, right).alias("low"), f.greatest(left, right).alias("high"), "similarity")


def _pairs_within_groups(copies: DataFrame, counting: DataFrame) -> DataFrame:
    """Return the pairs among identical documents: each with those before it that count."""
    pairs = copies.join(counting, "leader").filter(f.col("member") < f.col("place"))
    low, high = f.col("member").alias("low"), f.col("place").alias("high")
    return pairs.select(low, high, f.lit(1.0).alias("similarity"))


def dedup_report(search: DataFrameSearch, removed: DataFrame, on_error: str) -> dict[str, Any]:
    """Return the counts of :mod:`minwise.results.report_data`; equal documents and settings give an equal report."""
    settings = search.settings
    below = f.sum((f.col("similarity") < settings.plan.threshold).cast("long"))
    totals = removed.agg(
        f.count("*").alias("removed"),
        f.sum(f.col("identical").cast("long")).alias("identical"),
        f.sum("text_bytes").alias("text_bytes"),
        below.alias("chained"),
    )
    removals = {name: value or 0 for name, value in totals.collect()[0].asDict().items()}
    sizes, total, counts = _cluster_sizes(removed), search.own_counts.total, search.document_counts()
    pairs = search.pair_counts()
    kept = counts["documents"] - removals["removed"]
    return {
        "minwise": _kernel.__version__,
        "settings": settings.to_dict(),
        "on_error": on_error,
        "plan": settings.plan_dict(),
        "counts": removal_counts(counts, kept, removals["removed"], removals["identical"]),
        "text_bytes": None if settings.shingler is None else _text_bytes(search, removals),
        "clusters": {
            "of_two_or_more": int(sum(sizes.values())),
            "largest": max(sizes, default=min(1, total)),
            "sizes": size_distribution(np.repeat(list(sizes), list(sizes.values())).astype(np.int64)),
        },
        "pairs": pairs.to_dict(),
        "caps": cap_section(settings.max_bucket, search.caps, pairs),
        "warnings": report_warnings(
            chained=removals["chained"],
            documents=total,
            largest=max(sizes, default=1),
            largest_id=lambda: _id_of_cluster(removed, max(sizes), search.protected),
            losses=[("the input", removals["removed"], total)],
        ),
    }


def _cluster_sizes(removed: DataFrame) -> dict[int, int]:
    """Return the number of clusters of each size of at least two documents."""
    clusters = removed.groupBy("witness").count()
    found = clusters.groupBy("count").agg(f.count("*").alias("clusters")).collect()
    return {row["count"] + 1: row["clusters"] for row in sorted(found)}


def _text_bytes(search: DataFrameSearch, removals: dict[str, int]) -> dict[str, int]:
    by_state = search.own_counts.text_bytes
    read, quarantined, removed = sum(by_state.values()), by_state.get(FAULTY, 0), removals["text_bytes"]
    return {"read": read, "kept": read - removed - quarantined, "removed": removed, "quarantined": quarantined}


def _id_of_cluster(removed: DataFrame, size: int, protected: int) -> object:
    """Return the id of the kept document of the first cluster of this size, first of those that are protected."""
    clusters = removed.groupBy("witness").agg(f.count("*").alias("removed"), f.min("kept_id").alias("id"))
    own = f.col("witness") >= protected
    return clusters.filter(f.col("removed") == size - 1).orderBy(own, "id").limit(1).collect()[0]["id"]
