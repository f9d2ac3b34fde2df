"""Sets: collections of elements in memory as a source, whose texts are the hashed elements themselves."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.formats.arrays import from_numpy
from minwise.formats.source import Batch, Columns, Source
from minwise.stages.shingle import ShingleSets

__all__ = ["SetsSource"]


class SetsSource(Source):
    """Sets in memory; a set's id is its number."""

    def __init__(self, sets: ShingleSets) -> None:
        self.name = ""
        self._sets = sets

    def fingerprint(self) -> dict[str, object]:
        """Number of sets and elements."""
        return {"name": "", "bytes": self.size_bytes(), "modified": None}

    def size_bytes(self) -> int:
        """Bytes of the hashed elements."""
        return int(self._sets.hashes.nbytes)

    def known_rows(self) -> int:
        """How many sets there are."""
        return len(self._sets)

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        column, offsets = self._sets.to_arrow(), self._sets.offsets
        start = 0
        while start < len(self._sets):
            end = int(np.searchsorted(offsets, offsets[start] + batch_bytes // 8, side="right")) - 1
            end = min(max(end, start + 1), len(self._sets))
            yield Batch(start, column.slice(start, end - start))
            start = end

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The sets' numbers."""
        return from_numpy(rows.astype(np.int64))

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Sets have no file to copy."""
        raise ConfigError("output must be left out for sets in memory; use .removed and .keep")

    def kept_table(self, keep: NDArray[np.bool_]) -> pa.Table:
        """The numbers of the kept sets."""
        return pa.table({"id": from_numpy(np.flatnonzero(keep))})
