"""Results of a search over DataFrames: removed documents with their witnesses, pairs of all documents, the report.

The rules are those of the local engine (:mod:`minwise.search.clustering` and :mod:`minwise.results`), as joins instead
of arrays.
"""

from typing import Any

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from minwise import _kernel
from minwise.errors import MinwiseError
from minwise.report.cluster_section import MANY_DOCUMENTS
from minwise.results.pairs import cap_section
from minwise.results.report_data import size_distribution
from minwise.search.bands import FAULTY
from minwise.search.clustering import FIRST_MEMBERS
from minwise.spark.dataframe_search import DataFrameSearch

__all__ = ["dedup_report", "expanded_pairs", "removed_documents"]


def removed_documents(search: DataFrameSearch, *, driver_edges: int) -> DataFrame:
    """Return a row for each removed document.

    Args:
        search: The search, whose setting ``group`` decides.
        driver_edges: Number of members of buckets up to which the driver plans which task compares what.

    Returns:
        ``id``, ``kept_id``, ``similarity`` (null if it is unknown), ``text_bytes``, ``place``, ``witness``, and
        ``identical``: whether it has the same tokens as an earlier document.
    """
    group = _removed_by_component if search.settings.group == "components" else _removed_by_star
    names = search.names
    kept = names.select(f.col("place").alias("witness"), f.col("id").alias("kept_id"))
    similarity = f.when(~f.isnan("similarity"), f.col("similarity"))
    removed = group(search, driver_edges).withColumn("similarity", similarity)
    named = removed.join(names.drop("own"), "place").join(kept, "witness")
    return named.select("id", "kept_id", "similarity", "text_bytes", "place", "witness", "identical")


def _removed_by_star(search: DataFrameSearch, driver_edges: int) -> DataFrame:
    """Remove the neighbours of kept leaders.

    Copies of a kept leader are removed in favour of it, copies of a removed one in favour of the same witness.
    """
    leaders = _removed_leaders(search, driver_edges)
    followers = _followers(search).join(leaders.withColumnsRenamed({"place": "leader"}), "leader", "left")
    return _with_identical(leaders, followers)


def _removed_by_component(search: DataFrameSearch, driver_edges: int) -> DataFrame:
    """Keep one document per component, the first in keep order. Copies are in the component of their leader."""
    joined = _removed_leaders(search, driver_edges)
    followers = _followers(search).join(joined.withColumnsRenamed({"place": "leader"}), "leader", "left")
    return _with_identical(joined.filter(f.col("place") >= search.protected), followers)


def _removed_leaders(search: DataFrameSearch, driver_edges: int) -> DataFrame:
    """Return ``place``, ``witness`` and ``similarity`` of the leaders that their cells remove."""
    found = search.found(search.group, driver_edges).filter("left is not null")
    return found.select(f.col("right").alias("place"), f.col("left").alias("witness"), "similarity")


def _followers(search: DataFrameSearch) -> DataFrame:
    """Return ``place`` and ``leader`` of the copies that can be removed."""
    removable = (f.col("place") != f.col("leader")) & (f.col("place") >= search.protected)
    return search.documents.filter(removable).select("place", "leader")


def _with_identical(leaders: DataFrame, followers: DataFrame) -> DataFrame:
    """Return removed leaders and followers: ``place``, ``witness``, ``similarity`` and ``identical``."""
    similarity = f.when(f.col("witness").isNull(), f.lit(1.0)).otherwise(f.col("similarity"))
    of_followers = followers.select(
        "place",
        f.coalesce("witness", "leader").alias("witness"),
        similarity.alias("similarity"),
        f.lit(True).alias("identical"),
    )
    return leaders.select("place", "witness", "similarity", f.lit(False).alias("identical")).union(of_followers)


def expanded_pairs(pairs: DataFrame, documents: DataFrame, max_bucket: int) -> DataFrame:
    """Return every pair of documents, identical ones included: ``low``, ``high`` and ``similarity``, in no order.

    Args:
        pairs: ``low``, ``high`` and ``similarity`` of leaders.
        documents: ``place``, ``leader`` and ``members`` of every document.
        max_bucket: Maximum number of members of a group that counts whole; of larger ones the first 16 count.
    """
    copies = documents.filter("members > 1").select("place", "leader", "members")
    counting = _counting_members(copies, max_bucket)
    return _pairs_across_groups(pairs, counting).union(_pairs_within_groups(copies, counting))


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
    sizes = _cluster_sizes(removed)
    pairs = search.pair_counts()
    return {
        "minwise": _kernel.VERSION,
        "settings": settings.to_dict(),
        "on_error": on_error,
        "plan": settings.plan_dict(),
        "counts": _counts(search, removals),
        "text_bytes": None if settings.shingler is None else _text_bytes(search, removals),
        "clusters": {
            "of_two_or_more": int(sum(sizes.values())),
            "largest": max(sizes, default=min(1, search.own_counts.total)),
            "sizes": size_distribution(np.repeat(list(sizes), list(sizes.values())).astype(np.int64)),
        },
        "pairs": pairs.to_dict(),
        "caps": cap_section(settings.max_bucket, search.caps, pairs),
        "warnings": _warnings(search, removed, removals, sizes),
    }


def _cluster_sizes(removed: DataFrame) -> dict[int, int]:
    """Return the number of clusters of each size of at least two documents."""
    clusters = removed.groupBy("witness").count()
    found = clusters.groupBy("count").agg(f.count("*").alias("clusters")).collect()
    return {row["count"] + 1: row["clusters"] for row in sorted(found)}


def _counts(search: DataFrameSearch, removals: dict[str, int]) -> dict[str, int]:
    counts, removed = search.document_counts(), removals["removed"]
    kept = counts["documents"] - removed
    if kept < 0:
        raise MinwiseError(f"a bug in minwise, please report it: {counts} but {removed} removed")
    return {**counts, "kept": kept, "removed": removed, "removed_identical": removals["identical"]}


def _text_bytes(search: DataFrameSearch, removals: dict[str, int]) -> dict[str, int]:
    by_state = search.own_counts.text_bytes
    read, quarantined, removed = sum(by_state.values()), by_state.get(FAULTY, 0), removals["text_bytes"]
    return {"read": read, "kept": read - removed - quarantined, "removed": removed, "quarantined": quarantined}


def _warnings(
    search: DataFrameSearch, removed: DataFrame, removals: dict[str, int], sizes: dict[int, int]
) -> list[str]:
    warnings = []
    if removals["chained"]:
        warnings.append(
            f"removed although less similar to the kept one than the threshold: {removals['chained']:,} documents; "
            "they were joined through others. group='star' removes none of these"
        )
    total, largest = search.own_counts.total, max(sizes, default=1)
    if total >= MANY_DOCUMENTS and largest > total / 100:
        clusters = removed.groupBy("witness").agg(f.count("*").alias("removed"), f.min("kept_id").alias("id"))
        own = f.col("witness") >= search.protected
        kept_id = clusters.filter(f.col("removed") == largest - 1).orderBy(own, "id").limit(1).collect()[0]["id"]
        warnings.append(f"one cluster holds {largest} of {total} documents, more than 1 %: that of {kept_id}")
    if total > 1 and removals["removed"] > total / 2:
        warnings.append(f"the input loses {removals['removed']} of its {total} documents, more than half")
    return warnings
