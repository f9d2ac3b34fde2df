"""Vector plan: a radius, a recall and a sample of the vectors in; width, hashes and tables of the least cost out.

More lines in a table's key (hashes) let fewer far pairs share a bucket; more tables give a near pair more chances. For
each number of hashes and each width, the tables follow from the recall; what is left is how much work each choice
makes, and that depends on how far apart the vectors are: on a sample's distances.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import matrix_of
from minwise.errors import InputError
from minwise.vectors.projection import slot_chance
from minwise.vectors.sources import VectorSource

__all__ = ["Layout", "Sample", "cheapest_layout", "neighbour_radius"]

# Vectors whose distances from each other stand for all distances.
SAMPLED = 1024
# For the radius that holds the nearest few: so many are asked, among so many.
ASKED, AMONG = 64, 16_384
# Distances count by eighths of an octave of the radius, from 1/16 of it to 64 times it; each at its lower border, where
# two vectors share a slot more easily: costs are never thought too low.
OCTAVES, STEPS, LEAST = 10, 8, -4
# Widths that are tried, in radii.
WIDTHS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0)
MOST_HASHES = {"euclidean": 24, "cosine": 40}
MOST_TABLES = 256
# Nanoseconds on one core of the machine that the record was made on: a product and its sum, a slot in a key, a key on
# its way through a table, a pair that a table proposes, a comparison and each value in it. Only their ratios matter,
# and they are fixed, so that every machine makes the same plan.
PRODUCT, SLOT, KEY, PROPOSED, COMPARED, VALUE = 0.12, 3.0, 70.0, 12.0, 30.0, 0.3


class Layout(NamedTuple):
    """Width, hashes and tables; the width is None for cosine."""

    width: float | None
    hashes: int
    tables: int

    @property
    def settings(self) -> dict[str, Any]:
        """Its values under their public names, without a width if there is none."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass(frozen=True, slots=True)
class Sample:
    """How far apart some vectors are.

    Attributes:
        counts: For each of them, how many of the others are at each distance.
        distances: The distances, in radii.
        dims: Values of a vector.
        rows: How many vectors there are in all.
    """

    counts: NDArray[np.int64]
    distances: NDArray[np.float64]
    dims: int
    rows: int

    @classmethod
    def of(cls, source: VectorSource, measure: str, radius: float) -> "Sample":
        """The distances of evenly spaced rows from each other."""
        vectors = _sample_rows(source, SAMPLED, measure)
        left, right = (side.astype(np.uint32) for side in np.triu_indices(len(vectors), 1))
        apart = _distances(vectors, left, right, measure)
        bins = _bins(apart / radius)
        columns = OCTAVES * STEPS + 2
        places = np.concatenate([side.astype(np.int64) * columns + bins for side in (left, right)])
        counts = np.bincount(places, minlength=len(vectors) * columns).reshape(-1, columns)
        borders = 2.0 ** (LEAST + np.arange(OCTAVES * STEPS + 1) / STEPS)
        return cls(counts, np.concatenate([[0.0], borders]), source.dims, source.rows)


def _bins(ratios: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 for what is nearer than the least border, else 1 + the number of the border below."""
    with np.errstate(divide="ignore"):
        places = np.floor((np.log2(ratios) - LEAST) * STEPS)
    bins: NDArray[np.int64] = np.clip(places, -1, OCTAVES * STEPS).astype(np.int64) + 1
    return bins


def cheapest_layout(
    sample: Sample, measure: str, radius: float, recall: float, max_bucket: int, queries: int | None = None
) -> Layout:
    """The layout that finds a pair at the radius with the recall, and costs least.

    Layouts whose buckets would outgrow the cap, as far as the sample tells, come after all others.

    Args:
        sample: Distances of the vectors.
        measure: ``euclidean`` or ``cosine``.
        radius: The distance up to which pairs are wanted.
        recall: The wanted chance to find one at the radius.
        max_bucket: Members up to which a bucket is compared all with all.
        queries: How many are asked for what is near them; None if all pairs are wanted.
    """
    best: tuple[tuple[bool, float], Layout] | None = None
    for factor in WIDTHS if measure == "euclidean" else (None,):
        width = None if factor is None else factor * radius
        near = slot_chance(measure, radius, width)
        chances = np.array([slot_chance(measure, one * radius, width) for one in sample.distances])
        for hashes in range(1, MOST_HASHES[measure] + 1):
            tables = _tables(near**hashes, recall)
            if tables > MOST_TABLES:
                break
            cost, largest = _cost(sample, chances**hashes, hashes, tables, queries)
            rank = (queries is None and largest > max_bucket, cost)
            if best is None or rank < best[0]:
                best = rank, Layout(width, hashes, tables)
    if best is None:
        raise InputError(f"no {MOST_TABLES} tables reach a recall of {recall} at radius {radius}; ask for less of it")
    return best[1]


def _tables(same: float, recall: float) -> int:
    """The fewest tables of which one holds both with this recall."""
    return 1 if same >= recall else math.ceil(math.log1p(-recall) / math.log1p(-same))


def _cost(
    sample: Sample, same: NDArray[np.float64], hashes: int, tables: int, queries: int | None
) -> tuple[float, float]:
    """Nanoseconds, and members of the largest bucket, as far as the sample tells."""
    rows, sampled = sample.rows, max(1, len(sample.counts))
    others = max(1, sampled - 1)
    shares = sample.counts @ same / others
    once = -np.expm1(tables * np.log1p(-np.minimum(same, 1 - 1e-12)))
    proposed, compared = shares.sum() / sampled * tables, (sample.counts @ once).sum() / others / sampled
    pairs = rows * (rows - 1) / 2 if queries is None else rows * queries
    hashed = rows + (queries or 0)
    preparing = hashed * tables * (hashes * (sample.dims * PRODUCT + SLOT) + KEY)
    comparing = pairs * (proposed * PROPOSED + compared * (COMPARED + VALUE * sample.dims))
    return float(preparing + comparing), float(shares.max(initial=0.0) * rows)


def neighbour_radius(source: VectorSource, queries: VectorSource | None, top: int, measure: str) -> float:
    """A distance within which nine of ten queries have their ``top`` nearest.

    Told from a sample, and rather too large than too small. Without queries, the vectors ask for each other.
    """
    among = _sample_rows(source, AMONG, measure)
    asking = _sample_rows(queries or source, ASKED, measure)
    if not len(among) or not len(asking):
        return 1.0
    own = 0 if queries is not None else 1  # a vector is its own nearest
    rank = min(len(among), own + max(1, math.ceil(top * len(among) / max(1, source.rows)))) - 1
    both = np.concatenate([among, asking.astype(among.dtype)])
    left = np.repeat(np.arange(len(asking), dtype=np.uint32) + np.uint32(len(among)), len(among))
    right = np.tile(np.arange(len(among), dtype=np.uint32), len(asking))
    apart = np.sort(_distances(both, left, right, measure).reshape(len(asking), len(among)), axis=1)
    nearest = np.sort(apart[:, rank])
    return float(nearest[math.ceil(0.9 * len(nearest)) - 1])


def _sample_rows(source: VectorSource, most: int, measure: str) -> NDArray[Any]:
    """Evenly spaced vectors, without those that can not be used."""
    count = min(most, source.rows)
    wanted = np.arange(count) * source.rows // max(1, count)
    found = [np.empty((0, source.dims), dtype=np.float32)]
    for batch in source.blocks(1 << 22):
        rows = wanted[np.searchsorted(wanted, batch.first) : np.searchsorted(wanted, batch.first + len(batch))]
        if len(rows):
            found.append(matrix_of(batch.texts)[rows - batch.first].astype(np.float32))
    vectors = np.concatenate(found)
    usable = np.isfinite(vectors).all(axis=1)
    if measure == "cosine":
        usable &= vectors.any(axis=1)
    return np.ascontiguousarray(vectors[usable])


def _distances(
    vectors: NDArray[Any], left: NDArray[np.uint32], right: NDArray[np.uint32], measure: str
) -> NDArray[np.float64]:
    return _kernel.vector_distances(vectors, left, right, measure == "cosine", math.inf, 0)
