"""Untyped: rows of formats that have no types (JSON lines, CSV) in, batches out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_numbers
from minwise.inputs.elements import Elements
from minwise.inputs.source import BATCH_ROWS, Batch, Fault, Unreadable

__all__ = ["RankColumn", "RowReader", "ids_of", "made_of"]

Row = TypeVar("Row")

INT64 = range(-(2**63), 2**63)


class RowReader(ABC, Generic[Row]):
    """Turns rows into batches, and remembers what earlier rows decided for all."""

    def read(self, rows: Iterator[Row], wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        """Yields the batches that have a wanted row."""
        for first, group in self._gathered(rows, batch_bytes):
            if wanted is None or wanted[first : first + len(group)].any():
                yield self.batch(first, group)
            elif not wanted[first:].any():
                return
            elif not self.knows_columns:
                self.batch(first, group)

    def _gathered(self, rows: Iterator[Row], most: int) -> Iterator[tuple[int, list[Row]]]:
        """Rows of about ``most`` bytes together, with the number of the first; all that come before a failure."""
        first = size = 0
        held: list[Row] = []
        failure: Unreadable | None = None
        try:
            for row in rows:
                held.append(row)
                size += self.size_of(row)
                if size >= most or len(held) == BATCH_ROWS:
                    yield first, held
                    first, size, held = first + len(held), 0, []
        except Unreadable as error:
            failure = error
        if held:
            yield first, held
        if failure is not None:
            raise failure

    @property
    @abstractmethod
    def knows_columns(self) -> bool:
        """Whether no row that was not read yet can decide how later ones are read."""

    @abstractmethod
    def size_of(self, row: Row) -> int:
        """Bytes of the row in the file."""

    @abstractmethod
    def batch(self, first: int, rows: list[Row]) -> Batch:
        """The batch of some rows that follow each other."""


def ids_of(values: Sequence[int | str | None]) -> pa.Array:
    """int64 if all of them are such numbers, otherwise large_string, in which a number is its digits."""
    if all(value is None or (isinstance(value, int) and value in INT64) for value in values):
        return from_numbers([None if value is None else int(value) for value in values], np.int64)
    return from_bytes([None if value is None else str(value).encode() for value in values], pa.large_string())


def made_of(
    elements: Elements, rows: Sequence[Sequence[Any] | None], source: str, first: int, faults: Sequence[Fault]
) -> tuple[pa.Array, list[Fault]]:
    """What is made of rows, None for those that have a fault already, and all faults in order."""
    column, reasons = elements.of_values(rows)
    known = {fault.row: fault for fault in faults}
    for row, reason in reasons.items():
        known.setdefault(first + row, Fault(source, first + row, reason))
    return column, [fault for _, fault in sorted(known.items(), key=lambda one: one[0] or 0)]


class RankColumn:
    """The column by which rows are ranked: numbers or strings, as its first value that is not null decides.

    Numbers are float64, so whole numbers beyond 2**53 are rounded. A value of the other kind is null.
    """

    def __init__(self, *, digits_are_numbers: bool) -> None:
        self.digits_are_numbers = digits_are_numbers
        self.kind: type[float] | type[str] | None = None

    def array(self, values: Sequence[object]) -> pa.Array:
        """The values of some rows; of the null type as long as there was none."""
        plain = [self._plain(value) for value in values]
        if self.kind is None:
            self.kind = next((type(value) for value in plain if value is not None), None)
        if self.kind is float:
            return from_numbers([value if isinstance(value, float) else None for value in plain], np.float64)
        if self.kind is str:
            texts = [value if isinstance(value, bytes) else None for value in map(self._encoded, values)]
            return from_bytes(texts, pa.large_string())
        return pa.nulls(len(values))

    def _plain(self, value: object) -> float | str | None:
        """A finite number or a string; with ``digits_are_numbers`` a string that spells a number is one."""
        if isinstance(value, (int, float)):
            return float(value) if isfinite(value) else None
        if not isinstance(value, str) or (self.digits_are_numbers and not value):
            return None
        if not self.digits_are_numbers or "_" in value:
            return value
        try:
            number = float(value)
        except ValueError:
            return value
        return number if isfinite(number) else None

    @staticmethod
    def _encoded(value: object) -> bytes | None:
        return value.encode() if isinstance(value, str) else None
