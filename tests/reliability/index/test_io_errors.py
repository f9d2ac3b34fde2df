"""Every file-system call fails once: one clear error, the old state, and the index works again afterwards.

Each step of a script is repeated, and each time another of its writes, syncs, renames, creations, truncations,
deletions and reads fails: no space, an I/O error, a write of half the bytes. A failed sync is different: afterwards the
process writes nothing and does not sync again.
By default a sample of the calls of each step; `make torture` takes all of them.
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
from support.index_faults.children import fast_folder
from support.index_faults.power_cut import Disk, Survival, write_tree
from support.index_faults.shim import COMPILER, NO_COMPILER, Fault, Manner, ask
from support.index_faults.step_runs import (
    ARMED,
    CLOSING,
    LATER,
    OPENING_STEPS,
    OVER,
    keep_snapshots,
    reopen_during_read,
    run_with_fault,
)
from support.index_faults.steps import BACKUP, INDEX, matching_state, prove_writable, script
from support.index_faults.trace import Kind, Operation, read_trace
from support.index_faults.workload import Model

import minwise as mw

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

STEPS = [step.name for step in script().steps]
# Steps to test; the others make the same calls as one of these.
TESTED = [
    "create", "add", "add unique", "add and flush", "remove", "replace", "add large", "add, flush and merge", "flush",
    "close", "open", "add after opening", "compact", "backup", "expire",
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
# Kinds of calls that need disk space.
SPACE = [Kind.WRITE, Kind.CREATE, Kind.MKDIR, Kind.EXTEND]
NEVER = 10**9
END = Operation(Kind.MARK, "end")
# Number of calls of a kind that fail in a step, spread over all of them.
SPREAD = NEVER if TORTURE else 4


class Snapshots:
    """The index before each step, and space for copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._calls: dict[int, dict[str, list[Operation]]] = {}

    def before(self, step: int) -> Path:
        """Return the copy that was made before a step."""
        return self.folder / "snapshots" / str(step)

    def run_with_fault(self, step: int, fault: Fault) -> tuple[dict[str, Any], list[Operation], Path]:
        """Return the outcome of a step with a fault, the trace of its calls, and its directory."""
        folder, trace = (self.folder / f"{next(self._numbers)}.{name}" for name in ("files", "trace"))
        job = {"folder": folder, "trace": trace, "snapshot": self.before(step)}
        answer = ask(
            run_with_fault, {**{key: str(path) for key, path in job.items()}, "step": step, "fault": asdict(fault)}
        )
        operations = read_trace(trace, folder)
        trace.unlink()
        return answer, operations, folder

    def calls(self, step: int) -> dict[str, list[Operation]]:
        """Return the calls of each kind in a step without a fault."""
        if step not in self._calls:
            answer, operations, folder = self.run_with_fault(step, Fault(kinds=[Kind.READ], nth=NEVER, error=errno.EIO))
            shutil.rmtree(folder)
            assert answer["step"] == answer.get("later", {}) == {}
            done = between(operations, ARMED, OVER)
            self._calls[step] = {name: [call for call in done if call.kind in kinds] for name, kinds in KINDS.items()}
            self._calls[step]["read"] = [Operation(Kind.READ)] * answer["calls"]  # reads are not in the trace
        return self._calls[step]


@pytest.fixture(scope="module")
def snapshots() -> Iterator[Snapshots]:
    """Yield copies of the index before each step."""
    with fast_folder() as folder:
        (folder / "steps").mkdir()
        ask(keep_snapshots, {"folder": str(folder / "steps"), "snapshots": str(folder / "snapshots")})
        yield Snapshots(folder)


def between(operations: list[Operation], first: str, last: str = "") -> list[Operation]:
    """Return the operations between two marks, or from the first mark to the end."""
    marks = {call.path: number for number, call in enumerate(operations) if call.kind == Kind.MARK}
    return operations[marks[first] : marks.get(last)] if first in marks else []


def spread(numbers: list[int]) -> list[int]:
    """Return a sample of numbers that includes the first and the last."""
    if len(numbers) <= SPREAD:
        return numbers
    return sorted({numbers[round(step * (len(numbers) - 1) / (SPREAD - 1))] for step in range(SPREAD)})


def faults(calls: list[Operation], name: str) -> Iterator[Fault]:
    """Yield every way in which calls of a kind can fail."""
    for nth in spread(list(range(1, len(calls) + 1))):
        for error in (errno.EIO,) if name == "read" else (errno.EIO, errno.ENOSPC):
            yield Fault(kinds=KINDS[name], nth=nth, error=error)
        if name == "write" and len(calls[nth - 1].payload) > 1:
            for manner in (Manner.SHORT, Manner.SHORT_THEN_ONCE):
                yield Fault(kinds=KINDS[name], nth=nth, error=errno.ENOSPC, manner=manner)
        if name == "write":
            yield Fault(kinds=SPACE, nth=nth, error=errno.ENOSPC, manner=Manner.ONWARD)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("step", TESTED)
def test_step_with_a_failing_call(snapshots: Snapshots, step: str) -> None:
    """There is one clear error or none, the step is done or not, and the index works, here and in another process."""
    number, wrong = STEPS.index(step), {}
    chosen = [fault for name, calls in snapshots.calls(number).items() for fault in faults(calls, name)]
    assert len(chosen) > 10
    for fault in chosen:
        answer, operations, folder = snapshots.run_with_fault(number, fault)
        failed = next((call for call in between(operations, ARMED) if call.injected), None)
        assert failed is not None, fault
        case = Case(number, fault, answer, operations, failed, folder, snapshots.before(number))
        if problems := list(case.problems()):
            wrong[f"{fault.nth} {Manner(fault.manner).name} {failed}"] = problems
        shutil.rmtree(folder)
    assert not wrong, "\n".join(f"{what}: {problems}" for what, problems in wrong.items())


def test_commits_after_a_failed_sync_and_reopening_are_durable(snapshots: Snapshots) -> None:
    """After a failed sync the end of the log may be in memory only; the next writer must not append to it."""
    number = STEPS.index("remove")
    before, folder, trace = snapshots.before(number), snapshots.folder / "reader", snapshots.folder / "reader.trace"
    text = "a document that is acknowledged after the failure and must survive the power cut"
    paths = {"snapshot": str(before), "folder": str(folder), "trace": str(trace)}
    answer = ask(reopen_during_read, {**paths, "step": number, "document": ["new", text]})
    assert (answer["failed"]["kind"], answer["added"]) == ("OSError", {})
    disk = Disk.holding(before)
    for operation in read_trace(trace, folder):
        disk.apply(operation)
    shutil.rmtree(folder)
    write_tree(disk.after_cut(Survival()), folder)
    with mw.Index.open(folder / INDEX, "w") as index:
        assert index.get("new").text == text
        assert index.verify() == []


@dataclass(frozen=True)
class Case:
    """One failure and its consequences.

    Attributes:
        step: The number of the step.
        fault: The injected fault.
        answer: The outcome that the process reported.
        operations: The trace of its calls.
        failed: The first call that failed.
        folder: The directory after the step.
        snapshot: The directory before the step.
    """

    step: int
    fault: Fault
    answer: dict[str, Any]
    operations: list[Operation]
    failed: Operation
    folder: Path
    snapshot: Path

    @property
    def error(self) -> dict[str, Any]:
        """The error of the step."""
        return dict(self.answer["step"])

    @property
    def sync_failed(self) -> bool:
        """Whether the failed call was a sync."""
        return self.failed.kind == Kind.SYNC

    def states(self) -> dict[str, Model]:
        """Return the allowed contents of the index."""
        before, after = script().states[self.step : self.step + 2]
        if not self.error:
            return {"after": after}
        return {"before": before, "after": after} if self.sync_failed else {"before": before}

    def problems(self) -> Iterator[str]:
        """Yield all problems."""
        yield from self.problems_of_errors()
        yield from self.problems_here()
        yield from self.problems_of_syncs()
        yield from self.problems_elsewhere(self.folder)
        if self.sync_failed or not self.error:
            yield from self.problems_after_a_cut()

    def problems_of_errors(self) -> Iterator[str]:
        """Yield errors that do not say in one line what happened to which file."""
        # SQLite reports a page that it cannot read as damaged.
        clear = ("OSError", "FormatError") if self.failed.kind == Kind.READ else ("OSError",)
        for when in ("step", "retry", "full", "later", "close"):
            ended = self.answer.get(when) or {"kind": "OSError", "message": str(self.folder)}
            if ended["kind"] not in clear or "\n" in ended["message"] or str(self.folder) not in ended["message"]:
                yield f"{when}: no clear error: {ended}"
        # SQLite does not report why it could not create a file: it then tries to open it, and reports that error.
        unknown = self.failed.kind == Kind.CREATE and Path(self.failed.path).name.startswith("index.db")
        if self.error.get("kind") == "OSError" and self.error["number"] != self.fault.error and not unknown:
            yield f"wrong errno: {self.error}"

    def problems_here(self) -> Iterator[str]:
        """Yield the problems that the process itself saw."""
        equal = script().states[self.step].documents == script().states[self.step + 1].documents
        expected = "before" if self.error or equal else "after"
        for when in ("state", "later state"):
            if self.answer.get(when, expected) != expected:
                yield f"{when} is not {expected} but {self.answer[when]}, after {self.error}"
        if self.answer.get("retry"):
            yield f"retry: {self.answer['retry']}"
        if self.answer.get("full", {"kind": "OSError"}).get("kind") != "OSError":
            yield f"written without space: {self.answer['full']}"
        if self.answer.get("later") and not self.sync_failed:
            yield f"not writable again: {self.answer['later']}"

    def problems_of_syncs(self) -> Iterator[str]:
        """Yield syncs of the same file, and writes to the index, after a failed sync."""
        if not self.sync_failed:
            return
        for call in self.operations[self.operations.index(self.failed) + 1 :]:
            if call.kind == Kind.MARK and STEPS[self.step] in OPENING_STEPS:
                break  # the calls after it belong to the second attempt
            if call.kind == Kind.SYNC and call.path == self.failed.path:
                yield "synced again"
        if self.error and STEPS[self.step] not in OPENING_STEPS and self.failed.path.startswith(INDEX):
            if self.answer["later"].get("kind") != "OSError":
                yield f"written after a failed sync: {self.answer['later']}"
            if changes := [str(call) for call in between(self.operations, LATER, CLOSING)[1:]]:
                yield f"changed after a failed sync: {changes[:3]}"

    def problems_elsewhere(self, folder: Path) -> Iterator[str]:
        """Yield the problems that another process sees."""
        try:
            if STEPS[self.step] == "create" and self.error and not (folder / INDEX).exists():
                return
            with mw.Index.open(folder / INDEX, "w") as index:
                matching_state(index, self.states(), script().names)
                assert index.verify() == []
                prove_writable(index)
            self.check_backup(folder / BACKUP)
        except (AssertionError, OSError, mw.MinwiseError) as error:
            yield f"elsewhere: {type(error).__name__}: {error}"

    def check_backup(self, path: Path) -> None:
        """Check that a backup is complete or does not exist."""
        if STEPS[self.step] != "backup" or (self.error and not path.exists()):
            return
        with mw.Index.open(path) as index:
            matching_state(index, {"backup": script().states[self.step]}, script().names)
            assert index.verify() == []

    def problems_after_a_cut(self) -> Iterator[str]:
        """Yield the problems after a power cut right after the step, or at the end."""
        disk = Disk.holding(self.snapshot)
        for operation in [*self.operations, END]:
            disk.apply(operation)
            if operation.kind == Kind.MARK and operation.path in (OVER, END.path):
                shutil.rmtree(self.folder)
                write_tree(disk.after_cut(Survival()), self.folder)
                for problem in self.problems_elsewhere(self.folder):
                    yield f"after a cut, {operation.path}: {problem}"
