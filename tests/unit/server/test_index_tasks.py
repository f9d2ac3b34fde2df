"""Work of the desks: whatever comes together, each gets what it would have got alone."""

import errno
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import minwise as mw
from minwise.errors import FormatError, InputError
from minwise.server import index_tasks as module
from minwise.server.index_tasks import (
    MAX_TRANSACTION_DOCUMENTS,
    AddTask,
    BatchReader,
    BatchWriter,
    HitDetail,
    IndexCall,
    QueryTask,
    RemoveTask,
    SubmittedDocument,
)

COLOURS = ("red", "green", "blue")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[mw.Index]:
    """An index that stores texts, a dozen of which are like each other."""
    with mw.Index.create(tmp_path / "news.mw", threshold=0.5, shingle="word:1", store="text") as made:
        texts = [f"one two three four five six number{number}" for number in range(12)]
        made.add(range(12), texts, [{"colour": COLOURS[number % 3]} for number in range(12)])
        yield made


class Watched:
    """An index that notes how it is called."""

    def __init__(self, index: mw.Index) -> None:
        self._index, self.calls = index, list[tuple[str, int]]()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the index has
        found = getattr(self._index, name)
        if name not in ("query_many", "add_each", "remove"):
            return found

        def call(some: Sequence[Any], *others: Any, **options: Any) -> Any:  # noqa: ANN401 - as the index takes them
            self.calls.append((name, len(some)))
            return found(some, *others, **options)

        return call

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self._index)


def watched(index: mw.Index) -> Any:  # noqa: ANN401 - it stands for an index
    """An index that notes how it is called."""
    return Watched(index)


def add(*ids: str | int, text: str = "text of {}", unique: bool = False, policy: str = "error") -> AddTask:
    """Documents to be added, each with a text of its own."""
    return AddTask([SubmittedDocument(one, text.format(one), None) for one in ids], unique, policy)


# Reading


def test_queries_with_different_wishes_in_one_batch(index: mw.Index) -> None:
    """Each is answered as if it were alone; those with the same wishes are asked in one call."""
    details: tuple[HitDetail, ...] = ("bare", "metadata", "passages")
    wheres: tuple[dict[str, Any] | None, ...] = (None, {}, {"colour": "red"}, {"colour": "green"})
    queries = [
        QueryTask(f"one two three four five six number{number}", threshold, top, where, detail)
        for number, (threshold, top, where, detail) in enumerate(product((None, 0.8), (1, 5), wheres, details))
    ]
    queries += queries[::-1]
    asked = watched(index)
    together = BatchReader(asked)(queries)
    assert together == [BatchReader(index)([query])[0] for query in queries]
    assert [size for _, size in asked.calls] == [2] * (len(queries) // 2)
    assert {len(found.hits) for found in together} >= {1, 4, 5}


def test_a_query_that_can_not_be_answered_fails_alone(index: mw.Index) -> None:
    """And with it those with the same wishes; everything else that came with it is answered."""

    def bug(_: mw.Index) -> object:
        raise ZeroDivisionError

    tasks: list[QueryTask | IndexCall] = [
        QueryTask("one two", 0.1, 5, None, "bare"),
        bug,
        len,
        QueryTask("one two three four five six", None, 5, None, "bare"),
        QueryTask("one two", 0.1, 5, None, "bare"),
    ]
    refused, failed, count, found, too = BatchReader(index)(tasks)
    assert isinstance(refused, mw.MinwiseError)
    assert isinstance(too, mw.MinwiseError)
    assert isinstance(failed, ZeroDivisionError)
    assert (count, len(found.hits)) == (12, 5)


# Writing


def test_runs_of_changes_keep_their_order(index: mw.Index) -> None:
    """What was sent first is done first; what stands beside its like goes in one call."""
    asked = watched(index)
    added, more, gone, not_there, again, last = BatchWriter(asked)(
        [add("a"), add("b", "c"), RemoveTask(["a", "b", 0]), RemoveTask(["a", "z"]), add("a"), RemoveTask([1])]
    )
    assert [decision.fate for decision in (*added, *more, *again)] == ["added"] * 4
    assert (gone, not_there, last) == ({"a", "b", "0"}, set(), {"1"})
    assert asked.calls == [("add_each", 3), ("remove", 3), ("add_each", 1), ("remove", 1)]
    assert ("a" in index, "b" in index, "c" in index, 0 in index, 1 in index) == (True, False, True, False, False)


def test_additions_with_different_wishes_in_one_call(index: mw.Index) -> None:
    """Each document by those of its request."""
    tasks = [
        add("n", text="one two three four five six"),
        add("u", text="one two three four five six", unique=True),
        add(3, text="another text", policy="error"),
        add(4, text="another text", policy="skip"),
        add(5, text="another text", policy="replace"),
    ]
    asked = watched(index)
    fates = [decision.fate for (decision,) in BatchWriter(asked)(tasks)]
    assert fates == ["added", "duplicate", "skipped", "skipped", "replaced"]
    assert asked.calls == [("add_each", 5)]


def test_an_id_that_several_remove_was_there_for_the_first(index: mw.Index) -> None:
    """Also if one says a number and another its digits."""
    assert BatchWriter(index)([RemoveTask([5, "6"]), RemoveTask(["5", 6, 7]), RemoveTask([7])]) == [
        {"5", "6"},
        {"7"},
        set(),
    ]
    assert len(index) == 9


def test_portions_of_many_documents(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as share a transaction go in one call, a request never in two; what comes of each keeps its place."""
    assert MAX_TRANSACTION_DOCUMENTS == 4096
    monkeypatch.setattr(module, "MAX_TRANSACTION_DOCUMENTS", 10)
    sizes = [4, 6, 1, 9, 1, 25, 3]
    names = iter(range(100, 200))
    tasks = [add(*(next(names) for _ in range(size))) for size in sizes]
    asked = watched(index)
    outcomes = BatchWriter(asked)(tasks)
    assert asked.calls == [("add_each", size) for size in (10, 10, 1, 25, 3)]
    assert [[decision.id for decision in outcome] for outcome in outcomes] == [
        [document.id for document in task.documents] for task in tasks
    ]
    asked.calls.clear()
    removals = [RemoveTask([document.id for document in task.documents]) for task in tasks]
    assert [len(gone) for gone in BatchWriter(asked)(removals)] == sizes
    assert asked.calls == [("remove", size) for size in (10, 10, 1, 25, 3)]


def test_one_that_can_not_be_done_does_not_fail_the_others(index: mw.Index) -> None:
    """Neither those before it nor those behind it, and none is done twice."""
    bad = AddTask(
        [SubmittedDocument("x", "a text", None), SubmittedDocument("y\ud800", "a text", None)],
        unique=False,
        on_duplicate_id="skip",
    )
    before, failed, after, gone = BatchWriter(index)([add("a"), bad, add("b", "c"), RemoveTask([0])])
    assert isinstance(failed, InputError)
    assert [decision.fate for decision in (*before, *after)] == ["added"] * 3
    assert gone == {"0"}
    assert ("x" in index, len(index)) == (False, 14)


class Failing(Watched):
    """An index whose changes fail as long as it is told to."""

    error: Exception | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the index has
        if name in ("add_each", "remove") and self.error is not None:
            raise self.error
        return super().__getattr__(name)


def test_a_failure_is_remembered_until_a_change_succeeds(index: mw.Index) -> None:
    """One of the index, that is: neither a full disk nor what was wrong about a request is one, nor do they end one."""
    failing: Any = Failing(index)
    writing = BatchWriter(failing)
    broken, full = FormatError("damaged"), OSError(errno.ENOSPC, "no room")
    wrong = AddTask([SubmittedDocument("y\ud800", "a text", None)], unique=False, on_duplicate_id="skip")

    def change(task: AddTask | RemoveTask, error: Exception | None) -> Exception | None:
        failing.error = error
        writing([task])
        return writing.failure

    assert change(add("a"), None) is None
    assert change(add("b"), full) is None
    assert change(add("b"), broken) is broken
    assert change(add("b"), full) is broken
    assert change(wrong, None) is broken
    assert change(RemoveTask([0]), broken) is broken
    assert change(add("b"), None) is None


@pytest.mark.parametrize("task", [RemoveTask(["nobody"]), RemoveTask([])])
def test_a_removal_of_nothing_is_no_success(index: mw.Index, task: RemoveTask) -> None:
    """It has changed nothing, so it does not show that changes can be made again."""
    failing: Any = Failing(index)
    writing = BatchWriter(failing)
    failing.error = FormatError("damaged")
    writing([add("a")])
    failing.error = None
    writing([task])
    assert writing.failure is not None
