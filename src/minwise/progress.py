"""Progress: what long work tells those who watch it, and how long it took."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timezone
from typing import Protocol

__all__ = ["Progress", "Silence", "Stage", "Stopwatch"]


class Stage(Protocol):
    """A stage that is under way."""

    def advance(self, amount: int) -> None:
        """So much more is done."""

    def reach(self, amount: int) -> None:
        """So much is done by now."""


class Progress(Protocol):
    """Whoever watches."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """A stage begins: ``total`` of ``unit`` are to be done, of which an earlier run did ``done``."""


class Silence:
    """Nobody watches."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """A stage of which nobody hears."""
        return nullcontext(self)

    def advance(self, amount: int) -> None:
        """Nobody hears of it."""

    def reach(self, amount: int) -> None:
        """Nobody hears of it."""


class Stopwatch:
    """Passes stages on to whoever watches, and notes how long each took.

    Attributes:
        started: When the run began.
        stages: Name and seconds of every stage that is over, in order.
    """

    def __init__(self, watcher: Progress) -> None:
        self.started = datetime.now(timezone.utc)
        self.stages: list[tuple[str, float]] = []
        self._watcher = watcher
        self._before, self._since = 0.0, time.monotonic()
        self._stopped: float | None = None

    @property
    def seconds(self) -> float:
        """How long the run has taken by now; while it is stopped, no time passes."""
        return self._before + (time.monotonic() if self._stopped is None else self._stopped) - self._since

    def stop(self) -> None:
        """Nothing is done any more."""
        self._stopped = time.monotonic()

    def go_on(self) -> "Stopwatch":
        """A stopwatch that goes on from here; this one does not hear of it."""
        other = Stopwatch(self._watcher)
        other.started, other.stages, other._before = self.started, [*self.stages], self.seconds
        return other

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Stage]:
        """A stage that the watcher sees."""
        with self.unseen(name), self._watcher.stage(name, total, unit, done=done) as stage:
            yield stage

    @contextmanager
    def unseen(self, name: str) -> Iterator[None]:
        """A stage that is too short to be shown."""
        began = time.monotonic()
        yield
        self.stages.append((name, time.monotonic() - began))
