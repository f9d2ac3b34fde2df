"""Iterator that reads ahead in a background thread."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Condition, Event, Thread
from typing import Generic, TypeVar

__all__ = ["prefetch"]

Item = TypeVar("Item")
# Interval at which a waiting thread checks whether the other one has stopped.
POLL_SECONDS = 0.1


def prefetch(
    items: Iterable[Item], depth: int = 2, *, size: Callable[[Item], int] | None = None, max_bytes: int = 0
) -> Generator[Item, None, None]:
    """Yield the items in order while a thread produces up to ``depth`` of them in advance.

    An exception of ``items`` is raised at the position where direct iteration would raise it. Closing the iterator
    stops the thread and waits for it.

    Args:
        items: The items.
        depth: Most items in advance.
        size: Returns the bytes of an item.
        max_bytes: With ``size``, nothing is produced while the items that were yielded or wait take more than this:
            large items are met one by one.
    """
    ahead: _Ahead[Item] = _Ahead(depth, max_bytes)
    thread = Thread(target=_fill, args=(iter(items), ahead, size), name="minwise-read", daemon=True)
    thread.start()
    try:
        while True:
            item, error, taken = ahead.queue.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc] # an entry without an error holds an item
            item = None  # not held while the next one is produced
            ahead.release(taken)
    finally:
        error = None  # whose traceback has this frame: the cycle would keep files open
        ahead.stopped.set()
        while thread.is_alive():
            with suppress(Empty):
                ahead.queue.get_nowait()
            thread.join(POLL_SECONDS)


class _Ahead(Generic[Item]):
    """Items in advance, and the bytes of all that the consumer has not finished."""

    def __init__(self, depth: int, max_bytes: int) -> None:
        self.queue: Queue[tuple[Item | None, BaseException | None, int]] = Queue(maxsize=depth)
        self.stopped = Event()
        self._max_bytes, self._held, self._changed = max_bytes, 0, Condition()

    def put(self, item: Item | None, error: BaseException | None, taken: int) -> None:
        """Queue an item when there is room, unless the consumer has stopped."""
        with self._changed:
            self._held += taken
        while not self.stopped.is_set():
            with suppress(Full):
                self.queue.put((item, error, taken), timeout=POLL_SECONDS)
                return

    def release(self, taken: int) -> None:
        """Handle that the consumer has finished an item."""
        if taken:
            with self._changed:
                self._held -= taken
                self._changed.notify()

    def wait(self) -> None:
        """Wait until another item may be produced."""
        with self._changed:
            while self._held > self._max_bytes and not self.stopped.is_set():
                self._changed.wait(POLL_SECONDS)


def _fill(items: Iterator[Item], ahead: "_Ahead[Item]", size: Callable[[Item], int] | None) -> None:
    while not ahead.stopped.is_set():
        ahead.wait()
        try:
            item = next(items)
        except BaseException as error:  # every exception must reach the caller's thread
            ahead.put(None, error, 0)
            return
        ahead.put(item, None, 0 if size is None else size(item))
        del item  # not held while the next one is produced
