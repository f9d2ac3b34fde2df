"""What an index must answer, in plain Python: documents in a dict, buckets by comparing keys, Jaccard by sets.

The keys of bands come from the kernel and the elements from the shingler, which have oracles of their own. Everything
that an index does with them is here again, in the simplest way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import minwise as mw
from minwise.search.bands import FILLED, Bander, KeyBlock
from minwise.settings import FindSettings
from minwise.sketches import estimates as estimate

Id = str | int
Metadata = dict[str, Any] | None
# Id, fate, id of the witness, similarity to it, whether the search was cut short.
Decided = tuple[Id, str, Id | None, float | None, bool]
# Of a bucket above the cap so many members are looked at.
FIRST_MEMBERS = 16
# Of a bucket never more postings than this many times the cap are read, those of removed documents included.
POSTINGS_READ = 64
# So many candidates of a query are compared at least, and three for each hit that is wanted...
LEAST_CANDIDATES = 32
# ...and so many of a document that is to be added if it is like no other: a decision is for ever.
COMPARED_TO_DECIDE = 256
LOW_BITS = 16


@dataclass(frozen=True)
class Facts:
    """What the stages before the index make of a text.

    Attributes:
        keys: The key of each band; none if there are no shingles.
        elements: The shingle hashes.
        low_bits: The low 16 bits of each slot of its signature.
    """

    keys: tuple[int, ...]
    elements: frozenset[int]
    low_bits: tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """A living document; ``number`` is its place in the order in which documents were added."""

    number: int
    id: Id
    text: str
    metadata: Metadata
    facts: Facts


@dataclass(frozen=True)
class Expected:
    """What a query must give: (id, similarity, metadata) of each hit, and whether work was cut."""

    hits: list[tuple[Id, float, Metadata]]
    truncated: bool = False


class RefusedError(Exception):
    """The call must raise and leave everything as it was."""


@dataclass
class Oracle:
    """The documents of an index and all that is asked of them.

    Attributes:
        index: Where plan, scheme and shingler are taken from; its documents are never looked at.
        max_bucket: The cap on buckets that it was created with.
        documents: The living ones under their id as a string, in the order in which they were added.
        added: How many documents there have been.
        removed: What may still have postings: removed documents since the last compaction.
    """

    index: mw.Index
    max_bucket: int
    documents: dict[str, Stored] = field(default_factory=dict)
    added: int = 0
    removed: list[Facts] = field(default_factory=list)
    known: dict[str, Facts] = field(default_factory=dict)

    def facts(self, text: str) -> Facts:
        """Keys, elements and signature of a text, each computed once."""
        if text not in self.known:
            self.known[text] = self._facts(text)
        return self.known[text]

    def _facts(self, text: str) -> Facts:
        plan, scheme, shingler = self.index.plan, self.index.scheme, self.index.shingler
        settings = FindSettings(plan=plan, shingler=shingler, scheme=scheme.name, seed=scheme.seed)
        block = KeyBlock.of(settings, 1)
        assert Bander(settings).band(pa.array([text]), block, 1) == []
        keys = tuple(block.keys[:, 0].tolist()) if block.states[0] == FILLED else ()
        elements = frozenset(shingler.shingle([text])[0].tolist())
        assert bool(keys) == bool(elements)
        slots = scheme.sketch_texts([text], shingler)[0].tolist()
        assert len(slots) == plan.slots
        return Facts(keys, elements, tuple(slot % 2**LOW_BITS for slot in slots))

    def similarity(self, left: Facts, right: Facts) -> float:
        """Exact Jaccard; what the low bits of the signatures say where only they are kept."""
        if not left.elements or not right.elements:
            return 0.0
        if self.index.store != "sketch":
            return len(left.elements & right.elements) / len(left.elements | right.elements)
        equal = sum(one == other for one, other in zip(left.low_bits, right.low_bits, strict=True))
        c1, c2 = (float(constant) for constant in estimate.bbit_constants(1, 1, None, LOW_BITS))
        return min(1.0, max(0.0, estimate.bbit_estimate(equal / len(left.low_bits), c1, c2)))

    def candidates(self, facts: Facts, room: int) -> tuple[list[Stored], bool]:
        """The documents that share a bucket, those that share most of them if they are too many; whether any is cut."""
        living = [one for one in self.documents.values() if one.facts.keys]
        shared, cut = Counter[int](), False
        for band, key in enumerate(facts.keys):
            members = [one.number for one in living if one.facts.keys[band] == key]
            if len(members) > self.max_bucket:
                members, cut = members[:FIRST_MEMBERS], True
            shared.update(members)
        ranked = sorted(shared, key=lambda number: (-shared[number], number))
        of_number = {one.number: one for one in living}
        return [of_number[number] for number in ranked[:room]], cut or len(ranked) > room

    def is_crowded(self, text: str) -> bool:
        """Whether a bucket may have so many postings, of removed documents too, that they are not all read."""
        most = POSTINGS_READ * max(FIRST_MEMBERS, self.max_bucket)
        known = [*(one.facts.keys for one in self.documents.values()), *(facts.keys for facts in self.removed)]
        of_band = [Counter(keys[band] for keys in known if keys) for band in range(self.index.plan.bands)]
        return any(counts[key] > most for counts, key in zip(of_band, self.facts(text).keys, strict=False))

    def query(self, text: str, threshold: float, top: int, where: dict[str, Any] | None = None) -> Expected:
        """The most similar documents from the threshold on, equally similar ones in the order they were added."""
        facts = self.facts(text)
        candidates, truncated = self.candidates(facts, room_for(top, where))
        found = [(self.similarity(facts, one.facts), one) for one in candidates if matches(one.metadata, where)]
        found = [(similarity, one) for similarity, one in found if similarity >= threshold]
        found.sort(key=lambda pair: (-pair[0], pair[1].number))
        return Expected([(one.id, similarity, one.metadata) for similarity, one in found[:top]], truncated)

    def is_same(self, old: Stored, text: str, metadata: Metadata) -> bool:
        """Whether the same document is there already."""
        facts = self.facts(text)
        same = {
            "shingles": old.facts.elements == facts.elements,
            "text": old.text == text,
            "sketch": old.facts.low_bits == facts.low_bits,
        }
        return same[self.index.store] and old.metadata == metadata

    def put(self, name: Id, text: str, metadata: Metadata) -> None:
        """Stores a document behind all others; an older one of this id is gone."""
        self.remove([name])
        self.documents[str(name)] = Stored(self.added, name, text, metadata, self.facts(text))
        self.added += 1

    def add(
        self, ids: Sequence[Id], texts: Sequence[str], metadata: Sequence[Metadata], policy: str
    ) -> tuple[int, int, int, int]:
        """How many were added, replaced, skipped and unchanged.

        Raises:
            RefusedError: If a duplicate id is an error; then nothing is added.
        """
        before, counts = self._saved(), Counter[str]()
        for name, text, about in zip(ids, texts, metadata, strict=True):
            fate = self.fate(name, text, about, policy)
            if fate == "refused":
                self.documents, self.added, self.removed = before
                raise RefusedError
            if fate in ("added", "replaced"):
                self.put(name, text, about)
            counts[fate] += 1
        return counts["added"], counts["replaced"], counts["skipped"], counts["unchanged"]

    def add_unique(
        self, ids: Sequence[Id], texts: Sequence[str], metadata: Sequence[Metadata], policy: str
    ) -> list[Decided]:
        """What becomes of each; one that would take the place of another is not compared with that.

        Raises:
            RefusedError: As in `add`.
        """
        before, decided = self._saved(), []
        for name, text, about in zip(ids, texts, metadata, strict=True):
            fate = self.fate(name, text, about, policy)
            if fate == "refused":
                self.documents, self.added, self.removed = before
                raise RefusedError
            decided.append(self._decide(name, text, about, fate))
        return decided

    def _decide(self, name: Id, text: str, metadata: Metadata, fate: str) -> Decided:
        if fate in ("unchanged", "skipped"):
            return name, fate, None, None, False
        facts, old = self.facts(text), self.documents.get(str(name))
        candidates, cut = self.candidates(facts, COMPARED_TO_DECIDE)
        others = [(-self.similarity(facts, one.facts), one.number, one.id) for one in candidates if one is not old]
        best = min(others, default=(0.0, 0, None))
        if -best[0] >= self.index.plan.threshold:
            return name, "duplicate", best[2], -best[0], cut
        self.put(name, text, metadata)
        return name, fate, None, None, cut

    def _saved(self) -> tuple[dict[str, Stored], int, list[Facts]]:
        return dict(self.documents), self.added, list(self.removed)

    def fate(self, name: Id, text: str, metadata: Metadata, policy: str) -> str:
        """What becomes of a document for its id's sake."""
        old = self.documents.get(str(name))
        if old is None:
            return "added"
        if self.is_same(old, text, metadata):
            return "unchanged"
        return {"error": "refused", "skip": "skipped", "replace": "replaced"}[policy]

    def remove(self, ids: Sequence[Id]) -> int:
        """How many of them were there."""
        gone = [self.documents.pop(name) for name in dict.fromkeys(map(str, ids)) if name in self.documents]
        self.removed += [one.facts for one in gone]
        return len(gone)


def room_for(top: int, where: dict[str, Any] | None = None) -> int:
    """How many candidates are compared to find so many hits."""
    return max(LEAST_CANDIDATES if where is None else COMPARED_TO_DECIDE, 3 * top)


def matches(metadata: Metadata, where: dict[str, Any] | None) -> bool:
    """Whether every named key is there with an equal value."""
    return all(name in (metadata or {}) and (metadata or {})[name] == value for name, value in (where or {}).items())
