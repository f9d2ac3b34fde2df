"""Ctrl-C at any call that an index makes: the operation is done or not, and whoever has the index open goes on with it.

By default at one call of a few, `make torture` at every one, before it and after it.
"""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import TORTURE
from support.index_faults.checks import deviations
from support.index_faults.children import quick_folder
from support.index_faults.workload import CONSTANTS, SETTINGS, WEIGHTS, Model, Operation, one_operation

import minwise as mw

# So many interruptions at most of one kind of operation: calls of Python and C functions and their ends.
MOST = 5000 if TORTURE else 70
# How often an index is closed, and opened again to look at everything.
REOPENED = 50
# A file that was opened when the interruption came, and that nobody has got yet, is closed by Python with a warning.
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run(action: Callable[[], object], event: int = 0) -> tuple[bool, int]:
    """Runs an action and interrupts it at an event, unless it ends before; whether it did, and the events it had."""
    seen, done = 0, False

    def note(*_: object) -> None:
        nonlocal seen
        seen += not done
        if seen == event and not done:
            raise KeyboardInterrupt

    sys.setprofile(note)
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
    """The events to interrupt of so many."""
    return range(1, events, max(1, events // MOST))


class Subject:
    """An index that is open for writing and for reading, and what it must hold.

    Attributes:
        writer: The index.
        reader: The same.
        model: What it must hold.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.model, self.draw = path, Model(), random.Random(23)
        self.writer, self.reader = mw.Index.create(path, **SETTINGS), mw.Index.open(path)
        for _ in range(6):
            self.do("add_batch")

    def do(self, kind: str, event: int = 0) -> int:
        """Does an operation, or interrupts it at an event; how many events there were."""
        operation = one_operation(self.draw, kind, self.model, self.path.parent)
        interrupted, events = run(lambda: operation.run(self.writer), event)
        self.check(operation, may_be_undone=interrupted)
        return events

    def check(self, operation: Operation, *, may_be_undone: bool) -> None:
        """An operation is done, or perhaps not; the writer says so, and the reader too."""
        after = self.model.copy()
        after.apply(operation)
        names = [str(one) for one in operation.ids]
        if may_be_undone and deviations(self.writer, after, names):
            after = self.model
        assert deviations(self.writer, after, names) == []
        assert deviations(self.reader, after, names) == []
        self.model = after

    def reopen(self) -> None:
        """Closes everything and opens it again; whatever was acknowledged is there."""
        self.close()
        self.writer, self.reader = mw.Index.open(self.path, "w"), mw.Index.open(self.path)
        assert deviations(self.writer, self.model, [*self.model.documents, *self.model.gone]) == []
        assert self.reader.verify() == []

    def close(self) -> None:
        """Lets go of the index."""
        self.reader.close()
        self.writer.close()


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    """A new index, in which little data makes many segments."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name, value)
    with quick_folder() as folder:
        subject = Subject(folder / "index.mw")
        yield subject
        subject.close()


@pytest.mark.parametrize("kind", WEIGHTS)
def test_an_operation_interrupted_anywhere(subject: Subject, kind: str) -> None:
    """It is done or not, and the next operations of the same index are."""
    for turn, event in enumerate(chosen(subject.do(kind))):
        subject.do(kind, event)
        subject.do("add")
        if turn % REOPENED == REOPENED - 1:
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
def test_a_reader_interrupted_anywhere(subject: Subject, read: str) -> None:
    """Its next question is answered with everything that was acknowledged meanwhile."""
    subject.writer.add(["first"], ["one two three four five six seven eight nine ten"])
    _, events = run(lambda: READS[read](subject.reader))
    for turn, event in enumerate(chosen(events)):
        subject.writer.add([f"more {turn}"], [f"eleven twelve thirteen fourteen fifteen sixteen {turn}"])
        run(lambda: READS[read](subject.reader), event)
        subject.writer.add([f"yet more {turn}"], [f"twelve thirteen fourteen fifteen sixteen {turn}"])
        assert f"yet more {turn}" in subject.reader
        assert len(subject.reader) == len(subject.writer)
    assert turn > 20, "it makes more calls than that"
