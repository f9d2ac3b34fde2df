"""Layout planning for vectors: the width, hashes and tables that reach a recall at a radius at the lowest cost.

More hashes per key keep distant pairs out of a bucket; more tables find more near pairs. For each number of hashes and
each width, the number of tables follows from the recall. The cost of each choice depends on how far apart the vectors
are, which is estimated from the distances in a sample.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_matrix
from minwise.errors import InputError
from minwise.vectors.projection import Measure, slot_probability
from minwise.vectors.sources import VectorSource

__all__ = ["DistanceSample", "VectorLayout", "cheapest_layout", "neighbour_radius"]

# Vectors whose distances from each other represent all distances.
SAMPLED_VECTORS = 1024
# Queries, and vectors among which their nearest are searched, for the radius that contains the nearest few.
SAMPLED_QUERIES, SAMPLED_NEIGHBOURS = 64, 16_384
# Distances are counted in bins of an eighth of an octave, from 1/16 of the radius to 64 times it. Each bin counts at
# its lower bound, where two vectors share a slot more often, so that costs are never underestimated.
OCTAVES, STEPS, LOWEST_OCTAVE = 10, 8, -4
# Widths to try, as multiples of the radius.
WIDTHS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0)
MAX_HASHES = {"euclidean": 24, "cosine": 40}
MAX_TABLES = 256
# Nanoseconds on one core of the machine of the benchmark record: a multiplication with its addition, a slot of a key, a
# key in a table, a pair that a table proposes, a comparison, and each value of it. Only their ratios matter, and they
# are fixed, so that every machine makes the same plan.
PRODUCT, SLOT, KEY, PROPOSED, COMPARED, VALUE = 0.12, 3.0, 70.0, 12.0, 30.0, 0.3


class VectorLayout(NamedTuple):
    """Width, hashes and tables; the width is None for cosine."""

    width: float | None
    hashes: int
    tables: int

    @property
    def settings(self) -> dict[str, Any]:
        """The values that are set, under their public names."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass(frozen=True, slots=True)
class DistanceSample:
    """Distances in a sample of vectors.

    Attributes:
        counts: For each sampled vector, the number of others in each distance bin.
        distances: Lower bound of each bin, as a multiple of the radius.
        dims: Values per vector.
        rows: Number of all vectors.
    """

    counts: NDArray[np.int64]
    distances: NDArray[np.float64]
    dims: int
    rows: int

    @classmethod
    def of(cls, source: VectorSource, measure: Measure, radius: float) -> "DistanceSample":
        """Return the distances of evenly spaced rows from each other."""
        vectors = _sample_rows(source, SAMPLED_VECTORS, measure)
        left, right = (side.astype(np.uint32) for side in np.triu_indices(len(vectors), 1))
        bins = _bins(_distances(vectors, left, right, measure) / radius)
        columns = OCTAVES * STEPS + 2
        cells = np.concatenate([side.astype(np.int64) * columns + bins for side in (left, right)])
        counts = np.bincount(cells, minlength=len(vectors) * columns).reshape(-1, columns)
        bounds = 2.0 ** (LOWEST_OCTAVE + np.arange(OCTAVES * STEPS + 1) / STEPS)
        return cls(counts, np.concatenate([[0.0], bounds]), source.dims, source.rows)


def _bins(ratios: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each ratio: 0 below the lowest bound, otherwise 1 + the index of the bound below it."""
    with np.errstate(divide="ignore"):
        steps = np.floor((np.log2(ratios) - LOWEST_OCTAVE) * STEPS)
    bins: NDArray[np.int64] = np.clip(steps, -1, OCTAVES * STEPS).astype(np.int64) + 1
    return bins


def cheapest_layout(
    sample: DistanceSample, measure: Measure, radius: float, recall: float, max_bucket: int, queries: int | None = None
) -> VectorLayout:
    """Return the layout of the lowest cost that finds a pair at the radius with probability ``recall``.

    A layout whose buckets would exceed the cap, as estimated from the sample, is chosen only if all others do too.

    Args:
        sample: Distances of the vectors.
        measure: ``euclidean`` or ``cosine``.
        radius: Maximum distance of a pair.
        recall: Probability that a pair at the radius is found.
        max_bucket: Members up to which all pairs of a bucket are compared.
        queries: Number of queries; None for all pairs.

    Raises:
        InputError: If no layout reaches the recall with 256 tables.
    """
    best: tuple[tuple[bool, float], VectorLayout] | None = None
    for factor in WIDTHS if measure == "euclidean" else (None,):
        width = None if factor is None else factor * radius
        at_radius = slot_probability(measure, radius, width)
        by_bin = np.array([slot_probability(measure, ratio * radius, width) for ratio in sample.distances])
        for hashes in range(1, MAX_HASHES[measure] + 1):
            tables = _tables(at_radius**hashes, recall)
            if tables > MAX_TABLES:
                break
            cost, largest = _cost(sample, by_bin**hashes, hashes, tables, queries)
            sort_key = (queries is None and largest > max_bucket, cost)
            if best is None or sort_key < best[0]:
                best = sort_key, VectorLayout(width, hashes, tables)
    if best is None:
        raise InputError(f"recall {recall} at radius {radius} needs more than {MAX_TABLES} tables; lower recall")
    return best[1]


def _tables(same_key: float, recall: float) -> int:
    """Return the fewest tables that reach the recall for this probability of equal keys."""
    return 1 if same_key >= recall else math.ceil(math.log1p(-recall) / math.log1p(-same_key))


def _cost(
    sample: DistanceSample, same_key: NDArray[np.float64], hashes: int, tables: int, queries: int | None
) -> tuple[float, float]:
    """Return the nanoseconds and the members of the largest bucket, as estimated from the sample."""
    rows, sampled = sample.rows, max(1, len(sample.counts))
    others = max(1, sampled - 1)
    shares = sample.counts @ same_key / others
    in_any = -np.expm1(tables * np.log1p(-np.minimum(same_key, 1 - 1e-12)))
    proposed, compared = shares.sum() / sampled * tables, (sample.counts @ in_any).sum() / others / sampled
    pairs = rows * (rows - 1) / 2 if queries is None else rows * queries
    hashed = rows + (queries or 0)
    hashing = hashed * tables * (hashes * (sample.dims * PRODUCT + SLOT) + KEY)
    comparing = pairs * (proposed * PROPOSED + compared * (COMPARED + VALUE * sample.dims))
    return float(hashing + comparing), float(shares.max(initial=0.0) * rows)


def neighbour_radius(source: VectorSource, queries: VectorSource | None, top: int, measure: Measure) -> float:
    """Return a distance that contains the ``top`` nearest neighbours of nine in ten queries.

    It is estimated from a sample, too large rather than too small. Without queries, the vectors are their own queries.
    """
    among = _sample_rows(source, SAMPLED_NEIGHBOURS, measure)
    asking = _sample_rows(queries or source, SAMPLED_QUERIES, measure)
    if not len(among) or not len(asking):
        return 1.0
    own = 0 if queries is not None else 1  # a vector is its own nearest
    index = min(len(among), own + max(1, math.ceil(top * len(among) / max(1, source.rows)))) - 1
    both = np.concatenate([among, asking.astype(among.dtype)])
    left = np.repeat(np.arange(len(asking), dtype=np.uint32) + np.uint32(len(among)), len(among))
    right = np.tile(np.arange(len(among), dtype=np.uint32), len(asking))
    distances = np.sort(_distances(both, left, right, measure).reshape(len(asking), len(among)), axis=1)
    farthest = np.sort(distances[:, index])
    return float(farthest[math.ceil(0.9 * len(farthest)) - 1])


def _sample_rows(source: VectorSource, most: int, measure: Measure) -> NDArray[Any]:
    """Return up to ``most`` evenly spaced vectors, without those that cannot be used."""
    count = min(most, source.rows)
    wanted = np.arange(count) * source.rows // max(1, count)
    found = [np.empty((0, source.dims), dtype=np.float32)]
    for batch in source.blocks(1 << 22):
        rows = wanted[np.searchsorted(wanted, batch.first) : np.searchsorted(wanted, batch.first + len(batch))]
        if len(rows):
            found.append(to_matrix(batch.values)[rows - batch.first].astype(np.float32))
    vectors = np.concatenate(found)
    usable = np.isfinite(vectors).all(axis=1)
    if measure == "cosine":
        usable &= vectors.any(axis=1)
    return np.ascontiguousarray(vectors[usable])


def _distances(
    vectors: NDArray[Any], left: NDArray[np.uint32], right: NDArray[np.uint32], measure: Measure
) -> NDArray[np.float64]:
    return _kernel.vector_distances(vectors, left, right, measure == "cosine", math.inf, 0)
