"""Index tasks: each task of a batch has the result it would have alone."""

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
    """Create an index with a dozen similar texts."""
    with mw.Index.create(tmp_path / "news.mw", threshold=0.5, shingle="word:1", store_text=True) as made:
        texts = [f"one two three four five six number{number}" for number in range(12)]
        made.add(range(12), texts, [{"colour": COLOURS[number % 3]} for number in range(12)])
        yield made


class Watched:
    """An index that records its calls."""

    def __init__(self, index: mw.Index) -> None:
        self._index, self.calls = index, list[tuple[str, int]]()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of an index
        found = getattr(self._index, name)
        if name not in ("query_many", "add_each", "remove"):
            return found

        def call(some: Sequence[Any], *others: Any, **options: Any) -> Any:  # noqa: ANN401 - arguments of the index
            self.calls.append((name, len(some)))
            return found(some, *others, **options)

        return call

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self._index)


def watched(index: mw.Index) -> Any:  # noqa: ANN401 - used as an index
    """Return an index that records its calls."""
    return Watched(index)


def add(*ids: str | int, text: str = "text of {}", unique: bool = False, policy: str = "error") -> AddTask:
    """Return a task that adds documents, each with its own text."""
    return AddTask([SubmittedDocument(one, text.format(one), None) for one in ids], unique, policy)


# Reading


def test_queries_with_equal_parameters_share_a_call(index: mw.Index) -> None:
    """Each has the result it would have alone."""
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


def test_a_failing_query_does_not_affect_other_tasks(index: mw.Index) -> None:
    """Except for queries with equal parameters."""

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
    """Consecutive changes of one kind share a call."""
    asked = watched(index)
    added, more, gone, not_there, again, last = BatchWriter(asked)(
        [add("a"), add("b", "c"), RemoveTask(["a", "b", 0]), RemoveTask(["a", "z"]), add("a"), RemoveTask([1])]
    )
    assert [decision.fate for decision in (*added, *more, *again)] == ["added"] * 4
    assert (gone, not_there, last) == ({"a", "b", "0"}, set(), {"1"})
    assert asked.calls == [("add_each", 3), ("remove", 3), ("add_each", 1), ("remove", 1)]
    assert ("a" in index, "b" in index, "c" in index, 0 in index, 1 in index) == (True, False, True, False, False)


def test_additions_with_different_options_share_a_call(index: mw.Index) -> None:
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


def test_concurrent_removals_of_an_id_count_once(index: mw.Index) -> None:
    """Also as a number and as its digits."""
    assert BatchWriter(index)([RemoveTask([5, "6"]), RemoveTask(["5", 6, 7]), RemoveTask([7])]) == [
        {"5", "6"},
        {"7"},
        set(),
    ]
    assert len(index) == 9


def test_large_batches_are_split_between_requests(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never within a request; the results keep their order."""
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


def test_an_invalid_change_does_not_affect_the_others(index: mw.Index) -> None:
    """And no change is made twice."""
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
    """An index whose changes fail while an error is set."""

    error: Exception | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of an index
        if name in ("add_each", "remove") and self.error is not None:
            raise self.error
        return super().__getattr__(name)


def test_a_failure_is_remembered_until_a_change_succeeds(index: mw.Index) -> None:
    """Neither a full disk nor an invalid request is such a failure, nor do they end one."""
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


@pytest.mark.parametrize("task", [RemoveTask(["missing"]), RemoveTask([])])
def test_a_removal_of_nothing_is_no_success(index: mw.Index, task: RemoveTask) -> None:
    """It writes nothing, so it does not show that changes are possible again."""
    failing: Any = Failing(index)
    writing = BatchWriter(failing)
    failing.error = FormatError("damaged")
    writing([add("a")])
    failing.error = None
    writing([task])
    assert writing.failure is not None
