"""Tables of pairs and clusters, their report, and the columns that identify documents in every result table.

The input is a :class:`~minwise.search.engine.SearchResult`; the tables are yielded in bounded pieces, so that a result
larger than memory can be written. Pairs of identical documents are expanded here, and sorted in the work directory.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.errors import InputError
from minwise.inputs.items import SingleValue
from minwise.inputs.source import LISTED_FAULTS, Columns
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.results.field_similarities import FieldSimilarities, field_columns
from minwise.results.notes import report_notes
from minwise.search.bands import FAULTY, BucketCounts, pack_pairs
from minwise.search.clustering import (
    CopyExpansion,
    CopyGroups,
    PairBlock,
    cluster_by_components,
    cluster_by_star,
    in_pairs,
)
from minwise.search.engine import FinishedSearch, SearchResult
from minwise.search.needed_pairs import PairCounts
from minwise.search.pair_runs import merged_runs, write_run

__all__ = [
    "Clustering",
    "blocking_quality",
    "cap_report",
    "cap_section",
    "expanded_pairs",
    "identities",
    "identity_columns",
    "identity_schema",
    "pair_report",
    "pair_schema",
    "pair_tables",
    "similarity_column",
    "table_slices",
]

# Pairs that are sorted at once.
EXPANDED_PAIRS = 1 << 22
# Groups of identical documents that a report names.
SHOWN_GROUPS = 20


def table_slices(numbers: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers in slices of the rows of one table; one empty slice if there are none."""
    return (numbers[start : start + TABLE_ROWS] for start in range(0, max(1, len(numbers)), TABLE_ROWS))


def identity_columns(search: FinishedSearch, documents: NDArray[Any]) -> dict[str, pa.Array]:
    """Return the columns id, source and row of documents."""
    names, rows = search.documents.locate(documents)
    return {"id": search.documents.ids(documents), "source": names, "row": from_numpy(rows)}


def identities(search: FinishedSearch, documents: NDArray[Any]) -> list[dict[str, Any]]:
    """Return id, source and row of documents as plain values."""
    rows: list[dict[str, Any]] = pa.table(identity_columns(search, documents)).to_pylist()
    return rows


def identity_schema(search: FinishedSearch) -> dict[str, pa.DataType]:
    """Return the types of the columns id, source and row."""
    return {"id": search.documents.id_type, "source": pa.large_string(), "row": pa.int64()}


def similarity_column(values: NDArray[np.float64]) -> pa.Array:
    """Return similarities as a column, null where they are unknown."""
    return from_numpy(values, ~np.isnan(values))


def pair_tables(search: SearchResult, *, sources: bool = False, field_similarities: bool = False) -> Iterator[pa.Table]:
    """Yield every pair by id, in document order, including pairs of identical documents.

    With containment ``left`` lies in ``right``. Of two linked tables ``left`` is a document of the first one, and
    ``right`` one of the second.

    Args:
        search: The result of a search.
        sources: Whether to add source and row of both documents.
        field_similarities: Whether to add the similarity of each field.
    """
    fields = FieldSimilarities(search) if field_similarities else None
    for block in expanded_pairs(search):
        left, right = block.low.astype(np.int64), block.high.astype(np.int64)
        for start in range(0, max(1, len(left)), TABLE_ROWS):
            rows = slice(start, start + TABLE_ROWS)
            table = _pair_table(search, left[rows], right[rows], block.similarity[rows], sources=sources)
            yield table if fields is None else _with_fields(table, fields, left[rows], right[rows])
    search.documents.corpus.refuse_changes()  # before the file of these tables gets its name


def expanded_pairs(search: SearchResult) -> Iterator[PairBlock]:
    """Yield the pairs of all documents by number in ascending order, including pairs of identical documents.

    Of a directed pair the first is the document that lies in the other one, or that of the first of two linked tables.
    """
    if not len(search.copies) and not _is_directed(search):
        yield from search.blocks()
        return
    if not search.work.has("expanded"):
        _spill_expanded(search)
    yield from merged_runs(search.work, "expanded-", EXPANDED_PAIRS)


def _spill_expanded(search: SearchResult) -> None:
    """Write the pairs of all copies as sorted runs to the work directory."""
    search.work.delete("expanded-")  # of an interrupted run
    expansion = CopyExpansion(search.copies, len(search.documents), search.settings.max_bucket)
    across = (expanded for block in search.blocks() for expanded in expansion.across(block, EXPANDED_PAIRS))
    within = expansion.within(EXPANDED_PAIRS, search.settings.identical_similarity)
    for number, block in enumerate(across if _parts_copies(search) else chain(across, within)):
        write_run(search.work, f"expanded-{number:06}", _packed_documents(search, block), block.similarity)
    search.work.write_json("expanded", {})


def _parts_copies(search: SearchResult) -> bool:
    """Return whether identical documents of one group are no pairs: of one table, or of one value with ``across``."""
    return search.documents.corpus.linked or search.settings.across is not None


def _is_directed(search: SearchResult) -> bool:
    """Return whether the two documents of a pair have different roles."""
    return search.documents.corpus.linked or search.settings.measure == "containment"


def _packed_documents(search: SearchResult, block: PairBlock) -> NDArray[np.uint64]:
    """Return pairs of ranks as pairs of documents; without a direction, ranks are the numbers of documents."""
    if not _is_directed(search):
        return pack_pairs(block.low, block.high)
    document_at = search.order.document_at
    return pack_pairs(document_at[block.high], document_at[block.low])


def pair_report(search: SearchResult) -> dict[str, Any]:
    """Return settings, counts, faults, and the pairs that the caps on buckets and on identical documents left out.

    Figures about pairs are None if only those were compared that decide clusters.
    """
    expansion = CopyExpansion(search.copies, len(search.documents), search.settings.max_bucket)
    capped = search.order.document_at[expansion.capped_leaders()]
    across = sum(expansion.left_out_across(block) for block in search.blocks()) if len(capped) else 0
    within = 0 if _parts_copies(search) else expansion.left_out_within()
    sizes = expansion.sizes[expansion.expanded_sizes != expansion.sizes]
    groups = zip(search.documents.ids(capped[:SHOWN_GROUPS]).to_pylist(), sizes[:SHOWN_GROUPS].tolist(), strict=True)
    return {
        "minwise": _kernel.__version__,
        "settings": search.settings.to_dict(),
        "plan": search.settings.plan_dict(),
        "counts": search.documents.counts,
        **({"tables": tables} if (tables := search.documents.table_counts()) else {}),
        **({"rows": rows} if (rows := search.documents.grouped_rows()) else {}),
        "candidates": search.candidates,
        "compared": search.compared,
        "caps": {
            **cap_report(search),
            "identical_groups": len(capped),
            "identical_pairs_left_out": within + across if search.is_complete else None,
            "largest_identical_groups": [{"first": first, "documents": size} for first, size in groups],
        },
        "unreadable": search.documents.unreadable(),
        "faults": list(islice(search.documents.faults(), LISTED_FAULTS)),
        **report_notes(search.documents, search.copies, search.settings),
    }


def cap_report(search: SearchResult) -> dict[str, Any]:
    """Return what the bucket cap left out, and an estimate of the pairs missed by it."""
    return cap_section(search.settings.max_bucket, search.caps, search.pair_counts)


def cap_section(max_bucket: int, caps: BucketCounts, pairs: PairCounts) -> dict[str, Any]:
    """Return the section of a report about a bucket cap, from its effects and the numbers of pairs."""
    share = pairs.similar_share
    return {
        "max_bucket": max_bucket,
        "buckets": caps.capped,
        "members": caps.capped_members,
        "candidates_left_out": caps.left_out,
        "estimated_pairs_missed_at_most": None if share is None else round(caps.left_out * share),
        "largest_bucket": caps.largest,
    }


def _pair_table(
    search: SearchResult,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    similarity: NDArray[np.float64],
    *,
    sources: bool,
) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for side, documents in (("left", left), ("right", right)):
        if sources:
            identity = identity_columns(search, documents)
            columns |= {side: identity["id"], f"{side}_source": identity["source"], f"{side}_row": identity["row"]}
        else:
            columns[side] = search.documents.ids(documents)
    columns[search.settings.similarity_name] = similarity_column(similarity)
    return pa.table(columns)


def _with_fields(
    table: pa.Table, fields: FieldSimilarities, left: NDArray[np.int64], right: NDArray[np.int64]
) -> pa.Table:
    """Return the table with the similarity of each field of these pairs."""
    for name, similarity in fields.columns(left, right).items():
        table = table.append_column(name, similarity_column(similarity))
    return table


def pair_schema(search: SearchResult, *, sources: bool, field_similarities: bool = False) -> pa.Schema:
    """Return the columns of the table of pairs."""
    none = np.empty(0, dtype=np.int64)
    schema = _pair_table(search, none, none, np.empty(0), sources=sources).schema
    for name in field_columns(search) if field_similarities else ():
        schema = schema.append(pa.field(name, pa.float64()))
    return schema


class Clustering:
    """Clusters of a search, each named after its first document.

    Of two linked tables, a cluster is named after its first document of the second one.
    """

    def __init__(self, search: SearchResult) -> None:
        documents = search.documents
        self._linked, self._protected = documents.corpus.linked, documents.protected
        following = search.settings.across is not None
        copies = search.copies
        if self._linked or (following and search.settings.group == "components"):
            copies = _paired_copies(search)
        if search.settings.group == "components":
            firsts = cluster_by_components(search.blocks, copies, len(documents))
        else:
            clustering = cluster_by_star(search.blocks, copies, len(documents), following=following)
            firsts = np.where(clustering.removed, clustering.witness, np.arange(len(documents)))
        self._documents = documents
        self._firsts = firsts.astype(np.int64)
        self._readable = self._in_table_order(np.flatnonzero(documents.states != FAULTY))
        self._sizes = np.bincount(self._firsts[self._readable], minlength=len(documents))

    def _in_table_order(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ascending documents with those of the first of two linked tables before those of the second."""
        start = int(np.searchsorted(documents, self._protected)) if self._linked else 0
        return np.concatenate([documents[start:], documents[:start]])

    @property
    def cluster_count(self) -> int:
        """Number of clusters with more than one document."""
        return int(np.count_nonzero(self._sizes > 1))

    @property
    def documents(self) -> NDArray[np.int64]:
        """The documents of the tables, in their order."""
        return self._readable

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The first document of the cluster of each of these documents."""
        return self._firsts[self._readable]

    def tables(self) -> Iterator[pa.Table]:
        """Yield every document with the id of its cluster's first document and the cluster's size.

        Of two linked tables, ids have a column that names their table: ``left`` or ``right``.
        """
        yield from (self.table(documents) for documents in table_slices(self._readable))
        self._documents.corpus.refuse_changes()  # before the file of these tables gets its name

    def table(self, documents: NDArray[np.int64]) -> pa.Table:
        """Return these documents with the id of their cluster's first document and the cluster's size."""
        firsts = self._firsts[documents]
        ids, clusters = self._documents.ids(documents), self._documents.ids(firsts)
        columns = {"id": ids, "cluster": clusters, "size": from_numpy(self._sizes[firsts])}
        if self._linked:
            columns |= {"table": self._tables(documents), "cluster_table": self._tables(firsts)}
        return pa.table({name: columns[name] for name in self.schema.names})

    def _tables(self, documents: NDArray[np.int64]) -> pa.Array:
        """Return the table of each document, ``left`` or ``right``."""
        return pa.array(["left", "right"]).take(from_numpy((documents < self._protected).astype(np.int64)))

    def members(self, count: int) -> NDArray[np.int64]:
        """Return the first documents of clusters with more than one, cluster by cluster."""
        members = self._readable[self._sizes[self._firsts[self._readable]] > 1]
        return members[np.argsort(self._firsts[members], kind="stable")][:count]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the tables."""
        kind, table = self._documents.id_type, pa.string()
        if self._linked:
            names = [("table", table), ("id", kind), ("cluster_table", table), ("cluster", kind), ("size", pa.int64())]
            return pa.schema(names)
        return pa.schema([("id", kind), ("cluster", kind), ("size", pa.int64())])


def _paired_copies(search: SearchResult) -> CopyGroups:
    """Return the groups of identical documents that a pair connects with another document.

    With stars, only documents of the first of two linked tables join another one.
    """
    paired = in_pairs(search.blocks, len(search.documents))
    if search.settings.group == "star":
        paired[: search.documents.protected] = False
    return search.copies.led_by(paired)


def blocking_quality(search: SearchResult, truth: str) -> dict[str, Any]:
    """Return the quality of the pairs against a ground-truth column.

    Rows with the same value in the column are the same entity; a row without a value is an entity of its own. Of two
    linked tables, only pairs of a row of each count. Reads the column of every source again.

    Raises:
        InputError: If the column cannot be read.
    """
    labels, known = _labels(search, truth)
    records = int(np.count_nonzero(search.documents.states != FAULTY))
    true, all_pairs = _pairs_to_find(search, labels, known)
    pairs = hits = 0
    for block in expanded_pairs(search):
        pairs += len(block.low)
        hits += int(np.count_nonzero(known[block.low] & (labels[block.low] == labels[block.high]) & known[block.high]))
    return {
        "truth": truth,
        "records": records,
        "all_pairs": all_pairs,
        "true_pairs": true,
        "true_pairs_found": hits,
        "pairs_completeness": hits / true if true else None,
        "reduction_ratio": 1 - pairs / all_pairs if all_pairs else None,
        "pairs_quality": hits / pairs if pairs else None,
    }


def _pairs_to_find(search: SearchResult, labels: NDArray[np.uint64], known: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the number of pairs of rows of one entity, and of all pairs."""
    readable, split = search.documents.states != FAULTY, search.documents.protected
    if search.documents.corpus.linked:
        second, first = (_entities(labels[side][known[side]]) for side in (slice(split), slice(split, None)))
        sizes = [int(np.count_nonzero(side)) for side in (readable[:split], readable[split:])]
        return sum(count * first[entity] for entity, count in second.items()), sizes[0] * sizes[1]
    rows = int(np.count_nonzero(readable))
    counts = _entities(labels[known]).values()
    return sum(count * (count - 1) // 2 for count in counts), rows * (rows - 1) // 2


def _entities(labels: NDArray[np.uint64]) -> "Counter[int]":
    """Return the number of rows of each entity."""
    entities, counts = np.unique(labels, return_counts=True)
    return Counter(dict(zip(entities.tolist(), counts.tolist(), strict=True)))


def _labels(search: SearchResult, truth: str) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return a hash of each document's value, and a flag for each document that has one."""
    documents = search.documents
    labels = np.zeros(len(documents), dtype=np.uint64)
    known = np.zeros(len(documents), dtype=bool)
    for first, sizes, values in _truth_values(search, truth):
        rows = first + np.flatnonzero(sizes)
        labels[rows], known[rows] = values, True
    known &= documents.states != FAULTY
    return labels, known


def _truth_values(search: SearchResult, truth: str) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield the first document of a batch, the number of values (0 or 1) of each row, and their hashes."""
    documents = search.documents
    columns = Columns(text=(truth,), elements=SingleValue(column=truth))
    for number, source in enumerate(documents.corpus.sources):
        for batch in source.batches(columns, batch_bytes=search.limits.batch_bytes):
            for fault in batch.faults:
                if fault.row is None and not documents.unreadable():
                    raise InputError(f"truth cannot be read; {fault}")
            offsets = to_numpy(batch.values.offsets) if len(batch) else np.zeros(1, dtype=np.int64)
            hashes = to_numpy(batch.values.values)[offsets[0] : offsets[-1]] if len(batch) else np.empty(0, np.uint64)
            yield int(documents.starts[number]) + batch.first, np.diff(offsets), hashes
        source.refuse_changes()
