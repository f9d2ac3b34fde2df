"""Shortened: aligned rows in, what is to be shown of them out: all of it, or what surrounds the differences."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from minwise.passages import Passage
from minwise.report.aligned_rows import KINDS, Piece, Row, Stretches, aligned_rows, cut_pieces, stretches

__all__ = ["Beside", "beside"]

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
