"""Prefetch: an iterator in, the same items out, made ahead by another thread while the caller works."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["prefetch"]

Item = TypeVar("Item")
# How often a thread that waits looks whether the other is still there.
POLL_SECONDS = 0.1


def prefetch(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """Yields the items in order; at most ``depth`` of them wait. An error appears where it would have without."""
    queue: Queue[tuple[Item | None, BaseException | None]] = Queue(maxsize=depth)
    stopped = Event()
    thread = Thread(target=_fill, args=(iter(items), queue, stopped), name="minwise-read", daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc] # without an error there is an item
    finally:
        stopped.set()
        while thread.is_alive():
            with suppress(Empty):
                queue.get_nowait()
            thread.join(POLL_SECONDS)


def _fill(items: Iterator[Item], queue: "Queue[tuple[Item | None, BaseException | None]]", stopped: Event) -> None:
    while not stopped.is_set():
        entry: tuple[Item | None, BaseException | None]
        try:
            entry = next(items), None
        except BaseException as error:  # whatever it is, the caller has to hear of it
            entry = None, error
        while not stopped.is_set() and not _put(queue, entry):
            pass
        if entry[1] is not None:
            return


def _put(
    queue: "Queue[tuple[Item | None, BaseException | None]]", entry: tuple[Item | None, BaseException | None]
) -> bool:
    """Whether there was room for the entry within a while."""
    try:
        queue.put(entry, timeout=POLL_SECONDS)
    except Full:
        return False
    return True
