"""Expand: pairs of documents that stand for their copies in, pairs of all documents out.

The rules, and the cap on groups of identical documents, are those of :mod:`minwise.search.clustering`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from minwise.search.clustering import FIRST

__all__ = ["expanded_pairs"]


def expanded_pairs(pairs: DataFrame, documents: DataFrame, max_bucket: int) -> DataFrame:
    """Every pair of documents, those of identical ones too: ``low``, ``high`` and ``similarity``, in no order.

    Args:
        pairs: ``low``, ``high`` and ``similarity`` of leaders.
        documents: ``place``, ``leader`` and ``members`` of every document.
        max_bucket: Members up to which a group counts whole; of others the first 16 do.
    """
    copies = documents.filter("members > 1").select("place", "leader", "members")
    counting = _counting(copies, max_bucket)
    return _across(pairs, counting).union(_within(copies, counting))


def _counting(copies: DataFrame, max_bucket: int) -> DataFrame:
    """The members of groups that count: ``leader`` and ``member``."""
    number = f.row_number().over(Window.partitionBy("leader").orderBy("place"))
    whole = copies.filter(f.col("members") <= max_bucket)
    first = copies.filter(f.col("members") > max_bucket).withColumn("number", number).filter(f.col("number") <= FIRST)
    return whole.union(first.drop("number")).select("leader", f.col("place").alias("member"))


def _across(pairs: DataFrame, counting: DataFrame) -> DataFrame:
    """The pairs between the copies of both sides of each pair."""
    wide = pairs
    for side in ("low", "high"):
        mine = counting.select(f.col("leader").alias(side), f.col("member").alias(f"{side}_member"))
        wide = wide.join(mine, side, "left")
    one, other = (f.coalesce(f"{side}_member", side) for side in ("low", "high"))
    return wide.select(f.least(one, other).alias("low"), f.greatest(one, other).alias("high"), "similarity")


def _within(copies: DataFrame, counting: DataFrame) -> DataFrame:
    """The pairs among identical documents: each with those before it that count."""
    pairs = copies.join(counting, "leader").filter(f.col("member") < f.col("place"))
    low, high = f.col("member").alias("low"), f.col("place").alias("high")
    identical: Column = f.lit(1.0).alias("similarity")
    return pairs.select(low, high, identical)
