"""Work: what the desks do with an index. Everything that waits and is alike goes to the index in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec

import minwise as mw
from minwise.server.errors import is_full
from minwise.server.messages import Found
from minwise.server.passages import add_passages, found_of

__all__ = ["Add", "Ask", "Detail", "Query", "Reading", "Remove", "Submitted", "Writing"]

# Documents that share a transaction.
MOST_DOCUMENTS = 4096

Ask = Callable[[mw.Index], Any]
# About hits: id and similarity; metadata too; passages too.
Detail = Literal["bare", "metadata", "passages"]


@dataclass(frozen=True, slots=True)
class Query:
    """A text whose near-duplicates are wanted; how much about them says ``detail``."""

    text: str
    threshold: float | None
    top: int
    where: dict[str, Any] | None
    detail: Detail

    @property
    def wishes(self) -> tuple[object, ...]:
        """Queries with the same ones can be asked together."""
        where = None if self.where is None else msgspec.json.encode(self.where)
        return self.threshold, self.top, where, self.detail


class Reading:
    """Queries, and anything else that only reads."""

    def __init__(self, index: mw.Index) -> None:
        self._index = index

    def __call__(self, tasks: Sequence[Query | Ask]) -> list[Any]:
        """What came of each."""
        alike: dict[tuple[object, ...], list[int]] = {}
        outcomes: list[Any] = [None] * len(tasks)
        for place, task in enumerate(tasks):
            if isinstance(task, Query):
                alike.setdefault(task.wishes, []).append(place)
            else:
                outcomes[place] = _outcome(task, self._index)
        for places in alike.values():
            queries: list[Query] = [tasks[place] for place in places]  # type: ignore[misc]
            for place, outcome in zip(places, self._ask(queries), strict=True):
                outcomes[place] = outcome
        return outcomes

    def _ask(self, queries: list[Query]) -> Sequence[Found | Exception]:
        index, first = self._index, queries[0]
        least = index.plan.threshold if first.threshold is None else first.threshold
        texts = [query.text for query in queries]
        try:
            passages = first.detail == "passages" and index.store == "text"
            answers = index.query(texts, first.threshold, first.top, where=first.where, with_text=passages)
            found = [found_of(answer, least, bare=first.detail == "bare") for answer in answers]
            if passages:
                for told, answer, text in zip(found, answers, texts, strict=True):
                    add_passages(told, answer, text, index.shingler)
            return found
        except Exception as error:
            return [error] * len(queries)


class Submitted(NamedTuple):
    """A document that somebody wants to be stored."""

    id: str | int
    text: str
    metadata: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Add:
    """Documents to be stored, and on which conditions."""

    documents: list[Submitted]
    unique: bool
    on_duplicate_id: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Documents to be removed; what comes of it is which of the ids had one."""

    ids: list[str | int]


class Writing:
    """Changes, each durable before anybody hears of it.

    Attributes:
        failure: Why the last change could not be made, if the index is to blame; a disk that is full is not it.
    """

    def __init__(self, index: mw.Index) -> None:
        self._index = index
        self.failure: Exception | None = None

    def __call__(self, tasks: Sequence[Add | Remove]) -> list[Any]:
        """What came of each."""
        outcomes: list[Any] = []
        for kind, run in groupby(tasks, key=type):
            work: Callable[[Any], list[Any]] = self._add if kind is Add else self._remove
            for together in _portions(list(run)):
                outcomes += self._attempt(work, together)
        return outcomes

    def _attempt(self, work: Callable[[Any], list[Any]], tasks: list[Any]) -> list[Any]:
        """What came of some changes; if one of them is to blame for a failure, of each alone."""
        try:
            outcomes = work(tasks)
        except mw.InputError as error:
            if len(tasks) == 1:
                return [error]
            return [outcome for task in tasks for outcome in self._attempt(work, [task])]
        except Exception as error:
            self.failure = error if not is_full(error) else self.failure
            return [error] * len(tasks)
        if any(map(_has_changed, outcomes)):
            self.failure = None
        return outcomes

    def _add(self, tasks: list[Add]) -> list[list[mw.Decision]]:
        documents = [document for task in tasks for document in task.documents]
        # An id that is taken is told of each document, and does not keep out those beside it.
        policies = ["replace" if task.on_duplicate_id == "replace" else "skip" for task in tasks]
        decisions = iter(
            self._index.add_each(
                [document.id for document in documents],
                [document.text for document in documents],
                [document.metadata for document in documents],
                unique=[task.unique for task in tasks for _ in task.documents],
                on_duplicate_id=[policy for policy, task in zip(policies, tasks, strict=True) for _ in task.documents],
            )
        )
        return [[next(decisions) for _ in task.documents] for task in tasks]

    def _remove(self, tasks: list[Remove]) -> list[set[str]]:
        """For each task the ids that it removed, as text."""
        taken: set[str] = set()
        outcomes = []
        for task in tasks:
            there = {str(one) for one in task.ids if str(one) not in taken and one in self._index}
            taken |= there
            outcomes.append(there)
        self._index.remove(sorted(taken))
        return outcomes


def _has_changed(outcome: set[str] | list[mw.Decision]) -> bool:
    """Whether something was written."""
    return any(isinstance(one, str) or one.fate in ("added", "replaced") for one in outcome)


def _portions(tasks: list[Any]) -> list[list[Any]]:
    """Tasks in a row, cut where they would be too many documents for one transaction."""
    portions: list[list[Any]] = [[]]
    held = 0
    for task in tasks:
        size = len(task.documents) if isinstance(task, Add) else len(task.ids)
        if portions[-1] and held + size > MOST_DOCUMENTS:
            portions.append([])
            held = 0
        portions[-1].append(task)
        held += size
    return portions


def _outcome(ask: Ask, index: mw.Index) -> object:
    try:
        return ask(index)
    except Exception as error:
        return error
