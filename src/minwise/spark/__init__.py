"""minwise on Apache Spark: DataFrames in; pairs, clusters or a clean corpus out, as DataFrames.

What is found is what the calls of :mod:`minwise` find in the same rows, sorted by id. Only the DataFrame interface is
used, so that it works over Spark Connect too; the executors need minwise installed.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from minwise._internal.lazy import lazy_attributes as _lazy_attributes

if _TYPE_CHECKING:
    from minwise.spark.by_stage import (
        candidate_pairs,
        connected_components,
        shingles,
        sketch,
        star_groups,
        verified_pairs,
    )
    from minwise.spark.frames import DedupFrames, clusters, dedup, pairs

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

# What needs pyspark comes when it is first asked for: other rooms of this package can tell that it is missing.
_OF_FRAMES = ("DedupFrames", "clusters", "dedup", "pairs")
_LATER = {name: "frames" if name in _OF_FRAMES else "by_stage" for name in __all__}

__getattr__, __dir__ = _lazy_attributes(globals(), _LATER)
