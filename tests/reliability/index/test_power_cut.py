"""The power fails at every single operation: what was acknowledged is there, the rest wholly or not at all.

A small life of an index is recorded once, operation by operation. For a cut before each of them the directory is built
that a disk may hold then, and opened. By default every cut where only what was synced survives, and every third of the
other ways a disk may look; `make torture` takes all of them, chance with several seeds.
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
from support.index_faults.acts import live, open_and_close
from support.index_faults.children import quick_folder
from support.index_faults.faults import COMPILER, NO_COMPILER, ask
from support.index_faults.power_cut import Disk, Survival, Tree, cuts, read_tree, write_tree
from support.index_faults.steps import BACKUP, INDEX, matching, prove_writable, script
from support.index_faults.trace import Kind, Operation, read_trace
from support.index_faults.workload import SETTINGS, Model

import minwise as mw

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

# Two processes share the cuts of each kind.
PARTS = 2
SEEDS = 5 if TORTURE else 1
# Of the cuts after which another one comes, so many apart.
SECOND_EVERY = 1 if TORTURE else 23
STRICT = Survival()
SURVIVALS = {
    "only what was synced": STRICT,
    "names but no bytes": Survival(names=True),
    "bytes but no names": Survival(writes=True),
    "everything": Survival(writes=True, names=True),
    "by chance": Survival(seed=""),
}
STEPS = [step.name for step in script().steps]


@dataclass(frozen=True)
class Moment:
    """When a cut happens.

    Attributes:
        done: How many steps have been acknowledged.
        begun: How many have begun; one more, or as many.
    """

    done: int
    begun: int

    @classmethod
    def of(cls, operations: list[Operation]) -> "Moment":
        """After these operations."""
        marks = Counter(one.path.split()[0] for one in operations if one.kind == Kind.MARK)
        return cls(marks["end"], marks["begin"])

    def states(self) -> dict[str, Model]:
        """What an index may hold after the cut."""
        return {str(number): script().states[number] for number in range(self.done, self.begun + 1)}

    def has(self, step: str, *, begun: bool = False) -> bool:
        """Whether a step was acknowledged, or has begun, before the cut."""
        return STEPS.index(step) < (self.begun if begun else self.done)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory for all."""
    with quick_folder() as place:
        yield place


@pytest.fixture(scope="module")
def recorded(folder: Path) -> list[Operation]:
    """Every operation of the life, which a replay shows to be all of them."""
    watched = folder / "watched"
    watched.mkdir()
    ask(live, {"folder": str(watched), "trace": str(folder / "trace")})
    operations = read_trace(folder / "trace", watched)
    disk = Disk()
    for operation in operations:
        disk.apply(operation)
    assert disk.after_cut(SURVIVALS["everything"]) == read_tree(watched)
    return operations


def test_everything_happens(recorded: list[Operation]) -> None:
    """The life has a flush within an add, merges, checkpoints, a shrinking, and a backup with a segment."""
    files = Counter((one.kind, Path(one.path).name) for one in recorded if one.kind != Kind.MARK)
    assert sum(kind == Kind.CREATE and name.startswith("segment") for kind, name in files) >= 5
    assert sum(kind == Kind.UNLINK and name.startswith("segment") for kind, name in files) >= 4
    assert files[Kind.SYNC, "index.db-wal"] >= 20
    assert files[Kind.SYNC, "index.db"] >= 4
    assert sum(one.kind == Kind.TRUNCATE and one.path == f"{INDEX}/index.db" for one in recorded) >= 1
    assert any(one.kind == Kind.RENAME and one.other == BACKUP for one in recorded)
    assert len(recorded) > 300


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("survives", SURVIVALS)
def test_a_cut_at_every_operation(folder: Path, recorded: list[Operation], survives: str, part: int) -> None:
    """Everything acknowledged is there with its content, everything else wholly or not at all, and it goes on."""
    every = 1 if TORTURE or survives == "only what was synced" else 3
    seeds = range(SEEDS if survives == "by chance" else 1)
    wrong, seen, disk = {}, set(), Disk()
    for number in cuts(disk, recorded):
        if number % (every * PARTS) != part * every:
            continue
        moment = Moment.of(recorded[:number])
        for seed in seeds:
            survival = Survival(seed=f"{number} {seed}") if survives == "by chance" else SURVIVALS[survives]
            tree = disk.after_cut(survival)
            key = (fingerprint(tree), moment)  # many cuts leave the same: only syncs change what is sure to survive
            if key not in seen:
                seen.add(key)
                if problem := problem_after(folder / f"cut{part}", tree, moment):
                    wrong[f"{number} {seed}: before {shown(recorded, number)} ({moment})"] = problem
    assert not wrong, "\n".join(f"{what}: {problem}" for what, problem in wrong.items())
    assert len(seen) > len(STEPS)


def fingerprint(tree: Tree) -> bytes:
    """The same for equal trees."""
    return hashlib.sha256(pickle.dumps(tree)).digest()


def shown(recorded: list[Operation], number: int) -> str:
    """The operation before which the cut came."""
    return str(recorded[number]) if number < len(recorded) else "the end"


def problem_after(place: Path, tree: Tree, moment: Moment) -> str:
    """What is wrong with what a cut left; nothing if all is well."""
    shutil.rmtree(place, ignore_errors=True)
    write_tree(tree, place)
    try:
        if moment.has("create"):
            check_index(place / INDEX, moment)
        else:
            check_unborn(place / INDEX)
        if moment.has("backup", begun=True):
            check_backup(place / BACKUP, moment)
    except (AssertionError, OSError, mw.MinwiseError) as error:
        return f"{type(error).__name__}: {str(error)[:600]}"
    return ""


def check_index(path: Path, moment: Moment) -> None:
    """It opens, holds what it must, is undamaged, takes documents, and nothing unfinished lies about."""
    with mw.Index.open(path, "w") as index:
        matching(index, moment.states(), script().names)
        assert index.verify() == []
        prove_writable(index)
        named = {one["file"] for one in index.stats()["segments"]}
    assert {one.name for one in path.iterdir()} == {"index.db", "head", "writer.lock"} | named


def check_unborn(path: Path) -> None:
    """An index that was being made: it is empty, or refused; then it can be made, or it is said what is in the way."""
    index = opened(path, "w")
    if isinstance(index, str):
        assert str(path) in index
        index = made(path)
        assert isinstance(index, str) or not list(path.parent.glob(".*.tmp"))
    if isinstance(index, str):
        assert str(path) in index
        return
    with index:
        assert len(index) == 0
        assert index.verify() == []
        prove_writable(index)


def check_backup(path: Path, moment: Moment) -> None:
    """A backup that was acknowledged holds what it must; an unfinished one too, or it is refused."""
    for mode in ("r", "w"):
        index = opened(path, mode)
        if isinstance(index, str):
            assert str(path) in index
            assert not moment.has("backup"), index
            continue
        with index:
            matching(index, {"backup": script().states[STEPS.index("backup")]}, script().names)
            assert index.verify() == []
            if mode == "w":
                prove_writable(index)


def opened(path: Path, mode: str) -> mw.Index | str:
    """The index, or why it is refused."""
    try:
        return mw.Index.open(path, mode)
    except (OSError, mw.FormatError) as error:
        return str(error)


def made(path: Path) -> mw.Index | str:
    """A new index, or what is in its way."""
    try:
        return mw.Index.create(path, **SETTINGS)
    except mw.ConfigError as error:
        return str(error)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_second_cut_during_the_recovery_from_the_first(folder: Path, recorded: list[Operation], part: int) -> None:
    """An opening deletes what is unfinished and copies the log; a cut at every operation of that does no harm."""
    wrong, seen, disk = {}, set(), Disk()
    for number in cuts(disk, recorded):
        moment = Moment.of(recorded[:number])
        if number % (SECOND_EVERY * PARTS) != part * SECOND_EVERY or not moment.has("create"):
            continue
        tree = disk.after_cut(SURVIVALS["everything"])
        for again, left in second_cuts(folder / f"first{part}", tree):
            key = (fingerprint(left), moment)
            if key not in seen:
                seen.add(key)
                if problem := problem_after(folder / f"second{part}", left, moment):
                    wrong[f"{number}: before {shown(recorded, number)}, then {again}"] = problem
    assert not wrong, "\n".join(f"{what}: {problem}" for what, problem in wrong.items())
    assert len(seen) > len(STEPS)


def second_cuts(place: Path, tree: Tree) -> Iterator[tuple[int, Tree]]:
    """What a cut may leave at every operation of the opening of an index that a cut has left before."""
    shutil.rmtree(place, ignore_errors=True)
    trace = place.with_suffix(".trace")
    trace.unlink(missing_ok=True)
    write_tree(tree, place)
    disk = Disk.holding(place)
    ask(open_and_close, {"folder": str(place), "trace": str(trace)})
    for number in cuts(disk, read_trace(trace, place)):
        for survival in (STRICT, Survival(seed=str(number))):
            yield number, disk.after_cut(survival)
