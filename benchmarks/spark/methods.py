"""Methods that are measured: each reads the files of a corpus and writes near-duplicates to a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import minwise as mw
from minwise.settings import RunLimits
from minwise.spark import session as spark_sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

THRESHOLD, SHINGLES, SHINGLE_WORDS, THREADS = 0.8, "word:5", 5, 2
SEARCH: dict[str, Any] = {"threshold": THRESHOLD, "shingle": SHINGLES}
# Of DataFrames. With Spark's default of 200, pairs of 1,000 documents took 164 seconds of processor time, with 16 62.
PARTITIONS = 16
# Our word separators as a pattern of MLlib: `_` separates words, letters of any script do not.
SEPARATORS = r"(?U)[\W_]+"
# So many that shingles of a document hardly ever collide; vectors are sparse, so the number costs nothing.
FEATURES = 1 << 24
# Each finds a pair at the threshold with a probability of 0.8: two find 96 % of them, three 99.2 %.
TABLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Input, output and engine of a method.

    Attributes:
        corpus: Folder of the input.
        folder: Folder of the output and of the work directory.
        master: Master URL of Spark; None for the local engine.
        conf: Settings of Spark.
    """

    corpus: Path
    folder: Path
    master: str | None
    conf: dict[str, str] = field(default_factory=dict)

    @property
    def pattern(self) -> str:
        """Pattern of the input files."""
        return f"{self.corpus}/part-*.parquet"

    @property
    def output(self) -> Path:
        """Folder of the output."""
        return self.folder / "out"

    @property
    def engine(self) -> dict[str, Any]:
        """Settings of minwise that choose the engine."""
        if self.master is None:
            return {"threads": THREADS}
        spark = {"engine": "spark", "master": self.master, "spark_conf": self.conf}
        # The local engine has no work directory, whose files are synced to disk, so the Spark runs that are compared
        # with it have none either. The sizes of stages are taken from the runs on a cluster.
        return spark if self.master.startswith("local[") else {**spark, "work": self.folder / "work"}

    @contextmanager
    def frame(self) -> Iterator[DataFrame]:
        """Open a session as ``mw.dedup`` does, with its default memory, and yield the documents."""
        with spark_sessions.spark_session(self.master, self.conf, memory=RunLimits().memory) as session:
            session.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
            yield session.read.parquet(self.pattern)


def dedup(task: Task) -> None:
    """Write files without near-duplicates, as ``minwise dedup`` does."""
    mw.dedup(task.pattern, task.output, **SEARCH, **task.engine)


def pairs(task: Task) -> None:
    """Write pairs to a file, as ``minwise pairs`` does."""
    task.output.mkdir()
    mw.write_pairs(task.pattern, task.output / "pairs.parquet", **SEARCH, **task.engine)


def frame_dedup(task: Task) -> None:
    """Remove near-duplicates from a DataFrame, as in a notebook."""
    from minwise.spark import dedup as dedup_frame

    with task.frame() as documents, dedup_frame(documents, **SEARCH) as result:
        result.kept.write.parquet(str(task.output / "kept"))
        result.removed.write.parquet(str(task.output / "removed"))


def frame_pairs(task: Task) -> None:
    """Find pairs in a DataFrame, as in a notebook."""
    from minwise.spark import pairs as pairs_of_frame

    with task.frame() as documents:
        pairs_of_frame(documents, **SEARCH).write.parquet(str(task.output / "pairs"))


def mllib(task: Task) -> None:
    """Compute tokens, n-grams and hashed features in memory, then their ``approxSimilarityJoin`` with themselves."""
    from pyspark.ml.feature import MinHashLSH
    from pyspark.sql import functions as f

    with task.frame() as documents:
        features = mllib_features(documents).persist()
        model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=TABLES, seed=1).fit(features)
        left, right = (f.col(f"dataset{side}.id") for side in "AB")
        joined = model.approxSimilarityJoin(features, features, 1 - THRESHOLD, distCol="distance").where(left < right)
        chosen = joined.select(left.alias("left"), right.alias("right"), (1 - f.col("distance")).alias("similarity"))
        chosen.write.parquet(str(task.output / "pairs"))


def mllib_features(documents: DataFrame) -> DataFrame:
    """Return sets of shingles as vectors. MLlib rejects empty ones, so texts of fewer than five words are left out."""
    from pyspark.ml.feature import HashingTF, NGram, RegexTokenizer
    from pyspark.sql import functions as f

    tokens = RegexTokenizer(inputCol="text", outputCol="words", pattern=SEPARATORS).transform(documents)
    grams = NGram(n=SHINGLE_WORDS, inputCol="words", outputCol="grams").transform(tokens).where(f.size("grams") > 0)
    hashing = HashingTF(numFeatures=FEATURES, binary=True, inputCol="grams", outputCol="features")
    return hashing.transform(grams).select("id", "features")


METHODS: dict[str, Callable[[Task], None]] = {
    "dedup": dedup,
    "pairs": pairs,
    "frame dedup": frame_dedup,
    "frame pairs": frame_pairs,
    "mllib": mllib,
}
