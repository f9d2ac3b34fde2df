"""Audit section: the measured recall of a run, or the command that measures it."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from minwise._internal.charts import Bar, Tick, chart, draw_bars, log_height, log_ticks, vertical_line
from minwise._internal.formatting import count_element, format_count, format_probability, plural
from minwise._internal.html import code, details, escape, section, table
from minwise.errors import ConfigError
from minwise.options import AuditOptions, definitions
from minwise.sketches.planning import plan
from minwise.text.shingling import NORMALISATION, Shingler

__all__ = ["audit_command", "audit_section"]

Values = Mapping[str, Any]

# Defaults of the settings that an audit shares with a run; the command leaves them out.
DEFAULTS = {
    name: definitions(AuditOptions)[name].default
    for name in (
        "threshold",
        "shingle",
        "bag",
        *NORMALISATION,
        "separator",
        "fields",
        "weights",
        "html",
        "weight",
        "discount",
        "scheme",
        "seed",
        "max_bucket",
    )
}
# Settings of a shingler that are not settings of a run.
SHINGLER_SETTINGS = ("hash_bits",)


def audit_command(settings: Values, run: Values) -> str:
    """Return a line that audits the settings of a run and writes audit.json.

    It is a command, or a Python call if the settings cannot be given on the command line.

    Args:
        settings: The settings of report.json.
        run: The content of run.json, which may be incomplete.
    """
    given = {**dict(_changed_settings(settings)), **dict(_input_settings(run, settings))}
    shingler = [name for name in SHINGLER_SETTINGS if name in settings and settings[name] != getattr(Shingler, name)]
    if shingler:
        return _python(given, _shingler(settings, shingler))
    in_memory = any(not source.get("name") for source in run.get("inputs") or [])
    if in_memory or (settings["shingle"] == "set" and not run.get("inputs")):
        return _python(given)
    return _command(given)


def _changed_settings(settings: Values) -> Iterator[tuple[str, Any]]:
    """Yield the settings that differ from their defaults."""
    for name, default in DEFAULTS.items():
        if settings.get(name, default) != default:
            yield name, settings[name]
    layout = {name: settings[name] for name in ("bands", "rows")}
    if layout != _default_layout(settings["threshold"]):
        yield from layout.items()


def _default_layout(threshold: float) -> dict[str, int]:
    """Return the layout that follows from a threshold alone; empty if it is too low for any."""
    try:
        default = plan(threshold)
    except ConfigError:
        return {}
    return {"bands": default.bands, "rows": default.rows}


def _input_settings(run: Values, settings: Values) -> Iterator[tuple[str, Any]]:
    text = [name for name in (run.get("columns") or {}).get("text") or ["text"] if name != settings.get("weight")]
    if list(text) != ["text"] and not settings.get("fields"):
        yield "text_column", list(text)
    yield from ((name, run[name]) for name in ("format", "delimiter", "encoding") if run.get(name))
    if settings.get("frequencies"):
        yield "frequencies", (run.get("options") or {}).get("frequencies") or "FILE"


def _command(given: Values) -> str:
    words = ["minwise", "audit", "INPUT…"]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            for word in value if isinstance(value, list) else [value]:
                words += [option, shlex.quote(str(word))]
    return " ".join([*words, "-o", "audit.json"])


def _python(given: Values, shingler: str = "") -> str:
    replaced = ("shingle", "bag", *NORMALISATION) if shingler else ()
    words = [f"{name}={value!r}" for name, value in given.items() if name not in replaced]
    return f"mw.audit({', '.join(['INPUT', repr('audit.json'), *words, *([shingler] if shingler else [])])})"


def _shingler(settings: Values, names: list[str]) -> str:
    given = [name for name in ("bag", "seed", *NORMALISATION) if settings[name] != getattr(Shingler, name)]
    words = [repr(settings["shingle"]), *(f"{name}={settings[name]!r}" for name in (*given, *names))]
    return f"shingle=mw.Shingler({', '.join(words)})"


# Mark of an expected recall outside the measured interval; not by colour alone.
OUTSIDE = '<span class="outside">≠ outside</span>'


def audit_section(report: Values, run: Values, audit: Values | None) -> str:
    """Return the section with the results of an audit, or with the commands that run one.

    Args:
        report: The content of report.json.
        run: The content of run.json, which may be incomplete.
        audit: The content of audit.json; None if the run was not audited.
    """
    if report["plan"] is None:
        body = '<p class="quiet">An exact join finds every pair, so there is nothing to measure.</p>'
    elif report["settings"].get("discount") == "common":
        body = '<p class="quiet">Not measured: an audit does not weight elements.</p>'
    elif audit is None:
        body = _how_to_measure(report["settings"], run)
    else:
        body = f"{_figures(audit)}{_caps(audit)}{_bins(audit)}{_histogram(audit)}{_suggestion(audit)}"
    return section("audit", "Measured recall", body)


def _how_to_measure(settings: Values, run: Values) -> str:
    steps = (audit_command(settings, run), "minwise report OUT --audit audit.json")
    listed = "".join(f"<li>{code(step)}</li>" for step in steps)
    return (
        '<p class="quiet">Not measured. An audit compares a sample of the documents with all of them, exactly, and '
        f'counts the pairs that these settings find. Two steps add it to this page:</p><ol class="steps">{listed}</ol>'
    )


def _figures(audit: Values) -> str:
    """Return recall and precision with their intervals and counts."""
    recall, documents, precision = audit["recall"], audit["documents_with_duplicates"], audit["precision"]
    expected = f"; expected {format_probability(recall['promised'])}" if recall.get("promised") is not None else ""
    rows = [
        ("recall", recall, f"{count_element(recall['found'])} of {plural(recall['pairs'], 'pair')} found{expected}"),
        (
            "documents with a found duplicate",
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
        f'<div><dt>{name}</dt><dd class="large">{_measured(share)}</dd>'
        f'<dd class="quiet">{_interval(share)}<br>{counts}</dd></div>'
        for name, share, counts in rows
    )
    return f'<p>{_how_measured(audit)}</p><dl class="figures">{tiles}</dl>'


def _how_measured(audit: Values) -> str:
    """Return what was compared, and the meaning of the intervals."""
    distinct = audit.get("distinct", audit["documents"])
    intervals = f"Intervals are {100 * audit['confidence']:g}% confidence intervals for"
    if audit["complete"]:
        return (
            f"All {plural(distinct, 'document')} were compared with each other exactly; identical documents count "
            f"once. Pairs are counted for this corpus and seed, not estimated. {intervals} other seeds and similar "
            "documents."
        )
    return (
        f"A sample of {plural(audit['sampled'], 'document')} was compared with all {distinct:,} exactly; identical "
        f"documents count once. {intervals} other samples, other seeds and similar documents."
    )


def _caps(audit: Values) -> str:
    """Return what the bucket cap left out; audits of older versions do not contain it."""
    caps = audit.get("caps")
    if not caps or not caps["buckets"]:
        return ""
    were, left_out = ("was" if count == 1 else "were" for count in (caps["buckets"], caps["candidates_left_out"]))
    return (
        f'<p class="capped">{plural(caps["buckets"], "bucket")} of more than {caps["max_bucket"]:,} documents {were} '
        f"capped: {plural(caps['candidates_left_out'], 'candidate')} {left_out} left out, "
        "which the S-curve does not account for.</p>"
    )


def _bins(audit: Values) -> str:
    rows = [
        [
            f"{entry['from']:.2f} – {entry['to']:.2f}",
            count_element(entry["pairs"]),
            count_element(entry["found"]),
            _measured(entry),
            _interval(entry),
            _expected(entry),
        ]
        for entry in audit["bins"]
    ]
    heads = ["similarity", "pairs", "found", "recall", "interval", "expected"]
    return f"<h3>Recall by similarity</h3>{table('Recall by similarity', heads, rows)}{_outside_note(audit)}"


def _outside_note(audit: Values) -> str:
    """Return the meaning of the mark, if any bin has it."""
    if not any(map(_is_outside, audit["bins"])):
        return ""
    one_in = round(1 / (1 - audit["confidence"]))
    return (
        f'<p class="quiet">{OUTSIDE}: the expected recall is outside the interval of the measured recall. '
        f"By chance alone, this happens in about one bin in {one_in}.</p>"
    )


def _expected(entry: Values) -> str:
    if entry["promised"] is None:
        return "–"
    expected = format_probability(entry["promised"])
    return f"{OUTSIDE} {expected}" if _is_outside(entry) else expected


def _is_outside(entry: Values) -> bool:
    """Return whether the expected recall of a bin is outside the interval of the measured one."""
    known = entry["value"] is not None and entry["promised"] is not None
    return known and not entry["low"] <= entry["promised"] <= entry["high"]


def _histogram(audit: Values) -> str:
    """Return a histogram of all pairs by similarity on a logarithmic axis, with intervals if they are estimates."""
    rows = [entry for entry in audit["histogram"] if entry["high"] > 0]
    if not any(entry["pairs"] for entry in rows):
        return ""
    about = "" if audit["complete"] else "about "
    start, most = float(audit["histogram"][0]["from"]), max(entry["high"] for entry in rows)

    def x(similarity: float) -> float:
        return (similarity - start) / (1 - start)

    columns = draw_bars(
        Bar(
            x(entry["from"]),
            x(entry["to"]),
            log_height(entry["estimated"], most),
            "below" if entry["to"] <= audit["threshold"] + 1e-9 else "bar",
            f"{entry['from']:.4g} to {entry['to']:.4g}: {about}{format_count(entry['estimated'])} pairs",
        )
        for entry in rows
    )
    lines = [_interval_line(x((entry["from"] + entry["to"]) / 2), entry, most) for entry in rows]
    drawn = chart(
        "audit-chart",
        "Pairs of the whole corpus by similarity",
        f"{_how_counted(audit)} The height is logarithmic.",
        [*columns, *lines, *vertical_line(x(audit["threshold"]), f"threshold {audit['threshold']:g}")],
        x_ticks=[Tick(x(tenth / 10), f"{tenth / 10:g}") for tenth in range(10, -1, -1) if tenth / 10 >= start],
        y_ticks=log_ticks(most),
        x_label="similarity",
        y_label=f"pairs{'' if audit['complete'] else ', estimated'} (logarithmic)",
    )
    cells = (
        [f"{entry['from']:.4g} – {entry['to']:.4g}", format_count(entry["estimated"]), _range(entry)]
        for entry in audit["histogram"]
    )
    exact = table("Pairs of the whole corpus", ["similarity", "pairs", "interval"], cells)
    return f"<h3>Pairs of the whole corpus</h3>{drawn}{details('Show numbers', exact)}"


def _how_counted(audit: Values) -> str:
    documents = plural(audit["sampled"], "document")
    return f"Counted among all {documents}." if audit["complete"] else f"Estimated from {documents}, with intervals."


def _interval_line(x: float, entry: Values, most: float) -> str:
    low, high = (f"{100 - 100 * log_height(entry[name], most):.3f}%" for name in ("low", "high"))
    return f'<line class="interval" x1="{100 * x:.3f}%" x2="{100 * x:.3f}%" y1="{low}" y2="{high}"/>'


def _suggestion(audit: Values) -> str:
    suggested = audit["suggestion"]
    if suggested is None:
        return ""
    options = f"--threshold {suggested['threshold']:g} --bands {suggested['bands']} --rows {suggested['rows']}"
    return (
        f'<div class="note"><h3>Suggestion</h3><p>{escape(suggested["why"])}</p>'
        f"<p>{code(options)} finds {format_probability(suggested['recall'])} "
        "of the pairs at that threshold.</p>"
        "</div>"
    )


def _measured(share: Values) -> str:
    return "–" if share["value"] is None else format_probability(share["value"])


def _range(entry: Values) -> str:
    return f"{format_count(entry['low'])} – {format_count(entry['high'])}"


def _interval(share: Values) -> str:
    """Return the interval of a share; a dash if there was nothing to count."""
    if share["value"] is None:
        return "–"
    return f"{format_probability(share['low'])} – {format_probability(share['high'])}"
