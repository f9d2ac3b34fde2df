"""Blocking: pairs and a column that tells who is who in; how many true pairs they hold, and how much they spare, out.

Pairs completeness is the share of true pairs that were found, reduction ratio the share of all pairs that nobody has to
look at any more (Christen 2012, Data Matching, section 7.3); pairs quality is the share of found pairs that are true.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.arrays import to_numpy
from minwise.engines.found import Found
from minwise.errors import InputError
from minwise.formats.source import Columns
from minwise.results.pairs import expanded
from minwise.stages.band import FAULTY
from minwise.stages.items import OneValue

__all__ = ["blocking_quality"]


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
