"""Promise: settings in, what they say and what they promise out."""

from collections.abc import Mapping
from typing import Any

from minwise._internal.charts import share_bar, with_bar
from minwise._internal.formatting import clipped, duration, number, plural, probability, share, size
from minwise._internal.html import escape, facts, folded, section, table
from minwise.sketches.planning import Plan
from minwise.sketches.s_curve import curve_chart

__all__ = ["effort", "promise", "source_table"]

Values = Mapping[str, Any]

UNITS = {"word": "words", "char": "characters", "byte": "bytes"}
VERIFIED = {
    "exact": "Every candidate pair was compared exactly.",
    "signature": "Similarities are estimates from signatures, not exact.",
    "none": "Candidates were not compared: every one counts as a pair.",
}


def promise(report: Values, audit: Values | None) -> str:
    """The settings in words, and the S-curve with what is promised and what an audit measured."""
    settings = report["settings"]
    words = f"{_near_duplicates(settings)} {VERIFIED.get(settings['verify'], '')}"
    every = facts((name, f"<code>{_shown(value)}</code>") for name, value in settings.items())
    if report["plan"] is None:
        found = "<p>Every pair was looked at, so every pair from the threshold on is found. There is no S-curve.</p>"
    else:
        found = _curve(_plan_of(report), audit)
    sides = f'<div class="beside"><div>{found}</div><div><h3>Settings</h3>{every}</div></div>'
    return section("promise", "What was looked for", f"<p>{words}</p>{sides}")


def _near_duplicates(settings: Values) -> str:
    kind, _, length = str(settings["shingle"]).partition(":")
    of = f"runs of {length} {UNITS[kind]}" if kind in UNITS else "elements"
    return (
        f"Two documents are near-duplicates when the {escape(of)} they share are at least "
        f"<strong>{settings['threshold']:g}</strong> of all that either has (Jaccard similarity)."
    )


def _curve(plan: Plan, audit: Values | None) -> str:
    wanted = f"; {plan.wanted_recall:g} was asked for" if plan.wanted_recall is not None else ""
    words = (
        f"<p>{escape(plan.layout)} find a pair at the threshold with probability "
        f"<strong>{probability(plan.recall)}</strong>{wanted}. "
        "The more similar a pair is, the more surely it is found.</p>"
    )
    legend = (
        '<p class="key"><span><span class="swatch curve"></span>promised</span> '
        '<span><span class="swatch false-positive"></span>proposed in vain, then refused</span> '
        '<span><span class="swatch false-negative"></span>missed</span>'
        + (' <span><span class="swatch measured"></span>measured, with its interval</span>' if audit else "")
        + "</p>"
    )
    points = ([f"{point.similarity:.2f}", probability(point.probability)] for point in plan.table())
    exact = table("S-curve", ["similarity", "found with probability"], points)
    return f"{words}{legend}{curve_chart(plan, audit['bins'] if audit else ())}{folded('The numbers', exact)}"


def _plan_of(report: Values) -> Plan:
    """The plan at the threshold of the result, which may be higher than the one that was planned for."""
    layout, threshold = report["plan"], report["settings"]["threshold"]
    wanted = layout["wanted_recall"] if layout["threshold"] == threshold else None
    return Plan(threshold=threshold, bands=layout["bands"], rows=layout["rows"], wanted_recall=wanted)


def _shown(value: object) -> str:
    return escape({True: "yes", False: "no", None: "–"}.get(value, value) if isinstance(value, bool | None) else value)


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


# A stage that took nearly no time has a bar, too: this share of the whole.
LEAST_BAR = 0.004


def effort(run: Values) -> str:
    """Stage timings with bars, and the peak of memory against the limit; nothing if nothing is known of the run."""
    parts = [_stages(run), _memory(run)]
    if not any(parts):
        return ""
    again = " Pieces of an earlier run were used again." if run.get("resumed") else ""
    threads = f" on {plural(run['threads'], 'thread')}" if run.get("threads") else ""
    total = f"<p>{duration(run['seconds'])} in all{threads}.{again}</p>" if run.get("seconds") is not None else ""
    return section("effort", "Time and memory", total + "".join(parts))


def _stages(run: Values) -> str:
    stages = run.get("stages") or []
    whole = max(run.get("seconds") or 0.0, sum(one["seconds"] for one in stages))
    if not stages or not whole:
        return ""
    rows = [
        [
            escape(one["stage"]),
            duration(one["seconds"]),
            with_bar(max(one["seconds"] / whole, LEAST_BAR), "bar", share(one["seconds"], whole)),
        ]
        for one in stages
    ]
    return table("Stages", ["stage", "time", "share of the time"], rows)


def _memory(run: Values) -> str:
    """The peak against the limit; one that the process had before the run began says nothing of the run."""
    peak, limit = run.get("peak_memory_bytes"), run.get("memory_limit_bytes")
    if not peak or not limit:
        return ""
    before = run.get("peak_memory_before_bytes") or 0
    if peak <= before:
        words = f"Peak memory {size(peak)}: the process had already held that much before the run began"
        return f'<div class="memory"><p>{words}. {size(limit)} allowed.</p></div>'
    held = f"; before the run began, the process had held {size(before)}" if before > limit else ""
    bar = share_bar((min(1.0, peak / limit), "bad" if peak > limit else "bar"))
    return f'<div class="memory"><p>Peak memory {_against(peak, limit)}{held}.</p>{bar}</div>'


def _against(peak: int, limit: int) -> str:
    """The peak beside the limit: a share of it, or how many times as much."""
    if peak <= limit:
        return f"{size(peak)} of {size(limit)} allowed ({share(peak, limit)})"
    times = peak / limit
    more = f"{times:.1f} times" if times >= 1.05 else "slightly more than"
    return f"{size(peak)}, {more} the {size(limit)} allowed"
