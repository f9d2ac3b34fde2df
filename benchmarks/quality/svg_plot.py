"""Line plots as SVG that follow the light or dark setting of the reader.

They have the style of the S-curve of ``minwise plan``. Both axes can be logarithmic; a legend at the right names the
series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minwise._internal.html import escape
from minwise.sketches.s_curve import STYLE

WIDTH, HEIGHT = 780, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 540, 84, 368
# Dark enough on white and light enough on black; dashes also distinguish the series, so colour is not needed.
COLOURS = (("#1259b5", "#6db1ff"), ("#c2410c", "#fb9a5b"), ("#15803d", "#5fd38a"), ("#7e22ce", "#c99bf5"))
DASHES = ("none", "7 4", "2 3", "10 3 2 3")
LINE_HEIGHT = 24  # of the legend


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from its first to its last tick.

    Attributes:
        label: Label of the axis.
        ticks: Numbers on the axis.
        logarithmic: Whether the scale is logarithmic.
    """

    label: str
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def fraction(self, value: float) -> float:
        """Return the position of a value, 0 at the first tick and 1 at the last."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series of points.

    Attributes:
        name: Name in the legend.
        points: Coordinates.
        style: Index of colour and dashes.
        marks: Whether points are drawn.
        line: Whether points are connected.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: int
    marks: bool = True
    line: bool = True


def draw(title: str, description: str, series: Sequence[Series], *, across: Axis, up: Axis) -> str:
    """Return the plot as an SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title><desc id="desc">{escape(description)}</desc>',
        f"<style>{STYLE}{styles()}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text class="heading" x="{LEFT}" y="40">{escape(title)}</text>',
        *axes(across, up),
        *(part for line in series for part in draw_series(line, across, up)),
        *legend(series, up),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def styles() -> str:
    """Return the styles of the series, for light and for dark mode."""
    lines = [
        f"    .line-{style} {{ fill: none; stroke: {light}; stroke-width: 2.2; stroke-dasharray: {DASHES[style]}; }}\n"
        f"    .ring-{style} {{ fill: none; stroke: {light}; stroke-width: 2; }}\n"
        f"    .mark-{style} {{ fill: {light}; }} .name-{style} {{ font-size: 13px; fill: {light}; }}\n"
        f"    @media (prefers-color-scheme: dark) {{ .line-{style}, .ring-{style} {{ stroke: {dark}; }} "
        f".mark-{style}, .name-{style} {{ fill: {dark}; }} }}\n"
        for style, (light, dark) in enumerate(COLOURS)
    ]
    return "".join(lines)


def axes(across: Axis, up: Axis) -> list[str]:
    """Return grid lines and numbers at each tick, and the labels of the axes."""
    parts = []
    for tick in across.ticks:
        x = x_of(across, tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{BOTTOM + 21}" text-anchor="middle">{tick:,g}</text>')
    for tick in up.ticks:
        y = y_of(up, tick)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 10}" y="{y + 4.5:.1f}" text-anchor="end">{tick:,g}</text>')
    return [
        *parts,
        f'<path class="axis" d="M{LEFT} {TOP} L{LEFT} {BOTTOM} L{RIGHT} {BOTTOM}"/>',
        f'<text class="label" x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 48}" text-anchor="middle">'
        f"{escape(across.label)}</text>",
        f'<text class="label" text-anchor="middle" transform="translate(26 {(TOP + BOTTOM) / 2}) rotate(-90)">'
        f"{escape(up.label)}</text>",
    ]


def draw_series(series: Series, across: Axis, up: Axis) -> list[str]:
    """Return the line and the marks of a series."""
    positions = [(x_of(across, x), y_of(up, y)) for x, y in series.points]
    parts = []
    if series.line:
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
        parts.append(f'<path class="line-{series.style}" d="M{path}"/>')
    if series.marks:
        parts += [mark(series, x, y) for x, y in positions]
    return parts


def legend(series: Sequence[Series], up: Axis) -> list[str]:
    """Return the legend at the right: a sample of each line with its name, ordered by the last value, highest first."""
    parts = []
    for number, line in enumerate(sorted(series, key=lambda line: -up.fraction(line.points[-1][1]))):
        y = TOP + 10 + number * LINE_HEIGHT
        if line.line:
            parts.append(f'<path class="line-{line.style}" d="M{RIGHT + 20} {y} h34"/>')
        if line.marks:
            parts.append(mark(line, RIGHT + 37, y))
        parts.append(f'<text class="name-{line.style}" x="{RIGHT + 64}" y="{y + 4.5}">{escape(line.name)}</text>')
    return parts


def mark(line: Series, x: float, y: float) -> str:
    """Return the mark of a point; unconnected points are rings of different sizes, so that none is hidden."""
    if line.line:
        return f'<circle class="mark-{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'
    return f'<circle class="ring-{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="{3.4 + 1.5 * line.style:.1f}"/>'


def x_of(axis: Axis, value: float) -> float:
    """Return the x coordinate of a value."""
    return LEFT + (RIGHT - LEFT) * axis.fraction(value)


def y_of(axis: Axis, value: float) -> float:
    """Return the y coordinate of a value."""
    return BOTTOM - (BOTTOM - TOP) * axis.fraction(value)
