"""Expected answers of an index, in plain Python: documents in a dict, buckets by comparing keys, Jaccard by sets.

The band keys come from the kernel and the elements from the shingler, which have oracles of their own. Everything that
an index does with them is repeated here, in the simplest way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any

import orjson
import pyarrow as pa

import minwise as mw
from minwise.search.bands import FILLED, Bander, KeyBlock
from minwise.settings import SearchSettings
from minwise.sketches import estimates as estimate

Id = str | int
Metadata = dict[str, Any] | None
# Id, status, id of the most similar document, similarity to it, whether the search was cut short.
DecisionTuple = tuple[Id, str, Id | None, float | None, bool]
# Members of a bucket, and candidates, of the first attempt of a search; comparisons of a search by default…
FIRST_LIMITS, MAX_CANDIDATES = (64, 64), 10_000
# …and between two decisions whether others can enter the answer: the first and later ones.
FIRST_BLOCK, COMPARED_BLOCK = 64, 256
# The probability of a miss that ends a search, and the smallest that is required.
MAX_MISS, MIN_MISS = 0.01, 1e-9
# Bytes of a row that are one comparison, and of a row without id, metadata and content.
COMPARISON_BYTES, HEADER_BYTES = 4096, 13
LOW_BITS = 16


def storing(store: str) -> Any:  # noqa: ANN401 - settings
    """Return the settings of :meth:`minwise.Index.create` for what an index stores: shingles, text or sketch."""
    return {"shingles": {}, "text": {"store_text": True}, "sketch": {"sketch_only": True}}[store]


@dataclass(frozen=True)
class TextFeatures:
    """Keys, elements and low bits of a text.

    Attributes:
        keys: The key of each band; empty if there are no shingles.
        elements: The shingle hashes.
        low_bits: The low 16 bits of each slot of its signature.
    """

    keys: tuple[int, ...]
    elements: frozenset[int]
    low_bits: tuple[int, ...]


@dataclass(frozen=True)
class OracleDocument:
    """A document of the index; ``number`` is its position in the order of addition."""

    number: int
    id: Id
    text: str
    metadata: Metadata
    features: TextFeatures


@dataclass(frozen=True)
class OracleCandidates:
    """Documents with their number of shared buckets, the number of capped buckets, and of candidates left out."""

    found: list[tuple[OracleDocument, int]]
    capped: int
    left_out: int


@dataclass(frozen=True)
class Expected:
    """The expected answer of a query: (id, similarity, metadata) of each hit, and what cut the search short."""

    hits: list[tuple[Id, float, Metadata]]
    truncated_by: str | None = None
    left_out: int = 0
    capped_buckets: int = 0

    @property
    def truncated(self) -> bool:
        """Whether the search is cut short."""
        return self.truncated_by is not None


@dataclass(frozen=True)
class OracleGoal:
    """The documents that a search looks for, its budget, and the probability of a miss that ends it."""

    threshold: float
    top: int
    budget: int
    max_miss: float
    where: Metadata = None


@dataclass(frozen=True)
class OracleSearch:
    """Negative similarity, number and document of each hit; whether no other can be among them; what was left out."""

    similar: list[tuple[float, int, OracleDocument]]
    is_complete: bool
    left_out: int
    capped: int


class RefusedError(Exception):
    """The call must raise, and change nothing."""


@dataclass
class Oracle:
    """The documents of an index and the expected results of all calls.

    Attributes:
        index: The source of plan, scheme and shingler; its documents are never read.
        max_bucket: The cap on buckets that it was created with.
        documents: The documents by id as a string, in the order of addition.
        added: The number of documents ever added.
        known: Features by text.
    """

    index: mw.Index
    max_bucket: int
    documents: dict[str, OracleDocument] = field(default_factory=dict)
    added: int = 0
    known: dict[str, TextFeatures] = field(default_factory=dict)

    def features(self, text: str) -> TextFeatures:
        """Return keys, elements and low bits of a text, computed once."""
        if text not in self.known:
            self.known[text] = self._compute_features(text)
        return self.known[text]

    def _compute_features(self, text: str) -> TextFeatures:
        plan, scheme, shingler = self.index.plan, self.index.scheme, self.index.shingler
        settings = SearchSettings(plan=plan, shingler=shingler, scheme=scheme.name, seed=scheme.seed)
        block = KeyBlock.allocate(settings, 1)
        assert Bander(settings).band(pa.array([text]), block, 1) == []
        keys = tuple(block.keys[:, 0].tolist()) if block.states[0] == FILLED else ()
        elements = frozenset(shingler.shingle([text])[0].tolist())
        assert bool(keys) == bool(elements)
        slots = scheme.sketch_texts([text], shingler)[0].tolist()
        assert len(slots) == plan.slots
        return TextFeatures(keys, elements, tuple(slot % 2**LOW_BITS for slot in slots))

    def similarity(self, left: TextFeatures, right: TextFeatures) -> float:
        """Return the exact Jaccard similarity, or the estimate from low bits if the index stores sketches."""
        if not left.elements or not right.elements:
            return 0.0
        if self.index.store != "sketch":
            return len(left.elements & right.elements) / len(left.elements | right.elements)
        equal = sum(
            left_bits == right_bits for left_bits, right_bits in zip(left.low_bits, right.low_bits, strict=True)
        )
        c1, c2 = (float(constant) for constant in estimate.bbit_constants(1, 1, None, LOW_BITS))
        return min(1.0, max(0.0, estimate.bbit_estimate(equal / len(left.low_bits), c1, c2)))

    def candidates(self, features: TextFeatures, max_bucket: int, most: int) -> OracleCandidates:
        """Return the documents that share a bucket, those that share the most first."""
        documents = [document for document in self.documents.values() if document.features.keys]
        shared, capped = Counter[int](), 0
        for band, key in enumerate(features.keys):
            members = [document.number for document in documents if document.features.keys[band] == key]
            capped += len(members) > max_bucket
            shared.update(members[:max_bucket])
        by_number = {document.number: document for document in documents}
        ranked = sorted(shared, key=lambda number: (-shared[number], number))
        found = [(by_number[number], shared[number]) for number in ranked]
        return OracleCandidates(found[:most], capped, len(found[most:]))

    def query(
        self,
        text: str,
        threshold: float,
        top: int,
        where: dict[str, Any] | None = None,
        max_candidates: int = MAX_CANDIDATES,
    ) -> Expected:
        """Return the most similar documents that reach the threshold, equal ones in the order of addition."""
        plan, features = self.index.plan, self.features(text)
        goal = OracleGoal(threshold, top, max_candidates, max(MIN_MISS, min(MAX_MISS, 1 - plan.recall)), where)
        found = self._search(features, goal, None)
        hits = [(document.id, -negative, document.metadata) for negative, _, document in found.similar]
        if found.is_complete:
            return Expected(hits)
        return Expected(hits, "candidates" if found.left_out else "bucket", found.left_out, found.capped)

    def _search(self, features: TextFeatures, goal: OracleGoal, excluded: OracleDocument | None) -> OracleSearch:
        """Return the result of a search: of few members of buckets and few candidates, or of all."""
        limits = self.max_bucket, goal.budget
        for max_bucket, most in (map(min, FIRST_LIMITS, limits), limits):
            candidates = self.candidates(features, max_bucket, most)
            others = [(document, shared) for document, shared in candidates.found if document is not excluded]
            found = self._compare(features, OracleCandidates(others, candidates.capped, candidates.left_out), goal)
            if found.is_complete:
                break
        return found

    def _compare(self, features: TextFeatures, candidates: OracleCandidates, goal: OracleGoal) -> OracleSearch:
        """Compare candidates block by block, and keep the best; those that are left out include those of the budget."""
        similar, compared, budget = list[tuple[float, int, OracleDocument]](), 0, goal.budget
        block, is_settled = self._block_size(min(FIRST_BLOCK, budget), [self._body_bytes(features)]), False
        while compared < len(candidates.found) and budget > 0 and not is_settled:
            documents = [document for document, _ in candidates.found[compared : compared + block]]
            for document in documents:
                similarity = self.similarity(features, document.features)
                if similarity >= goal.threshold and matches(document.metadata, goal.where):
                    similar.append((-similarity, document.number, document))
            similar = sorted(similar, key=lambda hit: hit[:2])[: goal.top]
            sizes = [self._record_bytes(document) for document in documents]
            compared, budget = compared + len(documents), budget - sum(map(comparisons, sizes))
            block = self._block_size(min(COMPARED_BLOCK, budget), sizes)
            is_settled = self._is_settled([-negative for negative, *_ in similar], candidates, compared, goal)
        left_out = candidates.left_out + len(candidates.found) - compared
        complete = is_settled or not (candidates.capped or left_out)
        return OracleSearch(similar, complete, left_out, candidates.capped)

    def _block_size(self, most: int, sizes: Sequence[int]) -> int:
        """Return the number of candidates of a block that has about ``most`` comparisons."""
        return max(1, most * len(sizes) // sum(map(comparisons, sizes)))

    def _body_bytes(self, features: TextFeatures) -> int:
        return 2 * len(features.low_bits) if self.index.store == "sketch" else 8 * len(features.elements)

    def _record_bytes(self, document: OracleDocument) -> int:
        about = b"" if document.metadata is None else orjson.dumps(document.metadata)
        return HEADER_BYTES + len(str(document.id).encode()) + len(about) + self._body_bytes(document.features)

    def _is_settled(self, found: list[float], candidates: OracleCandidates, compared: int, goal: OracleGoal) -> bool:
        """Return whether a document that belongs in the answer would have come earlier, with sufficient probability."""
        plan, shares = self.index.plan, [shared for _, shared in candidates.found]
        is_full = len(found) == goal.top
        least = found[-1] if is_full else goal.threshold
        following = [*shares, *shares[-1:] * bool(candidates.left_out), 0][min(compared, len(shares))]
        bands, agreement = plan.bands - candidates.capped, least**plan.rows
        few = sum(
            comb(bands, equal) * agreement**equal * (1 - agreement) ** (bands - equal)
            for equal in range(min(following, bands) + 1)
        )
        return (is_full and least == 1) or few <= goal.max_miss

    def is_unchanged(self, old: OracleDocument, text: str, metadata: Metadata) -> bool:
        """Return whether the index holds the same document."""
        features = self.features(text)
        same = {
            "shingles": old.features.elements == features.elements,
            "text": old.text == text,
            "sketch": old.features.low_bits == features.low_bits,
        }
        return same[self.index.store] and old.metadata == metadata

    def put(self, name: Id, text: str, metadata: Metadata) -> None:
        """Store a document after all others, in place of an older one with its id."""
        self.remove([name])
        self.documents[str(name)] = OracleDocument(self.added, name, text, metadata, self.features(text))
        self.added += 1

    def add(
        self, ids: Sequence[Id], texts: Sequence[str], metadata: Sequence[Metadata], policy: str
    ) -> tuple[int, int, int, int]:
        """Return the numbers of added, replaced, skipped and unchanged documents.

        Raises:
            RefusedError: If a duplicate id is an error; then nothing is added.
        """
        before, counts = self._saved(), Counter[str]()
        for document_id, text, about in zip(ids, texts, metadata, strict=True):
            status = self.status(document_id, text, about, policy)
            if status == "refused":
                self.documents, self.added = before
                raise RefusedError
            if status in ("added", "replaced"):
                self.put(document_id, text, about)
            counts[status] += 1
        return counts["added"], counts["replaced"], counts["skipped"], counts["unchanged"]

    def add_unique(
        self, ids: Sequence[Id], texts: Sequence[str], metadata: Sequence[Metadata], policy: str
    ) -> list[DecisionTuple]:
        """Return the decision on each document; one that would replace another is not compared with it.

        Raises:
            RefusedError: If a duplicate id is an error; then nothing is added.
        """
        before, decided = self._saved(), []
        for document_id, text, about in zip(ids, texts, metadata, strict=True):
            status = self.status(document_id, text, about, policy)
            if status == "refused":
                self.documents, self.added = before
                raise RefusedError
            decided.append(self._decide(document_id, text, about, status))
        return decided

    def _decide(self, name: Id, text: str, metadata: Metadata, status: str) -> DecisionTuple:
        if status in ("unchanged", "skipped"):
            return name, status, None, None, False
        goal = OracleGoal(self.index.plan.threshold, 1, MAX_CANDIDATES, 0.0)
        found = self._search(self.features(text), goal, self.documents.get(str(name)))
        for negative, _, other in found.similar:
            return name, "duplicate", other.id, -negative, not found.is_complete
        self.put(name, text, metadata)
        return name, status, None, None, not found.is_complete

    def _saved(self) -> tuple[dict[str, OracleDocument], int]:
        return dict(self.documents), self.added

    def status(self, name: Id, text: str, metadata: Metadata, policy: str) -> str:
        """Return the decision by id."""
        old = self.documents.get(str(name))
        if old is None:
            return "added"
        if self.is_unchanged(old, text, metadata):
            return "unchanged"
        return {"error": "refused", "skip": "skipped", "replace": "replaced"}[policy]

    def remove(self, ids: Sequence[Id]) -> int:
        """Remove documents, and return how many of the ids had one."""
        removed = [self.documents.pop(name) for name in dict.fromkeys(map(str, ids)) if name in self.documents]
        return len(removed)

    def expire(self, name: str, before: float) -> tuple[int, int, int, int]:
        """Remove the documents whose metadata has a number below ``before``; return the counts of an expiry."""
        read = len(self.documents)
        values = {key: (stored.metadata or {}).get(name) for key, stored in self.documents.items()}
        numbers = {key: value for key, value in values.items() if isinstance(value, int)}
        undated = sum(value is None for value in values.values())
        expired = self.remove([key for key, value in numbers.items() if value < before])
        return read, expired, undated, read - undated - len(numbers)


def comparisons(size: int) -> int:
    """Return how many comparisons a row of this size counts as."""
    return max(1, -(-size // COMPARISON_BYTES))


def matches(metadata: Metadata, where: dict[str, Any] | None) -> bool:
    """Return whether metadata has every key with an equal value."""
    return all(name in (metadata or {}) and (metadata or {})[name] == value for name, value in (where or {}).items())
