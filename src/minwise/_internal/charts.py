"""Charts as inline SVG.

A chart is as wide as its container. Marks are positioned in per cent of the plot, so they move with the width while
text keeps its size; the labels of the axes lie outside the plot, where the style sheet leaves a margin. Colours come
from the style sheet of the page. Every chart has a title and a description for screen readers. All texts are escaped
here.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from minwise._internal.html import escape

__all__ = [
    "Bar",
    "Tick",
    "bar_cell",
    "chart",
    "draw_bars",
    "linear_ticks",
    "log_height",
    "log_ticks",
    "stacked_bar",
    "vertical_line",
]

# Minimum height of a bar, as a share of the plot: one pair among millions stays visible.
MIN_BAR_HEIGHT = 0.012
# Powers of ten between the start of a logarithmic axis and 1, so that a bar of 1 has a height.
LOG_AXIS_MARGIN = 0.35


class Tick(NamedTuple):
    """Tick of an axis: its position from 0 to 1, and its label."""

    position: float
    label: str


class Bar(NamedTuple):
    """Bar of a chart: its horizontal range and height, from 0 to 1, its CSS class and its tooltip."""

    start: float
    end: float
    height: float
    style: str
    tooltip: str


def chart(
    name: str,
    title: str,
    description: str,
    marks: Iterable[str],
    *,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    x_label: str,
    y_label: str,
) -> str:
    """Return a chart with its axes.

    Args:
        name: Identifier, unique on the page.
        title: Accessible title.
        description: Accessible description.
        marks: SVG elements made by the functions of this module.
        x_ticks: Ticks of the horizontal axis.
        y_ticks: Ticks of the vertical axis, each with a grid line.
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis.
    """
    lines = [
        f'<line class="grid" x1="0" x2="100%" y1="{_from_top(tick.position)}" y2="{_from_top(tick.position)}"/>'
        for tick in y_ticks
    ]
    numbers = [
        f'<text x="0" dx="-8" y="{_from_top(tick.position)}" dy="4" class="up">{escape(tick.label)}</text>'
        for tick in y_ticks
    ]
    numbers += [
        f'<text x="{_percent(tick.position)}" y="100%" dy="20" class="across">{escape(tick.label)}</text>'
        for tick in x_ticks
    ]
    return (
        f'<div class="chart" id="{name}"><p class="axis-name" aria-hidden="true">{escape(y_label)}</p>'
        f'<svg class="plot" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
        f"{''.join(lines)}{''.join(marks)}"
        f'<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>{"".join(numbers)}</svg>'
        f'<p class="axis-name across" aria-hidden="true">{escape(x_label)}</p></div>'
    )


def draw_bars(bars: Iterable[Bar]) -> list[str]:
    """Draw the bars with a height above 0."""
    return [_draw_bar(bar) for bar in bars if bar.height > 0]


def vertical_line(position: float, label: str, style: str = "threshold") -> list[str]:
    """Draw a line over the full height, with a label above it that stays inside the plot."""
    x, side = _percent(position), "end" if position > 0.6 else "start" if position < 0.4 else "middle"
    return [
        f'<line class="{style}" x1="{x}" x2="{x}" y1="-6" y2="100%"/>',
        f'<text class="{style}-words {side}" x="{x}" y="-12">{escape(label)}</text>',
    ]


def linear_ticks(maximum: float) -> list[Tick]:
    """Return three to six round integers from 0 to ``maximum``.

    >>> [tick.label for tick in linear_ticks(7)], [tick.label for tick in linear_ticks(1234)]
    (['0', '2', '4', '6'], ['0', '500', '1,000'])
    """
    power = 10.0 ** math.floor(math.log10(max(maximum, 1)))
    steps = (max(1.0, factor * power) for factor in (0.2, 0.5, 1, 2, 5))
    step = next(step for step in steps if step * 5 >= maximum)
    count = int(maximum / step + 1e-9) + 1
    return [Tick(number * step / max(maximum, 1), f"{number * step:,.0f}") for number in range(count)]


def log_height(count: float, maximum: float) -> float:
    """Return the height of a count on a logarithmic axis that ends at ``maximum``, from 0 to 1; 0 for a count of 0.

    >>> log_height(0, 100), log_height(100, 100), 0 < log_height(1, 100) < 0.2
    (0.0, 1.0, True)
    """
    if count <= 0:
        return 0.0
    return max(0.0, (math.log10(count) + LOG_AXIS_MARGIN) / (math.log10(max(maximum, 1)) + LOG_AXIS_MARGIN))


def log_ticks(maximum: float) -> list[Tick]:
    """Return at most six powers of ten up to ``maximum``; with fewer than three, also their multiples by 2 and 5.

    >>> [tick.label for tick in log_ticks(7)], [tick.label for tick in log_ticks(12_345)]
    (['1', '2', '5'], ['1', '10', '100', '1,000', '10,000'])
    """
    powers = range(math.floor(math.log10(max(maximum, 1)) + 1e-9) + 1)
    step = math.ceil(len(powers) / 6)
    factors = (1, 2, 5) if len(powers) < 3 else (1,)
    values = [factor * 10**power for power in powers[::step] for factor in factors]
    return [Tick(log_height(value, maximum), f"{value:,}") for value in values if value <= max(maximum, 1)]


def stacked_bar(*parts: tuple[float, str], style: str = "share-bar") -> str:
    """Draw a horizontal bar of parts, each a share of the whole and a CSS class; hidden from screen readers."""
    drawn, start = [], 0.0
    for share, part_style in parts:
        if share > 0:
            drawn.append(f'<rect class="{part_style}" x="{_percent(start)}" width="{_percent(share)}" height="100%"/>')
        start += share
    return f'<svg class="{style}" aria-hidden="true">{"".join(drawn)}</svg>'


def bar_cell(share: float, style: str, label: str) -> str:
    """Return the contents of a table cell: a small bar and its label."""
    return f'<span class="with-bar">{stacked_bar((share, style))}<span>{escape(label)}</span></span>'


def _draw_bar(bar: Bar) -> str:
    height = max(bar.height, MIN_BAR_HEIGHT)
    return (
        f'<rect class="{bar.style}" x="{_percent(bar.start)}" width="{_percent(bar.end - bar.start)}" '
        f'y="{_from_top(height)}" height="{_percent(height)}"><title>{escape(bar.tooltip)}</title></rect>'
    )


def _percent(position: float) -> str:
    return f"{100 * position:.3f}%"


def _from_top(height: float) -> str:
    """Return the vertical position of a height; SVG counts from the top."""
    return _percent(1 - height)
