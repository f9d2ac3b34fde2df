"""Clusters of an index: every document is assigned to one when it is added.

A document joins the clusters of all stored documents that are similar to it, which become one; without any, it begins a
cluster. A cluster is named by the number of its first document, so a name never changes its meaning: numbers are not
reused, and of merged clusters the oldest name stays. Removing a document does not divide its cluster.

A row of the manifest has, for each of 1,024 documents, the number of a document of the same cluster that was added
before it, or its own number if it is the first one. A merge changes one number.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from minwise.errors import FormatError
from minwise.index.store import Store

__all__ = ["Clusters"]

# Number of the first row of the manifest that has documents, and documents of a row.
FIRST_ROW, ROW_DOCUMENTS = 16, 1024
# What a row has for a document that is not added yet.
NO_DOCUMENT = 2**32 - 1


class Clusters:
    """The clusters of the documents of one state, and those of documents that are not committed yet."""

    def __init__(self, store: Store, documents: int) -> None:
        self._store, self._documents = store, documents
        self._rows: dict[int, NDArray[np.uint32]] = {}
        self._changed: set[int] = set()

    def find(self, number: int) -> int:
        """Return the cluster of a document.

        Raises:
            FormatError: If a row is missing or damaged.
        """
        passed = []
        while (parent := self._parent(number)) != number:
            passed.append(number)
            number = parent
        for other in passed:  # so that the next search is short
            self._row(other // ROW_DOCUMENTS)[other % ROW_DOCUMENTS] = number
        return number

    def assign(self, number: int, similar: Iterable[int]) -> tuple[int, tuple[int, ...]]:
        """Assign a new document to the clusters of similar ones; return its cluster, and those that became it."""
        cluster, *merged = sorted({self.find(other) for other in similar}) or [number]
        for other in (number, *merged):
            self._set(other, cluster)
        return cluster, tuple(merged)

    def changed_rows(self) -> list[tuple[int, bytes]]:
        """Return number and content of each changed row of the manifest."""
        return [(FIRST_ROW + row, self._rows[row].astype("<u4").tobytes()) for row in sorted(self._changed)]

    def damaged_rows(self) -> Iterator[str]:
        """Yield a message for each row that is missing or damaged."""
        for first in range(0, self._documents, ROW_DOCUMENTS):
            numbers = range(first, min(first + ROW_DOCUMENTS, self._documents))
            damage = self._damage(numbers)
            if damage is not None:
                yield damage

    def _damage(self, numbers: range) -> str | None:
        try:
            for number in numbers:
                self._parent(number)
        except FormatError as error:
            return str(error)
        return None

    def _set(self, number: int, cluster: int) -> None:
        self._row(number // ROW_DOCUMENTS)[number % ROW_DOCUMENTS] = cluster
        self._changed.add(number // ROW_DOCUMENTS)

    def _parent(self, number: int) -> int:
        row = number // ROW_DOCUMENTS
        parent = int(self._row(row)[number % ROW_DOCUMENTS])
        if parent > number:
            error = ValueError(f"document {number} must follow one of its cluster, got {parent}")
            raise self._store.damaged_row("manifest", FIRST_ROW + row, error)
        return parent

    def _row(self, row: int) -> NDArray[np.uint32]:
        if row not in self._rows:
            self._rows[row] = self._read(row)
        return self._rows[row]

    def _read(self, row: int) -> NDArray[np.uint32]:
        if row * ROW_DOCUMENTS >= self._documents:
            return np.full(ROW_DOCUMENTS, NO_DOCUMENT, dtype=np.uint32)
        content = self._store.content("manifest", FIRST_ROW + row)
        if len(content) != 4 * ROW_DOCUMENTS:
            error = ValueError(f"there must be {4 * ROW_DOCUMENTS} bytes, got {len(content)}")
            raise self._store.damaged_row("manifest", FIRST_ROW + row, error)
        return np.frombuffer(content, dtype="<u4").astype(np.uint32)
