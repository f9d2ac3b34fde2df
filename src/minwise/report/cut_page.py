"""Report page of cut passages: figures, the passages that are repeated most, cuts in their contexts, and the run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minwise._internal.formatting import format_percent, plural, shorten_middle
from minwise._internal.html import escape, page, section, table
from minwise.report.overview import figure, note_section, page_header, summary_sentence, unreadable_section
from minwise.report.run_sections import plain_settings_section, source_section, timing_section

__all__ = ["cut_page"]

Values = Mapping[str, Any]
STYLE = """
.cut-text { white-space: pre-wrap; overflow-wrap: anywhere; }
.cut-text del { background: var(--only-right); text-decoration: none; }
.cut-text .quiet { color: var(--quiet); }
#repeated th[scope="row"] { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 14rem; font-weight: 400; }
"""


def cut_page(report: Values, run: Values) -> str:
    """Return the page of a run that cut passages as one self-contained HTML file.

    Args:
        report: The content of ``report.json``.
        run: The content of ``run.json``.
    """
    sections = [
        unreadable_section(report),
        note_section(report),
        _most_repeated(report),
        _examples(report),
        source_section(report),
        plain_settings_section(report),
        timing_section(run),
    ]
    body = f"<main>{_headline(report, run)}{''.join(sections)}</main>"
    style = Path(__file__).with_name("page_style.css").read_text(encoding="utf-8") + STYLE
    return page(f"minwise report · {summary_sentence(report)}", body, style=style)


def _headline(report: Values, run: Values) -> str:
    counts, tokens = report["counts"], report["tokens"]
    figures = [
        figure("read", counts["read"], None),
        figure("kept", counts["kept"], None, format_percent(counts["kept"], max(1, counts["read"]))),
        figure("cut", counts["cut"], None, f"of the kept; {plural(counts['cuts'], 'cut')} in all"),
        figure("removed", counts["removed"], None, "too little was left" if counts["removed"] else ""),
        figure("tokens cut", tokens["cut"], None, format_percent(tokens["cut"], max(1, tokens["read"]))),
        figure("quarantined", counts["quarantined"], None),
    ]
    return page_header(summary_sentence(report), report, run, figures)


def _most_repeated(report: Values) -> str:
    rows = [
        [
            f'{escape(row["text"])}<br><span class="quiet">first in {shorten_middle(row["first"]["id"])}</span>',
            *(f"{row[name]:,}" for name in ("repeats", "sources", "tokens")),
        ]
        for row in report["most_repeated"]
    ]
    if not rows:
        return section("repeated", "Most repeated passages", "<p>No passage is repeated.</p>", "neutral")
    about = (
        "<p>Passages with the same first occurrence, by the number of their repeats. The text is that of the shortest "
        "repeat.</p>"
    )
    listed = table("Most repeated passages", ["passage", "repeats", "sources", "tokens"], rows)
    return section("repeated", "Most repeated passages", about + listed)


def _examples(report: Values) -> str:
    blocks = "".join(_example(row) for row in report["examples"])
    about = "<p>The first cuts, with the text around them. cuts.parquet has all.</p>"
    return section("cuts", "Cuts in context", about + blocks) if blocks else ""


def _example(row: Values) -> str:
    size = row["end"] - row["start"]
    more = f' <span class="quiet">… {size - len(row["text"]):,} more</span>' if size > len(row["text"]) else ""
    return (
        f"<h3>{shorten_middle(row['document']['id'])}, {plural(row['tokens'], 'token')}</h3>"
        f'<p class="cut-text"><span class="quiet">{escape(row["before"])}</span>'
        f'<del>{escape(row["text"])}</del>{more}<span class="quiet">{escape(row["after"])}</span></p>'
    )
