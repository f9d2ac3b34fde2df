"""Snippets and places: bytes become code points, snippets end with words, and show what is shared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw
from minwise.index import Answer, Hit
from minwise.server import index_tasks as module
from minwise.server.index_tasks import add_passages, code_point_spans, found_message, snippet_text
from minwise.server.messages import SnippetMessage

TEXTS = st.text(st.sampled_from("aé€😀\n "), max_size=12) | st.text(max_size=12)
SNIPPET, LONGEST_WORD = 240, 30


def plainly(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """The code points that have a byte in a span, one by one."""
    places = [place for place, letter in enumerate(text) for _ in letter.encode()]
    return places[span[0]], places[span[1] - 1] + 1


@given(st.data())
def test_places_of_bytes_are_those_of_their_code_points(data: st.DataObject) -> None:
    """One that is cut belongs to the span."""
    text = data.draw(TEXTS.filter(bool))
    size = len(text.encode())
    pair = st.tuples(st.integers(0, size - 1), st.integers(1, size)).filter(lambda span: span[0] < span[1])
    spans = data.draw(st.lists(pair, max_size=5))
    assert code_point_spans(text, spans) == [plainly(text, span) for span in spans]


def test_no_places_of_no_text() -> None:
    """Are none."""
    assert code_point_spans("", []) == []


@given(
    st.lists(st.integers(1, LONGEST_WORD - 2).map(lambda size: "€" * size), min_size=10, max_size=50),
    st.sampled_from(" \n\t"),
)
def test_a_snippet_ends_where_a_word_ends(words: list[str], between: str) -> None:
    """If words are not longer than any; it is a beginning of the text, and not much shorter than it may be."""
    text = between.join(words)
    part = snippet_text(text)
    assert text.startswith(part)
    assert len(part) <= SNIPPET
    if len(text) > SNIPPET:
        assert len(part) >= SNIPPET - LONGEST_WORD
        assert text[len(part)].isspace() or part[-1].isspace()
    else:
        assert part == text


@pytest.mark.parametrize("size", [0, 1, SNIPPET - 1, SNIPPET, SNIPPET + 1, 1000])
def test_a_snippet_of_one_long_word(size: int) -> None:
    """Is cut anywhere; one that is short is whole."""
    assert snippet_text("字" * size) == "字" * min(size, SNIPPET)
    assert snippet_text("字" * size, min(size, 1)) == "字" * min(max(size - 1, 0), SNIPPET)


def snippets(text: str, *stored: str, shingle: str = "word:2") -> list[SnippetMessage | None]:
    """The snippets of stored texts to which another is similar."""
    hits = [Hit(number, 1.0, exact=True, metadata=None, text=one) for number, one in enumerate(stored)]
    answer = Answer(tuple(hits), truncated=False)
    found = found_message(answer, 0.5, bare=False)
    add_passages(found, answer, text, mw.Shingler(shingle))
    return [hit.snippet for hit in found.hits]


SHARED = "the ferry leaves at six in the morning"


@pytest.mark.parametrize("before", [0, 1, 5, 20, 100, 400])
@pytest.mark.parametrize("after", [0, 1, 20, 400])
def test_a_snippet_shows_what_is_shared(before: int, after: int) -> None:
    """Wherever it stands, from the start of a word on, with some words before it; spans lie in it."""
    stored = " ".join([*(f"b{number}" for number in range(before)), SHARED, *(f"a{number}" for number in range(after))])
    (found,) = snippets(SHARED, stored)
    assert found is not None
    assert found.length == len(stored)
    assert stored[found.start : found.start + len(found.text)] == found.text
    assert len(found.text) <= SNIPPET
    assert found.start == 0 or stored[found.start - 1].isspace()
    assert [found.text[low:high] for low, high in found.spans] == [SHARED]
    assert stored.index(SHARED) - found.start <= SNIPPET - len(SHARED)
    assert before < 20 or stored.index(SHARED) - found.start > 0


def test_spans_are_clipped_to_the_snippet() -> None:
    """A passage longer than it is shown from its beginning, and ends with it; one that lies outside is not there."""
    long = " ".join(f"word{number}" for number in range(100))
    filler = " ".join(f"filler{number}" for number in range(100))
    stored = f"{SHARED} {filler} {long}"
    (found,) = snippets(f"{SHARED} and {long}", stored)
    assert found is not None
    assert found.start < stored.index("word0") < found.start + len(found.text)
    assert found.spans == [(stored.index("word0") - found.start, len(found.text))]
    assert found.text[slice(*found.spans[0])].startswith("word0 word1 ")


def test_nothing_is_shared() -> None:
    """Then the beginning is shown, and nothing of it marked."""
    assert snippets("one two", "three four " * 100) == [SnippetMessage(("three four " * 100)[:236], 0, [], 1100)]


def test_places_are_code_points_where_shingles_are_bytes() -> None:
    """In the snippet too."""
    (found,) = snippets("schöne Grüße aus Köln", "viele schöne Grüße aus Köln heute", shingle="byte:4")
    assert found is not None
    assert [found.text[low:high] for low, high in found.spans] == [" schöne Grüße aus Köln"[1:]]


def test_long_texts_after_many_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first hit always has its passages, the others as long as there is time."""
    monkeypatch.setattr(module, "MAX_PASSAGE_CHARACTERS", 100)
    stored = SHARED.ljust(60)
    assert [one is not None for one in snippets(SHARED, stored, stored, stored)] == [True, True, False]
    assert [one is not None for one in snippets(SHARED, stored * 3, stored)] == [True, False]
