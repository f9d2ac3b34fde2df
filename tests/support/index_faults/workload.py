"""A seeded stream of everything that can be done to an index, and a model that knows what each step must lead to.

The stream is made by the process that keeps the model, and done to a real index by another, which may be killed.
"""

import importlib
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
    "jaccard",
    "one_operation",
    "operations",
    "set_constants",
]

SETTINGS: dict[str, Any] = {"shingle": "word:5", "threshold": 0.7, "slots": 128, "seed": 7, "store": "text"}
# Little data makes many segments.
CONSTANTS = {"minwise.index.writer.FLUSH_DOCUMENTS": 64}
# How often each kind of operation is drawn, in an index that is to grow.
WEIGHTS = {
    "add": 10, "add_batch": 10, "add_unique": 6, "remove": 6, "replace": 5, "query": 6, "flush": 3, "compact": 1,
    "backup": 2,
}  # fmt: skip
WORDS = [f"w{number:x}" for number in range(20_000)]
TEXT_WORDS = range(30, 60)
# Above so many documents more are removed than added.
ENOUGH = 2000


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
        ids: The ids it is about.
        texts: Their texts, as far as it needs them.
        metadata: Their metadata, likewise.
        path: Where a backup goes.
    """

    kind: str
    ids: list[str | int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any] | None] = field(default_factory=list)
    path: str = ""

    def documents(self) -> list[Document]:
        """What is to be added."""
        return [Document(*parts) for parts in zip(self.ids, self.texts, self.metadata, strict=True)]

    def run(self, index: mw.Index) -> Any:  # noqa: ANN401
        """Does it, and what came out as a JSON value."""
        if self.kind in ("add", "add_batch"):
            return list(index.add(self.ids, self.texts, self.metadata))
        if self.kind == "replace":
            return list(index.add(self.ids, self.texts, self.metadata, on_duplicate_id="replace"))
        if self.kind == "add_unique":
            return [one.fate for one in index.add_unique(self.ids, self.texts, self.metadata, on_duplicate_id="skip")]
        if self.kind == "remove":
            return index.remove(self.ids)
        if self.kind == "query":
            return [[hit.id for hit in answer] for answer in index.query(self.texts)]
        if self.kind == "backup":
            return index.backup(self.path)
        return {"flush": index.flush, "compact": index.compact}[self.kind]()


class Model:
    """What an index holds after a number of operations.

    Attributes:
        documents: By id, in the order in which they were added.
        gone: The last text of every id that was removed and not added again.
    """

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.gone: dict[str, str] = {}
        self._texts: dict[str, int] = {}
        self._ids = itertools.count()

    def new_id(self) -> str | int:
        """An id that this model and its copies never gave before; a string or a whole number, as both are allowed."""
        number = next(self._ids)
        return number if number % 3 else f"d{number}"

    def copy(self) -> "Model":
        """Another one that holds the same."""
        other = Model()
        other.documents, other.gone, other._texts = dict(self.documents), dict(self.gone), dict(self._texts)
        other._ids = self._ids
        return other

    def text_of(self, name: str) -> str | None:
        """The text of a document that is there or was; None if there never was one."""
        document = self.documents.get(name)
        return self.gone.get(name) if document is None else document.text

    def apply(self, operation: Operation) -> Any:  # noqa: ANN401
        """Does it here, and what must come out; None if it is not known in advance."""
        if operation.kind == "remove":
            return sum(self._remove(str(one)) for one in operation.ids)
        if operation.kind == "add_unique":
            return [self._add_unique(document) for document in operation.documents()]
        if operation.kind in ("add", "add_batch", "replace"):
            replaced = sum(self._remove(str(one)) for one in operation.ids)
            for document in operation.documents():
                self._add(document)
            return [len(operation.ids) - replaced, replaced, 0, 0]
        return None

    def _add(self, document: Document) -> None:
        self.documents[str(document.id)] = document
        self.gone.pop(str(document.id), None)
        self._texts[document.text] = self._texts.get(document.text, 0) + 1

    def _add_unique(self, document: Document) -> str:
        """Texts of the stream are equal or have not a single shingle in common, but for those that replace one."""
        if self._texts.get(document.text):
            return "duplicate"
        self._add(document)
        return "added"

    def _remove(self, name: str) -> bool:
        document = self.documents.pop(name, None)
        if document is not None:
            self._texts[document.text] -= 1
            self.gone[name] = document.text
        return document is not None


def operations(draw: random.Random, model: Model, kinds: Iterable[str], folder: Path) -> Iterator[Operation]:
    """Operations of these kinds that fit the model, which is changed along with them; backups go to a folder."""
    for kind in kinds:
        operation = one_operation(draw, kind, model, folder)
        model.apply(operation)
        yield operation


def one_operation(draw: random.Random, kind: str, model: Model, folder: Path) -> Operation:
    """An operation of a kind that fits the model."""
    if kind in ("add", "add_batch", "add_unique"):
        ids = [model.new_id() for _ in range(1 if kind == "add" else draw.randrange(2, 30))]
        texts = [new_text(draw) for _ in ids]
        if kind == "add_unique":
            known = [document.text for document in some(draw, model, 5)]
            texts[: len(known)] = known[: len(texts)]
            texts[-1] = texts[0]
        return Operation(kind=kind, ids=ids, texts=texts, metadata=[metadata_of(draw) for _ in ids])
    if kind in ("flush", "compact"):
        return Operation(kind=kind)
    if kind == "backup":
        return Operation(kind=kind, path=str(folder / f"backup{model.new_id()}.mw"))
    chosen = some(draw, model, 120 if kind == "remove" and len(model.documents) > ENOUGH else 8)
    ids = [document.id for document in chosen]
    if kind == "query":
        return Operation(kind=kind, ids=ids, texts=[document.text for document in chosen])
    if kind == "remove":
        return Operation(kind=kind, ids=[*ids, model.new_id()])
    texts = [changed(draw, document.text) for document in chosen]
    return Operation(kind=kind, ids=ids, texts=texts, metadata=[metadata_of(draw) for _ in ids])


def some(draw: random.Random, model: Model, most: int) -> list[Document]:
    """A few documents of the model, each once; none if there are none."""
    names = list(model.documents)
    return [model.documents[name] for name in draw.sample(names, min(len(names), draw.randrange(1, most + 1)))]


def new_text(draw: random.Random) -> str:
    """A text that has no shingle in common with any other."""
    return " ".join(draw.choices(WORDS, k=draw.choice(TEXT_WORDS)))


def changed(draw: random.Random, text: str) -> str:
    """A near-duplicate: another last word, so that all shingles but one stay."""
    start, _, last = text.rpartition(" ")
    return f"{start} {draw.choice([word for word in draw.sample(WORDS, 2) if word != last])}"


def metadata_of(draw: random.Random) -> dict[str, Any] | None:
    """Something to be stored with a document, or nothing."""
    return draw.choice([None, {"lang": draw.choice(["en", "de"]), "rank": draw.randrange(10**6)}])


def jaccard(left: str, right: str) -> float:
    """The similarity of two texts of the stream, whose words are lower-case letters with one blank between."""
    sets = [{tuple(words[at : at + 5]) for at in range(len(words) - 4)} for words in (left.split(), right.split())]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def set_constants(constants: dict[str, int]) -> None:
    """Sets constants of modules, by their full names."""
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        owner = importlib.import_module(module)
        assert isinstance(getattr(owner, constant), int), name
        setattr(owner, constant, value)
