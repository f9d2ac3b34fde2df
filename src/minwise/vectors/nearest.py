"""Near: vectors and queries in, for each query those near it out; block by block, so that memory is bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, matrix_of
from minwise.errors import InputError
from minwise.inputs.source import Fault
from minwise.progress import Progress
from minwise.search.bands import KeyBlock
from minwise.search.workdir import Work
from minwise.settings import Limits
from minwise.vectors.projection import VectorBander, VectorSettings
from minwise.vectors.sources import VectorSource

__all__ = ["SCHEMA", "Faults", "NearSearch"]

SCHEMA = pa.schema([("query", pa.int64()), ("neighbour", pa.int64()), ("distance", pa.float64())])
# Queries that are answered together.
QUERIES = 4096
# Faults that a report names.
SHOWN = 100


@dataclass(slots=True)
class Faults:
    """The rows that can not be used: how many, and the first of them."""

    on_error: str
    count: int = 0
    shown: list[Fault] = field(default_factory=list)

    def add(self, faults: list[Fault]) -> None:
        """Counts them.

        Raises:
            InputError: If there are any and ``on_error`` is ``fail``.
        """
        if faults and self.on_error == "fail":
            raise InputError(f"{faults[0]}; on-error quarantine goes on without it")
        self.count += len(faults)
        self.shown.extend(faults[: SHOWN - len(self.shown)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a note."""
        return {"count": self.count, "shown": [[one.source, one.row, one.reason] for one in self.shown]}

    def recall(self, noted: dict[str, Any]) -> None:
        """Takes over what was noted."""
        self.count, self.shown = noted["count"], [Fault(*one) for one in noted["shown"]]


@dataclass(frozen=True, slots=True)
class _Block:
    """Vectors that follow each other, with the keys of their tables."""

    first: int
    vectors: NDArray[Any]
    keys: NDArray[np.uint64]


class NearSearch:
    """Answers queries from the tables of vectors.

    A query looks at every member of its buckets, however many: no cap, so that the answer does not depend on how the
    vectors are cut into blocks. It never costs more than comparing it with all.
    """

    def __init__(self, source: VectorSource, settings: VectorSettings, limits: Limits, faults: Faults) -> None:
        self.source, self.settings, self.limits, self.faults = source, settings, limits, faults
        self.bander = VectorBander(settings, source.dims)
        row_bytes = 4 * source.dims + 40 * settings.plan.bands + 16
        self.block_rows = max(1024, limits.memory // 4 // row_bytes)
        self._whole: tuple[_Block, _kernel.VectorTables] | None = None

    def _blocks(self, source: VectorSource, rows: int, faults: Faults) -> Iterator[_Block]:
        """The vectors with their keys, as many at a time as ``rows``."""
        held: list[_Block] = []
        waiting = 0
        for batch in source.blocks(min(self.limits.batch_bytes, 4 * source.dims * rows)):
            if not len(batch):
                faults.add(list(batch.faults))
                continue
            block = KeyBlock.of(self.settings, len(batch))
            found = self.bander.band(batch.texts, block, self.limits.threads)
            located = [Fault(source.name, batch.first + place, why) for place, why in found]
            faults.add(sorted([*batch.faults, *located], key=lambda fault: fault.row or 0))
            held.append(_Block(batch.first, matrix_of(batch.texts), block.keys))
            waiting += len(batch)
            if waiting >= rows:
                yield _joined(held, source)
                held, waiting = [], 0
        if held:
            yield _joined(held, source)

    def _tables(self) -> Iterator[tuple[_Block, "_kernel.VectorTables"]]:
        """The tables of all vectors, block by block; remembered if there is just one."""
        if self._whole is not None:
            yield self._whole
            return
        self.faults = faults = Faults(self.faults.on_error)
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
        work: Work,
        progress: Progress,
        faults: Faults,
    ) -> Iterator[pa.Table]:
        """The answers, query after query, the nearest first; finished pieces are left in the work directory."""
        if not work.has("answered"):
            self._spill(queries, radius, top, work, progress, faults)
            work.note("answered", {"vectors": self.faults.to_dict(), "queries": faults.to_dict()})
        else:  # by an earlier run, which saw what can not be used
            note = work.read_note("answered")
            self.faults.recall(note["vectors"])
            faults.recall(note["queries"])
        for number in range(-(-queries.rows // QUERIES)):
            yield from _merged(work, number, top)

    def compared(self, work: Work) -> int:
        """How many comparisons the answers took."""
        return sum(int(work.open(name).header["compared"]) for name in work.names("near-"))

    def _spill(
        self, queries: VectorSource, radius: float, top: int | None, work: Work, progress: Progress, faults: Faults
    ) -> None:
        cuts = {"rows": self.block_rows, "batch_bytes": self.limits.batch_bytes}
        if work.has("blocks") and work.read_note("blocks") != cuts:
            work.forget("near-")  # of a run with another memory limit, whose blocks were others
        work.note("blocks", cuts)
        with progress.stage("compare", self.source.rows, "documents") as stage:
            for number, (block, tables) in enumerate(self._tables()):
                told = faults if number == 0 else Faults("skip")
                for part, asking in enumerate(self._blocks(queries, QUERIES, told)):
                    self._ask(f"near-{part:06}-{number:06}", work, block, tables, asking, radius, top)
                stage.advance(len(block.vectors))

    def _ask(
        self,
        name: str,
        work: Work,
        block: _Block,
        tables: "_kernel.VectorTables",
        asking: _Block,
        radius: float,
        top: int | None,
    ) -> None:
        if work.has(name):
            return
        counts, rows, distances, compared = tables.nearest(
            block.vectors,
            asking.vectors,
            asking.keys,
            self.settings.measure == "cosine",
            radius,
            top or 2**62,
            self.limits.threads,
        )
        query = np.repeat(np.arange(asking.first, asking.first + len(counts), dtype=np.uint64), counts.astype(np.int64))
        found = {"query": query, "row": rows.astype(np.uint64) + np.uint64(block.first), "distance": distances}
        work.write(name, found, compared=compared)


def _joined(blocks: list[_Block], source: VectorSource) -> _Block:
    """Blocks that follow each other as one, without a copy of the vectors where they lie as one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    first, rows = blocks[0].first, sum(len(block.vectors) for block in blocks)
    if source.matrix is not None:
        vectors = source.matrix[first : first + rows]
    else:
        vectors = np.concatenate([block.vectors for block in blocks])
    keys = np.concatenate([block.keys for block in blocks], axis=1)
    return _Block(blocks[0].first, vectors, np.ascontiguousarray(keys))


def _merged(work: Work, number: int, top: int | None) -> Iterator[pa.Table]:
    """The answers of some queries from all blocks of vectors."""
    pieces = [work.open(name) for name in work.names(f"near-{number:06}-")]
    if not pieces:
        return
    query, row, distance = (
        np.concatenate([piece.read(name) for piece in pieces]) for name in ("query", "row", "distance")
    )
    order = np.lexsort((row, distance, query))
    query, row, distance = query[order], row[order], distance[order]
    if top is not None:
        starts = np.searchsorted(query, query, side="left")
        near = np.arange(len(query)) - starts < top
        query, row, distance = query[near], row[near], distance[near]
    columns = [from_numpy(query.astype(np.int64)), from_numpy(row.astype(np.int64)), from_numpy(distance)]
    yield pa.table(columns, schema=SCHEMA)
