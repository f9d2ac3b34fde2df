"""Alignment of two texts in rows, and their HTML side by side."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw
from minwise.comparison import alignment
from minwise.comparison.alignment import align_rows, decode_passages, decode_text, row_spans, show_controls
from minwise.comparison.page import LEGEND, SIDE_BY_SIDE_STYLE, side_by_side
from minwise.comparison.passages import Passage, align_passages

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
pieces = st.lists(st.sampled_from([*WORDS[:6], "\n", "\n\n", " ", ". ", "\t", "\r\n", "漁", "- "]), max_size=40)
texts = pieces.map(lambda chosen: "".join(f"{piece} " if piece in WORDS else piece for piece in chosen))
# Arbitrary spans in any order, which must not break the rows.
positions = st.integers(0, 60)
any_passages = st.lists(st.builds(Passage, positions, positions, positions, positions, st.booleans()), max_size=5)


def passages_of(left: str, right: str, spec: str = "word:2") -> list[Passage]:
    """Return the shared passages of two texts."""
    shingler = mw.Shingler(spec)
    return align_passages(shingler.spans(left), shingler.spans(right))


def column_text(fragment: str, side: int) -> str:
    """Return the text of one column."""
    cells = re.findall(r'<div class="side" dir="auto">(.*?)</div>', fragment, re.DOTALL)[side::2]
    return html.unescape("".join(re.sub("<[^>]+>", "", cell) for cell in cells))


def marked(fragment: str, kind: str, side: int) -> list[str]:
    """Return the marked parts of one column."""
    cells = "".join(re.findall(r'<div class="side" dir="auto">(.*?)</div>', fragment, re.DOTALL)[side::2])
    return [html.unescape(text) for text in re.findall(f'class="{kind}">(.*?)</', cells, re.DOTALL)]


@given(left=texts, right=texts)
def test_rows_contain_both_texts_completely_and_in_order(left: str, right: str) -> None:
    at = (0, 0)
    for row in row_spans(left, right, passages_of(left, right)):
        assert (row.left[0], row.right[0]) == at
        at = row.left[1], row.right[1]
    assert at == (len(left), len(right))


@given(left=texts, right=texts, long_row=st.integers(1, 30))
def test_splitting_long_rows_loses_no_text(left: str, right: str, long_row: int) -> None:
    """Also with words that differ in length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "LONG_ROW", long_row)
        other = right.replace("beta", "BETA  ") + left.upper().replace(" ", "  ")
        rows = list(row_spans(left, other, passages_of(left, other)))
    assert "".join(left[slice(*row.left)] for row in rows) == left
    assert "".join(other[slice(*row.right)] for row in rows) == other


@given(left=texts, right=texts)
def test_pieces_have_the_kind_of_their_passages(left: str, right: str) -> None:
    """A character of the backbone is shared, one of another passage is moved, and any other is common or alone."""
    passages = passages_of(left, right)
    rows = list(align_rows(left, right, passages))
    shown = "".join(piece.kind[0] * len(piece.text) for row in rows for piece in row.left)
    if "\r" in left:  # displayed as one character less
        return
    for position, kind in enumerate(shown):
        over = [passage.moved for passage in passages if passage.left_start <= position < passage.left_end]
        assert kind in ("oc" if not over else "m" if all(over) else "s")


@given(left=texts, right=texts)
def test_html_contains_both_texts(left: str, right: str) -> None:
    fragment = side_by_side(left, right, passages_of(left, right))
    assert column_text(fragment, 0) == show_controls(left)
    assert column_text(fragment, 1) == show_controls(right)


@given(left=texts, right=texts, most=st.integers(1, 200))
def test_gaps_count_the_characters_that_are_left_out(left: str, right: str, most: int) -> None:
    left, right = left.replace("\r", ""), right.replace("\r", "")
    for row_side, text in (("left", left), ("right", right)):
        rows = list(align_rows(left, right, passages_of(left, right), max_chars=most))
        kinds = [piece for row in rows for piece in getattr(row, row_side)]
        left_out = sum(int(re.sub(r"\D", "", piece.text)) for piece in kinds if piece.kind == "gap")
        assert left_out + sum(len(piece.text) for piece in kinds if piece.kind != "gap") == len(text)


@given(left=texts, right=texts)
def test_what_is_common_is_equal_on_both_sides_or_blank(left: str, right: str) -> None:
    """Except for moved passages, which may be common on the side where they have not moved."""
    passages = passages_of(left, right)
    rows = list(align_rows(left, right, passages))
    sides = [
        "".join(piece.text for row in rows for piece in getattr(row, name) if piece.kind == "common").split()
        for name in ("left", "right")
    ]
    if not any(passage.moved for passage in passages):
        assert "".join(sides[0]) == "".join(sides[1])


@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), at=st.integers(0, 29))
def test_one_changed_word_is_the_only_difference(words: list[str], at: int) -> None:
    """Whatever the shingle is: punctuation and words too few for a shingle are not shown as differences."""
    at %= len(words)
    left, right = (f"{' '.join([*words[:at], word, *words[at + 1 :]])}." for word in ("old", "new"))
    fragment = side_by_side(left, right, passages_of(left, right, "word:5"))
    assert marked(fragment, "only", 0) == ["old"]
    assert marked(fragment, "only", 1) == ["new"]


def test_differences_stand_out_by_more_than_colour() -> None:
    """What one text has alone is underlined, in the text and in the legend; shared text has no mark."""
    left, right = "alpha beta gamma red", "alpha beta gamma blue"
    fragment = side_by_side(left, right, passages_of(left, right))
    assert '<mark class="only">red</mark>' in fragment
    assert '<mark class="only">blue</mark>' in fragment
    assert '<span class="shared">alpha beta gamma</span>' in fragment
    assert "underline" in SIDE_BY_SIDE_STYLE.partition("mark.only {")[2].partition("}")[0]
    assert '<mark class="only">' in LEGEND


def test_a_single_equal_word_amid_other_words_is_a_difference() -> None:
    """Two of them are not: they are what a reader would recognise."""
    left, right = "one two alpha three four", "five six alpha seven eight"
    assert marked(side_by_side(left, right, []), "only", 0) == [left]
    left, right = "one two alpha beta three four", "five six alpha beta seven eight"
    assert marked(side_by_side(left, right, []), "only", 1) == ["five six", "seven eight"]


def test_a_line_of_one_text_only_leaves_the_other_side_empty() -> None:
    """The lines after it are aligned again."""
    left = "alpha beta gamma\nzeta eta\ndelta epsilon theta\n"
    right = "alpha beta gamma\ndelta epsilon theta\n"
    rows = [
        (left[slice(*row.left)], right[slice(*row.right)]) for row in row_spans(left, right, passages_of(left, right))
    ]
    assert rows == [
        ("alpha beta gamma\n", "alpha beta gamma\n"),
        ("zeta eta\n", ""),
        ("delta epsilon theta\n", "delta epsilon theta\n"),
    ]


def test_windows_and_unix_line_ends_are_aligned() -> None:
    left = "".join(f"{one} {two} {one}\n" for one in WORDS for two in WORDS)
    right = left.replace("\n", "\r\n").upper()
    rows = list(row_spans(left, right, passages_of(left, right)))
    assert len(rows) == 100
    assert all(left[slice(*row.left)].strip().upper() == right[slice(*row.right)].strip() for row in rows)


def test_a_long_line_is_split_at_the_same_word_on_both_sides() -> None:
    """Also if one text has more blanks."""
    left = " ".join(f"w{number}" for number in range(2000))
    right = left.replace(" ", "   ")
    rows = list(row_spans(left, right, passages_of(left, right)))
    assert len(rows) > 5
    assert all(left[slice(*row.left)].split() == right[slice(*row.right)].split() for row in rows)


def test_unrelated_texts_are_split_at_line_ends() -> None:
    left, right = "alpha beta gamma delta\n" * 900, "zeta eta theta iota\n" * 300
    rows = list(row_spans(left, right, []))
    assert max(row.left[1] - row.left[0] for row in rows) <= alignment.LONG_ROW
    assert all(left[: row.left[1]].endswith("\n") for row in rows)
    assert "".join(right[slice(*row.right)] for row in rows) == right


def test_texts_of_megabytes_have_a_bounded_number_of_rows() -> None:
    text = "".join(f"{number}\n" for number in range(200_000))
    whole = [Passage(0, len(text) - 1, 0, len(text) - 1, False)]
    assert 1000 < len(list(row_spans(text, text, whole))) <= alignment.MOST_ROWS


def test_moved_passages_differ_by_more_than_colour() -> None:
    left, right = "alpha beta gamma\n\nzeta eta", "zeta eta\n\nalpha beta gamma"
    fragment = side_by_side(left, right, passages_of(left, right))
    assert marked(fragment, "shared", 0) == ["alpha beta gamma"]
    assert marked(fragment, "moved", 0) == marked(fragment, "moved", 1) == ["zeta eta"]
    assert "underline" in SIDE_BY_SIDE_STYLE.partition("mark.moved")[2].partition("}")[0]
    assert "moved" in LEGEND


PAYLOADS = [
    "<script>alert(1)</script>",
    "</style><style>body{display:none}</style>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; \"quoted\" 'single'",
    "</div></span></mark><a href='javascript:alert(1)'>",
    "<!-- \x1b[2J \x00 \x85 \u202e -->",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_in_texts_and_names_is_escaped(payload: str) -> None:
    fragment = side_by_side(payload, f"{payload} {payload}", passages_of(payload, payload), names=(payload, payload))
    tags = set(re.findall(r"<[^>]*>", fragment))
    assert tags <= {
        '<div class="sides">', '<div class="pair">', '<div class="pair names">', '<div class="side" dir="auto">',
        "</div>", '<mark class="only">', "</mark>", '<span class="shared">', "</span>",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", fragment)


def test_equal_parts_are_shortened_around_the_differences() -> None:
    rows = [f"line {number} with words of its own {number}.\n" for number in range(400)]
    left = "".join(rows)
    rows[100], rows[300] = "here something else stands now\n", "and here as well\n"
    right = "".join(rows)
    fragment = side_by_side(left, right, passages_of(left, right, "word:3"), max_chars=3000)
    text = column_text(fragment, 1)
    assert "here something else stands now" in text
    assert "and here as well" in text
    assert "line 99 with" in text
    assert "line 200 with" not in text
    assert re.search(r"… \d,\d{3} characters …", text)
    assert len(text) < 4000


@pytest.mark.parametrize("shape", ["equal", "unrelated", "a difference in every line", "one line"])
def test_shortened_html_has_about_the_requested_length(shape: str) -> None:
    left = "".join(f"line {number} with words of its own {number}.\n" for number in range(3000))
    right = {
        "equal": left,
        "unrelated": left.replace("line", "row").replace("words", "signs").replace("own", "sort"),
        "a difference in every line": left.replace("words", "many words"),
        "one line": left.replace("\n", " ").replace("900", "none"),
    }[shape]
    left = left.replace("\n", " ") if shape == "one line" else left
    fragment = side_by_side(left, right, passages_of(left, right, "word:3"), max_chars=3000)
    assert 90 < len(column_text(fragment, 0)) < 6000
    assert 90 < len(column_text(fragment, 1)) < 6000


def test_texts_within_the_limit_are_not_shortened() -> None:
    text = "alpha beta gamma delta " * 100
    assert "gap" not in side_by_side(text, text, passages_of(text, text), max_chars=len(text))


def test_only_many_rows_are_laid_out_lazily() -> None:
    text = "".join(f"line {number} of many\n" for number in range(1000))
    assert "sides many" in side_by_side(text, text, passages_of(text, text))
    assert "sides many" not in side_by_side(text[:2000], text[:2000], passages_of(text[:2000], text[:2000]))
    assert re.search(r"\.many[^}]*content-visibility: auto", SIDE_BY_SIDE_STYLE)


@given(left=texts, right=texts, passages=any_passages)
def test_inconsistent_passages_lose_no_text(left: str, right: str, passages: list[Passage]) -> None:
    inside = [
        passage for passage in passages
        if passage.left_start < passage.left_end <= len(left) and passage.right_start < passage.right_end <= len(right)
    ]  # fmt: skip
    rows = list(row_spans(left, right, inside))
    assert "".join(left[slice(*row.left)] for row in rows) == left
    assert "".join(right[slice(*row.right)] for row in rows) == right


@given(data=st.binary(max_size=30))
def test_bytes_are_decoded_with_replacements(data: bytes) -> None:
    """Valid UTF-8 is kept, each other byte becomes one replacement character, and the result can be encoded."""
    shown = decode_text(data)
    assert shown.encode() or not data
    assert shown.replace("\ufffd", "") in "".join(data.decode(errors="ignore").split("\ufffd"))


@given(data=st.binary(max_size=20), start=st.integers(0, 20), length=st.integers(1, 20))
def test_byte_passages_become_character_passages(data: bytes, start: int, length: int) -> None:
    """A passage contains exactly the characters to which its bytes belong."""
    start, end = min(start, len(data)), min(start + length, len(data))
    if start == end:
        return
    passage = Passage(start, end, start, end, False)
    shown, _, [found] = decode_passages(data, data, [passage], in_bytes=True)
    widths = [len(char.encode(errors="surrogateescape")) for char in data.decode(errors="surrogateescape")]
    first = [sum(widths[:index]) for index in range(len(widths))]
    inside = [index for index, width in enumerate(widths) if first[index] < end and first[index] + width > start]
    assert (found.left_start, found.left_end) == (inside[0], inside[-1] + 1)
    assert found[:2] == found[2:4]
    assert len(shown) == len(widths)
