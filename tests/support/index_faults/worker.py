"""The child that does operations to an index and is killed or interrupted meanwhile.

It says before everything that it begins and after it what came out, so that whoever listens knows what it has
acknowledged. A signal from outside comes at any moment, most often in the long calls. So the child can also be told to
send itself one at a certain call of a Python or C function: every place between two calls is as likely as any other.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import minwise as mw
from minwise.index.writer import Writer
from support.index_faults.children import Line
from support.index_faults.workload import Operation, set_constants

__all__ = ["AFTERWARDS", "CLOSING", "OPENING", "STAGES", "work"]

# What a child does beside the operations of the stream, and what happens in the course of some.
OPENING, CLOSING, AFTERWARDS = "open", "close", "afterwards"
STAGES = {"segment": "_flush", "merge": "_merge"}


def work(line: Line) -> None:
    """Does operations until there are no more. If one is interrupted, only the one for afterwards follows."""
    job = line.receive()
    set_constants(job["constants"])
    worker = Worker(line, **job["aim"])
    worker.watch_stages()
    with worker.told(OPENING, OPENING):
        index = mw.Index.open(job["path"], "w")
    try:
        for number, parts in enumerate(job["operations"]):
            operation = Operation(**parts)
            with worker.told(number, operation.kind) as report, worker.interruptible():
                report["result"] = operation.run(index)
    except KeyboardInterrupt:
        with worker.told(AFTERWARDS, AFTERWARDS) as report:
            report["result"] = Operation(**job["afterwards"]).run(index)
    with worker.told(CLOSING, CLOSING):
        index.close()


class Worker:
    """Tells what happens, and sends its own process a signal at a certain call.

    Attributes:
        counting: Whether calls are counted, which makes everything slower.
        target: The kind of operation or stage in which calls are counted, the first that there is; "" for none.
        call: At which call in it the signal comes.
        blow: The signal.
    """

    def __init__(self, line: Line, *, counting: bool, target: str, call: int, blow: int) -> None:
        self.line = line
        self.counting, self.target, self.call, self.blow = counting, target, call, blow
        self._calls, self._last_call = 0, -1
        self._interruptible = False
        signal.signal(signal.SIGINT, self._interrupt)

    @contextmanager
    def told(self, what: int | str, kind: str) -> Iterator[dict[str, Any]]:
        """Says before something that it begins, and after it that it is done, with what was put into the report."""
        report: dict[str, Any] = {}
        self.line.send({"begins": what})
        first, started = self._calls, time.monotonic()
        if self.counting:
            if kind == self.target and self._last_call < 0:
                self._last_call = first + self.call
            sys.setprofile(self._count)
        yield report
        report |= {"seconds": time.monotonic() - started, "calls": self._calls - first}
        self.line.send({"done": what, **report})

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self._calls += 1
            if self._calls == self._last_call:
                os.kill(os.getpid(), self.blow)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A part of the program in which SIGINT raises KeyboardInterrupt; elsewhere it does nothing."""
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    def _interrupt(self, *_: object) -> None:
        if self._interruptible:
            self._interruptible = False
            raise KeyboardInterrupt

    def watch_stages(self) -> None:
        """Has the stages that operations go through by themselves told too."""
        for stage, method in STAGES.items():
            whole = getattr(Writer, method)

            def in_stage(*arguments: Any, stage: str = stage, whole: Callable[..., None] = whole) -> None:  # noqa: ANN401
                with self.told(stage, stage):
                    whole(*arguments)

            setattr(Writer, method, in_stage)
