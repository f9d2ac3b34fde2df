"""Audit command: the settings of a run in, what to type to have them audited out."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from minwise._internal.charts import Bar, Tick, chart, draw_bars, log_height, log_ticks, vertical_line
from minwise._internal.formatting import count_element, format_count, format_probability, plural
from minwise._internal.html import details, escape, section, table
from minwise.errors import ConfigError
from minwise.options import AuditOptions, definitions
from minwise.sketches.planning import plan
from minwise.text.shingling import NORMALISATION, Shingler

__all__ = ["audit_command", "audit_section"]

Values = Mapping[str, Any]

# Settings that an audit shares with a run, with the value that need not be typed.
DEFAULTS = {
    name: definitions(AuditOptions)[name].default
    for name in (
        "threshold",
        "shingle",
        "bag",
        "separator",
        "fields",
        "weights",
        "html",
        "scheme",
        "seed",
        "max_bucket",
    )
}
# Settings of a shingler that only Python can give.
OF_SHINGLER = ("hash_bits", *NORMALISATION)


def audit_command(settings: Values, run: Values) -> str:
    """One line that audits a run's settings and writes audit.json: a command, or Python where no command can say it.

    Args:
        settings: The settings of report.json.
        run: What run.json holds; a part of it will do.
    """
    given = {**dict(_settings(settings)), **dict(_reading({**run, "fields": settings.get("fields")}))}
    shingler = [name for name in OF_SHINGLER if name in settings and settings[name] != getattr(Shingler, name)]
    if shingler:
        return _python(given, _shingler(settings, shingler))
    in_memory = any(not one.get("name") for one in run.get("inputs") or [])
    if in_memory or (settings["shingle"] == "set" and not run.get("inputs")):
        return _python(given)
    return _typed(given)


def _settings(settings: Values) -> Iterator[tuple[str, Any]]:
    """What differs from the defaults."""
    for name, usual in DEFAULTS.items():
        if settings.get(name, usual) != usual:
            yield name, settings[name]
    layout = {name: settings[name] for name in ("bands", "rows")}
    if layout != _usual_layout(settings["threshold"]):
        yield from layout.items()


def _usual_layout(threshold: float) -> dict[str, int]:
    """The layout that follows from a threshold alone; none if it is so low that no layout does."""
    try:
        usual = plan(threshold)
    except ConfigError:
        return {}
    return {"bands": usual.bands, "rows": usual.rows}


def _reading(run: Values) -> Iterator[tuple[str, Any]]:
    text = (run.get("columns") or {}).get("text") or ["text"]
    if list(text) != ["text"] and not run.get("fields"):
        yield "text_column", list(text)
    if run.get("format"):
        yield "format", run["format"]


def _typed(given: Values) -> str:
    words = ["minwise", "audit", "INPUT…"]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [option, shlex.quote(str(one))]
    return " ".join([*words, "-o", "audit.json"])


def _python(given: Values, shingler: str = "") -> str:
    of_shingler = ("shingle", "bag") if shingler else ()
    words = [f"{name}={value!r}" for name, value in given.items() if name not in of_shingler]
    return f"mw.audit({', '.join(['INPUT', repr('audit.json'), *words, *([shingler] if shingler else [])])})"


def _shingler(settings: Values, names: list[str]) -> str:
    given = [name for name in ("bag", "seed") if settings[name] != getattr(Shingler, name)]
    words = [repr(settings["shingle"]), *(f"{name}={settings[name]!r}" for name in (*given, *names))]
    return f"shingle=mw.Shingler({', '.join(words)})"


# What stands at a promise that its interval does not hold: a sign and a word, for not all see colours.
OUTSIDE = '<span class="outside">≠ outside</span>'


def audit_section(report: Values, run: Values, audit: Values | None) -> str:
    """What an audit measured, or how to have it measured; of an exact run, that there is nothing to measure."""
    if report["plan"] is None:
        body = '<p class="quiet">There is nothing to measure: an exact join found every pair.</p>'
    elif audit is None:
        body = _how_to_measure(report["settings"], run)
    else:
        body = f"{_figures(audit)}{_caps(audit)}{_bins(audit)}{_histogram(audit)}{_suggestion(audit)}"
    return section("audit", "What is really found", body)


def _how_to_measure(settings: Values, run: Values) -> str:
    steps = (audit_command(settings, run), "minwise report OUT --audit audit.json")
    listed = "".join(f"<li><code>{escape(step)}</code></li>" for step in steps)
    return (
        '<p class="quiet">Not measured yet. An audit compares a sample of the documents with all of them, exactly, and '
        f'counts how many pairs these settings find. Two steps add it to this page:</p><ol class="steps">{listed}</ol>'
    )


def _figures(audit: Values) -> str:
    """The measured shares with their intervals, of how many, and against what was promised."""
    recall, documents, precision = audit["recall"], audit["documents_with_duplicates"], audit["precision"]
    promised = f"; promised {format_probability(recall['promised'])}" if recall.get("promised") is not None else ""
    rows = [
        ("recall", recall, f"{count_element(recall['found'])} of {plural(recall['pairs'], 'pair')} found{promised}"),
        (
            "duplicates seen",
            documents,
            f"{count_element(documents['found'])} of {plural(documents['documents'], 'document')} "
            "with a near-duplicate",
        ),
        (
            "precision before verification",
            precision,
            f"{count_element(precision['pairs'])} of {plural(precision['candidates'], 'candidate')} are pairs",
        ),
    ]
    tiles = "".join(
        f'<div><dt>{name}</dt><dd class="large">{_measured(one)}</dd>'
        f'<dd class="quiet">{_interval(one)}<br>{words}</dd></div>'
        for name, one, words in rows
    )
    return f'<p>{_how_measured(audit)}</p><dl class="figures">{tiles}</dl>'


def _how_measured(audit: Values) -> str:
    """What was compared, and what the intervals mean."""
    distinct = audit.get("distinct", audit["documents"])
    sure = f"with {100 * audit['confidence']:g}% confidence"
    if audit["complete"]:
        return (
            f"Measured by comparing all {plural(distinct, 'document')} with each other, exactly; copies count once. "
            "The pairs of this corpus are counted for this seed, not estimated; an interval says what another seed, or "
            f"other documents like these, would give, {sure}."
        )
    return (
        f"Measured by comparing a sample of {plural(audit['sampled'], 'document')} with all {distinct:,}, exactly; "
        "copies count once. An interval says what another sample or seed, or other documents like these, would give, "
        f"{sure}."
    )


def _caps(audit: Values) -> str:
    """What the cap on buckets left out; audits of older versions do not say."""
    caps = audit.get("caps")
    if not caps or not caps["buckets"]:
        return ""
    were, left_out = ("was" if count == 1 else "were" for count in (caps["buckets"], caps["candidates_left_out"]))
    return (
        f'<p class="capped">{plural(caps["buckets"], "bucket")} of more than {caps["max_bucket"]:,} documents {were} '
        f"capped: {plural(caps['candidates_left_out'], 'candidate')} {left_out} left out, "
        "which the S-curve does not know of.</p>"
    )


def _bins(audit: Values) -> str:
    rows = [
        [
            f"{one['from']:.2f} – {one['to']:.2f}",
            count_element(one["pairs"]),
            count_element(one["found"]),
            _measured(one),
            _interval(one),
            _promised(one),
        ]
        for one in audit["bins"]
    ]
    heads = ["similarity", "pairs", "found", "recall", "interval", "promised"]
    return f"<h3>Recall by similarity</h3>{table('Recall by similarity', heads, rows)}{_by_chance(audit)}"


def _by_chance(audit: Values) -> str:
    """What it means that a promise is marked, if one is."""
    if not any(map(_is_outside, audit["bins"])):
        return ""
    one_in = round(1 / (1 - audit["confidence"]))
    return (
        f'<p class="quiet">{OUTSIDE}: the promise lies outside the interval of what was measured. '
        f"By chance alone, about one bin in {one_in} does.</p>"
    )


def _promised(one: Values) -> str:
    if one["promised"] is None:
        return "–"
    words = format_probability(one["promised"])
    return f"{OUTSIDE} {words}" if _is_outside(one) else words


def _is_outside(one: Values) -> bool:
    """Whether what was measured in a bin contradicts what was promised."""
    known = one["value"] is not None and one["promised"] is not None
    return known and not one["low"] <= one["promised"] <= one["high"]


def _histogram(audit: Values) -> str:
    """Pairs of the whole corpus by similarity, on a logarithmic axis; those estimated from a sample with intervals."""
    rows = [one for one in audit["histogram"] if one["high"] > 0]
    if not any(one["pairs"] for one in rows):
        return ""
    about = "" if audit["complete"] else "about "
    start, most = float(audit["histogram"][0]["from"]), max(one["high"] for one in rows)

    def along(similarity: float) -> float:
        return (similarity - start) / (1 - start)

    columns = draw_bars(
        Bar(
            along(one["from"]),
            along(one["to"]),
            log_height(one["estimated"], most),
            "below" if one["to"] <= audit["threshold"] + 1e-9 else "bar",
            f"{one['from']:.4g} to {one['to']:.4g}: {about}{format_count(one['estimated'])} pairs",
        )
        for one in rows
    )
    lines = [_interval_line(along((one["from"] + one["to"]) / 2), one, most) for one in rows]
    drawn = chart(
        "audit-chart",
        "Pairs of the whole corpus by similarity",
        f"{_how_counted(audit)} The height is logarithmic.",
        [*columns, *lines, *vertical_line(along(audit["threshold"]), f"threshold {audit['threshold']:g}")],
        x_ticks=[Tick(along(tenth / 10), f"{tenth / 10:g}") for tenth in range(10, -1, -1) if tenth / 10 >= start],
        y_ticks=log_ticks(most),
        x_label="similarity",
        y_label=f"pairs{'' if audit['complete'] else ', estimated'} (logarithmic)",
    )
    cells = (
        [f"{one['from']:.4g} – {one['to']:.4g}", format_count(one["estimated"]), _range(one)]
        for one in audit["histogram"]
    )
    exact = table("Pairs of the whole corpus", ["similarity", "pairs", "interval"], cells)
    return f"<h3>Pairs of the whole corpus</h3>{drawn}{details('The numbers', exact)}"


def _how_counted(audit: Values) -> str:
    documents = plural(audit["sampled"], "document")
    return f"Counted among all {documents}." if audit["complete"] else f"Estimated from {documents}, with intervals."


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
        f"<p><code>{escape(command)}</code> finds {format_probability(one['recall'])} "
        "of the pairs at that threshold.</p>"
        "</div>"
    )


def _measured(one: Values) -> str:
    return "–" if one["value"] is None else format_probability(one["value"])


def _range(one: Values) -> str:
    return f"{format_count(one['low'])} – {format_count(one['high'])}"


def _interval(one: Values) -> str:
    """The interval of a share; the share of nothing has none."""
    return "–" if one["value"] is None else f"{format_probability(one['low'])} – {format_probability(one['high'])}"
