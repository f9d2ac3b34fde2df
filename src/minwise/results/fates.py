"""Fates: the tables of an earlier run in, what became of each row of its input out."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.arrays import to_numpy
from minwise.errors import FormatError
from minwise.results.published import Published

__all__ = ["Fates", "Restored"]

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Restored:
    """What was put back.

    Attributes:
        documents: How many.
        ids: Their ids, as text.
    """

    documents: int
    ids: set[str]


class Fates:
    """Whether each row of the input is kept, by its number in document order; a flag per row is all it holds."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._starts = np.concatenate([[0], np.cumsum(published.rows)]).astype(np.int64)

    @cached_property
    def kept(self) -> Flags:
        """A flag per row: every readable document that was not removed.

        Raises:
            FormatError: If the tables are damaged, or not of this run.
        """
        kept = np.zeros(self._starts[-1], dtype=np.bool_)
        self._mark(kept, "clusters.parquet", "documents", is_kept=True)
        self._mark(kept, "removed.parquet", "removed", is_kept=False)
        return kept

    def _mark(self, kept: Flags, name: str, count: str, *, is_kept: bool) -> None:
        """Sets the flags of all rows that a table lists, each of which changes once; the report knows how many."""
        rows = 0
        for batch in self._published.batches(name, ["source", "row"]):
            numbers = self.numbers(batch, name)
            twice = (np.diff(numbers) <= 0).any()  # both tables are in document order
            if twice or (kept[numbers] == is_kept).any():
                raise self._other_run(name, "a row that is listed twice, or is in no cluster")
            kept[numbers] = is_kept
            rows += len(numbers)
        expected = self._published.report["counts"][count]
        if rows != expected:
            raise self._other_run(name, f"{rows:,} rows where report.json has {expected:,}")

    def of_source(self, number: int) -> Flags:
        """The flags of one input."""
        return self.kept[self._starts[number] : self._starts[number + 1]]

    def restore(self, ids: Container[str]) -> Restored:
        """Keeps every removed document that has one of the ids; ids that are numbers go by their digits."""
        kept, found, documents = self.kept, set[str](), 0
        for batch in self._published.batches("removed.parquet", ["id", "source", "row"]):
            given = [None if one is None else str(one) for one in batch.column("id").to_pylist()]
            back = np.fromiter((one is not None and one in ids for one in given), dtype=np.bool_, count=len(given))
            kept[self.numbers(batch)[back]] = True
            documents += int(np.count_nonzero(back))
            found |= {one for one, chosen in zip(given, back.tolist(), strict=True) if chosen and one is not None}
        return Restored(documents, found)

    def numbers(self, batch: pa.RecordBatch, name: str = "removed.parquet") -> Numbers:
        """The numbers of the documents that a piece of a table lists by source and row."""
        sources, rows = batch.column("source"), batch.column("row")
        if sources.null_count or rows.null_count or rows.type != pa.int64():
            raise self._other_run(name, "a row without source and row")
        encoded = sources.dictionary_encode()
        spans = list(self._spans(encoded.dictionary.to_pylist(), name))
        starts, ends = (np.array([span[side] for span in spans], dtype=np.int64) for side in (0, 1))
        which, within = to_numpy(encoded.indices), to_numpy(rows)
        numbers: Numbers = starts[which] + within
        outside = (within < 0) | (numbers >= ends[which])
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise self._other_run(name, f"row {within[place]} of {sources[place].as_py()}, which has no such row")
        return numbers

    def _spans(self, names: list[str], name: str) -> Iterator[tuple[int, int]]:
        """Where the documents of each file begin and end."""
        for source in names:
            if source not in self._places:
                raise self._other_run(name, f"{source}, which is none of the inputs")
            yield self._places[source]

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The first number and the one past the last, by the name of the file."""
        places = {}
        for number, files in enumerate(self._published.files):
            start, end = int(self._starts[number]), int(self._starts[number + 1])
            if "files" in self._published.run["inputs"][number]:
                places.update({file.name: (start + row, start + row + 1) for row, file in enumerate(files)})
            else:
                places[files[0].name] = (start, end)
        return places

    def _other_run(self, name: str, what: str) -> FormatError:
        path = self._published.folder / name
        return FormatError(f"{path}: must be the table of this run, got {what}; run minwise dedup again")
