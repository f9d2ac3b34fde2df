"""Tables of nearest documents, their report and their preview."""

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
from minwise.search.documents import Documents
from minwise.search.nearest import Nearest, NearestRows
from minwise.settings import SearchSettings

__all__ = ["NearestTables"]

# Pairs in a preview.
FIRST_PAIRS = 10


@dataclass
class NearestTables:
    """Tables of nearest documents; counts are complete when all tables were taken.

    Attributes:
        found: The result of the search.
        sources: Whether to add source and row of both documents.
        rows: Number of pairs so far.
        lefts: Number of documents that have any pair so far.
    """

    found: Nearest
    sources: bool = False
    rows: int = 0
    lefts: int = 0

    @property
    def documents(self) -> Documents:
        """The documents by number."""
        return self.found.documents

    @property
    def settings(self) -> SearchSettings:
        """The settings of the search."""
        return self.found.job.settings

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        kind = self.documents.id_type
        located = [("source", pa.large_string()), ("row", pa.int64())] if self.sources else []
        sides = [[(side, kind), *((f"{side}_{name}", of) for name, of in located)] for side in ("left", "right")]
        return pa.schema([*sides[0], *sides[1], (self.settings.similarity_name, pa.float64()), ("rank", pa.int64())])

    def tables(self) -> Iterator[pa.Table]:
        """Yield all pairs, by left document and rank."""
        self.rows = self.lefts = 0
        for block in self._blocks():
            for start in range(0, len(block.left), TABLE_ROWS):
                yield self._table(block.take(slice(start, start + TABLE_ROWS)))
        self.documents.corpus.refuse_changes()  # before the file of these tables gets its name

    def _blocks(self) -> Iterator[NearestRows]:
        """Yield the pairs and count them; those of one document are in one block."""
        for block in self.found.rows():
            self.rows += len(block.left)
            self.lefts += int(np.count_nonzero(np.diff(block.left.astype(np.int64), prepend=-1)))
            yield block

    def _table(self, block: NearestRows) -> pa.Table:
        columns = [*self._side(block.left), *self._side(block.right)]
        columns += [from_numpy(block.similarity), from_numpy(block.rank.astype(np.int64))]
        return pa.table(columns, schema=self.schema)

    def _side(self, documents: NDArray[np.uint32]) -> list[pa.Array]:
        if not self.sources:
            return [self.documents.ids(documents)]
        names, rows = self.documents.locate(documents)
        return [self.documents.ids(documents), names, from_numpy(rows)]

    def first(self, count: int) -> NearestRows:
        """Return the first pairs."""
        for block in self.found.rows():
            if len(block.left):
                return block.take(slice(count))
        none = np.empty(0, dtype=np.uint32)
        return NearestRows(none, none, np.empty(0), none)

    def report(self) -> dict[str, Any]:
        """Return settings, counts and faults; documents are those of the input."""
        documents, wanted = self.documents, self.found.wanted
        decided = {**self.settings.weight_settings, **self.settings.element_settings, "seed": self.settings.seed}
        return {
            "minwise": _kernel.__version__,
            "settings": {**wanted._asdict(), **decided},
            "counts": documents.counts,
            **({"rows": rows} if (rows := documents.grouped_rows()) else {}),
            "among": documents.protected or None,
            "pairs": self.rows,
            "without": documents.counts["documents"] - self.lefts,
            "unreadable": documents.unreadable(),
            "faults": list(islice(documents.faults(), LISTED_FAULTS)),
            "skipped": dict(documents.corpus.skipped),
        }

    def preview(self) -> dict[str, Any]:
        """Return the report with the first pairs and the beginnings of their texts."""
        for _ in self._blocks():
            pass
        return {**self.report(), "first": self._first()}

    def _first(self) -> list[dict[str, Any]]:
        rows = self.first(FIRST_PAIRS)
        texts = self._texts(np.concatenate([rows.left, rows.right]).astype(np.int64))
        named = zip(self._table(rows).to_pylist(), rows.left.tolist(), rows.right.tolist(), strict=True)
        return [{**row, "left_text": texts.get(left), "right_text": texts.get(right)} for row, left, right in named]

    def _texts(self, documents: NDArray[np.int64]) -> dict[int, str]:
        """Return the beginnings of the texts of documents; nothing for documents that are not texts."""
        if self.settings.shingler is None:
            return {}
        sources = np.searchsorted(self.documents.starts, documents, side="right") - 1
        places = zip(sources.tolist(), (documents - self.documents.starts[sources]).tolist(), strict=True)
        where = dict(zip(documents.tolist(), places, strict=True))
        corpus = self.documents.corpus
        read = read_texts(corpus.sources, corpus.columns, list(where.values()))
        return {document: one_line(read[place]) for document, place in where.items() if place in read}
