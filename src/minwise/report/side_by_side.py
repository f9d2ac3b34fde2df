"""Side by side: two texts and their passages in, a piece of a page out that shows them in two columns.

`STYLE` goes into the page once, however many such pieces it has. On a narrow screen the columns stand one below the
other, row by row. Of many rows a browser lays out only those in sight, so a page of megabytes opens as well.
"""

from collections.abc import Sequence

from minwise.passages import Passage
from minwise.report.aligned_rows import Piece
from minwise.report.html import escape
from minwise.report.shortened import Beside, beside

__all__ = ["LEGEND", "STYLE", "side_by_side"]

# Shared words have a line below, moved ones a dotted one: a reader who can not tell the colours sees these.
STYLE = """
.sides { border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.sides .pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.sides.many .pair { content-visibility: auto; contain-intrinsic-size: auto 4rem; }
.sides .side { padding: 0.2rem 0.9rem; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
.sides .side + .side { border-left: 1px solid var(--line); }
.sides .names { background: var(--panel); border-bottom: 1px solid var(--line); font-weight: 600; }
.sides .pair:nth-child(2) .side { padding-top: 0.6rem; }
.sides .pair:last-child .side { padding-bottom: 0.6rem; }
mark { color: inherit; background: var(--shared); border-radius: 2px; box-decoration-break: clone;
  -webkit-box-decoration-break: clone; }
mark.moved { background: var(--moved); text-decoration: underline dotted 1px; text-underline-offset: 3px; }
.sides .gap { color: var(--quiet); font-style: italic; }
.legend { color: var(--quiet); margin: 0.5rem 0; }
.legend mark { color: var(--ink); padding: 0 0.25rem; }
@media (max-width: 44rem) {
  .sides .pair { grid-template-columns: minmax(0, 1fr); padding: 0.3rem 0; }
  .sides .pair + .pair { border-top: 1px solid var(--line); }
  .sides .side { padding: 0.1rem 0.7rem; border-left: 4px solid var(--accent); }
  .sides .side + .side { border-left: 4px solid var(--warn); }
}
@media print { .sides.many .pair { content-visibility: visible; } }
"""

# Rows that a browser lays out without a moment's thought.
MANY_ROWS = 200
# What the marks mean; goes above or below the texts.
LEGEND = (
    '<p class="legend"><mark>in both texts</mark> · <mark class="moved">in both, at another place</mark>'
    " · everything else is in one text only</p>"
)


def side_by_side(
    left: str,
    right: str,
    passages: Sequence[Passage],
    *,
    names: tuple[str, str] | None = None,
    most: int | None = None,
) -> str:
    """Both texts in two columns, what they share marked and beside each other, as HTML.

    Args:
        left: The left text.
        right: The right text.
        passages: What they share, in code points; see :func:`minwise.report.readable.readable_passages` for bytes.
        names: What the texts are called, above them.
        most: Characters to show of either text, about: those around the differences. All of them if not given.
    """
    head = "" if names is None else _pair(Beside([Piece(names[0], "only")], [Piece(names[1], "only")]), " names")
    rows = [_pair(row) for row in beside(left, right, passages, most=most)]
    many = " many" if len(rows) > MANY_ROWS else ""
    return f'<div class="sides{many}">\n{head}{"".join(rows)}</div>\n'


def _pair(row: Beside, kind: str = "") -> str:
    return f'<div class="pair{kind}">{_side(row.left)}{_side(row.right)}</div>\n'


def _side(pieces: list[Piece]) -> str:
    return f'<div class="side" dir="auto">{"".join(map(_piece, pieces))}</div>'


def _piece(piece: Piece) -> str:
    text = escape(piece.text)
    if piece.kind == "shared":
        return f"<mark>{text}</mark>"
    if piece.kind == "moved":
        return f'<mark class="moved">{text}</mark>'
    return f'<span class="gap">{text}</span>' if piece.kind == "gap" else text
