"""Sets: collections of elements in memory as a source, whose texts are the hashed elements themselves."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import flags, from_bytes, from_numpy
from minwise.errors import InputError
from minwise.inputs.columns import is_text
from minwise.inputs.elements import decoded
from minwise.inputs.files import File, FileSource, output_path, started, strip_bom, writing
from minwise.inputs.items import ItemLists, ItemSets, split_items
from minwise.inputs.lines import TooLong, lines_by_chunk, too_long_reason
from minwise.inputs.schemaless import RowReader, made_of
from minwise.inputs.source import Batch, Columns, Fault, Source, Unreadable
from minwise.inputs.table_writer import write_tables
from minwise.text.shingling import ShingleSets

__all__ = ["BasketLines", "SetsSource"]


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


Flags = NDArray[np.bool_]
Line = bytes | TooLong


class BasketLines(FileSource):
    """One file with a set on each line, perhaps compressed. A blank line is an empty set.

    Attributes:
        named: Whether the first item of a line is the name of the set.
    """

    def __init__(self, file: File, *, named: bool) -> None:
        super().__init__(file)
        self.named = named

    def _lines(self) -> Iterator[Line]:
        return chain.from_iterable(lines_by_chunk(self.file.chunks()))

    def _read(self, columns: Columns, wanted: Flags | None, batch_bytes: int) -> Iterator[Batch]:
        other = next((name for name in (columns.id, columns.rank, *columns.metadata) if name is not None), None)
        if other is not None:
            raise Unreadable(f"has no column {other!r}: a line of it is one set and nothing else")
        if not isinstance(columns.elements, (ItemSets, ItemLists)):
            raise Unreadable(f"has no column {columns.text[0]!r}: a line of it is one set, which takes shingle set")
        return _Reader(self.name, columns.elements, named=self.named).read(self._lines(), wanted, batch_bytes)

    def copy_kept(self, keep: Flags, folder: Path, root: str) -> int:
        """Writes the kept lines as they are; the last one gets a line feed if it has none."""
        written = 0
        with self._copying(keep):
            lines = started(self._lines())
            with writing(output_path(self.file.path, folder, root), self.file.compression) as copy:
                for kept, line in zip(keep.tolist(), lines, strict=False):
                    if kept and isinstance(line, bytes):
                        copy.write(line if line.endswith(b"\n") else line + b"\n")
                        written += 1
        return written


class _Reader(RowReader[Line]):
    """Lines in, batches out."""

    knows_columns = True

    def __init__(self, source: str, elements: ItemSets | ItemLists, *, named: bool) -> None:
        self.source, self.elements, self.named = source, elements, named

    def size_of(self, row: Line) -> int:
        """Bytes of the line; none if it is too long to be held."""
        return len(row) if isinstance(row, bytes) else 0

    def batch(self, first: int, rows: list[Line]) -> Batch:
        """The batch of some lines that follow each other."""
        values: list[list[Any] | None] = []
        names: list[bytes | None] = []
        faults: list[Fault] = []
        for row, line in enumerate(rows, first):
            name, items = None, None
            try:
                name, items = self._parts(line, row)
            except InputError as error:
                faults.append(Fault(self.source, row, str(error)))
            names.append(name)
            values.append(None if items is None else [items])
        column, faults = made_of(self.elements, values, self.source, first, faults)
        ids = from_bytes(names, pa.large_string()) if self.named else None
        return Batch(first, column, ids, None, tuple(faults))

    def _parts(self, line: Line, row: int) -> tuple[bytes | None, list[str]]:
        """The name of a set, if it has one, and its items."""
        if isinstance(line, TooLong):
            raise InputError(too_long_reason())
        text = decoded(strip_bom(line) if row == 0 else line, f"line {row + 1}")
        items = split_items(text, self.elements.separator)
        if not self.named:
            return None, items
        if not items:
            raise InputError(f"line {row + 1} has no name: its first item is missing")
        return items[0].encode(), items[1:]
