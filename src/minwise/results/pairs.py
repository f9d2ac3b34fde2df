"""Tables of pairs and clusters, their report, and the columns that identify documents in every result table.

The input is a :class:`~minwise.search.engine.SearchResult`; the tables are yielded in bounded pieces, so that a result
larger than memory can be written. Pairs of identical documents are expanded here, and sorted in the work directory.
"""

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
from minwise.results.notes import report_notes
from minwise.search.bands import FAULTY, BucketCounts, cut_runs, pack_pairs, unpack_pairs
from minwise.search.clustering import CopyExpansion, PairBlock, cluster_by_components, cluster_by_star
from minwise.search.engine import SearchResult
from minwise.search.needed_pairs import PairCounts

__all__ = [
    "Clustering",
    "blocking_quality",
    "cap_report",
    "cap_section",
    "expanded_pairs",
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


def identity_columns(search: SearchResult, documents: NDArray[Any]) -> dict[str, pa.Array]:
    """Return the columns id, source and row of documents."""
    names, rows = search.documents.locate(documents)
    return {"id": search.documents.ids(documents), "source": names, "row": from_numpy(rows)}


def identity_schema(search: SearchResult) -> dict[str, pa.DataType]:
    """Return the types of the columns id, source and row."""
    return {"id": search.documents.id_type, "source": pa.large_string(), "row": pa.int64()}


def similarity_column(values: NDArray[np.float64]) -> pa.Array:
    """Return similarities as a column, null where they are unknown."""
    return from_numpy(values, ~np.isnan(values))


def pair_tables(search: SearchResult, *, sources: bool = False) -> Iterator[pa.Table]:
    """Yield every pair by id, in document order, including pairs of identical documents.

    Args:
        search: The result of a search.
        sources: Whether to add source and row of both documents.
    """
    for block in expanded_pairs(search):
        left, right = block.low.astype(np.int64), block.high.astype(np.int64)
        for start in range(0, max(1, len(left)), TABLE_ROWS):
            rows = slice(start, start + TABLE_ROWS)
            yield _pair_table(search, left[rows], right[rows], block.similarity[rows], sources=sources)
    search.documents.corpus.refuse_changes()  # before the file of these tables gets its name


def expanded_pairs(search: SearchResult) -> Iterator[PairBlock]:
    """Yield the pairs of all documents in ascending order, including pairs of identical documents."""
    if not len(search.copies):
        yield from search.blocks()
        return
    if not search.work.has("expanded"):
        _spill_expanded(search)
    files = [search.work.open(name) for name in search.work.names("expanded-")]
    runs = [file.map("pairs") for file in files]
    for cuts in cut_runs(runs, EXPANDED_PAIRS):
        pairs = np.concatenate([run[cut] for run, cut in zip(runs, cuts, strict=True)])
        similarity = np.concatenate([file.map("similarity")[cut] for file, cut in zip(files, cuts, strict=True)])
        order = np.argsort(pairs)
        yield PairBlock(*unpack_pairs(pairs[order]), similarity[order])


def _spill_expanded(search: SearchResult) -> None:
    """Write the pairs of all copies as sorted runs to the work directory."""
    search.work.delete("expanded-")  # of an interrupted run
    expansion = CopyExpansion(search.copies, len(search.documents), search.settings.max_bucket)
    across = (expanded for block in search.blocks() for expanded in expansion.across(block, EXPANDED_PAIRS))
    within = expansion.within(EXPANDED_PAIRS, search.settings.identical_similarity)
    for number, block in enumerate(chain(across, within)):
        pairs = pack_pairs(block.low, block.high)
        order = np.argsort(pairs)
        search.work.write(f"expanded-{number:06}", {"pairs": pairs[order], "similarity": block.similarity[order]})
    search.work.write_json("expanded", {})


def pair_report(search: SearchResult) -> dict[str, Any]:
    """Return settings, counts, faults, and the pairs that the caps on buckets and on identical documents left out.

    Figures about pairs are None if only those were compared that decide clusters.
    """
    expansion = CopyExpansion(search.copies, len(search.documents), search.settings.max_bucket)
    capped = expansion.capped_leaders()
    across = sum(expansion.left_out_across(block) for block in search.blocks()) if len(capped) else 0
    sizes = expansion.sizes[expansion.expanded_sizes != expansion.sizes]
    groups = zip(search.documents.ids(capped[:SHOWN_GROUPS]).to_pylist(), sizes[:SHOWN_GROUPS].tolist(), strict=True)
    return {
        "minwise": _kernel.VERSION,
        "settings": search.settings.to_dict(),
        "plan": search.settings.plan_dict(),
        "counts": search.documents.counts,
        **({"rows": rows} if (rows := search.documents.grouped_rows()) else {}),
        "candidates": search.candidates,
        "compared": search.compared,
        "caps": {
            **cap_report(search),
            "identical_groups": len(capped),
            "identical_pairs_left_out": expansion.left_out_within() + across if search.is_complete else None,
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


def pair_schema(search: SearchResult, *, sources: bool) -> pa.Schema:
    """Return the columns of the table of pairs."""
    none = np.empty(0, dtype=np.int64)
    return _pair_table(search, none, none, np.empty(0), sources=sources).schema


class Clustering:
    """Clusters of a search, each named after its first document."""

    def __init__(self, search: SearchResult) -> None:
        documents = search.documents
        if search.settings.group == "components":
            firsts = cluster_by_components(search.blocks, search.copies, len(documents))
        else:
            clustering = cluster_by_star(search.blocks, search.copies, len(documents))
            firsts = np.where(clustering.removed, clustering.witness, np.arange(len(documents)))
        self._documents = documents
        self._firsts = firsts.astype(np.int64)
        self._readable = np.flatnonzero(documents.states != FAULTY)
        self._sizes = np.bincount(self._firsts[self._readable], minlength=len(documents))

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
        """Yield every document with the id of its cluster's first document and the cluster's size."""
        yield from (self.table(documents) for documents in table_slices(self._readable))
        self._documents.corpus.refuse_changes()  # before the file of these tables gets its name

    def table(self, documents: NDArray[np.int64]) -> pa.Table:
        """Return these documents with the id of their cluster's first document and the cluster's size."""
        firsts = self._firsts[documents]
        ids, clusters = self._documents.ids(documents), self._documents.ids(firsts)
        return pa.table({"id": ids, "cluster": clusters, "size": from_numpy(self._sizes[firsts])})

    def members(self, count: int) -> NDArray[np.int64]:
        """Return the first documents of clusters with more than one, cluster by cluster."""
        members = self._readable[self._sizes[self._firsts[self._readable]] > 1]
        return members[np.argsort(self._firsts[members], kind="stable")][:count]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the tables."""
        kind = self._documents.id_type
        return pa.schema([("id", kind), ("cluster", kind), ("size", pa.int64())])


def blocking_quality(search: SearchResult, truth: str) -> dict[str, Any]:
    """Return the quality of the pairs against a ground-truth column.

    Rows with the same value in the column are the same entity; a row without a value is an entity of its own. Reads the
    column of every source again.

    Raises:
        InputError: If the column cannot be read.
    """
    labels, known = _labels(search, truth)
    counts = np.unique(labels[known], return_counts=True)[1].astype(object)  # squares may exceed 64 bits
    true = int((counts * (counts - 1)).sum()) // 2
    records = int(np.count_nonzero(search.documents.states != FAULTY))
    all_pairs = records * (records - 1) // 2
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
