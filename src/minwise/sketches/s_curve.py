"""Drawings of the S-curve of a plan.

`draw_curve` returns a standalone SVG document that loads no script, font or other file; its colours follow the light
or dark setting of the browser. `inline_curve` returns the same drawing for a notebook. `curve_chart` returns a part of
an HTML page that also shows the recall measured by an audit. Equal plans give equal bytes.
"""

import os
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from minwise._internal.charts import Tick, chart, vertical_line
from minwise._internal.formatting import format_probability, plural
from minwise._internal.html import escape
from minwise._internal.temporary import output_writer
from minwise.sketches.planning import Plan

__all__ = ["curve_chart", "draw_curve", "inline_curve", "write_curve"]

Floats = NDArray[np.float64]
Real = TypeVar("Real", float, Floats)

# All lengths are in units of the view box. The margin on the right is for the label of a threshold near 1.
WIDTH, HEIGHT = 720, 480
LEFT, RIGHT, TOP, BOTTOM = 76, 600, 118, 414
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# Points of the curve: this many evenly spaced in similarity and as many in probability, for the steep part.
SAMPLES = 121
# Below this recall there is no space for a label below the marker.
LOW_RECALL = 0.15

STYLE = """
    text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2430; }
    .page { fill: #ffffff; }
    .heading { font-size: 21px; font-weight: 600; }
    .label { font-size: 13px; }
    .strong { font-size: 13px; font-weight: 600; }
    .quiet { font-size: 13px; fill: #5d6675; }
    .grid { stroke: #e4e7ec; stroke-width: 1; }
    .axis { fill: none; stroke: #98a1b0; stroke-width: 1; }
    .curve { fill: none; stroke: #1259b5; stroke-width: 2.5; stroke-linejoin: round; }
    .false-positive { fill: #f0a830; fill-opacity: 0.45; }
    .false-negative { fill: #d23b4e; fill-opacity: 0.65; }
    .threshold { stroke: #1f2430; stroke-width: 1.5; stroke-dasharray: 5 4; }
    .recall { fill: #ffffff; stroke: #1259b5; stroke-width: 2.5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8eaee; }
      .page { fill: #14171d; }
      .quiet { fill: #9aa4b4; }
      .grid { stroke: #2a303a; }
      .axis { stroke: #697384; }
      .curve { stroke: #6db1ff; }
      .false-positive { fill: #e8a93c; fill-opacity: 0.55; }
      .false-negative { fill: #f0606f; fill-opacity: 0.7; }
      .threshold { stroke: #e8eaee; }
      .recall { fill: #14171d; stroke: #6db1ff; }
    }
"""


def draw_curve(plan: Plan) -> str:
    """Return the S-curve of a plan as an SVG document, with the false positive and false negative areas."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="title desc">',
        f'<title id="title">S-curve of {plan.layout}</title>',
        f'<desc id="desc">{escape(_description(plan))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_drawing(plan),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def inline_curve(plan: Plan) -> str:
    """Return the same drawing as an element of a notebook, whose style sheet decides its colours."""
    label = escape(f"S-curve of {plan.layout}. {_description(plan)}")
    start = f'<svg class="s-curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return "".join([start, *_drawing(plan), "</svg>"])


def _drawing(plan: Plan) -> list[str]:
    return [*_heading(plan), *_grid(), *_areas_and_curve(plan), *_threshold(plan)]


def write_curve(plan: Plan, path: str | PathLike[str]) -> None:
    """Write the document of `draw_curve` to a file, atomically."""
    with output_writer(Path(os.fspath(path))) as file:
        file.write(draw_curve(plan).encode())


def curve_chart(plan: Plan, audit_bins: Iterable[Mapping[str, Any]] = ()) -> str:
    """Return the S-curve as a part of an HTML page.

    Args:
        plan: The plan.
        audit_bins: Bins of an audit report; the measured recall of each, if any, is drawn with its interval.
    """
    bins = [audit_bin for audit_bin in audit_bins if audit_bin["value"] is not None]
    points = f" An audit measured the recall of {plural(len(bins), 'bin')}; the table has them." if bins else ""
    ticks = [Tick(tick, f"{tick:g}") for tick in TICKS]
    return chart(
        "curve",
        f"S-curve of {plan.layout}",
        _description(plan) + points,
        [
            _curve_panel(plan),
            *vertical_line(plan.threshold, f"threshold {plan.threshold:g}"),
            _recall_marker(plan),
            *map(_audit_marker, bins),
        ],
        x_ticks=ticks,
        y_ticks=ticks,
        x_label="similarity of two documents",
        y_label="probability of being found",
    )


def _curve_panel(plan: Plan) -> str:
    """Return the curve and its areas in a plot of 100 by 100 that is scaled to its container without its lines."""
    similarities = _sample(plan)
    left, right = similarities[similarities <= plan.threshold], similarities[similarities >= plan.threshold]
    edge = f"{100 * plan.threshold:.2f}"

    def path(part: Floats) -> str:
        points = zip(100 * part, 100 - 100 * plan.probability(part), strict=True)
        return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points)

    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
        f'<path class="false-positive" d="{path(left)} L{edge} 100 Z"/>'
        f'<path class="false-negative" d="{path(right)} L{edge} 0 Z"/>'
        f'<path class="curve" d="{path(similarities)}"/></svg>'
    )


def _recall_marker(plan: Plan) -> str:
    """Return the marker at the threshold on the curve."""
    tooltip = f"expected at the threshold: {_format_short(plan.recall)}"
    x, y = f"{100 * plan.threshold:.3f}%", f"{100 - 100 * plan.recall:.3f}%"
    return f'<circle class="recall" cx="{x}" cy="{y}" r="5"><title>{tooltip}</title></circle>'


def _audit_marker(audit_bin: Mapping[str, Any]) -> str:
    """Return a marker at the measured recall, in the middle of its bin, on a line over its interval."""
    start, end = audit_bin["from"], audit_bin["to"]
    x = f"{50 * (start + end):.3f}%"
    low, high, value = (f"{100 - 100 * audit_bin[name]:.3f}%" for name in ("low", "high", "value"))
    tooltip = f"{start:g} to {end:g}: {audit_bin['found']:,} of {audit_bin['pairs']:,} pairs found"
    return (
        f'<g class="measured"><title>{tooltip}</title><line x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>'
        f'<circle cx="{x}" cy="{value}" r="4"/></g>'
    )


def _description(plan: Plan) -> str:
    """Return the accessible description of the chart."""
    below, above = format_probability(plan.false_positive_area()), format_probability(plan.false_negative_area())
    return (
        f"How likely two documents become a candidate pair, by their similarity. At the threshold {plan.threshold:g} "
        f"it is {format_probability(plan.recall)}. The curve is steepest near {plan.steepest:.2f}. "
        f"False positive area, below the curve left of the threshold: {below}. "
        f"False negative area, above the curve right of the threshold: {above}."
    )


def _heading(plan: Plan) -> list[str]:
    """Return the title and a legend of the areas, which are often too small for a label."""
    below, above = _format_short(plan.false_positive_area()), _format_short(plan.false_negative_area())
    return [
        f'<text class="heading" x="{LEFT}" y="38">{plan.layout}</text>',
        f'<rect class="false-positive" x="{LEFT}" y="54" width="14" height="14" rx="2"/>',
        _text("label", LEFT + 22, 66, f"false positives: area {below}"),
        f'<rect class="false-negative" x="{LEFT + 250}" y="54" width="14" height="14" rx="2"/>',
        _text("label", LEFT + 272, 66, f"false negatives: area {above}"),
    ]


def _grid() -> list[str]:
    """Return the grid lines, tick labels and axis labels."""
    parts = []
    for tick in TICKS:
        x, y = _x(tick), _y(tick)
        parts += [
            f'<line class="grid" x1="{x:.2f}" y1="{TOP}" x2="{x:.2f}" y2="{BOTTOM}"/>',
            f'<line class="grid" x1="{LEFT}" y1="{y:.2f}" x2="{RIGHT}" y2="{y:.2f}"/>',
            _text("quiet", x, BOTTOM + 20, f"{tick:g}", "middle"),
            _text("quiet", LEFT - 10, y + 4.5, f"{tick:g}", "end"),
        ]
    middle = (TOP + BOTTOM) / 2
    return [
        *parts,
        f'<path class="axis" d="M{LEFT} {TOP} L{LEFT} {BOTTOM} L{RIGHT} {BOTTOM}"/>',
        _text("label", (LEFT + RIGHT) / 2, BOTTOM + 46, "similarity of two documents", "middle"),
        f'<text class="label" text-anchor="middle" transform="translate(26 {middle:g}) rotate(-90)">'
        "probability of a candidate pair</text>",
    ]


def _areas_and_curve(plan: Plan) -> list[str]:
    similarities = _sample(plan)
    left, right = similarities[similarities <= plan.threshold], similarities[similarities >= plan.threshold]
    edge = _x(plan.threshold)
    return [
        f'<path class="false-positive" d="{_path(plan, left)} L{edge:.2f} {BOTTOM} Z"/>',
        f'<path class="false-negative" d="{_path(plan, right)} L{edge:.2f} {TOP} Z"/>',
        f'<path class="curve" d="{_path(plan, similarities)}"/>',
    ]


def _threshold(plan: Plan) -> list[str]:
    """Return the line at the threshold and the marker of its recall."""
    x, y = _x(plan.threshold), _y(plan.recall)
    return [
        f'<line class="threshold" x1="{x:.2f}" y1="{TOP - 8}" x2="{x:.2f}" y2="{BOTTOM}"/>',
        _text("strong", x, TOP - 15, f"threshold {plan.threshold:g}", "middle"),
        f'<circle class="recall" cx="{x:.2f}" cy="{y:.2f}" r="5"/>',
        _recall_label(plan, x, y),
    ]


def _recall_label(plan: Plan, x: float, y: float) -> str:
    """Return the label of the recall marker.

    The curve increases, so the plot is empty to the lower right and to the upper left of the marker. The label is at
    the lower right; if the recall is very low, at the upper left, or above the marker where there is no space.
    """
    label = f"recall {_format_short(plan.recall)}"
    if plan.recall >= LOW_RECALL:
        return _text("strong", x + 10, y + 22, label)
    return (
        _text("strong", x - 10, y - 10, label, "end")
        if plan.threshold > 0.25
        else _text("strong", x + 10, y - 26, label)
    )


def _sample(plan: Plan) -> Floats:
    """Return the similarities to draw: evenly spaced ones, those of evenly spaced probabilities, and the threshold."""
    even = np.linspace(0, 1, SAMPLES)
    missed = np.linspace(1, 0, SAMPLES)[1:-1]
    steep = (-np.expm1(np.log(missed) / plan.bands)) ** (1 / plan.rows)
    return np.array(sorted({*even, *steep, plan.threshold}))  # np.unique would import numpy.ma, 8 ms of every run


def _path(plan: Plan, similarities: Floats) -> str:
    points = zip(_x(similarities), _y(plan.probability(similarities)), strict=True)
    return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points)


def _text(style: str, x: float, y: float, label: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{label}</text>'


def _format_short(value: float) -> str:
    return escape(format_probability(value))


def _x(similarity: Real) -> Real:
    x: Real = LEFT + (RIGHT - LEFT) * similarity
    return x


def _y(probability: Real) -> Real:
    y: Real = BOTTOM - (BOTTOM - TOP) * probability
    return y
