"""State of one call of the command: what it logs, and how to continue it."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from minwise._internal.formatting import plural
from minwise._internal.progress_bars import ProgressBars
from minwise.progress import CallbackProgress, NullProgress, Progress, Stage

__all__ = ["Session", "StageLog", "current_session"]


@dataclass
class Session:
    """State of one call of the command.

    Attributes:
        as_json: Print errors as JSON.
        quiet: Log nothing.
        verbose: Log the start and the end of every stage, also on a terminal and with ``--json``.
        log_format: Format of log lines, ``text`` or ``json``; None if not given.
        settings_file: Settings file that was read; None if there is none.
        continuation: How to continue after an interruption; empty if there is nothing to say.
    """

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    log_format: str | None = None
    settings_file: str | None = None
    continuation: str = ""

    def log(self, text: str, **event: Any) -> None:  # noqa: ANN401 - any JSON value
        """Print a line on standard error: the text, or the event as a JSON object.

        If the reader of standard error is gone, this and all later lines are dropped: a run does not depend on its log.
        """
        line = json.dumps(event, ensure_ascii=False) if self.log_format == "json" else f"minwise: {text}"
        try:
            click.echo(line, err=True)
        except OSError:
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end

    def receiver(self, *, quiet: bool) -> Progress:
        """Return the receiver of progress events: log lines, bars on a terminal, or nothing if quiet."""
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        if self.verbose or (not quiet and (self.log_format or not on_terminal)):
            return StageLog(self)
        return NullProgress() if quiet else ProgressBars(Console(file=sys.stderr, stderr=True))


def current_session() -> Session:
    """Return the state of the running command; a new one outside of a command."""
    context = click.get_current_context(silent=True)
    return Session() if context is None else context.ensure_object(Session)


class StageLog:
    """Progress receiver that logs a line for every stage."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Stage]:
        """Log the end of a stage, with its count and seconds; if verbose, its start, too."""
        if self._session.verbose:
            planned = "" if total is None else f", {plural(total, unit.removesuffix('s'))}"
            self._session.log(f"{name}: started{planned}", event="start", stage=name, total=total, unit=unit)
        seen, began = {"count": done}, time.monotonic()
        counter = CallbackProgress(lambda _, count, *__: seen.update(count=count))
        with counter.stage(name, total, unit, done=done) as stage:
            yield stage
        is_known = total is not None or seen["count"] > 0
        self._log_end(name, seen["count"] if is_known else None, unit, time.monotonic() - began)

    def _log_end(self, name: str, count: int | None, unit: str, seconds: float) -> None:
        counted = "" if count is None else f"{plural(count, unit.removesuffix('s'))} in "
        event = {"event": "stage", "stage": name, "count": count, "unit": unit, "seconds": round(seconds, 3)}
        self._session.log(f"{name}: {counted}{seconds:.1f} s", **event)
