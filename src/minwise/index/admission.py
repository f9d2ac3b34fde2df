"""Admission: documents with ids in; out comes which are new, which take another's place, which are there already."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.checks import check_choice, show
from minwise.errors import InputError
from minwise.index.answers import Added, Decision, DocumentId, Metadata
from minwise.index.lookup import Lookup
from minwise.index.records import DocumentColumns, DocumentRecord, checksum_of, encode_metadata, has_name, seal
from minwise.index.sketching import Sketched, hash_ids
from minwise.index.store import Store
from minwise.index.view import View
from minwise.index.writer import Change, Gone

__all__ = ["Admission", "Held", "Incoming", "Names", "decide_each", "find_holders", "gone_of"]


@dataclass(frozen=True, slots=True)
class Names:
    """Checked ids: as they were given, as bytes that decide which are the same, and hashed."""

    ids: list[DocumentId]
    names: list[bytes]
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, ids: Iterable[object], seed: int) -> "Names":
        """The ids of a call.

        Raises:
            InputError: If one is neither a whole number nor a string with at least one character.
        """
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise InputError(f"ids must be a list of ids, got one {type(ids).__name__}; write [id]")
        listed = ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)
        given = [one if type(one) is str else _plain(one, place) for place, one in enumerate(listed)]
        names = [_name(one, place) for place, one in enumerate(given)]
        return cls(given, names, hash_ids(names, seed))

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> "Names":
        """Some ids that follow each other."""
        return Names(self.ids[start:end], self.names[start:end], self.hashes[start:end])


def _plain(one: object, place: int) -> DocumentId:
    """An id in its plain type; NumPy has its own whole numbers and strings."""
    if isinstance(one, str):
        return str(one)
    try:
        if not isinstance(one, (bool, np.bool_)):
            return index(one)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise InputError(f"id {place} must be a whole number or a string that is not empty, got {show(one)}")


def _name(one: DocumentId, place: int) -> bytes:
    try:
        if one != "":
            return str(one).encode()
    except ValueError:  # a lone surrogate, or more digits than Python is willing to print
        pass
    raise InputError(f"id {place} must be a whole number or a string that is not empty, got {show(one)}")


class Held(NamedTuple):
    """A document that is there under an id: its number and its record."""

    number: int
    record: bytes


def find_holders(names: Names, view: View, store: Store) -> dict[bytes, Held]:
    """The documents that are there under these ids."""
    offsets, documents = view.postings.holders(names.hashes)
    if not len(documents):
        return {}
    numbers, bounds = documents.tolist(), offsets.tolist()
    records = store.records("documents", numbers)
    return {
        names.names[place]: Held(numbers[found], records[found])
        for place in np.flatnonzero(np.diff(offsets)).tolist()
        for found in range(bounds[place], bounds[place + 1])
        if has_name(records[found], names.names[place])
    }


@dataclass(frozen=True, slots=True)
class Incoming:
    """Documents of one call, in order: ids, what is stored of them, and what finds them."""

    names: Names
    columns: DocumentColumns
    texts: list[bytes]
    sketched: Sketched

    @classmethod
    def of(
        cls, names: Names, sketched: Sketched, texts: list[bytes], metadata: Sequence[Metadata | None] | None
    ) -> "Incoming":
        """The documents, if there are as many ids, texts and metadata."""
        about = [b""] * len(names) if metadata is None else [encode_metadata(one, i) for i, one in enumerate(metadata)]
        for what, count in (("texts", len(sketched)), ("metadata", len(about))):
            if count != len(names):
                raise InputError(f"there must be as many {what} as ids, got {count} and {len(names)}")
        whole = [not isinstance(one, str) for one in names.ids]
        return cls(names, DocumentColumns(names.names, whole, about, sketched.bodies), texts, sketched)

    def stored(self, place: int) -> tuple[bytes, bytes]:
        """What is stored of a document beside its id and text: metadata and body."""
        return self.columns.metadata[place], self.columns.bodies[place]

    def keys(self, places: Sequence[int]) -> NDArray[np.uint64]:
        """For each of some documents the hash of its id and the keys of its bands."""
        chosen = np.asarray(places, dtype=np.int64)
        return np.concatenate([self.names.hashes[chosen, None], self.sketched.keys[chosen]], axis=1)


class Admission:
    """Decides on documents one after the other, by their ids, and gathers the change that they make."""

    def __init__(self, incoming: Incoming, policies: Sequence[str], view: View, store: Store) -> None:
        for policy in set(policies):
            check_choice("on_duplicate_id", policy, ("error", "skip", "replace"))
        self._policies = policies
        self._incoming, self._store = incoming, store
        self._first = view.state.next
        self._held = find_holders(incoming.names, view, store)
        self._taken: dict[bytes, int] = {}
        self._places: list[int] = []
        self._gone: list[Gone] = []

    def admit_all(self) -> Added:
        """Lets in every document that its id lets in; what became of all of them."""
        names = self._incoming.names.names
        if not self._held and len(set(names)) == len(names):
            self._places = list(range(len(names)))
            return Added(added=len(names))
        fates = Counter(self._admit(place) for place in range(len(names)))
        return Added(**fates)

    def _admit(self, place: int) -> str:
        fate = self.fate(place)
        if fate in ("added", "replaced"):
            self.take(place)
        return fate

    def fate(self, place: int) -> str:
        """What the id alone says: ``added`` or ``replaced`` if it may come in, else ``unchanged`` or ``skipped``."""
        name = self._incoming.names.names[place]
        if name not in self._taken and name not in self._held:
            return "added"
        if self._is_unchanged(place, name):
            return "unchanged"
        if self._policies[place] == "error":
            shown = show(self._incoming.names.ids[place])
            where = "given twice, with two documents" if name in self._taken else "there already, with another document"
            raise InputError(f"id {shown} is {where}; on-duplicate-id skip or replace goes on")
        return "skipped" if self._policies[place] == "skip" else "replaced"

    def _is_unchanged(self, place: int, name: bytes) -> bool:
        """Whether the document under the id is the same in everything that is stored."""
        incoming = self._incoming
        if name in self._taken:
            earlier = self._places[self._taken[name]]
            texts = incoming.texts[earlier : earlier + 1] == incoming.texts[place : place + 1]
            return texts and incoming.stored(earlier) == incoming.stored(place)
        held = self._held[name]
        document = DocumentRecord.decode(held.record)
        if (document.metadata, document.body) != incoming.stored(place):
            return False
        return not incoming.texts or self._store.content("texts", held.number) == incoming.texts[place]

    def holder(self, place: int) -> int | None:
        """The number of the document that is there under the id."""
        name = self._incoming.names.names[place]
        if name in self._taken:
            return self._first + self._taken[name]
        return self._held[name].number if name in self._held else None

    def take(self, place: int) -> tuple[int, bytes]:
        """Lets a document in, in the place of any other under its id; its number, and its row as it will be."""
        name = self._incoming.names.names[place]
        if name in self._taken:
            self._gone.append(self._gone_again(self._taken[name]))
        elif name in self._held:
            self._gone.extend(gone_of([self._held[name]], self._store, texts=bool(self._incoming.texts)))
        self._taken[name] = len(self._places)
        self._places.append(place)
        return self._first + self._taken[name], self._record(self._taken[name])

    def _gone_again(self, taken: int) -> Gone:
        """A document that another of the same call replaces: its rows are written, and deleted."""
        number, place = self._first + taken, self._places[taken]
        texts, _ = seal(number, self._incoming.texts[place : place + 1])
        return Gone(number, tuple(checksum_of(record) for record in (self._record(taken), *texts)))

    def _record(self, taken: int) -> bytes:
        """The row of one of the documents that were let in, as it will be."""
        (record,), _ = self._incoming.columns.of([self._places[taken]]).seal(self._first + taken)
        return record

    def change(self) -> Change:
        """What has to be committed."""
        incoming, places = self._incoming, self._places
        texts = [incoming.texts[place] for place in places] if incoming.texts else []
        return Change(incoming.columns.of(places), texts, incoming.keys(places), self._gone)


def gone_of(held: Sequence[Held], store: Store, *, texts: bool) -> list[Gone]:
    """Documents as they are taken away."""
    documents = [one.record for one in held]
    stored = store.records("texts", [one.number for one in held]) if texts else []
    rows = zip(documents, stored, strict=True) if texts else zip(documents, strict=True)
    return [Gone(one.number, tuple(checksum_of(record) for record in row)) for one, row in zip(held, rows, strict=True)]


def decide_each(
    incoming: Incoming, unique: Sequence[bool], admission: Admission, lookup: Lookup, view: View
) -> list[Decision]:
    """What becomes of each document, which those after it see already.

    Args:
        incoming: The documents.
        unique: For each, whether a near-duplicate that is there or came before keeps it out.
        admission: Who lets them in by their ids.
        lookup: Who finds near-duplicates.
        view: What is there; it takes in what is let in.
    """
    deciding = _Deciding(incoming, admission, lookup, view)
    return [deciding.decide(place, unique=one) for place, one in enumerate(unique)]


class _Deciding:
    def __init__(self, incoming: Incoming, admission: Admission, lookup: Lookup, view: View) -> None:
        self._incoming, self._admission, self._lookup, self._view = incoming, admission, lookup, view
        # Rows that have been let in and are not written yet.
        self._pending: dict[int, bytes] = {}

    def decide(self, place: int, *, unique: bool) -> Decision:
        name, sketched = self._incoming.names.ids[place], self._incoming.sketched
        fate = self._admission.fate(place)
        if fate in ("unchanged", "skipped"):
            return Decision(name, fate)
        before, found, truncated = self._admission.holder(place), None, False
        if unique:
            keys, body = sketched.keys[place], sketched.bodies[place]
            found, truncated = self._lookup.most_similar(keys, body, before, self._pending)
        if found is not None:
            return Decision(name, "duplicate", DocumentRecord.decode(found.record).id, found.similarity, truncated)
        self._let_in(place, before)
        return Decision(name, fate, truncated=truncated)

    def _let_in(self, place: int, before: int | None) -> None:
        """Takes a document in, in the place of the one before it under its id."""
        number, row = self._admission.take(place)
        self._pending[number] = row
        self._view.postings.push(number, self._incoming.keys([place]))
        if before is not None:
            self._view.postings.remove(np.array([before], dtype=np.uint32))
