"""Documents that come together, each with a wish of its own; a list of the newest; hits with their texts."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.expect import complaint

import minwise as mw

WORDS = [f"word{number}" for number in range(12)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[mw.Index]:
    """An empty one that stores texts."""
    with mw.Index.create(tmp_path / "news.mw", shingle="word:1", threshold=0.5, store="text", seed=1) as made:
        yield made


def sentence(draw: random.Random) -> str:
    """A few words, often the same as another's."""
    return " ".join(draw.choices(WORDS, k=draw.randint(0, 6)))


@pytest.mark.parametrize("seed", range(20))
def test_together_or_one_by_one(tmp_path: Path, seed: int) -> None:
    """What becomes of documents that come in one call is what becomes of them in calls of their own."""
    draw = random.Random(seed)
    incoming = [
        (draw.randint(0, 9), sentence(draw), draw.random() < 0.5, draw.choice(["skip", "replace"])) for _ in range(30)
    ]
    settings: dict[str, Any] = {"shingle": "word:1", "threshold": 0.5, "seed": 1}
    with (
        mw.Index.create(tmp_path / "together", **settings) as together,
        mw.Index.create(tmp_path / "alone", **settings) as alone,
    ):
        ids, texts, unique, policies = zip(*incoming, strict=True)
        at_once = together.add_each(ids, texts, unique=unique, on_duplicate_id=policies)
        in_turn = [
            alone.add_each([one], [text], unique=wish, on_duplicate_id=policy)[0]
            for one, text, wish, policy in incoming
        ]
        assert at_once == in_turn
        assert together.stats()["commits"] == 1
        assert together.newest().documents[0].id == alone.newest().documents[0].id
        for text in {*texts, sentence(draw)}:
            assert together.query(text, top=30) == alone.query(text, top=30)
        assert together.verify() == []


def test_only_those_who_wish_are_checked(index: mw.Index) -> None:
    """A near-duplicate comes in if it does not ask to be left out; later ones are compared with it."""
    decisions = index.add_each(["a", "b", "c"], ["one two three"] * 3, unique=[False, False, True])
    assert [one.fate for one in decisions] == ["added", "added", "duplicate"]
    assert decisions[2].duplicate_of == "a"
    assert len(index) == 2


def test_an_error_stores_nothing(index: mw.Index) -> None:
    """One whose id is taken, and who does not say what to do then, keeps out all."""
    index.add(["a"], ["one two"])
    message = complaint(mw.InputError, lambda: index.add_each(["b", "a"], ["three", "four"], unique=[True, False]))
    assert message == "id 'a' is there already, with another document; on-duplicate-id skip or replace goes on"
    assert len(index) == 1
    assert "b" not in index
    assert list(index.query("three")) == []


@pytest.mark.parametrize("wishes", [{"unique": [True]}, {"on_duplicate_id": ["skip"]}])
def test_as_many_wishes_as_documents(index: mw.Index, wishes: dict[str, list[object]]) -> None:
    """Neither fewer nor more."""
    message = complaint(mw.InputError, lambda: index.add_each(["a", "b"], ["one", "two"], **wishes))  # type: ignore[arg-type]
    assert message.startswith("there must be as many of unique and on_duplicate_id as ids, got")


def test_the_newest_first(index: mw.Index) -> None:
    """Page after page, without those that were removed, whatever comes meanwhile."""
    index.add(range(10), [f"text {number}" for number in range(10)], [{"n": number} for number in range(10)])
    index.remove([3, 8])
    first = index.newest(4)
    assert [one.id for one in first.documents] == [9, 7, 6, 5]
    assert (first.documents[0].text, first.documents[0].metadata) == ("text 9", {"n": 9})
    index.add(["new"], ["text new"])
    index.remove([4])
    second = index.newest(4, first.next)
    assert [one.id for one in second.documents] == [2, 1, 0]
    assert second.next is None
    assert index.newest(1).documents[0].id == "new"


def test_newest_of_nothing(index: mw.Index) -> None:
    """An empty list, and no more."""
    assert index.newest() == mw.Listing([], None)
    assert index.newest(before=0) == mw.Listing([], None)


def test_a_list_of_long_texts_is_short(index: mw.Index) -> None:
    """Rather than half a gigabyte at once; it goes on where it ended."""
    index.add(range(12), [f"{number} " * 10**6 for number in range(12)])
    first = index.newest(12)
    assert 4 <= len(first.documents) < 12
    rest = index.newest(12, first.next)
    assert [one.id for one in first.documents + rest.documents][:6] == [11, 10, 9, 8, 7, 6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 to 10000, got 0"),
        ({"before": -1}, "before must be a whole number from 0 to 4294967294, got -1"),
        ({"before": "x"}, "before must be a whole number from 0 to 4294967294, got 'x'"),
    ],
)
def test_what_newest_refuses(index: mw.Index, arguments: dict[str, int], message: str) -> None:
    """In one line."""
    assert complaint(mw.ConfigError, lambda: index.newest(**arguments)) == message


def test_hits_with_texts(index: mw.Index) -> None:
    """If they are wanted and there."""
    index.add(["a"], ["one two three"])
    assert index.query("one two three")[0].text is None
    assert index.query("one two three", with_text=True)[0].text == "one two three"


def test_hits_without_stored_texts(tmp_path: Path) -> None:
    """Nothing to show is no error."""
    with mw.Index.create(tmp_path / "index", shingle="word:1") as made:
        made.add(["a"], ["one two three"])
        assert made.query("one two three", with_text=True)[0].text is None
