"""Summary: a result in, what happened in numbers out, as the report of :mod:`minwise.results.report_data` has it."""

from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from minwise import _kernel
from minwise.errors import MinwiseError
from minwise.report.cluster_section import MANY_DOCUMENTS
from minwise.results.report_data import size_distribution
from minwise.search.bands import FAULTY
from minwise.spark.search import Search

__all__ = ["summary"]


def summary(search: Search, removed: DataFrame, on_error: str) -> dict[str, Any]:
    """Plain values, the same for the same documents and settings."""
    settings = search.settings
    below = f.sum((f.col("similarity") < settings.plan.threshold).cast("long"))
    totals = removed.agg(
        f.count("*").alias("removed"),
        f.sum(f.col("identical").cast("long")).alias("identical"),
        f.sum("text_bytes").alias("text_bytes"),
        below.alias("chained"),
    )
    gone = {name: value or 0 for name, value in totals.collect()[0].asDict().items()}
    sizes = _cluster_sizes(removed)
    return {
        "minwise": _kernel.VERSION,
        "settings": settings.to_dict(),
        "on_error": on_error,
        "plan": settings.planned(),
        "counts": _counts(search, gone),
        "text_bytes": None if settings.shingler is None else _text_bytes(search, gone),
        "clusters": {
            "of_two_or_more": int(sum(sizes.values())),
            "largest": max(sizes, default=min(1, search.own_rows.read)),
            "sizes": size_distribution(np.repeat(list(sizes), list(sizes.values())).astype(np.int64)),
        },
        "pairs": {"candidates": search.caps[1], "verified": search.similar},
        "caps": _caps(search),
        "warnings": _warnings(search, removed, gone, sizes),
    }


def _cluster_sizes(removed: DataFrame) -> dict[int, int]:
    """How many clusters there are of each size, of those with two or more documents."""
    clusters = removed.groupBy("witness").count()
    found = clusters.groupBy("count").agg(f.count("*").alias("clusters")).collect()
    return {row["count"] + 1: row["clusters"] for row in sorted(found)}


def _counts(search: Search, gone: dict[str, int]) -> dict[str, int]:
    counts = search.counted()
    kept = counts["documents"] - gone["removed"]
    if kept < 0:
        raise MinwiseError(f"a bug in minwise, please report it: {counts} but {gone['removed']} removed")
    return {**counts, "kept": kept, "removed": gone["removed"], "removed_identical": gone["identical"]}


def _text_bytes(search: Search, gone: dict[str, int]) -> dict[str, int]:
    by_state = search.own_rows.text_bytes
    read, quarantined, removed = sum(by_state.values()), by_state.get(FAULTY, 0), gone["text_bytes"]
    return {"read": read, "kept": read - removed - quarantined, "removed": removed, "quarantined": quarantined}


def _caps(search: Search) -> dict[str, Any]:
    caps, candidates = search.caps
    share = search.similar / candidates if candidates else 0.0
    return {
        "max_bucket": search.settings.max_bucket,
        "buckets": caps.capped,
        "members": caps.capped_members,
        "candidates_left_out": caps.left_out,
        "estimated_pairs_missed_at_most": round(caps.left_out * share),
        "largest_bucket": caps.largest,
    }


def _warnings(search: Search, removed: DataFrame, gone: dict[str, int], sizes: dict[int, int]) -> list[str]:
    warnings = []
    if gone["chained"]:
        warnings.append(
            f"removed although less similar to the kept one than the threshold: {gone['chained']:,} documents; "
            "they were joined through others. --group star removes none of these"
        )
    total, largest = search.own_rows.read, max(sizes, default=1)
    if total >= MANY_DOCUMENTS and largest > total / 100:
        clusters = removed.groupBy("witness").agg(f.count("*").alias("removed"), f.min("kept_id").alias("id"))
        own = f.col("witness") >= search.protected
        head = clusters.filter(f.col("removed") == largest - 1).orderBy(own, "id").limit(1).collect()[0]["id"]
        warnings.append(f"one cluster holds {largest} of {total} documents, more than 1 %: that of {head}")
    if total > 1 and gone["removed"] > total / 2:
        warnings.append(f"the input loses {gone['removed']} of its {total} documents, more than half")
    return warnings
