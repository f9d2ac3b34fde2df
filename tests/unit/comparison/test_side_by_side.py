"""Side by side: rows that put beside each other what belongs together, and the piece of a page made of them."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw
from minwise.comparison import alignment as rows_module
from minwise.comparison.alignment import aligned_rows, beside
from minwise.comparison.display_text import readable, readable_passages, visible
from minwise.comparison.page import LEGEND, STYLE, side_by_side
from minwise.comparison.passages import Passage, align_passages

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
pieces = st.lists(st.sampled_from([*WORDS[:6], "\n", "\n\n", " ", ". ", "\t", "\r\n", "漁", "- "]), max_size=40)
texts = pieces.map(lambda chosen: "".join(f"{one} " if one in WORDS else one for one in chosen))
# Any spans at all, in any order, which rows must put up with.
places = st.integers(0, 60)
anything = st.lists(st.builds(Passage, places, places, places, places, st.booleans()), max_size=5)


def passages_of(left: str, right: str, spec: str = "word:2") -> list[Passage]:
    """What two texts share."""
    shingler = mw.Shingler(spec)
    return align_passages(shingler.spans(left), shingler.spans(right))


def seen(fragment: str, side: int) -> str:
    """The words of one column."""
    cells = re.findall(r'<div class="side" dir="auto">(.*?)</div>', fragment, re.DOTALL)[side::2]
    return html.unescape("".join(re.sub("<[^>]+>", "", cell) for cell in cells))


def marked(fragment: str, kind: str, side: int) -> list[str]:
    """What is marked in one column."""
    cells = "".join(re.findall(r'<div class="side" dir="auto">(.*?)</div>', fragment, re.DOTALL)[side::2])
    start = re.escape('<mark class="moved">' if kind == "moved" else "<mark>")
    return [html.unescape(text) for text in re.findall(f"{start}(.*?)</mark>", cells, re.DOTALL)]


@given(left=texts, right=texts)
def test_rows_hold_both_texts_whole_and_in_order(left: str, right: str) -> None:
    """Each span starts where the last one ended."""
    at = (0, 0)
    for row in aligned_rows(left, right, passages_of(left, right)):
        assert (row.left[0], row.right[0]) == at
        at = row.left[1], row.right[1]
    assert at == (len(left), len(right))


@given(left=texts, right=texts, long_row=st.integers(1, 30))
def test_long_rows_lose_nothing_either(left: str, right: str, long_row: int) -> None:
    """However short a long row is said to be, and with words that differ in length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "LONG_ROW", long_row)
        other = right.replace("beta", "BETA  ") + left.upper().replace(" ", "  ")
        rows = list(aligned_rows(left, other, passages_of(left, other)))
    assert "".join(left[slice(*row.left)] for row in rows) == left
    assert "".join(other[slice(*row.right)] for row in rows) == other


@given(left=texts, right=texts)
def test_pieces_are_marked_as_the_passages_are(left: str, right: str) -> None:
    """A character is shared if the backbone has it, moved if only another passage has it, and else in one text only."""
    passages = passages_of(left, right)
    rows = list(beside(left, right, passages))
    shown = "".join(piece.kind[0] * len(piece.text) for row in rows for piece in row.left)
    if "\r" in left:  # which is one character less when it is shown
        return
    for place, kind in enumerate(shown):
        over = [one.moved for one in passages if one.left_start <= place < one.left_end]
        assert kind == ("o" if not over else "m" if all(over) else "s")


@given(left=texts, right=texts)
def test_a_fragment_shows_both_texts(left: str, right: str) -> None:
    """To the letter, but for the ends of lines."""
    fragment = side_by_side(left, right, passages_of(left, right))
    assert seen(fragment, 0) == visible(left)
    assert seen(fragment, 1) == visible(right)


@given(left=texts, right=texts, most=st.integers(1, 200))
def test_a_shortened_fragment_says_how_much_it_leaves_out(left: str, right: str, most: int) -> None:
    """What is shown and what is left out is the whole text."""
    left, right = left.replace("\r", ""), right.replace("\r", "")
    for row_side, text in (("left", left), ("right", right)):
        rows = list(beside(left, right, passages_of(left, right), most=most))
        kinds = [piece for row in rows for piece in getattr(row, row_side)]
        left_out = sum(int(re.sub(r"\D", "", piece.text)) for piece in kinds if piece.kind == "gap")
        assert left_out + sum(len(piece.text) for piece in kinds if piece.kind != "gap") == len(text)


def test_lines_stand_beside_their_own() -> None:
    """A line that only one text has leaves the other side empty; those after it are in step again."""
    left = "alpha beta gamma\nzeta eta\ndelta epsilon theta\n"
    right = "alpha beta gamma\ndelta epsilon theta\n"
    rows = [
        (left[slice(*row.left)], right[slice(*row.right)])
        for row in aligned_rows(left, right, passages_of(left, right))
    ]
    assert rows == [
        ("alpha beta gamma\n", "alpha beta gamma\n"),
        ("zeta eta\n", ""),
        ("delta epsilon theta\n", "delta epsilon theta\n"),
    ]


def test_lines_that_end_in_another_way_are_in_step() -> None:
    """Windows and Unix: a row per line."""
    left = "".join(f"{one} {two} {one}\n" for one in WORDS for two in WORDS)
    right = left.replace("\n", "\r\n").upper()
    rows = list(aligned_rows(left, right, passages_of(left, right)))
    assert len(rows) == 100
    assert all(left[slice(*row.left)].strip().upper() == right[slice(*row.right)].strip() for row in rows)


def test_a_long_line_is_cut_beside_its_own() -> None:
    """At the same word on both sides, also where one text has more blanks."""
    left = " ".join(f"w{number}" for number in range(2000))
    right = left.replace(" ", "   ")
    rows = list(aligned_rows(left, right, passages_of(left, right)))
    assert len(rows) > 5
    assert all(left[slice(*row.left)].split() == right[slice(*row.right)].split() for row in rows)


def test_unrelated_texts_are_cut_too() -> None:
    """Into rows of a bounded size, at the ends of lines."""
    left, right = "alpha beta gamma delta\n" * 900, "zeta eta theta iota\n" * 300
    rows = list(aligned_rows(left, right, []))
    assert max(row.left[1] - row.left[0] for row in rows) <= rows_module.LONG_ROW
    assert all(left[: row.left[1]].endswith("\n") for row in rows)
    assert "".join(right[slice(*row.right)] for row in rows) == right


def test_texts_of_megabytes_have_a_bounded_number_of_rows() -> None:
    """A browser has to hold them all."""
    text = "".join(f"{number}\n" for number in range(200_000))
    whole = [Passage(0, len(text) - 1, 0, len(text) - 1, False)]
    assert 1000 < len(list(aligned_rows(text, text, whole))) <= rows_module.MOST_ROWS


def test_moved_passages_look_different() -> None:
    """By more than their colour."""
    left, right = "alpha beta gamma\n\nzeta eta", "zeta eta\n\nalpha beta gamma"
    fragment = side_by_side(left, right, passages_of(left, right))
    assert marked(fragment, "shared", 0) == ["alpha beta gamma"]
    assert marked(fragment, "moved", 0) == marked(fragment, "moved", 1) == ["zeta eta"]
    assert "underline" in STYLE.partition("mark.moved")[2].partition("}")[0]
    assert "moved" in LEGEND


PAYLOADS = [
    "<script>alert(1)</script>",
    "</style><style>body{display:none}</style>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; \"quoted\" 'single'",
    "</div></mark><a href='javascript:alert(1)'>",
    "<!-- \x1b[2J \x00 \x85 \u202e -->",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_texts_and_names_stay_text(payload: str) -> None:
    """Whether they are shared or not."""
    fragment = side_by_side(payload, f"{payload} {payload}", passages_of(payload, payload), names=(payload, payload))
    tags = set(re.findall(r"<[^>]*>", fragment))
    assert tags <= {
        '<div class="sides">', '<div class="pair">', '<div class="pair names">', '<div class="side" dir="auto">',
        "</div>", "<mark>", "</mark>",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", fragment)


def test_what_is_the_same_is_shortened() -> None:
    """Around the differences there is some of it, and the differences are all there."""
    rows = [f"line {number} with words of its own {number}.\n" for number in range(400)]
    left = "".join(rows)
    rows[100], rows[300] = "here something else stands now\n", "and here as well\n"
    right = "".join(rows)
    fragment = side_by_side(left, right, passages_of(left, right, "word:3"), most=3000)
    text = seen(fragment, 1)
    assert "here something else stands now" in text
    assert "and here as well" in text
    assert "line 99 with" in text
    assert "line 200 with" not in text
    assert re.search(r"… \d,\d{3} characters …", text)
    assert len(text) < 4000


@pytest.mark.parametrize("shape", ["equal", "unrelated", "a difference in every line", "one line"])
def test_a_shortened_fragment_is_short(shape: str) -> None:
    """About as much as was asked for, whatever the texts."""
    left = "".join(f"line {number} with words of its own {number}.\n" for number in range(3000))
    right = {
        "equal": left,
        "unrelated": left.replace("line", "row").replace("words", "signs").replace("own", "sort"),
        "a difference in every line": left.replace("words", "many words"),
        "one line": left.replace("\n", " ").replace("900", "none"),
    }[shape]
    left = left.replace("\n", " ") if shape == "one line" else left
    fragment = side_by_side(left, right, passages_of(left, right, "word:3"), most=3000)
    assert 90 < len(seen(fragment, 0)) < 6000
    assert 90 < len(seen(fragment, 1)) < 6000


def test_short_texts_are_not_shortened() -> None:
    """There is no gap in what is not longer than the most."""
    text = "alpha beta gamma delta " * 100
    assert "gap" not in side_by_side(text, text, passages_of(text, text), most=len(text))


def test_only_many_rows_wait_to_be_laid_out() -> None:
    """So that a short page is there at once, and a long one opens."""
    text = "".join(f"line {number} of many\n" for number in range(1000))
    assert "sides many" in side_by_side(text, text, passages_of(text, text))
    assert "sides many" not in side_by_side(text[:2000], text[:2000], passages_of(text[:2000], text[:2000]))
    assert re.search(r"\.many[^}]*content-visibility: auto", STYLE)


@given(left=texts, right=texts, passages=anything)
def test_passages_that_make_no_sense_lose_no_text(left: str, right: str, passages: list[Passage]) -> None:
    """Rows are cut from the texts, whatever they are told about them."""
    inside = [
        one for one in passages
        if one.left_start < one.left_end <= len(left) and one.right_start < one.right_end <= len(right)
    ]  # fmt: skip
    rows = list(aligned_rows(left, right, inside))
    assert "".join(left[slice(*row.left)] for row in rows) == left
    assert "".join(right[slice(*row.right)] for row in rows) == right


@given(data=st.binary(max_size=30))
def test_bytes_become_readable(data: bytes) -> None:
    """What is UTF-8 is itself; a byte that is not is one replacement; and it can always be written."""
    shown = readable(data)
    assert shown.encode() or not data
    assert shown.replace("\ufffd", "") in "".join(data.decode(errors="ignore").split("\ufffd"))


@given(data=st.binary(max_size=20), start=st.integers(0, 20), length=st.integers(1, 20))
def test_passages_in_bytes_become_those_in_characters(data: bytes, start: int, length: int) -> None:
    """A passage has every character that one of its bytes is in, and no other."""
    start, end = min(start, len(data)), min(start + length, len(data))
    if start == end:
        return
    passage = Passage(start, end, start, end, False)
    shown, _, [found] = readable_passages(data, data, [passage], in_bytes=True)
    widths = [len(one.encode(errors="surrogateescape")) for one in data.decode(errors="surrogateescape")]
    first = [sum(widths[:place]) for place in range(len(widths))]
    inside = [place for place, width in enumerate(widths) if first[place] < end and first[place] + width > start]
    assert (found.left_start, found.left_end) == (inside[0], inside[-1] + 1)
    assert found[:2] == found[2:4]
    assert len(shown) == len(widths)
