"""A flipped bit or a truncation in any file of an index: no crash, and no wrong answer without an error.

By default 500 damages of small indexes with every kind of content; `make torture` makes it 10,000.
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
from support.index_faults.children import fast_folder, start
from support.index_faults.damage import Content, Damaged, draw_damages, examine, regions

import minwise as mw
from minwise.index import StoreName

# For each of the four indexes.
DAMAGES = 2500 if TORTURE else 125
# Number of crashes after which the test stops.
MAX_CRASHES = 3
LONG_TEXT_WORDS = 1500


@dataclass(frozen=True)
class Subject:
    """An index to damage.

    Attributes:
        folder: The undamaged index.
        content: The texts by id.
        damages: The damages to apply to copies of it.
    """

    folder: Path
    content: Content
    damages: list[Damaged]


def build(folder: Path, store: StoreName, *, live: bool) -> Subject:
    """Build an index with segments, recent and removed documents; a live one is copied while a writer has it open."""
    draw = random.Random(f"{store} {live}")
    index = mw.Index.create(
        folder / "original.mw",
        threshold=0.7,
        slots=64,
        seed=5,
        store_text=store == "text",
        sketch_only=store == "sketch",
    )
    content: Content = {}
    for part, count in enumerate((24, 8) if live else (24, 8, 12)):
        add(index, draw, content, part, count)
        index.remove(list(content)[part :: 16 - part])
        index.flush()
    if live:  # so that the database has content, not only its log
        index.close()
        index = mw.Index.open(folder / "original.mw", "w")
        index.add(["late"], [content.setdefault("late", text_of(draw, 40))])
        index.flush()
    add(index, draw, content, 9, 6)
    index.remove(list(content)[-1:])
    if not live:
        index.close()
    copy = Path(shutil.copytree(folder / "original.mw", folder / "copy.mw"))
    index.close()
    all_regions = regions(copy)
    damages = draw_damages(draw, all_regions, DAMAGES)
    assert {(damage.file, damage.kind) for damage in damages} >= {(region.file, region.kind) for region in all_regions}
    return Subject(copy, content, damages)


def add(index: mw.Index, draw: random.Random, content: Content, part: int, count: int) -> None:
    """Add documents: the last is long enough for pages of its own, the others have near-duplicates."""
    texts = [text_of(draw, 40) for _ in range(count // 2)]
    texts += [f"{text} {draw.randrange(100)}" for text in texts[: count - len(texts) - 1]]
    texts.append(text_of(draw, LONG_TEXT_WORDS))
    names = [f"part {part} document {number}" for number in range(count)]
    index.add(names, texts, [{"part": part, "number": number} if number % 2 else None for number in range(count)])
    content.update(zip(names, texts, strict=True))


def text_of(draw: random.Random, words: int) -> str:
    """Return a unique text."""
    return " ".join(f"{draw.randrange(10**6):x}" for _ in range(words))


@pytest.fixture(params=["text-closed", "text-live", "shingles-live", "sketch-closed"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Yield indexes of every kind of store, closed or copied while open."""
    store, _, state = request.param.partition("-")
    with fast_folder() as folder:
        yield build(folder, store, live=state == "live")


@pytest.mark.timeout(3000)
def test_damage_is_detected(subject: Subject) -> None:
    """Every answer is right, or an error names the file, or at least `verify` does; nothing crashes or hangs."""
    problems: dict[str, list[str]] = {}
    outcomes: Counter[str] = Counter()
    left = dict(enumerate(subject.damages))
    while left and outcomes["crashed"] < MAX_CRASHES:
        for number, verdict in verdicts(subject, left):
            outcomes[verdict["outcome"]] += 1
            damaged = left.pop(number)
            if verdict["problems"]:
                problems[str(damaged)] = verdict["problems"]
    assert not problems
    # Most damage hits data that is read: without detections the test would prove nothing.
    assert outcomes["detected"] + outcomes["refused"] > len(subject.damages) / 3, outcomes


def verdicts(subject: Subject, damages: dict[int, Damaged]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the verdict of a child on each damage, until all are done or it crashes."""
    with fast_folder() as scratch:
        numbered = [(number, asdict(damaged)) for number, damaged in damages.items()]
        folders = {"folder": str(subject.folder), "scratch": str(scratch)}
        child = start(examine, {**folders, "content": subject.content, "damages": numbered})
        started = None
        with suppress(EOFError):
            while True:
                event = child.receive()
                if "done" in event:
                    yield event["done"], event
                started = event.get("begins")
        status = child.wait()
        if started is not None:
            yield started, {"outcome": "crashed", "problems": [f"the process ended with status {status}"]}
        assert started is not None or status == 0


@pytest.mark.parametrize("table", ["documents", "texts"])
@pytest.mark.parametrize(
    "change", ["DELETE FROM {0}", "UPDATE {0} SET record = (SELECT record FROM other.{0})"], ids=["missing", "old"]
)
def test_missing_and_old_rows_are_detected(table: str, change: str) -> None:
    """A missing row, or an old one under its number, has no wrong checksum: counts and digest reveal it."""
    with fast_folder() as folder:
        for name, text in (("index", "one two three four five six"), ("other", "six five four three two one")):
            with mw.Index.create(folder / f"{name}.mw", seed=5, store_text=True) as index:
                index.add(["a"], [text])
        connection = apsw.Connection(str(folder / "index.mw/index.db"))
        connection.execute("ATTACH ? AS other", [str(folder / "other.mw/index.db")])
        connection.execute(change.format(table))
        connection.close()
        with mw.Index.open(folder / "index.mw") as index:
            assert {damage.file for damage in index.verify()} == {str(folder / "index.mw/index.db")}
