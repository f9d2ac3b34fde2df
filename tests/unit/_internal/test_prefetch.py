"""Prefetching: the same items in the same order, errors where they were, and no thread left behind."""

import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from minwise._internal.prefetch import prefetch


def threads() -> int:
    """How many threads of ours are alive."""
    return sum(thread.name == "minwise-read" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert threads() == 0


@pytest.mark.parametrize("depth", [1, 2, 100])
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_items_come_in_order(count: int, depth: int) -> None:
    """None, one or many; None and False are items like others."""
    items = [None, False, *range(count)][-count:] if count else []
    assert list(prefetch(items, depth)) == items


def test_items_are_made_by_another_thread_while_the_caller_works() -> None:
    """The next item is made before it is asked for; no more than ``depth`` wait, and one is in the thread's hand."""
    made: list[str] = []
    third = threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(threading.current_thread().name)
            if number == 3:
                third.set()
            yield number

    found = prefetch(items(), depth=2)
    assert next(found) == 0
    assert third.wait(10)
    time.sleep(0.05)
    assert len(made) == 4  # one was taken, two wait, one more is in the hand of the thread
    assert set(made) == {"minwise-read"}
    assert list(found) == list(range(1, 10))


class OwnError(Exception):
    """An error of this test."""


@pytest.mark.parametrize("error", [OwnError("why"), ValueError("why"), KeyboardInterrupt("why"), SystemExit("why")])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_an_error_appears_after_the_items_before_it(error: BaseException, after: int) -> None:
    """The same error, and nothing comes after it."""

    def items() -> Iterator[int]:
        yield from range(after)
        raise error

    found = prefetch(items())
    assert list(islice(found, after)) == list(range(after))
    with pytest.raises(type(error)) as caught:
        next(found)
    assert caught.value is error
    assert list(found) == []


def test_a_consumer_that_stops_early_stops_the_thread() -> None:
    """Also one that never ends and waits for room; the source is closed no later than it is forgotten."""
    count = 0

    def items() -> Iterator[int]:
        nonlocal count
        while True:
            count += 1
            yield count

    found = prefetch(items())
    assert [next(found), next(found)] == [1, 2]
    assert threads() == 1
    found.close()  # type: ignore[attr-defined] # it is a generator
    assert threads() == 0
    made = count
    time.sleep(0.05)
    assert count == made <= 6


def test_an_error_of_the_consumer_stops_the_thread() -> None:
    """And is not hidden."""

    def consume() -> None:
        for item in prefetch(range(10**9)):
            if item == 3:
                raise OwnError

    with pytest.raises(OwnError):
        consume()
    assert threads() == 0


def test_nothing_starts_before_the_first_item_is_asked_for() -> None:
    """A generator that is never used reads nothing."""
    found = prefetch(iter([1, 2]))
    assert threads() == 0
    found.close()  # type: ignore[attr-defined] # it is a generator
