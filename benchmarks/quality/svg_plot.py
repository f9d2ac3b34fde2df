"""Picture: series of points in, one SVG file out that follows the reader's light or dark setting.

Of the same look as the S-curve of ``minwise plan``. Both axes can be logarithmic; a key at the right names the series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minwise._internal.html import escape
from minwise.sketches.s_curve import STYLE

WIDTH, HEIGHT = 780, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 540, 84, 368
# Dark enough on white and light enough on black; told apart by dashes as well, so no colour is needed.
COLOURS = (("#1259b5", "#6db1ff"), ("#c2410c", "#fb9a5b"), ("#15803d", "#5fd38a"), ("#7e22ce", "#c99bf5"))
DASHES = ("none", "7 4", "2 3", "10 3 2 3")
LINE_HEIGHT = 24  # of the key


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from its first to its last tick.

    Attributes:
        label: What it means.
        ticks: The numbers on it.
        logarithmic: Whether equal steps are equal factors.
    """

    label: str
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value stands, 0 at the first tick and 1 at the last."""
        low, high, here = (self.ticks[0], self.ticks[-1], value)
        if self.logarithmic:
            low, high, here = math.log(low), math.log(high), math.log(here)
        return (here - low) / (high - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one kind.

    Attributes:
        name: Written in the key.
        points: Where they are.
        marks: Whether points are drawn.
        line: Whether they are connected.
        look: Which colour and dashes.
    """

    name: str
    points: Sequence[tuple[float, float]]
    look: int
    marks: bool = True
    line: bool = True


def draw(title: str, description: str, series: Sequence[Series], *, across: Axis, up: Axis) -> str:
    """Return the picture as an SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title><desc id="desc">{escape(description)}</desc>',
        f"<style>{STYLE}{styles()}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text class="heading" x="{LEFT}" y="40">{escape(title)}</text>',
        *axes(across, up),
        *(part for one in series for part in drawn(one, across, up)),
        *names(series, up),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def styles() -> str:
    """Return the looks of the series, for light and for dark."""
    lines = [
        f"    .line-{look} {{ fill: none; stroke: {light}; stroke-width: 2.2; stroke-dasharray: {DASHES[look]}; }}\n"
        f"    .ring-{look} {{ fill: none; stroke: {light}; stroke-width: 2; }}\n"
        f"    .mark-{look} {{ fill: {light}; }} .name-{look} {{ font-size: 13px; fill: {light}; }}\n"
        f"    @media (prefers-color-scheme: dark) {{ .line-{look}, .ring-{look} {{ stroke: {dark}; }} "
        f".mark-{look}, .name-{look} {{ fill: {dark}; }} }}\n"
        for look, (light, dark) in enumerate(COLOURS)
    ]
    return "".join(lines)


def axes(across: Axis, up: Axis) -> list[str]:
    """Return lines and numbers at each tick, and what the axes mean."""
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


def drawn(one: Series, across: Axis, up: Axis) -> list[str]:
    """Return the line and the marks of a series."""
    places = [(x_of(across, x), y_of(up, y)) for x, y in one.points]
    parts = []
    if one.line:
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="line-{one.look}" d="M{path}"/>')
    if one.marks:
        parts += [mark(one, x, y) for x, y in places]
    return parts


def names(series: Sequence[Series], up: Axis) -> list[str]:
    """Return a key at the right: a piece of each line with its name, in the order in which they end, highest first."""
    parts = []
    for number, one in enumerate(sorted(series, key=lambda one: -up.place(one.points[-1][1]))):
        y = TOP + 10 + number * LINE_HEIGHT
        if one.line:
            parts.append(f'<path class="line-{one.look}" d="M{RIGHT + 20} {y} h34"/>')
        if one.marks:
            parts.append(mark(one, RIGHT + 37, y))
        parts.append(f'<text class="name-{one.look}" x="{RIGHT + 64}" y="{y + 4.5}">{escape(one.name)}</text>')
    return parts


def mark(one: Series, x: float, y: float) -> str:
    """Return a point; where points are not connected, rings of several sizes let one see those beneath."""
    if one.line:
        return f'<circle class="mark-{one.look}" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'
    return f'<circle class="ring-{one.look}" cx="{x:.1f}" cy="{y:.1f}" r="{3.4 + 1.5 * one.look:.1f}"/>'


def x_of(axis: Axis, value: float) -> float:
    """Return how far to the right a value stands."""
    return LEFT + (RIGHT - LEFT) * axis.place(value)


def y_of(axis: Axis, value: float) -> float:
    """Return how far down a value stands."""
    return BOTTOM - (BOTTOM - TOP) * axis.place(value)
