"""One writer and many readers of one index, in processes and in threads: everybody sees what was acknowledged."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.commands import TORTURE, digest
from support.expect import complaint
from support.index_faults.checks import deviations
from support.index_faults.children import Child, quick_folder, start
from support.index_faults.crowd import Counter, Crowd, back_up, copy, create, doze, hold, read, write
from support.index_faults.workload import CONSTANTS, SETTINGS, Model, operations

import minwise as mw

OPERATIONS = 2000 if TORTURE else 200
# Copies that are compared with what there was.
CHECKED_COPIES = 8
# A writer is killed so often on the way.
DEATHS = 4
KINDS = {"add": 8, "add_batch": 8, "add_unique": 3, "remove": 6, "replace": 4, "flush": 2, "compact": 1}
MERGES = 5
RACES = 100 if TORTURE else 5


class Scene:
    """An index with one document, and what everybody who comes to it is to know.

    Attributes:
        crowd: The operations, the first of which is done.
        path: The index.
        counter: How many operations were acknowledged.
        job: All that as a child needs it.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        draw = random.Random(seed)
        kinds = draw.choices(list(KINDS), list(KINDS.values()), k=OPERATIONS - 1)
        self.crowd = Crowd(list(operations(draw, Model(), ["add", *kinds], folder)))
        self.path, self.counter = folder / "index.mw", Counter(folder / "acknowledged")
        with mw.Index.create(self.path, **SETTINGS) as index:
            self.crowd.operations[0].run(index)
        self.counter.set(1)
        self.job: dict[str, Any] = {
            "path": str(self.path), "counter": str(folder / "acknowledged"), "constants": CONSTANTS,
            "operations": [asdict(one) for one in self.crowd.operations],
        }  # fmt: skip

    def write_all(self) -> None:
        """Has everything done by one writer after the other, of which all but the last are killed."""
        for death in range(1, DEATHS + 1):
            writer = start(write, {**self.job, "until": OPERATIONS * death // DEATHS})
            writer.receive()
            if death < DEATHS:
                writer.kill()
            else:
                writer.send("end")
            writer.wait()
        assert self.counter.get() == OPERATIONS


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A new index and a crowd that is to come."""
    with quick_folder() as folder:
        yield Scene(folder, 3)


@pytest.mark.timeout(1200)
def test_readers_see_everything_acknowledged_before(scene: Scene) -> None:
    """Across flushes, merges, compactions, removals and the deaths of writers; whether a reader stays or comes anew."""
    sleeper = start(doze, {**scene.job, "seed": 0})
    assert sleeper.receive() == []
    readers = [start(read, {**scene.job, "seed": seed, "reopen": seed == 1}) for seed in (1, 2, 3)]
    for reader in readers:
        assert reader.receive() == "open"
    scene.write_all()
    for reader in readers:
        report = reader.receive()
        assert report["wrong"] == []
        assert report["asked"] >= 20, "it never asked while somebody wrote"
        assert reader.wait() == 0
    for _ in range(2):
        sleeper.send("ask")
        assert sleeper.receive() == []
    assert sleeper.wait() == 0
    last = max(int(path.stem.partition("-")[2]) for path in scene.path.glob("segment-*"))
    assert last >= MERGES * 5, "there were not many merges"


@pytest.mark.timeout(1200)
def test_a_backup_by_a_reader_is_a_state_that_was(scene: Scene) -> None:
    """Each copy that is made while another process writes is whole, and holds what there was at one moment."""
    copier = start(copy, scene.job)
    assert copier.receive() == "open"
    scene.write_all()
    copies = list(iter(copier.receive, None))
    assert copier.wait() == 0
    assert len(copies) >= 3
    models = list(states(scene.crowd))
    for path, before, after in copies[:: max(1, len(copies) // CHECKED_COPIES)]:
        with mw.Index.open(path) as index:
            assert index.verify() == []
            candidates = [model for model in models[before : after + 2] if len(model.documents) == len(index)]
            assert any(
                deviations(index, model, [*model.documents, *model.gone]) == [] for model in candidates
            ), (path, before, after)  # fmt: skip


def states(crowd: Crowd) -> Iterator[Model]:
    """What there is after each number of operations, from none on."""
    model = Model()
    yield model.copy()
    for operation in crowd.operations:
        model.apply(operation)
        yield model.copy()


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_threads(scene: Scene, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads ask one index while a fifth writes, through the same object or through another."""
    set_here(monkeypatch)
    writer = mw.Index.open(scene.path, "w")
    reader = writer if shared else mw.Index.open(scene.path)
    wrong: list[object] = []
    asked = [0] * 4

    def ask(number: int) -> None:
        draw = random.Random(number)
        try:
            while not wrong and scene.counter.get() < OPERATIONS:
                wrong.extend(scene.crowd.ask(reader, draw, scene.counter.get))
                asked[number] += 1
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, OPERATIONS):
        scene.crowd.operations[number].run(writer)
        scene.counter.set(number + 1)
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(asked) >= 10
    reader.close()
    writer.close()


def set_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little data makes many segments in this process too."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name, value)


@pytest.fixture
def path() -> Iterator[Path]:
    """An index with a document."""
    with quick_folder() as folder:
        with mw.Index.create(folder / "index.mw", **SETTINGS) as index:
            index.add(["here"], ["one two three four five six seven"])
        yield folder / "index.mw"


def test_a_second_writer_of_another_process_is_refused(path: Path) -> None:
    """It learns who writes; readers may come; and after kill -9 of the first the way is free."""
    holder = start(hold, str(path))
    assert holder.receive() == 1
    for _ in range(2):
        assert str(holder.pid) in complaint(mw.ConfigError, lambda: mw.Index.open(path, "w"))
    with mw.Index.open(path) as reader:
        assert "here" in reader
    holder.kill()
    holder.wait()
    with mw.Index.open(path, "w") as writer:
        assert writer.remove(["here"]) == 1


def test_a_second_writer_of_this_process_is_refused(path: Path) -> None:
    """So that two threads do not write over each other; the first goes on."""
    with mw.Index.open(path, "w") as first:
        assert str(os.getpid()) in complaint(mw.ConfigError, lambda: mw.Index.open(path, "w"))
        with mw.Index.open(path) as reader:
            assert "here" in reader
        assert str(os.getpid()) in complaint(mw.ConfigError, lambda: mw.Index.open(path, "w"))
        holder = start(hold, str(path))
        with pytest.raises(AssertionError, match=f"ConfigError: .*{os.getpid()}"):
            holder.receive()
        holder.wait()
        first.add(["there"], ["eight nine ten eleven twelve"])
    with mw.Index.open(path, "w") as next_one:
        assert len(next_one) == 2


def test_an_index_is_not_created_over_another(path: Path) -> None:
    """Neither while it is open nor when it is closed; what is in it stays."""
    for mode in ("w", "r"):
        with mw.Index.open(path, mode) as index:
            with pytest.raises((mw.ConfigError, FileExistsError)):
                mw.Index.create(path, **SETTINGS)
            assert "here" in index


def answers_at_once(children: list[Child]) -> list[str]:
    """What children say who are told to begin at the same moment."""
    for child in children:
        child.send("begin")
    return [child.receive() for child in children]


def test_one_of_those_who_create_an_index_at_once(path: Path) -> None:
    """One creates it and the others hear so; nobody breaks what another has made."""
    for number in range(RACES):
        new = path.with_name(f"new{number}.mw")
        children = [start(create, {"path": str(new), "name": f"by {one}"}) for one in range(4)]
        said = answers_at_once(children)
        assert said.count("") == 1, said
        with mw.Index.open(new) as index:
            assert f"by {said.index('')}" in index
            assert (len(index), index.verify()) == (1, [])
        for child in children:
            child.kill()
            child.wait()


def test_one_of_those_who_back_up_to_one_place_at_once(path: Path) -> None:
    """Whoever hears that it is done finds a whole copy there, and so does everybody else."""
    for number in range(RACES):
        copied = path.with_name(f"copy{number}.mw")
        children = [start(back_up, {"path": str(path), "copy": str(copied)}) for _ in range(4)]
        said = answers_at_once(children)
        assert said.count("") == 1, said
        with mw.Index.open(copied) as index:
            assert (len(index), index.verify()) == (1, [])
        assert [child.wait() for child in children] == [0] * 4


WRITES: dict[str, Callable[[mw.Index], object]] = {
    "add": lambda index: index.add(["new"], ["a text"]),
    "add_unique": lambda index: index.add_unique(["new"], ["a text"]),
    "remove": lambda index: index.remove(["here"]),
    "flush": lambda index: index.flush(),
    "compact": lambda index: index.compact(),
}


@pytest.mark.parametrize("call", WRITES)
def test_a_reader_may_not_write(path: Path, call: str) -> None:
    """It says what to do instead, and not a byte changes."""
    with mw.Index.open(path) as index:
        before = digest(path)
        assert "mode" in complaint(mw.ConfigError, lambda: WRITES[call](index))
        assert digest(path) == before
        assert len(index) == 1
