"""Promise: settings in, what they say, promise and, if an audit measured it, really find out."""

from collections.abc import Mapping
from typing import Any

from minwise.plan import Plan
from minwise.report.charts import Bar, Tick, bars, chart, line_at, log_height, log_ticks
from minwise.report.curve import curve_chart
from minwise.report.html import escape, section
from minwise.report.tables import facts, folded, table
from minwise.report.wording import amount, number, plural, probability

__all__ = ["audit_section", "promise"]

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


def audit_section(audit: Values | None) -> str:
    """What an audit measured, or how to have it measured."""
    if audit is None:
        body = (
            '<p class="quiet">Not measured yet. <code>minwise audit INPUT…</code> compares a sample of this corpus '
            "with itself, exactly, and says how many pairs these settings really find.</p>"
        )
    else:
        body = f"{_figures(audit)}{_bins(audit)}{_histogram(audit)}{_suggestion(audit)}"
    return section("audit", "What is really found", body)


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


def _figures(audit: Values) -> str:
    """The measured shares with their intervals, of how many, and against what was promised."""
    recall, documents, precision = audit["recall"], audit["documents_with_duplicates"], audit["precision"]
    promised = f"; promised {probability(recall['promised'])}" if recall.get("promised") is not None else ""
    rows = [
        ("recall", recall, f"{number(recall['found'])} of {plural(recall['pairs'], 'pair')} found{promised}"),
        (
            "duplicates seen",
            documents,
            f"{number(documents['found'])} of {plural(documents['documents'], 'document')} with a near-duplicate",
        ),
        (
            "precision before verification",
            precision,
            f"{number(precision['pairs'])} of {plural(precision['candidates'], 'candidate')} are pairs",
        ),
    ]
    sample = f"a sample of {plural(audit['sampled'], 'document')} with all {audit['documents']:,}"
    looked = f"all {plural(audit['documents'], 'document')} with each other" if audit["complete"] else sample
    intro = (
        f"<p>Measured by comparing {looked}, exactly; copies count once. Intervals hold with "
        f"{100 * audit['confidence']:g}% confidence.</p>"
    )
    tiles = "".join(
        f'<div><dt>{name}</dt><dd class="large">{_measured(one)}</dd>'
        f'<dd class="quiet">{_interval(one)}<br>{words}</dd></div>'
        for name, one, words in rows
    )
    return f'{intro}<dl class="figures">{tiles}</dl>'


def _bins(audit: Values) -> str:
    rows = (
        [
            f"{one['from']:.2f} – {one['to']:.2f}",
            number(one["pairs"]),
            number(one["found"]),
            _measured(one),
            _interval(one),
            "–" if one["promised"] is None else probability(one["promised"]),
        ]
        for one in audit["bins"]
    )
    heads = ["similarity", "pairs", "found", "recall", "interval", "promised"]
    return f"<h3>Recall by similarity</h3>{table('Recall by similarity', heads, rows)}"


def _histogram(audit: Values) -> str:
    """Estimated pairs of the whole corpus by similarity, with intervals, on a logarithmic axis."""
    rows = [one for one in audit["histogram"] if one["high"] > 0]
    if not any(one["pairs"] for one in rows):
        return ""
    start, most = float(audit["histogram"][0]["from"]), max(one["high"] for one in rows)

    def along(similarity: float) -> float:
        return (similarity - start) / (1 - start)

    columns = bars(
        Bar(
            along(one["from"]),
            along(one["to"]),
            log_height(one["estimated"], most),
            "below" if one["to"] <= audit["threshold"] + 1e-9 else "bar",
            f"{one['from']:.4g} to {one['to']:.4g}: about {amount(one['estimated'])} pairs",
        )
        for one in rows
    )
    lines = [_interval_line(along((one["from"] + one["to"]) / 2), one, most) for one in rows]
    drawn = chart(
        "audit-chart",
        "Pairs of the whole corpus by similarity",
        f"Estimated from {plural(audit['sampled'], 'document')}, with intervals. The height is logarithmic.",
        [*columns, *lines, *line_at(along(audit["threshold"]), f"threshold {audit['threshold']:g}")],
        across=[Tick(along(tenth / 10), f"{tenth / 10:g}") for tenth in range(10, -1, -1) if tenth / 10 >= start],
        up=log_ticks(most),
        across_label="similarity",
        up_label="pairs, estimated (logarithmic)",
    )
    cells = (
        [f"{one['from']:.4g} – {one['to']:.4g}", amount(one["estimated"]), _range(one)] for one in audit["histogram"]
    )
    exact = table("Pairs by similarity, estimated", ["similarity", "pairs", "interval"], cells)
    return f"<h3>Pairs of the whole corpus</h3>{drawn}{folded('The numbers', exact)}"


def _interval_line(x: float, one: Values, most: float) -> str:
    low, high = (f"{100 - 100 * log_height(one[name], most):.3f}%" for name in ("low", "high"))
    return f'<line class="interval" x1="{100 * x:.3f}%" x2="{100 * x:.3f}%" y1="{low}" y2="{high}"/>'


def _suggestion(audit: Values) -> str:
    one = audit["suggestion"]
    if one is None:
        return ""
    command = f"--threshold {one['threshold']:g} --bands {one['bands']} --rows {one['rows']}"
    return (
        f'<div class="note"><h3>A suggestion</h3><p>{escape(one["why"])}</p>'
        f"<p><code>{escape(command)}</code> finds {probability(one['recall'])} of the pairs at that threshold.</p>"
        "</div>"
    )


def _plan_of(report: Values) -> Plan:
    """The plan at the threshold of the result, which may be higher than the one that was planned for."""
    layout, threshold = report["plan"], report["settings"]["threshold"]
    wanted = layout["wanted_recall"] if layout["threshold"] == threshold else None
    return Plan(threshold=threshold, bands=layout["bands"], rows=layout["rows"], wanted_recall=wanted)


def _measured(one: Values) -> str:
    return "–" if one["value"] is None else probability(one["value"])


def _interval(one: Values) -> str:
    return (
        "–" if one["low"] is None or one["high"] is None else f"{probability(one['low'])} – {probability(one['high'])}"
    )


def _range(one: Values) -> str:
    return f"{amount(one['low'])} – {amount(one['high'])}"


def _shown(value: object) -> str:
    return escape({True: "yes", False: "no", None: "–"}.get(value, value) if isinstance(value, bool | None) else value)
