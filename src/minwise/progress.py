"""Progress reporting and timing of long operations.

A ``progress`` argument is True for progress bars, False or None for nothing, a function that is called with
``(stage, done, total, unit)``, or a :class:`Progress`. An operation calls :meth:`Progress.stage` once per stage and
then reports on the :class:`Stage` that it returns. :class:`NullProgress` ignores every event; subclass it to handle
only some of them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timezone
from typing import Protocol

__all__ = [
    "CallbackProgress",
    "NullProgress",
    "Progress",
    "ProgressCallback",
    "ProgressSetting",
    "Stage",
    "Stopwatch",
]

# Is called with the name of a stage, the units done, the units of the stage or None if unknown, and the unit.
ProgressCallback = Callable[[str, int, int | None, str], None]


class Stage(Protocol):
    """A running stage. All amounts are in the unit that was passed to :meth:`Progress.stage`."""

    def advance(self, amount: int) -> None:
        """Record that ``amount`` more units are done."""

    def advance_to(self, amount: int) -> None:
        """Record that ``amount`` units are done in total."""


class Progress(Protocol):
    """Receiver of progress events."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """Start a stage, which ends when the returned context manager exits.

        Args:
            name: Name of the stage, such as ``"verify"``.
            total: Units of work of the stage; None if unknown.
            unit: Plural noun of what is counted, such as ``"documents"``.
            done: Units that an earlier, interrupted run completed.
        """


class NullProgress:
    """Progress receiver that ignores every event."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """Return a stage that ignores every event."""
        return nullcontext(self)

    def advance(self, amount: int) -> None:
        """Do nothing."""

    def advance_to(self, amount: int) -> None:
        """Do nothing."""


class CallbackProgress:
    """Progress receiver that calls a function at the start of every stage and after every advance.

    An exception of the function ends the operation.
    """

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> "Iterator[_CallbackStage]":
        """Report the start of a stage; see :meth:`Progress.stage`."""
        stage = _CallbackStage(lambda amount: self._callback(name, amount, total, unit))
        stage.advance_to(done)
        yield stage


class _CallbackStage:
    """Stage that reports its amount; may be advanced by several threads."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report, self._done, self._lock = report, 0, threading.Lock()

    def advance(self, amount: int) -> None:
        """Add an amount and report the sum."""
        with self._lock:
            self._done += amount
            self._report(self._done)

    def advance_to(self, amount: int) -> None:
        """Report an amount."""
        with self._lock:
            self._done = amount
            self._report(amount)


# Values of a ``progress`` argument.
ProgressSetting = bool | Progress | ProgressCallback | None


class Stopwatch:
    """Timer of a run and of its stages; forwards progress events to another receiver.

    Attributes:
        started: Start time of the run, in UTC.
        stages: Name and duration in seconds of every completed stage, in order.
    """

    def __init__(self, progress: Progress) -> None:
        self.started = datetime.now(timezone.utc)
        self.stages: list[tuple[str, float]] = []
        self._progress = progress
        self._elapsed_before, self._resumed_at = 0.0, time.monotonic()
        self._stopped_at: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the start, not counting the time while the stopwatch was stopped."""
        now = time.monotonic() if self._stopped_at is None else self._stopped_at
        return self._elapsed_before + now - self._resumed_at

    def stop(self) -> None:
        """Stop the clock."""
        self._stopped_at = time.monotonic()

    def resume(self) -> "Stopwatch":
        """Return a running stopwatch that continues from here; this one does not change."""
        other = Stopwatch(self._progress)
        other.started, other.stages, other._elapsed_before = self.started, [*self.stages], self.seconds
        return other

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Stage]:
        """Time a stage and report it; see :meth:`Progress.stage`."""
        with self.timed(name), self._progress.stage(name, total, unit, done=done) as stage:
            yield stage

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a stage without reporting it, for stages too short to be displayed."""
        began = time.monotonic()
        yield
        self.stages.append((name, time.monotonic() - began))
