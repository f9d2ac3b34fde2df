"""Lookup of documents in one view of an index: by id, by order of addition, and by similarity to a text."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from math import comb
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
from minwise.index.view import Candidates, View
from minwise.options import MAX_CANDIDATES, MeasureName
from minwise.sketches.similarity import estimate_packed_similarities

__all__ = ["ExistingDocument", "Lookup", "SimilarDocument"]

# Members of a bucket, and candidates, of the first attempt of a query. It answers most queries, and those for a text
# with thousands of copies, without reading large buckets completely.
FIRST_BUCKET = FIRST_CANDIDATES = 64
# Comparisons between two decisions whether other candidates can still enter the answer: the first, and later ones.
FIRST_BLOCK, COMPARED_BLOCK = 64, 256
# Bytes of a record that count as one comparison. To read and compare rows of 1.2, 4 and 40 kB takes 4.0, 6.4 and 56 µs
# each, or 1.9, 2.8 and 19 µs if they are in memory: a number of comparisons takes about the same time for all lengths.
COMPARISON_BYTES = 4096
# Candidates of several queries that are in memory at a time, in 14 bytes each.
HELD_CANDIDATES = 1 << 18
# Maximum probability, for each document that belongs in an answer, that the search ends without it…
MAX_MISS = 0.01
# …and the smallest that is required. A plan with a recall of 1 - 1e-16 or more has the recall 1.0 in floating-point
# numbers, so its misses round to 0, which no search would reach. The sum of probabilities is exact to about 1e-15.
MIN_MISS = 1e-9
# Halvings of the interval from 0 to 1 that contains a similarity, after which it is exact in floating-point numbers.
HALVINGS = 53
# Bytes of document records that are kept in memory, and what Python needs for each in addition to its length: 95 to
# 125 bytes, of which 33 are in the bytes object, 32 in the number and the rest in the dict.
CACHED_BYTES = 1 << 26
RECORD_OVERHEAD = 120
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


class RecordCache:
    """Document records that were read before, up to a number of bytes; those that were read first are dropped first.

    A row never changes and its number is never reused, so a record stays valid. Real corpora have clusters of thousands
    of documents; with their records in memory, a query takes half of the time.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._bytes = store, 0
        self._records: dict[int, bytes] = {}

    def records(self, numbers: list[int]) -> list[bytes]:
        """Return the records of documents, in the order of ``numbers``."""
        missing = [number for number in numbers if number not in self._records]
        if missing:
            self._add(missing)
        found = list(map(self._records.__getitem__, numbers))
        while self._bytes > CACHED_BYTES:
            self._drop_oldest()
        return found

    def _add(self, numbers: list[int]) -> None:
        records = self._store.records("documents", numbers)
        self._records.update(zip(numbers, records, strict=True))
        self._bytes += _held_bytes(records)

    def _drop_oldest(self) -> None:
        """Drop the half of the records that was read first."""
        kept = islice(self._records.items(), (len(self._records) + 1) // 2, None)
        self._records = dict(kept)
        self._bytes = _held_bytes(self._records.values())


def _held_bytes(records: Collection[bytes]) -> int:
    """Return the memory of records in a dict by number."""
    return sum(map(len, records)) + RECORD_OVERHEAD * len(records)


class SearchGoal(NamedTuple):
    """The documents that a search must find, and what it may cost.

    Attributes:
        threshold: The minimum similarity.
        top: The maximum number of documents, the most similar ones.
        budget: The maximum number of comparisons; a long record counts as several.
        max_miss: The maximum probability, for each document that belongs in the result, to end without it.
        where: Metadata values that the documents must have.
        measure: The measure of the threshold.
    """

    threshold: float
    top: int
    budget: int
    max_miss: float
    where: Metadata | None = None
    measure: MeasureName = "jaccard"


class _Hits:
    """The most similar documents of a search so far.

    They are in arrays and a list of bytes: with an object for each, the garbage collector would scan all of them.

    Attributes:
        least: The similarity that another document must have to be one of them.
    """

    def __init__(self, threshold: float, top: int) -> None:
        self._top, self.least = top, threshold
        self._similarities, self._numbers = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._records: list[bytes] = []

    @property
    def is_full(self) -> bool:
        """Whether another document would take the place of one of these."""
        return len(self._records) == self._top

    def add(self, numbers: list[int], records: list[bytes], similarities: NDArray[np.float64]) -> None:
        """Add documents, and drop all but the most similar ones; of equal ones, the first in order of addition stay."""
        self._similarities = np.concatenate([self._similarities, similarities])
        self._numbers = np.concatenate([self._numbers, numbers])
        self._records += records
        if len(self._records) > self._top:
            self._keep(self._order()[: self._top])
        if self.is_full:
            self.least = float(self._similarities.min())

    def _order(self) -> NDArray[np.int64]:
        return np.lexsort((self._numbers, -self._similarities))

    def _keep(self, rows: NDArray[np.int64]) -> None:
        self._similarities, self._numbers = self._similarities[rows], self._numbers[rows]
        self._records = [self._records[row] for row in rows.tolist()]

    def __iter__(self) -> Iterator[SimilarDocument]:
        """Yield the documents, the most similar first, equal ones in order of addition."""
        for row in self._order().tolist():
            yield SimilarDocument(float(self._similarities[row]), int(self._numbers[row]), self._records[row])


class Comparison(NamedTuple):
    """The result of comparing candidates.

    Attributes:
        hits: The documents found.
        is_complete: Whether no other document belongs in the result.
        left_out: The number of candidates that were not compared.
        capped: The number of buckets that were not read to their end.
        shared: The largest number of buckets that a document shares that was not compared and may belong in the result.
    """

    hits: _Hits
    is_complete: bool
    left_out: int
    capped: int
    shared: int


class Lookup:
    """Reads documents from one view of an index."""

    def __init__(self, settings: IndexSettings, view: View, store: Store, threads: int) -> None:
        self._settings, self._view, self._store, self._threads = settings, view, store, threads
        self._cache = RecordCache(store)

    def query(
        self,
        texts: SketchedTexts,
        threshold: float,
        top: int,
        max_candidates: int,
        where: Metadata | None,
        *,
        measure: MeasureName = "jaccard",
        with_text: bool,
    ) -> list[Answer]:
        """Return the near-duplicates of each text.

        Args:
            texts: The sketched texts.
            threshold: The minimum similarity of a hit.
            top: The maximum number of hits per text.
            max_candidates: The maximum number of comparisons per text.
            where: Metadata values that a hit must have.
            measure: The measure of the threshold.
            with_text: Whether hits include their texts.
        """
        max_miss = max(MIN_MISS, min(MAX_MISS, 1 - self._settings.plan.recall))
        goal = SearchGoal(threshold, top, max_candidates, max_miss, where, measure)
        answers: dict[int, Answer] = {}
        attempts = self._attempts(max_candidates)
        for limits in attempts:
            rows = [row for row in range(len(texts)) if row not in answers]
            for row, comparison in self._compare_rows(texts, rows, limits, goal):
                if comparison.is_complete or limits == attempts[-1]:
                    elements = len(texts.bodies[row]) // 8 if measure == "containment" else None
                    answer = self._answer(comparison, elements, with_text=with_text)
                    answers[row] = answer if threshold else self._nearest(answer, comparison)
        return [answers[row] for row in range(len(texts))]

    def _attempts(self, max_candidates: int) -> list[tuple[int, int]]:
        """Return the members of a bucket and the candidates of each attempt of a search."""
        last = self._settings.max_bucket, max_candidates
        first = min(FIRST_BUCKET, last[0]), min(FIRST_CANDIDATES, last[1])
        return [last] if first == last else [first, last]

    def _compare_rows(
        self, texts: SketchedTexts, rows: list[int], limits: tuple[int, int], goal: SearchGoal
    ) -> Iterator[tuple[int, Comparison]]:
        """Compare the candidates of texts; only those of a few texts are in memory at a time."""
        step = max(1, HELD_CANDIDATES // limits[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            found = self._view.candidates(texts.keys[part], *limits, self._threads)
            for row, candidates in zip(part, found, strict=True):
                yield row, self._compare(texts.bodies[row], candidates, goal, {})

    def _answer(self, comparison: Comparison, elements: int | None, *, with_text: bool) -> Answer:
        """Return the answer to a text; with ``elements``, its number of them, hits say which text lies in the other."""
        numbered = [(document.number, self._hit(document)) for document in comparison.hits]
        if elements is not None:
            found = zip(numbered, comparison.hits, strict=True)
            numbered = [(number, self._directed(hit, elements, document)) for (number, hit), document in found]
        hits = tuple(self._with_texts(numbered) if with_text else [hit for _, hit in numbered])
        if comparison.is_complete:
            return Answer(hits, truncated=False)
        truncated_by: TruncatedBy = "candidates" if comparison.left_out else "bucket"
        return Answer(hits, True, truncated_by, comparison.left_out, comparison.capped)

    def _nearest(self, answer: Answer, comparison: Comparison) -> Answer:
        """Return an answer without a threshold, with the recall of each hit and the similarity where it is complete."""
        plan = self._settings.plan
        hits = tuple(hit._replace(recall=plan.probability(hit.similarity)) for hit in answer.hits)
        complete_above = _complete_above(comparison.shared, plan.bands - comparison.capped, plan.rows)
        return replace(answer, hits=hits, complete_above=complete_above)

    def _directed(self, hit: Hit, elements: int, document: SimilarDocument) -> Hit:
        """Return a hit with the side that lies in the other one, and the probability that the bands find it."""
        stored = len(body_of(document.record)) // 8
        shared = round(hit.similarity * min(elements, stored))
        recall = self._settings.plan.probability(shared / (elements + stored - shared))
        return hit._replace(contained="query" if elements <= stored else "document", recall=recall)

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
        # Only an identical document ends the search: another one might be more similar than the first that is found.
        goal = SearchGoal(self._settings.plan.threshold, top=1, budget=MAX_CANDIDATES, max_miss=0.0)
        for limits in self._attempts(MAX_CANDIDATES):
            (found,) = self._view.candidates(keys[None], *limits, 1)
            candidates = found if excluded is None else found.without(excluded)
            comparison = self._compare(body, candidates, goal, pending)
            if comparison.is_complete:
                break
        return next(iter(comparison.hits), None), not comparison.is_complete

    def similar(
        self, keys: NDArray[np.uint64], body: bytes, excluded: int | None, pending: Mapping[int, bytes]
    ) -> tuple[list[int], bool]:
        """Return the numbers of all documents similar to a new one, and whether the search was cut short.

        The arguments are those of :meth:`most_similar`.
        """
        plan = self._settings.plan
        max_miss = max(MIN_MISS, min(MAX_MISS, 1 - plan.recall))
        goal = SearchGoal(plan.threshold, top=MAX_CANDIDATES, budget=MAX_CANDIDATES, max_miss=max_miss)
        for limits in self._attempts(MAX_CANDIDATES):
            (found,) = self._view.candidates(keys[None], *limits, 1)
            candidates = found if excluded is None else found.without(excluded)
            comparison = self._compare(body, candidates, goal, pending)
            if comparison.is_complete:
                break
        return [document.number for document in comparison.hits], not comparison.is_complete

    def _compare(
        self, body: bytes, candidates: Candidates, goal: SearchGoal, pending: Mapping[int, bytes]
    ) -> Comparison:
        """Compare candidates in their order, until no other document belongs in the result or the budget is used."""
        hits, capped = _Hits(goal.threshold, goal.top), candidates.capped
        compared, budget, count = 0, goal.budget, len(candidates.numbers)
        block, is_settled = _block_size(min(FIRST_BLOCK, budget), 1, _comparisons([body])), False
        while compared < count and budget > 0 and not is_settled:
            numbers = candidates.numbers[compared : compared + block].tolist()
            records = self._records(numbers, pending)
            self._add_hits(hits, body, numbers, records, goal)
            spent = _comparisons(records)
            compared, budget = compared + len(numbers), budget - spent
            is_settled = goal.measure == "jaccard" and self._is_settled(hits, candidates, compared, goal.max_miss)
            block = _block_size(min(COMPARED_BLOCK, budget), len(numbers), spent)
        left_out = candidates.left_out + count - compared
        shared = 0 if is_settled else _next_shared(candidates, compared)
        return Comparison(hits, is_settled or not (capped or left_out), left_out, capped, shared)

    def _add_hits(self, hits: _Hits, body: bytes, numbers: list[int], records: list[bytes], goal: SearchGoal) -> None:
        """Add the documents that are similar enough and have the metadata."""
        where = goal.where
        similarities = self._similarities(body, records, hits.least, goal.measure)
        similar = np.flatnonzero(similarities >= hits.least).tolist()
        if where is not None:
            similar = [row for row in similar if self._matches(numbers[row], records[row], where)]
        if similar:
            hits.add([numbers[row] for row in similar], [records[row] for row in similar], similarities[similar])

    def _matches(self, number: int, record: bytes, where: Metadata) -> bool:
        """Return whether the metadata of a document has these values."""
        return _has_values(self._decode(number, record)[1] or {}, where)

    def _is_settled(self, hits: _Hits, candidates: Candidates, compared: int, max_miss: float) -> bool:
        """Return whether no document after the first ``compared`` candidates can enter the hits.

        An identical document shares all buckets, so it comes before others, and before later identical ones. Any other
        document that is similar enough shares at most as many buckets as the next candidate with a probability of at
        most ``max_miss``.
        """
        if hits.is_full and hits.least == 1.0:
            return True
        plan, shared = self._settings.plan, _next_shared(candidates, compared)
        return _binomial(shared, plan.bands - candidates.capped, hits.least**plan.rows) <= max_miss

    def _records(self, numbers: list[int], pending: Mapping[int, bytes]) -> list[bytes]:
        """Return the records of documents, of which some may not be in the database yet."""
        records = self._cache.records([number for number in numbers if number not in pending] if pending else numbers)
        if pending:
            stored = iter(records)
            records = [pending[number] if number in pending else next(stored) for number in numbers]
        if not self._settings.exact:
            self._check_sketches(numbers, records)
        return records

    def _check_sketches(self, candidates: Sequence[int], records: list[bytes]) -> None:
        """Check that no candidate is without elements: it has no band keys."""
        for number, record in zip(candidates, records, strict=True):
            with self._store.decoding("documents", number):
                if not body_of(record):
                    raise ValueError("a posting names it, but it has no sketch")

    def _similarities(
        self, body: bytes, records: list[bytes], threshold: float, measure: MeasureName
    ) -> NDArray[np.float64]:
        """Return the similarity of each record; values below the threshold may be NaN."""
        if measure == "containment":
            return _kernel.set_containments(np.frombuffer(body, dtype="<u8"), records, threshold)
        if self._settings.exact:
            return _kernel.set_similarities(np.frombuffer(body, dtype="<u8"), records, threshold)
        bodies = [body, *(body_of(record) for record in records)]
        packed = np.frombuffer(b"".join(bodies), dtype=np.uint8).reshape(len(bodies), -1)
        others = np.arange(1, len(bodies), dtype=np.int64)
        pairs = np.column_stack([np.zeros_like(others), others])
        return estimate_packed_similarities(packed, pairs, self._settings.plan.slots)

    def id_of(self, document: SimilarDocument) -> DocumentId:
        """Return the id of a document."""
        return self.document_id(document.number, document.record)

    def document_id(self, number: int, record: bytes) -> DocumentId:
        """Return the id of a stored document."""
        with self._store.decoding("documents", number):
            return DocumentRecord.decode(record).id

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


def _comparisons(records: Sequence[bytes]) -> int:
    """Return how many comparisons records count as: one for every started ``COMPARISON_BYTES`` of each, at least one.

    >>> _comparisons([b"", bytes(4096), bytes(4097)])
    4
    """
    if max(map(len, records)) <= COMPARISON_BYTES:
        return len(records)  # the usual case, in a sixth of the time
    return sum(max(1, -(-len(record) // COMPARISON_BYTES)) for record in records)


def _block_size(most: int, documents: int, comparisons: int) -> int:
    """Return the number of candidates of a block of about ``most`` comparisons, given those of some other documents.

    >>> _block_size(256, documents=10, comparisons=40), _block_size(64, documents=1, comparisons=400)
    (64, 1)
    """
    return max(1, most * documents // comparisons)


def _binomial(most: int, trials: int, probability: float) -> float:
    """Return the probability of at most ``most`` successes in independent trials.

    >>> _binomial(1, 3, 0.5)
    0.5
    """
    counts = range(min(most, trials) + 1)
    return sum(comb(trials, count) * probability**count * (1 - probability) ** (trials - count) for count in counts)


def _next_shared(candidates: Candidates, compared: int) -> int:
    """Return the largest number of buckets that a document after the first ``compared`` candidates shares."""
    is_last = compared == len(candidates.shared)
    return int(candidates.shared[compared - is_last]) if candidates.left_out or not is_last else 0


@cache
def _complete_above(shared: int, bands: int, rows: int) -> float | None:
    """Return the similarity from which a document shares more than ``shared`` bands with a probability of 99 %.

    None if no similarity suffices, because there are not more bands.

    >>> round(_complete_above(0, 35, 3), 4), _complete_above(35, 35, 3)
    (0.4977, None)
    """
    if shared >= bands:
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _binomial(shared, bands, middle**rows) <= MAX_MISS else (middle, high)
    return high


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


def _has_values(metadata: Metadata, where: Metadata) -> bool:
    """Return whether metadata has these values; true and 1 are different values in JSON."""
    return all(
        key in metadata and metadata[key] == value and isinstance(metadata[key], bool) == isinstance(value, bool)
        for key, value in where.items()
    )
