"""Rounds in which the writer of an index is killed or interrupted, and a model of its expected content."""

import os
import random
import shutil
import signal
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import minwise as mw
from minwise.errors import FormatError
from minwise.index import OpenMode
from support.index_faults.checks import differences
from support.index_faults.children import Child, start
from support.index_faults.worker import AFTER_INTERRUPT, work
from support.index_faults.workload import CONSTANTS, SETTINGS, WEIGHTS, Model, Operation, draw_operation, operations

__all__ = ["KillRounds"]

# Maximum number of operations of a child in a round.
OPERATIONS = 30
# Documents that are checked in each round in addition to the changed ones.
SAMPLE = 40
# Files of an index other than segments.
FILES = {"index.db", "index.db-wal", "index.db-shm", "head", "writer.lock"}


@dataclass
class ChildReport:
    """The events that a child reported.

    Attributes:
        results: The results of acknowledged operations, by position in the stream.
        unfinished: The actions that had started when the child ended; a stage follows the operation that it is part of.
    """

    results: dict[int | str, Any] = field(default_factory=dict)
    unfinished: list[int | str] = field(default_factory=list)


class KillRounds:
    """An index whose writer is killed in every round.

    Attributes:
        path: The index.
        model: Its expected content.
        hits: How often each kind of operation and stage was cut short.
        reopened: The duration of each opening for writing after a kill, in seconds.
    """

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.path, self.model, self.draw = folder / "index.mw", Model(), draw
        self.hits: Counter[str] = Counter()
        self.reopened: list[float] = []
        # Moving averages per kind of action.
        self._seconds: dict[str, float] = defaultdict(float)
        self._calls: dict[str, float] = defaultdict(float)
        mw.Index.create(self.path, **SETTINGS).close()
        for counting in (True, False):
            self.round(None, None, counting=counting)

    def round(
        self, target: str | None, signal_number: signal.Signals | None = signal.SIGKILL, *, counting: bool = False
    ) -> None:
        """Run a child, send it a signal in the target, and check that the index holds everything acknowledged.

        Args:
            target: A kind of operation or stage; None for any moment.
            signal_number: The signal; None for no signal.
            counting: Whether the signal is sent at a call of the target instead of at a point in time.
        """
        stream = self.stream(target)
        after_interrupt = draw_operation(self.draw, "add_batch", self.model, self.path.parent)
        call = self.draw.randrange(1, 2 + int(self._calls[target])) if target is not None else 0
        aim = {"counting": counting, "target": target or "", "call": call, "signal_number": signal_number or 0}
        job = {"path": str(self.path), "constants": CONSTANTS, "operations": [*map(asdict, stream)]}
        child = start(work, {**job, "aim": aim, "after_interrupt": asdict(after_interrupt)})
        report = self.listen(child, stream, target, None if counting else signal_number)
        assert child.wait() in (0, -signal.SIGKILL if signal_number == signal.SIGKILL else 0)
        self.hits.update(kind_of(stream, action) for action in report.unfinished)
        touched = self.acknowledge(stream, report.results)
        pending = [stream[action] for action in report.unfinished if isinstance(action, int)]
        states = [self.model.copy() for _ in range(1 + len(pending))]
        for operation in pending:
            if operation.kind == "backup":
                self.check_unfinished_copy(Path(operation.path))
            states[-1].apply(operation)
            touched.update(map(str, operation.ids))
        if AFTER_INTERRUPT in report.results:
            touched.update(map(str, after_interrupt.ids))
            assert [state.apply(after_interrupt) for state in states] == [report.results[AFTER_INTERRUPT]] * len(states)
        self.reopen(states, touched)
        for entry in self.path.parent.iterdir():
            if entry != self.path:
                shutil.rmtree(entry)

    def stream(self, target: str | None) -> list[Operation]:
        """Return the operations for the child."""
        kinds = self.draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=OPERATIONS)
        if target in WEIGHTS:
            kinds[self.draw.randrange(OPERATIONS // 2)] = target
        return list(operations(self.draw, self.model.copy(), kinds, self.path.parent))

    def listen(
        self, child: Child, stream: list[Operation], target: str | None, signal_number: signal.Signals | None
    ) -> ChildReport:
        """Receive the events of a child until it ends, and send the signal at the chosen moment."""
        report = ChildReport()
        chosen = signal_number is None
        moment = inf
        while True:
            try:
                event = child.receive(min(120.0, max(0.0, moment - time.monotonic())))
            except TimeoutError:
                assert moment < inf, "the child hangs"
                os.kill(child.pid, signal_number or 0)
                moment = inf
                continue
            except EOFError:
                return report
            self.record(report, event, stream)
            if not chosen and event.get("begins") is not None and target in (None, kind_of(stream, event["begins"])):
                chosen, moment = True, time.monotonic() + self.draw.random() * self.duration(target)

    def record(self, report: ChildReport, event: dict[str, Any], stream: list[Operation]) -> None:
        """Record an event of a child."""
        if "begins" in event:
            report.unfinished.append(event["begins"])
            return
        done, kind = event["done"], kind_of(stream, event["done"])
        report.unfinished.remove(done)
        average, measured = (self._calls, "calls") if event["calls"] else (self._seconds, "seconds")
        average[kind] += 0.2 * (event[measured] - average[kind]) if average[kind] else event[measured]
        if "result" in event:
            report.results[done] = event["result"]

    def duration(self, target: str | None) -> float:
        """Return the approximate duration of a kind of action in seconds; None is the whole stream."""
        if target is not None:
            return self._seconds[target]
        return OPERATIONS * sum(WEIGHTS[kind] * self._seconds[kind] for kind in WEIGHTS) / sum(WEIGHTS.values())

    def acknowledge(self, stream: list[Operation], results: dict[int | str, Any]) -> set[str]:
        """Apply the acknowledged operations to the model, check their results, and return the ids concerned."""
        touched: set[str] = set()
        for number, operation in enumerate(stream):
            if number not in results:
                break
            expected = self.model.apply(operation)
            if operation.kind == "query":
                found = [document_id in hits for document_id, hits in zip(operation.ids, results[number], strict=True)]
                assert all(found), (operation, results[number])
            else:
                assert results[number] == expected, operation
            if operation.kind == "backup":
                self.check_copy(Path(operation.path))
            touched.update(map(str, operation.ids))
        return touched

    def check_copy(self, path: Path) -> None:
        """Check that an acknowledged backup holds the content of the index at that time."""
        with mw.Index.open(path) as copy:
            assert differences(copy, self.model, self.sample(10)) == []
            assert copy.verify() == []
        shutil.rmtree(path)

    def sample(self, count: int) -> list[str]:
        """Return ids of present documents, and of some removed ones."""
        present, removed = list(self.model.documents), list(self.model.removed)
        return self.draw.sample(present, min(count, len(present))) + self.draw.sample(
            removed, min(count // 2, len(removed))
        )

    def reopen(self, states: list[Model], touched: set[str]) -> None:
        """Check that the index holds exactly one of the states: opened for reading, for writing, or both in turn."""
        names = touched.union(self.sample(SAMPLE))
        modes: list[list[OpenMode]] = [["r"], ["w"], ["r", "w"]]
        for mode in self.draw.choice(modes):
            started = time.monotonic()
            with mw.Index.open(self.path, mode) as index:
                if mode == "w":
                    self.reopened.append(time.monotonic() - started)
                    assert self.leftovers(index) == set()
                while (found := differences(index, states[0], names)) and len(states) > 1:
                    del states[0]
                assert found == []
                self.model, states = states[0], states[:1]
                assert index.verify() == []

    def leftovers(self, index: mw.Index) -> set[str]:
        """Return files that are no part of the index, which a writer must delete."""
        segments = {segment["file"] for segment in index.stats()["segments"]}
        return {path.name for path in self.path.iterdir()} - segments - FILES

    def check_unfinished_copy(self, path: Path) -> None:
        """Check that an unfinished backup is complete, or is not accepted as an index."""
        try:
            copy = mw.Index.open(path)
        except (FormatError, OSError):
            return
        with copy:
            assert differences(copy, self.model, self.sample(10)) == []
            assert copy.verify() == []


def kind_of(stream: list[Operation], action: int | str) -> str:
    """Return the kind of an action."""
    return stream[action].kind if isinstance(action, int) else action
