"""Tasks of the index workers: batched queries and changes, and the hit messages with snippets and shared passages.

A worker passes all waiting tasks at once. Tasks with equal parameters become one call of the index.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.index import Answer, Decision
from minwise.options import MAX_CANDIDATES, MeasureName
from minwise.server.errors import is_disk_full
from minwise.server.messages import FoundMessage, HitMessage, SharedSpansMessage, SnippetMessage

__all__ = [
    "AddTask",
    "BatchReader",
    "BatchWriter",
    "ChangeTask",
    "HitDetail",
    "IndexCall",
    "QueryTask",
    "RemoveTask",
    "SubmittedDocument",
    "code_point_spans",
    "snippet_of",
    "snippet_text",
]

# Documents of one transaction.
MAX_TRANSACTION_DOCUMENTS = 4096
# Characters of a snippet, and those of them before the passage it shows.
SNIPPET_LENGTH, SNIPPET_CONTEXT = 240, 40
# Characters in which the end of a word is searched; scripts without spaces have none.
LONGEST_WORD = 30
# Characters of stored texts after which no more passages are computed; the first hit always has them.
MAX_PASSAGE_CHARACTERS = 1_000_000

IndexCall = Callable[[mw.Index], Any]
# Content of a hit: id and similarity; also metadata; also passages.
HitDetail = Literal["bare", "metadata", "passages"]
Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class QueryTask:
    """A query for the near-duplicates of a text."""

    text: str
    threshold: float | None
    top: int
    where: dict[str, Any] | None
    detail: HitDetail
    max_candidates: int = MAX_CANDIDATES
    measure: MeasureName = "jaccard"

    @property
    def parameters(self) -> tuple[object, ...]:
        """Everything except the text; queries with equal parameters can share one call."""
        where = None if self.where is None else msgspec.json.encode(self.where)
        return self.threshold, self.top, self.max_candidates, where, self.detail, self.measure


class BatchReader:
    """Processes batches of queries and other calls that only read."""

    def __init__(self, index: mw.Index) -> None:
        self._index = index

    def __call__(self, tasks: Sequence[QueryTask | IndexCall]) -> list[Any]:
        """Return the result or the exception of each task."""
        groups: dict[tuple[object, ...], list[int]] = {}
        outcomes: list[Any] = [None] * len(tasks)
        for position, task in enumerate(tasks):
            if isinstance(task, QueryTask):
                groups.setdefault(task.parameters, []).append(position)
            else:
                outcomes[position] = _call(task, self._index)
        for positions in groups.values():
            queries: list[QueryTask] = [tasks[position] for position in positions]  # type: ignore[misc]
            for position, outcome in zip(positions, self._query(queries), strict=True):
                outcomes[position] = outcome
        return outcomes

    def _query(self, queries: list[QueryTask]) -> Sequence[FoundMessage | Exception]:
        """Run queries with equal parameters as one call."""
        index, first = self._index, queries[0]
        threshold = index.plan.threshold if first.threshold is None else first.threshold
        texts = [query.text for query in queries]
        try:
            passages = first.detail == "passages" and index.store == "text"
            answers = index.query_many(
                texts,
                first.threshold,
                first.top,
                max_candidates=first.max_candidates,
                where=first.where,
                measure=first.measure,
                with_text=passages,
            )
            found = [found_message(answer, threshold, bare=first.detail == "bare") for answer in answers]
            if passages:
                for message, answer, text in zip(found, answers, texts, strict=True):
                    add_passages(message, answer, text, index.shingler)
            return found
        except Exception as error:
            return [error] * len(queries)


class SubmittedDocument(NamedTuple):
    """A document to add."""

    id: str | int
    text: str
    metadata: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AddTask:
    """Documents to add, with the options of their request."""

    documents: list[SubmittedDocument]
    unique: bool
    on_duplicate_id: str


@dataclass(frozen=True, slots=True)
class RemoveTask:
    """Documents to remove; the result is the set of ids that were in the index."""

    ids: list[str | int]


ChangeTask = AddTask | RemoveTask | IndexCall


class BatchWriter:
    """Processes batches of changes; each is durable before its result is returned.

    Attributes:
        failure: Why the last change failed, if the index is unusable; a full disk is not such a reason.
    """

    def __init__(self, index: mw.Index) -> None:
        self._index = index
        self.failure: Exception | None = None

    def __call__(self, tasks: Sequence[ChangeTask]) -> list[Any]:
        """Return the result or the exception of each task."""
        outcomes: list[Any] = []
        works: dict[type, Callable[[Any], list[Any]]] = {AddTask: self._add, RemoveTask: self._remove}
        for kind, run in groupby(tasks, key=type):
            for portion in _transactions(list(run)):
                outcomes += self._attempt(works.get(kind, self._call), portion)
        return outcomes

    def _attempt(self, work: Callable[[Any], list[Any]], tasks: list[Any]) -> list[Any]:
        """Return the outcomes of some changes; if one of them is invalid, run each alone."""
        try:
            outcomes = work(tasks)
        except (ConfigError, InputError) as error:
            if len(tasks) == 1:
                return [error]
            return [outcome for task in tasks for outcome in self._attempt(work, [task])]
        except Exception as error:
            self.failure = error if not is_disk_full(error) else self.failure
            return [error] * len(tasks)
        if any(map(_has_changed, outcomes)):
            self.failure = None
        return outcomes

    def _add(self, tasks: list[AddTask]) -> list[list[Decision]]:
        documents = [document for task in tasks for document in task.documents]
        # A taken id is reported for its document, and does not reject the others of the transaction.
        policies: list[Literal["replace", "skip"]] = [
            "replace" if task.on_duplicate_id == "replace" else "skip" for task in tasks
        ]
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

    def _remove(self, tasks: list[RemoveTask]) -> list[set[str]]:
        """Return for each task the ids that it removed, as text."""
        removed: set[str] = set()
        outcomes = []
        for task in tasks:
            present = {str(name) for name in task.ids if str(name) not in removed and name in self._index}
            removed |= present
            outcomes.append(present)
        self._index.remove(sorted(removed))
        return outcomes

    def _call(self, calls: list[IndexCall]) -> list[Any]:
        return [call(self._index) for call in calls]


def _has_changed(outcome: object) -> bool:
    """Return whether something was written; that is not known of a call."""
    return isinstance(outcome, (set, list)) and any(
        isinstance(item, str) or item.fate in ("added", "replaced") for item in outcome
    )


def _transactions(tasks: list[Any]) -> list[list[Any]]:
    """Split consecutive tasks where they would exceed the documents of one transaction."""
    portions: list[list[Any]] = [[]]
    documents = 0
    for task in tasks:
        size = _documents_of(task)
        if portions[-1] and documents + size > MAX_TRANSACTION_DOCUMENTS:
            portions.append([])
            documents = 0
        portions[-1].append(task)
        documents += size
    return portions


def _documents_of(task: ChangeTask) -> int:
    """Return the documents of the transaction of a task; a call has one for itself."""
    if isinstance(task, AddTask):
        return len(task.documents)
    return len(task.ids) if isinstance(task, RemoveTask) else MAX_TRANSACTION_DOCUMENTS


def _call(call: IndexCall, index: mw.Index) -> object:
    try:
        return call(index)
    except Exception as error:
        return error


def found_message(answer: Answer, threshold: float, *, bare: bool) -> FoundMessage:
    """Return an answer of the index as a message without passages; a bare one has no metadata either."""
    hits = [HitMessage(hit.id, hit.similarity, hit.exact, None if bare else hit.metadata, None, None) for hit in answer]
    for message, hit in zip(hits, answer, strict=True):
        if hit.contained is not None:
            message.contained = hit.contained
        if hit.recall is not None:
            message.recall = hit.recall
    cut = answer.truncated, answer.truncated_by, answer.left_out, answer.capped_buckets
    complete_above: float | msgspec.UnsetType | None = msgspec.UNSET if threshold else answer.complete_above
    return FoundMessage(hits, *cut, threshold, complete_above)


def add_passages(found: FoundMessage, answer: Answer, text: str, shingler: mw.Shingler) -> None:
    """Add to each hit the passages it shares with the query text, and a snippet."""
    query_spans = shingler.spans(text) if answer.hits else None
    characters = 0
    for message, hit in zip(found.hits, answer, strict=True):
        if query_spans is None or not isinstance(hit.text, str) or characters > MAX_PASSAGE_CHARACTERS:
            continue
        characters += len(hit.text)
        in_query, in_document = query_spans.shared_ranges(shingler.spans(hit.text))
        if shingler.kind == "byte":
            in_query, in_document = code_point_spans(text, in_query), code_point_spans(hit.text, in_document)
        message.spans = SharedSpansMessage(in_query, in_document)
        message.snippet = snippet_of(hit.text, in_document)


def snippet_of(text: str, spans: Spans) -> SnippetMessage:
    """Return the part of a text around its longest passage."""
    longest = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    start = _word_start(text, max(0, min(longest[0] - SNIPPET_CONTEXT, len(text) - SNIPPET_LENGTH)))
    part = snippet_text(text, start)
    end = start + len(part)
    visible = [(max(low, start) - start, min(high, end) - start) for low, high in spans if low < end and high > start]
    return SnippetMessage(part, start, visible, len(text))


def code_point_spans(text: str, spans: Spans) -> Spans:
    """Convert spans of UTF-8 bytes to spans of code points; a partly covered code point belongs to the span."""
    firsts = np.flatnonzero(np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0 != 0x80)
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    starts = np.searchsorted(firsts, bounds[:, 0], side="right") - 1
    ends = np.searchsorted(firsts, bounds[:, 1], side="left")
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def snippet_text(text: str, start: int = 0) -> str:
    """Return the part of a text from an offset, of snippet length, ending at the end of a word if possible."""
    end = start + SNIPPET_LENGTH
    if end >= len(text) or text[end].isspace():
        return text[start:end]
    last_word = re.search(r"\s+\S*\Z", text[end - LONGEST_WORD : end])
    return text[start : end - len(last_word[0])] if last_word else text[start:end]


def _word_start(text: str, offset: int) -> int:
    """Return where the first word at or after an offset starts; the offset itself if that is far."""
    if offset == 0 or text[offset - 1].isspace():
        return offset
    word = re.match(r"\S*\s+(?=\S)", text[offset : offset + LONGEST_WORD])
    return offset + word.end() if word else offset
