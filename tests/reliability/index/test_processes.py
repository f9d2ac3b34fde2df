"""One writer and many readers of one index, in processes and in threads: all of them see every acknowledged change."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.commands import TORTURE, digest
from support.expect import error_message
from support.index_faults.checks import differences
from support.index_faults.children import Child, fast_folder, start
from support.index_faults.concurrent_use import (
    Counter,
    History,
    back_up,
    copy,
    create,
    hold_open,
    query_later,
    read,
    write,
)
from support.index_faults.workload import CONSTANTS, SETTINGS, Model, operations

import minwise as mw
from minwise.errors import ConfigError

OPERATIONS = 2000 if TORTURE else 200
# Number of copies that are checked.
CHECKED_COPIES = 8
# Number of writers; all but the last are killed.
WRITERS = 4
KINDS = {"add": 8, "add_batch": 8, "add_unique": 3, "remove": 6, "replace": 4, "flush": 2, "compact": 1, "expire": 1}
MERGES = 5
RACES = 100 if TORTURE else 5


class Scene:
    """An index with one document, and the operations that are to follow.

    Attributes:
        history: The operations, of which the first is done.
        path: The index.
        counter: The number of acknowledged operations.
        job: The same values for a child.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        draw = random.Random(seed)
        kinds = draw.choices(list(KINDS), list(KINDS.values()), k=OPERATIONS - 1)
        self.history = History(list(operations(draw, Model(), ["add", *kinds], folder)))
        self.path, self.counter = folder / "index.mw", Counter(folder / "acknowledged")
        with mw.Index.create(self.path, **SETTINGS) as index:
            self.history.operations[0].run(index)
        self.counter.set(1)
        self.job: dict[str, Any] = {
            "path": str(self.path), "counter": str(folder / "acknowledged"), "constants": CONSTANTS,
            "operations": [asdict(operation) for operation in self.history.operations],
        }  # fmt: skip

    def write_all(self) -> None:
        """Run all operations by one writer after the other; all but the last are killed."""
        for number in range(1, WRITERS + 1):
            writer = start(write, {**self.job, "until": OPERATIONS * number // WRITERS})
            writer.receive()
            if number < WRITERS:
                writer.kill()
            else:
                writer.send("end")
            writer.wait()
        assert self.counter.get() == OPERATIONS


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Yield a new index and its operations."""
    with fast_folder() as folder:
        yield Scene(folder, 3)


@pytest.mark.timeout(1200)
def test_readers_see_everything_acknowledged_before(scene: Scene) -> None:
    """This holds across flushes, merges, compactions, removals and killed writers, for open and for new readers."""
    late_reader = start(query_later, {**scene.job, "seed": 0})
    assert late_reader.receive() == []
    readers = [start(read, {**scene.job, "seed": seed, "reopen": seed == 1}) for seed in (1, 2, 3)]
    for reader in readers:
        assert reader.receive() == "open"
    scene.write_all()
    for reader in readers:
        report = reader.receive()
        assert report["problems"] == []
        assert report["queries"] >= 20, "too few queries during writes"
        assert reader.wait() == 0
    for _ in range(2):
        late_reader.send("ask")
        assert late_reader.receive() == []
    assert late_reader.wait() == 0
    last = max(int(path.stem.partition("-")[2]) for path in scene.path.glob("segment-*"))
    assert last >= MERGES * 5, "too few merges"


@pytest.mark.timeout(1200)
def test_backup_by_a_reader_is_one_consistent_state(scene: Scene) -> None:
    """Each copy made while another process writes is complete, and holds the content of one moment."""
    copier = start(copy, scene.job)
    assert copier.receive() == "open"
    scene.write_all()
    copies = list(iter(copier.receive, None))
    assert copier.wait() == 0
    assert len(copies) >= 3
    models = list(states(scene.history))
    for path, before, after in copies[:: max(1, len(copies) // CHECKED_COPIES)]:
        with mw.Index.open(path) as index:
            assert index.verify() == []
            candidates = [model for model in models[before : after + 2] if len(model.documents) == len(index)]
            assert any(
                differences(index, model, [*model.documents, *model.removed]) == [] for model in candidates
            ), (path, before, after)  # fmt: skip


def states(history: History) -> Iterator[Model]:
    """Yield the content after each number of operations, from 0."""
    model = Model()
    yield model.copy()
    for operation in history.operations:
        model.apply(operation)
        yield model.copy()


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_threads_query_while_another_writes(scene: Scene, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads query one index while a fifth writes, through the same object or through another."""
    set_small_segments(monkeypatch)
    writer = mw.Index.open(scene.path, "w")
    reader = writer if shared else mw.Index.open(scene.path)
    problems: list[object] = []
    queries = [0] * 4

    def ask(number: int) -> None:
        draw = random.Random(number)
        try:
            while not problems and scene.counter.get() < OPERATIONS:
                problems.extend(scene.history.ask(reader, draw, scene.counter.get))
                queries[number] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, OPERATIONS):
        scene.history.operations[number].run(writer)
        scene.counter.set(number + 1)
    for thread in threads:
        thread.join()
    assert problems == []
    assert min(queries) >= 10
    reader.close()
    writer.close()


def set_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let little data create many segments in this process too."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name, value)


@pytest.fixture
def path() -> Iterator[Path]:
    """Yield the path of an index with one document."""
    with fast_folder() as folder:
        with mw.Index.create(folder / "index.mw", **SETTINGS) as index:
            index.add(["here"], ["one two three four five six seven"])
        yield folder / "index.mw"


def test_second_writer_in_another_process_is_refused(path: Path) -> None:
    """The error names the process; readers are admitted; after kill -9 the lock is free."""
    holder = start(hold_open, str(path))
    assert holder.receive() == 1
    for _ in range(2):
        assert str(holder.pid) in error_message(ConfigError, lambda: mw.Index.open(path, "w"))
    with mw.Index.open(path) as reader:
        assert "here" in reader
    holder.kill()
    holder.wait()
    with mw.Index.open(path, "w") as writer:
        assert writer.remove(["here"]) == 1


def test_second_writer_in_this_process_is_refused(path: Path) -> None:
    """The first writer stays usable."""
    with mw.Index.open(path, "w") as first:
        assert str(os.getpid()) in error_message(ConfigError, lambda: mw.Index.open(path, "w"))
        with mw.Index.open(path) as reader:
            assert "here" in reader
        assert str(os.getpid()) in error_message(ConfigError, lambda: mw.Index.open(path, "w"))
        holder = start(hold_open, str(path))
        with pytest.raises(AssertionError, match=f"ConfigError: .*{os.getpid()}"):
            holder.receive()
        holder.wait()
        first.add(["there"], ["eight nine ten eleven twelve"])
    with mw.Index.open(path, "w") as second:
        assert len(second) == 2


def test_create_does_not_overwrite_an_index(path: Path) -> None:
    for mode in ("w", "r"):
        with mw.Index.open(path, mode) as index:
            with pytest.raises((ConfigError, FileExistsError)):
                mw.Index.create(path, **SETTINGS)
            assert "here" in index


def simultaneous_answers(children: list[Child]) -> list[str]:
    """Start all children at the same moment, and return their answers."""
    for child in children:
        child.send("begin")
    return [child.receive() for child in children]


def test_concurrent_creation_succeeds_once(path: Path) -> None:
    """One process creates it, and the others get an error."""
    for number in range(RACES):
        new = path.with_name(f"new{number}.mw")
        children = [start(create, {"path": str(new), "name": f"by {number}"}) for number in range(4)]
        answers = simultaneous_answers(children)
        assert answers.count("") == 1, answers
        with mw.Index.open(new) as index:
            assert f"by {answers.index('')}" in index
            assert (len(index), index.verify()) == (1, [])
        for child in children:
            child.kill()
            child.wait()


def test_concurrent_backups_to_one_path_succeed_once(path: Path) -> None:
    """One process creates a complete copy, and the others get an error."""
    for number in range(RACES):
        copied = path.with_name(f"copy{number}.mw")
        children = [start(back_up, {"path": str(path), "copy": str(copied)}) for _ in range(4)]
        answers = simultaneous_answers(children)
        assert answers.count("") == 1, answers
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
def test_reader_refuses_to_write(path: Path, call: str) -> None:
    """The error names the mode, and no byte changes."""
    with mw.Index.open(path) as index:
        before = digest(path)
        assert "mode" in error_message(ConfigError, lambda: WRITES[call](index))
        assert digest(path) == before
        assert len(index) == 1
