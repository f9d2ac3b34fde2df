"""Process that finds pairs or neighbours in a file of points and prints the time it took.

``python -m benchmarks.vectors.run ENGINE pairs|near|many POINTS.npy RADIUS QUERIES ANSWER.npy``

The points are in memory when the measurement starts. Pairs are written as ``left << 32 | right``, neighbours as a
matrix with a row per query, padded with -1.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

TOP, MANY = 10, 1000
BLOCK = 2048
# Number of lists that IndexIVFFlat searches, of four times the square root of the number of points.
PROBES = 32
Answer = Callable[[], "np.ndarray[Any, Any]"]
Prepare = Callable[[np.ndarray, float, int], Answer]


def brute_pairs(points: np.ndarray, radius: float, queries: int) -> Answer:
    """Return a search for all pairs by matrix products of the blocks on and above the diagonal."""

    def find() -> np.ndarray:
        squares, found = (points * points).sum(axis=1), []
        for i in range(0, len(points), BLOCK):
            for j in range(i, len(points), BLOCK):
                apart = points[i : i + BLOCK] @ points[j : j + BLOCK].T
                apart *= -2
                apart += squares[i : i + BLOCK, None]
                apart += squares[None, j : j + BLOCK]
                left, right = np.nonzero(apart <= radius * radius)
                found.append(packed(left + i, right + j))
        return np.concatenate(found)

    return find


def packed(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return pairs of different rows, the smaller first, packed into one number each."""
    keep = left < right
    return left[keep].astype(np.uint64) << np.uint64(32) | right[keep].astype(np.uint64)


def brute_near(top: int) -> Prepare:
    """Return a search for the nearest points by matrix products and a partial sort."""

    def prepare(points: np.ndarray, radius: float, queries: int) -> Answer:
        def find() -> np.ndarray:
            targets, squares, found = points[:queries], (points * points).sum(axis=1), []
            for start in range(0, queries, 256):
                apart = squares[None] - 2 * (targets[start : start + 256] @ points.T)
                best = np.argpartition(apart, top, axis=1)[:, :top]
                order = np.argsort(np.take_along_axis(apart, best, axis=1), axis=1)
                found.append(np.take_along_axis(best, order, axis=1))
            return np.concatenate(found)

        return find

    return prepare


def minwise_pairs(points: np.ndarray, radius: float, queries: int) -> Answer:
    """Return a search for pairs with minwise; planning is included in the time."""
    import minwise as mw

    family = mw.EuclideanLSH  # accessing the name triggers its lazy imports

    def find() -> np.ndarray:
        search = family.plan(points, radius=radius)
        print(search, file=sys.stderr)
        table = search.fit(points).pairs(radius)
        return packed(table["left"].to_numpy(), table["right"].to_numpy())

    return find


def minwise_near(top: int) -> Prepare:
    """Return a search for neighbours with minwise; planning and building tables are included in the time."""

    def prepare(points: np.ndarray, radius: float, queries: int) -> Answer:
        import minwise as mw

        family = mw.EuclideanLSH

        def find() -> np.ndarray:
            search = family.plan(points, top=top, queries=points[:queries])
            print(search, file=sys.stderr)
            table = search.fit(points).query(points[:queries], top=top)
            rows = np.full((queries, top), -1)
            query = table["query"].to_numpy()
            rows[query, np.arange(len(query)) - np.searchsorted(query, query)] = table["neighbour"].to_numpy()
            return rows

        return find

    return prepare


def faiss_index(kind: str, points: np.ndarray) -> Any:  # noqa: ANN401 - the class depends on the kind
    """Return a faiss index of all points."""
    import faiss  # type: ignore[import-untyped, import-not-found, unused-ignore]

    rows, dims = points.shape
    if kind == "ivf":
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dims), dims, int(4 * rows**0.5))
        index.nprobe = PROBES
        index.train(points)
    else:
        makers = {"flat": faiss.IndexFlatL2, "lsh": faiss.IndexLSH, "hnsw": faiss.IndexHNSWFlat}
        index = makers[kind](dims, *{"lsh": (4 * dims,), "hnsw": (32,)}.get(kind, ()))
    index.add(points)
    return index


def faiss_pairs(kind: str) -> Callable[[np.ndarray, float, int], Answer]:
    """Return a search for pairs by range search in a faiss index; building it is included in the time."""

    def prepare(points: np.ndarray, radius: float, queries: int) -> Answer:
        def find() -> np.ndarray:
            index, found = faiss_index(kind, points), []
            for start in range(0, len(points), BLOCK):
                limits, _, right = index.range_search(points[start : start + BLOCK], radius * radius)
                left = start + np.repeat(np.arange(len(limits) - 1), np.diff(limits.astype(np.int64)))
                found.append(packed(left, right))
            return np.concatenate(found)

        return find

    return prepare


def faiss_near(kind: str) -> Callable[[np.ndarray, float, int], Answer]:
    """Return a search for neighbours in a faiss index; building it is included in the time."""

    def prepare(points: np.ndarray, radius: float, queries: int) -> Answer:
        def find() -> np.ndarray:
            found: np.ndarray = faiss_index(kind, points).search(points[:queries], TOP)[1]
            return found

        return find

    return prepare


def spark_pairs(points: np.ndarray, radius: float, queries: int) -> Answer:
    """Return a search for pairs with Spark's bucketed random projections, which have one projection per table."""
    from pyspark.ml.feature import BucketedRandomProjectionLSH
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col as column

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [(i, row.tolist()) for i, row in enumerate(points)]
    frame = session.createDataFrame(rows, "id long, values array<float>").select(
        "id", array_to_vector(column("values")).alias("x")
    )
    frame = frame.cache()
    frame.count()

    def find() -> np.ndarray:
        hashing = BucketedRandomProjectionLSH(
            inputCol="x", outputCol="h", bucketLength=2 * radius, numHashTables=5, seed=1
        )
        model = hashing.fit(frame)
        joined = model.approxSimilarityJoin(frame, frame, radius).where("datasetA.id < datasetB.id")
        pairs = joined.selectExpr("datasetA.id AS l", "datasetB.id AS r").collect()
        both = np.array([(row.l, row.r) for row in pairs], dtype=np.int64).reshape(-1, 2)
        return packed(both[:, 0], both[:, 1])

    return find


ENGINES: dict[tuple[str, str], Callable[[Any, float, int], Answer]] = {
    ("brute", "pairs"): brute_pairs,
    ("brute", "near"): brute_near(TOP),
    ("brute", "many"): brute_near(MANY),
    ("minwise", "pairs"): minwise_pairs,
    ("minwise", "near"): minwise_near(TOP),
    ("minwise", "many"): minwise_near(MANY),
    **{(kind, "pairs"): faiss_pairs(kind) for kind in ("flat", "ivf")},
    **{(kind, "near"): faiss_near(kind) for kind in ("flat", "ivf", "lsh", "hnsw")},
    ("spark", "pairs"): spark_pairs,
}
PACKAGES = {"brute": "numpy", "minwise": "minwise", "spark": "pyspark"}


def main() -> None:
    """Search once and print the time."""
    engine, task, path, radius, queries, answer = sys.argv[1:]
    points = np.load(path)
    find = ENGINES[engine, task](points, float(radius), int(queries))
    wall, processor = time.perf_counter(), time.process_time()
    found = find()
    took = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    np.save(answer, found)
    print(json.dumps({**took, "version": version(PACKAGES.get(engine, "faiss-cpu"))}))


if __name__ == "__main__":
    main()
