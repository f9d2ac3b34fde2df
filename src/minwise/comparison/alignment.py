"""Alignment of two texts for display: rows with the corresponding part of each text on either side.

A row ends where a line ends in both texts inside or next to a passage of the backbone, so that lines stay whole. A part
without such positions is split by its length. Together the rows contain both texts, complete and in order.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain, pairwise, takewhile, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise._internal.html import INVISIBLE
from minwise.comparison.passages import Passage

__all__ = [
    "AlignedRow",
    "Piece",
    "RowSpans",
    "align_rows",
    "decode_passages",
    "decode_text",
    "row_spans",
    "show_controls",
    "texts_differ",
]

# Replacement for a byte that is not UTF-8.
REPLACEMENT = "\ufffd"
# Characters that a terminal or a browser would act on: controls, and separators that some programs take for line ends.
VISIBLE_CONTROLS = INVISIBLE | {code: f"\u27e8U+{code:04X}\u27e9" for code in (0x200E, 0x200F, 0x2028, 0x2029)}
CONTROLS = re.compile(f"[{''.join(re.escape(chr(code)) for code in sorted(VISIBLE_CONTROLS))}]")
SURROGATES = re.compile("[\ud800-\udfff]")
# Code points after which a row without a line end is split, and maximum number of rows, which a browser has to hold.
LONG_ROW, MOST_ROWS = 1200, 20_000
# Characters, such as a dash or a quotation mark, that may precede the first word of a line.
LINE_HEAD = 8
KINDS = ("only", "moved", "shared", "common")
# Parts of a text between two passages, which are compared one by one.
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
# Words that both texts must have in a row amid differences: a single equal word there is a coincidence.
MIN_EQUAL_WORDS = 2
# Products of the numbers of tokens up to which such parts are searched for, which takes at most some milliseconds.
MAX_TOKEN_PAIRS = 100_000

Span = tuple[int, int]


class Piece(NamedTuple):
    """A part of a text, ready for display.

    Attributes:
        text: The text, without control characters.
        kind: ``shared``; ``moved``, which is shared at another position; ``only``, which is in this text only;
            ``common``, which is blank, or in both texts but too short for a shared passage; or ``gap``, a note that
            says how much is left out.
    """

    text: str
    kind: str


class AlignedRow(NamedTuple):
    """Corresponding parts of two texts, ready for display.

    Attributes:
        left: Pieces of the left text.
        right: Pieces of the right text.
    """

    left: list[Piece]
    right: list[Piece]


class RowSpans(NamedTuple):
    """Corresponding parts of two texts, as start and end in code points."""

    left: Span
    right: Span


class SegmentedText(NamedTuple):
    """A text, split where its kind changes: segment i is from ``bounds[i]`` to ``bounds[i + 1]``."""

    text: str
    bounds: list[int]
    kinds: list[int]


def decode_text(text: str | bytes) -> str:
    """Return a text that can be encoded; each byte that is not UTF-8 becomes one replacement character."""
    if isinstance(text, str):
        return SURROGATES.sub(REPLACEMENT, text)
    try:
        return text.decode()
    except UnicodeDecodeError:
        return SURROGATES.sub(REPLACEMENT, text.decode(errors="surrogateescape"))


def show_controls(text: str) -> str:
    """Return the text with a visible sign for each control character; every line ends with a line feed."""
    return text.replace("\r\n", "\n").translate(VISIBLE_CONTROLS) if CONTROLS.search(text) else text


def decode_passages(
    left: str | bytes, right: str | bytes, passages: Sequence[Passage], *, in_bytes: bool
) -> tuple[str, str, list[Passage]]:
    """Return both texts decoded for display, and their passages in code points.

    Args:
        left: The left text as it was compared.
        right: The right text as it was compared.
        passages: Their shared passages.
        in_bytes: Whether the passages count bytes, as those of ``byte`` shingles do.
    """
    decoded = decode_text(left), decode_text(right)
    if not in_bytes or not passages:
        return *decoded, list(passages)
    columns = np.array(passages, dtype=np.int64).T
    offsets = [_byte_offsets(text) for text in (left, right)]
    positions = [
        np.searchsorted(offsets[side], columns[2 * side + end], side="left" if end else "right") - (1 - end)
        for side in (0, 1)
        for end in (0, 1)
    ]
    return *decoded, list(map(Passage, *(column.tolist() for column in (*positions, columns[4] == 1))))


def _byte_offsets(text: str | bytes) -> NDArray[np.int64]:
    """Return the number of bytes before each code point of the decoded text, and before its end."""
    decoded = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    points = np.frombuffer(decoded.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    widths[(points >= 0xD800) & (points < 0xE000)] = 1  # a byte that is not UTF-8
    return np.append(0, np.cumsum(widths))


def row_spans(left: str, right: str, passages: Sequence[Passage]) -> Iterator[RowSpans]:
    """Yield the rows in order; the spans of each side add up to its text."""
    least = max(len(left), len(right)) // MOST_ROWS
    start = (0, 0)
    for position in _row_starts(left, right, passages):
        if position[0] - start[0] > least or position[1] - start[1] > least:
            yield from _split_long((left, right), start, position)
            start = position
    yield from _split_long((left, right), start, (len(left), len(right)))


def _segment_texts(
    texts: tuple[str, str], passages: Sequence[Passage], common: Sequence[tuple[int, int, int, int]] = ()
) -> tuple[SegmentedText, SegmentedText]:
    """Return both texts, split where a passage or a common part starts or ends."""
    columns = np.array(passages, dtype=np.int64).reshape(-1, 5)
    moved = columns[:, 4] == 1
    parts = np.array(common, dtype=np.int64).reshape(-1, 4)
    return (
        _segment_text(texts[0], columns[~moved, 0:2], columns[moved, 0:2], parts[:, 0:2]),
        _segment_text(texts[1], columns[~moved, 2:4], columns[moved, 2:4], parts[:, 2:4]),
    )


def _common_parts(texts: tuple[str, str], passages: Sequence[Passage]) -> Iterator[tuple[int, int, int, int]]:
    """Yield start and end, in both texts, of equal parts that are too short for a shared passage."""
    for start, end in _unshared(texts, passages):
        tokens = [TOKEN.findall(text, *span) for text, span in zip(texts, zip(start, end, strict=True), strict=True)]
        left, right = ([*accumulate(map(len, side), initial=first)] for side, first in zip(tokens, start, strict=True))
        for at, other, length in _equal_tokens(*tokens):
            yield left[at], left[at + length], right[other], right[other + length]


def _unshared(texts: tuple[str, str], passages: Sequence[Passage]) -> Iterator[tuple[Span, Span]]:
    """Yield start and end of what is between two passages of the backbone, if both texts have something there."""
    at = (0, 0)
    ends = (len(texts[0]), len(texts[1]))
    for passage in chain(passages, [Passage(ends[0], ends[0], ends[1], ends[1], False)]):
        if passage.moved:
            continue
        if passage.left_start > at[0] and passage.right_start > at[1]:
            yield at, (passage.left_start, passage.right_start)
        at = max(at[0], passage.left_end), max(at[1], passage.right_end)


def _equal_tokens(left: list[str], right: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield position, other position and number of equal tokens: at the start, at the end, and long ones between."""
    head = _equal_start(left, right)
    tail = _equal_start(left[head:][::-1], right[head:][::-1])
    inner = left[head : len(left) - tail], right[head : len(right) - tail]
    if head:
        yield 0, 0, head
    if tail:
        yield len(left) - tail, len(right) - tail, tail
    if min(map(len, inner)) > MIN_EQUAL_WORDS and len(inner[0]) * len(inner[1]) <= MAX_TOKEN_PAIRS:
        for block in SequenceMatcher(None, *inner, autojunk=False).get_matching_blocks():
            if sum(map(str.isalnum, inner[0][block.a : block.a + block.size])) >= MIN_EQUAL_WORDS:
                yield head + block.a, head + block.b, block.size


def _equal_start(left: list[str], right: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def texts_differ(left: str, right: str, passages: Sequence[Passage]) -> bool:
    """Return whether anything is moved or in one text only; parts outside of shingles are compared by character."""
    sides = [
        [(kind, side.text[start:end].strip() if KINDS[kind] == "only" else "") for kind, (start, end) in _spans(side)]
        for side in _segment_texts((left, right), passages)
    ]
    return any(passage.moved for passage in passages) or sides[0] != sides[1]


def _spans(side: SegmentedText) -> Iterator[tuple[int, Span]]:
    return zip(side.kinds, pairwise(side.bounds), strict=True)


def _segment_text(
    text: str, shared: NDArray[np.int64], moved: NDArray[np.int64], common: NDArray[np.int64]
) -> SegmentedText:
    bounds = np.sort(np.concatenate([[0, len(text)], shared.ravel(), moved.ravel(), common.ravel()]))
    bounds = bounds[np.append(True, bounds[1:] != bounds[:-1])]
    outside = np.where(_inside(bounds, common), 3, 0)
    kinds = np.where(_inside(bounds, shared), 2, np.where(_inside(bounds, moved), 1, outside))[:-1]
    changes = np.append(True, kinds[1:] != kinds[:-1])[: len(kinds)]
    return SegmentedText(text, [*bounds[:-1][changes].tolist(), len(text)], kinds[changes].tolist())


def _inside(bounds: NDArray[np.int64], spans: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the segment after each bound is inside a span."""
    opened = np.searchsorted(np.sort(spans[:, 0]), bounds, side="right")
    inside: NDArray[np.bool_] = opened > np.searchsorted(np.sort(spans[:, 1]), bounds, side="right")
    return inside


def _pieces(side: SegmentedText, span: Span) -> list[Piece]:
    """Return a span of a text, with a piece for each segment."""
    start, end = span
    pieces: list[Piece] = []
    number = bisect_right(side.bounds, start) - 1
    while start < end:
        upto = min(end, side.bounds[number + 1])
        text, kind = side.text[start:upto], KINDS[side.kinds[number]]
        pieces.append(Piece(show_controls(text), "common" if kind == "only" and text.isspace() else kind))
        start, number = upto, number + 1
    return pieces


def _row_starts(left: str, right: str, passages: Sequence[Passage]) -> Iterator[Span]:
    """Yield corresponding positions of both texts at which a line starts, ascending in both."""
    texts = left, right
    at = (0, 0)
    for passage in passages:
        if passage.moved:
            continue
        ahead = max(at[0] - passage.left_start, at[1] - passage.right_start, 0)
        start = passage.left_start + ahead, passage.right_start + ahead
        end = passage.left_end, passage.right_end
        if start[0] < end[0] and start[1] < end[1]:
            yield from _starts_between(texts, at, start)
            yield from _starts_within(texts, start, end)
            at = end
    yield from _starts_between(texts, at, (len(left), len(right)))


def _starts_between(texts: tuple[str, str], at: Span, start: Span) -> Iterator[Span]:
    """Yield line starts between two passages: after the first, if both lines end alike, and before the second."""
    ends = [
        text.find("\n", first, min(last, first + LINE_HEAD)) for text, first, last in zip(texts, at, start, strict=True)
    ]
    after = at
    if min(ends) >= 0 and texts[0][at[0] : ends[0]].rstrip() == texts[1][at[1] : ends[1]].rstrip():
        after = ends[0] + 1, ends[1] + 1
        yield after
    lines = [_line_start(text, first, last) for text, first, last in zip(texts, after, start, strict=True)]
    if min(lines) >= 0 and (lines[0], lines[1]) not in ((0, 0), after):
        yield lines[0], lines[1]


def _line_start(text: str, after: int, position: int) -> int:
    """Return the start of the line whose first word is at a position, if it is not before ``after``; otherwise -1."""
    start = text.rfind("\n", after, position) + 1
    if not start and (after == 0 or text[after - 1] == "\n"):
        start = after
    return start if (start or not after) and position - start <= LINE_HEAD else -1


def _starts_within(texts: tuple[str, str], start: Span, end: Span) -> Iterator[Span]:
    """Yield positions inside a passage: each line, if both texts have equally many, and splits of long rows."""
    for position in [*_line_starts(texts, start, end), end]:
        if position[0] - start[0] > LONG_ROW or position[1] - start[1] > LONG_ROW:
            yield from _word_starts(texts, start, position)
        if position != end:
            yield position
        start = position


def _line_starts(texts: tuple[str, str], start: Span, end: Span) -> Iterable[Span]:
    counts = [text.count("\n", first, last) for text, first, last in zip(texts, start, end, strict=True)]
    if not counts[0] or counts[0] != counts[1]:
        return ()
    found = [
        [match.end() for match in re.compile("\n").finditer(text, first, last)]
        for text, first, last in zip(texts, start, end, strict=True)
    ]
    return zip(found[0], found[1], strict=True)


def _word_starts(texts: tuple[str, str], start: Span, end: Span) -> Iterator[Span]:
    """Yield positions about ``LONG_ROW`` apart in a passage of the same words, found by counting blanks."""
    blanks = [
        [match.end() for match in re.compile(r"\s+").finditer(text, first, last)]
        for text, first, last in zip(texts, start, end, strict=True)
    ]
    if end[0] - start[0] == end[1] - start[1] and not blanks[0]:  # a script without blanks
        steps = range(LONG_ROW, end[0] - start[0], LONG_ROW)
        yield from ((start[0] + step, start[1] + step) for step in steps)
    last = start
    for position in zip(*blanks):  # noqa: B905 - up to the end of the shorter one
        if position[0] - last[0] >= LONG_ROW:
            yield position
            last = position


def _split_long(texts: tuple[str, str], start: Span, end: Span) -> Iterator[RowSpans]:
    """Yield a row, or several for a long part without shared passages."""
    if max(end[0] - start[0], end[1] - start[1]) <= 3 * LONG_ROW:
        if start != end:
            yield RowSpans((start[0], end[0]), (start[1], end[1]))
        return
    sides = [_chunks(text, first, last) for text, first, last in zip(texts, start, end, strict=True)]
    for left, right in zip_longest(*sides):
        yield RowSpans(left or (end[0], end[0]), right or (end[1], end[1]))


def _chunks(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield spans of at most ``LONG_ROW``, which end with a line, or otherwise with a word, if possible."""
    while end - start > LONG_ROW:
        upto = start + LONG_ROW
        cut = (
            text.rfind("\n", start + LONG_ROW // 2, upto) + 1
            or text.rfind(" ", start + LONG_ROW // 2, upto) + 1
            or upto
        )
        yield start, cut
        start = cut
    if start < end:
        yield start, end


# Characters kept at each end of a long shared piece, and of another long piece: a few lines of context.
CONTEXT, DIFFERENT_CONTEXT = 120, 400
# Minimum length of a gap; a shorter one would save less than its note takes.
MIN_GAP = 60

Sides = tuple[SegmentedText, SegmentedText]


def align_rows(
    left: str, right: str, passages: Sequence[Passage], *, max_chars: int | None = None
) -> Iterator[AlignedRow]:
    """Return the rows of two texts, ready for display.

    Args:
        left: The left text.
        right: The right text.
        passages: Their shared passages, in code points.
        max_chars: Approximate number of characters to show of each text, those around the differences; a gap says how
            much is left out. All if not given.
    """
    sides = _segment_texts((left, right), passages, list(_common_parts((left, right), passages)))
    rows = row_spans(left, right, passages)
    if max_chars is None or max(len(left), len(right)) <= max_chars:
        return (AlignedRow(_pieces(sides[0], row.left), _pieces(sides[1], row.right)) for row in rows)
    return _shorten_rows(sides, rows, max_chars)


def _shorten_rows(sides: Sides, rows: Iterable[RowSpans], max_chars: int) -> Iterator[AlignedRow]:
    """Yield the rows around differences up to ``max_chars``, then one gap for the rest."""
    shown = [0, 0]
    for row, is_gap in _around_differences(sides, rows):
        if max(shown) >= max_chars:
            yield _gap_row(RowSpans((row.left[0], len(sides[0].text)), (row.right[0], len(sides[1].text))))
            return
        if is_gap:
            yield _gap_row(row)
            continue
        pieces = [_shorten_pieces(_pieces(side, span)) for side, span in zip(sides, row, strict=True)]
        for number, side in enumerate(pieces):
            shown[number] += sum(len(piece.text) for piece in side)
        yield AlignedRow(pieces[0], pieces[1])


def _around_differences(sides: Sides, rows: Iterable[RowSpans]) -> Iterator[tuple[RowSpans, bool]]:
    """Yield rows, each with whether it is a gap; gaps replace equal rows that are not next to a difference."""
    equal: list[RowSpans] = []
    for row in rows:
        if _is_equal(sides, row):
            equal.append(row)
        else:
            yield from _collapse(equal)
            yield row, False
            equal = []
    yield from _collapse(equal)


def _collapse(rows: list[RowSpans]) -> Iterator[tuple[RowSpans, bool]]:
    """Yield the first and the last of equal rows, with a gap between them."""
    if len(rows) > 3:
        gap = RowSpans((rows[1].left[0], rows[-2].left[1]), (rows[1].right[0], rows[-2].right[1]))
        yield from ((rows[0], False), (gap, True), (rows[-1], False))
    else:
        yield from ((row, False) for row in rows)


def _is_equal(sides: Sides, row: RowSpans) -> bool:
    """Return whether both sides of a row are equal, or shared as a whole."""
    left, right = (side.text[span[0] : span[1]] for side, span in zip(sides, row, strict=True))
    return left == right or all(_is_shared(side, span) for side, span in zip(sides, row, strict=True))


def _is_shared(side: SegmentedText, span: Span) -> bool:
    number = bisect_right(side.bounds, span[0]) - 1
    return span[0] < span[1] <= side.bounds[number + 1] and KINDS[side.kinds[number]] == "shared"


def _shorten_pieces(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces without the middle of long ones."""
    return list(chain.from_iterable(map(_shorten_piece, pieces)))


def _shorten_piece(piece: Piece) -> list[Piece]:
    kept = CONTEXT if piece.kind in ("shared", "common") else DIFFERENT_CONTEXT
    left_out = len(piece.text) - 2 * kept
    if left_out < MIN_GAP:
        return [piece]
    return [Piece(piece.text[:kept], piece.kind), _gap(left_out), Piece(piece.text[-kept:], piece.kind)]


def _gap_row(row: RowSpans) -> AlignedRow:
    left, right = ([_gap(end - start)] if end > start else [] for start, end in row)
    return AlignedRow(left, right)


def _gap(count: int) -> Piece:
    """Return the note for a number of characters that are left out."""
    return Piece(f"… {count:,} character{'' if count == 1 else 's'} …", "gap")
