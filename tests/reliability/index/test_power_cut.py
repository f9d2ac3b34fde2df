"""A power cut at every file-system call: everything acknowledged survives, all else completely or not at all.

The calls of a script of steps are recorded once. For a cut before each of them, the directory is built that a disk may
hold then, and opened. By default every cut in which only synced data survives, and every third of the other outcomes;
`make torture` takes all of them, and several seeds for random outcomes.
"""

import hashlib
import pickle
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.commands import TORTURE
from support.index_faults.children import fast_folder
from support.index_faults.power_cut import Disk, Survival, Tree, cuts, read_tree, write_tree
from support.index_faults.shim import COMPILER, NO_COMPILER, ask
from support.index_faults.step_runs import open_and_close, run_all_steps
from support.index_faults.steps import BACKUP, INDEX, matching_state, prove_writable, script
from support.index_faults.trace import Kind, Operation, read_trace
from support.index_faults.workload import SETTINGS, Model

import minwise as mw
from minwise.errors import ConfigError, FormatError
from minwise.index import OpenMode

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

# Each kind of cut is split into this number of tests.
PARTS = 2
SEEDS = 5 if TORTURE else 1
# Distance between first cuts that are followed by a second one.
SECOND_INTERVAL = 1 if TORTURE else 23
STRICT = Survival()
SURVIVALS = {
    "only synced data": STRICT,
    "names without data": Survival(names=True),
    "data without names": Survival(writes=True),
    "everything": Survival(writes=True, names=True),
    "random": Survival(seed=""),
}
STEPS = [step.name for step in script().steps]


@dataclass(frozen=True)
class Moment:
    """The moment of a cut.

    Attributes:
        done: The number of acknowledged steps.
        begun: The number of started steps; the same or one more.
    """

    done: int
    begun: int

    @classmethod
    def of(cls, operations: list[Operation]) -> "Moment":
        """Return the moment after these operations."""
        marks = Counter(call.path.split()[0] for call in operations if call.kind == Kind.MARK)
        return cls(marks["end"], marks["begin"])

    def states(self) -> dict[str, Model]:
        """Return the allowed contents of the index after the cut."""
        return {str(number): script().states[number] for number in range(self.done, self.begun + 1)}

    def has(self, step: str, *, begun: bool = False) -> bool:
        """Return whether a step was acknowledged, or has begun, before the cut."""
        return STEPS.index(step) < (self.begun if begun else self.done)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yield a directory for all tests."""
    with fast_folder() as created:
        yield created


@pytest.fixture(scope="module")
def recorded(folder: Path) -> list[Operation]:
    """Return every call of the script, after a replay has proved them complete."""
    watched = folder / "watched"
    watched.mkdir()
    ask(run_all_steps, {"folder": str(watched), "trace": str(folder / "trace")})
    operations = read_trace(folder / "trace", watched)
    disk = Disk()
    for operation in operations:
        disk.apply(operation)
    assert disk.after_cut(SURVIVALS["everything"]) == read_tree(watched)
    return operations


def test_script_has_every_kind_of_change(recorded: list[Operation]) -> None:
    """The script has a flush within an add, merges, checkpoints, a shrinking, and a backup with a segment."""
    files = Counter((call.kind, Path(call.path).name) for call in recorded if call.kind != Kind.MARK)
    assert sum(kind == Kind.CREATE and name.startswith("segment") for kind, name in files) >= 5
    assert sum(kind == Kind.UNLINK and name.startswith("segment") for kind, name in files) >= 4
    assert files[Kind.SYNC, "index.db-wal"] >= 20
    assert files[Kind.SYNC, "index.db"] >= 4
    assert sum(call.kind == Kind.TRUNCATE and call.path == f"{INDEX}/index.db" for call in recorded) >= 1
    assert any(call.kind == Kind.RENAME and call.other == BACKUP for call in recorded)
    assert len(recorded) > 300


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("survives", SURVIVALS)
def test_cut_at_every_operation(folder: Path, recorded: list[Operation], survives: str, part: int) -> None:
    """Everything acknowledged survives with its content, all else completely or not at all; the index is writable."""
    every = 1 if TORTURE or survives == "only synced data" else 3
    seeds = range(SEEDS if survives == "random" else 1)
    wrong, seen, disk = {}, set(), Disk()
    for number in cuts(disk, recorded):
        if number % (every * PARTS) != part * every:
            continue
        moment = Moment.of(recorded[:number])
        for seed in seeds:
            survival = Survival(seed=f"{number} {seed}") if survives == "random" else SURVIVALS[survives]
            tree = disk.after_cut(survival)
            key = (fingerprint(tree), moment)  # many cuts leave the same tree: only syncs change durable data
            if key not in seen:
                seen.add(key)
                if problem := problem_after_cut(folder / f"cut{part}", tree, moment):
                    wrong[f"{number} {seed}: before {operation_at(recorded, number)} ({moment})"] = problem
    assert not wrong, "\n".join(f"{what}: {problem}" for what, problem in wrong.items())
    assert len(seen) > len(STEPS)


def fingerprint(tree: Tree) -> bytes:
    """Return a hash of a tree."""
    return hashlib.sha256(pickle.dumps(tree)).digest()


def operation_at(recorded: list[Operation], number: int) -> str:
    """Return a description of the operation before which the cut happens."""
    return str(recorded[number]) if number < len(recorded) else "the end"


def problem_after_cut(folder: Path, tree: Tree, moment: Moment) -> str:
    """Return the problem with the directory after a cut, or an empty string."""
    shutil.rmtree(folder, ignore_errors=True)
    write_tree(tree, folder)
    try:
        if moment.has("create"):
            check_index(folder / INDEX, moment)
        else:
            check_unfinished_create(folder / INDEX)
        if moment.has("backup", begun=True):
            check_backup(folder / BACKUP, moment)
    except (AssertionError, OSError, mw.MinwiseError) as error:
        return f"{type(error).__name__}: {str(error)[:600]}"
    return ""


def check_index(path: Path, moment: Moment) -> None:
    """Check that the index opens, holds its content undamaged, is writable, and has no leftover files."""
    with mw.Index.open(path, "w") as index:
        matching_state(index, moment.states(), script().names)
        assert index.verify() == []
        prove_writable(index)
        segments = {segment["file"] for segment in index.stats()["segments"]}
    assert {entry.name for entry in path.iterdir()} == {"index.db", "head", "writer.lock"} | segments


def check_unfinished_create(path: Path) -> None:
    """Check that an unfinished index is empty or refused; then it can be created, or the error names the path."""
    index = try_open(path, "w")
    if isinstance(index, str):
        assert str(path) in index
        index = try_create(path)
        assert isinstance(index, str) or not list(path.parent.glob(".*.tmp"))
    if isinstance(index, str):
        assert str(path) in index
        return
    with index:
        assert len(index) == 0
        assert index.verify() == []
        prove_writable(index)


def check_backup(path: Path, moment: Moment) -> None:
    """Check that an acknowledged backup is complete; an unfinished one is complete or refused."""
    modes: tuple[OpenMode, ...] = ("r", "w")
    for mode in modes:
        index = try_open(path, mode)
        if isinstance(index, str):
            assert str(path) in index
            assert not moment.has("backup"), index
            continue
        with index:
            matching_state(index, {"backup": script().states[STEPS.index("backup")]}, script().names)
            assert index.verify() == []
            if mode == "w":
                prove_writable(index)


def try_open(path: Path, mode: OpenMode) -> mw.Index | str:
    """Return the index, or the error."""
    try:
        return mw.Index.open(path, mode)
    except (OSError, FormatError) as error:
        return str(error)


def try_create(path: Path) -> mw.Index | str:
    """Return a new index, or the error."""
    try:
        return mw.Index.create(path, **SETTINGS)
    except ConfigError as error:
        return str(error)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(PARTS))
def test_second_cut_during_recovery(folder: Path, recorded: list[Operation], part: int) -> None:
    """Opening deletes leftovers and copies the log; a cut at every operation of that is harmless."""
    wrong, seen, disk = {}, set(), Disk()
    for number in cuts(disk, recorded):
        moment = Moment.of(recorded[:number])
        if number % (SECOND_INTERVAL * PARTS) != part * SECOND_INTERVAL or not moment.has("create"):
            continue
        tree = disk.after_cut(SURVIVALS["everything"])
        for second, left in second_cuts(folder / f"first{part}", tree):
            key = (fingerprint(left), moment)
            if key not in seen:
                seen.add(key)
                if problem := problem_after_cut(folder / f"second{part}", left, moment):
                    wrong[f"{number}: before {operation_at(recorded, number)}, then {second}"] = problem
    assert not wrong, "\n".join(f"{what}: {problem}" for what, problem in wrong.items())
    assert len(seen) > len(STEPS)


def second_cuts(folder: Path, tree: Tree) -> Iterator[tuple[int, Tree]]:
    """Yield what a cut may leave at every operation of the opening after a first cut."""
    shutil.rmtree(folder, ignore_errors=True)
    trace = folder.with_suffix(".trace")
    trace.unlink(missing_ok=True)
    write_tree(tree, folder)
    disk = Disk.holding(folder)
    ask(open_and_close, {"folder": str(folder), "trace": str(trace)})
    for number in cuts(disk, read_trace(trace, folder)):
        for survival in (STRICT, Survival(seed=str(number))):
            yield number, disk.after_cut(survival)
