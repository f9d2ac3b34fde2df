"""Sets: collections of elements in memory as a source, whose texts are the hashed elements themselves."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.arrays import flags, from_numpy
from minwise.formats.columns import is_text
from minwise.formats.source import Batch, Columns, Source, Unreadable
from minwise.formats.tables_out import write_tables
from minwise.stages.shingle import ShingleSets

__all__ = ["SetsSource"]


class SetsSource(Source):
    """Sets in memory. Without a table, or without an id column in it, a set's id is its number.

    Attributes:
        table: The table that the sets are a column of, if they are.
    """

    def __init__(self, sets: ShingleSets, table: pa.Table | None = None) -> None:
        self.name = ""
        self.table = table
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
        ids = self._other(columns.id or "id", wanted=columns.id is not None)
        rank = self._other(columns.rank, wanted=True)
        start = 0
        while start < len(self._sets):
            end = int(np.searchsorted(offsets, offsets[start] + batch_bytes // 8, side="right")) - 1
            end = min(max(end, start + 1), len(self._sets))
            mine, ranks = (None if one is None else one.slice(start, end - start) for one in (ids, rank))
            yield Batch(start, column.slice(start, end - start), mine, ranks)
            start = end

    def _other(self, name: str | None, *, wanted: bool) -> pa.Array | None:
        """Another column of the table, numbers as int64 and texts as large_string."""
        names = [] if self.table is None else self.table.column_names
        if self.table is None or name is None or name not in names:
            if name is not None and wanted:
                raise Unreadable(f"has no column {name!r}; its columns are: {', '.join(names)}")
            return None
        array = self.table.column(name).combine_chunks()
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if pa.types.is_integer(array.type):
            return array.cast(pa.int64())
        return array.cast(pa.large_string()) if is_text(array.type) else array

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The sets' numbers."""
        return from_numpy(rows.astype(np.int64))

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Writes the kept rows as ``documents.parquet``."""
        table = self.kept_table(keep)
        return write_tables(folder / "documents.parquet", [table], table.schema)

    def kept_table(self, keep: NDArray[np.bool_]) -> pa.Table:
        """The kept rows of the table, or the numbers of the kept sets."""
        if self.table is not None:
            return self.table.filter(flags(keep))
        return pa.table({"id": from_numpy(np.flatnonzero(keep))})
