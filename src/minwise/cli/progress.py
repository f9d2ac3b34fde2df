"""A progress bar per stage on a terminal, nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

import minwise as mw

__all__ = ["Bars", "watch"]


class _Rate(ProgressColumn):
    """How much is done in a second."""

    def render(self, task: Task) -> Text:
        """The rate, once there is one."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} {task.fields['unit']}/s", style="dim")


class _Stage:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def advance(self, amount: int) -> None:
        """Moves the bar on."""
        self._bars.advance(self._task, amount)

    def reach(self, amount: int) -> None:
        """Moves the bar to a place."""
        self._bars.update(self._task, completed=amount)


class Bars:
    """Bars on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[_Stage]:
        """A bar for a stage."""
        columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description:<18}"), BarColumn(bar_width=30))
        rest = (MofNCompleteColumn(), _Rate(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, *rest, console=self._console) as bars:
            task = bars.add_task(name, total=total, completed=done, unit=unit)
            yield _Stage(bars, task)
            if total is None:
                bars.update(task, total=bars.tasks[0].completed or 1, completed=bars.tasks[0].completed or 1)


def watch(*, quiet: bool) -> mw.Progress:
    """Whoever shows progress: bars if standard error is a terminal and nobody asked for quiet."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return mw.Silence()
    return Bars(Console(file=sys.stderr, stderr=True))
