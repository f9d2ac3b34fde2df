"""Report page: the sections of a run in one self-contained HTML file.

The content comes from ``report.json``, ``run.json`` and, after an audit, ``audit.json``. The texts of documents are
passed separately.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minwise._internal.html import page
from minwise.comparison.page import SIDE_BY_SIDE_STYLE
from minwise.report.audit_section import audit_section
from minwise.report.cluster_section import DocumentTexts, near_miss_section, removed_section
from minwise.report.distribution import cluster_size_section, similarity_section, threshold_section
from minwise.report.overview import headline, note_section, summary_sentence, warning_section
from minwise.report.run_sections import (
    common_phrase_section,
    settings_section,
    source_section,
    timing_section,
    value_section,
)

__all__ = ["report_page"]

Values = Mapping[str, Any]

# Links of the navigation by section.
CONTENTS = {
    "similarities": "similarities",
    "sizes": "cluster sizes",
    "clusters": "removed",
    "just-below": "just below the threshold",
    "thresholds": "other thresholds",
    "sources": "sources",
    "values": "values",
    "common": "common phrases",
    "settings": "settings",
    "audit": "audit",
    "timing": "time and memory",
}
COMMAND = "minwise restore OUT --ids keep-ids.txt -o RESTORED"


def report_page(
    report: Values,
    run: Values,
    texts: Mapping[tuple[str, int], str],
    audit: Values | None = None,
    *,
    texts_note: str = "",
    reasons: Mapping[tuple[str, int], str] | None = None,
) -> str:
    """Return the report page of a run as one self-contained HTML file.

    Args:
        report: The content of ``report.json``.
        run: The content of ``run.json``, which may be incomplete.
        texts: The available texts by source and row.
        audit: The content of ``audit.json``; None if the run was not audited.
        texts_note: Why some texts are missing, in one sentence.
        reasons: Why each missing text is missing, by source and row, as a part of a sentence.
    """
    shown = DocumentTexts(texts, report["settings"], texts_note, str(run.get("root") or ""), reasons or {})
    charts = similarity_section(report) + cluster_size_section(report)
    sections = [
        warning_section(report),
        note_section(report),
        f'<div class="columns">{charts}</div>' if charts else "",
        removed_section(report, shown),
        near_miss_section(report, shown),
        threshold_section(report),
        source_section(report),
        value_section(report),
        common_phrase_section(report),
        settings_section(report, audit),
        audit_section(report, run, audit),
        timing_section(run),
    ]
    body = f"<main>{headline(report, run)}{_contents(''.join(sections))}{''.join(sections)}</main>{_selection_bar()}"
    style = SIDE_BY_SIDE_STYLE + _asset("page_style.css")
    return page(f"minwise report · {summary_sentence(report)}", body, style=style, script=_asset("page_script.js"))


def _contents(sections: str) -> str:
    """Return links to the sections of the page."""
    links = [
        f'<a href="#{name}">{label}</a>' for name, label in CONTENTS.items() if f'<section id="{name}"' in sections
    ]
    return f'<nav aria-label="Sections">{" ".join(links)}</nav>'


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _selection_bar() -> str:
    """Return the bar for the selected documents; hidden while there are none, and without scripts."""
    return (
        '<aside id="selection" aria-label="Documents to keep" hidden><p id="selection-count" role="status"></p>'
        '<p class="buttons"><button type="button" id="download">download list</button>'
        '<button type="button" id="copy">copy command</button><button type="button" id="clear">clear</button></p>'
        f'<p class="command"><code id="command">{COMMAND}</code></p></aside>'
    )
