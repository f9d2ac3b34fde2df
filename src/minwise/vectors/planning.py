"""Layout planning for vectors: the width, hashes and tables that reach a recall at a radius at the lowest cost.

If a comparison of all vectors costs less than the best tables, or little more than a plan, there are no tables.

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
from minwise.vectors.projection import Measure, slot_probability
from minwise.vectors.sources import VectorSource

__all__ = [
    "BEYOND",
    "DistanceSample",
    "VectorLayout",
    "cheapest_layout",
    "is_scan_cheap",
    "neighbour_radius",
    "scan_cost",
]

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
# The same of a scan: each value of a pair in a matrix product, and a pair of which the product is tested.
SCANNED_VALUE, SCANNED = 0.025, 1.5
# Members of a bucket above the cap that each member is paired with.
FIRST_MEMBERS = 16
# A scan that takes at most as many times as long as a sample is not worth one.
WORTH_SAMPLING = 10
# A scan that takes at most as many times as long as tables with a bucket above the cap is preferred: it leaves no pair
# out.
WORTH_ALL_PAIRS = 10
# Share of queries whose nearest are beyond the radius of a plan, so that they are compared with all vectors.
BEYOND = 0.1


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
        rows: Number of all vectors; of those that differ, as estimated from the sample, if the sample has no copies.
    """

    counts: NDArray[np.int64]
    distances: NDArray[np.float64]
    dims: int
    rows: int

    @classmethod
    def of(cls, source: VectorSource, measure: Measure, radius: float, *, copies: bool = False) -> "DistanceSample":
        """Return the distances of evenly spaced rows from each other; of equal ones only one, unless copies count."""
        sampled = _sample_rows(source, SAMPLED_VECTORS, measure)
        vectors = sampled if copies else np.unique(sampled, axis=0)
        rows = source.rows * len(vectors) // max(1, len(sampled))
        left, right = (side.astype(np.uint32) for side in np.triu_indices(len(vectors), 1))
        bins = _bins(_distances(vectors, left, right, measure) / radius)
        columns = OCTAVES * STEPS + 2
        cells = np.concatenate([side.astype(np.int64) * columns + bins for side in (left, right)])
        counts = np.bincount(cells, minlength=len(vectors) * columns).reshape(-1, columns)
        bounds = 2.0 ** (LOWEST_OCTAVE + np.arange(OCTAVES * STEPS + 1) / STEPS)
        return cls(counts, np.concatenate([[0.0], bounds]), source.dims, rows)


def _bins(ratios: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each ratio: 0 below the lowest bound, otherwise 1 + the index of the bound below it."""
    with np.errstate(divide="ignore"):
        steps = np.floor((np.log2(ratios) - LOWEST_OCTAVE) * STEPS)
    bins: NDArray[np.int64] = np.clip(steps, -1, OCTAVES * STEPS).astype(np.int64) + 1
    return bins


def scan_cost(rows: int, dims: int, queries: int | None) -> float:
    """Return the nanoseconds of a comparison of all vectors with each other, or of all queries with all vectors."""
    pairs = rows * (rows - 1) / 2 if queries is None else rows * queries
    return pairs * (SCANNED + SCANNED_VALUE * dims)


def is_scan_cheap(rows: int, dims: int, queries: int | None, *, nearest: bool) -> bool:
    """Return whether a scan costs so little that no sample is needed to decide on it.

    Args:
        rows: Number of vectors.
        dims: Values per vector.
        queries: Number of queries; None for all pairs.
        nearest: Whether the radius must be estimated from a second sample.
    """
    vectors, among = min(rows, SAMPLED_VECTORS), min(rows, SAMPLED_NEIGHBOURS)
    sampled = vectors * (vectors - 1) // 2 + nearest * SAMPLED_QUERIES * among
    return scan_cost(rows, dims, queries) <= WORTH_SAMPLING * sampled * (COMPARED + VALUE * dims)


def cheapest_layout(
    sample: DistanceSample, measure: Measure, radius: float, recall: float, max_bucket: int, queries: int | None = None
) -> tuple[VectorLayout, float] | None:
    """Return the tables of the lowest cost that find a pair at the radius with probability ``recall``, and their cost.

    A layout whose buckets would exceed the cap, as estimated from the sample, is chosen only if all others do too. Its
    cost is multiplied, because the cap leaves pairs out.

    Args:
        sample: Distances of the vectors.
        measure: ``euclidean`` or ``cosine``.
        radius: Maximum distance of a pair.
        recall: Probability that a pair at the radius is found.
        max_bucket: Members up to which all pairs of a bucket are compared.
        queries: Number of queries, which have no cap; None for all pairs.

    Returns:
        The layout and its cost in nanoseconds; None if no layout reaches the recall with 256 tables.
    """
    cap = math.inf if queries is not None else max_bucket
    found = []
    for width in _widths(measure, radius):
        at_radius = slot_probability(measure, radius, width)
        by_bin = np.array([slot_probability(measure, ratio * radius, width) for ratio in sample.distances])
        for hashes in range(1, MAX_HASHES[measure] + 1):
            tables = _tables(at_radius**hashes, recall)
            if tables > MAX_TABLES:
                break
            cost, capped = _cost(sample, by_bin**hashes, hashes, tables, queries, cap)
            found.append(((capped, cost), VectorLayout(width, hashes, tables)))
    if not found:
        return None
    (capped, cost), layout = min(found, key=lambda each: each[0])
    return layout, cost * (WORTH_ALL_PAIRS if capped else 1)


def _widths(measure: Measure, radius: float) -> list[float | None]:
    """Return the widths to try; a cosine has none."""
    if measure == "cosine":
        return [None]
    return [factor * radius for factor in WIDTHS if math.isfinite(factor * radius)]


def _tables(same_key: float, recall: float) -> int:
    """Return the fewest tables that reach the recall for this probability of equal keys; too many if none do."""
    if same_key >= recall:
        return 1
    missed = math.log1p(-same_key)
    return math.ceil(math.log1p(-recall) / missed) if missed else MAX_TABLES + 1


def _cost(
    sample: DistanceSample,
    same_key: NDArray[np.float64],
    hashes: int,
    tables: int,
    queries: int | None,
    cap: float,
) -> tuple[float, bool]:
    """Return the nanoseconds, and whether a bucket is above the cap, as estimated from the sample."""
    rows, others = sample.rows, max(1, len(sample.counts) - 1)
    shares = sample.counts @ same_key / others
    capped = shares * rows > cap
    # Each member of a bucket above the cap is paired with the first few, so with half a share of twice as many.
    proposed = tables * np.where(capped, 2 * FIRST_MEMBERS / max(1, rows), shares)
    in_any = -np.expm1(tables * np.log1p(-np.minimum(same_key, 1 - 1e-12)))
    compared = np.minimum(sample.counts @ in_any / others, proposed)
    each = proposed * PROPOSED + compared * (COMPARED + VALUE * sample.dims)
    pairs = rows * (rows - 1) / 2 if queries is None else rows * queries
    hashed = rows + (queries or 0)
    hashing = hashed * tables * (hashes * (sample.dims * PRODUCT + SLOT) + KEY)
    return float(hashing + pairs * each.sum() / max(1, len(each))), bool(capped.any())


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
    return _kernel.vector_distances(vectors, vectors, left, right, measure, math.inf, 0)
