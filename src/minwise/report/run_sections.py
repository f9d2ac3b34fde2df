"""Sections about the run: settings with the S-curve, sources, and time and memory."""

from collections.abc import Mapping
from typing import Any

from minwise._internal.charts import bar_cell, stacked_bar
from minwise._internal.formatting import (
    count_element,
    format_bytes,
    format_duration,
    format_percent,
    format_probability,
    plural,
    shorten_middle,
)
from minwise._internal.html import definition_list, details, escape, section, table
from minwise.report.overview import skipped_sentences
from minwise.sketches.planning import Plan
from minwise.sketches.s_curve import curve_chart

__all__ = ["plain_settings_section", "settings_section", "source_section", "timing_section", "value_section"]

Values = Mapping[str, Any]

UNITS = {"word": "words", "char": "characters", "byte": "bytes"}
VERIFIED = {
    "exact": "Candidate pairs were compared exactly.",
    "signature": "Similarities are estimates from signatures, not exact.",
    "none": "Candidates were not compared; each of them counts as a pair.",
}


def settings_section(report: Values, audit: Values | None) -> str:
    """Return the settings in words and as a list, and the S-curve with the recall that an audit measured."""
    settings = report["settings"]
    summary = f"{_near_duplicates(settings)} {VERIFIED.get(settings['verify'], '')}"
    listed = definition_list((name, f"<code>{_setting_value(value)}</code>") for name, value in settings.items())
    if report["plan"] is None:
        curve = "<p>An exact join finds every pair that reaches the threshold, so there is no S-curve.</p>"
    else:
        curve = _curve(_plan_of(report), audit)
    columns = f'<div class="columns"><div>{curve}</div><div><h3>All settings</h3>{listed}</div></div>'
    return section("settings", "Settings", f"<p>{summary}</p>{columns}")


def common_phrase_section(report: Values) -> str:
    """Return a table of the phrases that count least, those of most documents first."""
    phrases = report.get("common_phrases")
    if not phrases:
        return ""
    rows = ([escape(one["text"]), f"{one['documents']:,}", f"{one['weight']:.3f}"] for one in phrases)
    body = "<p>These phrases are in many documents, so they count for little.</p>"
    return section("common", "Common phrases", body + table("Common phrases", ["phrase", "documents", "weight"], rows))


def plain_settings_section(report: Values) -> str:
    """Return the settings of a run without a plan as a list."""
    listed = definition_list(
        (name, f"<code>{_setting_value(value)}</code>")
        for name, value in report["settings"].items()
        if value is not None
    )
    return section("settings", "Settings", listed)


def _near_duplicates(settings: Values) -> str:
    kind, _, length = str(settings["shingle"]).partition(":")
    elements = f"runs of {length} {UNITS[kind]}" if kind in UNITS else "elements"
    if settings.get("measure") == "containment":
        return (
            "A document lies in another one if its containment is at least "
            f"<strong>{settings['threshold']:g}</strong>: the number of its {escape(elements)} that the other one, "
            "which has at least as many, has too, divided by the number of its own."
        )
    if settings.get("discount") == "common":
        return (
            "Two documents are near-duplicates if their weighted similarity is at least "
            f"<strong>{settings['threshold']:g}</strong>: the weight of the {escape(elements)} in both, divided by the "
            "weight of those in either. The more documents have an element, the less it weighs."
        )
    return (
        "Two documents are near-duplicates if their Jaccard similarity is at least "
        f"<strong>{settings['threshold']:g}</strong>: the number of {escape(elements)} in both, divided by the number "
        "in either."
    )


def _curve(plan: Plan, audit: Values | None) -> str:
    wanted = f" ({plan.wanted_recall:g} was requested)" if plan.wanted_recall is not None else ""
    summary = (
        f"<p>{escape(plan.layout)} find a pair at the threshold with probability "
        f"<strong>{format_probability(plan.recall)}</strong>{wanted}, and more similar pairs with a higher "
        "probability.</p>"
    )
    legend = (
        '<p class="key"><span><span class="swatch curve"></span>expected</span> '
        '<span><span class="swatch false-positive"></span>false candidates, rejected by verification</span> '
        '<span><span class="swatch false-negative"></span>missed</span>'
        + (' <span><span class="swatch measured"></span>measured, with interval</span>' if audit else "")
        + "</p>"
    )
    points = ([f"{point.similarity:.2f}", format_probability(point.probability)] for point in plan.table())
    exact = table("S-curve", ["similarity", "probability of being found"], points)
    return f"{summary}{legend}{curve_chart(plan, audit['bins'] if audit else ())}{details('Show numbers', exact)}"


def _plan_of(report: Values) -> Plan:
    """Return the plan at the threshold of the result, which may be higher than the planned one."""
    layout, threshold = report["plan"], report["settings"]["threshold"]
    wanted = layout["wanted_recall"] if layout["threshold"] == threshold else None
    return Plan(threshold=threshold, bands=layout["bands"], rows=layout["rows"], wanted_recall=wanted)


def _setting_value(value: object) -> str:
    return escape({True: "yes", False: "no", None: "–"}.get(value, value) if isinstance(value, bool | None) else value)


# Sources on the page; report.json has all.
SHOWN_SOURCES = 50


def source_section(report: Values) -> str:
    """Return a table of the sources, those with the most removed documents first."""
    against = [source for source in report["sources"] if source.get("against")]
    written = [source for source in report["sources"] if not source.get("against")]
    by_removed = sorted(written, key=lambda source: (-source["removed"], -source["quarantined"]))
    heads = ["source", "share removed", "read", "kept", "removed", "quarantined"]
    body = table("Sources", heads, [_row(source) for source in by_removed[:SHOWN_SOURCES]]) if written else ""
    left_out = len(by_removed) - SHOWN_SOURCES
    notes = []
    if left_out > 0:
        removed = sum(source["removed"] for source in by_removed[SHOWN_SOURCES:])
        notes.append(
            f"These {SHOWN_SOURCES} lost the most documents. Together, {plural(left_out, 'more source')} lost "
            f"{plural(removed, 'document')}; report.json lists them."
        )
    if against:
        documents = plural(sum(source["rows"] for source in against), "document")
        notes.append(f"Reference corpus (against): {plural(len(against), 'source')} with {documents}, never removed.")
    if not report["sources"]:
        notes.append("There were no sources.")
    notes += skipped_sentences(report)
    quiet = "".join(f'<p class="quiet">{note}</p>' for note in notes)
    return section("sources", "Sources", body + quiet)


def _row(source: Values) -> list[str]:
    name = f'<span class="path">{shorten_middle(source["source"] or "(no name)")}</span>'
    return [name, *_shares(source["rows"], source)]


def _shares(read: int, counts: Values) -> list[str]:
    """Return the share of the rows that is removed, and all counts."""
    share = counts["removed"] / read if read else 0.0
    removed = bar_cell(share, "bad" if share > 0.5 else "removed", format_percent(counts["removed"], read))
    return [removed, *map(count_element, (read, counts["kept"], counts["removed"], counts["quarantined"]))]


# Values on the page; report.json has up to 1,000.
SHOWN_VALUES = 50
# What is compared, by the setting that names a column.
COMPARED = {
    "within": "Only documents with the same value of {} were compared.",
    "across": "Only documents with different values of {} were compared.",
}


def value_section(report: Values) -> str:
    """Return a table of the values that decided what was compared; empty if none did."""
    found = report.get("values")
    if not found:
        return ""
    heads = [found["column"], "share removed", "read", "kept", "removed", "quarantined"]
    rows = [[_value_name(row["value"]), *_shares(row["read"], row)] for row in found["values"][:SHOWN_VALUES]]
    note = COMPARED[found["setting"]].format(f"<code>{escape(found['column'])}</code>")
    left_out = len(found["values"]) - SHOWN_VALUES + found.get("rest", {"values": 0})["values"]
    if left_out > 0:
        note += f" These {SHOWN_VALUES} have the most rows; there are {plural(left_out, 'more value')}."
    return section("values", "Values", table("Values", heads, rows) + f'<p class="quiet">{note}</p>')


def _value_name(value: str | None) -> str:
    return '<span class="quiet">(no value)</span>' if value is None else shorten_middle(value or "(empty)")


# Minimum length of the bar of a stage, as a share of the whole, so that it is visible.
LEAST_BAR = 0.004


def timing_section(run: Values) -> str:
    """Return the time of each stage and the peak memory; empty if run.json has neither."""
    parts = [_stages(run), _memory(run)]
    if not any(parts):
        return ""
    reused = " Finished stages of an earlier run were reused." if run.get("resumed") else ""
    threads = f" on {plural(run['threads'], 'thread')}" if run.get("threads") else ""
    total = (
        f"<p>{format_duration(run['seconds'])} in total{threads}.{reused}</p>" if run.get("seconds") is not None else ""
    )
    return section("timing", "Time and memory", total + "".join(parts))


def _stages(run: Values) -> str:
    stages = run.get("stages") or []
    whole = max(run.get("seconds") or 0.0, sum(stage["seconds"] for stage in stages))
    if not stages or not whole:
        return ""
    rows = [
        [
            escape(stage["stage"]),
            format_duration(stage["seconds"]),
            bar_cell(max(stage["seconds"] / whole, LEAST_BAR), "bar", format_percent(stage["seconds"], whole)),
        ]
        for stage in stages
    ]
    return table("Stages", ["stage", "time", "share of time"], rows)


def _memory(run: Values) -> str:
    """Return the peak memory against the limit; a peak from before the run says nothing about the run."""
    peak, limit = run.get("peak_memory_bytes"), run.get("memory_limit_bytes")
    if not peak or not limit:
        return ""
    before = run.get("peak_memory_before_bytes") or 0
    if peak <= before:
        note = f"Peak memory {format_bytes(peak)}, which the process had reached before the run"
        return f'<div class="memory"><p>{note}. {format_bytes(limit)} allowed.</p></div>'
    held = f"; before the run, the process had reached {format_bytes(before)}" if before > limit else ""
    bar = stacked_bar((min(1.0, peak / limit), "bad" if peak > limit else "bar"))
    return f'<div class="memory"><p>Peak memory {_of_limit(peak, limit)}{held}.</p>{bar}</div>'


def _of_limit(peak: int, limit: int) -> str:
    """Return the peak as a share or a multiple of the limit."""
    if peak <= limit:
        return f"{format_bytes(peak)} of {format_bytes(limit)} allowed ({format_percent(peak, limit)})"
    times = peak / limit
    more = f"{times:.1f} times" if times >= 1.05 else "slightly more than"
    return f"{format_bytes(peak)}, {more} the {format_bytes(limit)} allowed"
