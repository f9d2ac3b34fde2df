"""Columns: numbers of documents in, the columns that tell a user which they are out."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy, to_numpy
from minwise.errors import InputError
from minwise.inputs.items import OneValue
from minwise.inputs.source import Columns
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.results.columns import identity, similarity_column, slices
from minwise.results.report_data import cap_report
from minwise.search.bands import FAULTY, cut_runs, pack, split
from minwise.search.clustering import Expansion, PairBlock, group_by_components, group_by_star
from minwise.search.engine import Found

__all__ = [
    "Clustering",
    "blocking_quality",
    "expanded",
    "pair_report",
    "pair_schema",
    "pair_tables",
]


# Pairs that are put in order at once.
EXPANDED_PAIRS = 1 << 22
# Groups of identical documents that a report names.
SHOWN_GROUPS = 20
# Rows that could not be read that the report of a search, which has no quarantine file, names.
SHOWN_FAULTS = 100


def pair_tables(found: Found, *, sources: bool = False) -> Iterator[pa.Table]:
    """Every pair, by id, in document order; also those among identical documents."""
    for block in expanded(found):
        left, right = block.low.astype(np.int64), block.high.astype(np.int64)
        for start in range(0, max(1, len(left)), TABLE_ROWS):
            piece = slice(start, start + TABLE_ROWS)
            yield _pair_table(found, left[piece], right[piece], block.similarity[piece], sources=sources)


def expanded(found: Found) -> Iterator[PairBlock]:
    """The pairs of all documents, ascending."""
    if not len(found.copies):
        yield from found.blocks()
        return
    if not found.work.has("expanded"):
        _spill_expanded(found)
    pieces = [found.work.open(name) for name in found.work.names("expanded-")]
    runs = [piece.map("pairs") for piece in pieces]
    for cuts in cut_runs(runs, EXPANDED_PAIRS):
        pairs = np.concatenate([run[cut] for run, cut in zip(runs, cuts, strict=True)])
        similarity = np.concatenate([piece.map("similarity")[cut] for piece, cut in zip(pieces, cuts, strict=True)])
        order = np.argsort(pairs)
        yield PairBlock(*split(pairs[order]), similarity[order])


def _spill_expanded(found: Found) -> None:
    """Writes the pairs of all copies in ascending runs."""
    found.work.forget("expanded-")  # of a run that was cut short
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    across = (wide for block in found.blocks() for wide in expansion.across(block, EXPANDED_PAIRS))
    within = expansion.within(EXPANDED_PAIRS, found.settings.of_identical)
    for number, block in enumerate(chain(across, within)):
        pairs = pack(block.low, block.high)
        order = np.argsort(pairs)
        found.work.write(f"expanded-{number:06}", {"pairs": pairs[order], "similarity": block.similarity[order]})
    found.work.note("expanded", {})


def pair_report(found: Found) -> dict[str, Any]:
    """What was compared, and what the cap on buckets and on groups of identical documents left out, and where."""
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    capped = expansion.capped()
    across = sum(expansion.left_out_across(block) for block in found.blocks()) if len(capped) else 0
    sizes = expansion.sizes[expansion.counting != expansion.sizes]
    groups = zip(found.documents.ids(capped[:SHOWN_GROUPS]).to_pylist(), sizes[:SHOWN_GROUPS].tolist(), strict=True)
    return {
        "minwise": _kernel.VERSION,
        "settings": found.settings.to_dict(),
        "plan": found.settings.planned(),
        "counts": found.documents.counts,
        **({"rows": rows} if (rows := found.documents.grouped_rows()) else {}),
        "candidates": found.candidates,
        "caps": {
            **cap_report(found),
            "identical_groups": len(capped),
            "identical_pairs_left_out": expansion.left_out_within() + across,
            "largest_identical_groups": [{"first": first, "documents": size} for first, size in groups],
        },
        "unreadable": found.documents.unreadable(),
        "faults": list(islice(found.documents.faults(), SHOWN_FAULTS)),
    }


def _pair_table(
    found: Found, left: NDArray[np.int64], right: NDArray[np.int64], similarity: NDArray[np.float64], *, sources: bool
) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, numbers in (("left", left), ("right", right)):
        if sources:
            whole = identity(found, numbers)
            columns |= {name: whole["id"], f"{name}_source": whole["source"], f"{name}_row": whole["row"]}
        else:
            columns[name] = found.documents.ids(numbers)
    columns[found.settings.measured] = similarity_column(similarity)
    return pa.table(columns)


def pair_schema(found: Found, *, sources: bool) -> pa.Schema:
    """The columns of the table of pairs."""
    none = np.empty(0, dtype=np.int64)
    return _pair_table(found, none, none, np.empty(0), sources=sources).schema


class Clustering:
    """The clusters of a search, each called after its first document."""

    def __init__(self, found: Found) -> None:
        documents = found.documents
        if found.settings.group == "components":
            heads = group_by_components(found.blocks, found.copies, len(documents))
        else:
            grouping = group_by_star(found.blocks, found.copies, len(documents))
            heads = np.where(grouping.removed, grouping.witness, np.arange(len(documents)))
        self._documents = documents
        self._heads = heads.astype(np.int64)
        self._readable = np.flatnonzero(documents.states != FAULTY)
        self._sizes = np.bincount(self._heads[self._readable], minlength=len(documents))

    @property
    def of_two_or_more(self) -> int:
        """How many clusters have more than one document."""
        return int(np.count_nonzero(self._sizes > 1))

    def tables(self) -> Iterator[pa.Table]:
        """Every document with the id of its cluster's first document and the cluster's size."""
        for numbers in slices(self._readable):
            heads = self._heads[numbers]
            ids, owners = self._documents.ids(numbers), self._documents.ids(heads)
            yield pa.table({"id": ids, "cluster": owners, "size": from_numpy(self._sizes[heads])})

    @property
    def schema(self) -> pa.Schema:
        """The columns of the tables."""
        kind = self._documents.id_type
        return pa.schema([("id", kind), ("cluster", kind), ("size", pa.int64())])


def blocking_quality(found: Found, truth: str) -> dict[str, Any]:
    """The quality of the pairs, given a column in which rows of one entity have one value.

    A row without a value is an entity of its own.
    """
    labels, known = _labels(found, truth)
    counts = np.unique(labels[known], return_counts=True)[1].astype(object)  # whose squares may not fit 64 bits
    true = int((counts * (counts - 1)).sum()) // 2
    records = int(np.count_nonzero(found.documents.states != FAULTY))
    every = records * (records - 1) // 2
    pairs = hits = 0
    for block in expanded(found):
        pairs += len(block.low)
        hits += int(np.count_nonzero(known[block.low] & (labels[block.low] == labels[block.high]) & known[block.high]))
    return {
        "truth": truth,
        "records": records,
        "all_pairs": every,
        "true_pairs": true,
        "true_pairs_found": hits,
        "pairs_completeness": hits / true if true else None,
        "reduction_ratio": 1 - pairs / every if every else None,
        "pairs_quality": hits / pairs if pairs else None,
    }


def _labels(found: Found, truth: str) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """A hash of each document's value, and which documents have one."""
    documents = found.documents
    labels = np.zeros(len(documents), dtype=np.uint64)
    known = np.zeros(len(documents), dtype=bool)
    for first, sizes, values in _values(found, truth):
        rows = first + np.flatnonzero(sizes)
        labels[rows], known[rows] = values, True
    known &= documents.states != FAULTY
    return labels, known


def _values(found: Found, truth: str) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint64]]]:
    documents = found.documents
    columns = Columns(text=(truth,), elements=OneValue(column=truth))
    for number, source in enumerate(documents.corpus.sources):
        for batch in source.batches(columns, batch_bytes=found.limits.batch_bytes):
            for fault in batch.faults:
                if fault.row is None and not documents.unreadable():
                    raise InputError(f"truth can not be read; {fault}")
            offsets = to_numpy(batch.texts.offsets) if len(batch) else np.zeros(1, dtype=np.int64)
            values = to_numpy(batch.texts.values)[offsets[0] : offsets[-1]] if len(batch) else np.empty(0, np.uint64)
            yield int(documents.starts[number]) + batch.first, np.diff(offsets), values
