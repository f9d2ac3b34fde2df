"""Damage to the files of an index, one bit or one cut at a time, and what an index does about it.

`regions` knows what lies where in every file, so that no kind of page, block or header is left out. `examine` is the
child that damages copies: a crash or a hang ends the child, and whoever listens knows at which damage.
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
from support.index_faults.children import Line

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
# Of each damage, how often: in a kind of region that takes its turn, anywhere, and a cut.
WAYS = {"turn": 4, "anywhere": 5, "cut": 1}
# Who meets a damage, how often: somebody who opens the index to read or to write, or who has it open for reading.
MEETING = {"reader": 6, "writer": 2, "insider": 2}
# Texts by id, those of removed documents too.
Content = dict[str, str]
Answers = dict[str, Any]


class Noticed(str):
    """What an answer is if damage was noticed: the message."""


@dataclass(frozen=True)
class Region:
    """Bytes of a file that have one kind of content."""

    file: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Damaged:
    """One damage.

    Attributes:
        file: The name of the file.
        kind: What is damaged.
        place: The byte with a wrong bit, or how many bytes are left.
        bit: Which bit; None for a cut.
        met: Who meets it first; a key of `MEETING`.
    """

    file: str
    kind: str
    place: int
    bit: int | None
    met: str

    def apply(self, folder: Path) -> None:
        """Damages the file in a folder."""
        with (folder / self.file).open("r+b") as file:
            if self.bit is None:
                file.truncate(self.place)
                return
            file.seek(self.place)
            (byte,) = file.read(1)
            file.seek(self.place)
            file.write(bytes([byte ^ 1 << self.bit]))

    def is_named(self, text: str) -> bool:
        """Whether a message names the file; the files of the database are one."""
        return (DATABASE if self.file.startswith(DATABASE) else f"/{self.file}") in text


def regions(folder: Path) -> list[Region]:
    """What lies where in the files of an index."""
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
    """The table and type of every page that is in use."""
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(folder, Path(place) / "copy")
        connection = apsw.Connection(str(copy / DATABASE))
        rows = list(connection.execute("SELECT pageno, name, pagetype FROM dbstat"))
        connection.close()
    return {number: f"{table} {kind}" for number, table, kind in rows}


def database_regions(data: bytes, owners: dict[int, str]) -> Iterator[Region]:
    """Header and pages of a database; of each page the header apart."""
    page_bytes = page_size(struct.unpack_from(">H", data, 16)[0])
    yield Region(DATABASE, "header", 0, DATABASE_HEADER_BYTES)
    for start in range(0, len(data), page_bytes):
        owner = owners.get(start // page_bytes + 1, "free")
        first = max(start, DATABASE_HEADER_BYTES)
        yield Region(DATABASE, f"{owner}: header", first, first + PAGE_HEADER_BYTES)
        yield Region(DATABASE, owner, first + PAGE_HEADER_BYTES, start + page_bytes)


def log_regions(data: bytes, owners: dict[int, str]) -> Iterator[Region]:
    """Header and frames of a write-ahead log; of each frame the header apart."""
    if not data:
        return
    yield Region(LOG, "header", 0, LOG_HEADER_BYTES)
    frame_bytes = FRAME_HEADER_BYTES + page_size(struct.unpack_from(">I", data, 8)[0])
    for start in range(LOG_HEADER_BYTES, len(data), frame_bytes):
        owner = owners.get(struct.unpack_from(">I", data, start)[0], "free")
        yield Region(LOG, f"{owner}: header", start, start + FRAME_HEADER_BYTES)
        yield Region(LOG, owner, start + FRAME_HEADER_BYTES, start + frame_bytes)


def page_size(field: int) -> int:
    """The bytes of a page; 65536 does not fit into two bytes and is written as 1."""
    return 65536 if field == 1 else field


def draw_damages(draw: random.Random, places: list[Region], count: int) -> list[Damaged]:
    """Damages of every kind of region and every file, and for the rest wherever there are most bytes."""
    kinds: dict[tuple[str, str], list[Region]] = defaultdict(list)
    for region in places:
        kinds[region.file, region.kind].append(region)
    turns = list(kinds.values())
    draw.shuffle(turns)
    files = sorted({region.file for region in places})
    sizes = [region.end - region.start for region in places]
    found = []
    for number in range(count):
        met = draw.choices(list(MEETING), list(MEETING.values()))[0]
        way = draw.choices(list(WAYS), list(WAYS.values()))[0] if number >= len(turns) + len(files) else "turn"
        if way == "cut" or number < len(files):
            file = files[number % len(files)]
            size = max(region.end for region in places if region.file == file)
            found.append(Damaged(file, "cut", draw.randrange(size), None, "reader" if met == "insider" else met))
        else:
            choice = turns[number % len(turns)] if way == "turn" else draw.choices(places, sizes)
            region = draw.choice(choice)
            place = draw.randrange(region.start, region.end)
            if region.file == SHARED and met == "insider":  # SQLite's own memory, and no file
                met = "reader"
            found.append(Damaged(region.file, region.kind, place, draw.randrange(8), met))
    return found


def look(index: mw.Index, content: Content) -> Answers:
    """Every answer of an index, by what was asked."""
    answers: Answers = {"documents": answer(lambda: len(index))}
    for name, text in content.items():
        answers[f"contains {name}"] = answer(lambda name=name: name in index)  # type: ignore[misc]
        answers[f"get {name}"] = answer(lambda name=name: stored(index, name))  # type: ignore[misc]
        answers[f"query {name}"] = answer(lambda text=text: hits(index, text))  # type: ignore[misc]
    return answers


def answer(ask: Callable[[], Any]) -> Any:  # noqa: ANN401
    """What comes out, or that damage was noticed; any other error is nobody's to expect."""
    try:
        return ask()
    except (mw.FormatError, OSError) as error:
        return Noticed(error)


def stored(index: mw.Index, name: str) -> Any:  # noqa: ANN401
    """All that is stored of a document, or that it is not there."""
    try:
        document = index.get(name)
    except mw.InputError:
        return "not there"
    elements = None if document.elements is None else document.elements.tolist()
    return (document.id, document.metadata, document.text, elements)


def hits(index: mw.Index, text: str) -> Any:  # noqa: ANN401
    """The whole answer to a text."""
    found = index.query(text)
    return (*found.hits, found.truncated)


def examine(line: Line) -> None:
    """The child: damages one copy of an index after the other and says what was wrong with how that was met."""
    job = line.receive()
    whole, copy, content = Path(job["folder"]), Path(job["scratch"]) / "index.mw", job["content"]
    shutil.copytree(whole, copy)
    with mw.Index.open(copy) as index:
        expected = look(index, content)
        assert [str(damage) for damage in index.verify()] == []
    for number, parts in job["damages"]:
        signal.alarm(SECONDS_PER_DAMAGE)
        line.send({"begins": number})
        shutil.rmtree(copy)
        shutil.copytree(whole, copy)
        try:
            fate, wrong = meet(copy, Damaged(**parts), content, expected)
        except Exception as error:
            fate, wrong = "raised", [f"{type(error).__name__}: {error}"]
        line.send({"done": number, "fate": fate, "wrong": wrong})


def meet(copy: Path, damaged: Damaged, content: Content, expected: Answers) -> tuple[str, list[str]]:
    """How damage is met, and what is wrong with that."""
    if damaged.met == "insider":
        with mw.Index.open(copy) as index:
            damaged.apply(copy)
            return judge(damaged, expected, look(index, content), index.verify())
    damaged.apply(copy)
    if damaged.met == "writer":
        added, complaint = write(copy)
        expected = {**expected, "documents": expected["documents"] + added}
        if complaint and not damaged.is_named(complaint):
            return "noticed", [f"names another file: {complaint}"]
    try:
        index = mw.Index.open(copy)
    except mw.FormatError as error:
        return "refused", [] if damaged.is_named(str(error)) else [f"names another file: {error}"]
    except OSError:
        return "refused", []
    with index:
        return judge(damaged, expected, look(index, content), index.verify())


def write(copy: Path) -> tuple[int, str]:
    """What a writer does to a damaged index, as far as it gets: documents added, and the error that stopped it."""
    added = 0
    try:
        with mw.Index.open(copy, "w") as index:
            added = index.add(["added later"], ["one two three four five six seven eight nine ten"]).added
            index.compact()
    except mw.FormatError as error:
        return added, str(error)
    except OSError:
        pass
    return added, ""


def judge(damaged: Damaged, expected: Answers, answers: Answers, reports: list[mw.Damage]) -> tuple[str, list[str]]:
    """Whether answers are right, or an error or at least `verify` says that they are not, and names the file."""
    noticed = {asked: found for asked, found in answers.items() if isinstance(found, Noticed)}
    silent = [asked for asked, found in answers.items() if asked not in noticed and found != expected[asked]]
    # A writer has copied what it could, so that the damage may be elsewhere now.
    named = [report for report in reports if damaged.met == "writer" or damaged.is_named(report.file)]
    wrong = [f"{asked}: names another file: {found}" for asked, found in noticed.items() if not damaged.is_named(found)]
    if silent and not named:
        wrong.append(f"another answer without a word: {silent}, reported {reports}")
    if noticed and not named:
        wrong.append(f"noticed, but not reported: {noticed}, reported {reports}")
    if len(named) < len(reports):
        wrong.append(f"reports another file: {reports}")
    fate = "silent" if silent else "noticed" if noticed else "reported" if reports else "harmless"
    return fate, wrong
