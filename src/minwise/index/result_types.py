"""Result types of an index."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, overload

import numpy as np
from numpy.typing import NDArray

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

__all__ = [
    "AddCounts",
    "Added",
    "Answer",
    "ContainedSide",
    "Damage",
    "Decision",
    "DedupCounts",
    "DocumentId",
    "DocumentStatus",
    "Expired",
    "Hit",
    "HitRow",
    "IndexStats",
    "Listing",
    "Metadata",
    "OnDuplicateId",
    "PassageRow",
    "QueryRow",
    "SegmentStats",
    "StoredDocument",
    "TextMatch",
    "TextMatches",
    "TruncatedBy",
]

DocumentId = str | int
Metadata = dict[str, Any]
OnDuplicateId = Literal["error", "skip", "replace"]
TruncatedBy = Literal["bucket", "candidates"]
ContainedSide = Literal["query", "document"]
DocumentStatus = Literal["added", "replaced", "duplicate", "unchanged", "skipped"]


class Hit(NamedTuple):
    """A stored document that is similar to the query text.

    Attributes:
        id: The id, of the type that it was added with.
        similarity: The Jaccard similarity, from 0 to 1; with ``measure="containment"`` the share of the elements of
            the smaller text that the other one has.
        metadata: The metadata that was stored with the document.
        exact: True if the similarity is computed from the shingle sets, false if it is estimated from sketches.
        text: The text, if the query requested texts and the index stores them.
        contained: Which text lies in the other one, ``query`` or ``document``; None with ``measure="jaccard"``.
        recall: The probability that the bands of the index find such a document; with ``measure="containment"`` given
            the sizes of both texts. None with a threshold and ``measure="jaccard"``.
    """

    id: DocumentId
    similarity: float
    metadata: Metadata | None
    exact: bool
    text: str | bytes | None = None
    contained: ContainedSide | None = None
    recall: float | None = None


@dataclass(frozen=True, slots=True)
class Answer(Sequence[Hit]):
    """The near-duplicates of one text, in descending similarity; equal similarities in the order of addition.

    Attributes:
        hits: The near-duplicates.
        truncated: True if the search was cut short, so that hits may be missing.
        truncated_by: ``candidates`` if there were more candidates than ``max_candidates`` of the query allows,
            ``bucket`` if only buckets were not searched to their end; None if the search was not cut short.
        left_out: Number of candidates that were not compared because of ``max_candidates``.
        capped_buckets: Number of buckets that have more members than ``max_bucket`` of the index, or more than 16,384
            removed ones before its last member.
        complete_above: With ``threshold=0``, the similarity above which a document that belongs in the answer is in it
            with a probability of at least 99 %; less similar ones may be missing. None with a threshold, and if the
            search was cut short so early that no similarity suffices.
    """

    hits: tuple[Hit, ...]
    truncated: bool
    truncated_by: TruncatedBy | None = None
    left_out: int = 0
    capped_buckets: int = 0
    complete_above: float | None = None

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, position: int) -> Hit: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, position: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[position]


class Added(NamedTuple):
    """Counts of the documents of one call by outcome.

    Attributes:
        added: New documents.
        replaced: Documents that replaced another one with the same id.
        skipped: Documents that were left out because another document has their id.
        unchanged: Documents that the index already holds with the same id, text and metadata.
    """

    added: int = 0
    replaced: int = 0
    skipped: int = 0
    unchanged: int = 0


class Expired(NamedTuple):
    """Counts of :meth:`minwise.Index.expire`.

    Attributes:
        read: Documents read.
        expired: Documents whose time is before ``before``: they were removed, unless the call was a dry run.
        undated: Documents that have no value in the time field, and stay.
        unreadable: Documents with a value in it that is not a time, which stay, too.
        oldest: The oldest time that was read, in ISO 8601; None if there is none.
        before: The time before which documents expire, in ISO 8601.
    """

    read: int
    expired: int
    undated: int
    unreadable: int
    oldest: str | None
    before: str


class Decision(NamedTuple):
    """The outcome for one document that was checked on addition.

    Attributes:
        id: The id of the document.
        fate: ``added``, ``replaced``, ``duplicate``, ``unchanged`` or ``skipped``.
        duplicate_of: The id of the most similar document in the index; None unless the document is a duplicate.
        similarity: The similarity to that document.
        truncated: True if the search for near-duplicates was cut short.
        cluster: In an index that assigns clusters, that of the document, or of the one that it duplicates: the number
            of its first document. None in any other index.
        merged: Clusters that became that one with this document.
    """

    id: DocumentId
    fate: DocumentStatus
    duplicate_of: DocumentId | None = None
    similarity: float | None = None
    truncated: bool = False
    cluster: int | None = None
    merged: tuple[int, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the index holds the document after the call."""
        return self.fate in ("added", "replaced", "unchanged")


class StoredDocument(NamedTuple):
    """A document as the index stores it.

    Attributes:
        id: The id, of the type that it was added with.
        metadata: The metadata that was stored with the document.
        text: The text, if the index stores texts; bytes if it is not valid UTF-8, which only byte shingles accept.
        elements: The shingle hashes in ascending order, if the index stores them.
    """

    id: DocumentId
    metadata: Metadata | None
    text: str | bytes | None
    elements: NDArray[np.uint64] | None


class Listing(NamedTuple):
    """One page of documents, the newest first.

    Attributes:
        documents: The documents of the page.
        next: The value of ``before`` that returns the next page; None on the last page.
    """

    documents: list[StoredDocument]
    next: int | None


class TextMatch(NamedTuple):
    """A document whose text contains a phrase.

    Attributes:
        document: The document.
        start: Offset of the first match in its text, in code points.
        end: Offset of the end of that match.
    """

    document: StoredDocument
    start: int
    end: int


class TextMatches(NamedTuple):
    """One page of documents that contain a phrase, the newest first.

    Attributes:
        matches: The documents of the page; there may be none, although later pages have some.
        searched: Number of documents that were searched for this page.
        next: The value of ``before`` that continues the search; None if all documents were searched.
    """

    matches: list[TextMatch]
    searched: int
    next: int | None


class Damage(NamedTuple):
    """A difference between a file and what was written to it.

    Attributes:
        file: The path of the file.
        what: A description of the difference.
    """

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class AddCounts(TypedDict):
    """Counts of one :meth:`Index.add_from` call.

    Attributes:
        read: Rows read.
        added: New documents.
        replaced: Documents that replaced another one with the same id.
        skipped: Documents left out because another document has their id.
        unchanged: Documents that the index already held.
        quarantined: Rows that could not be used.
        unreadable: Files that could not be read, or not to their end.
        faults: The first 100 faults: ``source``, ``row`` and ``reason`` of each.
        skipped_entries: Number of entries of directories that were not read, by reason; only if there are any.
    """

    read: int
    added: int
    replaced: int
    skipped: int
    unchanged: int
    quarantined: int
    unreadable: int
    faults: list[dict[str, Any]]
    skipped_entries: NotRequired[dict[str, int]]


class DedupCounts(AddCounts):
    """Counts of one :meth:`Index.add_stream` call.

    Attributes:
        duplicates: Near-duplicates left out.
        truncated: Decisions made after a search that was cut short.
    """

    duplicates: int
    truncated: int


class PassageRow(TypedDict):
    """The longest passage that a query text shares with a hit.

    Attributes:
        text: The passage.
        query: Start and end offset in the query text.
        document: Start and end offset in the stored text.
    """

    text: str
    query: list[int]
    document: list[int]


class HitRow(TypedDict):
    """A hit in plain JSON values.

    Attributes:
        id: The id of the document.
        similarity: The Jaccard similarity.
        exact: True if the similarity is computed from the shingle sets.
        metadata: The metadata; absent if there is none.
        passage: The longest shared passage, None if there is none; absent unless passages were requested.
        contained: ``query`` or ``document``, as in :class:`Hit`; absent without ``measure="containment"``.
        recall: The probability of finding such a document; absent with a threshold and ``measure="jaccard"``.
    """

    id: DocumentId
    similarity: float
    exact: bool
    metadata: NotRequired[Metadata]
    passage: NotRequired[PassageRow | None]
    contained: NotRequired[ContainedSide]
    recall: NotRequired[float]


class QueryRow(TypedDict):
    """The answer to one document of a source, in plain JSON values.

    Attributes:
        id: The id of the document in the source.
        hits: Its near-duplicates in the index, the most similar first.
        truncated: True if the search was cut short, so that hits may be missing.
        truncated_by: ``bucket`` or ``candidates``, as in :class:`Answer`; absent if the search was not cut short.
        left_out: Number of candidates that were not compared; absent like ``truncated_by``.
        capped_buckets: Number of buckets that were not searched to their end; absent like ``truncated_by``.
        complete_above: The similarity above which the answer is complete, as in :class:`Answer`; absent with a
            threshold.
    """

    id: DocumentId
    hits: list[HitRow]
    truncated: bool
    truncated_by: NotRequired[TruncatedBy]
    left_out: NotRequired[int]
    capped_buckets: NotRequired[int]
    complete_above: NotRequired[float | None]


class SegmentStats(TypedDict):
    """Size of one segment file."""

    file: str
    bytes: int
    documents: int
    postings: int


class IndexStats(TypedDict):
    """Size and settings of an index.

    Attributes:
        documents: Documents in the index.
        removed: Documents that were removed or replaced.
        recent: Documents whose postings are not in a segment yet.
        commits: Transactions so far.
        bytes: Bytes of all files.
        database_bytes: Bytes of the database and its write-ahead log.
        segments: Each segment file.
        resident_bytes: Bytes of memory held by postings.
        settings: The settings of the index; a secret seed is left out.
    """

    documents: int
    removed: int
    recent: int
    commits: int
    bytes: int
    database_bytes: int
    segments: list[SegmentStats]
    resident_bytes: int
    settings: dict[str, Any]
