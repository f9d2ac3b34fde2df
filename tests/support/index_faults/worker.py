"""Child process that runs operations on an index and is killed or interrupted meanwhile.

It reports the start of each operation and its result, so that the parent knows what it has acknowledged. A signal from
outside arrives at any moment, most often in the long calls. The child can therefore also send itself a signal at a
given call of a Python or C function, which makes every point between two calls equally likely.
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
from support.index_faults.children import Channel
from support.index_faults.workload import Operation, set_constants

__all__ = ["AFTER_INTERRUPT", "CLOSING", "OPENING", "STAGES", "work"]

# Actions other than operations, and stages within operations, by name of the writer method.
OPENING, CLOSING, AFTER_INTERRUPT = "open", "close", "after_interrupt"
STAGES = {"segment": "_flush", "merge": "_merge"}


def work(channel: Channel) -> None:
    """Run all operations; after an interrupt, run only the operation for that case."""
    job = channel.receive()
    set_constants(job["constants"])
    worker = Worker(channel, **job["aim"])
    worker.watch_stages()
    with worker.reporting(OPENING, OPENING):
        index = mw.Index.open(job["path"], "w")
    try:
        for number, parts in enumerate(job["operations"]):
            operation = Operation(**parts)
            with worker.reporting(number, operation.kind) as report, worker.interruptible():
                report["result"] = operation.run(index)
    except KeyboardInterrupt:
        with worker.reporting(AFTER_INTERRUPT, AFTER_INTERRUPT) as report:
            report["result"] = Operation(**job["after_interrupt"]).run(index)
    with worker.reporting(CLOSING, CLOSING):
        index.close()


class Worker:
    """Reports progress, and sends its own process a signal at a given call.

    Attributes:
        counting: Whether calls are counted, which makes everything slower.
        target: The kind of operation or stage in which calls are counted, at its first occurrence; "" for none.
        call: The number of the call in the target at which the signal is sent.
        signal_number: The signal.
    """

    def __init__(self, channel: Channel, *, counting: bool, target: str, call: int, signal_number: int) -> None:
        self.channel = channel
        self.counting, self.target, self.call, self.signal_number = counting, target, call, signal_number
        self._calls, self._last_call = 0, -1
        self._interruptible = False
        signal.signal(signal.SIGINT, self._interrupt)

    @contextmanager
    def reporting(self, what: int | str, kind: str) -> Iterator[dict[str, Any]]:
        """Report the start of an action, and its end with the content of the yielded report."""
        report: dict[str, Any] = {}
        self.channel.send({"begins": what})
        first, started = self._calls, time.monotonic()
        if self.counting:
            if kind == self.target and self._last_call < 0:
                self._last_call = first + self.call
            sys.setprofile(self._count)
        yield report
        report |= {"seconds": time.monotonic() - started, "calls": self._calls - first}
        self.channel.send({"done": what, **report})

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self._calls += 1
            if self._calls == self._last_call:
                os.kill(os.getpid(), self.signal_number)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let SIGINT raise KeyboardInterrupt in the block; elsewhere it is ignored."""
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
        """Report the stages within operations too."""
        for stage, method in STAGES.items():
            whole = getattr(Writer, method)

            def in_stage(*arguments: Any, stage: str = stage, whole: Callable[..., None] = whole) -> None:  # noqa: ANN401
                with self.reporting(stage, stage):
                    whole(*arguments)

            setattr(Writer, method, in_stage)
