"""Answers: what an index gives back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Added", "Answer", "Damage", "Decision", "DocumentId", "Hit", "Listing", "Metadata", "StoredDocument"]

DocumentId = str | int
Metadata = dict[str, Any]


class Hit(NamedTuple):
    """A document that is similar to the one asked for.

    Attributes:
        id: Its id, as it was added.
        similarity: The Jaccard similarity.
        metadata: What was stored with it.
        exact: Whether the similarity is that of the shingle sets; otherwise it is estimated from sketches.
        text: The text, if it was asked for and the index stores texts.
    """

    id: DocumentId
    similarity: float
    metadata: Metadata | None
    exact: bool
    text: str | bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer(Sequence[Hit]):
    """The near-duplicates of one text, the most similar first; of equally similar ones the first added.

    Attributes:
        hits: The near-duplicates.
        truncated: Whether work was cut short: a bucket above its cap, or more candidates than are compared.
    """

    hits: tuple[Hit, ...]
    truncated: bool

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[place]


class Added(NamedTuple):
    """What became of the documents of one call.

    Attributes:
        added: New ones.
        replaced: Those that took the place of another with the same id.
        skipped: Those whose id was taken, and that were left out as asked.
        unchanged: Those that were there already, the same in everything that is stored.
    """

    added: int = 0
    replaced: int = 0
    skipped: int = 0
    unchanged: int = 0


class Decision(NamedTuple):
    """What became of one document of a stream.

    Attributes:
        id: Its id.
        fate: ``added``, ``replaced``, ``duplicate``, ``unchanged`` or ``skipped``.
        duplicate_of: The id of the most similar document that was there before; None unless it is a duplicate.
        similarity: Their similarity.
        truncated: Whether the search for it was cut short.
    """

    id: DocumentId
    fate: str
    duplicate_of: DocumentId | None = None
    similarity: float | None = None
    truncated: bool = False

    @property
    def kept(self) -> bool:
        """Whether the index holds it now."""
        return self.fate in ("added", "replaced", "unchanged")


class StoredDocument(NamedTuple):
    """What an index knows of a document.

    Attributes:
        id: Its id, as it was added.
        metadata: What was stored with it.
        text: The text, if the index stores texts; as bytes if it is not UTF-8, which only byte shingles take.
        elements: Its shingle hashes in ascending order, if the index stores them.
    """

    id: DocumentId
    metadata: Metadata | None
    text: str | bytes | None
    elements: NDArray[np.uint64] | None


class Listing(NamedTuple):
    """Some documents in a row, the newest first.

    Attributes:
        documents: The documents.
        next: What to give as ``before`` to get those after them; None if there are no more.
    """

    documents: list[StoredDocument]
    next: int | None


class Damage(NamedTuple):
    """Something that is not as it was written.

    Attributes:
        file: The file.
        what: What is wrong with it.
    """

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"
