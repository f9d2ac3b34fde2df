"""Concurrent use of one index: what each process may see while a writer works, and the children that check it.

A writer runs operations that all processes know in advance, and stores in shared memory how many it has acknowledged.
A process that reads that number before and after a query knows which documents must be, may be and must not be in the
answer.
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
from minwise.errors import InputError
from minwise.index import Hit
from support.index_faults.children import Channel
from support.index_faults.workload import SETTINGS, Document, Model, Operation, jaccard, set_constants

__all__ = ["Counter", "History", "Version", "back_up", "copy", "create", "hold_open", "query_later", "read", "write"]

COUNT = struct.Struct("<q")


class Counter:
    """A number in memory that several processes share; one of them sets it."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(COUNT.pack(0))
        with path.open("r+b") as file:
            # One store of eight bytes. `struct.pack_into` writes zeros first, which another process can read.
            self._number = memoryview(mmap.mmap(file.fileno(), COUNT.size)).cast("q")

    def get(self) -> int:
        """Return the number."""
        return self._number[0]

    def set(self, number: int) -> None:
        """Set the number."""
        self._number[0] = number


@dataclass(frozen=True)
class Version:
    """One version of a document.

    Attributes:
        document: The document.
        added_by: The number of the operation that adds it.
        removed_by: The number of the operation that removes or replaces it.
    """

    document: Document
    added_by: int
    removed_by: float

    def is_visible(self, before: int, after: int) -> bool:
        """Return whether it is visible while at least ``before`` and at most ``after`` operations are acknowledged."""
        return self.added_by < before and self.removed_by > after

    def may_be_visible(self, before: int, after: int) -> bool:
        """Return whether it may be visible meanwhile: one operation may be done but not acknowledged."""
        return self.added_by <= after and self.removed_by >= before


class History:
    """The operations, and the versions of documents that they create.

    Attributes:
        operations: All operations on the index, in order.
        versions: Every version of every document, in order of addition.
    """

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self.versions = document_versions(operations)
        self._of_name: dict[str, list[Version]] = {}
        for version in self.versions:
            self._of_name.setdefault(str(version.document.id), []).append(version)

    def ask(self, index: mw.Index, draw: random.Random, acknowledged: Callable[[], int]) -> list[str]:
        """Return the problems in the answers about one document, mostly one of the latest."""
        known = self.versions[: bisect_left(self.versions, acknowledged(), key=lambda version: version.added_by)]
        version = draw.choice(known[-30:] if draw.random() < 0.6 else known)
        document = version.document
        before = acknowledged()
        answer = index.query(document.text)
        contained, stored = document.id in index, get(index, document.id)
        after = acknowledged()
        problems = [what for hit in answer for what in self.hit_problems(hit, document.text, before, after)]
        if version.is_visible(before, after):
            found = (document.id, 1.0) in [(hit.id, hit.similarity) for hit in answer]
            if not (found and contained and stored == (document.id, document.metadata, document.text)):
                problems.append(f"{document}: {answer}, {contained}, {stored}")
        possible = any(other.may_be_visible(before, after) for other in self._of_name[str(document.id)])
        if not possible and (contained or stored):
            problems.append(f"{document.id} is removed: {contained}, {stored}")
        return [f"between {before} and {after} operations: {what}" for what in problems]

    def hit_problems(self, hit: Hit, text: str, before: int, after: int) -> Iterator[str]:
        """Return the problems of a hit, which must be a document that may be visible."""
        for version in self._of_name.get(str(hit.id), []):
            document = version.document
            expected = Hit(document.id, jaccard(text, document.text), document.metadata, exact=True)
            if version.may_be_visible(before, after) and hit == expected:
                return
        yield f"{hit} must not be found"


def document_versions(operations: list[Operation]) -> list[Version]:
    """Return the versions of all documents, in order of addition."""
    model = Model()
    current: dict[str, Version] = {}
    ended = []
    for number, operation in enumerate(operations):
        model.apply(operation)
        for name in map(str, operation.ids):
            old, document = current.get(name), model.documents.get(name)
            if old is not None and old.document is not document:
                ended.append(replace(current.pop(name), removed_by=number))
            if document is not None and name not in current:
                current[name] = Version(document, number, inf)
    return sorted([*ended, *current.values()], key=lambda version: version.added_by)


def get(index: mw.Index, name: str | int) -> tuple[Any, ...] | None:
    """Return id, metadata and text of a document, or None."""
    try:
        stored = index.get(name)
    except InputError:
        return None
    return (stored.id, stored.metadata, stored.text)


# Functions of children. The job of each holds the paths of index and counter, and all operations.


def write(channel: Channel) -> None:
    """Run the operations from the first pending one up to a number; then keep the index open until told to stop."""
    job = channel.receive()
    set_constants(job["constants"])
    counter, history = Counter(Path(job["counter"])), history_from(job)
    with mw.Index.open(job["path"], "w") as index:
        for number in range(counter.get(), job["until"]):
            history.operations[number].run(index)
            counter.set(number + 1)
        channel.send({"segments": index.stats()["segments"]})
        channel.receive()


def read(channel: Channel) -> None:
    """Query without a pause until all operations are done: one open index, or reopened for every query."""
    job = channel.receive()
    counter, history = Counter(Path(job["counter"])), history_from(job)
    draw = random.Random(job["seed"])
    total = len(history.operations)
    queries = 0
    problems: list[str] = []
    index = mw.Index.open(job["path"])
    channel.send("open")
    while not problems and counter.get() < total:
        problems = history.ask(index, draw, counter.get)
        queries += 1
        if job["reopen"]:
            index.close()
            index = mw.Index.open(job["path"])
    # An index that stayed open sees the final state, despite merges and removals since its last query.
    for _ in range(50):
        problems += history.ask(index, draw, counter.get)
    index.close()
    channel.send({"queries": queries, "problems": problems[:3]})


def query_later(channel: Channel) -> None:
    """Query once, and again on request."""
    job = channel.receive()
    counter, history = Counter(Path(job["counter"])), history_from(job)
    with mw.Index.open(job["path"]) as index:
        for _ in range(2):
            channel.send(history.ask(index, random.Random(job["seed"]), counter.get))
            channel.receive()
        channel.send([what for seed in range(100) for what in history.ask(index, random.Random(seed), counter.get)])


def copy(channel: Channel) -> None:
    """Make backups without a pause until all operations are done; send the counter before and after each."""
    job = channel.receive()
    counter, total = Counter(Path(job["counter"])), len(job["operations"])
    with mw.Index.open(job["path"]) as index:
        channel.send("open")
        number = 0
        while (before := counter.get()) < total:
            path = f"{job['path']}.copy{number}"
            index.backup(path)
            channel.send([path, before, counter.get()])
            number += 1
    channel.send(None)


def hold_open(channel: Channel) -> None:
    """Open the index for writing, and keep it open until told to stop."""
    with mw.Index.open(channel.receive(), "w") as index:
        channel.send(len(index))
        channel.receive()


def create(channel: Channel) -> None:
    """Create an index on request, and add a document; send the error or an empty string."""
    job = channel.receive()
    channel.receive()
    try:
        with mw.Index.create(job["path"], **SETTINGS) as index:
            index.add([job["name"]], ["one two three four five six"])
            channel.send("")
            channel.receive()
    except (mw.MinwiseError, OSError) as error:
        channel.send(f"{type(error).__name__}: {error}")


def back_up(channel: Channel) -> None:
    """Make one backup on request; send the error or an empty string."""
    job = channel.receive()
    with mw.Index.open(job["path"]) as index:
        channel.receive()
        try:
            index.backup(job["copy"])
        except (mw.MinwiseError, OSError) as error:
            channel.send(f"{type(error).__name__}: {error}")
        else:
            channel.send("")


def history_from(job: dict[str, Any]) -> History:
    """Return the history of a job."""
    return History([Operation(**parts) for parts in job["operations"]])
