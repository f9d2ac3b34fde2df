"""Parts: documents in order in; a finished piece of them, as numbers, ids and faults, out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.arrays import from_numbers, from_strings, present
from minwise.engines.documents import Corpus, joined_ids, joined_ranks, same_type
from minwise.engines.work import Work
from minwise.errors import InputError
from minwise.formats.source import Batch, Fault, Source

__all__ = [
    "PART_BYTES",
    "PART_DOCUMENTS",
    "Part",
    "batch_ids",
    "fault_table",
    "placed_faults",
    "refuse_nothing_readable",
    "refuse_too_many",
]

# Documents, and bytes of text, after which a piece is finished and need not be done again.
PART_DOCUMENTS = 1 << 18
PART_BYTES = 1 << 30
# Documents are numbered in 32 bits, and the last number stands for nobody.
MAX_DOCUMENTS = 2**32 - 2


@dataclass(slots=True)
class Part:
    """A piece of the documents as it grows.

    Attributes:
        first: The number of its first document.
        text_bytes: Bytes of all texts so far.
    """

    first: int
    text_bytes: int = 0
    lengths: list[NDArray[np.uint64]] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    ids: list[pa.Array | None] = field(default_factory=list)
    ranks: list[pa.Array | None] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def add(
        self,
        source: int,
        first: int,
        lengths: NDArray[np.uint64],
        ids: pa.Array | None,
        ranks: pa.Array | None,
    ) -> None:
        """Adds rows that follow each other in a source; the number of the first of them there is ``first``."""
        self.lengths.append(lengths)
        self.text_bytes += int(lengths.sum())
        self.spans.append([source, first, len(lengths)])
        self.ids.append(ids)
        self.ranks.append(ranks)

    def note_faults(self, faults: Iterable[tuple[int, Fault]], on_error: str) -> None:
        """Adds faults, each with its place among the rows that are added.

        Raises:
            InputError: If there are any and ``on_error`` is ``fail``.
        """
        ordered = [fault for _, fault in sorted(faults, key=itemgetter(0))]
        if ordered and on_error == "fail":
            raise InputError(f"{ordered[0]}; on-error quarantine goes on without it")
        self.faults.extend(ordered)

    def write(self, work: Work, number: int, corpus: Corpus, arrays: dict[str, NDArray[Any]]) -> None:
        """Writes the piece, the file that says it is finished last."""
        name = f"{number:06}"
        columns = self._columns(corpus)
        if columns:
            work.write_table(f"columns-{name}", pa.table(columns))
        if self.faults:
            work.write_table(f"faults-{name}", fault_table(self.faults))
        lengths = np.concatenate(self.lengths) if self.lengths else np.empty(0, dtype=np.uint64)
        header = {"first": self.first, "spans": _joined_spans(self.spans), "ended": self.ended}
        work.write(f"part-{name}", {**arrays, "lengths": lengths}, **header)

    def _columns(self, corpus: Corpus) -> dict[str, pa.Array]:
        """Ids and ranks of the piece, if it has any."""
        columns: dict[str, pa.Array] = {}
        if any(ids is not None for ids in self.ids):
            columns["id"] = joined_ids([self._ids_of(corpus, place) for place in range(len(self.ids))])
        if any(ranks is not None for ranks in self.ranks):
            rows = [rows for _, _, rows in self.spans]
            ranks = [pa.nulls(count) if rank is None else rank for count, rank in zip(rows, self.ranks, strict=True)]
            columns["rank"] = joined_ranks(ranks, corpus.columns.rank)
        return columns

    def _ids_of(self, corpus: Corpus, place: int) -> pa.Array:
        """The ids of a span; those that the source makes up where it has none."""
        source, row, rows = self.spans[place]
        ids = self.ids[place]
        return corpus.sources[source].default_ids(np.arange(row, row + rows, dtype=np.int64)) if ids is None else ids


def batch_ids(source: Source, batch: Batch) -> pa.Array | None:
    """The ids of a batch; a document without one gets the id that its source makes up."""
    ids = batch.ids
    if ids is None or not ids.null_count:
        return ids
    lacking = pc.and_(pc.is_null(ids), pc.is_valid(batch.texts))
    if not pc.any(lacking).as_py():
        return ids
    rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
    return pc.coalesce(*same_type([ids, source.default_ids(rows)]))


def placed_faults(batch: Batch) -> Iterator[tuple[int, Fault]]:
    """The faults of a batch with the places of their rows; that of the whole source comes after all rows."""
    nulls = np.flatnonzero(~present(batch.texts)).tolist()
    return zip(chain(nulls, repeat(len(batch))), batch.faults, strict=False)


def refuse_too_many(documents: int) -> None:
    """Raises if there are more documents than 32 bits can number."""
    if documents > MAX_DOCUMENTS:
        raise InputError(f"a run takes at most {MAX_DOCUMENTS} documents, got more; use minwise.spark on a DataFrame")


def refuse_nothing_readable(work: Work, rows: int) -> None:
    """Raises if no row at all could be read: it has the wrong column or the wrong files."""
    faulty = [work.read_table(name) for name in work.names("faults-")]  # views of their files
    if faulty and sum(len(table) - table.column("row").null_count for table in faulty) >= rows:
        fault = faulty[0].slice(0, 1).to_pylist()[0]
        where = [fault["source"], "" if fault["row"] is None else f"row {fault['row']}", fault["reason"]]
        raise InputError(f"no document can be read; {': '.join(filter(None, where))}")


def _joined_spans(spans: list[list[int]]) -> list[list[int]]:
    """Spans of one source that follow each other as one."""
    joined: list[list[int]] = []
    for source, row, rows in spans:
        if joined and joined[-1][0] == source and joined[-1][1] + joined[-1][2] == row:
            joined[-1][2] += rows
        else:
            joined.append([source, row, rows])
    return joined


def fault_table(faults: list[Fault]) -> pa.Table:
    """Source, row and reason of each."""
    rows = from_numbers([fault.row for fault in faults], np.int64)
    sources, reasons = (from_strings([getattr(fault, name) for fault in faults]) for name in ("source", "reason"))
    return pa.table({"source": sources, "row": rows, "reason": reasons})
