"""Holding: a DataFrame in; the same, held by the executors and without a memory of how it was made, out.

``persist`` would not do: every plan holds those before it, once for each time it is used there, and Spark walks through
all of it. On a busy machine a first run over 191 rows took 163 seconds, 52 this way, and a fourth ended the session.
"""

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

__all__ = ["held"]


def held(frame: DataFrame) -> DataFrame:
    """The finished DataFrame, until nobody refers to it.

    Each part is on two executors where there are some, so that a run survives the loss of one, of more not.
    """
    return frame.localCheckpoint(storageLevel=_level(frame.sparkSession))


def _level(session: SparkSession) -> StorageLevel:
    """On two executors where there are some."""
    master = session.conf.get("spark.master", "") or ""
    alone = master == "local" or master.startswith("local[")
    return StorageLevel.MEMORY_AND_DISK if alone else StorageLevel.MEMORY_AND_DISK_2
