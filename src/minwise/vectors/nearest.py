"""Nearest-neighbour search: for each query, the vectors near it.

Vectors are searched block by block, so that memory is bounded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_matrix
from minwise.inputs.source import Fault, FaultLog
from minwise.progress import Progress
from minwise.search.bands import NO_KEY, KeyBlock
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits
from minwise.vectors.projection import Measure, VectorBander, VectorSettings
from minwise.vectors.scan import NearestHits, Scan, ScanBlock, make_scan, row_blocks, values_per_row
from minwise.vectors.sources import VectorSource

__all__ = ["NEIGHBOUR_SCHEMA", "NearestSearch"]

NEIGHBOUR_SCHEMA = pa.schema([("query", pa.int64()), ("neighbour", pa.int64()), ("distance", pa.float64())])
# Queries that are answered together.
QUERY_BLOCK = 4096
# Values per wanted neighbour by which queries are split: what a scan holds of them then stays in the cache. For the
# 1,000 nearest, 262 queries at a time took 0.66 times as long as 2,000.
HELD_VALUES = 16


@dataclass(frozen=True)
class _VectorBlock:
    """Consecutive vectors with their keys; ``first`` is the row of the first one.

    Tables and scan are made once and used for all queries.
    """

    first: int
    vectors: NDArray[Any]
    keys: NDArray[np.uint64]
    measure: Measure
    threads: int

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """A flag per vector that has keys."""
        return self.keys[0] != NO_KEY  # type: ignore[no-any-return]

    @cached_property
    def tables(self) -> "_kernel.VectorTables":
        """The hash tables."""
        return _kernel.VectorTables(self.keys, self.threads)

    @cached_property
    def scan(self) -> tuple[Scan, list[ScanBlock]]:
        """The usable vectors in parts that are ready for a scan."""
        vectors = self.vectors if self.usable.all() else self.vectors[self.usable]
        dims = vectors.shape[1]
        scan = make_scan(self.measure, dims, vectors[:QUERY_BLOCK], self.threads)
        return scan, [
            scan.block(vectors[rows]) for rows in row_blocks(len(vectors), values_per_row(self.measure, dims))
        ]


class _Compared(NamedTuple):
    """Neighbours, and the number of distances that were computed."""

    hits: NearestHits
    compared: int


class NearestSearch:
    """Search for the nearest vectors of queries, by hash tables or by a scan.

    A query is compared with every member of its buckets, without a cap, so that the answer does not depend on how the
    vectors are split into blocks. If its ``top`` neighbours are not all near enough to be found with the recall, the
    query is then compared with all vectors.

    Args:
        source: The vectors to search.
        settings: The layout of the tables, or a scan.
        recall: Probability that one of the nearest ``top`` is found.
        limits: Memory and threads.
        faults: Collects the vectors that cannot be used.
    """

    def __init__(
        self, source: VectorSource, settings: VectorSettings, recall: float, limits: RunLimits, faults: FaultLog
    ) -> None:
        self.source, self.settings, self.recall, self.limits, self.faults = source, settings, recall, limits, faults
        self.bander = VectorBander(settings, source.dims)
        self.row_values = values_per_row(settings.measure, source.dims)
        row_bytes = 4 * (2 * source.dims + self.row_values) + 40 * settings.plan.bands + 16
        self.block_rows = max(1024, limits.memory // 4 // row_bytes)
        self._whole: _VectorBlock | None = None

    def _blocks(self, source: VectorSource, rows: int, faults: FaultLog) -> Iterator[_VectorBlock]:
        """Yield the vectors with their keys, about ``rows`` at a time."""
        held: list[_VectorBlock] = []
        held_rows = 0
        for batch in source.blocks(min(self.limits.batch_bytes, 4 * source.dims * rows)):
            if not len(batch):
                faults.add(list(batch.faults))
                continue
            block = KeyBlock.allocate(self.settings, len(batch))
            invalid = self.bander.band(batch.values, block, self.limits.threads)
            located = [Fault(source.name, batch.first + index, reason) for index, reason in invalid]
            faults.add(sorted([*batch.faults, *located], key=lambda fault: fault.row or 0))
            held.append(self._block(batch.first, to_matrix(batch.values), block.keys))
            held_rows += len(batch)
            if held_rows >= rows:
                yield self._joined(held, source)
                held, held_rows = [], 0
        if held:
            yield self._joined(held, source)

    def _block(self, first: int, vectors: NDArray[Any], keys: NDArray[np.uint64]) -> _VectorBlock:
        return _VectorBlock(first, vectors, keys, self.settings.measure, self.limits.threads)

    def _joined(self, blocks: list[_VectorBlock], source: VectorSource) -> _VectorBlock:
        """Return consecutive blocks as one; vectors of a source with a matrix are not copied."""
        if len(blocks) == 1:
            return blocks[0]
        first, rows = blocks[0].first, sum(len(block.vectors) for block in blocks)
        if source.matrix is not None:
            vectors = source.matrix[first : first + rows]
        else:
            vectors = np.concatenate([block.vectors for block in blocks])
        keys = np.concatenate([block.keys for block in blocks], axis=1)
        return self._block(first, vectors, np.ascontiguousarray(keys))

    def _vector_blocks(self) -> Iterator[_VectorBlock]:
        """Yield each block of vectors; kept for the next query if one block holds all vectors."""
        if self._whole is not None:
            yield self._whole
            return
        faults = FaultLog(self.faults.on_error)
        for block in self._blocks(self.source, self.block_rows, faults):
            if len(block.vectors) == self.source.rows:
                self.faults, self._whole = faults, block  # faults first: other threads may read both
            yield block
        self.faults = faults

    def answer(
        self,
        queries: VectorSource,
        radius: float,
        top: int | None,
        work: WorkDirectory,
        progress: Progress,
        faults: FaultLog,
    ) -> Iterator[pa.Table]:
        """Yield the neighbours in the order of the queries, nearest first.

        Args:
            queries: The queries.
            radius: Maximum distance of a neighbour.
            top: Maximum number of neighbours of a query; None for all.
            work: Work directory; keeps finished blocks, so that an interrupted search resumes.
            progress: Receives progress events.
            faults: Collects the queries that cannot be used.
        """
        if not work.has("answered"):
            self._write_neighbours(queries, radius, top, work, progress, faults)
            work.write_json("answered", {"vectors": self.faults.to_dict(), "queries": faults.to_dict()})
        else:  # an earlier run has finished; its faults are reported again
            finished = work.read_json("answered")
            self.faults.restore(finished["vectors"])
            faults.restore(finished["queries"])
        for number in range(-(-queries.rows // QUERY_BLOCK)):
            hits = _merge_files(work, work.names(f"near-{number:06}-"), top)
            columns = [from_numpy(hits.query), from_numpy(hits.row), from_numpy(hits.distance)]
            yield pa.table(columns, schema=NEIGHBOUR_SCHEMA)

    def recall_of(self, radius: float | None, top: int | None) -> float:
        """Return the least probability that a neighbour is found."""
        if self.settings.scan:
            return 1.0
        within = 0.0 if radius is None else self.settings.probability(radius)
        return within if top is None else max(within, self.recall)

    def compared(self, work: WorkDirectory) -> int:
        """Return the number of distances that were computed for the answers."""
        return sum(int(work.open(name).header["compared"]) for name in work.names("near-"))

    def _write_neighbours(
        self,
        queries: VectorSource,
        radius: float,
        top: int | None,
        work: WorkDirectory,
        progress: Progress,
        faults: FaultLog,
    ) -> None:
        block_sizes = {"rows": self.block_rows, "batch_bytes": self.limits.batch_bytes}
        if work.has("blocks") and work.read_json("blocks") != block_sizes:
            work.delete("near-")  # written with another memory limit, and so with other blocks
        work.write_json("blocks", block_sizes)
        if not self.source.rows:
            self._check_queries(queries, faults)
            return

        def look_up(block: _VectorBlock, asking: _VectorBlock, part: int) -> _Compared:
            return self._look_up(block, asking, radius, top)

        def scan(block: _VectorBlock, asking: _VectorBlock, part: int) -> _Compared:
            chosen = np.flatnonzero(asking.usable)
            if not self.settings.scan:
                chosen = np.intersect1d(chosen, unfinished[part], assume_unique=True)
            return self._scan(block, asking, chosen, radius, top)

        if self.settings.scan:
            self._compare_blocks("scan", scan, queries, work, progress, faults)
            return
        self._compare_blocks("tables", look_up, queries, work, progress, faults)
        unfinished = [] if top is None else self._unfinished(work, radius, top)
        if any(len(rows) for rows in unfinished):
            self._compare_blocks("scan", scan, queries, work, progress, FaultLog("skip"))

    def _check_queries(self, queries: VectorSource, faults: FaultLog) -> None:
        """Collect the queries that cannot be used; without vectors, their length does not matter."""
        search = NearestSearch(queries, self.settings, self.recall, self.limits, faults)
        for _ in search._blocks(queries, QUERY_BLOCK, faults):
            pass

    def _compare_blocks(
        self,
        method: Literal["tables", "scan"],
        compare: Callable[[_VectorBlock, _VectorBlock, int], _Compared],
        queries: VectorSource,
        work: WorkDirectory,
        progress: Progress,
        faults: FaultLog,
    ) -> None:
        """Compare each block of queries with each block of vectors, and write the neighbours."""
        with progress.stage("compare", self.source.rows, "documents") as stage:
            for number, block in enumerate(self._vector_blocks()):
                query_faults = faults if number == 0 else FaultLog("skip")  # counted with the first block only
                for part, asking in enumerate(self._blocks(queries, QUERY_BLOCK, query_faults)):
                    name = f"near-{part:06}-{method}-{number:06}"
                    if not work.has(name):
                        hits, compared = compare(block, asking, part)
                        header = {"first": asking.first, "queries": len(asking.vectors)}
                        work.write(name, hits.arrays(), compared=compared, **header)
                stage.advance(len(block.vectors))

    def _unfinished(self, work: WorkDirectory, radius: float, top: int) -> list[NDArray[np.int64]]:
        """Return, for each block of queries, the queries with a neighbour that tables find too rarely.

        The true neighbours of a query are at most as far away as those that were found. So if the last of these has a
        probability of at least the recall, each of the true ones was found with such a probability.
        """
        unfinished: list[NDArray[np.int64]] = []
        while names := work.names(f"near-{len(unfinished):06}-tables-"):
            header = work.open(names[0]).header
            hits = _merge_files(work, names, top)
            local = NearestHits(hits.query - header["first"], hits.row, hits.distance)
            reach = local.reach(header["queries"], top, radius)
            probability = np.array([self.settings.probability(distance) for distance in reach.tolist()])
            unfinished.append(np.flatnonzero(probability < self.recall))
        return unfinished

    def _look_up(self, block: _VectorBlock, asking: _VectorBlock, radius: float, top: int | None) -> _Compared:
        """Return the neighbours of some queries among those of a block that share a bucket with them."""
        counts, rows, distances, compared = block.tables.nearest(
            block.vectors,
            asking.vectors,
            asking.keys,
            self.settings.measure,
            radius,
            top or 2**62,
            self.limits.threads,
        )
        query = np.repeat(np.arange(asking.first, asking.first + len(counts)), counts.astype(np.int64))
        return _Compared(NearestHits(query, rows.astype(np.int64) + block.first, distances), compared)

    def _scan(
        self, block: _VectorBlock, asking: _VectorBlock, chosen: NDArray[np.int64], radius: float, top: int | None
    ) -> _Compared:
        """Return the neighbours of the chosen queries among all vectors of a block."""
        if not len(chosen):
            return _Compared(NearestHits.none(), 0)
        scan, ready = block.scan
        rows, found = np.flatnonzero(block.usable), []
        for part in row_blocks(len(chosen), max(self.row_values, HELD_VALUES * (top or 0))):
            hits = scan.nearest(scan.block(asking.vectors[chosen[part]]), ready, radius, top)
            query, row = asking.first + chosen[part][hits.query], block.first + rows[hits.row]
            found.append(NearestHits(query, row, hits.distance))
        return _Compared(NearestHits.concat(found), len(chosen) * len(rows))


def _merge_files(work: WorkDirectory, names: list[str], top: int | None) -> NearestHits:
    """Return the neighbours of a block of queries in all of these files, each of which is in order."""
    parts = [NearestHits.read(work.open(name)) for name in names]
    return parts[0] if len(parts) == 1 else NearestHits.merge(parts, top)
