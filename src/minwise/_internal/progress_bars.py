"""Progress bars, for terminals and for notebooks."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from minwise._internal.html import escape
from minwise.progress import Progress

__all__ = ["NotebookBars", "ProgressBars", "visible_progress"]

# Columns of a terminal that fit a bar of full width and the rate beside the counts and the times.
WIDE_TERMINAL = 120
# Seconds between two updates of a bar in a notebook; every update is a message to the browser.
NOTEBOOK_INTERVAL = 0.25


def visible_progress() -> Progress:
    """Return bars in a notebook, where there is one, and otherwise on standard error."""
    console = Console(stderr=True)
    return NotebookBars() if console.is_jupyter else ProgressBars(console)


class _Counts(ProgressColumn):
    """Column of the units done and of all units."""

    def render(self, task: Task) -> Text:
        """Return both numbers, or the first one if the second is unknown."""
        return Text(_counts(int(task.completed), None if task.total is None else int(task.total)))


class _Rate(ProgressColumn):
    """Column of the rate per second."""

    def render(self, task: Task) -> Text:
        """Return the rate once it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} {task.fields['unit']}/s", style="dim")


class _Times(ProgressColumn):
    """Column of the time since the start of a stage, and of the estimated time to its end."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Return both times; a finished stage has only the first."""
        elapsed = task.finished_time if task.finished else task.elapsed
        return Text(_times(elapsed or 0.0, None if task.finished else task.time_remaining), style="dim")


def _counts(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,}/{total:,}"


def _times(elapsed: float, remaining: float | None) -> str:
    """Return labelled times.

    >>> _times(75, 9.5)
    'elapsed 1:15, remaining 0:10'
    """
    end = "" if remaining is None else f", remaining {_clock(remaining)}"
    return f"elapsed {_clock(elapsed)}{end}"


def _clock(seconds: float) -> str:
    """Return minutes and seconds, after hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _BarStage:
    """Stage with a progress bar."""

    def __init__(self, bars: RichProgress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def advance(self, amount: int) -> None:
        """Advance the bar."""
        self._bars.advance(self._task, amount)

    def advance_to(self, amount: int) -> None:
        """Move the bar to a position."""
        self._bars.update(self._task, completed=amount)


class ProgressBars:
    """Progress receiver that shows bars on a terminal; elsewhere a line at the end of each stage."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[_BarStage]:
        """Show a bar while a stage runs."""
        with RichProgress(*self._columns(), console=self._console) as bars:
            task = bars.add_task(name, total=total, completed=done, unit=unit)
            yield _BarStage(bars, task)
            if total is None:
                bars.update(task, total=bars.tasks[0].completed or 1, completed=bars.tasks[0].completed or 1)

    def _columns(self) -> Iterator[ProgressColumn]:
        wide = self._console.width >= WIDE_TERMINAL
        yield SpinnerColumn(finished_text="✓")
        yield TextColumn("{task.description:<18}")
        yield BarColumn(bar_width=30 if wide else 8)
        yield _Counts()
        if wide:
            yield _Rate()
        yield _Times()


class NotebookBars:
    """Progress receiver that shows bars below a cell of a notebook.

    It needs only IPython; rich would need ipywidgets, which the kernel and the page must both have.
    """

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> "Iterator[_NotebookStage]":
        """Show a bar while a stage runs."""
        stage = _NotebookStage(name, total, unit, done)
        try:
            yield stage
        finally:
            stage.show()


class _NotebookStage:
    """Stage with a bar in a notebook; may be advanced by several threads."""

    def __init__(self, name: str, total: int | None, unit: str, done: int) -> None:
        display: Any = import_module("IPython.display").display  # here, because only a notebook has it

        self._name, self._total, self._unit, self._first, self._done = name, total, unit, done, done
        self._started, self._shown, self._lock = time.monotonic(), time.monotonic(), threading.Lock()
        self._handle: Any = display(self, display_id=True)

    def advance(self, amount: int) -> None:
        """Advance the bar."""
        with self._lock:
            self._move(self._done + amount)

    def advance_to(self, amount: int) -> None:
        """Move the bar to a position."""
        with self._lock:
            self._move(amount)

    def _move(self, amount: int) -> None:
        self._done = amount
        if time.monotonic() - self._shown >= NOTEBOOK_INTERVAL:
            self.show()

    def show(self) -> None:
        """Draw the bar again."""
        self._shown = time.monotonic()
        self._handle.update(self)

    def __repr__(self) -> str:
        elapsed = time.monotonic() - self._started
        return f"{self._name}: {_counts(self._done, self._total)} {self._unit}, {_times(elapsed, self._left(elapsed))}"

    def _repr_html_(self) -> str:
        """Return the bar as HTML."""
        size = "" if self._total is None else f' max="{max(self._total, 1)}" value="{min(self._done, self._total)}"'
        bar = f'<progress style="width:16em;vertical-align:middle"{size}></progress>'
        return f'<div style="font-variant-numeric:tabular-nums">{bar} {escape(repr(self))}</div>'

    def _left(self, elapsed: float) -> float | None:
        """Return the seconds to the end at the rate so far; None if unknown or finished."""
        moved = self._done - self._first
        if self._total is None or not moved or self._done >= self._total:
            return None
        return elapsed / moved * (self._total - self._done)
