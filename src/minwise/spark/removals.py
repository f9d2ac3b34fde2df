"""Removals: verified pairs in; the removed documents, each with its witness, out.

The rules are those of :mod:`minwise.results.removals`, in joins instead of arrays.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from minwise.spark.components import components
from minwise.spark.search import Search
from minwise.spark.stars import stars

__all__ = ["Removals"]


class Removals:
    """Who is removed, and for whom, under the settings of a search."""

    def __init__(self, search: Search, *, driver_edges: int) -> None:
        self._search = search
        self._driver_edges = driver_edges

    def named(self) -> DataFrame:
        """A row for each removed document.

        ``id``, ``kept_id``, ``similarity`` (null if it is unknown), ``text_bytes``, ``place``, ``witness``, and
        ``identical``: whether it is removed only because it is a copy of one that is not.
        """
        removed = self._of_components() if self._search.settings.group == "components" else self._of_stars()
        names = self._search.names
        kept = names.select(f.col("place").alias("witness"), f.col("id").alias("kept_id"))
        similarity = f.when(~f.isnan("similarity"), f.col("similarity"))
        named = removed.withColumn("similarity", similarity).join(names.drop("own"), "place").join(kept, "witness")
        return named.select("id", "kept_id", "similarity", "text_bytes", "place", "witness", "identical")

    @property
    def _components(self) -> DataFrame:
        """``place`` and ``component`` of every document that is in a pair."""
        edges = self._search.verified.select("low", "high")
        return self._search.stages.run("components", lambda: components(edges, driver_edges=self._driver_edges))

    def _followers(self) -> DataFrame:
        """``place`` and ``leader`` of the copies that can be removed."""
        free = (f.col("place") != f.col("leader")) & (f.col("place") >= self._search.protected)
        return self._search.documents.filter(free).select("place", "leader")

    def _of_stars(self) -> DataFrame:
        """Copies of a kept leader are removed for it, copies of a removed one for the same witness."""
        search = self._search
        leaders = search.stages.run(
            "stars", lambda: stars(search.verified, self._components, protected=search.protected)
        )
        gone = _renamed(leaders, place="leader")
        followers = self._followers().join(gone, "leader", "left")
        kept = f.col("witness").isNull()
        return leaders.select("place", "witness", "similarity", f.lit(False).alias("identical")).union(
            followers.select(
                "place",
                f.coalesce("witness", "leader").alias("witness"),
                _one_or(kept).alias("similarity"),
                kept.alias("identical"),
            )
        )

    def _of_components(self) -> DataFrame:
        """One kept per component: the first in keep order. Copies are in that of their leader."""
        search = self._search
        joined = search.stages.run("joined", self._with_similarity)
        free = f.col("place") >= search.protected
        followers = self._followers().join(_renamed(joined, place="leader"), "leader", "left")
        alone = f.col("witness").isNull()
        kept = alone | (f.col("leader") < search.protected)
        return (
            joined.filter(free)
            .select("place", "witness", "similarity", f.lit(False).alias("identical"))
            .union(
                followers.select(
                    "place",
                    f.coalesce("witness", "leader").alias("witness"),
                    _one_or(alone).alias("similarity"),
                    kept.alias("identical"),
                )
            )
        )

    def _with_similarity(self) -> DataFrame:
        """``place``, ``witness`` and ``similarity`` of every leader that is not the first of its component.

        Nobody may have compared it with the first.
        """
        search = self._search
        others = self._components.filter("place != component")
        pairs = others.select(f.col("component").alias("low"), f.col("place").alias("high"))
        if search.settings.verify == "exact":
            compared = search.verify(pairs, 0.0)
        else:
            compared = pairs.withColumn("similarity", f.lit(float("nan")))
        return compared.select(f.col("high").alias("place"), f.col("low").alias("witness"), "similarity")


def _one_or(identical: Column) -> Column:
    return f.when(identical, f.lit(1.0)).otherwise(f.col("similarity"))


def _renamed(frame: DataFrame, **names: str) -> DataFrame:
    return frame.withColumnsRenamed(names)
