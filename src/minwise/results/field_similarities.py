"""Similarities of the fields of records, for the pairs of a search.

The search compares sets in which the shingles of all fields are mixed. For a similarity per field, the records of the
listed pairs are read once more for each field; their sets are spilled to files and compared by the kernel.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_bools
from minwise.inputs.records import Field, RecordFields
from minwise.inputs.source import Columns
from minwise.progress import NullProgress
from minwise.search.bands import NO_DOCUMENT, pack_pairs, unpack_pairs
from minwise.search.engine import SearchResult
from minwise.search.first_pass import wanted_batches
from minwise.search.verification import SetSpillWriter

__all__ = ["FieldSimilarities", "field_columns"]


def field_columns(search: SearchResult) -> list[str]:
    """Return the names of the columns of similarities, one per field."""
    return [f"{field.name}_similarity" for field in _fields(search)]


def _fields(search: SearchResult) -> tuple[Field, ...]:
    assert isinstance(search.settings.elements, RecordFields)  # the caller has checked it
    return search.settings.elements.fields


class FieldSimilarities:
    """Similarities of the fields of paired records, from sets in the work directory."""

    def __init__(self, search: SearchResult) -> None:
        """Read the fields of all records that are in a pair, and write their sets."""
        self._threads = search.limits.threads
        self._documents = _paired_documents(search)
        self._indices = np.full(len(search.documents), NO_DOCUMENT, dtype=np.uint32)
        self._indices[self._documents] = np.arange(len(self._documents), dtype=np.uint32)
        self._stores = {
            f"{field.name}_similarity": _SpilledField(search, number, field, self._documents)
            for number, field in enumerate(_fields(search))
        }

    def columns(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        """Return the similarities of pairs of documents by column; NaN where one of them has no shingles."""
        pairs = pack_pairs(left.astype(np.uint32), right.astype(np.uint32))
        return {name: store.similarities(pairs, self._indices, self._threads) for name, store in self._stores.items()}


class _SpilledField:
    """Sets of one field of the paired records."""

    def __init__(self, search: SearchResult, number: int, field: Field, documents: NDArray[np.int64]) -> None:
        work, prefix = search.work, f"field{number:04}-"
        if not work.has(f"field{number:04}"):
            work.delete(prefix)  # of an interrupted run
            _spill(search, field, documents, prefix)
            work.write_json(f"field{number:04}", {})
        self._store = _kernel.SetStore(False)
        sizes: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        budget = search.limits.memory // 4 // len(_fields(search))
        for name in work.names(prefix):
            file = work.open(name)
            offsets = file.read("offsets")
            budget -= 8 * file.length("elements")
            self._store.add(str(file.path), file.position("elements"), offsets, False, budget >= 0)
            sizes.append(offsets[1:].astype(np.int64) - offsets[:-1].astype(np.int64))
        self._filled = np.concatenate(sizes) > 0

    def similarities(self, pairs: NDArray[np.uint64], indices: NDArray[np.uint32], threads: int) -> NDArray[np.float64]:
        """Return the similarity of each pair of documents; NaN where one of them has no shingles."""
        left, right = (indices[side] for side in unpack_pairs(pairs))
        filled = self._filled[left] & self._filled[right]
        similarity = np.full(len(pairs), np.nan)
        similarity[filled] = self._store.similar(pairs[filled], indices, 0.0, threads)[2]
        return similarity


def _spill(search: SearchResult, field: Field, documents: NDArray[np.int64], prefix: str) -> None:
    """Write the sets of one field of ascending documents."""
    with SetSpillWriter(search.work, None, search.limits, prefix) as writer:
        for values in _field_values(search, field, documents):
            writer.add(values)
        writer.finish()


def _field_values(search: SearchResult, field: Field, documents: NDArray[np.int64]) -> Iterator[pa.Array]:
    """Yield the sets of one field of ascending documents, in batches."""
    wanted = np.zeros(len(search.documents), dtype=bool)
    wanted[documents] = True
    elements = search.settings.elements
    assert isinstance(elements, RecordFields)
    columns = Columns(text=(field.name,), elements=replace(elements, fields=(replace(field, weight=1),)))
    job = search.job(NullProgress())
    job = replace(job, corpus=replace(job.corpus, columns=columns))
    for first, batch in wanted_batches(job, search.documents, wanted):
        yield batch.values.filter(from_bools(wanted[first : first + len(batch)]))


def _paired_documents(search: SearchResult) -> NDArray[np.int64]:
    """Return the documents that are in a pair, ascending."""
    paired = np.zeros(len(search.documents), dtype=bool)
    for block in search.blocks():
        paired[block.low] = paired[block.high] = True
    followers, leaders = search.copies.followers()
    if search.documents.corpus.linked:
        paired[followers] = paired[leaders]
    else:
        paired[followers] = paired[leaders] = True
    return np.sort(search.order.document_at[paired]).astype(np.int64)
