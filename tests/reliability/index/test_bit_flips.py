"""A wrong bit or a missing end in any file of an index: no crash, no other answer without a word.

By default 500 damages of small indexes that have everything an index can have; `make torture` makes it 10,000.
"""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.commands import TORTURE
from support.index_faults.children import quick_folder, start
from support.index_faults.damage import Content, Damaged, draw_damages, examine, regions

import minwise as mw

# Of each of the four indexes.
DAMAGES = 2500 if TORTURE else 125
# After so many there is no need to go on.
MOST_CRASHES = 3
LONG_TEXT_WORDS = 1500


@dataclass(frozen=True)
class Subject:
    """An index to be damaged.

    Attributes:
        folder: It, which stays whole.
        content: The texts by id.
        damages: What is to be done to copies of it.
    """

    folder: Path
    content: Content
    damages: list[Damaged]


def build(folder: Path, store: str, *, live: bool) -> Subject:
    """An index with segments, recent and removed documents; a live one is copied while a writer has it open."""
    draw = random.Random(f"{store} {live}")
    index = mw.Index.create(folder / "made.mw", threshold=0.7, slots=64, seed=5, store=store)
    content: Content = {}
    for part, count in enumerate((24, 8) if live else (24, 8, 12)):
        add(index, draw, content, part, count)
        index.remove(list(content)[part :: 16 - part])
        index.flush()
    if live:  # what is in the database by now, and not only in its log
        index.close()
        index = mw.Index.open(folder / "made.mw", "w")
        index.add(["late"], [content.setdefault("late", text_of(draw, 40))])
        index.flush()
    add(index, draw, content, 9, 6)
    index.remove(list(content)[-1:])
    if not live:
        index.close()
    whole = Path(shutil.copytree(folder / "made.mw", folder / "whole.mw"))
    index.close()
    places = regions(whole)
    damages = draw_damages(draw, places, DAMAGES)
    assert {(one.file, one.kind) for one in damages} >= {(region.file, region.kind) for region in places}
    return Subject(whole, content, damages)


def add(index: mw.Index, draw: random.Random, content: Content, part: int, count: int) -> None:
    """Adds documents, of which the last is long enough for pages of its own and the others have near-duplicates."""
    texts = [text_of(draw, 40) for _ in range(count // 2)]
    texts += [f"{text} {draw.randrange(100)}" for text in texts[: count - len(texts) - 1]]
    texts.append(text_of(draw, LONG_TEXT_WORDS))
    names = [f"part {part} document {number}" for number in range(count)]
    index.add(names, texts, [{"part": part, "number": number} if number % 2 else None for number in range(count)])
    content.update(zip(names, texts, strict=True))


def text_of(draw: random.Random, words: int) -> str:
    """A text that nobody else has."""
    return " ".join(f"{draw.randrange(10**6):x}" for _ in range(words))


@pytest.fixture(params=["text-closed", "text-live", "shingles-live", "sketch-closed"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Indexes of every kind of store, closed by the writer or copied under its hands."""
    store, _, state = request.param.partition("-")
    with quick_folder() as folder:
        yield build(folder, store, live=state == "live")


@pytest.mark.timeout(3000)
def test_damage_is_noticed(subject: Subject) -> None:
    """Every answer is right, or an error names the file, or at least `verify` does; and nothing crashes or hangs."""
    wrong: dict[str, list[str]] = {}
    fates: Counter[str] = Counter()
    left = dict(enumerate(subject.damages))
    while left and fates["crashed"] < MOST_CRASHES:
        for number, verdict in verdicts(subject, left):
            fates[verdict["fate"]] += 1
            damaged = left.pop(number)
            if verdict["wrong"]:
                wrong[str(damaged)] = verdict["wrong"]
    assert not wrong
    # Most damage hits something that is read: a test in which nothing is noticed would not be one.
    assert fates["noticed"] + fates["refused"] > len(subject.damages) / 3, fates


def verdicts(subject: Subject, damages: dict[int, Damaged]) -> Iterator[tuple[int, dict[str, Any]]]:
    """What a child says of each damage, until there are no more or it does not survive one."""
    with quick_folder() as scratch:
        numbered = [(number, asdict(damaged)) for number, damaged in damages.items()]
        places = {"folder": str(subject.folder), "scratch": str(scratch)}
        child = start(examine, {**places, "content": subject.content, "damages": numbered})
        begun = None
        with suppress(EOFError):
            while True:
                event = child.receive()
                if "done" in event:
                    yield event["done"], event
                begun = event.get("begins")
        status = child.wait()
        if begun is not None:
            yield begun, {"fate": "crashed", "wrong": [f"the process ended with status {status}"]}
        assert begun is not None or status == 0


@pytest.mark.parametrize("table", ["documents", "texts"])
@pytest.mark.parametrize(
    "change", ["DELETE FROM {0}", "UPDATE {0} SET record = (SELECT record FROM other.{0})"], ids=["gone", "old"]
)
def test_a_row_that_is_not_the_last_one_written(table: str, change: str) -> None:
    """If a row is gone, or an old one is back under its number, no checksum is wrong: counts and the digest tell."""
    with quick_folder() as folder:
        for name, text in (("index", "one two three four five six"), ("other", "six five four three two one")):
            with mw.Index.create(folder / f"{name}.mw", seed=5, store="text") as index:
                index.add(["a"], [text])
        connection = apsw.Connection(str(folder / "index.mw/index.db"))
        connection.execute("ATTACH ? AS other", [str(folder / "other.mw/index.db")])
        connection.execute(change.format(table))
        connection.close()
        with mw.Index.open(folder / "index.mw") as index:
            assert {damage.file for damage in index.verify()} == {str(folder / "index.mw/index.db")}
