"""Building blocks of what results show in a terminal (``repr``) and in a notebook (``_repr_html_``).

A notebook has a theme of its own, which need not be the setting of the browser. Its text colour is inherited, and all
other colours are translucent or of medium brightness, so that they are readable on a light and on a dark background.
Everything is cut to a bounded size, and control characters of texts never reach a terminal.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from minwise._internal.formatting import format_similarity
from minwise._internal.html import escape

__all__ = [
    "TERMINAL_WIDTH",
    "fact_list",
    "facts_html",
    "middle",
    "notebook",
    "one_line",
    "text_facts",
    "text_table",
    "value_table",
]

# Columns of the narrowest terminal in common use.
TERMINAL_WIDTH = 80
# Widths of a cell of a table, in columns of a terminal: of an id or a number at most, and of a text at least.
CELL_WIDTH, CELL_WIDTH_BESIDE_TEXTS, LEAST_TEXT_WIDTH = 24, 16, 12
# Characters of a text, and of any other value, in a cell of a notebook.
SNIPPET_CHARACTERS, ID_CHARACTERS = 160, 40
# The colours of the pages (``colours.css``) for any background. Rules of tables name the class three times, to precede
# those of the notebook.
STYLE = """
.minwise { --ink: currentColor; --quiet: color-mix(in srgb, currentColor 72%, transparent); --page: transparent;
  --panel: rgba(128, 128, 128, 0.1); --line: rgba(128, 128, 128, 0.35); --grid: rgba(128, 128, 128, 0.2);
  --accent: #3f7fd0; --bar: #3f7fd0; --warn: #c98a1b; --bad: #d23b4e; --good: #2f9e57; --removed: #8f73d6;
  --shared: rgba(47, 158, 87, 0.22); --only-left: rgba(63, 127, 208, 0.28); --only-right: rgba(240, 168, 48, 0.32);
  max-width: 64rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
.minwise .head { font-size: 1.1em; font-weight: 600; margin: 0.2em 0 0.4em; }
.minwise .name { font-weight: 600; margin: 1em 0 0.3em; }
.minwise .note { color: var(--quiet); margin: 0.4em 0; }
.minwise.minwise.minwise table { border-collapse: collapse; margin: 0.3em 0; font-size: inherit; border: 0; }
.minwise.minwise.minwise tr { background: transparent; }
.minwise.minwise.minwise th, .minwise.minwise.minwise td {
  text-align: left; vertical-align: top; padding: 0.25em 1.2em 0.25em 0; border: 0;
  border-bottom: 1px solid var(--line); white-space: normal; overflow-wrap: anywhere; max-width: 30rem; }
.minwise.minwise.minwise th { color: var(--quiet); font-weight: 500; white-space: nowrap; }
.minwise.minwise.minwise .plain, .minwise.minwise.minwise .number { white-space: nowrap; }
.minwise.minwise.minwise .number { text-align: right; }
.minwise .sides { margin: 0.3em 0 0.9em; }
.minwise svg.s-curve { width: 100%; max-width: 38rem; height: auto; display: block; }
.minwise svg.s-curve text { fill: currentColor; font-family: inherit; }
.minwise svg.s-curve .heading { font-size: 21px; font-weight: 600; }
.minwise svg.s-curve .label, .minwise svg.s-curve .strong, .minwise svg.s-curve .quiet { font-size: 13px; }
.minwise svg.s-curve .strong { font-weight: 600; }
.minwise svg.s-curve .quiet { opacity: 0.75; }
.minwise svg.s-curve .grid { stroke: var(--grid); }
.minwise svg.s-curve .axis { fill: none; stroke: var(--line); }
.minwise svg.s-curve .curve { fill: none; stroke: var(--accent); stroke-width: 2.5; stroke-linejoin: round; }
.minwise svg.s-curve .false-positive { fill: #f0a830; fill-opacity: 0.5; }
.minwise svg.s-curve .false-negative { fill: #d23b4e; fill-opacity: 0.65; }
.minwise svg.s-curve .threshold { stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 5 4; }
.minwise svg.s-curve .recall { fill: var(--accent); }
"""
RULE = re.compile(r"(^|[{}])([^{}@]+)\{")


def notebook(*parts: str, style: str = "") -> str:
    """Return the HTML of a cell: markup in one element, with the styles that it needs.

    Args:
        *parts: Markup; texts in it must be escaped already.
        style: CSS rules of a page, which apply to this element only.
    """
    return f'<div class="minwise"><style>{STYLE}{_scoped(style)}</style>{"".join(parts)}</div>'


def _scoped(style: str) -> str:
    """Return CSS rules that apply inside the element only.

    >>> _scoped("mark, .a b { color: red; } @media print { mark { color: blue; } }")
    '.minwise mark, .minwise .a b { color: red; } @media print {.minwise mark { color: blue; } }'
    """

    def prefix(rule: re.Match[str]) -> str:
        selectors = ", ".join(f".minwise {selector.strip()}" for selector in rule[2].split(","))
        return f"{rule[1]}{selectors} {{"

    return RULE.sub(prefix, style)


def fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table of names, which are escaped here, and values, which are markup."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in facts)
    return f"<table>{rows}</table>"


def facts_html(head: str, facts: Mapping[str, object], *, hide: tuple[str, ...] = ()) -> str:
    """Return a head line and plain values for a notebook, without those that are None or hidden."""
    shown = {name: value for name, value in facts.items() if value is not None and name not in hide}
    values = ((name.replace("_", " "), escape(str(value))) for name, value in shown.items())
    return notebook(f'<p class="head">{escape(head)}</p>', fact_list(values))


def value_table(headings: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 0) -> str:
    """Return a table of plain values, which are escaped and shortened here; numbers are on the right.

    Args:
        headings: Names of the columns.
        rows: Values of the columns.
        texts: Number of last columns that are texts; all others are on one line.
    """
    shown = [list(row) for row in rows]
    numeric = [all(isinstance(row[column], (int, float)) for row in shown) for column in range(len(headings))]
    plain = len(headings) - texts
    kinds = ["number" if is_number else "plain" if at < plain else "text" for at, is_number in enumerate(numeric)]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for name, kind in zip(headings, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell(value, kind) for value, kind in zip(row, kinds, strict=True))}</tr>" for row in shown
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object, kind: str) -> str:
    text = _plain(value)
    shown = one_line(text, SNIPPET_CHARACTERS) if kind == "text" else middle(text, ID_CHARACTERS)
    return f'<td class="{kind}">{escape(shown)}</td>'


def _plain(value: object) -> str:
    """Return a value as text: floats, which are similarities, with four digits; None as a dash."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else format_similarity(value)
    return "–" if value is None else str(value)


def one_line(text: str, width: int) -> str:
    r"""Return the start of a text on one line of at most ``width`` terminal columns, without control characters.

    >>> one_line("two\nlines \x1b[31m", 80), one_line("shortened", 6)
    ('two lines �[31m', 'short…')
    """
    flat = " ".join(text[: 4 * width].split())
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in flat)
    shown: list[str] = []
    used = 0
    for character in printable:
        used += _columns(character)
        if used > width:
            return _without_last(shown, width)
        shown.append(character)
    return "".join(shown) + ("…" if len(text) > 4 * width and used < width else "")


def middle(text: str, width: int) -> str:
    """Return a name on one line; of a long one, the end, which distinguishes it, and as much of the start.

    >>> middle("corpus/part-00001.jsonl:17", 17)
    'corpus/p…jsonl:17'
    """
    flat = one_line(text, len(text) * 2 + 1)
    if sum(map(_columns, flat)) <= width:
        return flat
    end = (width - 1) // 2 if flat.isascii() else (width - 1) // 4
    return f"{one_line(flat, width - end)[:-1].rstrip('…')}…{flat[len(flat) - end :]}"


def _without_last(shown: list[str], width: int) -> str:
    """Return characters with an ellipsis in the place of the last ones."""
    while shown and sum(map(_columns, shown)) >= width:
        shown.pop()
    return "".join(shown).rstrip() + "…"


def _columns(character: str) -> int:
    """Return the terminal columns of a character: 2 for wide ones, 0 for combining ones."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def text_facts(head: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a head line and lines of names and values, cut to the width of a terminal.

    >>> print(text_facts("Plan", [("bands", "26"), ("rows", "8")]))
    Plan
      bands  26
      rows   8
    """
    listed = list(facts)
    widest = max((len(name) for name, _ in listed), default=0)
    lines = [f"  {name:<{widest}}  {one_line(value, TERMINAL_WIDTH - widest - 4)}" for name, value in listed]
    return "\n".join([one_line(head, TERMINAL_WIDTH), *lines])


def text_table(headings: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 0) -> str:
    r"""Return a table of aligned columns that fits a terminal.

    Args:
        headings: Names of the columns.
        rows: Values of the columns.
        texts: Number of last columns that are texts: they share the space that the others leave, or are left out.

    >>> print(text_table(["left", "similarity", "text"], [["a", 0.75, "two\nlines"], ["bc", 1.0, "x"]], texts=1))
    left  similarity  text
    a         0.7500  two lines
    bc        1.0000  x
    """
    values = [list(row) for row in rows]
    numeric = [bool(values) and all(isinstance(row[at], (int, float)) for row in values) for at in range(len(headings))]
    lines = [list(headings), *([_plain(value) for value in row] for row in values)]
    widths = _column_widths(lines, len(headings) - texts, texts)
    columns = list(zip(widths, numeric, strict=False))  # columns of texts may be left out
    return "\n".join(_table_line(line, columns, len(headings) - texts) for line in lines)


def _table_line(line: list[str], columns: list[tuple[int, bool]], plain: int) -> str:
    cells = []
    for at, (cell, (width, right)) in enumerate(zip(line, columns, strict=False)):
        shown = middle(cell, width) if at < plain else one_line(cell, width)
        cells.append(_padded(shown, width, right))
    return "  ".join(cells).rstrip()


def _column_widths(lines: list[list[str]], plain: int, texts: int) -> list[int]:
    """Return the width of each column; columns of texts have none if there is too little space."""
    most = min(
        CELL_WIDTH_BESIDE_TEXTS if texts else CELL_WIDTH, max(1, (TERMINAL_WIDTH - 2 * (plain - 1)) // max(plain, 1))
    )
    widths = [max(sum(map(_columns, middle(line[at], most))) for line in lines) for at in range(plain)]
    space = (TERMINAL_WIDTH - sum(widths) - 2 * plain) // max(texts, 1) - 2
    return widths if space < LEAST_TEXT_WIDTH else [*widths, *[space] * texts]


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - sum(map(_columns, text)))
    return space + text if right else text + space
