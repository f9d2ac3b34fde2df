"""Decisions about new documents: duplicate ids, and deduplication on addition."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from minwise.checks import check_choice, show
from minwise.errors import InputError
from minwise.index.clusters import Clusters
from minwise.index.lookup import ExistingDocument, Lookup
from minwise.index.records import DocumentColumns, DocumentIds, DocumentRecord, checksum_of, encode_metadata, seal
from minwise.index.result_types import Added, Decision, Metadata, OnDuplicateId
from minwise.index.settings import SketchedTexts
from minwise.index.store import Store
from minwise.index.view import View
from minwise.index.writer import RemovedDocument, WriteBatch

__all__ = ["AddBuilder", "NewDocuments", "decide_documents", "removed_documents"]

IdStatus = Literal["added", "replaced", "unchanged", "skipped"]


@dataclass(frozen=True, slots=True)
class NewDocuments:
    """The documents of one call, in order.

    Attributes:
        ids: The checked ids.
        columns: The columns of the document table.
        texts: The texts; empty if the index does not store texts.
        sketches: The band keys and bodies.
    """

    ids: DocumentIds
    columns: DocumentColumns
    texts: list[bytes]
    sketches: SketchedTexts

    @classmethod
    def check(
        cls, ids: DocumentIds, sketches: SketchedTexts, texts: list[bytes], metadata: Sequence[Metadata | None] | None
    ) -> "NewDocuments":
        """Combine ids, texts and metadata.

        Raises:
            InputError: If their numbers differ, or metadata is not a JSON object.
        """
        encoded = [b""] * len(ids) if metadata is None else [encode_metadata(row, i) for i, row in enumerate(metadata)]
        for name, count in (("texts", len(sketches)), ("metadata", len(encoded))):
            if count != len(ids):
                raise InputError(f"there must be as many {name} as ids, got {count} and {len(ids)}")
        integer_ids = [not isinstance(value, str) for value in ids.values]
        return cls(ids, DocumentColumns(ids.encoded, integer_ids, encoded, sketches.bodies), texts, sketches)

    def stored_values(self, row: int) -> tuple[bytes, bytes]:
        """Return metadata and body of a document."""
        return self.columns.metadata[row], self.columns.bodies[row]

    def keys(self, rows: Sequence[int]) -> NDArray[np.uint64]:
        """Return, for each of some documents, the hash of its id and its band keys."""
        chosen = np.asarray(rows, dtype=np.int64)
        return np.concatenate([self.ids.hashes[chosen, None], self.sketches.keys[chosen]], axis=1)


class AddBuilder:
    """Decides by id which documents of a call are added, and builds the batch to commit."""

    def __init__(
        self, documents: NewDocuments, policies: Sequence[OnDuplicateId], lookup: Lookup, view: View, store: Store
    ) -> None:
        for policy in set(policies):
            check_choice("on_duplicate_id", policy, ("error", "skip", "replace"))
        self._policies = policies
        self._documents, self._store = documents, store
        self._first = view.state.next
        self._existing = lookup.find_ids(documents.ids)
        # Rows of the documents that are added, and the position of each encoded id in them.
        self._accepted: list[int] = []
        self._positions: dict[bytes, int] = {}
        self._removed: list[RemovedDocument] = []

    def add_all(self) -> Added:
        """Accept every document that its id allows, and return the counts."""
        ids = self._documents.ids.encoded
        if not self._existing and len(set(ids)) == len(ids):
            self._accepted = list(range(len(ids)))
            return Added(added=len(ids))
        counts: Counter[str] = Counter(self._add(row) for row in range(len(ids)))
        return Added(**counts)

    def _add(self, row: int) -> IdStatus:
        status = self.status(row)
        if status in ("added", "replaced"):
            self.accept(row)
        return status

    def status(self, row: int) -> IdStatus:
        """Return the decision by id: ``added`` or ``replaced`` if the document may be accepted, else why not.

        Raises:
            InputError: If another document has the id and the policy is ``error``.
        """
        encoded = self._documents.ids.encoded[row]
        if encoded not in self._positions and encoded not in self._existing:
            return "added"
        if self._is_unchanged(row, encoded):
            return "unchanged"
        if self._policies[row] == "error":
            value = show(self._documents.ids.values[row])
            repeated = encoded in self._positions
            problem = "given twice, with two documents" if repeated else "in the index with another document"
            raise InputError(f"id {value} is {problem}; set on_duplicate_id to 'skip' or 'replace'")
        return "skipped" if self._policies[row] == "skip" else "replaced"

    def _is_unchanged(self, row: int, encoded: bytes) -> bool:
        """Return whether the document with this id has the same text, metadata and body."""
        documents = self._documents
        if encoded in self._positions:
            earlier = self._accepted[self._positions[encoded]]
            same_text = documents.texts[earlier : earlier + 1] == documents.texts[row : row + 1]
            return same_text and documents.stored_values(earlier) == documents.stored_values(row)
        existing = self._existing[encoded]
        with self._store.decoding("documents", existing.number):
            record = DocumentRecord.decode(existing.record)
        if (record.metadata, record.body) != documents.stored_values(row):
            return False
        return not documents.texts or self._store.content("texts", existing.number) == documents.texts[row]

    def replaced_number(self, row: int) -> int | None:
        """Return the number of the document with the same id, which this one replaces."""
        encoded = self._documents.ids.encoded[row]
        if encoded in self._positions:
            return self._first + self._positions[encoded]
        return self._existing[encoded].number if encoded in self._existing else None

    def accept(self, row: int) -> tuple[int, bytes]:
        """Accept a document, in place of any other with its id, and return its number and future record."""
        encoded = self._documents.ids.encoded[row]
        if encoded in self._positions:
            self._removed.append(self._remove_accepted(self._positions[encoded]))
        elif encoded in self._existing:
            existing, texts = [self._existing[encoded]], bool(self._documents.texts)
            self._removed.extend(removed_documents(existing, self._store, texts=texts))
        position = self._positions[encoded] = len(self._accepted)
        self._accepted.append(row)
        return self._first + position, self._record(position)

    def _remove_accepted(self, position: int) -> RemovedDocument:
        """Return the removal of a document of the same call: its rows are inserted and deleted."""
        number, row = self._first + position, self._accepted[position]
        texts, _ = seal(number, self._documents.texts[row : row + 1])
        return RemovedDocument(number, tuple(checksum_of(record) for record in (self._record(position), *texts)))

    def _record(self, position: int) -> bytes:
        """Return the future record of an accepted document."""
        (record,), _ = self._documents.columns.take([self._accepted[position]]).seal(self._first + position)
        return record

    def batch(self) -> WriteBatch:
        """Return the batch to commit."""
        documents, rows = self._documents, self._accepted
        texts = [documents.texts[row] for row in rows] if documents.texts else []
        return WriteBatch(documents.columns.take(rows), texts, documents.keys(rows), self._removed)


def removed_documents(documents: Sequence[ExistingDocument], store: Store, *, texts: bool) -> list[RemovedDocument]:
    """Return the removals of stored documents; ``texts`` if the index stores texts."""
    records = [document.record for document in documents]
    stored = store.records("texts", [document.number for document in documents]) if texts else []
    rows = zip(records, stored, strict=True) if texts else zip(records, strict=True)
    return [
        RemovedDocument(document.number, tuple(checksum_of(record) for record in row))
        for document, row in zip(documents, rows, strict=True)
    ]


def decide_documents(
    documents: NewDocuments,
    unique: Sequence[bool],
    builder: AddBuilder,
    lookup: Lookup,
    view: View,
    clusters: Clusters | None = None,
) -> list[Decision]:
    """Decide on each document in order; a later document is compared with the accepted earlier ones.

    Args:
        documents: The documents.
        unique: For each document, whether it is left out if it has a near-duplicate.
        builder: Decides by id, and collects accepted documents.
        lookup: Finds near-duplicates.
        view: The view that ``lookup`` reads; accepted documents are added to it.
        clusters: The clusters to which documents are assigned, if the index has any.
    """
    decider = _DocumentDecider(documents, builder, lookup, view, clusters)
    return [decider.decide(row, unique=check) for row, check in enumerate(unique)]


class _DocumentDecider:
    """Accepts documents one by one, each visible to the next."""

    def __init__(
        self, documents: NewDocuments, builder: AddBuilder, lookup: Lookup, view: View, clusters: Clusters | None
    ) -> None:
        self._documents, self._builder, self._lookup, self._view = documents, builder, lookup, view
        self._clusters = clusters
        # Records of accepted documents, which are not in the database yet.
        self._pending: dict[int, bytes] = {}

    def decide(self, row: int, *, unique: bool) -> Decision:
        value, sketches = self._documents.ids.values[row], self._documents.sketches
        status = self._builder.status(row)
        replaced, similar, truncated = self._builder.replaced_number(row), None, False
        if status in ("unchanged", "skipped"):
            return Decision(value, status, cluster=self._cluster_of(replaced))
        search = sketches.keys[row], sketches.bodies[row], replaced, self._pending
        if unique:
            similar, truncated = self._lookup.most_similar(*search)
        if similar is not None:
            original, cluster = self._lookup.id_of(similar), self._cluster_of(similar.number)
            return Decision(value, "duplicate", original, similar.similarity, truncated, cluster)
        if self._clusters is None:
            self._accept(row, replaced)
            return Decision(value, status, truncated=truncated)
        joined, shortened = ([], truncated) if unique else self._lookup.similar(*search)
        cluster, merged = self._clusters.assign(self._accept(row, replaced), joined)
        return Decision(value, status, truncated=shortened, cluster=cluster, merged=merged)

    def _cluster_of(self, number: int | None) -> int | None:
        return None if self._clusters is None or number is None else self._clusters.find(number)

    def _accept(self, row: int, replaced: int | None) -> int:
        number, record = self._builder.accept(row)
        self._pending[number] = record
        self._view.push(number, self._documents.keys([row]))
        if replaced is not None:
            self._view.hide(replaced)
        return number
