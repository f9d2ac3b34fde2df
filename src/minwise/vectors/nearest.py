"""Nearest-neighbour search: for each query, the vectors near it.

Vectors are searched block by block, so that memory is bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_matrix
from minwise.inputs.source import Fault, FaultLog
from minwise.progress import Progress
from minwise.search.bands import KeyBlock
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits
from minwise.vectors.projection import VectorBander, VectorSettings
from minwise.vectors.sources import VectorSource

__all__ = ["NEIGHBOUR_SCHEMA", "NearestSearch"]

NEIGHBOUR_SCHEMA = pa.schema([("query", pa.int64()), ("neighbour", pa.int64()), ("distance", pa.float64())])
# Queries that are answered together.
QUERY_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class _VectorBlock:
    """Consecutive vectors with their keys; ``first`` is the row of the first one."""

    first: int
    vectors: NDArray[Any]
    keys: NDArray[np.uint64]


class NearestSearch:
    """Hash tables of vectors that answer queries.

    A query is compared with every member of its buckets, without a cap, so that the answer does not depend on how the
    vectors are split into blocks. The cost never exceeds that of a comparison with all vectors.

    Args:
        source: The vectors to search.
        settings: The layout of the tables.
        limits: Memory and threads.
        faults: Collects the vectors that cannot be used.
    """

    def __init__(self, source: VectorSource, settings: VectorSettings, limits: RunLimits, faults: FaultLog) -> None:
        self.source, self.settings, self.limits, self.faults = source, settings, limits, faults
        self.bander = VectorBander(settings, source.dims)
        row_bytes = 4 * source.dims + 40 * settings.plan.bands + 16
        self.block_rows = max(1024, limits.memory // 4 // row_bytes)
        self._whole: tuple[_VectorBlock, _kernel.VectorTables] | None = None

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
            held.append(_VectorBlock(batch.first, to_matrix(batch.values), block.keys))
            held_rows += len(batch)
            if held_rows >= rows:
                yield _concatenate(held, source)
                held, held_rows = [], 0
        if held:
            yield _concatenate(held, source)

    def _tables(self) -> Iterator[tuple[_VectorBlock, "_kernel.VectorTables"]]:
        """Yield each block of vectors with its tables; kept for the next query if one block holds all vectors."""
        if self._whole is not None:
            yield self._whole
            return
        self.faults = faults = FaultLog(self.faults.on_error)
        for block in self._blocks(self.source, self.block_rows, faults):
            tables = _kernel.VectorTables(block.keys, self.limits.threads)
            if len(block.vectors) == self.source.rows:
                self._whole = block, tables
            yield block, tables

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
            yield from _merge_blocks(work, number, top)

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
        with progress.stage("compare", self.source.rows, "documents") as stage:
            for number, (block, tables) in enumerate(self._tables()):
                query_faults = faults if number == 0 else FaultLog("skip")  # counted with the first block only
                for part, query_block in enumerate(self._blocks(queries, QUERY_BLOCK, query_faults)):
                    name = f"near-{part:06}-{number:06}"
                    if not work.has(name):
                        found, compared = self._nearest(block, tables, query_block, radius, top)
                        work.write(name, found, compared=compared)
                stage.advance(len(block.vectors))

    def _nearest(
        self,
        block: _VectorBlock,
        tables: "_kernel.VectorTables",
        queries: _VectorBlock,
        radius: float,
        top: int | None,
    ) -> tuple[dict[str, NDArray[Any]], int]:
        """Return the neighbours of some queries in one block, and the number of distances that were computed."""
        counts, rows, distances, compared = tables.nearest(
            block.vectors,
            queries.vectors,
            queries.keys,
            self.settings.measure == "cosine",
            radius,
            top or 2**62,
            self.limits.threads,
        )
        numbers = np.arange(queries.first, queries.first + len(counts), dtype=np.uint64)
        query = np.repeat(numbers, counts.astype(np.int64))
        row = rows.astype(np.uint64) + np.uint64(block.first)
        return {"query": query, "row": row, "distance": distances}, compared


def _concatenate(blocks: list[_VectorBlock], source: VectorSource) -> _VectorBlock:
    """Return consecutive blocks as one; vectors of a source with a matrix are not copied."""
    if len(blocks) == 1:
        return blocks[0]
    first, rows = blocks[0].first, sum(len(block.vectors) for block in blocks)
    if source.matrix is not None:
        vectors = source.matrix[first : first + rows]
    else:
        vectors = np.concatenate([block.vectors for block in blocks])
    keys = np.concatenate([block.keys for block in blocks], axis=1)
    return _VectorBlock(first, vectors, np.ascontiguousarray(keys))


def _merge_blocks(work: WorkDirectory, number: int, top: int | None) -> Iterator[pa.Table]:
    """Yield the neighbours of a block of queries among all blocks of vectors."""
    files = [work.open(name) for name in work.names(f"near-{number:06}-")]
    if not files:
        return
    query, row, distance = (
        np.concatenate([file.read(name) for file in files]) for name in ("query", "row", "distance")
    )
    order = np.lexsort((row, distance, query))
    query, row, distance = query[order], row[order], distance[order]
    if top is not None:
        starts = np.searchsorted(query, query, side="left")
        nearest = np.arange(len(query)) - starts < top
        query, row, distance = query[nearest], row[nearest], distance[nearest]
    columns = [from_numpy(query.astype(np.int64)), from_numpy(row.astype(np.int64)), from_numpy(distance)]
    yield pa.table(columns, schema=NEIGHBOUR_SCHEMA)
