"""Additions with options per document, pages of the newest documents, and hits with texts."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.index import Listing
from minwise.index.result_types import OnDuplicateId

WORDS = [f"word{number}" for number in range(12)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[mw.Index]:
    """Yield an empty index that stores texts."""
    with mw.Index.create(tmp_path / "news.mw", shingle="word:1", threshold=0.5, store_text=True, seed=1) as created:
        yield created


def sentence(draw: random.Random) -> str:
    """Return a few words, often equal to those of another sentence."""
    return " ".join(draw.choices(WORDS, k=draw.randint(0, 6)))


@pytest.mark.parametrize("seed", range(20))
def test_one_call_decides_like_one_call_per_document(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    choices: list[OnDuplicateId] = ["skip", "replace"]
    documents = [(draw.randint(0, 9), sentence(draw), draw.random() < 0.5, draw.choice(choices)) for _ in range(30)]
    settings: dict[str, Any] = {"shingle": "word:1", "threshold": 0.5, "seed": 1}
    with (
        mw.Index.create(tmp_path / "batched", **settings) as batched,
        mw.Index.create(tmp_path / "single", **settings) as single,
    ):
        ids, texts, unique, policies = zip(*documents, strict=True)
        batch_decisions = batched.add_each(ids, texts, unique=unique, on_duplicate_id=policies)
        single_decisions = [
            single.add_each([document_id], [text], unique=check, on_duplicate_id=policy)[0]
            for document_id, text, check, policy in documents
        ]
        assert batch_decisions == single_decisions
        assert batched.stats()["commits"] == 1
        assert batched.newest().documents[0].id == single.newest().documents[0].id
        for text in {*texts, sentence(draw)}:
            assert batched.query(text, top=30) == single.query(text, top=30)
        assert batched.verify() == []


def test_unique_applies_to_single_documents(index: mw.Index) -> None:
    """A document without ``unique`` is added although it has a near-duplicate, and later ones are compared with it."""
    decisions = index.add_each(["a", "b", "c"], ["one two three"] * 3, unique=[False, False, True])
    assert [decision.fate for decision in decisions] == ["added", "added", "duplicate"]
    assert decisions[2].duplicate_of == "a"
    assert len(index) == 2


def test_taken_id_with_policy_error_stores_nothing(index: mw.Index) -> None:
    index.add(["a"], ["one two"])
    message = error_message(InputError, lambda: index.add_each(["b", "a"], ["three", "four"], unique=[True, False]))
    assert message == "id 'a' is in the index with another document; set on_duplicate_id to 'skip' or 'replace'"
    assert len(index) == 1
    assert "b" not in index
    assert list(index.query("three")) == []


@pytest.mark.parametrize("options", [{"unique": [True]}, {"on_duplicate_id": ["skip"]}])
def test_number_of_options_must_match_number_of_documents(index: mw.Index, options: dict[str, list[object]]) -> None:
    message = error_message(InputError, lambda: index.add_each(["a", "b"], ["one", "two"], **options))  # type: ignore[arg-type]
    assert message.startswith("there must be as many of unique and on_duplicate_id as ids, got")


def test_pages_skip_removed_documents_and_ignore_later_additions(index: mw.Index) -> None:
    index.add(range(10), [f"text {number}" for number in range(10)], [{"n": number} for number in range(10)])
    index.remove([3, 8])
    first = index.newest(4)
    assert [document.id for document in first.documents] == [9, 7, 6, 5]
    assert (first.documents[0].text, first.documents[0].metadata) == ("text 9", {"n": 9})
    index.add(["new"], ["text new"])
    index.remove([4])
    second = index.newest(4, first.next)
    assert [document.id for document in second.documents] == [2, 1, 0]
    assert second.next is None
    assert index.newest(1).documents[0].id == "new"


def test_newest_of_an_empty_index(index: mw.Index) -> None:
    assert index.newest() == Listing([], None)
    assert index.newest(before=0) == Listing([], None)


def test_page_of_long_texts_is_limited_in_bytes(index: mw.Index) -> None:
    index.add(range(12), [f"{number} " * 10**6 for number in range(12)])
    first = index.newest(12)
    assert 4 <= len(first.documents) < 12
    rest = index.newest(12, first.next)
    assert [document.id for document in first.documents + rest.documents][:6] == [11, 10, 9, 8, 7, 6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 to 10000, got 0"),
        ({"before": -1}, "before must be a whole number from 0 to 4294967294, got -1"),
        ({"before": "x"}, "before must be a whole number from 0 to 4294967294, got 'x'"),
    ],
)
def test_newest_checks_its_arguments(index: mw.Index, arguments: dict[str, int], message: str) -> None:
    assert error_message(ConfigError, lambda: index.newest(**arguments)) == message


def test_hits_include_texts_on_request(index: mw.Index) -> None:
    index.add(["a"], ["one two three"])
    assert index.query("one two three")[0].text is None
    assert index.query("one two three", with_text=True)[0].text == "one two three"


def test_requested_texts_are_none_if_the_index_does_not_store_them(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "index", shingle="word:1") as index:
        index.add(["a"], ["one two three"])
        assert index.query("one two three", with_text=True)[0].text is None
