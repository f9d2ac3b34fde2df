"""Snippets and spans: bytes become code points, and snippets end with words and show shared passages."""

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


def code_points_of(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return the code points that have a byte in a span, computed one by one."""
    places = [place for place, letter in enumerate(text) for _ in letter.encode()]
    return places[span[0]], places[span[1] - 1] + 1


@given(st.data())
def test_byte_spans_become_code_point_spans(data: st.DataObject) -> None:
    """A partly covered code point belongs to the span."""
    text = data.draw(TEXTS.filter(bool))
    size = len(text.encode())
    pair = st.tuples(st.integers(0, size - 1), st.integers(1, size)).filter(lambda span: span[0] < span[1])
    spans = data.draw(st.lists(pair, max_size=5))
    assert code_point_spans(text, spans) == [code_points_of(text, span) for span in spans]


def test_no_spans_of_an_empty_text() -> None:
    assert code_point_spans("", []) == []


@given(
    st.lists(st.integers(1, LONGEST_WORD - 2).map(lambda size: "€" * size), min_size=10, max_size=50),
    st.sampled_from(" \n\t"),
)
def test_a_snippet_ends_where_a_word_ends(words: list[str], between: str) -> None:
    """If words are short enough; it is not much shorter than the limit."""
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
    """Is cut within the word."""
    assert snippet_text("字" * size) == "字" * min(size, SNIPPET)
    assert snippet_text("字" * size, min(size, 1)) == "字" * min(max(size - 1, 0), SNIPPET)


def snippets(text: str, *stored: str, shingle: str = "word:2") -> list[SnippetMessage | None]:
    """Return the snippets of stored texts for a query."""
    hits = [Hit(number, 1.0, exact=True, metadata=None, text=one) for number, one in enumerate(stored)]
    answer = Answer(tuple(hits), truncated=False)
    found = found_message(answer, 0.5, bare=False)
    add_passages(found, answer, text, mw.Shingler(shingle))
    return [hit.snippet for hit in found.hits]


SHARED = "the ferry leaves at six in the morning"


@pytest.mark.parametrize("before", [0, 1, 5, 20, 100, 400])
@pytest.mark.parametrize("after", [0, 1, 20, 400])
def test_a_snippet_shows_the_shared_passage(before: int, after: int) -> None:
    """From the start of a word, with some context before it."""
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
    long = " ".join(f"word{number}" for number in range(100))
    filler = " ".join(f"filler{number}" for number in range(100))
    stored = f"{SHARED} {filler} {long}"
    (found,) = snippets(f"{SHARED} and {long}", stored)
    assert found is not None
    assert found.start < stored.index("word0") < found.start + len(found.text)
    assert found.spans == [(stored.index("word0") - found.start, len(found.text))]
    assert found.text[slice(*found.spans[0])].startswith("word0 word1 ")


def test_without_shared_passages_the_beginning_is_shown() -> None:
    assert snippets("one two", "three four " * 100) == [SnippetMessage(("three four " * 100)[:236], 0, [], 1100)]


def test_spans_of_byte_shingles_are_code_points() -> None:
    (found,) = snippets("schöne Grüße aus Köln", "viele schöne Grüße aus Köln heute", shingle="byte:4")
    assert found is not None
    assert [found.text[low:high] for low, high in found.spans] == [" schöne Grüße aus Köln"[1:]]


def test_passages_are_limited_to_a_total_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first hit always has them."""
    monkeypatch.setattr(module, "MAX_PASSAGE_CHARACTERS", 100)
    stored = SHARED.ljust(60)
    assert [one is not None for one in snippets(SHARED, stored, stored, stored)] == [True, True, False]
    assert [one is not None for one in snippets(SHARED, stored * 3, stored)] == [True, False]
