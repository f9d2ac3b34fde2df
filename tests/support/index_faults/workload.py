"""Seeded stream of all operations on an index, and a model of their results.

The process that keeps the model generates the stream; another process, which may be killed, applies it to a real index.
"""

import importlib
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import minwise as mw

__all__ = [
    "CONSTANTS",
    "SETTINGS",
    "WEIGHTS",
    "Document",
    "Model",
    "Operation",
    "draw_operation",
    "jaccard",
    "operations",
    "set_constants",
]

SETTINGS: dict[str, Any] = {"shingle": "word:5", "threshold": 0.7, "slots": 128, "seed": 7, "store_text": True}
# Little data creates many segments.
CONSTANTS = {"minwise.index.writer.FLUSH_DOCUMENTS": 64}
# Weights of the operations, for an index that grows.
WEIGHTS = {
    "add": 10, "add_batch": 10, "add_unique": 6, "remove": 6, "replace": 5, "query": 6, "flush": 3, "compact": 1,
    "backup": 2, "expire": 2,
}  # fmt: skip
WORDS = [f"w{number:x}" for number in range(20_000)]
TEXT_WORDS = range(30, 60)
# Ranks of documents are their times, too; an expiry removes those below a part of the largest one.
MAX_RANK = 10**6
# Above this number of documents, more are removed than added.
MAX_DOCUMENTS = 2000


@dataclass(frozen=True)
class Document:
    """A document as it was added."""

    id: str | int
    text: str
    metadata: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of an index.

    Attributes:
        kind: A key of `WEIGHTS`.
        ids: The ids of the documents.
        texts: Their texts, if needed.
        metadata: Their metadata, if needed.
        path: The target of a backup.
        before: The rank below which documents expire.
    """

    kind: str
    ids: list[str | int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any] | None] = field(default_factory=list)
    path: str = ""
    before: int = 0

    def documents(self) -> list[Document]:
        """Return the documents to add."""
        return [Document(*parts) for parts in zip(self.ids, self.texts, self.metadata, strict=True)]

    def run(self, index: mw.Index) -> Any:  # noqa: ANN401
        """Run the operation, and return its result as a JSON value."""
        if self.kind in ("add", "add_batch"):
            return list(index.add(self.ids, self.texts, self.metadata))
        if self.kind == "replace":
            return list(index.add(self.ids, self.texts, self.metadata, on_duplicate_id="replace"))
        if self.kind == "add_unique":
            return [
                decision.fate
                for decision in index.add_unique(self.ids, self.texts, self.metadata, on_duplicate_id="skip")
            ]
        if self.kind == "remove":
            return index.remove(self.ids)
        if self.kind == "query":
            return [[hit.id for hit in answer] for answer in index.query_many(self.texts)]
        if self.kind == "backup":
            return index.backup(self.path)
        if self.kind == "expire":
            before = datetime.fromtimestamp(self.before, timezone.utc)
            return list(index.expire(before=before, time_field="rank"))[:4]
        return {"flush": index.flush, "compact": index.compact}[self.kind]()


class Model:
    """Expected content of an index.

    Attributes:
        documents: Documents by id, in order of addition.
        removed: The last text of every id that was removed and not added again.
    """

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.removed: dict[str, str] = {}
        self._texts: dict[str, int] = {}
        self._ids = itertools.count()

    def new_id(self) -> str | int:
        """Return an id that this model and its copies never returned before, a string or an integer."""
        number = next(self._ids)
        return number if number % 3 else f"d{number}"

    def copy(self) -> "Model":
        """Return a copy."""
        other = Model()
        other.documents, other.removed, other._texts = dict(self.documents), dict(self.removed), dict(self._texts)
        other._ids = self._ids
        return other

    def text_of(self, name: str) -> str | None:
        """Return the text of a present or removed document; None if there never was one."""
        document = self.documents.get(name)
        return self.removed.get(name) if document is None else document.text

    def apply(self, operation: Operation) -> Any:  # noqa: ANN401
        """Apply an operation, and return the expected result; None if it is not known in advance."""
        if operation.kind == "remove":
            return sum(self._remove(str(document_id)) for document_id in operation.ids)
        if operation.kind == "expire":
            read, expired = len(self.documents), self.expired(operation.before)
            undated = sum(document.metadata is None for document in self.documents.values())
            return [read, sum(self._remove(str(document_id)) for document_id in expired), undated, 0]
        if operation.kind == "add_unique":
            return [self._add_unique(document) for document in operation.documents()]
        if operation.kind in ("add", "add_batch", "replace"):
            replaced = sum(self._remove(str(document_id)) for document_id in operation.ids)
            for document in operation.documents():
                self._add(document)
            return [len(operation.ids) - replaced, replaced, 0, 0]
        return None

    def expired(self, before: int) -> list[str | int]:
        """Return the ids of documents with a rank below a number."""
        documents = self.documents.values()
        return [one.id for one in documents if one.metadata is not None and one.metadata["rank"] < before]

    def _add(self, document: Document) -> None:
        self.documents[str(document.id)] = document
        self.removed.pop(str(document.id), None)
        self._texts[document.text] = self._texts.get(document.text, 0) + 1

    def _add_unique(self, document: Document) -> str:
        """Add a document unless its text exists; other texts share no shingle with it, except replacements."""
        if self._texts.get(document.text):
            return "duplicate"
        self._add(document)
        return "added"

    def _remove(self, name: str) -> bool:
        document = self.documents.pop(name, None)
        if document is not None:
            self._texts[document.text] -= 1
            self.removed[name] = document.text
        return document is not None


def operations(draw: random.Random, model: Model, kinds: Iterable[str], folder: Path) -> Iterator[Operation]:
    """Yield operations of these kinds that fit the model, and apply them to it; backups go to a folder."""
    for kind in kinds:
        operation = draw_operation(draw, kind, model, folder)
        model.apply(operation)
        yield operation


def draw_operation(draw: random.Random, kind: str, model: Model, folder: Path) -> Operation:
    """Return an operation of a kind that fits the model."""
    if kind in ("add", "add_batch", "add_unique"):
        ids = [model.new_id() for _ in range(1 if kind == "add" else draw.randrange(2, 30))]
        texts = [new_text(draw) for _ in ids]
        if kind == "add_unique":
            known = [document.text for document in draw_documents(draw, model, 5)]
            texts[: len(known)] = known[: len(texts)]
            texts[-1] = texts[0]
        return Operation(kind=kind, ids=ids, texts=texts, metadata=[metadata_of(draw) for _ in ids])
    if kind in ("flush", "compact"):
        return Operation(kind=kind)
    if kind == "backup":
        return Operation(kind=kind, path=str(folder / f"backup{model.new_id()}.mw"))
    if kind == "expire":
        before = draw.randrange(1, MAX_RANK // 5)
        return Operation(kind=kind, ids=model.expired(before), before=before)
    chosen = draw_documents(draw, model, 120 if kind == "remove" and len(model.documents) > MAX_DOCUMENTS else 8)
    ids = [document.id for document in chosen]
    if kind == "query":
        return Operation(kind=kind, ids=ids, texts=[document.text for document in chosen])
    if kind == "remove":
        return Operation(kind=kind, ids=[*ids, model.new_id()])
    texts = [changed(draw, document.text) for document in chosen]
    return Operation(kind=kind, ids=ids, texts=texts, metadata=[metadata_of(draw) for _ in ids])


def draw_documents(draw: random.Random, model: Model, limit: int) -> list[Document]:
    """Return a few distinct documents of the model."""
    names = list(model.documents)
    return [model.documents[name] for name in draw.sample(names, min(len(names), draw.randrange(1, limit + 1)))]


def new_text(draw: random.Random) -> str:
    """Return a text that shares no shingle with any other."""
    return " ".join(draw.choices(WORDS, k=draw.choice(TEXT_WORDS)))


def changed(draw: random.Random, text: str) -> str:
    """Return a near-duplicate: another last word, so that all shingles but one stay."""
    start, _, last = text.rpartition(" ")
    return f"{start} {draw.choice([word for word in draw.sample(WORDS, 2) if word != last])}"


def metadata_of(draw: random.Random) -> dict[str, Any] | None:
    """Return metadata or None."""
    return draw.choice([None, {"lang": draw.choice(["en", "de"]), "rank": draw.randrange(MAX_RANK)}])


def jaccard(left: str, right: str) -> float:
    """Return the similarity of two texts of the stream, whose words are separated by single spaces."""
    sets = [
        {tuple(words[start : start + 5]) for start in range(len(words) - 4)} for words in (left.split(), right.split())
    ]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def set_constants(constants: dict[str, int]) -> None:
    """Set module constants by their full names."""
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        owner = importlib.import_module(module)
        assert isinstance(getattr(owner, constant), int), name
        setattr(owner, constant, value)
