"""Basket lines: a line of items per set in, batches of sets out; kept lines are copied byte for byte."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.arrays import from_bytes
from minwise.errors import InputError
from minwise.formats.files import File, FileSource, output_path, started, strip_bom, writing
from minwise.formats.lines import TooLong, lines_by_chunk, too_long_reason
from minwise.formats.source import Batch, Columns, Fault, Unreadable
from minwise.formats.untyped import RowReader, made_of
from minwise.stages.elements import decoded
from minwise.stages.items import ItemLists, ItemSets, split_items

__all__ = ["BasketLines"]

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
