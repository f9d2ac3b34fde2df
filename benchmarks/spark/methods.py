"""Methods that are compared: each reads documents and writes near-duplicates; ours and that of MLlib."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import minwise as mw

THRESHOLD, SHINGLES, SHINGLE_WORDS = 0.8, "word:5", 5
# Our word separators as a pattern of MLlib: `_` separates words, letters of any script do not.
SEPARATORS = r"(?U)[\W_]+"
# So many that shingles of a document hardly ever collide; vectors are sparse, so the number costs nothing.
FEATURES = 1 << 24
# Each finds a pair at the threshold with a probability of 0.8: two find 96 % of them, three 99.2 %.
TABLES = 3

# Settings of runs on files.
FILE_OPTIONS: dict[str, Any] = {"threshold": THRESHOLD, "shingle": SHINGLES, "engine": "spark"}

Seconds = dict[str, float]
Method = Callable[[SparkSession, list[str], Path], Seconds]


def pairs_by_mllib(session: SparkSession, files: list[str], output: Path) -> Seconds:
    """Compute tokens, n-grams and hashed features in memory, then their ``approxSimilarityJoin`` with themselves."""
    start = time.perf_counter()
    features = mllib_features(session.read.parquet(*files)).persist()
    features.count()
    featurised = time.perf_counter()
    model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=TABLES, seed=1).fit(features)
    left, right = (f.col(f"dataset{side}.id") for side in "AB")
    joined = model.approxSimilarityJoin(features, features, 1 - THRESHOLD, distCol="distance").where(left < right)
    chosen = joined.select(left.alias("left"), right.alias("right"), (1 - f.col("distance")).alias("similarity"))
    chosen.write.parquet(str(output))
    joined_at = time.perf_counter()
    features.unpersist()
    return {"featurise": featurised - start, "join": joined_at - featurised}


def mllib_features(documents: DataFrame) -> DataFrame:
    """Return sets of shingles as vectors. MLlib rejects empty ones, so texts of fewer than five words are left out."""
    tokens = RegexTokenizer(inputCol="text", outputCol="words", pattern=SEPARATORS).transform(documents)
    grams = NGram(n=SHINGLE_WORDS, inputCol="words", outputCol="grams").transform(tokens).where(f.size("grams") > 0)
    hashing = HashingTF(numFeatures=FEATURES, binary=True, inputCol="grams", outputCol="features")
    return hashing.transform(grams).select("id", "features")


def pairs_of_frame(session: SparkSession, files: list[str], output: Path) -> Seconds:
    """Find pairs in a DataFrame with minwise, as in a notebook."""
    from minwise.spark import pairs

    start = time.perf_counter()
    found = pairs(session.read.parquet(*files), text="text", id="id", threshold=THRESHOLD, shingle=SHINGLES)
    found.write.parquet(str(output))
    return {"pairs": time.perf_counter() - start}


def pairs_of_files(session: SparkSession, files: list[str], output: Path) -> Seconds:
    """Find pairs in files with minwise, as ``minwise pairs --engine spark`` does."""
    start = time.perf_counter()
    mw.write_pairs(files, f"{output}.parquet", **FILE_OPTIONS, work=f"{output}.work")
    return {"pairs": time.perf_counter() - start}


def dedup_of_files(session: SparkSession, files: list[str], output: Path) -> Seconds:
    """Write files without near-duplicates with minwise, as ``minwise dedup --engine spark`` does."""
    start = time.perf_counter()
    mw.dedup(files, output, **FILE_OPTIONS, work=f"{output}.work")
    return {"dedup": time.perf_counter() - start}


METHODS: dict[str, Method] = {
    "mllib": pairs_by_mllib,
    "frame": pairs_of_frame,
    "files": pairs_of_files,
    "dedup": dedup_of_files,
}
