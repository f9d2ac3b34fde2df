"""The small life of an index, step by step, in which everything happens that can change a file."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import minwise as mw
from support.index_faults.checks import deviations
from support.index_faults.workload import SETTINGS, Model, Operation, changed, metadata_of, new_text

__all__ = ["AGAIN", "BACKUP", "CONSTANTS", "INDEX", "Script", "Step", "matching", "prove_writable", "script"]

# Below the watched directory, where no directory is there yet.
INDEX, BACKUP = "new/deep/index.mw", "backup.mw"
# A flush after 8 documents, a merge of 2 segments, a checkpoint after 16 pages: everything happens to 30 documents.
CONSTANTS = {
    "minwise.index.writer.FLUSH_DOCUMENTS": 8,
    "minwise.index.writer.FANOUT": 2,
    "minwise.index.store.CHECKPOINT_PAGES": 16,
}
# A text whose pages are a good part of the database, so that a compaction finds them free and gives them back.
LARGE_WORDS = 3000
# The document by which it is tried whether an index can be written.
AGAIN = "again"


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        name: What happens in it.
        operation: What is done to the index; None if it is made, closed or opened.
    """

    name: str
    operation: Operation | None = None

    def run(self, index: mw.Index | None, folder: Path) -> mw.Index | None:
        """Does it; the index that is open afterwards."""
        path = folder / INDEX
        if self.name == "create":
            return mw.Index.create(path, **SETTINGS)
        if self.name == "open":
            return mw.Index.open(path, "w")
        assert index is not None
        if self.name == "close":
            index.close()
            return None
        assert self.operation is not None
        if self.operation.kind == "backup":
            index.backup(folder / BACKUP)
        else:
            self.operation.run(index)
        return index


@dataclass(frozen=True)
class Script:
    """All steps.

    Attributes:
        steps: In order.
        states: What the index holds before each of them, and after the last.
        names: Every id that is ever there.
    """

    steps: list[Step]
    states: list[Model]
    names: list[str]


class _Author:
    """Writes the steps, and the states along with them."""

    def __init__(self) -> None:
        self._draw = random.Random(20)
        self._model = Model()
        self.steps: list[Step] = []
        self.states = [self._model.copy()]
        self.names: list[str] = []

    def step(self, name: str, operation: Operation | None = None) -> None:
        """One more."""
        if operation is not None:
            self._model.apply(operation)
        self.steps.append(Step(name, operation))
        self.states.append(self._model.copy())

    def add(self, name: str, count: int, kind: str = "add", words: int = 0) -> None:
        """New documents; with ``add_unique`` the last has the text of the first."""
        ids = [self._model.new_id() for _ in range(count)]
        texts = [" ".join(new_text(self._draw) for _ in range(1 + words // 40)) for _ in ids]
        if kind == "add_unique":
            texts[-1] = texts[0]
        self.names += map(str, ids)
        about = [metadata_of(self._draw) for _ in ids]
        self.step(name, Operation(kind=kind, ids=ids, texts=texts, metadata=about))

    def remove(self, name: str, *places: int) -> None:
        """The documents at these places."""
        self.step(name, Operation(kind="remove", ids=[list(self._model.documents.values())[at].id for at in places]))

    def replace(self, name: str, *places: int) -> None:
        """Near-duplicates of the documents at these places, under their ids."""
        chosen = [list(self._model.documents.values())[at] for at in places]
        texts = [changed(self._draw, document.text) for document in chosen]
        about = [metadata_of(self._draw) for _ in chosen]
        ids = [document.id for document in chosen]
        self.step(name, Operation(kind="replace", ids=ids, texts=texts, metadata=about))


@cache
def script() -> Script:
    """The same in every process."""
    author = _Author()
    author.step("create")
    author.add("add", 1)
    author.add("add another", 1)
    author.add("add unique", 3, "add_unique")
    author.add("add and flush", 6)
    author.remove("remove", 1, 4)
    author.replace("replace", 0, 5)
    author.add("add large", 1, words=LARGE_WORDS)
    author.add("add, flush and merge", 6)
    author.add("add more", 3)
    author.step("flush", Operation(kind="flush"))
    author.step("close")
    author.step("open")
    author.add("add after opening", 2)
    author.remove("remove large", 2, 8, 9)
    author.step("compact", Operation(kind="compact"))
    author.step("backup", Operation(kind="backup"))
    author.add("add after backup", 1)
    author.step("close")
    return Script(author.steps, author.states, author.names)


def matching(index: mw.Index, allowed: dict[str, Model], names: list[str]) -> str:
    """Which of some states an index is in, wholly; AssertionError if in none."""
    found = {}
    for label, model in allowed.items():
        found[label] = deviations(index, model, [*names, AGAIN])
        if not found[label]:
            return label
    raise AssertionError(f"in none of the states allowed: { {label: wrong[:4] for label, wrong in found.items()} }")


def prove_writable(index: mw.Index) -> None:
    """Adds a document and finds it."""
    text = "this document was added when everything was over and is found again at once"
    assert index.add([AGAIN], [text]).added == 1
    assert [hit.id for hit in index.query(text)] == [AGAIN]
    assert index.get(AGAIN).text == text
    index.remove([AGAIN])
    assert AGAIN not in index
