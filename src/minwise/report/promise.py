"""Promise: settings in, what they say and what they promise out."""

from collections.abc import Mapping
from typing import Any

from minwise.plan import Plan
from minwise.report.curve import curve_chart
from minwise.report.html import escape, section
from minwise.report.tables import facts, folded, table
from minwise.report.wording import probability

__all__ = ["promise"]

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
