"""Lookup: every document with a phrase is found once, in bounded pages; a search says what cut it short."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.index import TextMatch, lookup

WORDS = " ".join(f"word{number}" for number in range(200))
phrases = st.text(st.sampled_from("aB ß\n.(é"), min_size=1, max_size=4)
documents = st.lists(st.text(st.sampled_from("aAbB ßS\n\t.(éÉ"), max_size=12), max_size=12)


def found(index: mw.Index, phrase: str, limit: int = 50) -> Iterator[TextMatch]:
    """Yield the matches of all pages; each page continues the previous one."""
    before, searched = None, 0
    while True:
        page = index.search_text(phrase, limit, before)
        assert len(page.matches) <= limit
        yield from page.matches
        searched += page.searched
        if page.next is None:
            assert searched == len(index)
            return
        assert before is None or page.next < before
        before = page.next


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mw.Index]:
    """Create an index with a few texts."""
    with mw.Index.create(tmp_path_factory.mktemp("search") / "news.mw", store_text=True) as created:
        texts = [
            "The night ferry sails.",
            "NIGHT\n\n  FERRY",
            "nightferry",
            "",
            "a ferry at night. (Again)",
            "Ferryman",
        ]
        created.add(range(len(texts)), texts, [{"n": 1}, *[None] * 5])
        yield created


@pytest.mark.parametrize(
    ("phrase", "ids"),
    [
        ("night ferry", [1, 0]),
        ("FERRY", [5, 4, 2, 1, 0]),
        ("(again)", [4]),
        ("ry  s", [0]),
        ("zebra", []),
        (".", [4, 0]),
    ],
)
def test_case_and_blanks_do_not_matter_and_signs_are_literal(index: mw.Index, phrase: str, ids: list[int]) -> None:
    assert [match.document.id for match in found(index, phrase)] == ids


def test_a_match_has_the_document_and_the_position_of_the_phrase(index: mw.Index) -> None:
    *_, match = found(index, "night ferry")
    assert (match.document.id, match.document.metadata) == (0, {"n": 1})
    assert match.document.text == "The night ferry sails."
    assert match.document.text[match.start : match.end] == "night ferry"


@given(texts=documents, phrase=phrases, limit=st.integers(1, 4), most=st.integers(1, 3))
def test_every_document_with_the_phrase_is_found_once(texts: list[str], phrase: str, limit: int, most: int) -> None:
    """In pages of any size, also if a page may search only a few documents."""
    words = phrase.split()
    wanted = re.compile(r"\s+".join(map(re.escape, words)) if words else r"\s", re.IGNORECASE)
    with pytest.MonkeyPatch.context() as patch, _index(texts) as index:
        patch.setattr(lookup, "SEARCHED_DOCUMENTS", most)
        patch.setattr(lookup, "SEARCH_PART", 3)
        patch.setattr(lookup, "SEARCH_OVERLAP", 12)
        matches = list(found(index, phrase, limit))
    assert [match.document.id for match in matches] == [
        n for n, text in reversed([*enumerate(texts)]) if wanted.search(text)
    ]
    for match in matches:
        assert wanted.fullmatch(texts[int(match.document.id)][match.start : match.end])


@contextmanager
def _index(texts: list[str]) -> Iterator[mw.Index]:
    with (
        tempfile.TemporaryDirectory() as folder,
        mw.Index.create(Path(folder) / "one.mw", shingle="char:2", store_text=True) as index,
    ):
        index.add(range(len(texts)), texts)
        yield index


def test_a_page_ends_after_a_number_of_bytes(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it found up to there, so a large index never takes one long call."""
    monkeypatch.setattr(lookup, "SEARCHED_BYTES", 20)
    page = index.search_text("ferry")
    assert 0 < page.searched < len(index)
    assert page.next is not None
    assert [match.document.id for match in found(index, "ferry")] == [5, 4, 2, 1, 0]


def test_removed_documents_are_not_found(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "news.mw", store_text=True) as index:
        index.add(["a", "b"], ["one ferry", "another ferry"])
        index.remove(["b"])
        assert [match.document.id for match in found(index, "ferry")] == ["a"]
        index.add(["a"], ["a train"], on_duplicate_id="replace")
        assert list(found(index, "ferry")) == []


def test_bytes_that_are_not_utf8_are_searched_too(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "news.mw", shingle="byte:3", store_text=True) as index:
        index.add(["a"], [b"\xff\xfe the ferry"])
        (match,) = found(index, "Ferry")
    assert (match.start, match.end) == (7, 12)


def test_an_index_without_texts_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "news.mw") as index, pytest.raises(ConfigError) as refused:
        index.search_text("ferry")
    assert str(refused.value) == (
        "a text search needs an index that stores texts, got one of shingles; create it with store_text=True"
    )


@pytest.mark.parametrize("phrase", ["", None, b"ferry", ["ferry"]])
def test_a_phrase_must_be_a_string(index: mw.Index, phrase: str) -> None:
    with pytest.raises(InputError, match="phrase must be a string with at least one character, got"):
        index.search_text(phrase)


@pytest.mark.parametrize(("name", "value"), [("limit", 0), ("limit", 10_001), ("before", -1), ("limit", "5")])
def test_numbers_out_of_range_are_refused(index: mw.Index, name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=name):
        index.search_text("ferry", **{name: value})


@pytest.mark.parametrize(
    ("max_bucket", "max_candidates", "left_out"),
    [(64, 40, None), (64, 39, ("candidates", 1, 0)), (16, 40, ("bucket", 0, 35)), (16, 9, ("candidates", 7, 35))],
)
def test_a_search_says_what_it_left_out_and_why(
    tmp_path: Path, max_bucket: int, max_candidates: int, left_out: tuple[str, int, int] | None
) -> None:
    """Forty copies are in the same buckets, of which there are 35."""
    with mw.Index.create(tmp_path / "news.mw", threshold=0.5, max_bucket=max_bucket, seed=1) as index:
        index.add(range(40), [WORDS] * 40)
        answer = index.query(WORDS, top=100, max_candidates=max_candidates)
    assert answer.truncated == (left_out is not None)
    assert (answer.truncated_by, answer.left_out, answer.capped_buckets) == (left_out or (None, 0, 0))
    assert len(answer) == min(40, max_bucket, max_candidates)


def test_identical_documents_settle_an_answer(tmp_path: Path) -> None:
    """The first of a thousand copies in order of addition, although neither all buckets nor all copies are read."""
    with mw.Index.create(tmp_path / "news.mw", seed=1) as index:
        index.add(range(1000), [WORDS] * 1000)
        answer = index.query(WORDS, top=7)
        assert ([hit.id for hit in answer], answer.truncated) == ([*range(7)], False)
        everything = index.query(WORDS, top=1000)
        assert ([hit.id for hit in everything], everything.truncated) == ([*range(1000)], False)


@pytest.mark.parametrize("value", [0, 1_000_001, "5", 1.5, True])
def test_a_number_of_candidates_out_of_range_is_refused(index: mw.Index, value: int) -> None:
    with pytest.raises(ConfigError, match="max_candidates"):
        index.query("ferry", max_candidates=value)


def test_cached_records_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were read first are dropped, and answers stay the same."""
    with mw.Index.create(tmp_path / "news.mw", seed=1) as index:
        index.add(range(600), [f"{WORDS} {number}" for number in range(600)])
        expected = index.query(WORDS, top=1000)
    monkeypatch.setattr(lookup, "CACHED_BYTES", 100_000)
    with mw.Index.open(tmp_path / "news.mw") as index:
        assert [index.query(WORDS, top=1000) for _ in range(3)] == [expected] * 3
        cache = index._lookup._cache
        held = sum(len(record) + lookup.RECORD_OVERHEAD for record in cache._records.values())
        assert 0 < held == cache._bytes <= 100_000
