"""Losses: a report in, a table of what each source lost out."""

from collections.abc import Mapping
from typing import Any

from minwise.report.charts import with_bar
from minwise.report.html import section
from minwise.report.tables import table
from minwise.report.wording import clipped, number, plural, share

__all__ = ["source_table"]

Values = Mapping[str, Any]

# A page is no place for thousands of sources; report.json has them all.
SHOWN_SOURCES = 50


def source_table(report: Values) -> str:
    """What was read, kept and lost of each source, those that lost most first."""
    against = [one for one in report["sources"] if one.get("against")]
    written = [one for one in report["sources"] if not one.get("against")]
    ranked = sorted(written, key=lambda one: (-one["removed"], -one["quarantined"]))
    heads = ["source", "share lost", "read", "kept", "removed", "quarantined"]
    body = table("Sources", heads, [_row(one) for one in ranked[:SHOWN_SOURCES]]) if written else ""
    left_out = len(ranked) - SHOWN_SOURCES
    notes = []
    if left_out > 0:
        lost = sum(one["removed"] for one in ranked[SHOWN_SOURCES:])
        notes.append(
            f"The {SHOWN_SOURCES} that lost most; {plural(left_out, 'more source')} lost {plural(lost, 'document')} "
            "together and are in report.json."
        )
    if against:
        rows = sum(one["rows"] for one in against)
        notes.append(f"{plural(len(against), 'source')} with {plural(rows, 'document')} only compared with (against).")
    if not report["sources"]:
        notes.append("There was no source.")
    quiet = "".join(f'<p class="quiet">{note}</p>' for note in notes)
    return section("sources", "Sources", body + quiet)


def _row(one: Values) -> list[str]:
    part = one["removed"] / one["rows"] if one["rows"] else 0.0
    lost = with_bar(part, "bad" if part > 0.5 else "removed", share(one["removed"], one["rows"]))
    names = ("rows", "kept", "removed", "quarantined")
    return [
        f'<span class="path">{clipped(one["source"] or "(no name)")}</span>',
        lost,
        *(number(one[name]) for name in names),
    ]
