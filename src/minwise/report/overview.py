"""Overview of a report: headline, figures and warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

from minwise._internal.charts import stacked_bar
from minwise._internal.formatting import (
    count_element,
    format_bytes,
    format_duration,
    format_percent,
    format_time,
    plural,
    render_code_spans,
    shorten_middle,
)
from minwise._internal.html import escape, icon, section
from minwise.report.cluster_section import MANY_DOCUMENTS

__all__ = [
    "figure",
    "headline",
    "note_section",
    "page_header",
    "skipped_sentences",
    "summary_sentence",
    "unreadable_section",
    "warning_section",
]

Values = Mapping[str, Any]

# Warnings that are visible at once, and those in a collapsed list; report.json has all.
SHOWN_WARNINGS, FOLDED_WARNINGS = 5, 100


def summary_sentence(report: Values) -> str:
    """Return how many documents were kept, in one sentence."""
    counts = report["counts"]
    if not counts["read"]:
        return "No documents were read."
    if counts["quarantined"] == counts["read"]:
        return f"{_all(counts['read'])} quarantined."
    if counts["kept"] == counts["read"]:
        return f"All {counts['read']:,} documents kept." if counts["read"] > 1 else "The only document was kept."
    return f"{counts['kept']:,} of {plural(counts['read'], 'document')} kept."


def headline(report: Values, run: Values) -> str:
    """Return the top of the page: the summary sentence, time and duration, and the figures."""
    counts, text = report["counts"], report.get("text_bytes") or {}
    similar = counts["removed"] - counts["removed_identical"]
    parts = (("kept", counts["kept"]), ("similar", similar), ("identical", counts["removed_identical"]))
    whole = max(1, counts["read"])
    bar = stacked_bar(
        *((count / whole, style) for style, count in (*parts, ("quarantined", counts["quarantined"]))),
        style="whole-bar",
    )
    removed = (
        f'<p class="parts">Removed: {_part("similar", similar)} {_part("identical", counts["removed_identical"])}</p>'
    )
    unreadable = plural(len(report["unreadable"]), "file") + " unreadable" if report["unreadable"] else ""
    figures = [
        figure("read", counts["read"], text.get("read")),
        figure("kept", counts["kept"], text.get("kept"), _share(counts["kept"], counts["read"]), "kept"),
        figure("removed", counts["removed"], text.get("removed"), _share(counts["removed"], counts["read"])),
        figure("quarantined", counts["quarantined"], text.get("quarantined"), unreadable, "quarantined"),
        figure("empty", counts["empty"], None, "without tokens; kept" if counts["empty"] else ""),
    ]
    below = removed if counts["removed"] else ""
    return page_header(summary_sentence(report), report, run, figures, above=bar, below=below)


def page_header(
    title: str, report: Values, run: Values, figures: Sequence[str], *, above: str = "", below: str = ""
) -> str:
    """Return the top of a page: its title, the facts of the run, and figures with markup above and below them."""
    return (
        f'<header><p class="brand">{icon()}minwise report</p><h1>{title}</h1>'
        f'<p class="quiet">{" · ".join(_run_facts(report, run))}</p></header>'
        f'<section aria-label="Figures" id="figures">{above}<dl class="figures">{"".join(figures)}</dl>'
        f"{below}</section>"
    )


def unreadable_section(report: Values) -> str:
    """Return the section with the warnings and the unreadable files of a run without pairs; empty without any."""
    found = [escape(warning) for warning in report["warnings"]] + _unreadable(report)
    return section("warnings", plural(len(found), "warning"), _list(found), "warnings") if found else ""


def warning_section(report: Values) -> str:
    """Return the section with all warnings, or with a note that there are none."""
    found = [escape(warning) for warning in report["warnings"]] + _caps(report) + _unreadable(report)
    if not found:
        return _nothing_compared(report) or _no_warnings(report)
    rest = found[SHOWN_WARNINGS:]
    left_out = len(rest) - FOLDED_WARNINGS
    others = [f"{left_out:,} more in report.json"] if left_out > 0 else []
    listed = _list([*rest[:FOLDED_WARNINGS], *others])
    more = f"<details><summary>{len(rest):,} more</summary>{listed}</details>" if rest else ""
    listed = section("warnings", plural(len(found), "warning"), _list(found[:SHOWN_WARNINGS]) + more, "warnings")
    return _nothing_compared(report, "nothing") + listed


def note_section(report: Values) -> str:
    """Return the section with the notes on the run; empty without any. Reports of older versions have none."""
    notes = [render_code_spans(note) for note in report.get("notes") or []]
    return section("notes", "Notes", _list(notes), "neutral") if notes else ""


def skipped_sentences(report: Values) -> list[str]:
    """Return what was left out of the inputs, and how many entries for which reason."""
    skipped = (report.get("inputs") or {}).get("skipped") or {}
    counted = ", ".join(f"{plural(count, 'entry', 'entries')} ({escape(reason)})" for reason, count in skipped.items())
    return [f"Left out of the inputs: {counted}."] if counted else []


def _nothing_compared(report: Values, name: str = "warnings") -> str:
    """Return the section of a run that had nothing to compare, with the reason; empty for any other run."""
    counts = report["counts"]
    if not counts["read"]:
        title, why = "Nothing was read", _why_nothing_was_read(report)
    elif counts["quarantined"] == counts["read"]:
        title = "Nothing could be used"
        why = [f"{_all(counts['read'])} quarantined. quarantine.jsonl gives the reason for each of them."]
    elif counts["empty"] and counts["empty"] + counts["quarantined"] == counts["read"]:
        title = "Nothing was compared"
        why = [f"{_all(counts['empty'])} without tokens: empty, or made of blanks and punctuation only."]
    else:
        return ""
    advice = "Check the inputs, their format and the text column."
    return section(name, title, f"<p>{' '.join([*why, advice])}</p>", "warnings")


def _why_nothing_was_read(report: Values) -> list[str]:
    sources = len(report["sources"])
    have = "The only input has" if sources == 1 else f"All {sources:,} inputs have"
    return [f"{have} no documents." if sources else "There were no inputs.", *skipped_sentences(report)]


def _all(count: int) -> str:
    return "The only document is" if count == 1 else f"All {count:,} documents are"


def _no_warnings(report: Values) -> str:
    """Return what was checked; without verification, the similarity of removed documents is not known."""
    checked = (
        "No source lost more than half of its documents, and no cluster holds more than 1 % of all "
        f"(checked in corpora of at least {MANY_DOCUMENTS:,} documents)."
    )
    if report["settings"]["verify"] == "none":
        note = (
            "Candidates were not compared (verify: none), so the similarity of a removed document to the kept one is "
            "not known unless they are identical."
        )
        return section("warnings", "Candidates were not verified", f"<p>{checked} {note}</p>", "neutral")
    estimated = ", as estimated from signatures" if report["settings"]["verify"] == "signature" else ""
    removed = report["counts"]["removed"]
    note = f"Every removed document is itself similar to the kept one{estimated}." if removed else ""
    return section("warnings", "No warnings", f"<p>{checked} {note}</p>", "no-warnings")


def _run_facts(report: Values, run: Values) -> list[str]:
    """Return sources, time, duration and version of a run."""
    words = [plural(len(report["sources"]), "source")]
    if run.get("started"):
        words.append(f'<time datetime="{escape(run["started"])}">{escape(format_time(run["started"]))}</time>')
    if run.get("seconds") is not None:
        words.append(format_duration(run["seconds"]) + (", resumed" if run.get("resumed") else ""))
    return [*words, f"minwise {escape(report['minwise'])}"]


def figure(name: str, count: int, text: int | None, note: str = "", swatch: str = "") -> str:
    """Return a figure of the overview: a count, the bytes of its texts, and a note."""
    dot = f'<span class="swatch {swatch}"></span>' if swatch else ""
    notes = [note, f'<data value="{text}">{format_bytes(text)}</data>' if text is not None else ""]
    below = " · ".join(filter(None, notes)) or "&nbsp;"
    return (
        f'<div id="figure-{name}"><dt>{dot}{name}</dt><dd class="large">{count_element(count)}</dd>'
        f'<dd class="quiet">{below}</dd></div>'
    )


def _share(part: int, whole: int) -> str:
    return format_percent(part, whole) if whole else ""


def _part(name: str, count: int) -> str:
    return f'<span id="figure-{name}"><span class="swatch {name}"></span>{count_element(count)} {name}</span>'


def _caps(report: Values) -> list[str]:
    caps = report["caps"]
    if not caps["candidates_left_out"]:
        return []
    return [
        f"{plural(caps['buckets'], 'bucket')} of more than {caps['max_bucket']:,} documents "
        f"{'was' if caps['buckets'] == 1 else 'were'} capped: {plural(caps['candidates_left_out'], 'candidate')} "
        f"left out, at most about {plural(caps['estimated_pairs_missed_at_most'], 'pair')} missed"
    ]


def _unreadable(report: Values) -> list[str]:
    """Return a warning for each source that could not be read completely."""
    return [
        f"{shorten_middle(fault['source'])} could not be read: {escape(fault['reason'])}"
        for fault in report["unreadable"]
    ]


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
