"""Exact scan: matrix products in blocks select the pairs that may be near, and the kernel computes their distance.

A squared distance is |x|² + |y|² − 2x·y. Products come from NumPy's BLAS in 24 bits, in an order that depends on the
machine, so they only exclude pairs: a pair is excluded if it is farther than the bound by more than any rounding error.
The distance of every other pair is computed by the kernel, so the result is the same on every machine.

Rounding errors, with u = 2⁻²⁴ and n values: a product errs by at most γ·|x|·|y| with γ = nu/(1 − nu), whatever the
order of its sum (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), a square by γ·|x|², and the
subtraction of the centre or the division by the length by 4u·(|x|² + |y|²). As |x|·|y| ≤ (|x|² + |y|²)/2, all of them
together are below 4(n + 16)·u·(|x|² + |y|²) up to 2²² values; longer vectors are never excluded. Values below the
normal range err by at most 2⁻¹²⁶ each. A value that overflows gives a bound that is not a number, which excludes
nothing.

Bits are counted in words of 64, which gives their distance at once. NumPy 1 cannot count them; there, they are compared
as zeros and ones, whose squared distance is the number of bits that differ.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise.search.clustering import PairBlock
from minwise.vectors.projection import Measure

__all__ = ["NearestHits", "Scan", "ScanBlock", "Workspace", "make_scan", "row_blocks", "values_per_row"]

# Rows of a block: the product of two blocks takes at most 16 MB and a block of more than 2,048 values 16 MB or more.
BLOCK_ROWS, BLOCK_VALUES, MIN_BLOCK_ROWS = 2048, 1 << 22, 256
MAX_VALUES = 1 << 22
# Columns of the first product that bound the distance of the nearest, and selected pairs per wanted neighbour above
# which all columns do.
BOUND_COLUMNS, MOST_SELECTED = 1024, 16
# Cells per hit above which hits are sorted rather than spread over a matrix with a row per query.
MOST_SPREAD = 4
# Words of 64 bits that are compared at once: 1 MB, which stays in the cache of a core.
WORDS_AT_ONCE = 1 << 17
# Whether NumPy counts bits: version 2 does.
COUNTS_BITS = hasattr(np, "bitwise_count")


@dataclass(frozen=True, slots=True)
class ScanBlock:
    """Vectors of a block, ready for products.

    Attributes:
        vectors: The vectors as they are given, for exact distances.
        values: The vectors minus the centre, or of length 1, or their bits; for :class:`BitScan` a row per word.
        low: Half of a lower bound of each square.
        high: Half of an upper bound of each square.
    """

    vectors: NDArray[Any]
    values: NDArray[Any]
    low: NDArray[np.float32]
    high: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NearestHits:
    """Neighbours of queries as columns, ordered by query, distance and row."""

    query: NDArray[np.int64]
    row: NDArray[np.int64]
    distance: NDArray[np.float64]

    @classmethod
    def none(cls) -> "NearestHits":
        """Return no neighbours."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))

    @classmethod
    def concat(cls, parts: Iterable["NearestHits"]) -> "NearestHits":
        """Return the neighbours of all parts, part by part."""
        held = [cls.none(), *parts]
        columns = (np.concatenate([getattr(part, name) for part in held]) for name in ("query", "row", "distance"))
        return cls(*columns)

    @classmethod
    def merge(cls, parts: Iterable["NearestHits"], top: int | None) -> "NearestHits":
        """Return the ``top`` nearest rows of each query among all parts; of equal distances the first rows.

        A row that several parts have counts once.
        """
        hits = cls.concat(parts)
        hits = hits.take(np.lexsort((hits.row, hits.distance, hits.query)))
        fresh = np.ones(len(hits.query), dtype=bool)
        fresh[1:] = (hits.query[1:] != hits.query[:-1]) | (hits.row[1:] != hits.row[:-1])
        return hits.take(np.flatnonzero(fresh)).first(top)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that :meth:`read` reads."""
        return {
            "query": self.query.astype(np.uint64),
            "row": self.row.astype(np.uint64),
            "distance": self.distance,
        }

    @classmethod
    def read(cls, file: ArrayFile) -> "NearestHits":
        """Return the neighbours of a file."""
        return cls(file.read("query").astype(np.int64), file.read("row").astype(np.int64), file.read("distance"))

    def take(self, indices: NDArray[np.int64]) -> "NearestHits":
        """Return the neighbours at these indices, in their order."""
        return NearestHits(self.query[indices], self.row[indices], self.distance[indices])

    def first(self, top: int | None) -> "NearestHits":
        """Return the first ``top`` of each query."""
        counts = np.bincount(self.query)
        if top is None or top >= counts.max(initial=0):
            return self
        starts = np.searchsorted(self.query, self.query, side="left")
        return self.take(np.flatnonzero(np.arange(len(starts)) - starts < top))

    def reach(self, queries: int, top: int, radius: float) -> NDArray[np.float64]:
        """Return the distance of the last wanted neighbour of each query; the radius where there are fewer."""
        counts = np.bincount(self.query, minlength=queries)
        last, complete = np.cumsum(counts) - 1, counts >= top
        reach = np.full(queries, radius)
        reach[complete] = self.distance[last[complete]]
        return reach

    def last_distances(self, queries: int, top: int) -> NDArray[np.float64]:
        """Return the distance of the ``top``-th neighbour of each query, in any order; infinite if there are fewer."""
        counts = np.bincount(self.query, minlength=queries)
        width = int(counts.max(initial=0))
        if width * queries > MOST_SPREAD * len(self.query):
            return NearestHits.merge([self], top).reach(queries, top, np.inf)
        # A stable sort of 16-bit numbers is a radix sort.
        order = np.argsort(self.query.astype(np.min_scalar_type(queries)), kind="stable")
        columns = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        apart = np.full((queries, max(top, width)), np.inf)
        apart[self.query[order], columns] = self.distance[order]
        last: NDArray[np.float64] = np.partition(apart, top - 1, axis=1)[:, top - 1]
        return last


class Workspace:
    """Memory that the blocks of one call share: fresh pages cost as much as the products in them.

    Calls of several threads must not share it.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[Any]] = {}

    def matrix(self, name: str, shape: tuple[int, int], kind: type[np.generic]) -> NDArray[Any]:
        """Return a matrix with undefined values; the next call with this name overwrites it."""
        size = shape[0] * shape[1]
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size, dtype=kind)
        return self._buffers[name][:size].reshape(shape)


class _NearestCollector:
    """The nearest vectors of queries so far.

    Hits are dropped, not sorted, when as many as are wanted have arrived since the last time. They are sorted once, at
    the end: sorting after each block took ten times as long as the products for the 1,000 nearest.

    Attributes:
        reach: For each query a distance below which further neighbours must be; infinite if all are wanted.
    """

    def __init__(self, queries: int, top: int | None) -> None:
        self.top, self.reach = top, np.full(queries, np.inf)
        self._parts: list[NearestHits] = []
        self._held, self._limit = 0, np.inf if top is None else 2 * top * queries

    def add(self, hits: NearestHits) -> None:
        """Add the hits of a block, whose rows come after those of all blocks before it."""
        if self.top is not None:
            hits = hits.take(np.flatnonzero(hits.distance < self.reach[hits.query]))
        self._parts.append(hits)
        self._held += len(hits.query)
        if self._held >= self._limit:
            self._drop_distant()

    def _drop_distant(self) -> None:
        """Drop what is farther than the last wanted neighbour; equally far ones stay until the end."""
        assert self.top is not None
        hits = NearestHits.concat(self._parts)
        self.reach = hits.last_distances(len(self.reach), self.top)
        self._parts = [hits.take(np.flatnonzero(hits.distance <= self.reach[hits.query]))]
        self._held = len(self._parts[0].query)
        self._limit = self._held + self.top * len(self.reach)

    def result(self) -> NearestHits:
        """Return the neighbours, ordered by query, distance and row; rows already ascend."""
        hits = NearestHits.concat(self._parts)
        query = hits.query.astype(np.min_scalar_type(len(self.reach)))
        return hits.take(np.lexsort((hits.distance, query))).first(self.top)


class Scan:
    """Exact comparison of all vectors of two blocks; several threads may use it at once.

    Args:
        measure: The distance.
        dims: Values per vector.
        sample: Vectors whose mean is the centre: the nearer vectors are to it, the smaller are rounding errors.
        threads: Number of threads; products use the threads of NumPy's BLAS.
    """

    def __init__(self, measure: Measure, dims: int, sample: NDArray[Any], threads: int) -> None:
        self.measure, self.threads = measure, threads
        dims = 8 * dims if measure == "hamming" else dims
        self._error = (dims + 16) * 2.0**-22 if dims <= MAX_VALUES else np.inf
        self._tiny = np.float32((dims + 16) * 2.0**-125)
        with np.errstate(all="ignore"):
            centre = (
                sample.mean(axis=0, dtype=np.float64).astype(np.float32) if len(sample) else np.zeros(sample.shape[1])
            )
        self._centre = np.where(np.isfinite(centre), centre, 0).astype(np.float32)

    @np.errstate(all="ignore")
    def block(self, vectors: NDArray[Any]) -> ScanBlock:
        """Return vectors, all of which can be used, as a block."""
        values = self._values(vectors)
        squares = np.einsum("ij,ij->i", values, values) / 2
        squares[~np.isfinite(squares)] = np.nan
        low, high = squares * (1 - self._error), squares * (1 + self._error)
        return ScanBlock(vectors, values, low.astype(np.float32), high.astype(np.float32))

    def _values(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        """Return the values whose products are taken; bits differ as often as the square of 0 and 1 says."""
        if self.measure == "hamming":
            return np.unpackbits(vectors, axis=1).astype(np.float32)
        return self._unit(vectors) if self.measure == "cosine" else np.subtract(vectors, self._centre)

    def _unit(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        wide = vectors.astype(np.float64)
        wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
        return wide.astype(np.float32)

    def _bounds(self, distance: NDArray[np.float64]) -> NDArray[Any]:
        """Return half of the squared distance, rounded up; 1 − cos θ is half of the square of a chord."""
        halves = {"cosine": distance, "hamming": distance / 2}.get(self.measure, distance * distance / 2)
        return (halves * (1 + 2.0**-20)).astype(np.float32)

    def _products(self, left: ScanBlock, right: ScanBlock, space: Workspace) -> NDArray[Any]:
        """Return the products of two blocks."""
        products = space.matrix("products", (len(left.vectors), len(right.vectors)), np.float32)
        return np.matmul(left.values, right.values.T, out=products)

    @np.errstate(all="ignore")
    def pairs(self, left: ScanBlock, right: ScanBlock, radius: float, space: Workspace) -> PairBlock:
        """Return the pairs within the radius by index; ``low`` is an index of ``left``, ``high`` one of ``right``.

        If both are the same block, only pairs with ``low < high`` are returned.
        """
        products = self._products(left, right, space)
        bounds = self._bounds(np.full(len(left.vectors), radius))
        rows, columns = self._select(products, left, right, bounds)
        if left is right:
            rows, columns = rows[rows < columns], columns[rows < columns]
        return self._compare(products, left, right, rows, columns, radius)

    def _select(
        self, products: NDArray[Any], left: ScanBlock, right: ScanBlock, bounds: NDArray[Any]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return row and column of the products whose distance may be within the bound of their row."""
        return _kernel.select_products(products, left.low - bounds - self._tiny, right.low, self.threads)

    def _compare(
        self,
        products: NDArray[Any],
        left: ScanBlock,
        right: ScanBlock,
        rows: NDArray[np.uint32],
        columns: NDArray[np.uint32],
        radius: float,
    ) -> PairBlock:
        """Return the selected pairs that are within the radius, with their exact distance."""
        distance = _kernel.vector_distances(
            left.vectors, right.vectors, rows, columns, self.measure, radius, self.threads
        )
        return PairBlock(rows, columns, distance).where(~np.isnan(distance))

    @np.errstate(all="ignore")
    def nearest(self, queries: ScanBlock, blocks: Iterable[ScanBlock], radius: float, top: int | None) -> NearestHits:
        """Return the ``top`` nearest vectors of each query within the radius; rows count over all blocks."""
        found, space, first = _NearestCollector(len(queries.vectors), top), Workspace(), 0
        bounds = self._bounds(np.full(len(queries.vectors), radius))
        for block in blocks:
            products = self._products(queries, block, space)
            if top is not None and first == 0:
                some = products[:, : max(BOUND_COLUMNS, 4 * top)]
                bounds = np.fmin(bounds, self._last(some, queries, block, top))
            rows, columns = self._select(products, queries, block, bounds)
            if top is not None and len(rows) > MOST_SELECTED * top * len(bounds):
                bounds = np.fmin(bounds, self._last(products, queries, block, top))
                rows, columns = self._select(products, queries, block, bounds)
            near = self._compare(products, queries, block, rows, columns, radius)
            found.add(NearestHits(near.low.astype(np.int64), near.high.astype(np.int64) + first, near.similarity))
            bounds = np.fmin(bounds, self._bounds(found.reach))
            first += len(block.vectors)
        return found.result()

    def _last(self, products: NDArray[Any], queries: ScanBlock, block: ScanBlock, top: int) -> NDArray[Any]:
        """Return a bound that contains the ``top`` nearest of each query among these products."""
        columns = products.shape[1]
        if top > columns:
            return np.full(len(products), np.inf, dtype=np.float32)
        farthest = np.partition(block.high[:columns] - products, top - 1, axis=1)[:, top - 1]
        return farthest + queries.high + self._tiny


class BitScan(Scan):
    """Exact comparison of all bit vectors of two blocks. Instead of products it has the numbers of bits that differ."""

    def block(self, vectors: NDArray[Any]) -> ScanBlock:
        """Return vectors as a block of 64-bit words, with a row per word."""
        padded = np.zeros((len(vectors), -(-vectors.shape[1] // 8) * 8), dtype=np.uint8)
        padded[:, : vectors.shape[1]] = vectors
        none = np.empty(0, dtype=np.float32)
        return ScanBlock(vectors, np.ascontiguousarray(padded.view(np.uint64).T), none, none)

    def _products(self, left: ScanBlock, right: ScanBlock, space: Workspace) -> NDArray[Any]:
        """Return the number of bits in which each two vectors differ."""
        shape = len(left.vectors), len(right.vectors)
        counts = space.matrix("counts", shape, np.min_scalar_type(64 * len(left.values)).type)
        step = max(1, WORDS_AT_ONCE // shape[1])
        for start in range(0, shape[0], step):
            part = counts[start : start + step]
            differing = space.matrix("differing", part.shape, np.uint64)
            for word, (one, other) in enumerate(zip(left.values, right.values, strict=True)):
                np.bitwise_xor(one[start : start + step, None], other, out=differing)
                if word == 0:
                    np.bitwise_count(differing, out=part)
                else:
                    part += np.bitwise_count(differing)
        return counts

    def _bounds(self, distance: NDArray[np.float64]) -> NDArray[Any]:
        return distance

    def _select(
        self, products: NDArray[Any], left: ScanBlock, right: ScanBlock, bounds: NDArray[Any]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        most = np.clip(bounds, 0, np.iinfo(products.dtype).max).astype(products.dtype)
        rows, columns = np.divmod(np.flatnonzero(products <= most[:, None]), products.shape[1])
        return rows.astype(np.uint32), columns.astype(np.uint32)

    def _compare(
        self,
        products: NDArray[Any],
        left: ScanBlock,
        right: ScanBlock,
        rows: NDArray[np.uint32],
        columns: NDArray[np.uint32],
        radius: float,
    ) -> PairBlock:
        return PairBlock(rows, columns, products[rows, columns].astype(np.float64))

    def _last(self, products: NDArray[Any], queries: ScanBlock, block: ScanBlock, top: int) -> NDArray[Any]:
        if top > products.shape[1]:
            return np.full(len(products), np.inf)
        return np.partition(products, top - 1, axis=1)[:, top - 1].astype(np.float64)


def make_scan(measure: Measure, dims: int, sample: NDArray[Any], threads: int) -> Scan:
    """Return the scan of a measure; the arguments are those of :class:`Scan`."""
    family = BitScan if measure == "hamming" and COUNTS_BITS else Scan
    return family(measure, dims, sample, threads)


def values_per_row(measure: Measure, dims: int) -> int:
    """Return the number of 32-bit values that a scan holds of a vector, at most."""
    return 8 * dims if measure == "hamming" and not COUNTS_BITS else dims


def row_blocks(rows: int, values: int, first: int = 0) -> Iterator[slice]:
    """Yield the rows from ``first`` on in blocks that are scanned together; ``values`` is what a row holds."""
    step = int(np.clip(BLOCK_VALUES // values, MIN_BLOCK_ROWS, BLOCK_ROWS))
    return (slice(start, min(rows, start + step)) for start in range(first, rows, step))
