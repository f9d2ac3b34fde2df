"""Aligned rows: two texts and their passages in, rows out that put beside each other what belongs together.

A row ends where a line ends in both texts inside or next to a passage of the backbone, so that lines stay whole; a
stretch without such places is cut by its length. The rows hold both texts, whole and in their order.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.comparison.display_text import visible
from minwise.comparison.passages import Passage

__all__ = ["Beside", "Piece", "Row", "aligned_rows", "beside", "cut_pieces", "differ"]

# Code points after which a row without a line end is cut, and most rows that a text is cut into, for a browser's sake.
LONG_ROW, MOST_ROWS = 1200, 20_000
# Signs, such as a dash or a quotation mark, that may stand between the start of a line and its first word.
LINE_HEAD = 8
KINDS = ("only", "moved", "shared")

Span = tuple[int, int]


class Piece(NamedTuple):
    """A stretch of a text, as it is to be shown.

    Attributes:
        text: The text, without anything that a terminal or a browser would obey.
        kind: ``shared``; ``moved``, shared at another place; ``only``, in this text only; ``gap``, what is left out.
    """

    text: str
    kind: str


class Row(NamedTuple):
    """What stands beside each other: a stretch of either text, as start and end in code points."""

    left: Span
    right: Span


class Stretches(NamedTuple):
    """One text, cut where its kind changes: stretch i goes from ``bounds[i]`` to ``bounds[i + 1]``."""

    text: str
    bounds: list[int]
    kinds: list[int]


def aligned_rows(left: str, right: str, passages: Sequence[Passage]) -> Iterator[Row]:
    """The rows, from the first to the last; each text is what its spans are, one after the other."""
    least = max(len(left), len(right)) // MOST_ROWS
    start = (0, 0)
    for place in _meeting_places(left, right, passages):
        if place[0] - start[0] > least or place[1] - start[1] > least:
            yield from _cut_long((left, right), start, place)
            start = place
    yield from _cut_long((left, right), start, (len(left), len(right)))


def stretches(texts: tuple[str, str], passages: Sequence[Passage]) -> tuple[Stretches, Stretches]:
    """Both texts, cut where something shared or moved starts or ends."""
    columns = np.array(passages, dtype=np.int64).reshape(-1, 5)
    moved = columns[:, 4] == 1
    return (
        _stretches(texts[0], columns[~moved, 0:2], columns[moved, 0:2]),
        _stretches(texts[1], columns[~moved, 2:4], columns[moved, 2:4]),
    )


def differ(left: str, right: str, passages: Sequence[Passage]) -> bool:
    """Whether anything is in one text only or at another place; what no shingle holds differs if its characters do."""
    sides = [
        [(kind, side.text[start:end].strip() if KINDS[kind] == "only" else "") for kind, (start, end) in _spans(side)]
        for side in stretches((left, right), passages)
    ]
    return any(passage.moved for passage in passages) or sides[0] != sides[1]


def _spans(side: Stretches) -> Iterator[tuple[int, Span]]:
    return zip(side.kinds, pairwise(side.bounds), strict=True)


def _stretches(text: str, shared: NDArray[np.int64], moved: NDArray[np.int64]) -> Stretches:
    bounds = np.sort(np.concatenate([[0, len(text)], shared.ravel(), moved.ravel()]))
    bounds = bounds[np.append(True, bounds[1:] != bounds[:-1])]
    kinds = np.where(_inside(bounds, shared), 2, np.where(_inside(bounds, moved), 1, 0))[:-1]
    changes = np.append(True, kinds[1:] != kinds[:-1])[: len(kinds)]
    return Stretches(text, [*bounds[:-1][changes].tolist(), len(text)], kinds[changes].tolist())


def _inside(bounds: NDArray[np.int64], spans: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether what starts at each bound is inside a span."""
    opened = np.searchsorted(np.sort(spans[:, 0]), bounds, side="right")
    inside: NDArray[np.bool_] = opened > np.searchsorted(np.sort(spans[:, 1]), bounds, side="right")
    return inside


def cut_pieces(side: Stretches, span: Span) -> list[Piece]:
    """What stands in a span of a text, a piece per kind."""
    start, end = span
    pieces: list[Piece] = []
    number = bisect_right(side.bounds, start) - 1
    while start < end:
        upto = min(end, side.bounds[number + 1])
        pieces.append(Piece(visible(side.text[start:upto]), KINDS[side.kinds[number]]))
        start, number = upto, number + 1
    return pieces


def _meeting_places(left: str, right: str, passages: Sequence[Passage]) -> Iterator[Span]:
    """Places of the left and the right text that belong together and start a line, ascending in both."""
    texts = left, right
    at = (0, 0)
    for passage in passages:
        if passage.moved:
            continue
        ahead = max(at[0] - passage.left_start, at[1] - passage.right_start, 0)
        start = passage.left_start + ahead, passage.right_start + ahead
        end = passage.left_end, passage.right_end
        if start[0] < end[0] and start[1] < end[1]:
            yield from _around(texts, at, start)
            yield from _within(texts, start, end)
            at = end
    yield from _around(texts, at, (len(left), len(right)))


def _around(texts: tuple[str, str], at: Span, start: Span) -> Iterator[Span]:
    """Line starts between two passages: after the one, if both lines end alike, and before the other."""
    ends = [
        text.find("\n", place, min(upto, place + LINE_HEAD)) for text, place, upto in zip(texts, at, start, strict=True)
    ]
    after = at
    if min(ends) >= 0 and texts[0][at[0] : ends[0]].rstrip() == texts[1][at[1] : ends[1]].rstrip():
        after = ends[0] + 1, ends[1] + 1
        yield after
    lines = [_line_start(text, place, upto) for text, place, upto in zip(texts, after, start, strict=True)]
    if min(lines) >= 0 and (lines[0], lines[1]) not in ((0, 0), after):
        yield lines[0], lines[1]


def _line_start(text: str, after: int, place: int) -> int:
    """Where the line that nearly starts at a place does start, if that is not before ``after``; else -1."""
    start = text.rfind("\n", after, place) + 1
    if not start and (after == 0 or text[after - 1] == "\n"):
        start = after
    return start if (start or not after) and place - start <= LINE_HEAD else -1


def _within(texts: tuple[str, str], start: Span, end: Span) -> Iterator[Span]:
    """Places inside a passage: at each line, if both have as many, and as often as a row gets long."""
    for place in [*_line_starts(texts, start, end), end]:
        if place[0] - start[0] > LONG_ROW or place[1] - start[1] > LONG_ROW:
            yield from _words_apart(texts, start, place)
        if place != end:
            yield place
        start = place


def _line_starts(texts: tuple[str, str], start: Span, end: Span) -> Iterable[Span]:
    counts = [text.count("\n", first, last) for text, first, last in zip(texts, start, end, strict=True)]
    if not counts[0] or counts[0] != counts[1]:
        return ()
    found = [
        [match.end() for match in re.compile("\n").finditer(text, first, last)]
        for text, first, last in zip(texts, start, end, strict=True)
    ]
    return zip(found[0], found[1], strict=True)


def _words_apart(texts: tuple[str, str], start: Span, end: Span) -> Iterator[Span]:
    """Places about `LONG_ROW` apart in a passage of the same words, found by counting blanks."""
    blanks = [
        [match.end() for match in re.compile(r"\s+").finditer(text, first, last)]
        for text, first, last in zip(texts, start, end, strict=True)
    ]
    if end[0] - start[0] == end[1] - start[1] and not blanks[0]:  # a script without blanks
        steps = range(LONG_ROW, end[0] - start[0], LONG_ROW)
        yield from ((start[0] + step, start[1] + step) for step in steps)
    last = start
    for place in zip(*blanks):  # noqa: B905 - as far as both go
        if place[0] - last[0] >= LONG_ROW:
            yield place
            last = place


def _cut_long(texts: tuple[str, str], start: Span, end: Span) -> Iterator[Row]:
    """A row, or several where nothing is shared for a long while."""
    if max(end[0] - start[0], end[1] - start[1]) <= 3 * LONG_ROW:
        if start != end:
            yield Row((start[0], end[0]), (start[1], end[1]))
        return
    sides = [_chunks(text, first, last) for text, first, last in zip(texts, start, end, strict=True)]
    for left, right in zip_longest(*sides):
        yield Row(left or (end[0], end[0]), right or (end[1], end[1]))


def _chunks(text: str, start: int, end: int) -> Iterator[Span]:
    """Spans of at most `LONG_ROW`, which end with a line, or at least with a word, where they can."""
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


# Characters kept at each end of what is the same in both texts, and of what is not: a few lines, enough to see where.
CONTEXT, DIFFERENT_CONTEXT = 120, 400
# A gap is not worth its own words below this.
LEAST_GAP = 60

Sides = tuple[Stretches, Stretches]


class Beside(NamedTuple):
    """What is shown beside each other."""

    left: list[Piece]
    right: list[Piece]


def beside(left: str, right: str, passages: Sequence[Passage], *, most: int | None = None) -> Iterator[Beside]:
    """The rows of two texts as they are shown.

    Args:
        left: The left text.
        right: The right text.
        passages: What they share, in code points.
        most: Characters to show of either text, about; the rest is a gap that says how much it leaves out.
    """
    sides = stretches((left, right), passages)
    rows = aligned_rows(left, right, passages)
    if most is None or max(len(left), len(right)) <= most:
        return (Beside(cut_pieces(sides[0], row.left), cut_pieces(sides[1], row.right)) for row in rows)
    return _shortened(sides, rows, most)


def _shortened(sides: Sides, rows: Iterable[Row], most: int) -> Iterator[Beside]:
    """The rows around differences, until there is enough."""
    shown = [0, 0]
    for row, is_gap in _around_differences(sides, rows):
        if max(shown) >= most:
            yield _gap(Row((row.left[0], len(sides[0].text)), (row.right[0], len(sides[1].text))))
            return
        if is_gap:
            yield _gap(row)
            continue
        pieces = [_shorter_pieces(cut_pieces(side, span)) for side, span in zip(sides, row, strict=True)]
        for number, side in enumerate(pieces):
            shown[number] += sum(len(piece.text) for piece in side)
        yield Beside(pieces[0], pieces[1])


def _around_differences(sides: Sides, rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Rows, and gaps in place of rows that are the same in both texts and not next to others."""
    run: list[Row] = []
    for row in rows:
        if _is_same(sides, row):
            run.append(row)
        else:
            yield from _ends_of(run)
            yield row, False
            run = []
    yield from _ends_of(run)


def _ends_of(run: list[Row]) -> Iterator[tuple[Row, bool]]:
    """The first and the last of rows that are the same, and the gap between them."""
    if len(run) > 3:
        gap = Row((run[1].left[0], run[-2].left[1]), (run[1].right[0], run[-2].right[1]))
        yield from ((run[0], False), (gap, True), (run[-1], False))
    else:
        yield from ((row, False) for row in run)


def _is_same(sides: Sides, row: Row) -> bool:
    """Whether nothing in a row differs."""
    left, right = (side.text[span[0] : span[1]] for side, span in zip(sides, row, strict=True))
    return left == right or all(_is_shared(side, span) for side, span in zip(sides, row, strict=True))


def _is_shared(side: Stretches, span: tuple[int, int]) -> bool:
    number = bisect_right(side.bounds, span[0]) - 1
    return span[0] < span[1] <= side.bounds[number + 1] and KINDS[side.kinds[number]] == "shared"


def _shorter_pieces(pieces: list[Piece]) -> list[Piece]:
    """The pieces without the middle of long ones."""
    return list(chain.from_iterable(map(_shorter, pieces)))


def _shorter(piece: Piece) -> list[Piece]:
    kept = CONTEXT if piece.kind == "shared" else DIFFERENT_CONTEXT
    left_out = len(piece.text) - 2 * kept
    if left_out < LEAST_GAP:
        return [piece]
    return [
        Piece(piece.text[:kept], piece.kind),
        Piece(_left_out(left_out), "gap"),
        Piece(piece.text[-kept:], piece.kind),
    ]


def _gap(row: Row) -> Beside:
    """A row that says how much it leaves out."""
    left, right = ([Piece(_left_out(end - start), "gap")] if end > start else [] for start, end in row)
    return Beside(left, right)


def _left_out(count: int) -> str:
    return f"… {count:,} character{'' if count == 1 else 's'} …"
