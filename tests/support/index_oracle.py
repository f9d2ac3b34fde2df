"""Expected answers of an index, in plain Python: documents in a dict, buckets by comparing keys, Jaccard by sets.

The band keys come from the kernel and the elements from the shingler, which have oracles of their own. Everything that
an index does with them is repeated here, in the simplest way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import minwise as mw
from minwise.search.bands import FILLED, Bander, KeyBlock
from minwise.settings import SearchSettings
from minwise.sketches import estimates as estimate

Id = str | int
Metadata = dict[str, Any] | None
# Id, status, id of the most similar document, similarity to it, whether the search was cut short.
DecisionTuple = tuple[Id, str, Id | None, float | None, bool]
# Number of members of a bucket above the cap that are compared.
CAPPED_MEMBERS = 16
# Maximum number of postings read per bucket, including removed documents, as a multiple of the cap.
POSTINGS_READ = 64
# Minimum number of candidates compared for a query; three for each requested hit if that is more…
MIN_CANDIDATES = 32
# …and the number for a document that is deduplicated on addition: that decision is final.
MAX_CANDIDATES = 256
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
class Expected:
    """The expected answer of a query: (id, similarity, metadata) of each hit, and whether the search is cut short."""

    hits: list[tuple[Id, float, Metadata]]
    truncated: bool = False


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
        removed: Documents removed since the last compaction, which may still have postings.
        known: Features by text.
    """

    index: mw.Index
    max_bucket: int
    documents: dict[str, OracleDocument] = field(default_factory=dict)
    added: int = 0
    removed: list[TextFeatures] = field(default_factory=list)
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

    def candidates(self, features: TextFeatures, limit: int) -> tuple[list[OracleDocument], bool]:
        """Return the documents that share most buckets, at most ``limit``, and whether any was left out."""
        documents = [document for document in self.documents.values() if document.features.keys]
        shared, cut = Counter[int](), False
        for band, key in enumerate(features.keys):
            members = [document.number for document in documents if document.features.keys[band] == key]
            if len(members) > self.max_bucket:
                members, cut = members[:CAPPED_MEMBERS], True
            shared.update(members)
        ranked = sorted(shared, key=lambda number: (-shared[number], number))
        by_number = {document.number: document for document in documents}
        return [by_number[number] for number in ranked[:limit]], cut or len(ranked) > limit

    def may_be_truncated(self, text: str) -> bool:
        """Return whether a bucket may have more postings, including removed documents, than are read."""
        maximum = POSTINGS_READ * max(CAPPED_MEMBERS, self.max_bucket)
        known = [
            *(document.features.keys for document in self.documents.values()),
            *(features.keys for features in self.removed),
        ]
        band_counts = [Counter(keys[band] for keys in known if keys) for band in range(self.index.plan.bands)]
        return any(counts[key] > maximum for counts, key in zip(band_counts, self.features(text).keys, strict=False))

    def query(self, text: str, threshold: float, top: int, where: dict[str, Any] | None = None) -> Expected:
        """Return the most similar documents that reach the threshold, equal ones in the order of addition."""
        features = self.features(text)
        candidates, truncated = self.candidates(features, candidate_limit(top, where))
        found = [
            (self.similarity(features, document.features), document)
            for document in candidates
            if matches(document.metadata, where)
        ]
        found = [(similarity, document) for similarity, document in found if similarity >= threshold]
        found.sort(key=lambda pair: (-pair[0], pair[1].number))
        return Expected(
            [(document.id, similarity, document.metadata) for similarity, document in found[:top]], truncated
        )

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
                self.documents, self.added, self.removed = before
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
                self.documents, self.added, self.removed = before
                raise RefusedError
            decided.append(self._decide(document_id, text, about, status))
        return decided

    def _decide(self, name: Id, text: str, metadata: Metadata, status: str) -> DecisionTuple:
        if status in ("unchanged", "skipped"):
            return name, status, None, None, False
        features, old = self.features(text), self.documents.get(str(name))
        candidates, cut = self.candidates(features, MAX_CANDIDATES)
        others = [
            (-self.similarity(features, other.features), other.number, other.id)
            for other in candidates
            if other is not old
        ]
        best = min(others, default=(0.0, 0, None))
        if -best[0] >= self.index.plan.threshold:
            return name, "duplicate", best[2], -best[0], cut
        self.put(name, text, metadata)
        return name, status, None, None, cut

    def _saved(self) -> tuple[dict[str, OracleDocument], int, list[TextFeatures]]:
        return dict(self.documents), self.added, list(self.removed)

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
        self.removed += [document.features for document in removed]
        return len(removed)


def candidate_limit(top: int, where: dict[str, Any] | None = None) -> int:
    """Return the number of candidates that are compared for this number of hits."""
    return max(MIN_CANDIDATES if where is None else MAX_CANDIDATES, 3 * top)


def matches(metadata: Metadata, where: dict[str, Any] | None) -> bool:
    """Return whether metadata has every key with an equal value."""
    return all(name in (metadata or {}) and (metadata or {})[name] == value for name, value in (where or {}).items())
