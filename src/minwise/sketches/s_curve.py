"""Curve: a plan in, a picture of its S-curve out.

`draw_curve` makes an SVG file of its own, without a script, a font or anything else to load. Its colours follow the
reader's light or dark setting. `curve_chart` makes a part of a page, with what an audit measured. The same plan gives
the same bytes.
"""

import os
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from minwise._internal.atomic import atomic_writer
from minwise._internal.charts import Tick, chart, line_at
from minwise._internal.formatting import plural, probability
from minwise._internal.html import escape
from minwise.sketches.planning import Plan

__all__ = ["curve_chart", "draw_curve", "write_curve"]

Floats = NDArray[np.float64]
Real = TypeVar("Real", float, Floats)

# All lengths are in the units of the view box. The margin on the right holds the label of a threshold near 1.
WIDTH, HEIGHT = 720, 480
LEFT, RIGHT, TOP, BOTTOM = 76, 600, 118, 414
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# Points of the curve: so many evenly along the similarity, and as many along the probability, for where it is steep.
SAMPLES = 121
# A recall below this leaves no room for words below its mark.
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
    """The S-curve of a plan as an SVG document, with the areas of what it proposes in vain and what it misses."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="title desc">',
        f'<title id="title">S-curve of {plan.layout}</title>',
        f'<desc id="desc">{escape(_description(plan))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_heading(plan),
        *_grid(),
        *_areas_and_curve(plan),
        *_threshold(plan),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def write_curve(plan: Plan, path: str | PathLike[str]) -> None:
    """Writes `draw_curve` to a file, which appears whole or not at all."""
    with atomic_writer(Path(os.fspath(path))) as file:
        file.write(draw_curve(plan).encode())


def curve_chart(plan: Plan, measured: Iterable[Mapping[str, Any]] = ()) -> str:
    """The S-curve as a part of a page, with the recall of each bin of an audit and its interval where it has one."""
    bins = [one for one in measured if one["value"] is not None]
    points = f" An audit measured the recall of {plural(len(bins), 'bin')}; the table has them." if bins else ""
    ticks = [Tick(tick, f"{tick:g}") for tick in TICKS]
    return chart(
        "curve",
        f"S-curve of {plan.layout}",
        _description(plan) + points,
        [
            _panel(plan),
            *line_at(plan.threshold, f"threshold {plan.threshold:g}"),
            _promise(plan),
            *map(_measured, bins),
        ],
        across=ticks,
        up=ticks,
        across_label="similarity of two documents",
        up_label="probability of being found",
    )


def _panel(plan: Plan) -> str:
    """The curve and its areas in a plot of 100 by 100 that is stretched to the room there is; its lines are not."""
    similarities = _sample(plan)
    left, right = similarities[similarities <= plan.threshold], similarities[similarities >= plan.threshold]
    edge = f"{100 * plan.threshold:.2f}"

    def path(places: Floats) -> str:
        points = zip(100 * places, 100 - 100 * plan.probability(places), strict=True)
        return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points)

    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
        f'<path class="false-positive" d="{path(left)} L{edge} 100 Z"/>'
        f'<path class="false-negative" d="{path(right)} L{edge} 0 Z"/>'
        f'<path class="curve" d="{path(similarities)}"/></svg>'
    )


def _promise(plan: Plan) -> str:
    """The mark where the threshold meets the curve."""
    words = f"promised at the threshold: {_short(plan.recall)}"
    x, y = f"{100 * plan.threshold:.3f}%", f"{100 - 100 * plan.recall:.3f}%"
    return f'<circle class="promise" cx="{x}" cy="{y}" r="5"><title>{words}</title></circle>'


def _measured(one: Mapping[str, Any]) -> str:
    """A measured recall: a mark in the middle of its bin, on a line over its interval."""
    x = f"{50 * (one['from'] + one['to']):.3f}%"
    low, high, value = (f"{100 - 100 * one[name]:.3f}%" for name in ("low", "high", "value"))
    words = f"{one['from']:g} to {one['to']:g}: {one['found']:,} of {one['pairs']:,} pairs found"
    return (
        f'<g class="measured"><title>{words}</title><line x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>'
        f'<circle cx="{x}" cy="{value}" r="4"/></g>'
    )


def _description(plan: Plan) -> str:
    """The picture in plain words, for those who do not see it."""
    below, above = probability(plan.false_positive_area()), probability(plan.false_negative_area())
    return (
        f"How likely two documents become a candidate pair, by their similarity. At the threshold {plan.threshold:g} "
        f"it is {probability(plan.recall)}. The curve is steepest near {plan.steepest:.2f}. "
        f"False positive area, below the curve left of the threshold: {below}. "
        f"False negative area, above the curve right of the threshold: {above}."
    )


def _heading(plan: Plan) -> list[str]:
    """The title, and a line for each coloured area: in the picture itself the areas are often too small for words."""
    below, above = _short(plan.false_positive_area()), _short(plan.false_negative_area())
    return [
        f'<text class="heading" x="{LEFT}" y="38">{plan.layout}</text>',
        f'<rect class="false-positive" x="{LEFT}" y="54" width="14" height="14" rx="2"/>',
        _text("label", LEFT + 22, 66, f"false positives: area {below}"),
        f'<rect class="false-negative" x="{LEFT + 250}" y="54" width="14" height="14" rx="2"/>',
        _text("label", LEFT + 272, 66, f"false negatives: area {above}"),
    ]


def _grid() -> list[str]:
    """Lines and numbers at each tick, and what the axes mean."""
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
    """The line at the threshold, and the recall there."""
    x, y = _x(plan.threshold), _y(plan.recall)
    return [
        f'<line class="threshold" x1="{x:.2f}" y1="{TOP - 8}" x2="{x:.2f}" y2="{BOTTOM}"/>',
        _text("strong", x, TOP - 15, f"threshold {plan.threshold:g}", "middle"),
        f'<circle class="recall" cx="{x:.2f}" cy="{y:.2f}" r="5"/>',
        _recall_label(plan, x, y),
    ]


def _recall_label(plan: Plan, x: float, y: float) -> str:
    """The recall beside its mark.

    The curve only climbs, so the picture is empty right of and below the mark, and left of and above it. The label
    stands in the former, in the latter if the recall is very low, and on the coloured area if there is no room there.
    """
    words = f"recall {_short(plan.recall)}"
    if plan.recall >= LOW_RECALL:
        return _text("strong", x + 10, y + 22, words)
    return (
        _text("strong", x - 10, y - 10, words, "end")
        if plan.threshold > 0.25
        else _text("strong", x + 10, y - 26, words)
    )


def _sample(plan: Plan) -> Floats:
    """Similarities at which to draw: evenly spread, where the curve climbs by even steps, and the threshold."""
    even = np.linspace(0, 1, SAMPLES)
    missed = np.linspace(1, 0, SAMPLES)[1:-1]
    climbing = (-np.expm1(np.log(missed) / plan.bands)) ** (1 / plan.rows)
    return np.array(sorted({*even, *climbing, plan.threshold}))  # np.unique would import numpy.ma, 8 ms of every run


def _path(plan: Plan, similarities: Floats) -> str:
    points = zip(_x(similarities), _y(plan.probability(similarities)), strict=True)
    return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points)


def _text(style: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{words}</text>'


def _short(value: float) -> str:
    return escape(probability(value))


def _x(similarity: Real) -> Real:
    x: Real = LEFT + (RIGHT - LEFT) * similarity
    return x


def _y(probability: Real) -> Real:
    y: Real = BOTTOM - (BOTTOM - TOP) * probability
    return y
