"""Lookup of documents in one view of an index: by id, by order of addition, and by similarity to a text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.index.records import DocumentIds, DocumentRecord, body_of, content_of, decode_text, has_id
from minwise.index.result_types import (
    Answer,
    DocumentId,
    Hit,
    Listing,
    Metadata,
    StoredDocument,
    TextMatch,
    TextMatches,
    TruncatedBy,
)
from minwise.index.settings import IndexSettings, SketchedTexts
from minwise.index.store import Store
from minwise.index.view import View
from minwise.sketches.similarity import estimate_packed_similarities

__all__ = ["ExistingDocument", "Lookup", "SimilarDocument"]

# Candidates that are compared for a query, however few hits are requested…
MIN_CANDIDATES = 32
# …and for each requested hit.
CANDIDATES_PER_HIT = 3
# Candidates that are compared if a metadata filter may reject most of them; or if the decision is final: a document
# that is left out of the index is never looked at again.
MAX_CANDIDATES = 256
# Bytes of records and texts after which a page of documents ends.
PAGE_BYTES = 1 << 23
# Documents, and bytes of their texts, after which a page of a text search ends; both take about 0.08 s.
SEARCHED_DOCUMENTS, SEARCHED_BYTES = 5_000, 1 << 23
# Characters that are searched at a time, which takes 3 ms and keeps other Python threads waiting; and how far parts
# overlap, so that a phrase between two of them is found.
SEARCH_PART, SEARCH_OVERLAP = 1 << 18, 1 << 12


class ExistingDocument(NamedTuple):
    """A stored document: its number and its record."""

    number: int
    record: bytes


class SimilarDocument(NamedTuple):
    """A stored document that reaches the threshold: its similarity, number and record."""

    similarity: float
    number: int
    record: bytes


class Lookup:
    """Reads documents from one view of an index."""

    def __init__(self, settings: IndexSettings, view: View, store: Store, threads: int) -> None:
        self._settings, self._view, self._store, self._threads = settings, view, store, threads

    def query(
        self, texts: SketchedTexts, threshold: float, top: int, where: Metadata | None, *, with_text: bool
    ) -> list[Answer]:
        """Return the near-duplicates of each text.

        Args:
            texts: The sketched texts.
            threshold: The minimum similarity of a hit.
            top: The maximum number of hits per text.
            where: Metadata values that a hit must have.
            with_text: Whether hits include their texts.
        """
        limit = max(MIN_CANDIDATES if where is None else MAX_CANDIDATES, CANDIDATES_PER_HIT * top)
        offsets, documents, truncated = self._view.candidates(
            texts.keys, self._settings.max_bucket, limit, self._threads
        )
        bounds = offsets.tolist()
        answers = []
        for row, body in enumerate(texts.bodies):
            candidates = documents[bounds[row] : bounds[row + 1]].tolist()
            similar = self._similar(body, candidates, threshold, {})
            hits = ((document.number, self._hit(document)) for document in similar)
            matching = hits if where is None else (hit for hit in hits if _matches(hit[1].metadata or {}, where))
            best = list(islice(matching, top))
            shown = self._with_texts(best) if with_text else [hit for _, hit in best]
            answers.append(Answer(tuple(shown), *_truncation(bool(truncated[row]), len(candidates), limit)))
        return answers

    def _with_texts(self, numbered: list[tuple[int, Hit]]) -> list[Hit]:
        texts = self._store.records("texts", [number for number, _ in numbered])
        return [
            hit._replace(text=decode_text(content_of(text))) for (_, hit), text in zip(numbered, texts, strict=True)
        ]

    def most_similar(
        self, keys: NDArray[np.uint64], body: bytes, excluded: int | None, pending: Mapping[int, bytes]
    ) -> tuple[SimilarDocument | None, bool]:
        """Return the document most similar to a new one, and whether the search was cut short.

        Args:
            keys: The band keys of the new document.
            body: Its elements or packed sketch.
            excluded: The number of a document to ignore, since the new one would replace it.
            pending: Records of documents that are accepted but not in the database yet.
        """
        _, documents, truncated = self._view.candidates(keys[None], self._settings.max_bucket, MAX_CANDIDATES, 1)
        candidates = [number for number in documents.tolist() if number != excluded]
        similar = self._similar(body, candidates, self._settings.plan.threshold, pending)
        return next(similar, None), bool(truncated[0])

    def _similar(
        self, body: bytes, candidates: Sequence[int], threshold: float, pending: Mapping[int, bytes]
    ) -> Iterator[SimilarDocument]:
        """Return the candidates that reach the threshold, the most similar first, equal ones in order of addition."""
        if not candidates or not body:
            return iter(())
        stored = [number for number in candidates if number not in pending]
        by_number = dict(zip(stored, self._store.records("documents", stored), strict=True))
        records = [by_number[number] if number in by_number else pending[number] for number in candidates]
        if not self._settings.exact:
            self._check_sketches(candidates, records)
        similarities = self._similarities(body, records, threshold)
        rows = np.flatnonzero(similarities >= threshold)
        best = rows[np.argsort(-similarities[rows], kind="stable")].tolist()
        return (SimilarDocument(float(similarities[row]), candidates[row], records[row]) for row in best)

    def _check_sketches(self, candidates: Sequence[int], records: list[bytes]) -> None:
        """Check that no candidate is without elements: it has no band keys."""
        for number, record in zip(candidates, records, strict=True):
            with self._store.decoding("documents", number):
                if not body_of(record):
                    raise ValueError("a posting names it, but it has no sketch")

    def _similarities(self, body: bytes, records: list[bytes], threshold: float) -> NDArray[np.float64]:
        """Return the similarity of each record; values below the threshold may be NaN."""
        if self._settings.exact:
            return _kernel.set_similarities(np.frombuffer(body, dtype="<u8"), records, threshold)
        bodies = [body, *(body_of(record) for record in records)]
        packed = np.frombuffer(b"".join(bodies), dtype=np.uint8).reshape(len(bodies), -1)
        others = np.arange(1, len(bodies), dtype=np.int64)
        pairs = np.column_stack([np.zeros_like(others), others])
        return estimate_packed_similarities(packed, pairs, self._settings.plan.slots)

    def id_of(self, document: SimilarDocument) -> DocumentId:
        """Return the id of a document."""
        with self._store.decoding("documents", document.number):
            return DocumentRecord.decode(document.record).id

    def _hit(self, document: SimilarDocument) -> Hit:
        record, metadata = self._decode(document.number, document.record)
        return Hit(record.id, document.similarity, metadata, self._settings.exact)

    def _decode(self, number: int, record: bytes) -> tuple[DocumentRecord, Metadata | None]:
        """Return a decoded record and its metadata. A query calls it for each hit, so it uses no context manager."""
        try:
            decoded = DocumentRecord.decode(record)
            return decoded, decoded.decode_metadata()
        except (RecursionError, ValueError) as error:
            raise self._store.damaged_row("documents", number, error) from None

    def find_ids(self, ids: DocumentIds) -> dict[bytes, ExistingDocument]:
        """Return the stored documents that have these ids, by encoded id."""
        offsets, documents = self._view.find_ids(ids.hashes)
        if not len(documents):
            return {}
        numbers, bounds = documents.tolist(), offsets.tolist()
        records = self._store.records("documents", numbers)
        return {
            ids.encoded[row]: ExistingDocument(numbers[match], records[match])
            for row in np.flatnonzero(np.diff(offsets)).tolist()
            for match in range(bounds[row], bounds[row + 1])
            if has_id(records[match], ids.encoded[row])
        }

    def document(self, existing: ExistingDocument) -> StoredDocument:
        """Decode a document, and read its text if the index stores texts."""
        record, metadata = self._decode(existing.number, existing.record)
        text = decode_text(self._store.content("texts", existing.number)) if self._settings.stores_text else None
        elements = np.frombuffer(record.body, dtype="<u8") if self._settings.exact else None
        return StoredDocument(record.id, metadata, text, elements)

    def newest(self, limit: int, before: int | None) -> Listing:
        """Return the documents with numbers below ``before``, the highest first."""
        documents: list[StoredDocument] = []
        size, last = 0, None
        for number, record in self._store.rows_before("documents", before):
            if len(documents) == limit or size > PAGE_BYTES:
                return Listing(documents, last)
            documents.append(self.document(ExistingDocument(number, record)))
            size += len(record) + len(documents[-1].text or "")
            last = number
        return Listing(documents, None)

    def search_text(self, phrase: str, limit: int, before: int | None) -> TextMatches:
        """Return the documents with numbers below ``before`` whose texts contain a phrase, the highest first."""
        pattern = _phrase_pattern(phrase)
        matches: list[TextMatch] = []
        size, searched, last = 0, 0, None
        for number, record in self._store.rows_before("texts", before):
            if len(matches) == limit or size > SEARCHED_BYTES or searched == SEARCHED_DOCUMENTS:
                return TextMatches(matches, searched, last)
            span = _find_phrase(pattern, str(content_of(record), encoding="utf-8", errors="replace"))
            if span is not None:
                matches.append(TextMatch(self._numbered_document(number), *span))
            size, searched, last = size + len(record), searched + 1, number
        return TextMatches(matches, searched, None)

    def _numbered_document(self, number: int) -> StoredDocument:
        (record,) = self._store.records("documents", [number])
        return self.document(ExistingDocument(number, record))


def _truncation(truncated: bool, candidates: int, limit: int) -> tuple[bool, TruncatedBy | None]:
    """Return whether a search was cut short, and by what."""
    if not truncated:
        return False, None
    return True, "candidates" if candidates == limit else "bucket"


def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern for a phrase in any case, with any blanks between its words.

    >>> _phrase_pattern("old (harbour").search("The OLD   (harbour)")[0]
    'OLD   (harbour'
    """
    return re.compile(r"\s+".join(map(re.escape, phrase.split())) or r"\s+", re.IGNORECASE)


def _find_phrase(pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    """Return the first match; a long text is searched in parts, between which other threads run."""
    for start in range(0, max(1, len(text)), SEARCH_PART):
        found = pattern.search(text, start, start + SEARCH_PART + SEARCH_OVERLAP)
        if found is not None:
            return found.span()
    return None


def _matches(metadata: Metadata, where: Metadata) -> bool:
    """Return whether metadata has these values; true and 1 are different values in JSON."""
    return all(
        key in metadata and metadata[key] == value and isinstance(metadata[key], bool) == isinstance(value, bool)
        for key, value in where.items()
    )
