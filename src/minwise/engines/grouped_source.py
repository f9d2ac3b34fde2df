"""Grouped source: the groups that were written to a work directory, as a source of sets in the order of their names."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.array_file import ArrayFile
from minwise.arrays import from_lists, from_numpy
from minwise.engines.work import Work
from minwise.errors import ConfigError
from minwise.formats.source import BATCH_ROWS, Batch, Columns, Fault, Source
from minwise.stages.elements import too_many_reason

__all__ = ["GroupedSource"]


class GroupedSource(Source):
    """Groups as sets. A row is a group, its id the group's name."""

    def __init__(self, work: Work, sources: Sequence[Source]) -> None:
        self.name = sources[0].name
        self._work, self._sources = work, sources
        self._pieces: list[ArrayFile] = [work.open(name) for name in work.names("groups-")]
        counts = [piece.length("too_many") for piece in self._pieces]
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._order: NDArray[np.uint32] = work.open("group-order").read("order")

    def fingerprint(self) -> dict[str, object]:
        """Its size alone: the files that it was made from have fingerprints of their own."""
        return {"name": self.name, "bytes": self.size_bytes(), "modified": None}

    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return 8 * sum(piece.length("elements") for piece in self._pieces)

    def known_rows(self) -> int:
        """How many groups there are."""
        return len(self._order)

    def paths(self) -> list[str]:
        """The files that the rows are from."""
        return [path for source in self._sources for path in source.paths()]

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The names."""
        return self._names.take(from_numpy(rows))

    @cached_property
    def _names(self) -> pa.Array:
        """All names, in order, as a view of their file."""
        column = self._work.read_table("group-names").column("name")
        return (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, pa.nulls(0, column.type)])
        )

    @cached_property
    def _sizes(self) -> NDArray[np.uint32]:
        """How many elements each group has, in the order of names."""
        sizes = [np.diff(piece.read("offsets")).astype(np.uint32) for piece in self._pieces]
        return np.concatenate([np.empty(0, dtype=np.uint32), *sizes])[self._order]

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        for piece in self._pieces:
            piece.read("elements")  # checks it; from here on it is mapped
        start, ends = 0, np.cumsum(self._sizes, dtype=np.int64)
        while start < len(self._order):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + batch_bytes // 8, side="right"))
            stop = min(max(stop, start + 1), start + BATCH_ROWS)
            if wanted is None or wanted[start:stop].any():
                yield self._batch(start, stop)
            start = stop

    def _batch(self, start: int, stop: int) -> Batch:
        places = self._order[start:stop].astype(np.int64)
        sizes = self._sizes[start:stop].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        elements = np.empty(int(offsets[-1]), dtype=np.uint64)
        too_many = np.zeros(len(places), dtype=np.uint64)
        owners = np.searchsorted(self._firsts, places, side="right") - 1
        for number in np.unique(owners).tolist():
            rows = np.flatnonzero(owners == number)
            within = places[rows] - self._firsts[number]
            piece = self._pieces[number]
            begins = piece.map("offsets")[within].astype(np.int64)
            elements[_spread(offsets[:-1][rows], sizes[rows])] = piece.map("elements")[_spread(begins, sizes[rows])]
            too_many[rows] = piece.map("too_many")[within]
        faults = [
            Fault(
                self.name,
                start + int(row),
                f"group {self._names[start + int(row)]} {too_many_reason(int(too_many[row]))}",
            )
            for row in np.flatnonzero(too_many)
        ]
        sets = from_lists(offsets, from_numpy(elements), too_many == 0)
        return Batch(start, sets, self._names.slice(start, stop - start), None, tuple(faults))

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Refused: a group is not a row of its file."""
        raise ConfigError("group_by and transpose must be left out with dedup: a group is many rows of its file")


def _spread(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of stretches that begin somewhere and have a size, one after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)
