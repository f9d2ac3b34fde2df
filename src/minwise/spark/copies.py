"""Copies: documents with their content hashes in; who leads each group of identical ones out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

__all__ = ["copy_groups", "with_leaders"]

CONTENT = ["content_high", "content_low"]


def copy_groups(documents: DataFrame) -> DataFrame:
    """The groups of two or more documents with the same content hash: the hash, ``leader`` and ``members``, how many.

    Args:
        documents: ``place``, ``content_high`` and ``content_low`` of documents that are not empty.
    """
    groups = documents.groupBy(*CONTENT).agg(f.min("place").alias("leader"), f.count("*").alias("members"))
    return groups.filter("members > 1")


def with_leaders(documents: DataFrame, groups: DataFrame) -> DataFrame:
    """The documents with the ``leader`` of their group, itself if there is none, and ``members``, how many it has."""
    joined = documents.join(groups, CONTENT, "left").drop(*CONTENT)
    return joined.withColumn("leader", f.coalesce("leader", "place")).withColumn(
        "members", f.coalesce("members", f.lit(1))
    )
