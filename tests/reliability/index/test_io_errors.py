"""Every call to the file system fails once: one clear error, the old state, and the index goes on when there is room.

Each step of an index's life is done again and again, with another of its writes, syncs, renames, creations,
truncations, deletions and reads failing each time: no space, a bad disk, a write that is only half done. A sync that
failed is another matter: nothing is written any more, and nothing is synced again.
By default a spread of the calls of each step; `make torture` takes all of them.
"""

import errno
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.commands import TORTURE
from support.index_faults.acts import (
    ARMED,
    BEGINNINGS,
    CLOSING,
    LATER,
    OVER,
    keep_snapshots,
    reopen_beside_a_reader,
    suffer,
)
from support.index_faults.children import quick_folder
from support.index_faults.faults import COMPILER, NO_COMPILER, Fault, Manner, ask
from support.index_faults.power_cut import Disk, Survival, write_tree
from support.index_faults.steps import BACKUP, INDEX, matching, prove_writable, script
from support.index_faults.trace import Kind, Operation, read_trace
from support.index_faults.workload import Model

import minwise as mw

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

STEPS = [step.name for step in script().steps]
# The others do what one of these does.
PROBED = [
    "create", "add", "add unique", "add and flush", "remove", "replace", "add large", "add, flush and merge", "flush",
    "close", "open", "add after opening", "compact", "backup",
]  # fmt: skip
KINDS = {
    "write": [Kind.WRITE],
    "sync": [Kind.SYNC],
    "rename": [Kind.RENAME],
    "create": [Kind.CREATE, Kind.MKDIR, Kind.LINK],
    "truncate": [Kind.TRUNCATE, Kind.EXTEND],
    "unlink": [Kind.UNLINK, Kind.RMDIR],
    "read": [Kind.READ],
}
# What needs room on a disk.
ROOM = [Kind.WRITE, Kind.CREATE, Kind.MKDIR, Kind.EXTEND]
NEVER = 10**9
END = Operation(Kind.MARK, "end")
# Calls of a kind that fail in a step by default, spread over all of them.
SPREAD = NEVER if TORTURE else 4


class Snapshots:
    """The index before each step, and room for its copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._calls: dict[int, dict[str, list[Operation]]] = {}

    def before(self, step: int) -> Path:
        """The copy that was made before a step."""
        return self.folder / "snapshots" / str(step)

    def suffer(self, step: int, fault: Fault) -> tuple[dict[str, Any], list[Operation], Path]:
        """What a process saw in which a call failed, what it did to files, and where."""
        place, trace = (self.folder / f"{next(self._numbers)}.{name}" for name in ("files", "trace"))
        job = {"folder": place, "trace": trace, "snapshot": self.before(step)}
        answer = ask(suffer, {**{key: str(path) for key, path in job.items()}, "step": step, "fault": asdict(fault)})
        operations = read_trace(trace, place)
        trace.unlink()
        return answer, operations, place

    def calls(self, step: int) -> dict[str, list[Operation]]:
        """The calls of each kind in a step of which none fails."""
        if step not in self._calls:
            answer, operations, place = self.suffer(step, Fault(kinds=[Kind.READ], nth=NEVER, error=errno.EIO))
            shutil.rmtree(place)
            assert answer["step"] == answer.get("later", {}) == {}
            done = between(operations, ARMED, OVER)
            self._calls[step] = {what: [one for one in done if one.kind in kinds] for what, kinds in KINDS.items()}
            self._calls[step]["read"] = [Operation(Kind.READ)] * answer["calls"]  # a trace does not hold them
        return self._calls[step]


@pytest.fixture(scope="module")
def snapshots() -> Iterator[Snapshots]:
    """Copies of the index as it is before each step."""
    with quick_folder() as folder:
        (folder / "life").mkdir()
        ask(keep_snapshots, {"folder": str(folder / "life"), "snapshots": str(folder / "snapshots")})
        yield Snapshots(folder)


def between(operations: list[Operation], first: str, last: str = "") -> list[Operation]:
    """What happened between two marks, or from one on."""
    marks = {one.path: place for place, one in enumerate(operations) if one.kind == Kind.MARK}
    return operations[marks[first] : marks.get(last)] if first in marks else []


def spread(numbers: list[int]) -> list[int]:
    """Some of them, the first and the last too."""
    if len(numbers) <= SPREAD:
        return numbers
    return sorted({numbers[round(place * (len(numbers) - 1) / (SPREAD - 1))] for place in range(SPREAD)})


def faults(calls: list[Operation], what: str) -> Iterator[Fault]:
    """Every way in which calls of a kind can fail."""
    for nth in spread(list(range(1, len(calls) + 1))):
        for error in (errno.EIO,) if what == "read" else (errno.EIO, errno.ENOSPC):
            yield Fault(kinds=KINDS[what], nth=nth, error=error)
        if what == "write" and len(calls[nth - 1].payload) > 1:
            for manner in (Manner.SHORT, Manner.SHORT_THEN_ONCE):
                yield Fault(kinds=KINDS[what], nth=nth, error=errno.ENOSPC, manner=manner)
        if what == "write":
            yield Fault(kinds=ROOM, nth=nth, error=errno.ENOSPC, manner=Manner.ONWARD)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("step", PROBED)
def test_a_call_fails(snapshots: Snapshots, step: str) -> None:
    """Whatever fails: one clear error or none, all or nothing, and the index goes on, here and in another process."""
    number, wrong = STEPS.index(step), {}
    chosen = [fault for what, calls in snapshots.calls(number).items() for fault in faults(calls, what)]
    assert len(chosen) > 10
    for fault in chosen:
        answer, operations, place = snapshots.suffer(number, fault)
        failed = next((one for one in between(operations, ARMED) if one.injected), None)
        assert failed is not None, fault
        case = Case(number, fault, answer, operations, failed, place, snapshots.before(number))
        if problems := list(case.problems()):
            wrong[f"{fault.nth} {Manner(fault.manner).name} {failed}"] = problems
        shutil.rmtree(place)
    assert not wrong, "\n".join(f"{what}: {problems}" for what, problems in wrong.items())


def test_what_a_failed_sync_left_does_not_take_what_comes_after_it_along(snapshots: Snapshots) -> None:
    """The log may end in memory only; whoever opens it next must not go on behind that, even if somebody reads it."""
    number = STEPS.index("remove")
    before, place, trace = snapshots.before(number), snapshots.folder / "reader", snapshots.folder / "reader.trace"
    text = "a document that was acknowledged after all of this and has to be there when the power is back"
    paths = {"snapshot": str(before), "folder": str(place), "trace": str(trace)}
    answer = ask(reopen_beside_a_reader, {**paths, "step": number, "document": ["new", text]})
    assert (answer["failed"]["kind"], answer["added"]) == ("OSError", {})
    disk = Disk.holding(before)
    for operation in read_trace(trace, place):
        disk.apply(operation)
    shutil.rmtree(place)
    write_tree(disk.after_cut(Survival()), place)
    with mw.Index.open(place / INDEX, "w") as index:
        assert index.get("new").text == text
        assert index.verify() == []


@dataclass(frozen=True)
class Case:
    """One failure, and what came of it.

    Attributes:
        step: The number of the step.
        fault: What was told to fail.
        answer: What the process saw.
        operations: What it did to files.
        failed: The call that failed first.
        place: What it left.
        snapshot: What it began with.
    """

    step: int
    fault: Fault
    answer: dict[str, Any]
    operations: list[Operation]
    failed: Operation
    place: Path
    snapshot: Path

    @property
    def error(self) -> dict[str, Any]:
        """What the step raised."""
        return dict(self.answer["step"])

    @property
    def sync_failed(self) -> bool:
        """Whether it was a sync that failed."""
        return self.failed.kind == Kind.SYNC

    def states(self) -> dict[str, Model]:
        """What the index may hold."""
        before, after = script().states[self.step : self.step + 2]
        if not self.error:
            return {"after": after}
        return {"before": before, "after": after} if self.sync_failed else {"before": before}

    def problems(self) -> Iterator[str]:
        """Everything that is not as it must be."""
        yield from self.problems_of_errors()
        yield from self.problems_here()
        yield from self.problems_of_syncs()
        yield from self.problems_elsewhere(self.place)
        if self.sync_failed or not self.error:
            yield from self.problems_after_a_cut()

    def problems_of_errors(self) -> Iterator[str]:
        """Errors that do not say in one line what happened to which file."""
        # SQLite takes a page that it can not read for a damaged one.
        clear = ("OSError", "FormatError") if self.failed.kind == Kind.READ else ("OSError",)
        for when in ("step", "retry", "full", "later", "close"):
            ended = self.answer.get(when) or {"kind": "OSError", "message": str(self.place)}
            if ended["kind"] not in clear or "\n" in ended["message"] or str(self.place) not in ended["message"]:
                yield f"{when}: no clear error: {ended}"
        # SQLite does not say why it could not make a file: it tries whether it can be read then, and tells of that.
        unknown = self.failed.kind == Kind.CREATE and Path(self.failed.path).name.startswith("index.db")
        if self.error.get("kind") == "OSError" and self.error["number"] != self.fault.error and not unknown:
            yield f"another error than it was: {self.error}"

    def problems_here(self) -> Iterator[str]:
        """What the process itself saw."""
        equal = script().states[self.step].documents == script().states[self.step + 1].documents
        expected = "before" if self.error or equal else "after"
        for when in ("state", "later state"):
            if self.answer.get(when, expected) != expected:
                yield f"{when} is not {expected} but {self.answer[when]}, after {self.error}"
        if self.answer.get("retry"):
            yield f"again: {self.answer['retry']}"
        if self.answer.get("full", {"kind": "OSError"}).get("kind") != "OSError":
            yield f"written though there is no room: {self.answer['full']}"
        if self.answer.get("later") and not self.sync_failed:
            yield f"not writable again: {self.answer['later']}"

    def problems_of_syncs(self) -> Iterator[str]:
        """After a failed sync that file is never synced again; if it is one of the index, nothing more is written."""
        if not self.sync_failed:
            return
        for one in self.operations[self.operations.index(self.failed) + 1 :]:
            if one.kind == Kind.MARK and STEPS[self.step] in BEGINNINGS:
                break  # what comes then is another attempt
            if one.kind == Kind.SYNC and one.path == self.failed.path:
                yield "synced again"
        if self.error and STEPS[self.step] not in BEGINNINGS and self.failed.path.startswith(INDEX):
            if self.answer["later"].get("kind") != "OSError":
                yield f"written after a sync that failed: {self.answer['later']}"
            if changes := [str(one) for one in between(self.operations, LATER, CLOSING)[1:]]:
                yield f"changed after a sync that failed: {changes[:3]}"

    def problems_elsewhere(self, place: Path) -> Iterator[str]:
        """What another process finds."""
        try:
            if STEPS[self.step] == "create" and self.error and not (place / INDEX).exists():
                return
            with mw.Index.open(place / INDEX, "w") as index:
                matching(index, self.states(), script().names)
                assert index.verify() == []
                prove_writable(index)
            self.check_backup(place / BACKUP)
        except (AssertionError, OSError, mw.MinwiseError) as error:
            yield f"elsewhere: {type(error).__name__}: {error}"

    def check_backup(self, path: Path) -> None:
        """A backup is whole, or it is not there."""
        if STEPS[self.step] != "backup" or (self.error and not path.exists()):
            return
        with mw.Index.open(path) as index:
            matching(index, {"backup": script().states[self.step]}, script().names)
            assert index.verify() == []

    def problems_after_a_cut(self) -> Iterator[str]:
        """What is left if the power fails right after the step, or at the end: what did not fail is durable."""
        disk = Disk.holding(self.snapshot)
        for operation in [*self.operations, END]:
            disk.apply(operation)
            if operation.kind == Kind.MARK and operation.path in (OVER, END.path):
                shutil.rmtree(self.place)
                write_tree(disk.after_cut(Survival()), self.place)
                for problem in self.problems_elsewhere(self.place):
                    yield f"after a cut, {operation.path}: {problem}"
