"""Damage to the files of an index, one flipped bit or one truncation at a time, and the reaction of the index.

`regions` maps the content of every file, so that no kind of page, block or header is left out. `examine` runs in a
child that damages copies: a crash or a hang ends the child, and the parent knows which damage caused it.
"""

import random
import shutil
import signal
import struct
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

import minwise as mw
from minwise.errors import FormatError, InputError
from minwise.index import Damage
from support.index_faults.children import Channel

__all__ = ["Content", "Damaged", "Region", "draw_damages", "examine", "regions"]

DATABASE, LOG, SHARED = "index.db", "index.db-wal", "index.db-shm"
BLOCK_BYTES = 1024
# Sizes that SQLite's documentation of its file formats gives.
DATABASE_HEADER_BYTES, PAGE_HEADER_BYTES, LOG_HEADER_BYTES, FRAME_HEADER_BYTES, SHARED_HEADER_BYTES = (
    100,
    12,
    32,
    24,
    136,
)
SECONDS_PER_DAMAGE = 30
# Weights of the ways to choose a damage: each kind of region in turn, any byte, or a truncation.
CHOICES = {"turn": 4, "anywhere": 5, "truncation": 1}
# Weights of the first use: opened for reading or for writing, or open for reading before the damage.
OPENERS = {"reader": 6, "writer": 2, "open reader": 2}
# Texts by id, including those of removed documents.
Content = dict[str, str]
Answers = dict[str, Any]


class DamageError(str):
    """The answer to a call that raised a damage error: its message."""


@dataclass(frozen=True)
class Region:
    """Bytes of a file with one kind of content."""

    file: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Damaged:
    """One damage.

    Attributes:
        file: The name of the file.
        kind: The kind of the damaged region.
        offset: The byte with the flipped bit, or the length after truncation.
        bit: The flipped bit; None for a truncation.
        opener: The first use of the damaged index; a key of `OPENERS`.
    """

    file: str
    kind: str
    offset: int
    bit: int | None
    opener: str

    def apply(self, folder: Path) -> None:
        """Damage the file in a folder."""
        with (folder / self.file).open("r+b") as file:
            if self.bit is None:
                file.truncate(self.offset)
                return
            file.seek(self.offset)
            (byte,) = file.read(1)
            file.seek(self.offset)
            file.write(bytes([byte ^ 1 << self.bit]))

    def is_named(self, text: str) -> bool:
        """Return whether a message names the file; the files of the database count as one."""
        return (DATABASE if self.file.startswith(DATABASE) else f"/{self.file}") in text


def regions(folder: Path) -> list[Region]:
    """Return the regions of all files of an index."""
    owners = page_owners(folder)
    found: list[Region] = []
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        if path.name == DATABASE:
            found += database_regions(path.read_bytes(), owners)
        elif path.name == LOG:
            found += log_regions(path.read_bytes(), owners)
        elif path.name == SHARED:
            found.append(Region(path.name, "header", 0, SHARED_HEADER_BYTES))
            found.append(Region(path.name, "hashes", SHARED_HEADER_BYTES, size))
        else:
            last = (size - 1) // BLOCK_BYTES
            for block in range(last + 1):
                kind = "first block" if block == 0 else "last block" if block == last else "block"
                start = block * BLOCK_BYTES
                found.append(Region(path.name, kind, start, min(size, start + BLOCK_BYTES)))
    return [region for region in found if region.end > region.start]


def page_owners(folder: Path) -> dict[int, str]:
    """Return table and type of every page in use."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch) / "copy")
        connection = apsw.Connection(str(copy / DATABASE))
        rows = list(connection.execute("SELECT pageno, name, pagetype FROM dbstat"))
        connection.close()
    return {number: f"{table} {kind}" for number, table, kind in rows}


def database_regions(data: bytes, owners: dict[int, str]) -> Iterator[Region]:
    """Yield header and pages of a database, each page with its header apart."""
    page_bytes = page_size(struct.unpack_from(">H", data, 16)[0])
    yield Region(DATABASE, "header", 0, DATABASE_HEADER_BYTES)
    for start in range(0, len(data), page_bytes):
        owner = owners.get(start // page_bytes + 1, "free")
        first = max(start, DATABASE_HEADER_BYTES)
        yield Region(DATABASE, f"{owner}: header", first, first + PAGE_HEADER_BYTES)
        yield Region(DATABASE, owner, first + PAGE_HEADER_BYTES, start + page_bytes)


def log_regions(data: bytes, owners: dict[int, str]) -> Iterator[Region]:
    """Yield header and frames of a write-ahead log, each frame with its header apart."""
    if not data:
        return
    yield Region(LOG, "header", 0, LOG_HEADER_BYTES)
    frame_bytes = FRAME_HEADER_BYTES + page_size(struct.unpack_from(">I", data, 8)[0])
    for start in range(LOG_HEADER_BYTES, len(data), frame_bytes):
        owner = owners.get(struct.unpack_from(">I", data, start)[0], "free")
        yield Region(LOG, f"{owner}: header", start, start + FRAME_HEADER_BYTES)
        yield Region(LOG, owner, start + FRAME_HEADER_BYTES, start + frame_bytes)


def page_size(field: int) -> int:
    """Return the bytes of a page; 65536 does not fit into two bytes and is stored as 1."""
    return 65536 if field == 1 else field


def draw_damages(draw: random.Random, all_regions: list[Region], count: int) -> list[Damaged]:
    """Draw damages of every kind of region and every file, and the rest in proportion to size."""
    kinds: dict[tuple[str, str], list[Region]] = defaultdict(list)
    for region in all_regions:
        kinds[region.file, region.kind].append(region)
    turns = list(kinds.values())
    draw.shuffle(turns)
    files = sorted({region.file for region in all_regions})
    sizes = [region.end - region.start for region in all_regions]
    found = []
    for number in range(count):
        opener = draw.choices(list(OPENERS), list(OPENERS.values()))[0]
        way = draw.choices(list(CHOICES), list(CHOICES.values()))[0] if number >= len(turns) + len(files) else "turn"
        if way == "truncation" or number < len(files):
            file = files[number % len(files)]
            size = max(region.end for region in all_regions if region.file == file)
            found.append(
                Damaged(file, "truncation", draw.randrange(size), None, "reader" if opener == "open reader" else opener)
            )
        else:
            choice = turns[number % len(turns)] if way == "turn" else draw.choices(all_regions, sizes)
            region = draw.choice(choice)
            offset = draw.randrange(region.start, region.end)
            if (
                region.file == SHARED and opener == "open reader"
            ):  # shared memory of SQLite, which does not read the file again
                opener = "reader"
            found.append(Damaged(region.file, region.kind, offset, draw.randrange(8), opener))
    return found


def all_answers(index: mw.Index, content: Content) -> Answers:
    """Return every answer of an index, by query."""
    answers: Answers = {"documents": answer(lambda: len(index))}
    for name, text in content.items():
        answers[f"contains {name}"] = answer(lambda name=name: name in index)  # type: ignore[misc]
        answers[f"get {name}"] = answer(lambda name=name: stored(index, name))  # type: ignore[misc]
        answers[f"query {name}"] = answer(lambda text=text: hits(index, text))  # type: ignore[misc]
    return answers


def answer(ask: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the result of a call, or its damage error; any other error is unexpected."""
    try:
        return ask()
    except (FormatError, OSError) as error:
        return DamageError(error)


def stored(index: mw.Index, name: str) -> Any:  # noqa: ANN401
    """Return all stored values of a document, or that it is missing."""
    try:
        document = index.get(name)
    except InputError:
        return "missing"
    elements = None if document.elements is None else document.elements.tolist()
    return (document.id, document.metadata, document.text, elements)


def hits(index: mw.Index, text: str) -> Any:  # noqa: ANN401
    """Return the complete answer to a text."""
    found = index.query(text)
    return (*found.hits, found.truncated)


def examine(channel: Channel) -> None:
    """Damage one copy of an index after the other, and send the outcome and the problems of each."""
    job = channel.receive()
    whole, copy, content = Path(job["folder"]), Path(job["scratch"]) / "index.mw", job["content"]
    shutil.copytree(whole, copy)
    with mw.Index.open(copy) as index:
        expected = all_answers(index, content)
        assert [str(damage) for damage in index.verify()] == []
    for number, parts in job["damages"]:
        signal.alarm(SECONDS_PER_DAMAGE)
        channel.send({"begins": number})
        shutil.rmtree(copy)
        shutil.copytree(whole, copy)
        try:
            outcome, problems = open_damaged(copy, Damaged(**parts), content, expected)
        except Exception as error:
            outcome, problems = "raised", [f"{type(error).__name__}: {error}"]
        channel.send({"done": number, "outcome": outcome, "problems": problems})


def open_damaged(copy: Path, damaged: Damaged, content: Content, expected: Answers) -> tuple[str, list[str]]:
    """Use a damaged index, and return the outcome and the problems."""
    if damaged.opener == "open reader":
        with mw.Index.open(copy) as index:
            damaged.apply(copy)
            return judge(damaged, expected, all_answers(index, content), index.verify())
    damaged.apply(copy)
    if damaged.opener == "writer":
        added, message = write(copy)
        expected = {**expected, "documents": expected["documents"] + added}
        if message and not damaged.is_named(message):
            return "detected", [f"names another file: {message}"]
    try:
        index = mw.Index.open(copy)
    except FormatError as error:
        return "refused", [] if damaged.is_named(str(error)) else [f"names another file: {error}"]
    except OSError:
        return "refused", []
    with index:
        return judge(damaged, expected, all_answers(index, content), index.verify())


def write(copy: Path) -> tuple[int, str]:
    """Write to a damaged index; return the number of added documents and the error that stopped it."""
    added = 0
    try:
        with mw.Index.open(copy, "w") as index:
            added = index.add(["added later"], ["one two three four five six seven eight nine ten"]).added
            index.compact()
    except FormatError as error:
        return added, str(error)
    except OSError:
        pass
    return added, ""


def judge(damaged: Damaged, expected: Answers, answers: Answers, reports: list[Damage]) -> tuple[str, list[str]]:
    """Check that answers are right, or that an error or `verify` reports the damage and names the file."""
    detected = {query: found for query, found in answers.items() if isinstance(found, DamageError)}
    silent = [query for query, found in answers.items() if query not in detected and found != expected[query]]
    # A writer has copied pages, so that the damage may be in another file now.
    named = [report for report in reports if damaged.opener == "writer" or damaged.is_named(report.file)]
    problems = [
        f"{query}: names another file: {found}" for query, found in detected.items() if not damaged.is_named(found)
    ]
    if silent and not named:
        problems.append(f"wrong answer without an error: {silent}, reported {reports}")
    if detected and not named:
        problems.append(f"detected, but not reported: {detected}, reported {reports}")
    if len(named) < len(reports):
        problems.append(f"reports another file: {reports}")
    outcome = "silent" if silent else "detected" if detected else "reported" if reports else "harmless"
    return outcome, problems
