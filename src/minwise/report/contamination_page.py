"""Page of a decontamination: counts, items that are in most rows, hits side by side, and the audit."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from minwise._internal.formatting import format_percent, plural
from minwise._internal.html import escape, page, section, table
from minwise.comparison.page import SIDE_BY_SIDE_STYLE
from minwise.report.overview import figure, note_section, page_header, unreadable_section
from minwise.report.run_sections import plain_settings_section, source_section, timing_section

__all__ = ["ShownHit", "contamination_page", "marked_text"]

Values = Mapping[str, Any]
# Characters that are shown before and after a span.
CONTEXT = 120
STYLE = ".sides { margin: 0 0 1.5rem; }"


class ShownHit(NamedTuple):
    """Hit with both sides as markup.

    Attributes:
        row: Name of the training row.
        item: Name of the item.
        share: Share of the item's rare n-grams.
        sides: What :func:`marked_text` makes of the row, and of the item.
    """

    row: str
    item: str
    share: float
    sides: tuple[str, str]


def contamination_page(report: Values, run: Values, hits: Iterable[ShownHit]) -> str:
    """Return the page of a run as one self-contained HTML file."""
    shown = list(hits)
    counts = report["counts"]
    title = f"{counts['contaminated']:,} of {plural(counts['documents'], 'row')} contaminated."
    sections = [
        unreadable_section(report),
        note_section(report),
        section("items", "Items in most rows", _items(report)) if report["most_found"] else "",
        section("hits", "Hits", "".join(map(_side_by_side, shown))) if shown else "",
        _audit(report.get("audit")),
        source_section(report),
        plain_settings_section(report),
        timing_section(run),
    ]
    head = page_header(title, report, run, _figures(report))
    style = SIDE_BY_SIDE_STYLE + Path(__file__).with_name("page_style.css").read_text(encoding="utf-8") + STYLE
    return page(f"minwise report · {title}", f"<main>{head}{''.join(sections)}</main>", style=style)


def _figures(report: Values) -> list[str]:
    counts, items = report["counts"], report["items"]
    rows = ("read", "contaminated", "kept", "removed", "quarantined")
    notes = {
        "items": f"{plural(items['ngrams'], 'n-gram')}, {items['common_ngrams']:,} common",
        "found": plural(items["hits"], "hit"),
        "uncheckable": "too short or common" if items["uncheckable"] else "",
    }
    return [
        *(figure(name, counts[name], None) for name in rows),
        *(figure(name, items[name], None, note) for name, note in notes.items()),
    ]


def _items(report: Values) -> str:
    rows = [
        [escape(f"{item['eval_id']} · {item['eval_column']}"), f"{item['rows']:,}"] for item in report["most_found"]
    ]
    return table("Items in most rows", ["item", "rows"], rows)


def _audit(audit: Values | None) -> str:
    """Return recall by kind of planted item, and the controls that were hits; empty without an audit."""
    if audit is None:
        return ""
    rows = [
        [escape(kind["kind"]), f"{kind['found']:,} of {kind['planted']:,}", _interval(kind)] for kind in audit["recall"]
    ]
    precision = audit["precision"]
    note = f"{precision['flagged']:,} of {precision['controls']:,} controls without an item are hits."
    return section("audit", "Audit", table("Recall", ["planted", "found", "recall"], rows) + f"<p>{note}</p>")


def _interval(value: Values) -> str:
    return f"{value['value']:.1%} ({value['low']:.1%} to {value['high']:.1%})"


def _side_by_side(hit: ShownHit) -> str:
    """Return both sides of a hit."""
    share = format_percent(round(hit.share * 1000), 1000)
    names = (hit.row, f"{hit.item} · {share} of its rare n-grams")
    head = "".join(f'<div class="side">{escape(name)}</div>' for name in names)
    body = "".join(f'<div class="side" dir="auto">{side}</div>' for side in hit.sides)
    return f'<div class="sides"><div class="pair names">{head}</div><div class="pair">{body}</div></div>'


def marked_text(data: "bytes | memoryview | None", spans: Sequence[tuple[int, int]]) -> str:
    """Return the text around spans as markup, with the union of the spans marked.

    Only the part that is shown is decoded, because a text may have 100 MB.

    Args:
        data: The text in UTF-8; None if it could not be read again.
        spans: Start and end of each span in code points.
    """
    if data is None:
        return '<span class="gap">could not be read again</span>'
    shown = max((end for _, end in spans), default=0) + CONTEXT + 1
    return _marked(str(data[: 4 * shown], encoding="utf-8", errors="replace"), spans)


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    merged: list[list[int]] = []
    for start, end in sorted(span for span in spans if span[0] < len(text)):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    parts, shown = [], max(0, merged[0][0] - CONTEXT) if merged else 0
    parts.append("… " if shown else "")
    for start, end in merged:
        if start - shown > 2 * CONTEXT:
            parts.append(f"{escape(text[shown : shown + CONTEXT])} … ")
            shown = start - CONTEXT
        parts.append(f"{escape(text[shown:start])}<mark>{escape(text[start:end])}</mark>")
        shown = end
    rest = text[shown : shown + CONTEXT]
    return "".join([*parts, escape(rest), " …" if len(text) > shown + CONTEXT else ""])
