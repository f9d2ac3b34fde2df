"""Marks: columns that tell of each row its cluster, its position in it, and its weight.

Every value follows from the clusters of a decision and is computed for the rows that are being written, so that no
column of the whole input is in memory. Spark gets the columns of a source in compressed bytes, with its task.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, from_numpy, valid_mask
from minwise.inputs.row_edits import EditedRows, RowEdits, check_added
from minwise.inputs.source import Source
from minwise.results.endings import VOTES, Ending
from minwise.results.pairs import similarity_column, table_slices
from minwise.results.removals import DedupDecision, Removals, cluster_ranks
from minwise.search.bands import FAULTY

__all__ = ["ClusterFacts", "added_schema", "cluster_votes", "refuse_clashes"]

Numbers = NDArray[np.int64]
NO_CUTS = (np.empty(0, dtype=np.int64),) * 3
COMPRESSION = "zstd"


def added_schema(ending: Ending, id_type: Any) -> pa.Schema:  # noqa: ANN401 - pyarrow has no types
    """Return the columns that an ending adds to rows, given the type of ids."""
    types = {
        "cluster": id_type,
        "cluster_size": pa.int64(),
        "cluster_rank": pa.int64(),
        "similarity": pa.float64(),
        "kept": pa.bool_(),
        VOTES: pa.int64(),
    }
    marks = {own: types[name] for name, own in (ending.mark or {}).items()}
    return pa.schema({**marks, **({} if ending.weight is None else {ending.weight.name: pa.float64()})})


def refuse_clashes(sources: Sequence[Source], ending: Ending) -> None:
    """Raise :class:`~minwise.errors.ConfigError` if the rows of a source cannot get the columns of an ending."""
    added = added_schema(ending, pa.large_string())
    for source in sources if len(added) else ():
        check_added(source, added)


def cluster_votes(clusters: Removals, codes: NDArray[np.uint32], missing: int | None) -> Callable[[Numbers], Numbers]:
    """Return a function that counts the distinct values in the clusters of documents, given the kept ones of these.

    Args:
        clusters: The removed documents, each with the kept one of its cluster.
        codes: A code of the value of each document.
        missing: The code of documents without a value, which do not vote.
    """
    owners = clusters.owners
    documents = np.append(owners, clusters.documents)
    values = codes[documents]
    pairs = np.append(owners, clusters.witness).astype(np.uint64) << np.uint64(32) | values
    voting = pairs if missing is None else pairs[values != missing]
    votes = np.bincount(np.searchsorted(owners, np.unique(voting) >> np.uint64(32)), minlength=len(owners))

    def of(kept: Numbers) -> Numbers:
        alone = np.ones(len(kept), dtype=np.int64) if missing is None else (codes[kept] != missing).astype(np.int64)
        if not len(owners):
            return alone
        indices = np.minimum(np.searchsorted(owners, kept), len(owners) - 1)
        return np.where(owners[indices] == kept, votes[indices], alone)

    return of


class ClusterFacts:
    """What the clusters of a decision say of each document."""

    def __init__(self, decision: DedupDecision) -> None:
        self._decision, self._ending = decision, decision.ending
        self._documents = decision.search.documents

    @cached_property
    def added(self) -> pa.Schema:
        """The columns that rows get."""
        return added_schema(self._ending, self._documents.id_type)

    @cached_property
    def written(self) -> NDArray[np.bool_]:
        """A flag per row of the input: whether it is in the output."""
        if self._ending.mark is None:
            return self._decision.keep
        readable: NDArray[np.bool_] = self._documents.states != FAULTY
        return readable[self._documents.protected :]

    @cached_property
    def _ranks(self) -> Numbers:
        return cluster_ranks(self._decision.clusters, self._decision.search.order.rank_of)

    @cached_property
    def votes_of(self) -> Callable[[Numbers], Numbers] | None:
        """Function that returns the votes of clusters, given their kept documents; None if there are no votes."""
        if self._ending.votes is None:
            return None
        if not len(self._documents):
            return np.zeros_like
        codes, values = self._documents.value_codes(self._ending.votes)
        missing = np.flatnonzero(~valid_mask(values)).tolist()
        return cluster_votes(self._decision.clusters, codes, missing[0] if missing else None)

    def _of_clusters(self, documents: Numbers) -> tuple[Numbers, Numbers, Numbers, NDArray[np.float64]]:
        """Return of each document's cluster the kept document and the size, and its rank and similarity there."""
        clusters = self._decision.clusters
        kept = clusters.kept_of(documents)
        ranks, similarity = np.ones(len(documents), dtype=np.int64), np.full(len(documents), np.nan)
        others = np.flatnonzero(clusters.include(documents))
        indices = np.searchsorted(clusters.documents, documents[others])
        ranks[others], similarity[others] = self._ranks[indices], clusters.similarity[indices]
        return kept, clusters.sizes_of(kept), ranks, similarity

    def columns(self, documents: Numbers) -> list[pa.Array]:
        """Return the added columns of documents, given by number."""
        kept, sizes, ranks, similarity = self._of_clusters(documents)
        columns: Mapping[str, Callable[[], pa.Array]] = {
            "cluster": lambda: self._documents.ids(kept),
            "cluster_size": lambda: from_numpy(sizes),
            "cluster_rank": lambda: from_numpy(ranks),
            "similarity": lambda: similarity_column(similarity),
            "kept": lambda: from_bools(~self._decision.removals.include(documents)),
            VOTES: lambda: from_numpy(self._votes(kept)),
        }
        marks = [columns[name]() for name in self._ending.mark or {}]
        return marks if self._ending.weight is None else [*marks, from_numpy(self._weights(kept, sizes, ranks))]

    def _votes(self, kept: Numbers) -> Numbers:
        return np.zeros(len(kept), dtype=np.int64) if self.votes_of is None else self.votes_of(kept)

    def _weights(self, kept: Numbers, sizes: Numbers, ranks: Numbers) -> NDArray[np.float64]:
        """Return the weights of documents, given the kept ones, the sizes and the ranks of their clusters."""
        assert self._ending.weight is not None
        return self._ending.weight.of_all(sizes, ranks, self._votes(kept))

    def edits(self) -> dict[int, RowEdits]:
        """Return the edits of each source of the input; empty if no column is added."""
        corpus = self._documents.corpus
        numbers = range(corpus.against, len(corpus.sources)) if len(self.added) else ()
        return {number: self.edits_of(number) for number in numbers}

    def edits_of(self, source: int) -> "AddedColumns":
        """Return the edits of one source."""
        start = int(self._documents.starts[source])
        return AddedColumns(self.added, lambda rows: self.columns(rows + start), self._documents.rows[source])

    @cached_property
    def total_weight(self) -> dict[str, Any] | None:
        """Return the column of weights, its expression, and the sum of the weights of the kept rows; None without.

        Raises:
            ConfigError: If a row that is written has no valid weight.
        """
        weight = self._ending.weight
        if weight is None:
            return None
        counted = self._weighted_rows()
        total = math.fsum(value * rows for value, rows in counted.items())
        return {
            "name": weight.name,
            "expression": weight.expression,
            "total": float(f"{total:.12g}"),
            "rows": sum(counted.values()),
        }

    def _weighted_rows(self) -> dict[float, int]:
        """Return how many kept rows have each weight."""
        counted: Counter[float] = Counter()
        for rows in table_slices(np.flatnonzero(self.written)):
            kept, sizes, ranks, _ = self._of_clusters(rows + self._documents.protected)
            weights = self._weights(kept, sizes, ranks)[self._decision.keep[rows]]
            values, counts = np.unique(weights, return_counts=True)
            counted.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return dict(counted)


@dataclass(frozen=True)
class AddedColumns:
    """Columns that are added to the rows of a source, computed when they are needed.

    Attributes:
        added: The columns.
        values: Returns their values for rows, given by number.
        rows: Number of rows of the source.
        text: The text columns, of which nothing is cut.
    """

    added: pa.Schema
    values: Callable[[Numbers], list[pa.Array]]
    rows: int
    text: tuple[str, ...] = ()

    def of_rows(self, rows: Numbers) -> EditedRows:
        """Return the values of rows."""
        return EditedRows(*NO_CUTS, values=self.values(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedColumns, (self._stored(),)

    def _stored(self) -> bytes:
        """Return the values of all rows in compressed bytes."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.added, options=pa.ipc.IpcWriteOptions(compression=COMPRESSION)) as stream:
            stream.write_table(pa.Table.from_batches(self._batches(), self.added))
        return bytes(sink.getvalue())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for rows in table_slices(np.arange(self.rows)):
            yield pa.RecordBatch.from_arrays(self.values(rows), schema=self.added)


@dataclass(frozen=True)
class PackedColumns:
    """Added columns of all rows of a source, for another process.

    Attributes:
        stored: An Arrow stream.
    """

    stored: bytes
    text: tuple[str, ...] = ()

    @cached_property
    def _table(self) -> pa.Table:
        return pa.ipc.open_stream(self.stored).read_all().combine_chunks()

    @property
    def added(self) -> pa.Schema:
        """The columns."""
        return pa.ipc.open_stream(self.stored).schema

    def of_rows(self, rows: Numbers) -> EditedRows:
        """Return the values of rows."""
        taken = self._table.take(from_numpy(rows))
        return EditedRows(*NO_CUTS, values=[column.combine_chunks() for column in taken.columns])
