"""Tables of repeated passages, their report and their preview."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.inputs.source import LISTED_FAULTS
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.results.preview import one_line
from minwise.results.report_writer import read_texts
from minwise.search.passages import DOCUMENT_BITS, PassageRows, Passages

__all__ = ["PassageTables"]

# Passages in a preview.
FIRST_PASSAGES = 10


@dataclass
class PassageTables:
    """Tables of repeated passages; counts are complete when all tables were taken.

    Attributes:
        found: The result of the search.
        sources: Whether to add source and row of both documents.
        rows: Number of passages so far.
        covered: Number of tokens in any passage so far.
    """

    found: Passages
    sources: bool = False
    rows: int = 0
    covered: int = 0
    _covered_up_to: int = 0

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        id_type, number = self.found.documents.id_type, pa.int64()
        columns = {"id": id_type, "start": number, "end": number}
        columns |= {"other_id": id_type, "other_start": number, "other_end": number, "tokens": number}
        if self.found.wanted.unit:
            columns["count"] = number
        if self.sources:
            columns |= {"source": pa.large_string(), "row": number}
            columns |= {"other_source": pa.large_string(), "other_row": number}
        return pa.schema(columns)

    def tables(self) -> Iterator[pa.Table]:
        """Yield all passages, by document and start."""
        for block in self.found.rows():
            self._count(block)
            for start in range(0, len(block.keys), TABLE_ROWS):
                yield self._table(block.take(slice(start, start + TABLE_ROWS)))
        self.found.documents.corpus.refuse_changes()  # before the file of these tables gets its name

    def _count(self, block: PassageRows) -> None:
        if not len(block.keys):
            return
        starts, ends = block.keys, block.keys + self._tokens(block).astype(np.uint64)
        before = np.maximum.accumulate(np.concatenate([[np.uint64(self._covered_up_to)], ends]))
        fresh = np.maximum(ends, before[:-1]) - np.maximum(starts, before[:-1])
        self.rows += len(starts)
        self.covered += int(fresh.sum())
        self._covered_up_to = int(before[-1])

    def _tokens(self, block: PassageRows) -> NDArray[np.int64]:
        return block.counts.astype(np.int64) + self.found.min_tokens - 1

    def _table(self, block: PassageRows) -> pa.Table:
        documents = self.found.documents
        own, other = ((keys >> DOCUMENT_BITS).astype(np.int64) for keys in (block.keys, block.others))
        start, end, other_start, other_end = (from_numpy(values.astype(np.int64)) for values in block.spans.T)
        columns = [documents.ids(own), start, end, documents.ids(other), other_start, other_end]
        columns.append(from_numpy(self._tokens(block)))
        if self.found.wanted.unit:
            columns.append(from_numpy(block.occurrences.astype(np.int64)))
        if self.sources:
            for side in (own, other):
                names, rows = documents.locate(side)
                columns += [names, from_numpy(rows)]
        return pa.table(columns, schema=self.schema)

    def report(self) -> dict[str, Any]:
        """Return counts and faults; tokens and passages are those of the input."""
        documents = self.found.documents
        return {
            "minwise": _kernel.__version__,
            **self._wanted(),
            "counts": documents.counts,
            "tokens": self.found.tokens,
            "covered_tokens": self.covered,
            "passages": self.rows,
            "unreadable": documents.unreadable(),
            "faults": list(islice(documents.faults(), LISTED_FAULTS)),
            "skipped": dict(documents.corpus.skipped),
        }

    def _wanted(self) -> dict[str, Any]:
        wanted = self.found.wanted
        return wanted._asdict() if wanted.unit else {"min_tokens": wanted.min_tokens}

    def preview(self) -> dict[str, Any]:
        """Return the report with the first passages and the beginnings of their texts."""
        first: list[dict[str, Any]] = []
        for block in self.found.rows():
            self._count(block)
            first += self._first(block.take(slice(FIRST_PASSAGES - len(first))))
        return {**self.report(), "first": first}

    def _first(self, block: PassageRows) -> list[dict[str, Any]]:
        documents = self.found.documents
        numbers = (block.keys >> DOCUMENT_BITS).astype(np.int64)
        sources = np.searchsorted(documents.starts, numbers, side="right") - 1
        where = list(zip(sources.tolist(), (numbers - documents.starts[sources]).tolist(), strict=True))
        texts = read_texts(documents.corpus.sources, documents.corpus.columns, where)
        rows = self._table(block).to_pylist()
        cut = ((texts.get(place) or "")[row["start"] : row["end"]] for place, row in zip(where, rows, strict=True))
        return [{**row, "text": one_line(text)} for row, text in zip(rows, cut, strict=True)]
