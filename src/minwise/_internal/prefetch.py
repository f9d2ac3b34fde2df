"""Iterator that reads ahead in a background thread."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["prefetch"]

Item = TypeVar("Item")
# Interval at which a waiting thread checks whether the other one has stopped.
POLL_SECONDS = 0.1


def prefetch(items: Iterable[Item], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the items in order while a thread produces up to ``depth`` of them in advance.

    An exception of ``items`` is raised at the position where direct iteration would raise it. Closing the iterator
    stops the thread and waits for it.
    """
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
            yield item  # type: ignore[misc] # an entry without an error holds an item
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
        except BaseException as error:  # every exception must reach the caller's thread
            entry = None, error
        while not stopped.is_set() and not _put(queue, entry):
            pass
        if entry[1] is not None:
            return


def _put(
    queue: "Queue[tuple[Item | None, BaseException | None]]", entry: tuple[Item | None, BaseException | None]
) -> bool:
    """Return whether the entry was queued before the poll interval passed."""
    try:
        queue.put(entry, timeout=POLL_SECONDS)
    except Full:
        return False
    return True
