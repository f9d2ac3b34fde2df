"""Deduplication on Apache Spark: pairs, clusters and deduplicated rows of DataFrames.

The functions find what those of :mod:`minwise` find in the same rows, sorted by id. They use only the DataFrame
interface, so that they also work over Spark Connect; minwise must be installed on the executors.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from minwise._internal.lazy import lazy_attributes as _lazy_attributes

if _TYPE_CHECKING:
    from minwise.spark.dataframes import (
        DedupFrames,
        candidate_pairs,
        clusters,
        connected_components,
        dedup,
        pairs,
        shingles,
        sketch,
        star_groups,
        verified_pairs,
    )

__all__ = [
    "DedupFrames",
    "candidate_pairs",
    "clusters",
    "connected_components",
    "dedup",
    "pairs",
    "shingles",
    "sketch",
    "star_groups",
    "verified_pairs",
]

# pyspark is imported at the first use of a name, so that minwise.spark.session can report that it is missing.
__getattr__, __dir__ = _lazy_attributes(globals(), dict.fromkeys(__all__, "dataframes"))
