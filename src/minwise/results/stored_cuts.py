"""Cuts of a finished run, from its ``cuts.parquet``: which documents were cut, and edits that cut them again."""

from collections import Counter
from collections.abc import Container, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, to_numpy
from minwise.results.finished_run import FinishedRun, RowStatus
from minwise.search.cuts import CutEdits
from minwise.search.passages import DOCUMENT_BITS

__all__ = ["CUTS", "StoredCuts", "has_cuts"]

CUTS = "cuts.parquet"


def has_cuts(run: FinishedRun) -> bool:
    """Return whether a run has a table of cuts."""
    return (run.folder / CUTS).is_file()


class StoredCuts:
    """Cuts of the kept documents of a run, of which some are undone. Memory is 12 bytes per cut.

    Attributes:
        ids: How many cut documents have each of the ids that are undone, as text.
    """

    def __init__(self, run: FinishedRun, status: RowStatus, undone: Container[str] = ()) -> None:
        """Read the cuts of a run.

        Args:
            run: The run.
            status: The rows of the run, with which no document is restored yet.
            undone: Ids of documents whose cuts are undone.
        """
        self._run, self._status = run, status
        self.ids: Counter[str] = Counter()
        keys, ends = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.uint32)]
        self._undone = np.zeros(len(status.kept), dtype=np.bool_)
        for batch in run.batches(CUTS, ["id", "source", "row", "start", "end"]):
            numbers = status.numbers(batch, CUTS)
            self._note_ids(batch, numbers, undone)
            wanted = status.kept[numbers] & ~self._undone[numbers]
            starts, stops = (to_numpy(batch.column(name)).astype(np.uint64) for name in ("start", "end"))
            keys.append((numbers.astype(np.uint64) << DOCUMENT_BITS | starts)[wanted])
            ends.append(stops[wanted].astype(np.uint32))
        self._keys, self._ends = np.concatenate(keys), np.concatenate(ends)

    def _note_ids(self, batch: pa.RecordBatch, numbers: NDArray[np.int64], undone: Container[str]) -> None:
        """Mark the documents of a piece of the table whose cuts are undone."""
        for number, identity in zip(numbers.tolist(), batch.column("id").to_pylist(), strict=True):
            if identity is not None and str(identity) in undone and not self._undone[number]:
                self._undone[number] = True
                self.ids[str(identity)] += int(self._status.kept[number])

    def edits(self, start: int, end: int) -> CutEdits:
        """Return the cuts of the rows from ``start`` up to ``end``, which are those of a source."""
        bounds = np.array([start, end], dtype=np.uint64) << DOCUMENT_BITS
        own = slice(*np.searchsorted(self._keys, bounds).tolist())
        return CutEdits(self._run.columns.text, self._keys[own] - bounds[0], self._ends[own])

    def left(self) -> Iterator[pa.Table]:
        """Yield the cuts that are not undone."""
        for batch in self._run.batches(CUTS):
            left = ~self._undone[self._status.numbers(batch, CUTS)]
            yield pa.Table.from_batches([batch]).filter(from_bools(left))
