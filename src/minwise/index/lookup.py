"""Lookup: a sketched text in, the documents that are similar to it out."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.index.answers import Answer, Hit, Listing, Metadata, StoredDocument
from minwise.index.records import DocumentRecord, as_text, body_of, content_of
from minwise.index.settings import IndexSettings
from minwise.index.sketching import Sketched, compare_sketches
from minwise.index.store import Store
from minwise.index.view import View

__all__ = ["Lookup", "Similar", "list_newest", "stored_document"]

# Candidates that are compared, however few hits are wanted...
LEAST_CANDIDATES = 32
# ...and for each hit that is wanted.
CANDIDATES_PER_HIT = 3
# Candidates that are compared if few may count: those with some metadata; or if it matters most: what stays out of the
# index stays out for ever.
MOST_COMPARED = 256


class Similar(NamedTuple):
    """A document that reaches the threshold: how similar it is, its number and its record."""

    similarity: float
    number: int
    record: bytes


class Lookup:
    """Finds similar documents in one view of an index."""

    def __init__(self, settings: IndexSettings, view: View, store: Store, threads: int) -> None:
        self._settings, self._view, self._store, self._threads = settings, view, store, threads

    def answers(
        self, asked: Sketched, threshold: float, top: int, where: Metadata | None, *, with_text: bool
    ) -> list[Answer]:
        """The near-duplicates of each text."""
        most = max(LEAST_CANDIDATES if where is None else MOST_COMPARED, CANDIDATES_PER_HIT * top)
        offsets, documents, _, truncated = self._view.postings.candidates(asked.keys, self._cap, most, self._threads)
        bounds = offsets.tolist()
        answers = []
        for place, body in enumerate(asked.bodies):
            candidates = documents[bounds[place] : bounds[place + 1]].tolist()
            similar = self._similar(body, candidates, threshold, {})
            hits = ((found.number, self._hit(found)) for found in similar)
            wanted = hits if where is None else (hit for hit in hits if _has(hit[1].metadata or {}, where))
            best = list(islice(wanted, top))
            told = self._with_texts(best) if with_text else [hit for _, hit in best]
            answers.append(Answer(tuple(told), bool(truncated[place])))
        return answers

    def _with_texts(self, numbered: list[tuple[int, Hit]]) -> list[Hit]:
        """Hits with their texts."""
        texts = self._store.records("texts", [number for number, _ in numbered])
        return [hit._replace(text=as_text(content_of(text))) for (_, hit), text in zip(numbered, texts, strict=True)]

    def most_similar(
        self, keys: NDArray[np.uint64], body: bytes, but: int | None, pending: Mapping[int, bytes]
    ) -> tuple[Similar | None, bool]:
        """The document most similar to one that may come in, and whether the search was cut short.

        Args:
            keys: The keys of its bands.
            body: What is compared.
            but: The number of a document that does not count, since this one would take its place.
            pending: Records of documents that came in but are not in the database yet.
        """
        _, documents, _, truncated = self._view.postings.candidates(keys[None], self._cap, MOST_COMPARED, 1)
        candidates = [number for number in documents.tolist() if number != but]
        found = self._similar(body, candidates, self._settings.plan.threshold, pending)
        return next(found, None), bool(truncated[0])

    @property
    def _cap(self) -> int:
        return self._settings.find.max_bucket

    def _similar(
        self, body: bytes, candidates: Sequence[int], threshold: float, pending: Mapping[int, bytes]
    ) -> Iterator[Similar]:
        """The candidates that reach the threshold, the most similar first, and of equal ones the first added."""
        if not candidates or not body:
            return iter(())
        stored = [number for number in candidates if number not in pending]
        there = dict(zip(stored, self._store.records("documents", stored), strict=True))
        records = [there[number] if number in there else pending[number] for number in candidates]
        similarities = self._similarities(body, records, threshold)
        places = np.flatnonzero(similarities >= threshold)
        best = places[np.argsort(-similarities[places], kind="stable")].tolist()
        return (Similar(float(similarities[place]), candidates[place], records[place]) for place in best)

    def _similarities(self, body: bytes, records: list[bytes], threshold: float) -> NDArray[np.float64]:
        """Similarities; anything below the threshold may be NaN."""
        if self._settings.exact:
            return _kernel.set_similarities(np.frombuffer(body, dtype="<u8"), records, threshold)
        return compare_sketches(body, [body_of(record) for record in records], self._settings.plan.slots)

    def _hit(self, found: Similar) -> Hit:
        document = DocumentRecord.decode(found.record)
        return Hit(document.id, found.similarity, document.described(), self._settings.exact)


def _has(about: Metadata, where: Metadata) -> bool:
    """Whether metadata has these values; true and 1 are not the same in JSON."""
    return all(
        key in about and about[key] == value and isinstance(about[key], bool) == isinstance(value, bool)
        for key, value in where.items()
    )


# Bytes of records and texts after which a list ends, however many were asked for.
LISTED_BYTES = 1 << 23


def stored_document(number: int, record: bytes, settings: IndexSettings, store: Store) -> StoredDocument:
    """A document whose record is at hand."""
    document = DocumentRecord.decode(record)
    text = as_text(store.content("texts", number)) if settings.store == "text" else None
    elements = np.frombuffer(document.body, dtype="<u8") if settings.exact else None
    return StoredDocument(document.id, document.described(), text, elements)


def list_newest(limit: int, before: int | None, settings: IndexSettings, store: Store) -> Listing:
    """Documents with numbers below ``before``, the highest first."""
    documents: list[StoredDocument] = []
    held, last = 0, None
    for number, record in store.rows_before("documents", before):
        if len(documents) == limit or held > LISTED_BYTES:
            return Listing(documents, last)
        documents.append(stored_document(number, record, settings, store))
        held += len(record) + len(documents[-1].text or "")
        last = number
    return Listing(documents, None)
