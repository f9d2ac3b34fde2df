"""Tables: rows in, markup out. Cells are markup already; whoever makes them has escaped what is not ours."""

from collections.abc import Iterable, Sequence

from minwise.report.html import escape

__all__ = ["facts", "folded", "table"]


def table(name: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table that scrolls by itself where it is too wide. The first ``words`` columns hold words, the others numbers.

    Args:
        name: What the table is, for those who do not see the page.
        heads: The heading of each column.
        rows: Cells as markup; the first of a row names it.
        words: How many columns, from the left, are not numbers.
    """
    looks = ["" if place < words else ' class="number"' for place in range(len(heads))]
    head = "".join(f'<th scope="col"{look}>{escape(one)}</th>' for one, look in zip(heads, looks, strict=True))
    body = "".join(f"<tr>{_row(cells, looks)}</tr>" for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names, escaped here, and their values, which are markup."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{"".join(rows)}</dl>'


def folded(words: str, body: str) -> str:
    """What is a click away; both are markup."""
    return f'<details class="folded"><summary>{words}</summary>{body}</details>'


def _row(cells: Sequence[str], looks: Sequence[str]) -> str:
    first, *others = cells
    return f'<th scope="row">{first}</th>' + "".join(
        f"<td{look}>{cell}</td>" for cell, look in zip(others, looks[1:], strict=True)
    )
