"""Overview: a report in, its headline figures and its alarms out."""

from collections.abc import Mapping, Sequence
from typing import Any

from minwise._internal.charts import share_bar
from minwise._internal.formatting import clipped, duration, moment, number, plural, share, size
from minwise._internal.html import escape, section
from minwise.report.cluster_section import MANY_DOCUMENTS

__all__ = ["alarms", "headline", "statement"]

Values = Mapping[str, Any]

# Alarms that are seen at once, and those that are a click away; report.json has them all.
SHOWN_ALARMS, FOLDED_ALARMS = 5, 100


def statement(report: Values) -> str:
    """What became of the documents, in one sentence."""
    counts = report["counts"]
    if not counts["read"]:
        return "There was no document to read."
    if counts["kept"] == counts["read"]:
        return f"All {counts['read']:,} documents kept." if counts["read"] > 1 else "The one document is kept."
    return f"{counts['kept']:,} of {plural(counts['read'], 'document')} kept."


def headline(report: Values, run: Values) -> str:
    """The top of the page: the sentence, when and how long, and the figures."""
    counts, text = report["counts"], report.get("text_bytes") or {}
    similar = counts["removed"] - counts["removed_identical"]
    parts = (("kept", counts["kept"]), ("similar", similar), ("identical", counts["removed_identical"]))
    whole = max(1, counts["read"])
    bar = share_bar(
        *((count / whole, look) for look, count in (*parts, ("quarantined", counts["quarantined"]))), style="whole-bar"
    )
    removed = (
        f'<p class="parts">Of those removed: {_part("similar", similar, "similar")} '
        f"{_part('identical', counts['removed_identical'], 'identical')}</p>"
    )
    unreadable = plural(len(report["unreadable"]), "file") + " unreadable" if report["unreadable"] else ""
    return (
        f'<header><p class="brand">minwise report</p><h1>{statement(report)}</h1>'
        f'<p class="quiet">{" · ".join(_circumstances(report, run))}</p></header>'
        f'<section aria-label="Figures" id="figures">{bar}<dl class="figures">'
        f"{_figure('read', counts['read'], text.get('read'))}"
        f"{_figure('kept', counts['kept'], text.get('kept'), _share(counts['kept'], counts['read']), 'kept')}"
        f"{_figure('removed', counts['removed'], text.get('removed'), _share(counts['removed'], counts['read']))}"
        f"{_figure('quarantined', counts['quarantined'], text.get('quarantined'), unreadable, 'quarantined')}"
        f"{_figure('empty', counts['empty'], None, 'without a single token; kept' if counts['empty'] else '')}"
        f"</dl>{removed if counts['removed'] else ''}</section>"
    )


def alarms(report: Values) -> str:
    """What deserves a look, or that nothing does."""
    found = [escape(words) for words in report["warnings"]] + _caps(report) + _unreadable(report)
    if not found:
        return _no_alarms(report)
    rest = found[SHOWN_ALARMS:]
    left_out = len(rest) - FOLDED_ALARMS
    others = [f"{left_out:,} more in report.json"] if left_out > 0 else []
    listed = _list([*rest[:FOLDED_ALARMS], *others])
    more = f"<details><summary>{len(rest):,} more</summary>{listed}</details>" if rest else ""
    title = "1 thing to look at" if len(found) == 1 else f"{len(found):,} things to look at"
    return section("alarms", title, _list(found[:SHOWN_ALARMS]) + more, "alarms")


def _no_alarms(report: Values) -> str:
    """What was looked at in vain; if nothing was compared, nobody knows whether there is cause for alarm."""
    looked = (
        "No source lost more than half of its documents, no cluster holds more than 1 % of all "
        f"(looked at in corpora of {MANY_DOCUMENTS:,} documents or more)"
    )
    if report["settings"]["verify"] == "none":
        words = (
            f"{looked}. But candidates were not compared (verify: none), so how similar those removed are to the ones "
            "kept for them is not known, unless they are identical."
        )
        return section("alarms", "Nothing was compared exactly", f"<p>{words}</p>", "neutral")
    judged = ", as far as signatures tell" if report["settings"]["verify"] == "signature" else ""
    words = f"{looked}, and every removed document is itself similar to the one kept for it{judged}."
    return section("alarms", "Nothing alarming", f"<p>{words}</p>", "calm")


def _circumstances(report: Values, run: Values) -> list[str]:
    words = [plural(len(report["sources"]), "source")]
    if run.get("started"):
        words.append(f'<time datetime="{escape(run["started"])}">{escape(moment(run["started"]))}</time>')
    if run.get("seconds") is not None:
        words.append(duration(run["seconds"]) + (", resumed" if run.get("resumed") else ""))
    return [*words, f"minwise {escape(report['minwise'])}"]


def _figure(name: str, count: int, text: int | None, words: str = "", swatch: str = "") -> str:
    dot = f'<span class="swatch {swatch}"></span>' if swatch else ""
    sides = [words, f'<data value="{text}">{size(text)}</data>' if text is not None else ""]
    below = " · ".join(side for side in sides if side) or "&nbsp;"
    return (
        f'<div id="figure-{name}"><dt>{dot}{name}</dt><dd class="large">{number(count)}</dd>'
        f'<dd class="quiet">{below}</dd></div>'
    )


def _share(part: int, whole: int) -> str:
    return share(part, whole) if whole else ""


def _part(name: str, count: int, words: str) -> str:
    return f'<span id="figure-{name}"><span class="swatch {name}"></span>{number(count)} {words}</span>'


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
    """Sources that could not be read to their end."""
    return [f"{clipped(one['source'])} could not be read: {escape(one['reason'])}" for one in report["unreadable"]]


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
