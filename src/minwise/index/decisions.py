"""Decisions: documents in, one after the other; what becomes of each out, also by what is similar to it."""

from collections.abc import Sequence

import numpy as np

from minwise.index.admission import Admission, Incoming
from minwise.index.answers import Decision
from minwise.index.lookup import Lookup
from minwise.index.records import DocumentRecord
from minwise.index.view import View

__all__ = ["decide_each"]


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
