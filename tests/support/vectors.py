"""Vector searches and exact answers for tests."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minwise as mw
from minwise import _kernel
from minwise.vectors.planning import DistanceSample, cheapest_layout
from minwise.vectors.sources import open_vectors

Family = type[mw.EuclideanLSH | mw.CosineLSH]
FAMILIES: dict[str, Family] = {"euclidean": mw.EuclideanLSH, "cosine": mw.CosineLSH}


def table_search(
    vectors: NDArray[Any], radius: float, *, measure: str = "euclidean", recall: float = 0.99, seed: int = 1
) -> mw.EuclideanLSH | mw.CosineLSH:
    """Return a search with the cheapest tables, where a plan would compare all vectors."""
    family = FAMILIES[measure]
    sample = DistanceSample.of(open_vectors(vectors), family.measure, radius)
    cheapest = cheapest_layout(sample, family.measure, radius, recall, 2000)
    assert cheapest is not None
    return family(**cheapest[0].settings, seed=seed)


def exact_distances(vectors: NDArray[Any], others: NDArray[Any], measure: str) -> NDArray[np.float64]:
    """Return the distance of every vector from every other, computed by the kernel one by one."""
    left, right = (side.ravel().astype(np.uint32) for side in np.indices((len(vectors), len(others))))
    found = _kernel.vector_distances(vectors, others, left, right, measure, math.inf, 1)
    return found.reshape(len(vectors), len(others))


def exact_pairs(vectors: NDArray[Any], radius: float, measure: str) -> list[tuple[int, int, float]]:
    """Return every pair within the radius, ascending, with its distance."""
    apart = exact_distances(vectors, vectors, measure)
    within = np.argwhere(np.triu(apart <= radius, 1)).tolist()
    return [(left, right, float(apart[left, right])) for left, right in within]


def exact_nearest(
    vectors: NDArray[Any], queries: NDArray[Any], measure: str, top: int | None, radius: float = math.inf
) -> list[tuple[int, int, float]]:
    """Return the nearest vectors of each query within the radius; of equal distances the first."""
    found = []
    for query, apart in enumerate(exact_distances(queries, vectors, measure)):
        order = np.argsort(apart, kind="stable")
        found += [(query, row, float(apart[row])) for row in order[apart[order] <= radius][:top].tolist()]
    return found


def processor_seconds(*works: Callable[[], object]) -> list[float]:
    """Return the least processor time of seven runs of each, in turns.

    Other processes count only for what they evict from caches, and in turns they do so for all.
    """
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(7):
        for taken, work in zip(seconds, works, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in seconds]
