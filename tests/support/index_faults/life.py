"""The life of an index whose writers are killed or interrupted again and again, and of a model beside it."""

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
from support.index_faults.checks import deviations
from support.index_faults.children import Child, start
from support.index_faults.worker import AFTERWARDS, work
from support.index_faults.workload import CONSTANTS, SETTINGS, WEIGHTS, Model, Operation, one_operation, operations

__all__ = ["Life"]

# What a child does in a round, at most.
OPERATIONS = 30
# Documents that are looked at in each round beside those that it touched.
SAMPLE = 40
# Whatever else there may be in an index.
FILES = {"index.db", "index.db-wal", "index.db-shm", "head", "writer.lock"}


@dataclass
class Heard:
    """What a child told.

    Attributes:
        results: What came out of the operations that it acknowledged, by their place in the stream.
        under_way: What it had begun and not done when it ended; stages after the operation that they are part of.
    """

    results: dict[int | str, Any] = field(default_factory=dict)
    under_way: list[int | str] = field(default_factory=list)


class Life:
    """The life of an index, round by round.

    Attributes:
        path: The index.
        model: What it must hold.
        hits: How often each kind of operation and stage was cut short.
        reopened: How long each opening for writing took after a kill, in seconds.
    """

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.path, self.model, self.draw = folder / "index.mw", Model(), draw
        self.hits: Counter[str] = Counter()
        self.reopened: list[float] = []
        # What something of a kind takes, about.
        self._seconds: dict[str, float] = defaultdict(float)
        self._calls: dict[str, float] = defaultdict(float)
        mw.Index.create(self.path, **SETTINGS).close()
        for counting in (True, False):
            self.round(None, None, counting=counting)

    def round(
        self, target: str | None, blow: signal.Signals | None = signal.SIGKILL, *, counting: bool = False
    ) -> None:
        """A child works and gets a signal in the target, if at all; then everything is as it was acknowledged.

        Args:
            target: A kind of operation or stage; None is any moment.
            blow: The signal.
            counting: Whether the signal comes at one of the calls of the target, and not at a moment of its time.
        """
        stream = self.stream(target)
        afterwards = one_operation(self.draw, "add_batch", self.model, self.path.parent)
        call = self.draw.randrange(1, 2 + int(self._calls[target])) if target is not None else 0
        aim = {"counting": counting, "target": target or "", "call": call, "blow": blow or 0}
        job = {"path": str(self.path), "constants": CONSTANTS, "operations": [*map(asdict, stream)]}
        child = start(work, {**job, "aim": aim, "afterwards": asdict(afterwards)})
        heard = self.listen(child, stream, target, None if counting else blow)
        assert child.wait() in (0, -signal.SIGKILL if blow == signal.SIGKILL else 0)
        self.hits.update(kind_of(stream, what) for what in heard.under_way)
        touched = self.acknowledge(stream, heard.results)
        pending = [stream[what] for what in heard.under_way if isinstance(what, int)]
        states = [self.model.copy() for _ in range(1 + len(pending))]
        for operation in pending:
            if operation.kind == "backup":
                self.check_unfinished_copy(Path(operation.path))
            states[-1].apply(operation)
            touched.update(map(str, operation.ids))
        if AFTERWARDS in heard.results:
            touched.update(map(str, afterwards.ids))
            assert [state.apply(afterwards) for state in states] == [heard.results[AFTERWARDS]] * len(states)
        self.reopen(states, touched)
        for rest in self.path.parent.iterdir():
            if rest != self.path:
                shutil.rmtree(rest)

    def stream(self, target: str | None) -> list[Operation]:
        """What the child is to do."""
        kinds = self.draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=OPERATIONS)
        if target in WEIGHTS:
            kinds[self.draw.randrange(OPERATIONS // 2)] = target
        return list(operations(self.draw, self.model.copy(), kinds, self.path.parent))

    def listen(self, child: Child, stream: list[Operation], target: str | None, blow: signal.Signals | None) -> Heard:
        """Hears a child to its end, and sends the signal at the moment chosen."""
        heard = Heard()
        chosen = blow is None
        moment = inf
        while True:
            try:
                event = child.receive(min(120.0, max(0.0, moment - time.monotonic())))
            except TimeoutError:
                assert moment < inf, "the child hangs"
                os.kill(child.pid, blow or 0)
                moment = inf
                continue
            except EOFError:
                return heard
            self.note(heard, event, stream)
            if not chosen and event.get("begins") is not None and target in (None, kind_of(stream, event["begins"])):
                chosen, moment = True, time.monotonic() + self.draw.random() * self.duration(target)

    def note(self, heard: Heard, event: dict[str, Any], stream: list[Operation]) -> None:
        """Takes in what a child tells."""
        if "begins" in event:
            heard.under_way.append(event["begins"])
            return
        done, kind = event["done"], kind_of(stream, event["done"])
        heard.under_way.remove(done)
        usual, measured = (self._calls, "calls") if event["calls"] else (self._seconds, "seconds")
        usual[kind] += 0.2 * (event[measured] - usual[kind]) if usual[kind] else event[measured]
        if "result" in event:
            heard.results[done] = event["result"]

    def duration(self, target: str | None) -> float:
        """About how long something of a kind takes, in seconds; None is the whole stream."""
        if target is not None:
            return self._seconds[target]
        return OPERATIONS * sum(WEIGHTS[kind] * self._seconds[kind] for kind in WEIGHTS) / sum(WEIGHTS.values())

    def acknowledge(self, stream: list[Operation], results: dict[int | str, Any]) -> set[str]:
        """Follows what was acknowledged, checks what came out, and gives the names of the documents it was about."""
        touched: set[str] = set()
        for number, operation in enumerate(stream):
            if number not in results:
                break
            expected = self.model.apply(operation)
            if operation.kind == "query":
                found = [one in hits for one, hits in zip(operation.ids, results[number], strict=True)]
                assert all(found), (operation, results[number])
            else:
                assert results[number] == expected, operation
            if operation.kind == "backup":
                self.check_copy(Path(operation.path))
            touched.update(map(str, operation.ids))
        return touched

    def check_copy(self, path: Path) -> None:
        """A backup that was acknowledged holds what the index held then."""
        with mw.Index.open(path) as copy:
            assert deviations(copy, self.model, self.sample(10)) == []
            assert copy.verify() == []
        shutil.rmtree(path)

    def sample(self, count: int) -> list[str]:
        """Names of documents that are there, and of some that were removed."""
        there, gone = list(self.model.documents), list(self.model.gone)
        return self.draw.sample(there, min(count, len(there))) + self.draw.sample(gone, min(count // 2, len(gone)))

    def reopen(self, states: list[Model], touched: set[str]) -> None:
        """The index holds one of the states, wholly; to a reader, to a writer, or to one after the other."""
        names = touched.union(self.sample(SAMPLE))
        for mode in self.draw.choice([["r"], ["w"], ["r", "w"]]):
            started = time.monotonic()
            with mw.Index.open(self.path, mode) as index:
                if mode == "w":
                    self.reopened.append(time.monotonic() - started)
                    assert self.leftovers(index) == set()
                while (found := deviations(index, states[0], names)) and len(states) > 1:
                    del states[0]
                assert found == []
                self.model, states = states[0], states[:1]
                assert index.verify() == []

    def leftovers(self, index: mw.Index) -> set[str]:
        """Files that are no part of the index, which a writer is to clear away."""
        segments = {segment["file"] for segment in index.stats()["segments"]}
        return {path.name for path in self.path.iterdir()} - segments - FILES

    def check_unfinished_copy(self, path: Path) -> None:
        """A backup that was under way is whole, or nobody takes it for an index."""
        try:
            copy = mw.Index.open(path)
        except (mw.FormatError, OSError):
            return
        with copy:
            assert deviations(copy, self.model, self.sample(10)) == []
            assert copy.verify() == []


def kind_of(stream: list[Operation], what: int | str) -> str:
    """The kind of something that began or was done."""
    return stream[what].kind if isinstance(what, int) else what
