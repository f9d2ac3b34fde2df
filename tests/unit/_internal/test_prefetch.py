"""Prefetching: same items in the same order, exceptions at their position, no thread left running."""

import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from minwise._internal.prefetch import prefetch


def threads() -> int:
    """Return the number of running prefetch threads."""
    return sum(thread.name == "minwise-read" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert threads() == 0


@pytest.mark.parametrize("depth", [1, 2, 100])
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_items_keep_their_order(count: int, depth: int) -> None:
    """None and False are ordinary items."""
    items = [None, False, *range(count)][-count:] if count else []
    assert list(prefetch(items, depth)) == items


def test_another_thread_produces_items_in_advance() -> None:
    """At most ``depth`` items are queued, and one more is held by the thread."""
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
    assert len(made) == 4  # one was taken, two are queued, one is held by the thread
    assert set(made) == {"minwise-read"}
    assert list(found) == list(range(1, 10))


class OwnError(Exception):
    """Exception of this test."""


@pytest.mark.parametrize("error", [OwnError("why"), ValueError("why"), KeyboardInterrupt("why"), SystemExit("why")])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_an_exception_is_raised_after_the_items_before_it(error: BaseException, after: int) -> None:
    """The exception object is the same, and no item follows."""

    def items() -> Iterator[int]:
        yield from range(after)
        raise error

    found = prefetch(items())
    assert list(islice(found, after)) == list(range(after))
    with pytest.raises(type(error)) as caught:
        next(found)
    assert caught.value is error
    assert list(found) == []


def test_closing_the_iterator_stops_the_thread() -> None:
    """Also for an endless source while the thread waits for space in the queue."""
    count = 0

    def items() -> Iterator[int]:
        nonlocal count
        while True:
            count += 1
            yield count

    found = prefetch(items())
    assert [next(found), next(found)] == [1, 2]
    assert threads() == 1
    found.close()
    assert threads() == 0
    made = count
    time.sleep(0.05)
    assert count == made <= 6


def test_an_exception_in_the_consumer_stops_the_thread() -> None:
    def consume() -> None:
        for item in prefetch(range(10**9)):
            if item == 3:
                raise OwnError

    with pytest.raises(OwnError):
        consume()
    assert threads() == 0


def test_no_thread_starts_before_the_first_item_is_requested() -> None:
    found = prefetch(iter([1, 2]))
    assert threads() == 0
    found.close()


def test_large_items_are_produced_one_by_one() -> None:
    """An item of more than ``max_bytes`` is finished before the next one is produced; small ones are not waited for."""
    produced: list[int] = []

    def items() -> Iterator[int]:
        for number in range(6):
            produced.append(number)
            yield number

    for number in prefetch(items(), size=lambda _: 10, max_bytes=9):
        time.sleep(0.02)
        assert produced == list(range(number + 1))
    produced.clear()
    small = prefetch(items(), size=lambda _: 1, max_bytes=9)
    assert next(small) == 0
    deadline = time.monotonic() + 60
    while len(produced) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(produced) >= 3
    assert list(small) == [1, 2, 3, 4, 5]
