"""HTML of a comparison: two texts side by side, and the whole page.

A page includes ``SIDE_BY_SIDE_STYLE`` once, for any number of comparisons. On a narrow screen the two sides of a row
are one below the other. If there are many rows, a browser lays out only the visible ones, so pages of megabytes open.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from minwise._internal.display import fact_list, notebook
from minwise._internal.formatting import format_percent, format_probability, plural
from minwise._internal.html import escape, page
from minwise._internal.temporary import output_writer
from minwise.comparison.alignment import AlignedRow, Piece, align_rows, decode_passages, decode_text
from minwise.comparison.passages import Passage
from minwise.sketches.planning import Plan

if TYPE_CHECKING:
    from minwise.comparison.comparison import Comparison

__all__ = [
    "LEGEND",
    "SIDE_BY_SIDE_STYLE",
    "compare_page",
    "comparison_html",
    "notebook_texts",
    "side_by_side",
    "write_page",
]

# Differences stand out, shared text is quiet. Colour is never the only cue: what one text has alone is underlined in
# the colour of its side, and what has moved is underlined with dots.
SIDE_BY_SIDE_STYLE = """
.sides { tab-size: 4; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.sides .pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.sides.many .pair { content-visibility: auto; contain-intrinsic-size: auto 4rem; }
.sides .side { padding: 0.2rem 0.9rem; color: var(--quiet); white-space: pre-wrap; overflow-wrap: anywhere; }
.sides .side + .side { border-left: 1px solid var(--line); }
.sides .names { background: var(--panel); border-bottom: 1px solid var(--line); font-weight: 600; }
.sides .names .side { color: var(--ink); box-shadow: inset 0 3px 0 var(--accent); padding-top: 0.35rem; }
.sides .names .side + .side { box-shadow: inset 0 3px 0 var(--warn); }
.sides .pair:nth-child(2) .side { padding-top: 0.6rem; }
.sides .pair:last-child .side { padding-bottom: 0.6rem; }
mark { color: var(--ink); background: var(--shared); border-radius: 2px; box-decoration-break: clone;
  -webkit-box-decoration-break: clone; text-underline-offset: 3px; }
mark.only { background: var(--only-left); text-decoration: underline solid 2px var(--accent); }
.side + .side mark.only, .legend mark.right { background: var(--only-right); text-decoration-color: var(--warn); }
mark.moved { text-decoration: underline dotted 2px var(--good); }
.sides .gap { color: var(--quiet); font-style: italic; }
.legend { color: var(--quiet); margin: 0.5rem 0; font-size: 0.9rem; }
.legend mark { padding: 0 0.25rem; }
@media (max-width: 44rem) {
  .sides .pair { grid-template-columns: minmax(0, 1fr); padding: 0.3rem 0; }
  .sides .pair + .pair { border-top: 1px solid var(--line); }
  .sides .side { padding: 0.1rem 0.7rem; border-left: 4px solid var(--accent); }
  .sides .side + .side { border-left: 4px solid var(--warn); }
  .sides .names .side, .sides .names .side + .side { box-shadow: none; padding-top: 0.1rem; }
}
@media print {
  .sides.many .pair { content-visibility: visible; }
  mark { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

# Number of rows that a browser lays out at once without a noticeable delay.
MANY_ROWS = 200
# Meaning of the marks.
LEGEND = (
    '<p class="legend"><mark class="only">only in the first text</mark> · '
    '<mark class="only right">only in the second text</mark> · '
    '<mark class="moved">in both, at another position</mark> · grey: in both</p>'
)


def side_by_side(
    left: str,
    right: str,
    passages: Sequence[Passage],
    *,
    names: tuple[str, str] | None = None,
    max_chars: int | None = None,
) -> str:
    """Return HTML with both texts in two columns, aligned, and with their differences marked.

    Args:
        left: The left text.
        right: The right text.
        passages: Their shared passages, in code points; ``decode_passages`` converts those in bytes.
        names: Names of the texts, shown above them.
        max_chars: Approximate number of characters to show of each text, those around the differences. All if not
            given.
    """
    head = "" if names is None else _pair(AlignedRow(*([Piece(name, "common")] for name in names)), " names")
    rows = [_pair(row) for row in align_rows(left, right, passages, max_chars=max_chars)]
    many = " many" if len(rows) > MANY_ROWS else ""
    return f'<div class="sides{many}">\n{head}{"".join(rows)}</div>\n'


def _pair(row: AlignedRow, kind: str = "") -> str:
    return f'<div class="pair{kind}">{_side(row.left)}{_side(row.right)}</div>\n'


def _side(pieces: list[Piece]) -> str:
    return f'<div class="side" dir="auto">{"".join(map(_piece, pieces))}</div>'


# Elements of the kinds of pieces; any other text is common to both texts.
ELEMENTS = {
    "shared": '<span class="shared">{}</span>',
    "moved": '<mark class="moved">{}</mark>',
    "only": '<mark class="only">{}</mark>',
    "gap": '<span class="gap">{}</span>',
}


def _piece(piece: Piece) -> str:
    text = escape(piece.text)
    return ELEMENTS[piece.kind].format(text) if piece.kind in ELEMENTS else text


# Matching bands that are listed by number; of more, only the count is useful.
SHOWN_BANDS = 12
# Points of the curve; the picture is 300 units wide, and more points would not be visible.
SAMPLES = 76

STYLE = """
.sum { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1rem 2.5rem; margin: 1.5rem 0 2rem; }
.sum dl { display: grid; grid-template-columns: fit-content(45%) minmax(0, 1fr); margin: 0; align-content: start; }
.sum dt, .sum dd { margin: 0; padding: 0.4rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.sum dt { color: var(--quiet); padding-right: 1.5rem; }
.sum dd strong { font-size: 1.15em; }
.sum .yes { color: var(--good); font-weight: 600; }
.sum .no { color: var(--bad); font-weight: 600; }
.sum figure { margin: 0; }
.sum svg { width: 100%; height: auto; display: block; }
.sum figcaption { color: var(--quiet); font-size: 0.9rem; }
.sum svg text { fill: var(--quiet); font-size: 11px; }
.sum svg .grid { stroke: var(--grid); }
.sum svg .axis { stroke: var(--quiet); fill: none; }
.sum svg .s-curve { stroke: var(--bar); stroke-width: 2.5; fill: none; }
.sum svg .at { stroke: var(--ink); stroke-dasharray: 4 3; }
.sum svg .dot { fill: var(--accent); stroke: var(--page); stroke-width: 2; }
@media (max-width: 44rem) {
  .sum { grid-template-columns: minmax(0, 1fr); }
  .sum dl { grid-template-columns: minmax(0, 1fr); }
  .sum dt { border: 0; padding: 0.4rem 0 0; font-size: 0.9rem; }
  .sum dd { padding-top: 0; }
}
"""


def compare_page(comparison: "Comparison", names: tuple[str, str]) -> str:
    """Return the whole page."""
    left, right = (decode_text(name) for name in names)
    in_bytes = comparison.shingler.kind == "byte"
    texts = decode_passages(*comparison.texts, comparison.passages, in_bytes=in_bytes)
    body = (
        f"<h1>Similarity of two texts: {_similarity(comparison)}</h1>\n"
        f'<p class="quiet">{escape(left)} and {escape(right)}</p>\n'
        f'<div class="sum">{_summary(comparison, left, right)}{_curve(comparison)}</div>\n'
        f"<h2>Side by side</h2>\n{LEGEND}\n{side_by_side(*texts, names=(left, right))}"
    )
    return page(f"{left} and {right}: similarity {_similarity(comparison)}", body, style=STYLE + SIDE_BY_SIDE_STYLE)


# Characters of each text in a notebook.
NOTEBOOK_CHARACTERS = 4000


def comparison_html(comparison: "Comparison") -> str:
    """Return the comparison for a notebook: its results, and the parts of both texts around their differences."""
    head = f'<p class="head">Similarity of two texts: {_similarity(comparison)}</p>'
    facts = fact_list(_facts(comparison, "left", "right"))
    return notebook(head, facts, notebook_texts(comparison, ("left", "right")), style=SIDE_BY_SIDE_STYLE)


def notebook_texts(comparison: "Comparison", names: tuple[str, str]) -> str:
    """Return a legend and the parts of both texts around their differences, for a cell of a notebook."""
    in_bytes = comparison.shingler.kind == "byte"
    texts = decode_passages(*comparison.texts, comparison.passages, in_bytes=in_bytes)
    return LEGEND + side_by_side(*texts, names=names, max_chars=NOTEBOOK_CHARACTERS)


def write_page(comparison: "Comparison", path: Path, names: tuple[str, str], *, overwrite: bool = True) -> None:
    """Write the page to a file, atomically."""
    html = compare_page(comparison, names).encode()
    with output_writer(path, overwrite=overwrite) as file:
        file.write(html)


def _similarity(comparison: "Comparison") -> str:
    return format_probability(comparison.similarity)


def _summary(comparison: "Comparison", left: str, right: str) -> str:
    """Return the results as a definition list."""
    lines = _facts(comparison, left, right)
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in lines)}</dl>"


def _facts(comparison: "Comparison", left: str, right: str) -> tuple[tuple[str, str], ...]:
    """Return the results as plain names and values in markup."""
    estimate = comparison.estimate
    interval = f"{estimate.low:.4f} to {estimate.high:.4f} at {estimate.confidence:.0%}"
    return (
        (
            "similarity",
            f"<strong>{_similarity(comparison)}</strong> exact Jaccard of {comparison.shingler.spec} shingles",
        ),
        ("estimate", f"{estimate.value:.4f} from signatures; {interval}"),
        ("shared", plural(comparison.shared, "shingle")),
        (f"only in {left}", _only(comparison.only_left, comparison.containment_left)),
        (f"only in {right}", _only(comparison.only_right, comparison.containment_right)),
        ("near-duplicates", _verdict(comparison)),
        ("candidates", _candidates(comparison)),
    )


def _only(count: int, containment: float) -> str:
    return f"{plural(count, 'shingle')}; {format_percent(containment, 1)} of its shingles are shared"


def _verdict(comparison: "Comparison") -> str:
    threshold = f"{comparison.plan.threshold:g}"
    if comparison.similarity >= comparison.plan.threshold:
        return f'<span class="yes">yes</span>, at the threshold {threshold}'
    return f'<span class="no">no</span>, below the threshold {threshold}'


def _candidates(comparison: "Comparison") -> str:
    """Return whether a run would compare the pair, and by which bands."""
    fired, bands = comparison.bands_fired, comparison.plan.bands
    if not fired:
        return f'<span class="no">no</span>, none of {plural(bands, "band")} fires'
    named = ", ".join(map(str, fired[:SHOWN_BANDS])) + (", …" if len(fired) > SHOWN_BANDS else "")
    fire = "fires" if len(fired) == 1 else "fire"
    return f'<span class="yes">yes</span>, {len(fired)} of {plural(bands, "band")} {fire} ({named})'


def _curve(comparison: "Comparison") -> str:
    """Return the S-curve of the plan with the pair on it, and a caption."""
    plan, x, y = comparison.plan, _x(comparison.similarity), _y(comparison.chance)
    ticks = "".join(
        f'<line class="grid" x1="{_x(tick):g}" y1="10" x2="{_x(tick):g}" y2="160"/>'
        f'<line class="grid" x1="30" y1="{_y(tick):g}" x2="330" y2="{_y(tick):g}"/>'
        f'<text x="{_x(tick):g}" y="175" text-anchor="middle">{tick:g}</text>'
        f'<text x="24" y="{_y(tick) + 4:g}" text-anchor="end">{tick:g}</text>'
        for tick in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    threshold = f'<line class="at" x1="{_x(plan.threshold):g}" y1="10" x2="{_x(plan.threshold):g}" y2="160"/>'
    drawing = (
        f'{ticks}<path class="axis" d="M30 10 V160 H330"/>{threshold}<path class="s-curve" d="{_path(plan)}"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    )
    caption = (
        f"With {plan.layout}, {format_percent(comparison.chance, 1)} of pairs with this similarity become candidates. "
        f"The dashed line is the threshold {plan.threshold:g}, the dot is this pair."
    )
    label = f"Probability that a pair becomes a candidate, by similarity. {caption}"
    svg = f'<svg viewBox="0 0 340 182" role="img" aria-label="{escape(label)}">{drawing}</svg>'
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _path(plan: Plan) -> str:
    similarities = np.linspace(0, 1, SAMPLES)
    points = zip(similarities.tolist(), plan.probability(similarities).tolist(), strict=True)
    return "M" + " L".join(f"{_x(similarity):.1f} {_y(probability):.1f}" for similarity, probability in points)


def _x(similarity: float) -> float:
    return 30 + 300 * similarity


def _y(probability: float) -> float:
    return 160 - 150 * probability
