"""By stage: the steps of a search one by one, for whoever arranges them otherwise.

``place`` is a number of your own for each document: of two documents the smaller one is preferred.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from minwise.spark import candidates, verify
from minwise.spark.components import components as connected_components
from minwise.spark.frames import SHARED, parts_of, settings_of
from minwise.spark.stars import stars as star_groups
from minwise.spark.tables import Table

__all__ = ["candidate_pairs", "connected_components", "shingles", "sketch", "star_groups", "verified_pairs"]

AnySetting = Any


def sketch(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - what users call it
    **settings: AnySetting,
) -> DataFrame:
    """The signature of every text, without anything being sent anywhere.

    Args:
        df: The documents.
        text: The column of the text; several are joined by a line break.
        id: The column of the id.
        settings: As in :func:`minwise.spark.dedup`.

    Returns:
        ``id``; ``state``, which is 0 for a document with keys, 1 for an empty one, 2 for one that can not be used;
        ``fault``, why not; ``text_bytes``; ``content_high`` and ``content_low``, which are equal for equal tokens;
        ``keys``, eight bytes for each band; with ``verify="signature"`` ``packed``, two bytes for each slot.
    """
    chosen = settings_of(settings, SHARED)
    return Table.of(df, name="df", text=text, id=id, settings=chosen).sketched(chosen)


def shingles(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    place: str = "place",
    **settings: AnySetting,
) -> DataFrame:
    """The distinct shingles of every text, as :func:`verified_pairs` compares them.

    Args:
        df: The documents, none of whose texts may be null.
        text: The column of the text; several are joined by a line break.
        place: The column of the document's number.
        settings: As in :func:`minwise.spark.dedup`.

    Returns:
        ``place``, and ``elements``, which are ascending and have eight bytes each.
    """
    chosen = settings_of(settings, SHARED)
    table = Table.of(df, name="df", text=text, id=place, settings=chosen)
    return table.elements(chosen)


def candidate_pairs(entries: DataFrame, *, partitions: int | None = None, **settings: AnySetting) -> DataFrame:
    """Every pair of documents that share a bucket, once.

    Args:
        entries: ``place`` and ``keys``, as :func:`sketch` gives them. Of identical documents there should be one.
        partitions: Into how many parts keys are cut; ``spark.sql.shuffle.partitions`` if it is not given.
        settings: As in :func:`minwise.spark.dedup`.

    Returns:
        ``low`` and ``high``, which are places.
    """
    cut = parts_of(entries, partitions)
    placed = entries.select(f.col("place").cast("long"), "keys")
    found = candidates.candidate_pairs(placed, settings_of(settings, SHARED), partitions=cut)
    return found.filter("low is not null").select("low", "high")


def verified_pairs(
    pairs: DataFrame, sets: DataFrame, *, partitions: int | None = None, **settings: AnySetting
) -> DataFrame:
    """The pairs that are as similar as the threshold.

    Args:
        pairs: ``low`` and ``high``, which are places.
        sets: ``place`` and ``elements`` of every document that is in a pair, as :func:`shingles` gives them; with
            ``verify="signature"``, the column ``packed`` of :func:`sketch` under that name.
        partitions: Into how many parts pairs are cut; ``spark.sql.shuffle.partitions`` if it is not given.
        settings: As in :func:`minwise.spark.dedup`.

    Returns:
        ``low``, ``high`` and ``similarity``.
    """
    chosen = settings_of(settings, SHARED)
    total = sets.agg(f.coalesce(f.sum(f.octet_length("elements")), f.lit(0)).alias("bytes")).collect()[0]["bytes"]
    floor, cut = chosen.plan.threshold, parts_of(pairs, partitions)
    whole = pairs.select(*(f.col(side).cast("long").alias(side) for side in ("low", "high")))
    return verify.verified_pairs(whole, sets, chosen, floor=floor, set_bytes=total, partitions=cut)
