"""Passages: a text and what is similar to it in; what they share, and a snippet that shows it, out."""

import re

import numpy as np

import minwise as mw
from minwise.server.messages import Found, Hit, SharedSpans, Snippet

__all__ = ["add_passages", "found_of", "in_code_points", "snippet_of"]

# Characters of a snippet, and those before the passage that it shows.
SNIPPET, BEFORE = 240, 40
# Characters in which the end of a word is looked for; in scripts without spaces there is none.
LONGEST_WORD = 30
# Characters of stored texts after which passages are not looked for any more; the first hit always has them.
MOST_SEARCHED = 1_000_000

Spans = list[tuple[int, int]]


def found_of(answer: mw.Answer, threshold: float, *, bare: bool) -> Found:
    """An answer as it is sent, with nothing about the texts; a bare one without metadata, too."""
    hits = [Hit(hit.id, hit.similarity, hit.exact, None if bare else hit.metadata, None, None) for hit in answer]
    return Found(hits, answer.truncated, threshold)


def add_passages(found: Found, answer: mw.Answer, text: str, shingler: mw.Shingler) -> None:
    """Adds to hits what each shares with the text that was asked for."""
    asked = shingler.spans(text) if answer.hits else None
    searched = 0
    for told, hit in zip(found.hits, answer, strict=True):
        if asked is None or not isinstance(hit.text, str) or searched > MOST_SEARCHED:
            continue
        searched += len(hit.text)
        here, there = asked.shared_with(shingler.spans(hit.text))
        if shingler.kind == "byte":
            here, there = in_code_points(text, here), in_code_points(hit.text, there)
        told.spans, told.snippet = SharedSpans(here, there), _snippet(hit.text, there)


def _snippet(text: str, spans: Spans) -> Snippet:
    """The part of a text around the longest of its passages."""
    longest = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    start = _word_start(text, max(0, min(longest[0] - BEFORE, len(text) - SNIPPET)))
    part = snippet_of(text, start)
    end = start + len(part)
    seen = [(max(low, start) - start, min(high, end) - start) for low, high in spans if low < end and high > start]
    return Snippet(part, start, seen, len(text))


def in_code_points(text: str, spans: Spans) -> Spans:
    """Places of bytes of a text in UTF-8, as places of its code points; one that is cut belongs to the span."""
    firsts = np.flatnonzero(np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0 != 0x80)
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    starts = np.searchsorted(firsts, bounds[:, 0], side="right") - 1
    ends = np.searchsorted(firsts, bounds[:, 1], side="left")
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def snippet_of(text: str, start: int = 0) -> str:
    """A part of a text that ends, if it can, where a word ends."""
    end = start + SNIPPET
    if end >= len(text) or text[end].isspace():
        return text[start:end]
    words = re.search(r"\s+\S*\Z", text[end - LONGEST_WORD : end])
    return text[start : end - len(words[0])] if words else text[start:end]


def _word_start(text: str, place: int) -> int:
    """Where the first word begins at a place or behind it; the place itself if that is far."""
    if place == 0 or text[place - 1].isspace():
        return place
    word = re.match(r"\S*\s+(?=\S)", text[place : place + LONGEST_WORD])
    return place + word.end() if word else place
