"""Ctrl-C at any call of an index: the operation is done or not, and the open index remains usable.

By default a sample of the calls; `make torture` interrupts before and after every one.
"""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import TORTURE
from support.index_faults.checks import differences
from support.index_faults.children import fast_folder
from support.index_faults.workload import CONSTANTS, SETTINGS, WEIGHTS, Model, Operation, draw_operation

import minwise as mw

# Maximum number of interruptions per kind of operation: calls of Python and C functions and their returns.
MAX_EVENTS = 5000 if TORTURE else 70
# Number of interruptions between full checks of a reopened index.
REOPEN_INTERVAL = 50
# A file that was opened at the interruption, before it was assigned, is closed by Python with a warning.
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run(action: Callable[[], object], event: int = 0) -> tuple[bool, int]:
    """Run an action and interrupt it at an event; return whether it was interrupted, and the number of events."""
    seen, done = 0, False

    def record(*_: object) -> None:
        nonlocal seen
        seen += not done
        if seen == event and not done:
            raise KeyboardInterrupt

    sys.setprofile(record)
    try:
        action()
        done = True
    except KeyboardInterrupt:
        return True, seen
    finally:
        done = True
        sys.setprofile(None)
    return False, seen


def chosen(events: int) -> range:
    """Return the events to interrupt."""
    return range(1, events, max(1, events // MAX_EVENTS))


class Subject:
    """An index that is open for writing and for reading.

    Attributes:
        writer: The index, open for writing.
        reader: The index, open for reading.
        model: The expected content.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.model, self.draw = path, Model(), random.Random(23)
        self.writer, self.reader = mw.Index.create(path, **SETTINGS), mw.Index.open(path)
        for _ in range(6):
            self.do("add_batch")

    def do(self, kind: str, event: int = 0) -> int:
        """Run an operation, or interrupt it at an event; return the number of events."""
        operation = draw_operation(self.draw, kind, self.model, self.path.parent)
        interrupted, events = run(lambda: operation.run(self.writer), event)
        self.check(operation, may_be_undone=interrupted)
        return events

    def check(self, operation: Operation, *, may_be_undone: bool) -> None:
        """Check that writer and reader both see the operation as done, or both as not done."""
        after = self.model.copy()
        after.apply(operation)
        names = [str(document_id) for document_id in operation.ids]
        if may_be_undone and differences(self.writer, after, names):
            after = self.model
        assert differences(self.writer, after, names) == []
        assert differences(self.reader, after, names) == []
        self.model = after

    def reopen(self) -> None:
        """Close and reopen the index, and check all acknowledged content."""
        self.close()
        self.writer, self.reader = mw.Index.open(self.path, "w"), mw.Index.open(self.path)
        assert differences(self.writer, self.model, [*self.model.documents, *self.model.removed]) == []
        assert self.reader.verify() == []

    def close(self) -> None:
        """Close writer and reader."""
        self.reader.close()
        self.writer.close()


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    """Yield a new index, in which little data creates many segments."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name, value)
    with fast_folder() as folder:
        subject = Subject(folder / "index.mw")
        yield subject
        subject.close()


@pytest.mark.parametrize("kind", WEIGHTS)
def test_operation_interrupted_at_any_call(subject: Subject, kind: str) -> None:
    """It is done or not, and the next operations on the same object succeed."""
    for turn, event in enumerate(chosen(subject.do(kind))):
        subject.do(kind, event)
        subject.do("add")
        if turn % REOPEN_INTERVAL == REOPEN_INTERVAL - 1:
            subject.reopen()
    subject.reopen()


READS: dict[str, Callable[[mw.Index], object]] = {
    "query": lambda index: index.query("one two three four five six seven eight nine ten"),
    "get": lambda index: index.get("first"),
    "contains": lambda index: "first" in index,
    "len": len,
    "verify": lambda index: index.verify(),
    "stats": lambda index: index.stats(),
}


@pytest.mark.parametrize("read", READS)
def test_reader_interrupted_at_any_call(subject: Subject, read: str) -> None:
    """The next query sees everything that was acknowledged in the meantime."""
    subject.writer.add(["first"], ["one two three four five six seven eight nine ten"])
    _, events = run(lambda: READS[read](subject.reader))
    for turn, event in enumerate(chosen(events)):
        subject.writer.add([f"more {turn}"], [f"eleven twelve thirteen fourteen fifteen sixteen {turn}"])
        run(lambda: READS[read](subject.reader), event)
        subject.writer.add([f"yet more {turn}"], [f"twelve thirteen fourteen fifteen sixteen {turn}"])
        assert f"yet more {turn}" in subject.reader
        assert len(subject.reader) == len(subject.writer)
    assert turn > 20, "too few calls"
