"""A script of steps on a small index in which every kind of file change happens."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import minwise as mw
from support.index_faults.checks import differences
from support.index_faults.workload import SETTINGS, Model, Operation, changed, metadata_of, new_text

__all__ = ["BACKUP", "CONSTANTS", "INDEX", "PROBE", "Script", "Step", "matching_state", "prove_writable", "script"]

# Paths below the watched directory, in directories that do not exist yet.
INDEX, BACKUP = "new/deep/index.mw", "backup.mw"
# A flush after 8 documents, a merge of 2 segments, a checkpoint after 16 pages: 30 documents cause all of them.
CONSTANTS = {
    "minwise.index.writer.FLUSH_DOCUMENTS": 8,
    "minwise.index.writer.FANOUT": 2,
    "minwise.index.store.CHECKPOINT_PAGES": 16,
}
# A text whose pages are a large part of the database, so that a compaction releases them.
LARGE_WORDS = 3000
# The id of the document that proves that an index is writable.
PROBE = "probe"


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        name: The name of the step.
        operation: The operation on the index; None if the step creates, closes or opens it.
    """

    name: str
    operation: Operation | None = None

    def run(self, index: mw.Index | None, folder: Path) -> mw.Index | None:
        """Run the step, and return the index that is open afterwards."""
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
        steps: The steps, in order.
        states: The content of the index before each step, and after the last one.
        names: Every id that the index ever holds.
    """

    steps: list[Step]
    states: list[Model]
    names: list[str]


class _ScriptBuilder:
    """Builds the steps, and the states between them."""

    def __init__(self) -> None:
        self._draw = random.Random(20)
        self._model = Model()
        self.steps: list[Step] = []
        self.states = [self._model.copy()]
        self.names: list[str] = []

    def step(self, name: str, operation: Operation | None = None) -> None:
        """Append a step."""
        if operation is not None:
            self._model.apply(operation)
        self.steps.append(Step(name, operation))
        self.states.append(self._model.copy())

    def add(self, name: str, count: int, kind: str = "add", words: int = 0) -> None:
        """Append a step that adds documents; with ``add_unique`` the last has the text of the first."""
        ids = [self._model.new_id() for _ in range(count)]
        texts = [" ".join(new_text(self._draw) for _ in range(1 + words // 40)) for _ in ids]
        if kind == "add_unique":
            texts[-1] = texts[0]
        self.names += map(str, ids)
        metadata = [metadata_of(self._draw) for _ in ids]
        self.step(name, Operation(kind=kind, ids=ids, texts=texts, metadata=metadata))

    def expire(self, name: str, count: int) -> None:
        """Append steps that add documents of a rank that no other has, give them a segment, and expire them."""
        ids = [self._model.new_id() for _ in range(count)]
        self.names += map(str, ids)
        metadata: list[dict[str, Any] | None] = [{"rank": 0}] * count
        texts = [new_text(self._draw) for _ in ids]
        self.step(f"add to {name}", Operation(kind="add", ids=ids, texts=texts, metadata=metadata))
        self.step(f"flush to {name}", Operation(kind="flush"))
        self.step(name, Operation(kind="expire", before=1))

    def remove(self, name: str, *positions: int) -> None:
        """Append a step that removes the documents at these positions."""
        self.step(
            name,
            Operation(kind="remove", ids=[list(self._model.documents.values())[position].id for position in positions]),
        )

    def replace(self, name: str, *positions: int) -> None:
        """Append a step that replaces the documents at these positions by near-duplicates."""
        chosen = [list(self._model.documents.values())[position] for position in positions]
        texts = [changed(self._draw, document.text) for document in chosen]
        metadata = [metadata_of(self._draw) for _ in chosen]
        ids = [document.id for document in chosen]
        self.step(name, Operation(kind="replace", ids=ids, texts=texts, metadata=metadata))


@cache
def script() -> Script:
    """Return the script, which is the same in every process."""
    builder = _ScriptBuilder()
    builder.step("create")
    builder.add("add", 1)
    builder.add("add another", 1)
    builder.add("add unique", 3, "add_unique")
    builder.add("add and flush", 6)
    builder.remove("remove", 1, 4)
    builder.replace("replace", 0, 5)
    builder.add("add large", 1, words=LARGE_WORDS)
    builder.add("add, flush and merge", 6)
    builder.add("add more", 3)
    builder.step("flush", Operation(kind="flush"))
    builder.step("close")
    builder.step("open")
    builder.add("add after opening", 2)
    builder.remove("remove large", 2, 8, 9)
    builder.step("compact", Operation(kind="compact"))
    builder.step("backup", Operation(kind="backup"))
    builder.expire("expire", 3)
    builder.add("add after backup", 1)
    builder.step("close")
    return Script(builder.steps, builder.states, builder.names)


def matching_state(index: mw.Index, allowed: dict[str, Model], names: list[str]) -> str:
    """Return the label of the state that equals the content of an index; AssertionError if none does."""
    found = {}
    for label, model in allowed.items():
        found[label] = differences(index, model, [*names, PROBE])
        if not found[label]:
            return label
    raise AssertionError(
        f"in none of the allowed states: { {label: problems[:4] for label, problems in found.items()} }"
    )


def prove_writable(index: mw.Index) -> None:
    """Add a document, find it, and remove it."""
    text = "this document was added when everything was over and is found again at once"
    assert index.add([PROBE], [text]).added == 1
    assert [hit.id for hit in index.query(text)] == [PROBE]
    assert index.get(PROBE).text == text
    index.remove([PROBE])
    assert PROBE not in index
