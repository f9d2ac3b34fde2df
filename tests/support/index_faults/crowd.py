"""Many who use one index at once: what each may see while a writer goes on, and the children that look.

A writer does operations that everybody knows in advance, and notes in memory that all share how many it has
acknowledged. Whoever reads that number before and after a question knows which documents must be in the answer, which
may be and which must not.
"""

import mmap
import random
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import minwise as mw
from support.index_faults.children import Line
from support.index_faults.workload import SETTINGS, Document, Model, Operation, jaccard, set_constants

__all__ = ["Counter", "Crowd", "Version", "back_up", "copy", "create", "doze", "hold", "read", "write"]

COUNT = struct.Struct("<q")


class Counter:
    """A number in a file that several processes have in memory; one of them sets it."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(COUNT.pack(0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), COUNT.size)

    def get(self) -> int:
        """The number."""
        return int(COUNT.unpack_from(self._memory)[0])

    def set(self, number: int) -> None:
        """Another number, which everybody sees from now on."""
        COUNT.pack_into(self._memory, 0, number)


@dataclass(frozen=True)
class Version:
    """A document between the operation that adds it and the one that removes or replaces it, both by their number."""

    document: Document
    born: int
    gone: float

    def surely(self, before: int, after: int) -> bool:
        """Whether it is there as long as at least ``before`` and at most ``after`` operations were acknowledged."""
        return self.born < before and self.gone > after

    def possibly(self, before: int, after: int) -> bool:
        """Whether it may be seen meanwhile: one more operation may have been done than was acknowledged."""
        return self.born <= after and self.gone >= before


class Crowd:
    """What everybody knows: the operations, and what lives from which to which.

    Attributes:
        operations: Everything that is done to the index, in order.
        versions: Every document that ever lives in it, by ascending birth.
    """

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self.versions = lives(operations)
        self._of_name: dict[str, list[Version]] = {}
        for version in self.versions:
            self._of_name.setdefault(str(version.document.id), []).append(version)

    def ask(self, index: mw.Index, draw: random.Random, acknowledged: Callable[[], int]) -> list[str]:
        """What is wrong with the answers about one document; most of the time about one of the latest."""
        known = self.versions[: bisect_left(self.versions, acknowledged(), key=lambda version: version.born)]
        version = draw.choice(known[-30:] if draw.random() < 0.6 else known)
        document = version.document
        before = acknowledged()
        answer = index.query(document.text)
        contained, stored = document.id in index, get(index, document.id)
        after = acknowledged()
        wrong = [what for hit in answer for what in self.of_hit(hit, document.text, before, after)]
        if version.surely(before, after):
            found = (document.id, 1.0) in [(hit.id, hit.similarity) for hit in answer]
            if not (found and contained and stored == (document.id, document.metadata, document.text)):
                wrong.append(f"{document}: {answer}, {contained}, {stored}")
        possible = any(one.possibly(before, after) for one in self._of_name[str(document.id)])
        if not possible and (contained or stored):
            wrong.append(f"{document.id} is removed: {contained}, {stored}")
        return [f"between {before} and {after} operations: {what}" for what in wrong]

    def of_hit(self, hit: mw.Hit, text: str, before: int, after: int) -> Iterator[str]:
        """What is wrong with a hit: it must be a document that may be there."""
        for version in self._of_name.get(str(hit.id), []):
            document = version.document
            right = mw.Hit(document.id, jaccard(text, document.text), document.metadata, exact=True)
            if version.possibly(before, after) and hit == right:
                return
        yield f"{hit} is not to be found"


def lives(operations: list[Operation]) -> list[Version]:
    """The life of every document, by ascending birth."""
    model = Model()
    living: dict[str, Version] = {}
    ended = []
    for number, operation in enumerate(operations):
        model.apply(operation)
        for name in map(str, operation.ids):
            old, document = living.get(name), model.documents.get(name)
            if old is not None and old.document is not document:
                ended.append(replace(living.pop(name), gone=number))
            if document is not None and name not in living:
                living[name] = Version(document, number, inf)
    return sorted([*ended, *living.values()], key=lambda version: version.born)


def get(index: mw.Index, name: str | int) -> tuple[Any, ...] | None:
    """What is stored of a document, if it is there."""
    try:
        stored = index.get(name)
    except mw.InputError:
        return None
    return (stored.id, stored.metadata, stored.text)


# The children. Each gets as its job the path of the index, that of the counter and all operations.


def write(line: Line) -> None:
    """Does operations from the first that nobody has done up to a number; then holds the index until it is told."""
    job = line.receive()
    set_constants(job["constants"])
    counter, crowd = Counter(Path(job["counter"])), crowd_of(job)
    with mw.Index.open(job["path"], "w") as index:
        for number in range(counter.get(), job["until"]):
            crowd.operations[number].run(index)
            counter.set(number + 1)
        line.send({"segments": index.stats()["segments"]})
        line.receive()


def read(line: Line) -> None:
    """Asks without a pause until everything is done: of one index, or opening it again for every question."""
    job = line.receive()
    counter, crowd = Counter(Path(job["counter"])), crowd_of(job)
    draw = random.Random(job["seed"])
    total = len(crowd.operations)
    asked = 0
    wrong: list[str] = []
    index = mw.Index.open(job["path"])
    line.send("open")
    while not wrong and counter.get() < total:
        wrong = crowd.ask(index, draw, counter.get)
        asked += 1
        if job["reopen"]:
            index.close()
            index = mw.Index.open(job["path"])
    # Whatever was merged or removed since the last question, an index that stayed open sees the end.
    for _ in range(50):
        wrong += crowd.ask(index, draw, counter.get)
    index.close()
    line.send({"asked": asked, "wrong": wrong[:3]})


def doze(line: Line) -> None:
    """Asks once, and again when it is told to."""
    job = line.receive()
    counter, crowd = Counter(Path(job["counter"])), crowd_of(job)
    with mw.Index.open(job["path"]) as index:
        for _ in range(2):
            line.send(crowd.ask(index, random.Random(job["seed"]), counter.get))
            line.receive()
        line.send([what for seed in range(100) for what in crowd.ask(index, random.Random(seed), counter.get)])


def copy(line: Line) -> None:
    """Makes backups without a pause until everything is done; each with what was acknowledged before and after it."""
    job = line.receive()
    counter, total = Counter(Path(job["counter"])), len(job["operations"])
    with mw.Index.open(job["path"]) as index:
        line.send("open")
        number = 0
        while (before := counter.get()) < total:
            path = f"{job['path']}.copy{number}"
            index.backup(path)
            line.send([path, before, counter.get()])
            number += 1
    line.send(None)


def hold(line: Line) -> None:
    """Opens the index for writing and keeps it so until it is told to stop."""
    with mw.Index.open(line.receive(), "w") as index:
        line.send(len(index))
        line.receive()


def create(line: Line) -> None:
    """Creates an index when it is told to, and adds a document; or says why it could not."""
    job = line.receive()
    line.receive()
    try:
        with mw.Index.create(job["path"], **SETTINGS) as index:
            index.add([job["name"]], ["one two three four five six"])
            line.send("")
            line.receive()
    except (mw.MinwiseError, OSError) as error:
        line.send(f"{type(error).__name__}: {error}")


def back_up(line: Line) -> None:
    """Makes one backup when it is told to; or says why it could not."""
    job = line.receive()
    with mw.Index.open(job["path"]) as index:
        line.receive()
        try:
            index.backup(job["copy"])
        except (mw.MinwiseError, OSError) as error:
            line.send(f"{type(error).__name__}: {error}")
        else:
            line.send("")


def crowd_of(job: dict[str, Any]) -> Crowd:
    """What everybody knows, from a job."""
    return Crowd([Operation(**parts) for parts in job["operations"]])
