"""Page: a report in, the page that people open out.

Everything on it comes from `report.json`, `run.json` and, if there was an audit, `audit.json`; texts of documents are
given apart, as far as they were read. Each section is a module of its own; this one puts them together.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minwise._internal.html import page
from minwise.comparison.page import SIDE_BY_SIDE_STYLE
from minwise.report.audit_section import audit_section
from minwise.report.cluster_section import Texts, just_below, largest_clusters
from minwise.report.distribution import cluster_sizes, similarities
from minwise.report.overview import alarms, headline, statement
from minwise.report.run_sections import effort, promise, source_table

__all__ = ["report_page"]

Values = Mapping[str, Any]

CONTENTS = {
    "similarities": "similarities",
    "sizes": "cluster sizes",
    "clusters": "removed",
    "just-below": "nearly removed",
    "sources": "sources",
    "promise": "settings",
    "audit": "audit",
    "effort": "time and memory",
}
COMMAND = "minwise restore OUT --ids keep-ids.txt -o RESTORED"


def report_page(
    report: Values,
    run: Values,
    texts: Mapping[tuple[str, int], str],
    audit: Values | None = None,
    *,
    texts_note: str = "",
) -> str:
    """The page of a run, as one self-contained HTML file.

    Args:
        report: What `report.json` holds.
        run: What `run.json` holds; a part of it will do.
        texts: Texts by source and row, as far as they were read.
        audit: What `audit.json` holds, if the settings were audited.
        texts_note: Why some texts are not there, in one sentence.
    """
    shown = Texts(texts, report["settings"], texts_note, str(run.get("root") or ""))
    charts = similarities(report) + cluster_sizes(report)
    sections = [
        alarms(report),
        f'<div class="beside">{charts}</div>' if charts else "",
        largest_clusters(report, shown),
        just_below(report, shown),
        source_table(report),
        promise(report, audit),
        audit_section(report, run, audit),
        effort(run),
    ]
    body = f"<main>{headline(report, run)}{_contents(''.join(sections))}{''.join(sections)}</main>{_ticked()}"
    style = SIDE_BY_SIDE_STYLE + _asset("page_style.css")
    return page(f"minwise report · {statement(report)}", body, style=style, script=_asset("page_script.js"))


def _contents(sections: str) -> str:
    """Links to the sections that are there."""
    links = [
        f'<a href="#{name}">{words}</a>' for name, words in CONTENTS.items() if f'<section id="{name}"' in sections
    ]
    return f'<nav aria-label="Sections">{" ".join(links)}</nav>'


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _ticked() -> str:
    """The bar with the documents that were ticked. Without a script there is nothing to tick, and no bar."""
    return (
        '<aside id="ticked" aria-label="Documents to keep" hidden><p id="ticked-count" role="status"></p>'
        '<p class="buttons"><button type="button" id="download">download list</button>'
        '<button type="button" id="copy">copy command</button><button type="button" id="clear">clear</button></p>'
        f'<p class="command"><code id="command">{COMMAND}</code></p></aside>'
    )
